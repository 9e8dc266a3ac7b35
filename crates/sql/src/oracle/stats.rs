//! Counters of the instance: V$SYSSTAT, V$SYS_TIME_MODEL, V$OSSTAT, V$SYSTEM_EVENT, V$EVENT_HISTOGRAM_MICRO and
//! V$IOSTAT_FUNCTION, read in a separate session once a second and at every mark. None of them requires a licence.
//!
//! The query subtracts what this session itself adds to V$SYSSTAT. Everything else covers the whole instance, or the
//! pluggable database of the session.

use super::address::{Address, Door};
use super::claim;
use super::session::{OraError, Rows, Session, Way, told};
use super::sql::{ACTIVITY, Views};
use crate::claim::Company;
use crate::kept::{Kept, READING_MAX};
use crate::looks::intern;
use crate::published::readings;
use crate::statistics::{CounterRow, Reader, row};
use assay_measure::counter_catalog::*;
use assay_measure::locked::locked;
use assay_measure::snapshot::{
    Actor, BUCKETS, BucketReading, Fact, IoReading, Reading, StatSet, TimedReading, WaitClass,
};
use assay_run::engine::{Doing, EngineError, Remarks};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Pause after a query of session activity that failed.
const RETRY: Duration = Duration::from_secs(5);
/// Queries of session activity take at most one part in this many of the time.
const LOOK_SHARE: u32 = 10;
const SYSSTAT: &str = "v$sysstat";
const TIME_MODEL: &str = "v$sys_time_model";
const OSSTAT: &str = "v$osstat";
const EVENTS: &str = "v$system_event";
const HISTOGRAM: &str = "v$event_histogram_micro";
const FUNCTIONS: &str = "v$iostat_function";

const OWN: &str = "oracle";

const US: u64 = 1000;
const MIB: u64 = 1 << 20;

/// Counters: those with the same name on the server first.
const COUNTERS: &[CounterRow] = &[
    row(
        &[
            SESSION_LOGICAL_READS,
            DB_BLOCK_GETS,
            CONSISTENT_GETS,
            DB_BLOCK_CHANGES,
            PHYSICAL_READS,
            PHYSICAL_READS_CACHE,
            PHYSICAL_READS_CACHE_PREFETCH,
            PHYSICAL_READS_DIRECT,
            PHYSICAL_READ_REQUESTS,
            PHYSICAL_READ_BYTES,
            PHYSICAL_READ_TOTAL_REQUESTS,
            PHYSICAL_READ_TOTAL_BYTES,
            PHYSICAL_READ_MULTI_BLOCK_REQUESTS,
            PHYSICAL_WRITES,
            PHYSICAL_WRITES_FROM_CACHE,
            PHYSICAL_WRITES_DIRECT,
            PHYSICAL_WRITES_NON_CHECKPOINT,
            PHYSICAL_WRITE_REQUESTS,
            PHYSICAL_WRITE_BYTES,
            PHYSICAL_WRITE_TOTAL_REQUESTS,
            PHYSICAL_WRITE_TOTAL_BYTES,
            PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS,
            FREE_BUFFER_REQUESTED,
            FREE_BUFFER_INSPECTED,
            DIRTY_BUFFERS_INSPECTED,
            PINNED_BUFFERS_INSPECTED,
            HOT_BUFFERS_SPARED,
            DBWR_CHECKPOINT_BUFFERS,
            DBWR_UNDO_WRITES,
            DBWR_CHECKPOINTS,
            WRITE_CLONES,
            REDO_SIZE,
            REDO_ENTRIES,
            REDO_WRITES,
            REDO_BLOCKS_WRITTEN,
            REDO_WASTAGE,
            REDO_SYNCH_WRITES,
            REDO_ALLOCATION_RETRIES,
            REDO_LOG_SPACE_REQUESTS,
            UNDO_CHANGE_SIZE,
            SCAN_BLOCKS,
        ],
        0,
        [""],
        SYSSTAT,
    ),
    row(&[REDO_WRITE_TIME], 0, ["redo write time in cs"], SYSSTAT),
    row(&[REDO_SYNCH_TIME], 0, ["redo synch time (usec) in us"], SYSSTAT),
    row(&[REDO_LOG_SPACE_TIME], 0, ["redo log space wait time in cs"], SYSSTAT),
    row(&[REDO_BYTES_WRITTEN], 0, ["redo blocks written in blocks"], SYSSTAT),
    row(&[SERVER_COMMITS], 0, ["user commits"], SYSSTAT),
    row(&[SERVER_EXECUTIONS], 0, ["execute count"], SYSSTAT),
    row(&[SERVER_SESSIONS], 0, ["logons cumulative"], SYSSTAT),
    row(&[TUPLES_FETCHED], 0, ["table fetch by rowid"], SYSSTAT),
    row(&[SERVER_DEADLOCKS], 0, ["enqueue deadlocks"], SYSSTAT),
    row(&[GETS_FROM_CACHE], 0, ["consistent gets from cache + db block gets from cache"], SYSSTAT),
    row(&[CACHE_HITS], 0, ["=session logical reads from cache - physical reads cache"], SYSSTAT),
    row(&[CACHE_DEMAND_MISSES], 0, ["physical reads cache - physical reads cache prefetch"], SYSSTAT),
    row(&[SERVER_ACTIVE_TIME], 0, ["DB time in us"], TIME_MODEL),
    row(&[DB_CPU], 0, ["DB CPU in us"], TIME_MODEL),
    row(&[BACKGROUND_CPU], 0, ["background cpu time in us"], TIME_MODEL),
    row(&[BACKGROUND_TIME], 0, ["background elapsed time in us"], TIME_MODEL),
    row(&[SERVER_HOST_BUSY], 0, ["BUSY_TIME in cs"], OSSTAT),
    row(&[SERVER_HOST_IDLE], 0, ["IDLE_TIME in cs"], OSSTAT),
    row(&[SERVER_HOST_IOWAIT], 0, ["IOWAIT_TIME in cs"], OSSTAT),
    row(&[SERVER_ROLLBACKS], 0, ["n/a unsupported: only requested operations are counted, not read-only ones"], OWN),
    row(
        &[STATEMENT_CALLS],
        0,
        ["n/a unsupported: the server counts a block like a statement in it; see server executions"],
        OWN,
    ),
    row(&[CACHE_SHARED_MISSES], 0, ["n/a unknowable: see the event read by other session"], OWN),
    row(&[SERVER_DEVICE_READ_BYTES], 0, ["n/a unknowable: assay does not look at the server's host"], OWN),
    row(
        &[
            INDEX_GETS,
            INDEX_HITS,
            PHYSICAL_READ_LARGE_REQUESTS,
            BUFFERS_DIRTIED,
            BUFFERS_CLEANED,
            CONTROL_WRITES,
            CONTROL_BYTES_WRITTEN,
            REDO_LOG_SWITCHES,
        ],
        0,
        ["n/a unsupported"],
        OWN,
    ),
];

/// Content of the views at one time, as text.
struct Read {
    statistics: HashMap<String, u64>,
    model: HashMap<String, u64>,
    host: HashMap<String, u64>,
    events: Rows,
    buckets: Rows,
    functions: Rows,
}

struct State {
    session: Kept<Box<dyn Session>>,
    company: Company,
    claim_ended: bool,
}

/// A session that queries the activity of others.
struct Looker {
    session: Option<Box<dyn Session>>,
    /// Time of the next query, at the earliest.
    next: Instant,
}

/// Reads the instance's counters.
pub(super) struct ServerStats {
    way: Arc<dyn Way>,
    door: Door,
    owner: String,
    views: Views,
    log_block_bytes: Option<u64>,
    state: Mutex<State>,
    look: Mutex<Looker>,
}

/// Rows with a name in the first column and a number in the second.
fn numbers(rows: Rows) -> HashMap<String, u64> {
    let each = rows.into_iter().filter_map(|row| {
        let mut row = row.into_iter().flatten();
        Some((row.next()?, whole(&row.next()?)?))
    });
    each.collect()
}

/// A number from a view, without its fraction. Views contain no meaningful negative numbers, so those count as 0.
fn whole(text: &str) -> Option<u64> {
    let text = text.split(['.', ',']).next()?;
    match text.strip_prefix('-') {
        Some(_) => Some(0),
        None if text.is_empty() => Some(0),
        None => text.parse().ok(),
    }
}

impl ServerStats {
    /// Logs in and takes a first reading; `company` is who shares the data set.
    ///
    /// # Errors
    /// The server refuses the connection or the reading, with the missing privilege.
    pub(super) fn open(
        way: &Arc<dyn Way>,
        address: &Address,
        views: Views,
        log_block_bytes: Option<u64>,
        company: Company,
    ) -> Result<Self, EngineError> {
        let mut session = way.open(address.admin(), address.answer.min(READING_MAX))?;
        read(&mut *session, views).map_err(told("reading the server's statistics (V$SYSSTAT and others)"))?;
        Ok(Self {
            way: Arc::clone(way),
            door: address.admin().clone(),
            owner: address.data.user.clone(),
            views,
            log_block_bytes,
            state: Mutex::new(State { session: Kept::new(session), company, claim_ended: false }),
            look: Mutex::new(Looker { session: None, next: Instant::now() }),
        })
    }

    /// The server's cumulative counters at this instant; an unavailable value has a reason.
    pub(super) fn sample(&self) -> StatSet {
        let mut state = locked(&self.state);
        let read = self.read(&mut state);
        let value = |source: &str, name: &str, factor: u64| {
            let views = match &read {
                Ok(views) => views,
                Err(why) => return Reading::Na(why.clone()),
            };
            let view = match source {
                TIME_MODEL => &views.model,
                OSSTAT => &views.host,
                _ => &views.statistics,
            };
            let absent = || Reading::Na("absent: this version of the server has no such statistic".to_owned());
            view.get(name).map_or_else(absent, |value| Reading::Count(value.saturating_mul(factor)))
        };
        let mut reader = Reader {
            product: "Oracle",
            version: 0,
            block_bytes: self.log_block_bytes.ok_or("denied: the user may not read V$LOG"),
            value: &value,
            set: StatSet::default(),
        };
        reader.counters(COUNTERS);
        let mut set = reader.set;
        if let Ok(views) = &read {
            events(&mut set, &views.events);
            buckets(&mut set, &views.buckets);
            functions(&mut set, &views.functions);
        }
        set
    }

    /// Takes one reading; reconnects once after a lost connection.
    fn read(&self, state: &mut State) -> Result<Read, String> {
        let State { session, company, claim_ended } = state;
        let read = |session: &mut Box<dyn Session>| {
            let views = read(&mut **session, self.views)?;
            match claim::holders(&mut **session, &self.owner) {
                Ok(holders) if !*claim_ended => {
                    company.note(holders.into_iter().map(|(sid, who)| (sid, format!("{who}, "))));
                }
                Err(error) if error.is_fatal() => return Err(error),
                // A user who may not see locks learns nothing about others; the rest of the reading is valid.
                _ => {}
            }
            Ok(views)
        };
        session.read(false, || self.way.open(&self.door, READING_MAX), read, OraError::is_fatal)
    }

    /// What the run's sessions do, from V$SESSION; false if no query was made.
    pub(super) fn look(&self, sids: &HashMap<u32, usize>, sessions: &mut [Doing]) -> bool {
        let Ok(mut looker) = self.look.try_lock() else {
            return false;
        };
        // With several instances, session numbers are ambiguous.
        if self.views.global {
            return false;
        }
        let now = Instant::now();
        if now < looker.next {
            return false;
        }
        if looker.session.is_none() {
            looker.session = self.way.open(&self.door, READING_MAX).ok();
        }
        let asked = looker.session.as_mut().map(|session| session.rows(ACTIVITY, &[]));
        let Some(Ok(rows)) = asked else {
            looker.session = None;
            looker.next = now + RETRY;
            return false;
        };
        looker.next = now + now.elapsed() * LOOK_SHARE;
        for row in rows {
            let mut row = row.into_iter().map(Option::unwrap_or_default);
            let (sid, state) = (row.next(), row.next());
            let place = sid.and_then(|sid| sids.get(&sid.parse().ok()?).copied());
            let (Some(event), Some(class)) = (row.next(), row.next()) else {
                continue;
            };
            // Any other state means that the last wait is over.
            if let (Some(place), Some("WAITING")) = (place, state.as_deref())
                && let Some(doing) = sessions.get_mut(place)
            {
                *doing = Doing::Waiting { event: intern(event), class: wait_class(&class) };
            }
        }
        true
    }

    /// Notes that the claim is about to be released.
    pub(super) fn claim_ends(&self) {
        locked(&self.state).claim_ended = true;
        drop(locked(&self.look).session.take());
    }

    /// Remarks for the record on other users of the data set.
    pub(super) fn remarks(&self) -> Remarks {
        let mut remarks = Remarks::default();
        locked(&self.state).company.remark(&mut remarks);
        remarks
    }

    /// For the report: the cost of a reading, and what it covers.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let longest = locked(&self.state).session.longest;
        let scope = if self.views.global {
            "all instances (GV$): the counters include other databases and clients"
        } else {
            "the instance, or the pluggable database inside one: the counters include other clients"
        };
        readings("V$ views, with assay's own queries subtracted from V$SYSSTAT", longest, scope)
    }
}

fn read(session: &mut dyn Session, views: Views) -> Result<Read, OraError> {
    let mut rows = |sql: String| session.rows(&sql, &[]);
    Ok(Read {
        statistics: numbers(rows(views.statistics())?),
        model: numbers(rows(views.time_model())?),
        host: numbers(rows(views.host())?),
        events: rows(views.events())?,
        buckets: rows(views.buckets())?,
        functions: rows(views.functions())?,
    })
}

/// The record's class for a class of V$EVENT_NAME; other classes are rare and combined.
pub(super) fn wait_class(name: &str) -> WaitClass {
    match name {
        "User I/O" => WaitClass::UserIo,
        "System I/O" => WaitClass::SystemIo,
        "Commit" => WaitClass::Commit,
        "Configuration" => WaitClass::Configuration,
        "Concurrency" => WaitClass::Concurrency,
        "Application" => WaitClass::Application,
        "Network" => WaitClass::Network,
        "Idle" => WaitClass::Idle,
        _ => WaitClass::Other,
    }
}

/// A column of a row as text; empty if there is none.
fn text(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// A column of a row as a number.
fn number(row: &[Option<String>], at: usize) -> u64 {
    whole(text(row, at)).unwrap_or(0)
}

/// Events of V$SYSTEM_EVENT: the foreground's, and the remainder of all for the background.
fn events(set: &mut StatSet, rows: &Rows) {
    for row in rows {
        let class = wait_class(text(row, 1));
        let (all, all_us) = (number(row, 2), number(row, 4));
        let (foreground, foreground_us) = (number(row, 5).min(all), number(row, 6).min(all_us));
        // Sleeping between two statements is not a wait.
        if text(row, 0).is_empty() || class == WaitClass::Idle {
            continue;
        }
        let parts = [
            (Actor::Foreground, foreground, foreground_us),
            (Actor::Background, all - foreground, all_us - foreground_us),
        ];
        for (actor, waits, us) in parts {
            set.timed.push(TimedReading {
                name: text(row, 0).to_owned(),
                class,
                actor,
                waits: Reading::Count(waits),
                wait_ns: Reading::Count(us.saturating_mul(US)),
                source: EVENTS.to_owned(),
            });
        }
    }
    set.timed.sort_by(|a, b| (&a.name, a.actor).cmp(&(&b.name, b.actor)));
}

/// Buckets of V$EVENT_HISTOGRAM_MICRO, each named by the power of two of microseconds that its waits stay below.
fn buckets(set: &mut StatSet, rows: &Rows) {
    let mut events: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in rows {
        let (Some(below), Some(waits)) = (whole(text(row, 1)), whole(text(row, 2))) else {
            continue;
        };
        let place = (below.max(1).next_power_of_two().ilog2() as usize).min(BUCKETS - 1);
        events.entry(text(row, 0)).or_insert_with(|| vec![0; BUCKETS])[place] += waits;
    }
    set.buckets = events
        .into_iter()
        .map(|(name, waits)| BucketReading { name: name.to_owned(), waits, source: HISTOGRAM.to_owned() })
        .collect();
}

/// I/O by function; bytes are in whole MiB.
fn functions(set: &mut StatSet, rows: &Rows) {
    for row in rows {
        set.io.push(IoReading {
            function: text(row, 0).to_owned(),
            file_type: "all files".to_owned(),
            small_read_requests: number(row, 1),
            large_read_requests: number(row, 2),
            read_bytes: number(row, 3).saturating_mul(MIB),
            small_write_requests: number(row, 4),
            large_write_requests: number(row, 5),
            write_bytes: number(row, 6).saturating_mul(MIB),
            waits: number(row, 7),
            wait_ns: number(row, 8).saturating_mul(1_000_000),
            na: BTreeMap::new(),
        });
    }
    set.sources.insert("io".to_owned(), FUNCTIONS.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[&[&str]]) -> Rows {
        let row = |row: &&[&str]| row.iter().map(|text| Some((*text).to_owned())).collect();
        text.iter().map(row).collect()
    }

    #[test]
    fn foreground_and_background_add_up_to_what_the_view_has() {
        let mut set = StatSet::default();
        events(
            &mut set,
            &rows(&[
                &["db file sequential read", "User I/O", "100", "0", "50000", "90", "40000"],
                &["SQL*Net message from client", "Idle", "7", "0", "9", "7", "9"],
            ]),
        );
        let is: Vec<_> = set.timed.iter().map(|row| (row.actor, row.waits.clone(), row.wait_ns.clone())).collect();
        assert_eq!(
            is,
            [
                (Actor::Foreground, Reading::Count(90), Reading::Count(40_000_000)),
                (Actor::Background, Reading::Count(10), Reading::Count(10_000_000)),
            ]
        );
    }

    #[test]
    fn a_bucket_is_the_one_of_the_power_of_two_that_names_it() {
        let mut set = StatSet::default();
        buckets(&mut set, &rows(&[&["e", "1", "3"], &["e", "128", "5"], &["e", "4294967296", "1"], &["e", "x", "1"]]));
        let waits = &set.buckets[0].waits;
        // 64 <= us < 128 is 2^6 to 2^7.
        assert_eq!((waits[0], waits[7], waits[32], waits.iter().sum::<u64>()), (3, 5, 1, 9));
    }

    #[test]
    fn every_formula_is_of_statistics_that_there_are() {
        assert_eq!(crate::statistics::unknown(COUNTERS), [""; 0]);
    }

    #[test]
    fn numbers_of_views_have_fractions_signs_and_nothing() {
        for (text, is) in [("12", Some(12)), ("12.5", Some(12)), ("-3", Some(0)), (".5", Some(0)), ("x", None)] {
            assert_eq!(whole(text), is, "{text}");
        }
    }
}
