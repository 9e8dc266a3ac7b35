//! What has to be said beside the numbers, and the warnings that follow from it.

use crate::readings::{Deltas, UNSUPPORTED, cache_parameter, delta, disk_deltas};
use assay_measure::cpu;
use assay_measure::record::{Checks, Figure, Record};
use assay_measure::snapshot::{CLIENT_WAIT, SCAN};
use assay_measure::stats;
use assay_measure::units::{fixed, size, thousands};
use std::collections::BTreeSet;

/// Expected and measured hit ratio may differ by so many points.
pub(crate) const HIT_POINTS: f64 = 3.0;
/// Sessions idle for a larger part of the window distort its rates.
const ACTIVE_FRACTION: f64 = 0.99;
/// Little's law must account for the sessions within this.
const LITTLE_RATIO: f64 = 0.05;

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
        (w.get(stats::SERVER_DEVICE_READ_BYTES), w.get(stats::SERVER_DIRTIED_BYTES))
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
    let Some(gets) = w.count(stats::GETS_FROM_CACHE).filter(|gets| *gets > 0) else {
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
    let index = w.count(stats::INDEX_GETS).unwrap_or(0);
    let index_hits = w.count(stats::INDEX_HITS).unwrap_or(index);
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

/// Everything the reader must know before believing a number, in sentences.
pub(super) fn warnings(deltas: &Deltas<'_>, record: &Record) -> Vec<String> {
    let mut out: Vec<String> = deltas.data.warnings.iter().map(|w| sentence(w)).collect();
    resets(deltas, &mut out);
    validity(record, &mut out);
    load(record, &mut out);
    sources(record, &mut out);
    host(record, &mut out);
    steadiness(record, &mut out);
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

fn validity(record: &Record, out: &mut Vec<String>) {
    let violated = assay_measure::identity::violated_exact(record);
    if !violated.is_empty() {
        let ids: Vec<&str> = violated.iter().map(|identity| identity.id.as_str()).collect();
        out.push(format!(
            "Numbers do not agree: exact identities {} are violated, which is a bug of assay. \
             Do not use any figure of this report that the Integrity section names.",
            ids.join(", ")
        ));
    }
    if record.driver.errors_whole_run_count > 0 {
        out.push(format!(
            "{} operations failed: throughput does not include them, and latency may include the short path of an \
             error. Driver Statistics lists the error classes.",
            thousands(record.driver.errors_whole_run_count)
        ));
    }
}

fn load(record: &Record, out: &mut Vec<String>) {
    let fraction = record.interval.worker_active_fraction.value();
    if let Some(fraction) = fraction.filter(|fraction| *fraction < ACTIVE_FRACTION) {
        out.push(format!(
            "Sessions were active for only {} % of the window: the rates are too low by the idle share. Divide them \
             by {} for the rate under load, or increase RUN_TIME.",
            fixed(100.0 * fraction, 1),
            fixed(fraction, 3)
        ));
    }
    let checks = &record.checks;
    if let (Some(expected), Some(measured)) = (checks.hit_expected_pct.value(), checks.hit_measured_pct.value())
        && (expected - measured).abs() > HIT_POINTS
    {
        let cause = if measured > expected {
            "block accesses are less even than the formula assumes (hot spot, hot schema, scans), or SCALE differs \
             from what was loaded"
        } else {
            "the cache was not full when the window began (use a longer WARMUP), or scans displaced blocks"
        };
        out.push(format!(
            "Buffer hit ratio is {} % while cache size and active blocks predict {} %: {cause}. Physical reads per \
             operation do not match the stated data size.",
            fixed(measured, 1),
            fixed(expected, 1),
        ));
    }
    if let (Some(found), Some(there)) = (checks.little_sessions.value(), checks.little_expected_sessions.value())
        && (found - there).abs() > LITTLE_RATIO * there
    {
        out.push(format!(
            "Little's law accounts for {} of {} sessions: operation times and throughput do not describe the same \
             load. Time is lost outside operations (driver loop, late dispatch); increase WORK_UNIT or use fewer \
             sessions per driver thread.",
            fixed(found, 2),
            fixed(there, 0)
        ));
    }
    shared_host(record, out);
    driver(record, out);
}

/// Driver and server on one host take CPU from each other.
fn shared_host(record: &Record, out: &mut Vec<String>) {
    const DRIVER_PCT: f64 = 20.0;
    const BUSY_PCT: f64 = 90.0;
    let Some(server) = &record.instance.server else {
        return;
    };
    let busy = record.os.cpu_pct.get("busy").and_then(Figure::value);
    if let (Some(driver), Some(busy)) = (server.driver_of_host_pct.value(), busy)
        && driver >= DRIVER_PCT
        && busy >= BUSY_PCT
    {
        out.push(format!(
            "The host's CPUs were {} % busy and the driver threads took {} % of them: a server on this host had less \
             CPU, and the load generator limits throughput in part. Drive the server from another host, increase \
             WORK_UNIT, or use LOOP=server.",
            fixed(busy, 1),
            fixed(driver, 1)
        ));
    }
}

/// Whose work kept the driver threads from a CPU, and the way out; `None` where nobody's did: one thread on a host with
/// CPUs to spare waits for the CPU that wakes for it, as every program does that sleeps until the device answers.
fn delayed_by(record: &Record, is_server: bool) -> Option<String> {
    /// Below this the host had CPUs left, %.
    const BUSY_PCT: f64 = 80.0;
    let shares = cpu::shares(record);
    let others = shares.is_some_and(|shares| shares.others >= cpu::OTHERS_PCT);
    let is_busy = shares.is_none_or(|shares| shares.busy >= BUSY_PCT);
    if !others && !is_busy && !is_server && record.driver.threads_count == 1 {
        return None;
    }
    let who = match (others, is_busy, is_server) {
        (true, _, true) => {
            "other work on this host took CPU time; repeat the run on an idle host, or drive the \
            server from another host"
        }
        (true, _, false) => {
            "other work on this host took CPU time; repeat the run on an idle host, or with fewer \
            DRIVER_THREADS"
        }
        (false, true, true) => {
            "the server and the driver threads shared the CPUs; use fewer sessions, or drive the \
            server from another host"
        }
        (false, true, false) => "they waited for each other; use fewer DRIVER_THREADS",
        (false, false, true) => {
            "they and the server's processes waited for each other on one CPU while another was idle; use fewer sessions, or drive the server from another host"
        }
        (false, false, false) => {
            "they waited for each other on one CPU while another was idle, since the kernel wakes a thread where the device's interrupt arrives; try DRIVER_THREADS=1"
        }
    };
    Some(who.to_owned())
}

/// The load generator's own cost and fairness.
fn driver(record: &Record, out: &mut Vec<String>) {
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let thread_s = record.driver.threads_count as f64 * elapsed;
    let delay = record.driver.thread_run_delay_s.value().unwrap_or(0.0);
    // The threads that drive a server's sessions do little: it is the server that takes the CPUs.
    let is_server = record.instance.server.is_some();
    if delay > 0.05 * thread_s
        && thread_s > 0.0
        && let Some(who) = delayed_by(record, is_server)
    {
        out.push(format!(
            "The driver threads were ready but without a CPU for {} % of the window, and wait times include that delay: {who}.",
            fixed(100.0 * delay / thread_s, 1)
        ));
    }
    if let Some(share) = record.driver.thread_cpu_pct.value().filter(|pct| *pct >= 95.0) {
        let way_out = if is_server {
            "Increase WORK_UNIT, use LOOP=server, or use more DRIVER_THREADS if CPUs are free."
        } else {
            "More sessions will not raise throughput; more DRIVER_THREADS may, if CPUs are free."
        };
        out.push(format!(
            "The driver threads used {} % of {} CPUs: this run measures CPU, not storage. {way_out}",
            fixed(share, 1),
            record.driver.threads_count
        ));
    }
    if let Some(share) = record.driver.floor_pct.value().filter(|pct| *pct >= 20.0) {
        out.push(format!(
            "The load generator uses {} % of the CPU time of an operation: the figures include the cost of assay \
             itself. Increase WORK_UNIT, so that an operation does more work.",
            fixed(share, 1)
        ));
    }
    let spread = &record.driver.session_spread;
    if let (Some(min), Some(median)) = (spread.min_count.value(), spread.median_count.value())
        && min < 0.7 * median
    {
        out.push(format!(
            "The slowest session did {} operations, the median session {}: the target did not serve all sessions \
             alike (hot schema, uneven data or unfair scheduling). Means over sessions hide this.",
            fixed(min, 0),
            fixed(median, 0)
        ));
    }
}

fn sources(record: &Record, out: &mut Vec<String>) {
    const SOME_BYTES: f64 = 16_777_216.0;
    let checks = &record.checks;
    let Some(engine) = checks.engine_read_bytes.value().filter(|b| *b > SOME_BYTES) else {
        return;
    };
    let whose = match record.instance.reads {
        Some(_) => "the server's processes",
        None => "this process",
    };
    let (below, layer) = match (checks.process_read_bytes.value(), checks.device_read_bytes.value()) {
        (Some(process), _) => (process, format!("the kernel charged {whose} with")),
        (None, Some(device)) => (device, "the devices under the data delivered".to_owned()),
        (None, None) => return,
    };
    if below < 0.5 * engine {
        out.push(format!(
            "The engine read {}, but {layer} only {}: the rest came from the page cache or memory-backed storage. \
             Read latency and IOPS of this run are not those of a device. Repeat with {}.",
            size(engine as u64),
            size(below as u64),
            crate::readings::device_reads(record)
        ));
    }
    if let (Some(process), Some(device)) = (checks.process_read_bytes.value(), checks.device_read_bytes.value())
        && process > SOME_BYTES
        && device > 1.2 * process
    {
        out.push(format!(
            "The devices under the data read {} while {whose} asked for {}: other processes used the devices. \
             Latency includes this load; repeat the run on idle devices.",
            size(device as u64),
            size(process as u64)
        ));
    }
}

fn host(record: &Record, out: &mut Vec<String>) {
    let pct = |name: &str| record.os.cpu_pct.get(name).and_then(Figure::value);
    if let Some(steal) = pct("steal").filter(|pct| *pct >= 1.0) {
        out.push(format!(
            "The hypervisor withheld {} % of CPU time (steal): another guest or a cap slowed this run. Repeat the \
             run, or compare it only with runs of equal steal.",
            fixed(steal, 1)
        ));
    }
    let throttled = record.os.cgroup_throttled_us.value();
    if let Some(us) = throttled.filter(|us| *us > 0.0) {
        out.push(format!(
            "The CPU limit of this cgroup throttled the run for {} s: the figures show this limit. Raise the limit, \
             or state it beside the figures.",
            fixed(us / 1e6, 2)
        ));
    }
    let model = &record.instance.time_model;
    if let (Some(busy), Some(queue), Some(db_time)) =
        (pct("busy"), model.run_queue_us.value(), model.db_time_us.value())
        && busy >= 95.0
        && queue > 0.05 * db_time
    {
        out.push(format!(
            "The host's CPUs were {} % busy and sessions spent {} % of DB time waiting for one: wait times include \
             scheduling delay. Do not read them as device latency.",
            fixed(busy, 1),
            fixed(100.0 * queue / db_time, 1)
        ));
    }
    let swapped: f64 = record
        .os
        .vmstat_count
        .iter()
        .filter(|(name, _)| name.contains("swp"))
        .filter_map(|(_, count)| count.value())
        .sum();
    if swapped > 0.0 {
        out.push(format!(
            "The host swapped {} pages during the window: memory was short, and latencies include paging. Use a \
             smaller {}.",
            fixed(swapped, 0),
            if record.instance.server.is_some() { cache_parameter(record) } else { "CACHE_MB" }
        ));
    }
}

fn steadiness(record: &Record, out: &mut Vec<String>) {
    let steadiness = &record.checks.steadiness;
    let variation = steadiness.variation_ratio.value();
    if let Some(variation) = variation.filter(|variation| *variation > 0.3) {
        out.push(format!(
            "Throughput per second varied by {} % (standard deviation over mean): the mean does not describe a \
             typical second of the run. Increase RUN_TIME and read the per-second section.",
            fixed(100.0 * variation, 0)
        ));
    }
    let trend = steadiness.last_over_first_ratio.value();
    if let Some(trend) = trend.filter(|trend| *trend < 0.7) {
        out.push(format!(
            "The last quarter of the window ran at {} % of the first: a cache was full or a burst credit was spent. \
             Increase RUN_TIME until the rate is level, and quote the later part.",
            fixed(100.0 * trend, 0)
        ));
    }
    if let Some(at) = steadiness.change_points_s.first() {
        out.push(format!(
            "Throughput changed its level {} time(s), first {} s after the gate: the window mixes different states \
             of the platform. The per-second section shows the levels.",
            steadiness.change_points_s.len(),
            fixed(*at, 0)
        ));
    }
}
