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
use super::product::Product;
use super::server::Server;
use crate::claim::Company;
use crate::kept::{Kept, READING_MAX};
use crate::published::readings;
use crate::statistics::Reader;
use assay_measure::counter_catalog;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_run::engine::{EngineError, Remarks};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use tables::{COUNTERS, EVENTS, GAUGES, TOTALS};
pub(super) use timing::INSTRUMENT;
use timing::Timing;

/// A figure of ours among the server's.
const WRITE_TRANSACTIONS: &str = "write_transactions";
const UNCOUNTED: &str = "unknowable: the server counts them with its binary log, MariaDB also for a user with PROCESS";

/// What a total has in addition to its part, by the name of the total; never falls.
type Rests = BTreeMap<&'static str, u64>;

struct State {
    rests: Rests,
    connection: Kept<Connection>,
    company: Company,
    claim_ended: bool,
}

/// Reads the server's counters.
pub(super) struct ServerStats {
    address: Address,
    page_bytes: u64,
    in_server: bool,
    timing: Timing,
    writes: Writes,
    state: Mutex<State>,
}

/// How a server counts the transactions that write.
#[derive(Clone, Copy, Debug)]
enum Writes {
    /// Each has a cache of the binary log.
    BinaryLog,
    /// Each takes two identifiers, at its first write and at its end.
    Identifiers,
    Uncounted,
}

impl Writes {
    fn of(connection: &mut Connection) -> Result<Self, MyError> {
        Ok(match (connection.number("select @@log_bin")?, connection.product) {
            (1, _) => Self::BinaryLog,
            (_, Product::MariaDb) => Self::Identifiers,
            // MySQL gives the second one only where rows are changed or deleted.
            (_, Product::MySql) => Self::Uncounted,
        })
    }
}

/// One reading.
struct Raw {
    status: BTreeMap<String, u64>,
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
    /// Logs in and takes a first reading. `company` is who shares the data set; `in_server` means that one statement
    /// performs many operations.
    ///
    /// # Errors
    /// The server refuses the connection or the reading.
    pub(super) fn open(
        address: &Address,
        server: &Server,
        company: Company,
        in_server: bool,
    ) -> Result<Self, EngineError> {
        let doing = told("reading the server's counters");
        let mut connection = Connection::open(&address.brief(READING_MAX))?;
        let timing = Timing::of(&mut connection).map_err(&doing)?;
        let writes = Writes::of(&mut connection).map_err(&doing)?;
        read(&mut connection, &timing, writes).map_err(&doing)?;
        Ok(Self {
            address: address.clone(),
            page_bytes: server.page_bytes,
            in_server,
            timing,
            writes,
            state: Mutex::new(State {
                rests: Rests::new(),
                connection: Kept::new(connection),
                company,
                claim_ended: false,
            }),
        })
    }

    /// The server's cumulative counters at this instant; an unavailable value has a reason.
    pub(super) fn sample(&self) -> (StatSet, Beside) {
        let mut state = self.lock();
        let mut raw = self.reading(&mut state);
        if let Ok(raw) = &mut raw {
            self.keep_totals(&mut state.rests, &mut raw.status);
        }
        let value = |_: &str, name: &str, factor| match &raw {
            Ok(raw) => self.figure(&raw.status, name, factor),
            Err(why) => Reading::Na(why.clone()),
        };
        let mut reader = self.reader(&value);
        reader.counters(COUNTERS);
        reader.events(EVENTS);
        reader.gauges(GAUGES);
        let ahead_bytes = reader.read("innodb_buffer_pool_read_ahead in blocks", "");
        let mut set = reader.set;
        if self.in_server {
            let why = "unsupported: one client statement performs several (LOOP=server, ORDERS_FORM=server)";
            set.put(counter_catalog::STATEMENT_CALLS, Reading::Na(why.to_owned()), "mysql");
        }
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

    fn reader<'a>(&self, value: &'a dyn Fn(&str, &str, u64) -> Reading) -> Reader<'a> {
        let block_bytes = Ok(self.page_bytes);
        Reader { product: "MariaDB", version: 0, block_bytes, value, set: StatSet::default() }
    }

    fn figure(&self, status: &BTreeMap<String, u64>, name: &str, factor: u64) -> Reading {
        match status.get(name) {
            Some(value) => Reading::Count(value.saturating_mul(factor)),
            None if name.starts_with("file.") => Reading::Na(self.timing.silent().to_owned()),
            None if name == WRITE_TRANSACTIONS => Reading::Na(UNCOUNTED.to_owned()),
            None => Reading::Na("absent: this version of the server has no such counter".to_owned()),
        }
    }

    /// Keeps each of [`TOTALS`] at least its part plus what it had in addition before.
    fn keep_totals(&self, rests: &mut Rests, status: &mut BTreeMap<String, u64>) {
        for (total, part) in TOTALS {
            let value = |_: &str, name: &str, factor| self.figure(status, name, factor);
            let reader = self.reader(&value);
            if let [Reading::Count(whole), Reading::Count(part)] = [total, part].map(|name| reader.read(name, "")) {
                let rest = rests.entry(total).or_default();
                *rest = (*rest).max(whole.saturating_sub(part));
                status.insert(total.to_owned(), part + *rest);
            }
        }
    }

    /// Takes one reading; reconnects once after a lost connection.
    fn reading(&self, state: &mut State) -> Result<Raw, String> {
        let State { connection, company, claim_ended, .. } = state;
        let read = |connection: &mut Connection| {
            let raw = read(connection, &self.timing, self.writes)?;
            if !*claim_ended {
                let holders = claim::runs(connection, &self.address.database)?;
                company.note(holders.into_iter().map(|id| (id, String::new())));
            }
            Ok(raw)
        };
        connection.read(false, || Connection::open(&self.address.brief(READING_MAX)), read, MyError::is_fatal)
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
        let longest = self.lock().connection.longest;
        let scope = "the whole server: its counters include other databases and clients";
        let mut facts = readings("status, threads and monitor", longest, scope);
        facts.push(Fact::new("io_timing_achieved", self.timing.told()));
        facts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// Reads everything at one instant.
fn read(connection: &mut Connection, timing: &Timing, writes: Writes) -> Result<Raw, MyError> {
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
    timing.read(connection, &mut status)?;
    let monitor = monitor::read(connection)?;
    let counted = match writes {
        Writes::BinaryLog => status.get("binlog_cache_use").copied(),
        Writes::Identifiers => monitor.next_id.map(|id| id / 2),
        Writes::Uncounted => None,
    };
    status.extend(counted.map(|count| (WRITE_TRANSACTIONS.to_owned(), count)));
    Ok(Raw { status, gauges: monitor.gauges, clients: clients(connection)? })
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
