//! Identities between counters.

use super::{Judge as _, Rule, Scope, Side, moved, moved_difference, moved_sum};
use crate::readings::Deltas;
use assay_measure::record::Identity;
use assay_measure::snapshot::{Actor, IoReading};
use assay_measure::stats;

pub(super) fn identities(deltas: &Deltas<'_>) -> Vec<Identity> {
    let mut all = blocks_and_bytes(deltas);
    all.extend(requests(deltas));
    all.extend(redo(deltas));
    all.extend(cache(deltas));
    all.extend(io_rows(deltas));
    all.extend(ring(deltas));
    all.extend(rows(deltas));
    all
}

fn fact(deltas: &Deltas<'_>, name: &str) -> Side {
    match deltas.fact(name) {
        Some(value) => Ok(value as f64),
        None => Err(format!("engine fact {name} absent")),
    }
}

fn blocks_and_bytes(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let block = || fact(deltas, "block_bytes");
    let times_block = |stat| Ok::<f64, String>(moved(s, stat)? * block()?);
    let rule = |id, text| Rule::exact(id, Scope::Whole, text);
    vec![
        rule("I1", "physical reads = cache + direct").judge(
            deltas,
            moved(s, stats::PHYSICAL_READS),
            moved_sum(s, &[stats::PHYSICAL_READS_CACHE, stats::PHYSICAL_READS_DIRECT]),
        ),
        rule("I2", "physical writes = from cache + direct").judge(
            deltas,
            moved(s, stats::PHYSICAL_WRITES),
            moved_sum(s, &[stats::PHYSICAL_WRITES_FROM_CACHE, stats::PHYSICAL_WRITES_DIRECT]),
        ),
        rule("I3", "read bytes of data = physical reads x block size").judge(
            deltas,
            moved(s, stats::PHYSICAL_READ_BYTES),
            times_block(stats::PHYSICAL_READS),
        ),
        rule("I4", "write bytes of data = physical writes x block size").judge(
            deltas,
            moved(s, stats::PHYSICAL_WRITE_BYTES),
            times_block(stats::PHYSICAL_WRITES),
        ),
        rule("I5", "session logical reads = db block gets + consistent gets").judge(
            deltas,
            moved(s, stats::SESSION_LOGICAL_READS),
            moved_sum(s, &[stats::DB_BLOCK_GETS, stats::CONSISTENT_GETS]),
        ),
    ]
}

fn requests(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let rule = |id, text| Rule::exact(id, Scope::Whole, text).at_most();
    vec![
        rule("I6a", "read requests of data <= physical reads").judge(
            deltas,
            moved(s, stats::PHYSICAL_READ_REQUESTS),
            moved(s, stats::PHYSICAL_READS),
        ),
        rule("I6b", "physical reads - read requests <= prefetched + direct blocks").judge(
            deltas,
            moved_difference(s, stats::PHYSICAL_READS, stats::PHYSICAL_READ_REQUESTS),
            moved_sum(s, &[stats::PHYSICAL_READS_CACHE_PREFETCH, stats::PHYSICAL_READS_DIRECT]),
        ),
        rule("I7a", "read requests of data <= all read requests").judge(
            deltas,
            moved(s, stats::PHYSICAL_READ_REQUESTS),
            moved(s, stats::PHYSICAL_READ_TOTAL_REQUESTS),
        ),
        rule("I7b", "read bytes of data <= all bytes read").judge(
            deltas,
            moved(s, stats::PHYSICAL_READ_BYTES),
            moved(s, stats::PHYSICAL_READ_TOTAL_BYTES),
        ),
        rule("I7c", "write requests of data <= all write requests").judge(
            deltas,
            moved(s, stats::PHYSICAL_WRITE_REQUESTS),
            moved(s, stats::PHYSICAL_WRITE_TOTAL_REQUESTS),
        ),
        rule("I7d", "write bytes of data <= all bytes written").judge(
            deltas,
            moved(s, stats::PHYSICAL_WRITE_BYTES),
            moved(s, stats::PHYSICAL_WRITE_TOTAL_BYTES),
        ),
        rule("I12", "physical writes non checkpoint <= physical writes").judge(
            deltas,
            moved(s, stats::PHYSICAL_WRITES_NON_CHECKPOINT),
            moved(s, stats::PHYSICAL_WRITES),
        ),
    ]
}

fn redo(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let written = || {
        let blocks = moved(s, stats::REDO_BLOCKS_WRITTEN)?;
        Ok::<f64, String>(blocks * fact(deltas, "log_block_bytes")?)
    };
    let placed = || {
        let placed = moved_sum(s, &[stats::REDO_SIZE, stats::REDO_WASTAGE, stats::REDO_HEADER_BYTES])?;
        Ok::<f64, String>(placed - gauge_change(deltas, "redo_buffer_unflushed_bytes")?)
    };
    let sync_waits: u64 = s
        .busy_events(Actor::Foreground)
        .filter(|event| event.name == "log file sync")
        .map(|event| event.waits.count())
        .sum();
    let sync_waits = if deltas.is_server() { Err("unsupported".to_owned()) } else { Ok(sync_waits as f64) };
    vec![
        Rule::exact("I8", Scope::Quiet, "all bytes written - data bytes written = log + control file bytes").judge(
            deltas,
            moved_difference(
                s,
                stats::PHYSICAL_WRITE_TOTAL_BYTES,
                stats::PHYSICAL_WRITE_BYTES,
            ),
            moved_sum(
                s,
                &[stats::REDO_BYTES_WRITTEN, stats::CONTROL_BYTES_WRITTEN],
            ),
        ),
        Rule::exact("I9", Scope::Quiet, "redo blocks written x log block size = redo size + wastage + block headers - change of the unflushed bytes")
            .judge(deltas, written(), placed()),
        Rule::exact("I36a", Scope::Quiet, "log file sync waits <= commits requested")
            .at_most()
            .judge(
                deltas,
                sync_waits,
                moved(s, stats::USER_COMMITS),
            ),
        Rule::within("I36b", Scope::Quiet, "redo writes <= commits + timer, size, switch and writer triggers", 0.0)
            .at_most()
            .judge(deltas, moved(s, stats::REDO_WRITES), redo_triggers(deltas)),
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
        &[stats::USER_COMMITS, stats::REDO_LOG_SWITCHES, stats::REDO_ALLOCATION_RETRIES, stats::DBWR_SUBMITS],
    )?;
    let by_size = moved(s, stats::REDO_SIZE)? / THRESHOLD_BYTES;
    Ok(asked + (by_size + s.elapsed_s / TIMER_S).ceil() + 1.0)
}

/// A gauge at the end of the drain less the gauge at the gate.
fn gauge_change(deltas: &Deltas<'_>, name: &str) -> Side {
    let read = |span: &assay_measure::snapshot::Snapshot| {
        let value = span.stats.gauges.get(name).copied();
        value.ok_or_else(|| format!("gauge {name} absent"))
    };
    Ok(read(deltas.whole.to)? as f64 - read(deltas.whole.from)? as f64)
}

fn cache(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    vec![
        Rule::exact("I10a", Scope::Quiet, "physical reads cache = demand misses + prefetched blocks").judge(
            deltas,
            moved(s, stats::PHYSICAL_READS_CACHE),
            moved_sum(s, &[stats::CACHE_DEMAND_MISSES, stats::PHYSICAL_READS_CACHE_PREFETCH]),
        ),
        Rule::exact(
            "I10b",
            Scope::Quiet,
            "gets from cache = hits + demand misses + gets that waited for another session's read",
        )
        .judge(
            deltas,
            moved(s, stats::GETS_FROM_CACHE),
            moved_sum(s, &[stats::CACHE_HITS, stats::CACHE_DEMAND_MISSES, stats::CACHE_SHARED_MISSES]),
        ),
        dirty(deltas),
    ]
}

fn dirty(deltas: &Deltas<'_>) -> Identity {
    let rule = Rule::exact("I42", Scope::Quiet, "dirty buffers at the end = at the begin + newly dirtied - cleaned");
    let s = &deltas.whole;
    let read = |span: &assay_measure::snapshot::Snapshot| {
        let value = span.stats.gauges.get("dirty_buffers");
        value.map(|n| *n as f64).ok_or("gauge dirty_buffers absent")
    };
    let expected = || {
        let change = moved_difference(s, stats::BUFFERS_DIRTIED, stats::BUFFERS_CLEANED)?;
        if moved(s, stats::BUFFERS_DIRTIED)? == 0.0 && change == 0.0 {
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
            Rule::within(
                id,
                Scope::Quiet,
                text,
                FUNCTIONS_RATIO * total.clone().unwrap_or(0.0) + unit * s.stats.io.len() as f64,
            )
        } else {
            Rule::exact(id, Scope::Quiet, text)
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
            stats::PHYSICAL_READ_TOTAL_REQUESTS,
            1.0,
        ),
        judge(
            "I13b",
            "bytes read by function = all bytes read",
            sum(|io| io.read_bytes),
            stats::PHYSICAL_READ_TOTAL_BYTES,
            MIB,
        ),
        judge(
            "I13c",
            "write requests by function = all write requests",
            sum(|io| io.small_write_requests + io.large_write_requests),
            stats::PHYSICAL_WRITE_TOTAL_REQUESTS,
            1.0,
        ),
        judge(
            "I13d",
            "bytes written by function = all bytes written",
            sum(|io| io.write_bytes),
            stats::PHYSICAL_WRITE_TOTAL_BYTES,
            MIB,
        ),
    ]
}

fn ring(deltas: &Deltas<'_>) -> Vec<Identity> {
    let s = &deltas.whole;
    let rule = |id, text| Rule::exact(id, Scope::Quiet, text);
    vec![
        rule("I41a", "all bytes read = bytes counted at completion").judge(
            deltas,
            moved(s, stats::PHYSICAL_READ_TOTAL_BYTES),
            moved(s, stats::RING_READ_BYTES),
        ),
        rule("I41b", "all read requests = requests counted at completion").judge(
            deltas,
            moved(s, stats::PHYSICAL_READ_TOTAL_REQUESTS),
            moved(s, stats::RING_READ_REQUESTS),
        ),
        rule("I41c", "all bytes written = bytes counted at completion").judge(
            deltas,
            moved(s, stats::PHYSICAL_WRITE_TOTAL_BYTES),
            moved(s, stats::RING_WRITE_BYTES),
        ),
        rule("I41d", "all write requests = requests counted at completion").judge(
            deltas,
            moved(s, stats::PHYSICAL_WRITE_TOTAL_REQUESTS),
            moved(s, stats::RING_WRITE_REQUESTS),
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
        Rule::exact("I40a", Scope::Quiet, "rows the operations report = table rows visited").judge(
            deltas,
            undisturbed().map(|()| rows_of(&|_| true) as f64),
            moved(s, stats::ROWS_VISITED),
        ),
        Rule::within(
            "I40b",
            Scope::Quiet,
            "rows of selects and scans = consistent gets - index gets",
            0.01 * read_rows,
        )
        .judge(
            deltas,
            undisturbed().map(|()| read_rows),
            moved_difference(s, stats::CONSISTENT_GETS, stats::INDEX_GETS),
        ),
    ]
}
