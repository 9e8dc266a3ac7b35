//! The server's counters, read on a separate connection once a second and at every mark: `SHOW GLOBAL STATUS`; times of
//! file I/O from `performance_schema` if it is on ([`timing`]); requests in flight from `SHOW ENGINE INNODB STATUS`
//! ([`monitor`]); the clients' threads from `information_schema.processlist`.
//!
//! Sessions of the run use only prepared statements and our own connections never do, so the counter of executed
//! statements needs no correction. All other counters are the whole server's.

mod monitor;
mod tables;
mod timing;

use super::address::Address;
use super::claim;
use super::conn::{Connection, MyError, told};
use super::server::Server;
use crate::claim::Company;
use crate::published::readings;
use assay_measure::counter_catalog;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_run::engine::{EngineError, Remarks};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tables::{ABSENT, COUNTERS, GAUGES, NEVER, RENAMED};
pub(super) use timing::INSTRUMENT;
use timing::Timing;

/// Longest reading, so that it does not delay the collector.
const READING_MAX: Duration = Duration::from_secs(7);
/// Pause before reconnecting after a lost connection.
const RETRY: Duration = Duration::from_secs(1);
/// What a total has in addition to its part, by the name of the total; never falls.
type Rests = BTreeMap<&'static str, u64>;

struct State {
    rests: Rests,
    connection: Option<Connection>,
    /// Why there are no readings, and since when.
    lost: Option<(String, Instant)>,
    company: Company,
    claim_ended: bool,
    longest: Duration,
}

/// Reads the server's counters.
pub(super) struct ServerStats {
    address: Address,
    page_bytes: u64,
    in_server: bool,
    timing: Timing,
    state: Mutex<State>,
}

/// One reading.
struct Raw {
    status: BTreeMap<String, u64>,
    timed: Option<timing::Row>,
    gauges: Vec<(&'static str, u64)>,
    clients: Result<Vec<i32>, String>,
}

/// Values of a reading that others need.
pub(super) struct Beside {
    /// Threads that serve clients, or why they are unknown.
    pub(super) clients: Result<Vec<i32>, String>,
    /// Bytes read ahead, by requests that are not read calls.
    pub(super) ahead_bytes: Reading,
}

impl ServerStats {
    /// Logs in and takes a first reading. `claim` is the session that holds the claim; `in_server` means that one
    /// statement performs many operations.
    ///
    /// # Errors
    /// The server refuses the connection or the reading.
    pub(super) fn open(address: &Address, server: &Server, claim: u32, in_server: bool) -> Result<Self, EngineError> {
        let doing = told("reading the server's counters");
        let mut connection = Connection::open(&address.brief(READING_MAX))?;
        let timing = Timing::of(&mut connection).map_err(&doing)?;
        read(&mut connection, &timing).map_err(&doing)?;
        Ok(Self {
            address: address.clone(),
            page_bytes: server.page_bytes,
            in_server,
            timing,
            state: Mutex::new(State {
                rests: Rests::new(),
                connection: Some(connection),
                lost: None,
                company: Company::of(claim),
                claim_ended: false,
                longest: Duration::ZERO,
            }),
        })
    }

    /// The server's cumulative counters at this instant; an unavailable value has a reason.
    pub(super) fn sample(&self) -> (StatSet, Beside) {
        let mut state = self.lock();
        let begun = Instant::now();
        let raw = self.reading(&mut state);
        state.longest = state.longest.max(begun.elapsed());
        let mut set = StatSet::default();
        for (stat, why) in NEVER {
            set.put(*stat, Reading::Na((*why).to_owned()), "mysql");
        }
        let value = |name: &str| match &raw {
            Ok(raw) => match raw.status.get(name) {
                Some(value) => Reading::Count(*value),
                None => Reading::Na(ABSENT.to_owned()),
            },
            Err(why) => Reading::Na(why.clone()),
        };
        let is_known = |name: &str| {
            let status = raw.as_ref().map(|raw| &raw.status);
            status.is_ok_and(|status| status.contains_key(name))
        };
        for (stat, name) in COUNTERS {
            let other = RENAMED.iter().find(|(old, _)| old == name);
            let name = match other {
                Some((_, new)) if is_known(new) => new,
                _ => name,
            };
            set.put(*stat, value(name), name);
        }
        self.parts(&mut state.rests, &mut set, &value);
        combined(&mut set, &value);
        self.statements(&mut set);
        timing::events(&mut set, &self.timing, raw.as_ref().ok().and_then(|raw| raw.timed), &value);
        for (gauge, name) in GAUGES {
            if let Reading::Count(value) = value(name) {
                set.gauges.insert((*gauge).to_owned(), value);
            }
        }
        let ahead_bytes = self.bytes(&value("innodb_buffer_pool_read_ahead"));
        let clients = match raw {
            Ok(raw) => {
                let gauges = raw.gauges.into_iter();
                set.gauges.extend(gauges.map(|(name, value)| (name.to_owned(), value)));
                raw.clients
            }
            Err(why) => Err(why),
        };
        (set, Beside { clients, ahead_bytes })
    }

    fn bytes(&self, pages: &Reading) -> Reading {
        match pages {
            Reading::Count(pages) => Reading::Count(pages * self.page_bytes),
            na @ Reading::Na(_) => na.clone(),
        }
    }

    /// Puts totals and their parts. The server reads its counters one after the other while they change, so a part may
    /// seem to grow by more than its total. To avoid that, the difference is kept from falling, and the total is part
    /// plus difference. Each page is read or written by a separate request.
    fn parts(&self, rests: &mut Rests, set: &mut StatSet, value: &dyn Fn(&str) -> Reading) {
        let mut whole = |name: &'static str, part: &Reading, total: Reading| match (part, total) {
            (Reading::Count(part), Reading::Count(total)) => {
                let rest = rests.entry(name).or_default();
                *rest = (*rest).max(total.saturating_sub(*part));
                (Reading::Count(part + *rest), Reading::Count(*rest))
            }
            (na @ Reading::Na(_), _) => (na.clone(), na.clone()),
            (_, na) => (na.clone(), na),
        };
        let (read, written) = ("innodb_pages_read", "innodb_pages_written");
        let (reads, writes) = (value(read), value(written));
        let (read_bytes, written_bytes) = (self.bytes(&reads), self.bytes(&writes));
        let gets = "innodb_buffer_pool_read_requests";
        let (all, hits) = whole(gets, &reads, value(gets));
        set.put(counter_catalog::CACHE_HITS, hits, gets);
        set.put(counter_catalog::SESSION_LOGICAL_READS, all.clone(), gets);
        set.put(counter_catalog::GETS_FROM_CACHE, all, gets);
        let ahead = sum([value("innodb_buffer_pool_read_ahead"), value("innodb_buffer_pool_read_ahead_rnd")]);
        let (reads, demanded) = whole(read, &ahead, reads);
        set.put(counter_catalog::CACHE_DEMAND_MISSES, demanded, read);
        set.put(counter_catalog::PHYSICAL_READS_CACHE_PREFETCH, ahead, "innodb_buffer_pool_read_ahead");
        for stat in [
            counter_catalog::PHYSICAL_READS,
            counter_catalog::PHYSICAL_READS_CACHE,
            counter_catalog::PHYSICAL_READ_REQUESTS,
        ] {
            set.put(stat, reads.clone(), read);
        }
        for stat in [
            counter_catalog::PHYSICAL_WRITES,
            counter_catalog::PHYSICAL_WRITES_FROM_CACHE,
            counter_catalog::PHYSICAL_WRITE_REQUESTS,
        ] {
            set.put(stat, writes.clone(), written);
        }
        set.put(counter_catalog::PHYSICAL_READ_BYTES, read_bytes.clone(), read);
        set.put(counter_catalog::PHYSICAL_WRITE_BYTES, written_bytes.clone(), written);
        for (stat, name, part) in [
            (counter_catalog::PHYSICAL_READ_TOTAL_REQUESTS, "innodb_data_reads", &reads),
            (counter_catalog::PHYSICAL_READ_TOTAL_BYTES, "innodb_data_read", &read_bytes),
            (counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS, "innodb_data_writes", &writes),
            (counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES, "innodb_data_written", &written_bytes),
        ] {
            set.put(stat, whole(name, part, value(name)).0, name);
        }
    }

    /// With LOOP=server one statement performs many operations.
    fn statements(&self, set: &mut StatSet) {
        if self.in_server {
            let why = "unsupported: one client statement performs several (LOOP=server, ORDERS_FORM=server)";
            set.put(counter_catalog::STATEMENT_CALLS, Reading::Na(why.to_owned()), "mysql");
        }
    }

    /// Takes one reading; reconnects once after a lost connection.
    fn reading(&self, state: &mut State) -> Result<Raw, String> {
        for _ in 0..2 {
            if state.connection.is_none() {
                if let Some((why, since)) = &state.lost
                    && since.elapsed() < RETRY
                {
                    return Err(why.clone());
                }
                match Connection::open(&self.address.brief(READING_MAX)) {
                    Ok(connection) => state.connection = Some(connection),
                    Err(error) => return Err(lost(state, &error.to_string())),
                }
            }
            let Some(connection) = &mut state.connection else {
                continue;
            };
            let read = read(connection, &self.timing).and_then(|raw| {
                if !state.claim_ended {
                    let holders = claim::runs(connection, &self.address.database)?;
                    state.company.note(holders.into_iter().map(|id| (id, String::new())));
                }
                Ok(raw)
            });
            match read {
                Ok(raw) => return Ok(raw),
                Err(error) if !error.is_fatal() => return Err(error.to_string()),
                Err(error) => {
                    state.connection = None;
                    if state.lost.is_some() {
                        return Err(lost(state, &error.to_string()));
                    }
                }
            }
        }
        Err(lost(state, "it was lost repeatedly"))
    }

    /// Notes that the claim is about to be released.
    pub(super) fn claim_ends(&self) {
        self.lock().claim_ended = true;
    }

    /// Remarks for the record on other users of the data set.
    pub(super) fn remarks(&self) -> Remarks {
        let mut remarks = Remarks::default();
        self.lock().company.remark(&mut remarks);
        remarks
    }

    /// For the report: the cost of a reading.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let longest = self.lock().longest;
        let scope = "the whole server: its counters include other databases and clients";
        let mut facts = readings("status, threads and monitor", longest, scope);
        facts.push(Fact::new("io_timing_achieved", self.timing.told()));
        facts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// Statistics combined from several counters.
fn combined(set: &mut StatSet, value: &dyn Fn(&str) -> Reading) {
    // The first row of a range is read by its key, the others as next rows.
    let fetched = sum([value("handler_read_key"), value("handler_read_next")]);
    let by_index = "handler_read_key + handler_read_next";
    set.put(counter_catalog::TUPLES_FETCHED, fetched.clone(), by_index);
    let returned = sum([fetched, value("handler_read_rnd_next")]);
    let all = "handler_read_key + handler_read_next + handler_read_rnd_next";
    set.put(counter_catalog::TUPLES_RETURNED, returned, all);
}

/// The sum of two counters; n/a if one of them is.
pub(super) fn sum(readings: [Reading; 2]) -> Reading {
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

/// Reads everything at one instant.
fn read(connection: &mut Connection, timing: &Timing) -> Result<Raw, MyError> {
    let rows = connection.rows("show global status")?;
    let mut status: BTreeMap<String, u64> = rows
        .into_iter()
        .filter_map(|row| {
            let mut row = row.into_iter().flatten();
            let name = row.next()?.to_ascii_lowercase();
            Some((name, row.next()?.parse().ok()?))
        })
        .collect();
    // MySQL reports both ends of it.
    let end = |name: &str| status.get(name).copied();
    let ends = end("innodb_redo_log_current_lsn").zip(end("innodb_redo_log_checkpoint_lsn"));
    if let Some((current, checkpoint)) = ends {
        let age = current.saturating_sub(checkpoint);
        status.insert("innodb_checkpoint_age".to_owned(), age);
    }
    Ok(Raw {
        status,
        timed: timing.read(connection)?,
        gauges: monitor::read(connection)?,
        clients: clients(connection)?,
    })
}

/// The threads of all clients, if the user may see other users' sessions.
fn clients(connection: &mut Connection) -> Result<Result<Vec<i32>, String>, MyError> {
    let sql = format!(
        "select tid, (select count(*) from information_schema.user_privileges where privilege_type = 'PROCESS' and \
         replace(grantee, '\\'', '') = current_user()) from {}",
        connection.product.sessions()
    );
    let rows = match connection.rows(&sql) {
        Ok(rows) => rows,
        Err(error) if error.is_fatal() => return Err(error),
        Err(error) => return Ok(Err(format!("denied: {error}"))),
    };
    let number = |value: &Option<String>| value.as_ref().and_then(|text| text.parse::<i32>().ok());
    if rows.iter().any(|row| number(&row[1]) == Some(0)) {
        return Ok(Err("denied: other users' sessions need PROCESS".to_owned()));
    }
    Ok(Ok(rows.iter().filter_map(|row| number(&row[0])).collect()))
}
