//! What the server counts: `SHOW GLOBAL STATUS` on a connection of our own, once a second and at every mark.
//!
//! Sessions of the run use prepared statements alone and our own connections never do, so what counts executed
//! statements needs nothing taken off. All other counters are the whole server's.

use super::address::Address;
use super::claim;
use super::conn::{Connection, MyError, told};
use crate::claim::Company;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_measure::stats::{self, Stat};
use assay_run::engine::{EngineError, Remarks};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// No reading may hold the collector longer.
const READING_MAX: Duration = Duration::from_secs(7);
/// After a lost connection, no sooner than this does anybody try again.
const RETRY: Duration = Duration::from_secs(1);
const ABSENT: &str = "absent: this version of the server has no such counter";
const UNSUPPORTED: &str = "unsupported";

/// Counters of the dictionary by the server's names.
const COUNTERS: &[(Stat, &str)] = &[
    (
        stats::SESSION_LOGICAL_READS,
        "innodb_buffer_pool_read_requests",
    ),
    (stats::GETS_FROM_CACHE, "innodb_buffer_pool_read_requests"),
    (stats::CACHE_DEMAND_MISSES, "innodb_buffer_pool_reads"),
    (stats::PHYSICAL_READS, "innodb_pages_read"),
    (stats::PHYSICAL_READS_CACHE, "innodb_pages_read"),
    (
        stats::PHYSICAL_READS_CACHE_PREFETCH,
        "innodb_buffer_pool_read_ahead",
    ),
    // The server reads each page by a request of its own, and writes it so.
    (stats::PHYSICAL_READ_REQUESTS, "innodb_pages_read"),
    (stats::PHYSICAL_READ_TOTAL_REQUESTS, "innodb_data_reads"),
    (stats::PHYSICAL_READ_TOTAL_BYTES, "innodb_data_read"),
    (stats::PHYSICAL_WRITES, "innodb_pages_written"),
    (stats::PHYSICAL_WRITES_FROM_CACHE, "innodb_pages_written"),
    (stats::PHYSICAL_WRITE_REQUESTS, "innodb_pages_written"),
    (stats::PHYSICAL_WRITE_TOTAL_REQUESTS, "innodb_data_writes"),
    (stats::PHYSICAL_WRITE_TOTAL_BYTES, "innodb_data_written"),
    (stats::REDO_SIZE, "innodb_lsn_current"),
    (stats::REDO_ENTRIES, "innodb_log_write_requests"),
    (stats::REDO_WRITES, "innodb_log_writes"),
    (stats::REDO_BYTES_WRITTEN, "innodb_os_log_written"),
    (stats::REDO_ALLOCATION_RETRIES, "innodb_log_waits"),
    (stats::STATEMENT_CALLS, "com_stmt_execute"),
    (stats::SERVER_DEADLOCKS, "innodb_deadlocks"),
    (stats::SERVER_TEMP_FILES, "created_tmp_files"),
    (stats::SERVER_SESSIONS, "connections"),
    (stats::TUPLES_INSERTED, "handler_write"),
    (stats::TUPLES_UPDATED, "handler_update"),
    (stats::TUPLES_DELETED, "handler_delete"),
];

/// Statistics that the server cannot tell, or not yet through assay; why.
const NEVER: &[(Stat, &str)] = &[
    (stats::DB_BLOCK_GETS, UNSUPPORTED),
    (stats::CONSISTENT_GETS, UNSUPPORTED),
    (stats::INDEX_GETS, UNSUPPORTED),
    (stats::INDEX_HITS, UNSUPPORTED),
    (stats::DB_BLOCK_CHANGES, UNSUPPORTED),
    (stats::CACHE_SHARED_MISSES, "unknowable"),
    (stats::PHYSICAL_READS_DIRECT, UNSUPPORTED),
    (stats::PHYSICAL_WRITES_DIRECT, UNSUPPORTED),
    (stats::PHYSICAL_READ_MULTI_BLOCK_REQUESTS, UNSUPPORTED),
    (stats::PHYSICAL_READ_LARGE_REQUESTS, UNSUPPORTED),
    (stats::PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS, UNSUPPORTED),
    (stats::PHYSICAL_WRITES_NON_CHECKPOINT, "unknowable"),
    (stats::FREE_BUFFER_REQUESTED, UNSUPPORTED),
    (stats::FREE_BUFFER_INSPECTED, UNSUPPORTED),
    (stats::DIRTY_BUFFERS_INSPECTED, UNSUPPORTED),
    (stats::PINNED_BUFFERS_INSPECTED, UNSUPPORTED),
    (stats::HOT_BUFFERS_SPARED, UNSUPPORTED),
    (stats::BUFFERS_DIRTIED, UNSUPPORTED),
    (stats::BUFFERS_CLEANED, UNSUPPORTED),
    (stats::DBWR_CHECKPOINTS, UNSUPPORTED),
    (stats::DBWR_CHECKPOINT_BUFFERS, UNSUPPORTED),
    (stats::DBWR_UNDO_WRITES, UNSUPPORTED),
    (stats::REDO_BLOCKS_WRITTEN, UNSUPPORTED),
    (stats::REDO_WASTAGE, UNSUPPORTED),
    (stats::REDO_WRITE_TIME, "unknowable"),
    (stats::REDO_SYNCH_WRITES, "unknowable"),
    (stats::REDO_SYNCH_TIME, "unknowable"),
    (stats::REDO_LOG_SPACE_REQUESTS, UNSUPPORTED),
    (stats::REDO_LOG_SPACE_TIME, UNSUPPORTED),
    (stats::REDO_LOG_SWITCHES, UNSUPPORTED),
    (stats::UNDO_CHANGE_SIZE, UNSUPPORTED),
    (stats::CONTROL_WRITES, UNSUPPORTED),
    (stats::CONTROL_BYTES_WRITTEN, UNSUPPORTED),
    (
        stats::SERVER_COMMITS,
        "unknowable: the server counts reading statements among its commits",
    ),
    (stats::SERVER_ROLLBACKS, "unknowable"),
    (
        stats::DB_CPU,
        "unknowable: the target mysql does not look at the server's threads yet",
    ),
    (
        stats::BACKGROUND_CPU,
        "unknowable: the target mysql does not look at the server's threads yet",
    ),
    (stats::BACKGROUND_TIME, "unknowable"),
    (
        stats::SERVER_DEVICE_READ_BYTES,
        "unknowable: the target mysql does not look at the server's process yet",
    ),
];

/// Gauges by the server's names.
const GAUGES: &[(&str, &str)] = &[
    ("server_sessions_count", "threads_connected"),
    ("dirty_pages_count", "innodb_buffer_pool_pages_dirty"),
    ("buffer_pool_pages_count", "innodb_buffer_pool_pages_data"),
    ("checkpoint_age_bytes", "innodb_checkpoint_age"),
    ("history_list_count", "innodb_history_list_length"),
];

struct State {
    connection: Option<Connection>,
    /// Why there is none, and since when.
    lost: Option<(String, Instant)>,
    company: Company,
    claim_ended: bool,
    longest: Duration,
}

/// See the module.
pub(super) struct ServerStats {
    address: Address,
    page_bytes: u64,
    state: Mutex<State>,
}

impl ServerStats {
    /// Logs in and reads a first time; `claim` is the session that holds the claim.
    ///
    /// # Errors
    /// The server refuses the connection or the reading.
    pub(super) fn open(
        address: &Address,
        page_bytes: u64,
        claim: u32,
    ) -> Result<Self, EngineError> {
        let mut connection = Connection::open(address, Some(READING_MAX))?;
        read(&mut connection).map_err(told("reading the server's counters"))?;
        Ok(Self {
            address: address.clone(),
            page_bytes,
            state: Mutex::new(State {
                connection: Some(connection),
                lost: None,
                company: Company::of(claim),
                claim_ended: false,
                longest: Duration::ZERO,
            }),
        })
    }

    /// The server's counters at this instant, cumulative as it keeps them; what cannot be known has its reason.
    pub(super) fn sample(&self) -> StatSet {
        let mut state = self.lock();
        let begun = Instant::now();
        let status = self.status(&mut state);
        state.longest = state.longest.max(begun.elapsed());
        let mut set = StatSet::default();
        for (stat, why) in NEVER {
            set.put(*stat, Reading::Na((*why).to_owned()), "mysql");
        }
        let value = |name: &str| match &status {
            Ok(status) => match status.get(name) {
                Some(value) => Reading::Count(*value),
                None => Reading::Na(ABSENT.to_owned()),
            },
            Err(why) => Reading::Na(why.clone()),
        };
        for (stat, name) in COUNTERS {
            set.put(*stat, value(name), name);
        }
        let pages = |name: &str| match value(name) {
            Reading::Count(pages) => Reading::Count(pages * self.page_bytes),
            na @ Reading::Na(_) => na,
        };
        let read = "innodb_pages_read";
        set.put(stats::PHYSICAL_READ_BYTES, pages(read), read);
        let written = "innodb_pages_written";
        set.put(stats::PHYSICAL_WRITE_BYTES, pages(written), written);
        let requests = "innodb_buffer_pool_read_requests";
        let hits = match (value(requests), value("innodb_buffer_pool_reads")) {
            (Reading::Count(gets), Reading::Count(misses)) => {
                Reading::Count(gets.saturating_sub(misses))
            }
            (na @ Reading::Na(_), _) | (_, na) => na,
        };
        set.put(stats::CACHE_HITS, hits, requests);
        // Of a range the first row is read by its key, the others as the next ones.
        let fetched = sum([value("handler_read_key"), value("handler_read_next")]);
        let by_index = "handler_read_key + handler_read_next";
        set.put(stats::TUPLES_FETCHED, fetched.clone(), by_index);
        let returned = sum([fetched, value("handler_read_rnd_next")]);
        let all = "handler_read_key + handler_read_next + handler_read_rnd_next";
        set.put(stats::TUPLES_RETURNED, returned, all);
        for (gauge, name) in GAUGES {
            if let Reading::Count(value) = value(name) {
                set.gauges.insert((*gauge).to_owned(), value);
            }
        }
        set
    }

    /// One reading; a lost connection is opened again once.
    fn status(&self, state: &mut State) -> Result<BTreeMap<String, u64>, String> {
        for _ in 0..2 {
            if state.connection.is_none() {
                if let Some((why, since)) = &state.lost
                    && since.elapsed() < RETRY
                {
                    return Err(why.clone());
                }
                match Connection::open(&self.address, Some(READING_MAX)) {
                    Ok(connection) => state.connection = Some(connection),
                    Err(error) => return Err(lost(state, &error.to_string())),
                }
            }
            let Some(connection) = &mut state.connection else {
                continue;
            };
            let read = read(connection).and_then(|status| {
                if !state.claim_ended {
                    let holders = claim::sharers(connection, &self.address.database)?;
                    state.company.note(&holders);
                }
                Ok(status)
            });
            match read {
                Ok(status) => return Ok(status),
                Err(error) if !error.is_fatal() => return Err(error.to_string()),
                Err(error) => {
                    state.connection = None;
                    if state.lost.is_some() {
                        return Err(lost(state, &error.to_string()));
                    }
                }
            }
        }
        Err(lost(state, "it ended again and again"))
    }

    /// The claim is about to be given back.
    pub(super) fn claim_ends(&self) {
        self.lock().claim_ended = true;
    }

    /// What the record has to say of others on the data set.
    pub(super) fn remarks(&self) -> Remarks {
        let mut remarks = Remarks::default();
        self.lock().company.remark(&mut remarks);
        remarks
    }

    /// For the report: what a reading costs.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let longest = self.lock().longest.as_secs_f64() * 1e3;
        vec![
            Fact::new(
                "statistics_reading",
                format!("show global status, longest so far {longest:.1} ms"),
            ),
            Fact::new(
                "statistics_endpoint_error",
                "none beside the duration of a reading: the server counts as it works".to_owned(),
            ),
            Fact::new(
                "statistics_scope",
                "the whole server: other databases and clients are in its counters".to_owned(),
            ),
        ]
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of two counters; unknown where one is.
fn sum(readings: [Reading; 2]) -> Reading {
    match readings {
        [Reading::Count(a), Reading::Count(b)] => Reading::Count(a + b),
        [na @ Reading::Na(_), _] | [_, na] => na,
    }
}

/// Notes why there is no connection.
fn lost(state: &mut State, why: &str) -> String {
    let reason = format!("statistics connection lost ({why})");
    state.lost = Some((reason.clone(), Instant::now()));
    reason
}

/// All numbers of the status, by their names in lower case.
fn read(connection: &mut Connection) -> Result<BTreeMap<String, u64>, MyError> {
    let rows = connection.rows("show global status")?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut row = row.into_iter().flatten();
            let name = row.next()?.to_ascii_lowercase();
            Some((name, row.next()?.parse().ok()?))
        })
        .collect())
}
