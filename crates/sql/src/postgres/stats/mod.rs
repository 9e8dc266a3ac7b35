//! The server's counters and the activity of its sessions, PostgreSQL 13 to 18.
//!
//! [`ServerStats`] reads the functions below the statistics views on a separate connection, once a second and at every
//! mark; [`Activity`] samples the sessions ten times a second on another one. Neither reads a table, so they add only
//! transactions to the database's counters, whose number is known and subtracted. `docs/design/postgres-statistics.md`
//! lists the source column of each statistic by version.

mod about;
mod activity;
mod classes;
mod raw;
mod sql;
mod tables;

pub(super) use about::Timing;
pub(super) use activity::Activity;

use super::claim::holders_of;
use super::conninfo::ConnectOptions;
use super::growth::{Sizes, Watched};
use super::own::PINNED;
use super::wire::{Connection, PgError, Prepared};
use crate::claim::Company;
use crate::kept::{Kept, READING_MAX};
use crate::statistics::Reader;
use about::About;
use assay_measure::counter_catalog;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_run::engine::{EngineError, Remarks};
use raw::{Epoch, Raw};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tables::{GROUPS, Needs};

/// The server cancels a longer reading, so that it does not delay the collector.
const STATEMENT_TIMEOUT: &str = "5s";
/// 13 and 14: a session publishes its counters at most twice a second (`PGSTAT_STAT_INTERVAL`); plus a margin.
const PUBLISHED: Duration = Duration::from_millis(550);
/// 13 and 14 may serve statistics that are half a second old, and their collector must receive a request first.
const PUBLISHED_LATE: Duration = Duration::from_millis(700);
/// Transactions and statements of all our connections in the tested database.
#[derive(Debug, Default)]
pub(super) struct OwnWork {
    statements: AtomicU64,
}

impl OwnWork {
    /// Notes the end of a statement that is a transaction of its own.
    pub(super) fn note(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }
}

/// The connection for readings, and what it can query.
#[derive(Debug)]
struct Session {
    connection: Connection,
    reading: Prepared,
}

#[derive(Debug)]
struct State {
    session: Kept<Session>,
    first: Option<Epoch>,
    /// The highest number of commits reported so far.
    commits: u64,
    /// Other users of the data set.
    company: Option<Company>,
    /// Growth of the tables.
    growth: Watched,
}

#[derive(Debug)]
pub(super) struct ServerStats {
    options: ConnectOptions,
    about: About,
    own: Arc<OwnWork>,
    /// A session was not allowed to publish on request.
    flush_refused: AtomicBool,
    state: Mutex<State>,
}

impl ServerStats {
    /// Logs in and finds out what this server, role and database can report.
    ///
    /// # Errors
    /// The server refuses the connection, or TRACK_IO_TIMING=on is not permitted.
    pub(super) fn open(options: &ConnectOptions, pg_schema: &str, timing: Timing) -> Result<Self, EngineError> {
        let options = collector(options);
        let own = Arc::new(OwnWork::default());
        let failed = |error: PgError| EngineError::Unusable(format!("statistics: {error}"));
        let mut connection = Connection::open(&options).map_err(failed)?;
        let counted = own.clone();
        let mut ask = move |connection: &mut Connection, sql: &str| {
            let rows = connection.query(sql)?.rows;
            counted.note();
            Ok(rows)
        };
        ask(&mut connection, PINNED).map_err(failed)?;
        let about = About::learn(&mut connection, &mut ask, pg_schema, timing).map_err(|error| match error.code() {
            Some("42501") if timing == Timing::On => EngineError::Unusable(format!(
                "TRACK_IO_TIMING=on: {error}; it needs a superuser or, from PostgreSQL 15 on, GRANT SET ON \
                     PARAMETER track_io_timing; TRACK_IO_TIMING=auto continues without it"
            )),
            _ => failed(error),
        })?;
        let session = Session::new(connection, &about, &own).map_err(failed)?;
        let stats = Self {
            options,
            about,
            own,
            flush_refused: AtomicBool::new(false),
            state: Mutex::new(State {
                session: Kept::new(session),
                first: None,
                commits: 0,
                company: None,
                growth: Watched::default(),
            }),
        };
        if stats.about.version < 15 {
            // The next statement publishes what opening read from the catalogs; that must happen before the window.
            std::thread::sleep(PUBLISHED);
        }
        // The first reading fills the server's caches and is the base of all counters.
        drop(stats.sample());
        Ok(stats)
    }

    /// The server's cumulative counters at this instant; an unavailable value has a reason.
    pub(super) fn sample(&self) -> StatSet {
        let mut state = self.lock();
        // Count our own work before the statement starts: what is published later is not in its result.
        let own = self.own.count();
        let mut raw = self.read(&mut state);
        if let (Some(company), Some(claims)) = (&mut state.company, raw.part("claims")) {
            company.note(holders_of(claims));
        }
        match &mut state.first {
            Some(first) => {
                // Before the first count, 13 and 14 have no start time; later versions show one only after a reset.
                if self.about.version < 15 {
                    first.complete(&raw.epoch());
                }
                raw.void_since(first);
            }
            None if raw.is_there() => state.first = Some(raw.epoch()),
            None => {}
        }
        let value = |_: &str, name: &str, factor| self.figure(&raw, own, name, factor);
        let mut reader = Reader {
            product: "PostgreSQL",
            version: self.about.version,
            block_bytes: Ok(self.about.block_bytes),
            value: &value,
            set: StatSet::default(),
        };
        state.growth.note(match tables::SIZES.map(|formula| reader.read(formula, "")) {
            [Reading::Count(pages), Reading::Count(reads)] => Some(Sizes { pages, reads }),
            _ => None,
        });
        reader.counters(tables::COUNTERS);
        reader.events(tables::EVENTS);
        reader.functions(tables::FUNCTIONS);
        reader.gauges(tables::GAUGES);
        let mut set = reader.set;
        // Some of the subtracted work may not have been published yet; never let a counter fall because of that.
        if let Some(Reading::Count(commits)) = set.counters.get_mut(counter_catalog::SERVER_COMMITS.name) {
            *commits = state.commits.max(*commits);
            state.commits = *commits;
        }
        let reading_ns = u64::try_from(state.session.last.as_nanos()).unwrap_or(u64::MAX);
        set.gauges.insert("statistics_reading_ns".to_owned(), reading_ns);
        set
    }

    /// Takes one reading; reconnects once after a lost connection, but not at the end of a run.
    fn read(&self, state: &mut State) -> Raw {
        let hurries = self.options.patience.hurries();
        let read = |session: &mut Session| session.read().inspect(|_| self.own.note());
        let text = state.session.read(hurries, || self.reopen(), read, PgError::is_fatal);
        text.and_then(|text| Raw::parse(&text)).unwrap_or_else(|reason| Raw::missing(&reason))
    }

    /// Notes who shares the data set; from now on every reading checks who else is there.
    pub(super) fn claimed_by(&self, company: Company) {
        self.lock().company = Some(company);
    }

    /// When the server was started: no two were in the same microsecond.
    pub(super) fn server(&self) -> String {
        format!("PostgreSQL started at {}", self.about.started)
    }

    /// Notes that the claim is about to be released.
    pub(super) fn claim_ends(&self) {
        if let Some(company) = &mut self.lock().company {
            company.end();
        }
    }

    /// Remarks for the record on other users of the data set.
    pub(super) fn remarks(&self) -> Remarks {
        let state = self.lock();
        let about = &self.about;
        let mut remarks = state.growth.remarks(about.version, about.block_bytes);
        if let Some(company) = &state.company {
            company.remark(&mut remarks);
        }
        remarks
    }

    /// A figure by its name in [`tables`], times a factor; `own` are our statements so far.
    fn figure(&self, raw: &Raw, own: u64, name: &str, factor: u64) -> Reading {
        let (group, column) = name.split_once('.').unwrap_or((name, ""));
        let Some(group) = GROUPS.iter().find(|known| known.name == group) else {
            return Reading::Count(own * factor);
        };
        let times = if column.ends_with("_time") { group.times } else { Needs::Always };
        if let Some(why) = self.about.lacks(group.needs).or_else(|| self.about.lacks(times)) {
            return Reading::Na(why.to_owned());
        }
        match column.strip_suffix("/block") {
            _ if column == "read_requests" && self.about.version == 17 => Reading::Na(tables::COMBINED.to_owned()),
            Some(column) => match raw.figure(group, column, factor) {
                Reading::Count(bytes) => Reading::Count(bytes / self.about.block_bytes.max(1)),
                na @ Reading::Na(_) => na,
            },
            None => raw.figure(group, column, factor),
        }
    }

    fn reopen(&self) -> Result<Session, PgError> {
        Session::new(Connection::open(&self.options)?, &self.about, &self.own)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Statements that each session of the run executes once after login.
    pub(super) fn session_sql(&self) -> &[String] {
        &self.about.session_sql
    }

    /// Has a session publish its counters, so that the next [`ServerStats::sample`] sees them (15 and later; 13 and 14
    /// publish at most once a second). Must not be called within a transaction, and only in a session that executed
    /// [`ServerStats::session_sql`]. It takes a round trip.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub(super) fn flush(&self, session: &mut Connection) -> Result<(), PgError> {
        if self.about.version < 15 {
            return Ok(());
        }
        if let Err(error) = session.query(sql::EXECUTE_FLUSH) {
            self.flush_refused.fetch_or(!error.is_fatal(), Ordering::Relaxed);
            return Err(error);
        }
        self.own.note();
        Ok(())
    }

    /// How long a closed session's last counts may be missing; zero if sessions publish at marks.
    pub(super) fn published_late(&self) -> Duration {
        match self.about.version {
            ..15 => PUBLISHED_LATE,
            _ => Duration::ZERO,
        }
    }

    /// Counter for [`Activity`]'s own statements.
    pub(super) fn own_work(&self) -> Arc<OwnWork> {
        self.own.clone()
    }

    /// For the report: settings, privileges, scope, cost of a reading.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let refused = self.flush_refused.load(Ordering::Relaxed);
        let mut facts = self.about.facts(refused);
        let state = self.lock();
        let resets = state.first.as_ref().map_or_else(String::new, Epoch::describe);
        for (name, value) in [
            ("statistics_reset", resets),
            (
                "statistics_reading",
                format!(
                    "last {:.1} ms, longest so far {:.1} ms",
                    state.session.last.as_secs_f64() * 1e3,
                    state.session.longest.as_secs_f64() * 1e3
                ),
            ),
        ] {
            facts.push(Fact::new(name, value));
        }
        facts
    }
}

impl Session {
    fn new(mut connection: Connection, about: &About, own: &OwnWork) -> Result<Self, PgError> {
        let mut settings = format!("{PINNED}; set statement_timeout = '{STATEMENT_TIMEOUT}'; set jit = off");
        if about.version >= 15 {
            settings.push_str("; set stats_fetch_consistency = snapshot");
        }
        connection.query(&settings)?;
        own.note();
        let reading = connection.prepare(&raw::statement(about), &[])?;
        own.note();
        Ok(Self { connection, reading })
    }

    /// One reading as JSON.
    fn read(&mut self) -> Result<String, PgError> {
        let mut text = String::new();
        self.connection.execute(&self.reading, &[], &mut |values| {
            if let Some(Some(value)) = values.first() {
                text = String::from_utf8_lossy(value).into_owned();
            }
        })?;
        Ok(text)
    }
}

/// Sets the collector's own name in `pg_stat_activity`.
fn collector(options: &ConnectOptions) -> ConnectOptions {
    let mut options = options.clone();
    options.application_name = "assay collector".to_owned();
    options.patience = options.patience.strict(READING_MAX);
    let given = options.connect_timeout.unwrap_or(READING_MAX);
    options.connect_timeout = Some(given.min(READING_MAX));
    options
}

#[cfg(test)]
mod tests;
