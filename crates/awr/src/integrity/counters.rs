//! Identities between counters.

use super::{IdentityRule, Judge as _, Scope, Side, judged, moved, moved_difference, moved_sum};
use crate::deltas::Deltas;
use crate::identities::COUNTERS;
use assay_measure::counter_catalog;
use assay_measure::record::Identity;
use assay_measure::snapshot::{Actor, IoReading};

pub(super) fn identities(deltas: &Deltas<'_>) -> Vec<Identity> {
    let mut all: Vec<Identity> = COUNTERS.iter().map(|line| judged(deltas, *line)).collect();
    all.extend(redo(deltas));
    all.push(dirty(deltas));
    all.extend(io_rows(deltas));
    all.extend(rows(deltas));
    all
}

fn redo(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let sync_waits: u64 = s
        .busy_events(Actor::Foreground)
        .filter(|event| event.name == "log file sync")
        .map(|event| event.waits.count())
        .sum();
    let sync_waits = if deltas.is_server() { Err("unsupported".to_owned()) } else { Ok(sync_waits as f64) };
    vec![
        IdentityRule::exact("I36a", Scope::Quiet, "log file sync waits <= commits requested").at_most().judge(
            deltas,
            sync_waits,
            moved(s, counter_catalog::USER_COMMITS),
        ),
        IdentityRule::within(
            "I36b",
            Scope::Quiet,
            "redo writes <= commits + timer, size, switch and writer triggers",
            0.0,
        )
        .at_most()
        .judge(deltas, moved(s, counter_catalog::REDO_WRITES), redo_triggers(deltas)),
    ]
}

/// The most log writes that commits, the 3 s timer, the 1 MiB threshold (and a full
/// buffer), log switches and writers that need older redo can have asked for.
fn redo_triggers(deltas: &Deltas<'_>) -> Side {
    const THRESHOLD_BYTES: f64 = 1_048_576.0;
    const TIMER_S: f64 = 3.0;
    let s = &deltas.whole;
    let asked = moved_sum(
        s,
        &[
            counter_catalog::USER_COMMITS,
            counter_catalog::REDO_LOG_SWITCHES,
            counter_catalog::REDO_ALLOCATION_RETRIES,
            counter_catalog::DBWR_SUBMITS,
        ],
    )?;
    let by_size = moved(s, counter_catalog::REDO_SIZE)? / THRESHOLD_BYTES;
    Ok(asked + (by_size + s.elapsed_s / TIMER_S).ceil() + 1.0)
}

fn dirty(deltas: &Deltas<'_>) -> Identity {
    let rule =
        IdentityRule::exact("I42", Scope::Quiet, "dirty buffers at the end = at the start + newly dirtied - cleaned");
    let s = &deltas.whole;
    let read = |span: &assay_measure::snapshot::Snapshot| {
        let value = span.stats.gauges.get("dirty_buffers");
        value.map(|n| *n as f64).ok_or("gauge dirty_buffers absent")
    };
    let expected = || {
        let change = moved_difference(s, counter_catalog::BUFFERS_DIRTIED, counter_catalog::BUFFERS_CLEANED)?;
        if moved(s, counter_catalog::BUFFERS_DIRTIED)? == 0.0 && change == 0.0 {
            return Err("nothing counted".to_owned());
        }
        Ok(read(s.from)? + change)
    };
    let found = read(s.to).map_err(str::to_owned);
    match (&found, expected()) {
        // Everything dirtied was cleaned again: 0 = 0 is an observation here.
        (Ok(0.0), Ok(0.0)) => rule.judge(deltas, Ok(1.0), Ok(1.0)).with_sides_zero(),
        (_, expected) => rule.judge(deltas, found, expected),
    }
}

trait ZeroSides {
    /// Writes the sides as the zeros they were.
    fn with_sides_zero(self) -> Self;
}

impl ZeroSides for Identity {
    fn with_sides_zero(mut self) -> Self {
        if self.ok == assay_measure::record::Truth::Holds {
            self.lhs = 0_u64.into();
            self.rhs = 0_u64.into();
            "0 = 0: everything dirtied was cleaned".clone_into(&mut self.sentence);
        }
        self
    }
}

/// How far totals and their parts may be apart where two views of a server tell them (awr-statistics, I13).
const FUNCTIONS_RATIO: f64 = 0.005;

fn io_rows(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let sum = |field: fn(&IoReading) -> u64| {
        if s.stats.io.is_empty() {
            Err("no I/O by function".to_owned())
        } else {
            Ok(s.stats.io.iter().map(field).sum::<u64>() as f64)
        }
    };
    // A server's views of functions and of totals are read one after the other, and count bytes in coarse units.
    let is_foreign = deltas.is_server();
    let rule = |id, text, total: &Side, unit: f64| {
        if is_foreign {
            IdentityRule::within(
                id,
                Scope::Quiet,
                text,
                FUNCTIONS_RATIO * total.clone().unwrap_or(0.0) + unit * s.stats.io.len() as f64,
            )
        } else {
            IdentityRule::exact(id, Scope::Quiet, text)
        }
    };
    let judge = |id, text, by_function: Side, total, unit| {
        let total = moved(s, total);
        rule(id, text, &total, unit).judge(deltas, by_function, total)
    };
    const MIB: f64 = 1_048_576.0;
    vec![
        judge(
            "I13a",
            "read requests by function = all read requests",
            sum(|io| io.small_read_requests + io.large_read_requests),
            counter_catalog::PHYSICAL_READ_TOTAL_REQUESTS,
            1.0,
        ),
        judge(
            "I13b",
            "bytes read by function = all bytes read",
            sum(|io| io.read_bytes),
            counter_catalog::PHYSICAL_READ_TOTAL_BYTES,
            MIB,
        ),
        judge(
            "I13c",
            "write requests by function = all write requests",
            sum(|io| io.small_write_requests + io.large_write_requests),
            counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS,
            1.0,
        ),
        judge(
            "I13d",
            "bytes written by function = all bytes written",
            sum(|io| io.write_bytes),
            counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES,
            MIB,
        ),
    ]
}

fn rows(deltas: &Deltas<'_>) -> Vec<Identity> {
    use assay_measure::snapshot::UPDATE;
    let s = &deltas.whole;
    // An operation that failed or was tried again touched rows that no result counts.
    let undisturbed = || {
        super::server::by_ranges(deltas)?;
        let errors: u64 = s.driver.errors.values().sum();
        if errors + s.driver.retries > 0 {
            return Err("operations failed or were retried".to_owned());
        }
        Ok(())
    };
    let rows_of = |of: &dyn Fn(&str) -> bool| -> u64 {
        let ops = s.driver.ops.iter().filter(|op| of(&op.kind));
        ops.map(|op| op.rows).sum()
    };
    let read_rows = rows_of(&|kind| kind != UPDATE) as f64;
    vec![
        IdentityRule::exact("I40a", Scope::Quiet, "rows the operations report = table rows visited").judge(
            deltas,
            undisturbed().map(|()| rows_of(&|_| true) as f64),
            moved(s, counter_catalog::ROWS_VISITED),
        ),
        IdentityRule::within(
            "I40b",
            Scope::Quiet,
            "rows of selects and scans = consistent gets - index gets",
            0.01 * read_rows,
        )
        .judge(
            deltas,
            undisturbed().map(|()| read_rows),
            moved_difference(s, counter_catalog::CONSISTENT_GETS, counter_catalog::INDEX_GETS),
        ),
    ]
}
