//! What the server counts and what its sessions are doing, PostgreSQL 13 to 18.
//!
//! [`ServerStats`] reads the statistics views' functions on a connection of its own, once a second and at every mark;
//! [`Activity`] looks at the sessions ten times a second on another one. Neither touches a table, so that what they
//! add to the database's counters is a number of transactions, which is known and taken off.
//! Which statistic comes from which column of which version: `docs/design/postgres-statistics.md`.

mod about;
mod activity;
mod classes;
mod events;
mod io;
mod mapping;
mod raw;
mod rows;
mod sql;

pub(super) use about::Timing;
pub(super) use activity::Activity;

use super::claim::holders_of;
use super::conninfo::ConnectOptions;
use super::growth::{Sizes, Watched};
use super::own::PINNED;
use super::wire::{Connection, PgError, Prepared};
use crate::claim::Company;
use about::About;
use assay_measure::counter_catalog;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_run::engine::{EngineError, Remarks};
use mapping::{Mapper, Own};
use raw::{Epoch, Raw};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// No reading may hold the collector longer; the server ends it then.
const STATEMENT_TIMEOUT: &str = "5s";
/// A server that is well has ended a reading or answered a login by then: nobody waits longer for it.
const READING_MAX: Duration = Duration::from_secs(7);
/// 13 and 14: a session publishes its counters at most twice a second (`PGSTAT_STAT_INTERVAL`), and a little more.
const PUBLISHED: Duration = Duration::from_millis(550);
/// 13 and 14 hand readers statistics of up to half a second ago, and their collector has to be given the word first.
const PUBLISHED_LATE: Duration = Duration::from_millis(700);
/// After a lost connection, no sooner than this does anybody try again.
const RETRY: Duration = Duration::from_secs(1);

/// Transactions and statements of ours in the tested database, whoever of us ran them.
#[derive(Debug, Default)]
pub(super) struct OwnWork {
    statements: AtomicU64,
}

impl OwnWork {
    /// One statement, a transaction by itself, has ended.
    pub(super) fn note(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }
}

/// The connection of the readings, and what it can ask.
#[derive(Debug)]
struct Session {
    connection: Connection,
    reading: Prepared,
}

#[derive(Debug)]
struct State {
    session: Option<Session>,
    /// Why there is no reading, and since when.
    lost: Option<(String, Instant)>,
    first: Option<Epoch>,
    /// The most transactions the sessions were found to have committed.
    commits: u64,
    /// Other users of the data set.
    company: Option<Company>,
    /// How the tables grew.
    growth: Watched,
    /// Duration of the last and the longest reading.
    last: Duration,
    longest: Duration,
}

/// See the module.
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
    /// Logs in and learns what this server, role and database can tell.
    ///
    /// # Errors
    /// The server refuses the connection, or TRACK_IO_TIMING=on cannot be had.
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
                session: Some(session),
                lost: None,
                first: None,
                commits: 0,
                company: None,
                growth: Watched::default(),
                last: Duration::ZERO,
                longest: Duration::ZERO,
            }),
        };
        if stats.about.version < 15 {
            // What opening read of the catalogs is published by the next statement, and not within the window.
            std::thread::sleep(PUBLISHED);
        }
        // The first one fills the server's caches, and is where all counting starts from.
        drop(stats.sample());
        Ok(stats)
    }

    /// The server's counters at this instant, cumulative as it keeps them; what cannot be known has its reason.
    pub(super) fn sample(&self) -> StatSet {
        let mut state = self.lock();
        let begun = Instant::now();
        // What is not on the books before the statement begins is not in what it reads.
        let own = self.own.count();
        let mut raw = self.read(&mut state);
        if let (Some(company), Some(claims)) = (&mut state.company, raw.part("claims")) {
            company.note(holders_of(claims));
        }
        state.last = begun.elapsed();
        state.longest = state.longest.max(state.last);
        match &mut state.first {
            Some(first) => {
                // 13 and 14 know no beginning before the first count; later versions show one after a reset alone.
                if self.about.version < 15 {
                    first.complete(&raw.epoch());
                }
                raw.void_since(first);
            }
            None if raw.is_there() => state.first = Some(raw.epoch()),
            None => {}
        }
        state.growth.note(self.sizes(&raw));
        let mapper = Mapper { raw: &raw, about: &self.about, own: Own { transactions: own, calls: own } };
        let mut set = mapper.stats();
        events::add(mapper, &mut set);
        rows::add(mapper, &mut set);
        // What is taken off for our own was perhaps not published yet: a count never falls for that.
        if let Some(Reading::Count(commits)) = set.counters.get_mut(counter_catalog::SERVER_COMMITS.name) {
            *commits = state.commits.max(*commits);
            state.commits = *commits;
        }
        let reading_ns = u64::try_from(state.last.as_nanos()).unwrap_or(u64::MAX);
        set.gauges.insert("statistics_reading_ns".to_owned(), reading_ns);
        set
    }

    /// One reading; a lost connection is opened again once.
    fn read(&self, state: &mut State) -> Raw {
        let begun = Instant::now();
        for _ in 0..2 {
            if state.session.is_none() {
                let waiting = state.lost.as_ref().filter(|(_, since)| since.elapsed() < RETRY);
                if let Some((reason, _)) = waiting {
                    return Raw::missing(reason);
                }
                // Who waits for the end of the run does not wait for another login.
                if let Some((reason, _)) = &state.lost
                    && self.options.patience.hurries()
                {
                    return Raw::missing(reason);
                }
                match self.reopen() {
                    Ok(session) => state.session = Some(session),
                    Err(error) => return lost(state, &error),
                }
            }
            let Some(session) = &mut state.session else {
                continue;
            };
            match session.read() {
                Ok(text) => {
                    self.own.note();
                    return Raw::parse(&text).unwrap_or_else(|reason| Raw::missing(&reason));
                }
                // A refused statement is a transaction rolled back; the connection lives.
                Err(error) if !error.is_fatal() => return Raw::missing(&error.to_string()),
                Err(error) => {
                    state.session = None;
                    // Who did not answer in all that time would not let us in either.
                    if state.lost.is_some() || begun.elapsed() >= READING_MAX {
                        return lost(state, &error);
                    }
                }
            }
        }
        Raw::missing("connection lost")
    }

    /// The claim on the data set is held by this server process: from now on every reading looks who else is there.
    pub(super) fn claimed_by(&self, pid: i32) {
        self.lock().company = Some(Company::of(pid.cast_unsigned()));
    }

    /// The claim is about to be given back.
    pub(super) fn claim_ends(&self) {
        if let Some(company) = &mut self.lock().company {
            company.end();
        }
    }

    /// What the record has to say of others on the data set.
    pub(super) fn remarks(&self) -> Remarks {
        let state = self.lock();
        let about = &self.about;
        let mut remarks = state.growth.remarks(about.version, about.block_bytes);
        if let Some(company) = &state.company {
            company.remark(&mut remarks);
        }
        remarks
    }

    fn sizes(&self, raw: &Raw) -> Option<Sizes> {
        let count = |group: &str, column: &str| match raw.count(group, column, "") {
            Reading::Count(count) => Some(count),
            Reading::Na(_) => None,
        };
        Some(Sizes {
            pages: count("size", "bytes")? / self.about.block_bytes.max(1),
            reads: count("db", "blks_fetched")?.checked_sub(count("db", "blks_hit")?)?,
        })
    }

    fn reopen(&self) -> Result<Session, PgError> {
        Session::new(Connection::open(&self.options)?, &self.about, &self.own)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Statements each session of the run executes once, when it has logged in.
    pub(super) fn session_sql(&self) -> &[String] {
        &self.about.session_sql
    }

    /// Has a session publish what it counted, so that the next [`ServerStats::sample`] sees it (15 and later; 13 and
    /// 14 publish at most once a second). Not to be called within a transaction, and only in a session that executed
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

    /// How long after a session's end its last counts may still be missing; zero where sessions publish at marks.
    pub(super) fn published_late(&self) -> Duration {
        match self.about.version {
            ..15 => PUBLISHED_LATE,
            _ => Duration::ZERO,
        }
    }

    /// What [`Activity`] counts its own statements with.
    pub(super) fn own_work(&self) -> Arc<OwnWork> {
        self.own.clone()
    }

    /// For the report: switches, privileges, scope, cost of a reading.
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
                    state.last.as_secs_f64() * 1e3,
                    state.longest.as_secs_f64() * 1e3
                ),
            ),
        ] {
            facts.push(Fact::new(name, value));
        }
        facts
    }
}

/// Notes why there is no connection.
fn lost(state: &mut State, error: &PgError) -> Raw {
    let reason = format!("statistics connection lost ({error})");
    let raw = Raw::missing(&reason);
    state.lost = Some((reason, Instant::now()));
    raw
}

impl Session {
    fn new(mut connection: Connection, about: &About, own: &OwnWork) -> Result<Self, PgError> {
        let mut settings = format!("{PINNED}; set statement_timeout = '{STATEMENT_TIMEOUT}'; set jit = off");
        if about.version >= 15 {
            settings.push_str("; set stats_fetch_consistency = snapshot");
        }
        connection.query(&settings)?;
        own.note();
        let shape = sql::Shape {
            version: about.version,
            database: about.database,
            relations: &about.relations,
            pg_schema: &about.pg_schema,
            statements: about.statements.as_deref().ok(),
        };
        let reading = connection.prepare(&sql::reading(&shape), &[])?;
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

/// The collector's own name in `pg_stat_activity`.
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
