//! What a reader checks the numbers against, and what the run remarked.

use crate::deltas::{Deltas, UNSUPPORTED, delta, disk_deltas};
use assay_measure::counter_catalog;
use assay_measure::record::{Checks, Figure, Record};
use assay_measure::snapshot::{CLIENT_WAIT, SCAN};
use std::collections::BTreeSet;

pub(super) fn checks(deltas: &Deltas<'_>, record: &Record) -> Checks {
    let (from, to) = (&deltas.data.begin.host, &deltas.data.end.host);
    let w = &deltas.window;
    let devices = disk_deltas(from, to);
    let device_bytes =
        |bytes: u64| if devices.is_empty() { Figure::na("no device known") } else { Figure::Count(bytes) };
    let active = active_blocks(deltas);
    let cache = match deltas.fact("cache_blocks") {
        Some(blocks) => Figure::Count(blocks),
        None => Figure::na(UNSUPPORTED),
    };
    let efficiency = |name: &str| {
        let row = record.instance.efficiency.iter().find(|row| row.name == name);
        row.map_or_else(Figure::default, |row| row.value_pct.clone())
    };
    let (little, expected) = little(deltas);
    // A server's processes do the work that is assay's own elsewhere.
    let (process_read_bytes, process_write_bytes) = if super::reads::is_server(deltas) {
        (w.get(counter_catalog::SERVER_DEVICE_READ_BYTES), w.get(counter_catalog::SERVER_DIRTIED_BYTES))
    } else {
        (delta(from.process_read_bytes, to.process_read_bytes), delta(from.process_write_bytes, to.process_write_bytes))
    };
    let (engine_read_bytes, engine_write_bytes) = w.moved_bytes();
    Checks {
        hit_expected_pct: hit_expected(deltas, &cache, &active),
        hit_measured_pct: efficiency("Buffer Hit %"),
        index_hit_pct: efficiency("Index Hit %"),
        active_blocks: active,
        cache_blocks: cache,
        little_sessions: little,
        little_expected_sessions: expected,
        engine_read_bytes,
        process_read_bytes,
        device_read_bytes: device_bytes(devices.iter().map(|disk| disk.read_bytes).sum()),
        engine_write_bytes,
        process_write_bytes,
        device_write_bytes: device_bytes(devices.iter().map(|disk| disk.write_bytes).sum()),
        steadiness: super::series::steadiness(&record.series),
    }
}

/// Blocks of the tables the sessions work on: SCALE x schemas with a session.
fn active_blocks(deltas: &Deltas<'_>) -> Figure {
    let homes: BTreeSet<u64> = deltas.data.per_session.iter().map(|s| s.schema).collect();
    let schemas = match (homes.len() as u64, deltas.fact("schemas_loaded")) {
        (0, None) => return Figure::na("schemas unknown"),
        (0, Some(schemas)) => schemas,
        (schemas, _) => schemas,
    };
    let scale = deltas
        .setting("SCALE")
        .and_then(|scale| blocks_of(scale, deltas.fact("block_bytes")))
        .or_else(|| deltas.fact("scale_blocks"));
    match scale {
        Some(scale) => Figure::Count(scale.saturating_mul(schemas)),
        None => Figure::na("SCALE unknown"),
    }
}

/// A SCALE as blocks: a bare number counts blocks, a suffix K M G T counts bytes.
fn blocks_of(text: &str, block_bytes: Option<u64>) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim_start().chars().next() {
        Some('K' | 'k') => 10,
        Some('M' | 'm') => 20,
        Some('G' | 'g') => 30,
        Some('T' | 't') => 40,
        _ => return Some(number),
    };
    number.checked_mul(1 << shift)?.checked_div(block_bytes?)
}

/// Table blocks are resident as often as the cache covers the active blocks; undo is
/// touched so often that it stays resident. Of the index as much as was found resident:
/// in a small cache its leaves come and go, which says nothing of the table's blocks.
/// (cache / active + index blocks per operation / blocks per operation, refined.)
fn hit_expected(deltas: &Deltas<'_>, cache: &Figure, active: &Figure) -> Figure {
    let w = &deltas.window;
    let (cache, active_blocks) = match (cache.value(), active.value()) {
        (Some(cache), Some(blocks)) if blocks > 0.0 => (cache, blocks),
        (None, _) => return cache.clone(),
        _ => return active.clone(),
    };
    let Some(gets) = w.count(counter_catalog::GETS_FROM_CACHE).filter(|gets| *gets > 0) else {
        return Figure::na("no gets");
    };
    if cache == 0.0 {
        // Nothing stays in a cache of no blocks, the index no more than the table.
        return Figure::decimal(0.0);
    }
    // Scans may pass the cache by, so only the ranges count.
    let ranges = w.driver.ops.iter().filter(|op| op.kind != SCAN);
    let table: u64 = ranges.map(|op| op.rows).sum();
    let table_hits = table as f64 * (cache / active_blocks).min(1.0);
    let index = w.count(counter_catalog::INDEX_GETS).unwrap_or(0);
    let index_hits = w.count(counter_catalog::INDEX_HITS).unwrap_or(index);
    let other = gets.saturating_sub(table + index);
    Figure::decimal(100.0 * ((index_hits + other) as f64 + table_hits) / gets as f64)
}

/// Little's law for a closed loop: sessions = ops/s x (mean service + mean think).
/// Operations in flight at the borders count with the time they spent inside.
fn little(deltas: &Deltas<'_>) -> (Figure, Figure) {
    let w = &deltas.window;
    if deltas.setting("RATE").is_some_and(|rate| !rate.trim_matches(['0', '.']).is_empty()) {
        let open = || Figure::na("open loop");
        return (open(), open());
    }
    if w.ops() == 0 || w.elapsed_s == 0.0 {
        let none = || Figure::na("no operations");
        return (none(), none());
    }
    // With LOOP=server a session also waits for its next slice of operations: the client makes it, the server compiles it.
    let events = w.stats.events.iter();
    let between = events.filter(|event| event.name == CLIENT_WAIT);
    let between_ns: f64 = between.map(|event| event.waits.sum_ns() as f64).sum();
    let inside = w.driver.busy_ns as f64 + w.driver.think_ns as f64 + w.to.driver.in_flight_ns as f64
        - w.from.driver.in_flight_ns as f64
        + between_ns;
    let there = match super::active_fraction(deltas.data).value() {
        Some(fraction) => fraction * deltas.data.sessions as f64,
        None => deltas.data.begin.driver.sessions_active as f64,
    };
    (Figure::decimal(inside / (w.elapsed_s * 1e9)), Figure::decimal(there))
}

/// What the run and its target remarked, and sources that went backwards, in sentences.
pub(super) fn warnings(deltas: &Deltas<'_>) -> Vec<String> {
    let mut out: Vec<String> = deltas.data.warnings.iter().map(|w| sentence(w)).collect();
    resets(deltas, &mut out);
    out
}

/// A warning of the run as a sentence, whoever wrote it.
fn sentence(text: &str) -> String {
    let mut chars = text.trim().chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    let mut sentence: String = first.into_iter().chain(chars).collect();
    if !sentence.is_empty() && !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

/// Sources that went backwards inside the window: their rows are missing, not zero.
fn resets(deltas: &Deltas<'_>, out: &mut Vec<String>) {
    let w = &deltas.window;
    let names: Vec<&str> = w.stats.resets.iter().chain(&w.driver.resets).map(String::as_str).collect();
    if !names.is_empty() {
        out.push(format!(
            "Counters went backwards inside the window: {}. Their rows are n/a or missing. Check whether the target \
             was restarted, and repeat the run.",
            names.join(", ")
        ));
    }
}
