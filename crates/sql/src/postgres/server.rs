//! What a server reports before assay changes anything: version, rights, limits, space.
//!
//! Any role may run these queries; a value that needs more rights is `None`, and the caller reports that.

use super::layout::literal;
use super::own::told;
use super::wire::Connection;
use assay_run::engine::EngineError;
use std::path::PathBuf;

/// Oldest and newest major version known to work.
pub(super) const VERSIONS: std::ops::RangeInclusive<u32> = 13..=18;

/// Facts about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// As the server reports it.
    pub(super) version: String,
    /// Major version.
    pub(super) major: u32,
    /// Database.
    pub(super) database: String,
    /// Our role.
    pub(super) role: String,
    /// The database's encoding.
    pub(super) encoding: String,
    /// Bytes of a page.
    pub(super) block_bytes: u64,
    /// A standby, or in recovery.
    pub(super) in_recovery: bool,
    /// Our transactions would be read-only.
    pub(super) read_only: bool,
    /// We may create schemas in the database.
    pub(super) may_create: bool,
    /// We are superuser or may run CHECKPOINT.
    pub(super) may_checkpoint: bool,
    /// Sessions that the server allows ordinary roles.
    pub(super) sessions_max: u64,
    /// Sessions in use now.
    pub(super) sessions: u64,
    /// `wal_level`.
    pub(super) wal_level: String,
    /// `full_page_writes`.
    pub(super) full_page_writes: bool,
    /// `shared_buffers`, bytes.
    pub(super) shared_buffers_bytes: u64,
    /// `max_wal_size`, bytes: log that may accumulate before a checkpoint.
    pub(super) max_wal_bytes: u64,
    /// Default tablespace of a new table.
    pub(super) tablespace: String,
    /// Directory of its files, if we may know it.
    pub(super) data_directory: Option<PathBuf>,
}

const FACTS: &str = "select \
    current_setting('server_version'), \
    current_setting('server_version_num')::int / 10000, \
    current_database(), \
    current_user, \
    pg_encoding_to_char(d.encoding), \
    current_setting('block_size'), \
    pg_is_in_recovery(), \
    current_setting('default_transaction_read_only')::bool or current_setting('transaction_read_only')::bool, \
    has_database_privilege(d.oid, 'create'), \
    r.rolsuper or coalesce((select pg_has_role(oid, 'usage') from pg_roles where rolname = 'pg_checkpoint'), false), \
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
        - coalesce(current_setting('reserved_connections', true)::int, 0), \
    (select sum(numbackends) from pg_stat_database), \
    current_setting('wal_level'), \
    current_setting('full_page_writes')::bool, \
    pg_size_bytes(current_setting('shared_buffers')), \
    pg_size_bytes(current_setting('max_wal_size')), \
    coalesce(nullif(current_setting('default_tablespace'), ''), t.spcname), \
    (select setting from pg_settings where name = 'data_directory') \
    from pg_database d join pg_tablespace t on t.oid = d.dattablespace, pg_roles r \
    where d.datname = current_database() and r.rolname = current_user";

/// Oldest major version that extends a table by several pages at once.
const EXTENDS_AHEAD: u32 = 16;
/// Bytes of COPY's ring of buffers.
const COPY_RING_BYTES: u64 = 16 << 20;

impl Server {
    /// Rows, one per page, to load with one COPY.
    ///
    /// A COPY that wraps around its ring of buffers must write out the pages it filled, after waiting for their log to
    /// reach the disk, and the index build reads them back. A COPY that ends earlier leaves its pages to shared
    /// buffers, checkpointer and WAL writer. From version 16 on COPY extends the table ahead, and pages it leaves empty
    /// would stay in the table, so those versions need a single COPY.
    pub(super) fn rows_a_copy(&self) -> u64 {
        if self.major >= EXTENDS_AHEAD {
            return u64::MAX;
        }
        let ring_bytes = COPY_RING_BYTES.min(self.shared_buffers_bytes / 8);
        (ring_bytes / self.block_bytes).max(1)
    }

    /// Queries the server.
    ///
    /// # Errors
    /// The connection is lost; the version is not supported.
    pub(super) fn ask(connection: &mut Connection) -> Result<Self, EngineError> {
        let reported = connection.parameter("server_version").unwrap_or("unknown").to_owned();
        let major: u32 =
            reported.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        if major < *VERSIONS.start() {
            return Err(EngineError::Unusable(format!(
                "the server is PostgreSQL {reported}; assay needs {} or newer",
                VERSIONS.start()
            )));
        }
        let rows = connection.query(FACTS).map_err(told("asking the server for its settings"))?;
        let values = rows.rows.into_iter().next().unwrap_or_default();
        let text = |at: usize| values.get(at).cloned().flatten().unwrap_or_default();
        let number = |at: usize| text(at).parse::<u64>().unwrap_or(0);
        Ok(Self {
            version: text(0),
            major,
            database: text(2),
            role: text(3),
            encoding: text(4),
            block_bytes: number(5),
            in_recovery: text(6) == "t",
            read_only: text(7) == "t",
            may_create: text(8) == "t",
            may_checkpoint: text(9) == "t",
            sessions_max: number(10),
            sessions: number(11),
            wal_level: text(12),
            full_page_writes: text(13) == "t",
            shared_buffers_bytes: number(14),
            max_wal_bytes: number(15),
            tablespace: text(16),
            data_directory: values.get(17).cloned().flatten().map(PathBuf::from),
        })
    }

    /// Refuses a server that does not accept writes.
    ///
    /// # Errors
    /// `Unusable`, with the remedy.
    pub(super) fn refuse_read_only(&self) -> Result<(), EngineError> {
        if self.in_recovery {
            return Err(EngineError::Unusable(
                "the server is a hot standby (in recovery) and accepts no writes; name the primary".to_owned(),
            ));
        }
        if self.read_only {
            return Err(EngineError::Unusable(
                "sessions of this server are read-only (default_transaction_read_only is on): turn it off for this role or database".to_owned(),
            ));
        }
        Ok(())
    }
}

/// A requested tablespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tablespace {
    /// Its directory; `None` if inside the data directory.
    pub(super) directory: Option<PathBuf>,
}

/// Looks up a tablespace.
///
/// # Errors
/// `Unusable`: it does not exist, or we may not create in it.
pub(super) fn tablespace(connection: &mut Connection, name: &str) -> Result<Tablespace, EngineError> {
    let rows = connection
        .query(&format!(
            "select has_tablespace_privilege(oid, 'create'), pg_tablespace_location(oid), \
             oid = (select dattablespace from pg_database where datname = current_database()) \
             from pg_tablespace where spcname = {}",
            literal(name)
        ))
        .map_err(told("reading the tablespace"))?;
    let Some([may, directory, own]) = rows.rows.first().map(Vec::as_slice) else {
        return Err(EngineError::Unusable(format!(
            "the server has no tablespace {name}: create it, or name another tablespace with TABLESPACE"
        )));
    };
    // Everybody may create in the database's default tablespace.
    if may.as_deref() != Some("t") && own.as_deref() != Some("t") {
        return Err(EngineError::Unusable(format!(
            "this role may not create objects in tablespace {name}: have a superuser run GRANT CREATE ON TABLESPACE \
             {name} to this role, or name another tablespace with TABLESPACE"
        )));
    }
    Ok(Tablespace { directory: directory.as_deref().filter(|text| !text.is_empty()).map(PathBuf::from) })
}
