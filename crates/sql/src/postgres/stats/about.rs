//! What the readings depend on: version, settings, privileges, the extension.

use super::sql::{self, Relations};
use super::tables::Needs;
use crate::postgres::layout::{literal, quote};
use crate::postgres::wire::{Connection, PgError};
use crate::published::Published;
use assay_measure::config::Settings;
use assay_measure::snapshot::Fact;
use std::collections::BTreeMap;

/// Settings that decide what is counted and timed.
const SWITCHES: [&str; 9] = [
    "track_activities",
    "track_counts",
    "track_io_timing",
    "track_wal_io_timing",
    "compute_query_id",
    "stats_fetch_consistency",
    "block_size",
    "wal_segment_size",
    "autovacuum",
];

/// Setting of `track_io_timing` in our own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum Timing {
    /// On if permitted.
    Auto,
    /// On; the run fails to start if that is not permitted.
    On,
    /// Off.
    Off,
    /// As the server has it: the sessions are others'.
    AsItIs,
}

impl Timing {
    /// Reads the parameter `TRACK_IO_TIMING`.
    pub(in crate::postgres) fn of(settings: &Settings) -> Self {
        match settings.text("TRACK_IO_TIMING") {
            "on" => Self::On,
            "off" => Self::Off,
            _ => Self::Auto,
        }
    }
}

/// A setting of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Switch {
    value: String,
    /// It also applies to processes other than our sessions.
    for_all: bool,
}

#[derive(Clone, Debug)]
pub(super) struct About {
    /// Major version, 13 to 18 or newer.
    pub version: u32,
    /// When the server was started, s since 1970.
    pub started: String,
    /// Object identifier of the database.
    pub database: u32,
    /// Block size, bytes.
    pub block_bytes: u64,
    /// I/O calls of our sessions are timed.
    pub session_io_timing: bool,
    /// I/O calls of every process are timed.
    pub server_io_timing: bool,
    /// Log writes of every process are timed.
    pub wal_timing: bool,
    /// `track_counts`; if off, nothing is counted.
    pub counts: bool,
    /// Tables of the data set.
    pub relations: Relations,
    /// PostgreSQL schema of the data set.
    pub pg_schema: String,
    /// Quoted schema of `pg_stat_statements`, or why it cannot be read.
    pub statements: Result<String, String>,
    /// Statements that each session executes once after login.
    pub session_sql: Vec<String>,
    switches: BTreeMap<&'static str, Switch>,
    timing: String,
    /// Sees the activity of other roles' sessions and of background processes.
    reads_all_stats: bool,
}

/// Runs a statement and counts it.
pub(super) type Ask<'a> = &'a mut dyn FnMut(&mut Connection, &str) -> Result<Vec<Vec<Option<String>>>, PgError>;

impl About {
    /// Queries the server; `session` is the connection that the readings will use.
    pub(super) fn learn(
        connection: &mut Connection,
        ask: Ask<'_>,
        pg_schema: &str,
        timing: Timing,
    ) -> Result<Self, PgError> {
        let rows = ask(
            connection,
            "select current_setting('server_version_num'), \
             (select oid from pg_catalog.pg_database where datname = current_database()), \
             current_setting('is_superuser'), pg_has_role(current_user, 'pg_read_all_stats', 'usage'), \
             extract(epoch from pg_postmaster_start_time())",
        )?;
        let field = |at: usize| {
            let row = rows.first();
            row.and_then(|row| row.get(at)).cloned().flatten().unwrap_or_default()
        };
        let version = field(0).parse().unwrap_or(0) / 10_000;
        let database = field(1).parse().unwrap_or(0);
        let reads_all_stats = field(2) == "on" || field(3) == "t";
        let switches = switches(connection, ask)?;
        let on = |name: &str| switches.get(name).is_some_and(|switch| switch.value == "on");
        let for_all = |name: &str| on(name) && switches.get(name).is_some_and(|switch| switch.for_all);
        let (session_io_timing, mut session_sql, achieved) = io_timing(connection, ask, timing, on("track_io_timing"))?;
        if version >= 15 {
            session_sql.push(sql::prepare_flush());
        }
        let relations = Relations::from_rows(&ask(connection, &Relations::query(pg_schema))?);
        let block_bytes = switches.get("block_size").and_then(|switch| switch.value.parse().ok()).unwrap_or(8192);
        Ok(Self {
            version,
            started: field(4),
            database,
            block_bytes,
            session_io_timing,
            server_io_timing: for_all("track_io_timing"),
            wal_timing: for_all("track_wal_io_timing"),
            counts: on("track_counts"),
            relations,
            pg_schema: pg_schema.to_owned(),
            statements: statements(connection, ask)?,
            session_sql,
            timing: achieved,
            reads_all_stats,
            switches,
        })
    }

    /// Why what this needs is not there; `None` if it is.
    pub(super) fn lacks(&self, needs: Needs) -> Option<&str> {
        let (is_on, why) = match needs {
            Needs::Always => return None,
            Needs::Statements => return self.statements.as_ref().err().map(String::as_str),
            Needs::Counts => (self.counts, "disabled: track_counts"),
            Needs::SessionTimes => (self.session_io_timing, "disabled: track_io_timing"),
            Needs::ServerTimes => (self.server_io_timing, "disabled: track_io_timing"),
            Needs::LogTimes => (self.wal_timing, "disabled: track_wal_io_timing"),
        };
        (!is_on).then_some(why)
    }

    /// For the report: every setting the readings depend on, and what missing privileges hide.
    pub(super) fn facts(&self, flush_refused: bool) -> Vec<Fact> {
        let mut facts = Vec::new();
        let mut fact = |name: &str, value: String| facts.push(Fact::new(name, value));
        for name in SWITCHES {
            if matches!(name, "block_size" | "wal_segment_size" | "autovacuum") {
                continue;
            }
            let value = self
                .switches
                .get(name)
                .map_or_else(|| format!("n/a (absent in PostgreSQL {})", self.version), |switch| switch.value.clone());
            fact(name, value);
        }
        fact("io_timing_achieved", self.timing.clone());
        fact(
            "pg_stat_statements",
            match &self.statements {
                Ok(schema) => format!("read, in schema {schema}"),
                Err(reason) => format!("n/a ({reason})"),
            },
        );
        fact(
            "statistics_privileges",
            if self.reads_all_stats {
                "all sessions and background processes are visible (pg_read_all_stats)".to_owned()
            } else {
                "own sessions only: activity of other roles and of background processes is n/a \
             (denied: pg_read_all_stats, part of pg_monitor)"
                    .to_owned()
            },
        );
        facts.extend(self.published(flush_refused).facts());
        let mut fact = |name: &str, value: String| facts.push(Fact::new(name, value));
        if self.version < 16 {
            fact(
                "statistics_of_writes",
                "blocks written by sessions (buffers_backend) are published by the checkpointer, in steps of up to half of \
                 shared_buffers: up to this number can be missing at either end of the window"
                    .to_owned(),
            );
        }
        fact(
            "statistics_scope",
            "pg_stat_database: the tested database, without the collector's own transactions; pg_stat_io, \
             pg_stat_wal, pg_stat_bgwriter: the whole server, including other databases"
                .to_owned(),
        );
        facts
    }
}

impl About {
    /// When sessions publish their counters.
    fn published(&self, flush_refused: bool) -> Published {
        match (self.version, flush_refused) {
            (..15, _) => Published::Late("PostgreSQL 13 and 14 publish at most once a second"),
            (_, true) => Published::Late("this role may not execute pg_stat_force_next_flush()"),
            _ => Published::AtMarks("pg_stat_force_next_flush"),
        }
    }
}

fn switches(connection: &mut Connection, ask: Ask<'_>) -> Result<BTreeMap<&'static str, Switch>, PgError> {
    let names: Vec<String> = SWITCHES.iter().map(|name| literal(name)).collect();
    let rows = ask(
        connection,
        &format!(
            "select name, setting, source in ('database', 'user', 'database user', 'client', 'session') \
             from pg_catalog.pg_settings where name in ({})",
            names.join(",")
        ),
    )?;
    let mut switches = BTreeMap::new();
    for row in rows {
        let [Some(name), Some(value), Some(ours_alone)] = row.as_slice() else {
            continue;
        };
        let Some(known) = SWITCHES.iter().find(|known| *known == name) else {
            continue;
        };
        switches.insert(*known, Switch { value: value.clone(), for_all: ours_alone == "f" });
    }
    Ok(switches)
}

/// Whether our sessions' I/O will be timed, the statements each session runs for that, and a description.
fn io_timing(
    connection: &mut Connection,
    ask: Ask<'_>,
    timing: Timing,
    already: bool,
) -> Result<(bool, Vec<String>, String), PgError> {
    let wanted = if timing == Timing::AsItIs { already } else { timing != Timing::Off };
    if already == wanted {
        let achieved = if already { "on, by the server's settings" } else { "off, by the server's settings" };
        return Ok((already, Vec::new(), achieved.to_owned()));
    }
    let statement = format!("set track_io_timing = {}", if wanted { "on" } else { "off" });
    match ask(connection, &statement) {
        Ok(_) => {
            let achieved = format!(
                "{} only in assay's own sessions (two clock readings per I/O)",
                if wanted { "on" } else { "off" }
            );
            Ok((wanted, vec![statement], achieved))
        }
        Err(error) if error.is_fatal() || timing == Timing::On => Err(error),
        Err(_) => Ok((
            already,
            Vec::new(),
            format!(
                "{}: changing it needs a superuser, or from 15 on GRANT SET ON PARAMETER track_io_timing",
                if already { "on" } else { "off" }
            ),
        )),
    }
}

/// The schema of `pg_stat_statements` if it is readable.
fn statements(connection: &mut Connection, ask: Ask<'_>) -> Result<Result<String, String>, PgError> {
    let found = ask(
        connection,
        "select n.nspname from pg_catalog.pg_extension e \
         join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'",
    )?;
    let Some(Some(schema)) = found.first().and_then(|row| row.first()) else {
        return Ok(Err("disabled: extension pg_stat_statements is not in this database".to_owned()));
    };
    let schema = quote(schema);
    let trial = format!("select count(calls) from {schema}.pg_stat_statements(false)");
    match ask(connection, &trial) {
        Ok(_) => Ok(Ok(schema)),
        Err(error) if error.is_fatal() => Err(error),
        Err(error) if error.code() == Some("42501") => {
            Ok(Err(format!("denied: execute on {schema}.pg_stat_statements")))
        }
        Err(error) => Ok(Err(format!("disabled: {error}"))),
    }
}
