//! Identities of a run against a server: its counters against each other and against the client's.
//!
//! They are taken from the gate to the end of the drain, when the sessions have logged off and published their
//! counters. Other clients may use the server too, and its processes publish late: so none of these identities is
//! exact, and each states its allowance.

use super::{IdentityRule, Judge as _, Scope, Side, judged, moved, moved_sum};
use crate::deltas::Deltas;
use crate::identities::SERVER;
use assay_measure::counter_catalog;
use assay_measure::facts::{IN_PROCESS, READ_WITHOUT_CALLS};
use assay_measure::record::Identity;
use assay_measure::snapshot::{SCAN, SELECT, UPDATE};

/// Catalog look-ups, log-on and log-off cost a session so many transactions at most.
const SESSION_TRANSACTIONS: f64 = 20.0;
/// What else runs in a database nobody else works in (monitoring, vacuum), transactions per second.
const OTHER_TRANSACTIONS_PER_S: f64 = 5.0;
/// What each further host of a fleet asks about its own sessions, transactions per second.
const HOST_TRANSACTIONS_PER_S: f64 = 12.0;
/// A log page has 8192 bytes, of which 24 are its header: the distance of two positions counts them.
const WITH_PAGE_HEADERS: f64 = 8192.0 / 8168.0;
/// Files, catalogs and log that a server reads beside table blocks, bytes.
const OTHER_BYTES: f64 = 16_777_216.0;

pub(super) fn identities(deltas: &Deltas<'_>) -> Vec<Identity> {
    // Others work there too: no bug of assay.
    let lines = SERVER.iter().map(|line| Identity { exact: false, ..judged(deltas, *line) });
    let mut all: Vec<Identity> = lines.collect();
    all.extend(gets(deltas));
    all.extend(transactions(deltas));
    all.extend(rows(deltas));
    all.push(log(deltas));
    all.push(active_time(deltas));
    all.push(read_calls(deltas));
    all
}

fn rule(id: &'static str, text: &'static str, tolerance: f64) -> IdentityRule {
    IdentityRule::within(id, Scope::Quiet, text, tolerance)
}

/// Nothing failed or was tried again: else the server did work that no result counts.
fn undisturbed(deltas: &Deltas<'_>) -> Result<(), String> {
    let driver = &deltas.whole.driver;
    by_ranges(deltas)?;
    match driver.errors.values().sum::<u64>() + driver.retries {
        0 => Ok(()),
        _ => Err("operations failed or were retried".to_owned()),
    }
}

/// Operations are ranges of rows: those of another workload touch what their data says.
pub(super) fn by_ranges(deltas: &Deltas<'_>) -> Result<(), String> {
    let mut ops = deltas.whole.driver.ops.iter();
    if ops.all(|op| [SELECT, UPDATE, SCAN].contains(&op.kind.as_str())) {
        Ok(())
    } else {
        Err("the operations are not ranges of rows".to_owned())
    }
}

fn rows_and_ops(deltas: &Deltas<'_>, kind: &str) -> (f64, f64) {
    let ops = deltas.whole.driver.ops.iter();
    ops.filter(|op| op.kind == kind)
        .fold((0.0, 0.0), |(rows, ops), op| (rows + op.rows as f64, ops + op.service.count() as f64))
}

/// Blocks got for one range select beyond its rows' own.
fn index_gets(deltas: &Deltas<'_>) -> Side {
    undisturbed(deltas)?;
    let (rows, ops) = rows_and_ops(deltas, SELECT);
    let others = [UPDATE, SCAN];
    let is_else = |kind: &&str| rows_and_ops(deltas, kind).1 > 0.0;
    match others.iter().any(is_else) {
        true => Err("operations other than selects ran".to_owned()),
        false if ops == 0.0 => Err("no selects".to_owned()),
        false => {
            let gets = moved_sum(&deltas.whole, &[counter_catalog::TABLE_GETS, counter_catalog::INDEX_GETS])?;
            Ok((gets - rows) / ops)
        }
    }
}

fn gets(deltas: &Deltas<'_>) -> Vec<Identity> {
    let (rows, ops) = rows_and_ops(deltas, SELECT);
    // The operation each session tries out before the gate may be published after it.
    let before = if ops > 0.0 { deltas.data.sessions as f64 * (rows / ops + 4.0) / ops } else { 0.0 };
    vec![rule("S3", "blocks got per select - rows per select = 2 to 4 of the index", 1.0 + before).judge(
        deltas,
        index_gets(deltas),
        Ok(3.0),
    )]
}

fn transactions(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let ops = s.driver.ops_ended() as f64;
    let hosts = s.to.host.hosts.saturating_sub(1) as f64;
    let others_per_s = OTHER_TRANSACTIONS_PER_S + hosts * HOST_TRANSACTIONS_PER_S;
    let slack = deltas.data.sessions as f64 * SESSION_TRANSACTIONS + s.elapsed_s * others_per_s + 0.02 * ops;
    let set = |name: &str| deltas.setting(name).unwrap_or_default().to_lowercase();
    // One statement an operation, committed by itself.
    let one_each = || -> Result<(), String> {
        undisturbed(deltas)?;
        if set("LOOP") == "server" {
            return Err("the loop runs in the server".to_owned());
        }
        match set("COMMIT_EVERY").as_str() {
            "" | "0" | "1" => Ok(()),
            _ => Err("several operations share a commit".to_owned()),
        }
    };
    let counted = |stats| one_each().and_then(|()| moved_sum(s, stats));
    vec![
        rule("S5", "operations = transactions the server counted", slack).judge(
            deltas,
            Ok(ops),
            counted(&[counter_catalog::SERVER_COMMITS, counter_catalog::SERVER_ROLLBACKS]),
        ),
        rule("S6", "executes = statements the server counted", slack).judge(
            deltas,
            moved(s, counter_catalog::EXECUTE_COUNT),
            counted(&[counter_catalog::STATEMENT_CALLS]),
        ),
    ]
}

fn rows(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let (selected, selects) = rows_and_ops(deltas, SELECT);
    let (updated, updates) = rows_and_ops(deltas, UPDATE);
    let per_op = (updated / updates.max(1.0)).max(selected / selects.max(1.0));
    let before = deltas.data.sessions as f64 * per_op;
    let own = |rows: f64| undisturbed(deltas).map(|()| rows);
    vec![
        rule("S7", "rows of selects <= rows the server fetched through indexes", 0.0).at_most().judge(
            deltas,
            own(selected),
            moved(s, counter_catalog::TUPLES_FETCHED),
        ),
        rule("S8", "rows of updates = rows the server updated in our tables", before).judge(
            deltas,
            own(updated),
            moved(s, counter_catalog::TABLE_UPDATES),
        ),
    ]
}

/// Two accounts of the log: positions are immediate and count page headers, statistics neither.
fn log(deltas: &Deltas<'_>) -> Identity {
    let s = &deltas.whole;
    let size = moved(s, counter_catalog::REDO_SIZE);
    let known = size.clone().unwrap_or(0.0);
    // Headers of whole files, and what was published late.
    let late = if s.elapsed_s > 0.0 { known / s.elapsed_s } else { 0.0 };
    let counted = moved(s, counter_catalog::WAL_BYTES).map(|bytes| bytes * WITH_PAGE_HEADERS);
    rule("S9", "distance of log positions = log bytes counted, with page headers", 0.01 * known + late + 1_048_576.0)
        .judge(deltas, size, counted)
}

/// The server's own time in statements lies inside what its clients waited for them.
fn active_time(deltas: &Deltas<'_>) -> Identity {
    let s = &deltas.whole;
    let db_time = moved(s, counter_catalog::DB_TIME);
    // Statements before the gate may be published after it: a second of each session.
    let allowed = 0.05 * db_time.clone().unwrap_or(0.0) + 1e9 * deltas.data.sessions as f64;
    rule("S10", "time the server spent in statements <= DB time of the sessions (ns)", allowed).at_most().judge(
        deltas,
        moved(s, counter_catalog::SERVER_ACTIVE_TIME),
        db_time,
    )
}

/// Every block the server read went through a read call of one of its processes.
fn read_calls(deltas: &Deltas<'_>) -> Identity {
    let s = &deltas.whole;
    let read = moved(s, counter_catalog::PHYSICAL_READ_BYTES);
    let allowed = 0.02 * read.clone().unwrap_or(0.0) + OTHER_BYTES;
    let rule =
        rule("S11", "bytes of blocks read <= bytes returned by the read calls of the server's processes", allowed)
            .at_most();
    let facts = &deltas.data.engine_facts;
    match READ_WITHOUT_CALLS.find(facts) {
        Some(way) => rule.unknown(&format!("{way} reads without read calls")),
        None if IN_PROCESS.find(facts).is_some() => rule.unknown("its blocks are counted from its read calls"),
        None => rule.judge(deltas, read, moved(s, counter_catalog::SERVER_READ_CALL_BYTES)),
    }
}
