//! Decides which commands may work on a data set at the same time. No other module claims one.
//!
//! A claim is a user-level lock (`GET_LOCK`) of a connection that lives as long as the command. Such locks cannot be
//! shared. So a command that needs the data set exclusively holds the main lock and checks that no run holds a lock of
//! its own. A run holds the main lock only while it takes its own lock. A series does the same under another name,
//! since it puts no load on other runs. The names are unique within the server and derived from the database's name.

use super::address::Address;
use super::conn::{Connection, MyError, told};
use crate::claim::Purpose;
use assay_run::engine::EngineError;
use std::time::{Duration, Instant};

/// How long to wait for another holder: an assay started right after another must not be refused.
const WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);
/// Most runs, and most series, that can share a data set.
const SHARERS: u32 = 256;
/// Name of a run's lock.
const RUN: &str = "run";
const SERIES: &str = "series";

/// Claims the data set; the claim ends with the returned connection.
///
/// # Errors
/// `Unusable`: others hold a claim (the error names them), or the server does not answer.
pub(super) fn take(address: &Address, purpose: Purpose) -> Result<Connection, EngineError> {
    let mut connection = Connection::open(address)?;
    let doing = told("claiming the data set");
    // The connection is idle as long as the work takes.
    connection.run("set wait_timeout = 31536000").map_err(&doing)?;
    let main = main_lock(&address.database);
    let wait_s = WAIT.as_secs();
    let got = connection.number(&format!("select get_lock('{main}', {wait_s})")).map_err(&doing)?;
    if got != 1 {
        let holder = connection.number(&format!("select is_used_lock('{main}')")).map_err(&doing)?;
        return Err(in_use(&mut connection, address, &[holder]));
    }
    if purpose.shares() {
        let kind = if purpose == Purpose::Series { SERIES } else { RUN };
        for n in 0..SHARERS {
            let own = shared_lock(&address.database, kind, n);
            let taken = connection.number(&format!("select get_lock('{own}', 0)"));
            if taken.map_err(&doing)? == 1 {
                let free = format!("select release_lock('{main}')");
                connection.number(&free).map_err(&doing)?;
                return Ok(connection);
            }
        }
        return Err(EngineError::Unusable(format!(
            "{SHARERS} runs already use the data set in database {}",
            address.database
        )));
    }
    let begun = Instant::now();
    loop {
        let mut sharers = runs(&mut connection, &address.database).map_err(&doing)?;
        sharers.extend(holders(&mut connection, &address.database, SERIES).map_err(&doing)?);
        if sharers.is_empty() {
            return Ok(connection);
        }
        if begun.elapsed() >= WAIT {
            return Err(in_use(&mut connection, address, &sharers));
        }
        std::thread::sleep(POLL);
    }
}

fn main_lock(database: &str) -> String {
    format!("assay {:08x}", crc32c::crc32c(database.as_bytes()))
}

fn shared_lock(database: &str, kind: &str, n: u32) -> String {
    format!("{} {kind} {n}", main_lock(database))
}

/// Sessions that hold locks of runs.
pub(super) fn runs(connection: &mut Connection, database: &str) -> Result<Vec<u64>, MyError> {
    holders(connection, database, RUN)
}

fn holders(connection: &mut Connection, database: &str, kind: &str) -> Result<Vec<u64>, MyError> {
    let each: Vec<String> =
        (0..SHARERS).map(|n| format!("is_used_lock('{}')", shared_lock(database, kind, n))).collect();
    let rows = connection.rows(&format!("select {}", each.join(", ")))?;
    let ids = rows.into_iter().flatten().flatten();
    Ok(ids.filter_map(|id| id.parse().ok()).collect())
}

/// The error for a data set that is in use.
fn in_use(connection: &mut Connection, address: &Address, ids: &[u64]) -> EngineError {
    let who: Vec<String> = ids
        .iter()
        .map(|id| {
            let asked = connection
                .value(&format!("select concat(user, '@', host) from information_schema.processlist where id = {id}"));
            match asked {
                Ok(user) if !user.is_empty() => {
                    format!("another assay (server session {id}, {user})")
                }
                _ => format!("another assay (server session {id})"),
            }
        })
        .collect();
    EngineError::Unusable(format!(
        "the data set in database {} is in use by {}; wait until it ends, then try again",
        address.database,
        who.join("; ")
    ))
}
