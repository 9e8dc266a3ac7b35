//! Decides which commands may work on a data set at the same time. No other module claims one.
//!
//! A claim is an advisory lock on the PostgreSQL schema's name, held by a connection that lives as long as the command.
//! Runs share it; `prepare`, `check` and `destroy` hold it exclusively. A command takes the claim before it reads
//! anything it acts on. The connection's `application_name`, which every role may read, says what holds the claim and
//! since when.

use super::conninfo::ConnectOptions;
use super::layout::Names;
use super::own::{connect, told};
use super::wire::Connection;
pub(super) use crate::claim::Purpose;
use crate::claim::SERIES;
use assay_run::engine::EngineError;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long to wait for another holder. A server process notices only later that its client has ended, and an assay
/// started right after another must not be refused for that.
const CLAIM_WAIT: Duration = Duration::from_secs(2);
const CLAIM_POLL: Duration = Duration::from_millis(20);

/// Claims the data set; the claim ends with the returned connection.
///
/// # Errors
/// `Unusable`: others hold a claim (the error names them), or the server does not answer.
pub(super) fn take(options: &ConnectOptions, names: &Names, purpose: Purpose) -> Result<Connection, EngineError> {
    let mut connection = connect(options).map_err(told("connecting"))?;
    hold(&mut connection, names, purpose)?;
    Ok(connection)
}

fn hold(connection: &mut Connection, names: &Names, purpose: Purpose) -> Result<(), EngineError> {
    let (first, second) = key(names.schema());
    let shared = if purpose.shares() { "_shared" } else { "" };
    let doing = "claiming the data set";
    // The server cuts the name after 63 bytes, so the most important part comes first.
    let name = format!(
        "select set_config('application_name', 'assay {} since ' || \
         to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"') || ', process {}', false)",
        purpose.word(),
        std::process::id()
    );
    connection.query(&name).map_err(told(doing))?;
    // The connection is idle as long as the work takes. PostgreSQL 13 has no such limit.
    let unlimited = "select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout'";
    connection.query(unlimited).map_err(told(doing))?;
    let claim = format!("select pg_try_advisory_lock{shared}({first}, {second})");
    let begun = Instant::now();
    loop {
        let held = connection.query(&claim).map_err(told(doing))?;
        if matches!(held.rows.first().map(Vec::as_slice), Some([Some(got)]) if got == "t") {
            return Ok(());
        }
        if begun.elapsed() >= CLAIM_WAIT {
            return Err(in_use(connection, names)?);
        }
        std::thread::sleep(CLAIM_POLL);
    }
}

/// Two keys of 32 bits: the letters ASSA, and a hash of the schema's name. Both are local to the database.
fn key(schema: &str) -> (i32, i32) {
    let second = crc32c::crc32c(schema.as_bytes()).cast_signed();
    (i32::from_be_bytes(*b"ASSA"), second)
}

/// Queries the granted locks on the key with functions only, without reading any table.
fn holders(schema: &str) -> String {
    let (first, second) = key(schema);
    format!(
        "from pg_catalog.pg_lock_status() l left join lateral pg_catalog.pg_stat_get_activity(l.pid) a on true \
         where l.locktype = 'advisory' and l.objsubid = 2 and l.granted \
         and l.classid = {} and l.objid = {}",
        first.cast_unsigned(),
        second.cast_unsigned()
    )
}

/// The error for a data set that is in use.
fn in_use(connection: &mut Connection, names: &Names) -> Result<EngineError, EngineError> {
    let rows = connection
        .query(&format!(
            "select l.pid, coalesce(nullif(a.application_name, ''), 'unnamed program'), \
             coalesce(pg_get_userbyid(a.usesysid), 'unknown role') {} \
             and l.database = (select oid from pg_database where datname = current_database()) order by l.pid",
            holders(names.schema())
        ))
        .map_err(told("looking for who uses the data set"))?;
    let who: Vec<String> = rows
        .rows
        .into_iter()
        .map(|row| {
            let [pid, program, role] = [0, 1, 2].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
            format!("{program} (server process {pid}, role {role})")
        })
        .collect();
    let who = if who.is_empty() { "another assay process that has just ended".to_owned() } else { who.join("; ") };
    Ok(EngineError::Unusable(format!(
        "the data set in schema {} is in use by {who}; wait until it ends, then try again",
        names.schema()
    )))
}

/// The holders as an element of a JSON document, for inclusion in a reading.
pub(super) fn holders_json(schema: &str, database: u32) -> String {
    format!(
        "(select coalesce(json_agg(json_build_object('pid', l.pid, 'name', a.application_name)), '[]'::json) {} \
         and l.database = {database})",
        holders(schema)
    )
}

/// The holders in such a reading, except series, which put no load on a run.
pub(super) fn holders_of(json: &Value) -> impl Iterator<Item = (u64, String)> {
    let all = json.as_array().into_iter().flatten();
    all.filter_map(|holder| {
        let name = holder["name"].as_str().unwrap_or("unnamed");
        let is_series = name.starts_with(&format!("assay {SERIES}"));
        Some((holder["pid"].as_u64()?, format!("{name}, "))).filter(|_| !is_series)
    })
}
