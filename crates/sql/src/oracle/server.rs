//! Facts about a server, read once per command: by the data set's owner, without any privilege, and by the user who
//! reads V$ views.

use super::session::{Bind, Rows, Session, told};
use super::sql;
use assay_measure::snapshot::Fact;
use assay_run::engine::EngineError;
use std::collections::BTreeMap;

/// The settings a report shows first.
pub(super) const TOLD: &str = "\
    server_version server_host database instance container services tablespace db_cache_size db_keep_cache_size \
    db_block_checksum log_mode commit_logging commit_wait fast_start_mttr_target disk_asynch_io repository plan";

/// Supported versions, whose statements and views assay knows.
const KNOWN: std::ops::RangeInclusive<u32> = 12..=26;
const UNLIMITED: &str = "unlimited";

/// Facts available to the data set's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// As the server reports it: `19.0.0.0.0`.
    pub(super) version: String,
    pub(super) major: u32,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) instance: String,
    /// The pluggable database, or the database itself.
    pub(super) container: String,
    pub(super) service: String,
    /// Its host, by itself.
    host: String,
    role: String,
    pub(super) tablespace: Tablespace,
}

/// Tablespace of the data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tablespace {
    pub(super) name: String,
    pub(super) block_bytes: u64,
    /// NOLOGGING, ...
    pub(super) logging: String,
    /// AUTO or MANUAL.
    pub(super) management: String,
    /// Free space without growing; `None` if the server does not report it.
    pub(super) free_bytes: Option<u64>,
    /// Remaining quota of this user; `None` if unlimited.
    pub(super) quota_bytes: Option<u64>,
}

fn text(rows: &Rows, at: usize) -> String {
    let value = rows.first().and_then(|row| row.get(at)?.clone());
    value.unwrap_or_default()
}

/// What is being done while the server is queried.
const ASKING: &str = "asking the server what it is";

/// The row of `sql::WHO`, and the server's major version.
///
/// # Errors
/// `Unusable`: an unsupported version.
pub(super) fn who(session: &mut dyn Session) -> Result<(Rows, u32), EngineError> {
    let who = session.rows(sql::WHO, &[]).map_err(told(ASKING))?;
    let version = text(&who, 6);
    let major = version.split('.').next().and_then(|text| text.parse().ok());
    let known = major.filter(|major| KNOWN.contains(major));
    let unknown = || {
        EngineError::Unusable(format!(
            "the server is version {version}, but assay supports {} to {}",
            KNOWN.start(),
            KNOWN.end()
        ))
    };
    let major = known.ok_or_else(unknown)?;
    Ok((who, major))
}

/// The container that a session is in.
pub(super) fn container(session: &mut dyn Session) -> Result<String, EngineError> {
    who(session).map(|(who, _)| text(&who, 3))
}

impl Server {
    /// Queries the server; `tablespace` is ORACLE_TABLESPACE, empty for the user's default.
    ///
    /// # Errors
    /// `Unusable`: an unsupported version, a standby, or no such tablespace; `Usage`: not a valid name.
    pub(super) fn ask(session: &mut dyn Session, tablespace: &str) -> Result<Self, EngineError> {
        let (who, major) = who(session)?;
        let name = match tablespace {
            "" => text(&who, 7),
            given => sql::identifier(given)
                .ok_or_else(|| EngineError::Usage(format!("ORACLE_TABLESPACE={given} is not a name without quotes")))?,
        };
        let rows = session.rows(sql::TABLESPACE, &[Bind::Text(&name)]).map_err(told(ASKING))?;
        if rows.is_empty() {
            return Err(EngineError::Unusable(format!(
                "there is no tablespace {name} that user {} may see: give the user a quota on it, or name another one in \
                 ORACLE_TABLESPACE",
                text(&who, 0)
            )));
        }
        Ok(Self {
            version: text(&who, 6),
            major,
            user: text(&who, 0),
            database: text(&who, 1),
            instance: text(&who, 2),
            container: text(&who, 3),
            service: text(&who, 4),
            host: text(&who, 8),
            role: text(&who, 5),
            tablespace: Tablespace {
                name,
                block_bytes: text(&rows, 0).parse().unwrap_or(0),
                logging: text(&rows, 2),
                management: text(&rows, 3),
                free_bytes: text(&rows, 4).parse().ok(),
                quota_bytes: match text(&rows, 5).as_str() {
                    UNLIMITED => None,
                    // Without a row there is no quota, but possibly the privilege UNLIMITED TABLESPACE.
                    bytes => bytes.parse().ok(),
                },
            },
        })
    }

    /// The database, or the instance of it whose views are read.
    pub(super) fn place(&self, sees_all: bool) -> String {
        let Self { database, instance, host, .. } = self;
        if sees_all { format!("Oracle {database}") } else { format!("Oracle {database}, {instance} on {host}") }
    }

    /// # Errors
    /// `Unusable`: the database does not accept writes.
    pub(super) fn refuse_read_only(&self) -> Result<(), EngineError> {
        if self.role.is_empty() || self.role == "PRIMARY" {
            return Ok(());
        }
        Err(EngineError::Unusable(format!(
            "database {} is a {}: connect to the primary, which accepts writes",
            self.database,
            self.role.to_lowercase()
        )))
    }

    /// # Errors
    /// `Unusable`: the user's quota is too small. The free space is not checked, since files may grow.
    pub(super) fn refuse_too_large(&self, bytes: u64) -> Result<(), EngineError> {
        match self.tablespace.quota_bytes {
            Some(quota) if quota < bytes => Err(EngineError::Unusable(format!(
                "the data set takes about {bytes} bytes, but user {} may use only {quota} more of tablespace {}: raise \
                 the quota, or use fewer schemas or a smaller SCALE",
                self.user, self.tablespace.name
            ))),
            _ => Ok(()),
        }
    }
}

/// Facts of the instance from V$ views.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Instance {
    /// Parameters and sizes by name, or why there are none.
    values: BTreeMap<String, String>,
    denied: Option<String>,
}

impl Instance {
    /// Queries the views; for a user without the privilege there are no values, and the report says so.
    pub(super) fn ask(session: &mut dyn Session) -> Self {
        let mut values = BTreeMap::new();
        let mut denied = None;
        for sql in [sql::PARAMETERS, sql::CACHES] {
            match session.rows(sql, &[]) {
                Ok(rows) => values.extend(rows.into_iter().filter_map(|row| {
                    let mut row = row.into_iter();
                    Some((row.next()??, row.next()?.unwrap_or_default()))
                })),
                Err(error) => denied = Some(format!("denied: {error}; GRANT SELECT_CATALOG_ROLE")),
            }
        }
        Self { values, denied }
    }

    /// A value; empty if absent.
    pub(super) fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    /// A fact for the report.
    fn fact(&self, fact: &str, name: &str) -> Fact {
        let value = match (self.text(name), &self.denied) {
            ("", Some(why)) => format!("n/a ({why})"),
            ("", None) => "not set".to_owned(),
            (value, _) => value.to_owned(),
        };
        Fact::new(fact, value)
    }

    /// Size of the buffer pool for the tables: KEEP if it exists, else the default pool.
    pub(super) fn cache_bytes(&self) -> Option<(u64, &'static str)> {
        match self.number("KEEP buffer cache").filter(|bytes| *bytes > 0) {
            Some(keep) => Some((keep, "db_keep_cache_size")),
            None => Some((self.number("DEFAULT buffer cache")?, "db_cache_size")),
        }
    }

    /// How files are opened according to the setting; the effective mode is known only on the server's host.
    fn io_mode(&self) -> String {
        let set = self.text("filesystemio_options");
        let mode = match set.to_ascii_lowercase().as_str() {
            "" => return "n/a (the user may not read V$PARAMETER)".to_owned(),
            "setall" | "directio" => "direct on file systems",
            _ => "buffered on file systems",
        };
        format!("{mode}, by filesystemio_options={set}; ASM is always direct")
    }

    /// Warnings about settings that make figures misleading.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (Some((_, "db_keep_cache_size")), Some(default)) =
            (self.cache_bytes(), self.number("DEFAULT buffer cache"))
        {
            warnings.push(format!(
                "The tables of SLOB are in the KEEP pool, and this instance has one (db_keep_cache_size): it is the cache \
                 under test, not db_cache_size ({default} bytes now). Set db_keep_cache_size to 0 to test the default pool."
            ));
        }
        if self.text("timed_statistics").eq_ignore_ascii_case("false") {
            warnings.push("timed_statistics is FALSE: wait times are 0 and mean nothing.".to_owned());
        }
        warnings
    }

    /// Settings that a reader of the report needs.
    pub(super) fn facts(&self) -> Vec<Fact> {
        const NAMES: [&str; 16] = [
            "db_cache_size",
            "db_keep_cache_size",
            "sga_target",
            "memory_target",
            "db_block_checksum",
            "db_block_checking",
            "disk_asynch_io",
            "db_writer_processes",
            "log_buffer",
            "fast_start_mttr_target",
            "commit_logging",
            "commit_wait",
            "processes",
            "_db_block_prefetch_limit",
            "_db_block_prefetch_quota",
            "_db_file_noncontig_mblock_read_count",
        ];
        let mut facts: Vec<Fact> = NAMES.iter().map(|name| self.fact(name, name)).collect();
        facts.push(self.fact("default_pool_bytes", "DEFAULT buffer cache"));
        facts.push(self.fact("keep_pool_bytes", "KEEP buffer cache"));
        facts.push(self.fact("log_mode", "log mode"));
        facts.push(self.fact("log_bytes", "log bytes"));
        facts.push(self.fact("instances_count", "instances"));
        facts.push(Fact::new("io_mode_achieved", self.io_mode()));
        facts
    }

    /// # Errors
    /// `Unusable`: so many more sessions do not fit, as far as is known.
    pub(super) fn refuse_too_few_sessions(&self, wanted: u64, why: &str) -> Result<(), EngineError> {
        let (Some(most), Some(now)) = (self.number("sessions"), self.number("sessions now")) else {
            return Ok(());
        };
        if most.saturating_sub(now) >= wanted {
            return Ok(());
        }
        Err(EngineError::Unusable(format!(
            "{why} needs {wanted} sessions, but the instance allows {most} and {now} are in use: raise processes, or \
             use fewer"
        )))
    }
}
