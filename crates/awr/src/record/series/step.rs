//! The figures of one step, by name with unit last.

use crate::deltas::{Span, counter, delta, micros};
use crate::deltas::{busy_pct, cpu_delta_ns, cpu_total_ns, disk_deltas};
use crate::record::slug;
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::histogram::Histogram;
use assay_measure::record::Figure;
use assay_measure::record::{percentile_us, us_mean};
use assay_measure::snapshot::Actor;
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;
const NO_TIME: &str = "no time passed";

/// Counters shown per second: metric name, statistic, factor from the stored unit.
const RATES: &[(&str, Stat, f64)] = &[
    ("logical_reads_blocks_per_s", counter_catalog::SESSION_LOGICAL_READS, 1.0),
    ("read_io_requests_count_per_s", counter_catalog::PHYSICAL_READ_REQUESTS, 1.0),
    ("write_io_requests_count_per_s", counter_catalog::PHYSICAL_WRITE_REQUESTS, 1.0),
    ("redo_mib_per_s", counter_catalog::REDO_SIZE, 1.0 / MIB),
    ("commits_count_per_s", counter_catalog::USER_COMMITS, 1.0),
    ("db_cpu_s_per_s", counter_catalog::DB_CPU, 1e-9),
];

/// Counters shown as they moved in the step: what happens a few times an hour has no rate.
const MOVES: &[(&str, Stat)] = &[
    ("log_switches_count", counter_catalog::REDO_LOG_SWITCHES),
    ("checkpoints_count", counter_catalog::DBWR_CHECKPOINTS),
];

/// Gauges that say nothing from step to step.
const CONSTANT: [&str; 2] = ["cache_blocks", "log_sequence"];

type Row = Vec<(String, Figure)>;

fn put(row: &mut Row, name: &str, figure: Figure) {
    row.push((name.to_owned(), figure));
}

/// Every figure of the step but those of sampled sessions.
pub(super) fn metrics(span: &Span<'_>) -> Row {
    let mut row = Row::new();
    load(span, &mut row);
    operations(span, &mut row);
    events(span, &mut row);
    requests(span, &mut row);
    gauges(span, &mut row);
    cpu(span, &mut row);
    devices(span, &mut row);
    pressure(span, &mut row);
    row
}

fn load(span: &Span<'_>, row: &mut Row) {
    let per_s = |figure: Figure| figure.per(span.elapsed_s, NO_TIME);
    put(row, "ops_count_per_s", per_s(Figure::Count(span.ops())));
    for (name, stat, factor) in RATES {
        let rate = per_s(counter(&span.stats, *stat)).scaled(*factor);
        put(row, name, rate);
    }
    for (name, stat) in MOVES {
        // A target without such a thing has no column of reasons.
        if let Some(moved) = span.stats.get(*stat) {
            put(row, name, Figure::Count(moved));
        }
    }
    let (read, written) = span.moved_bytes();
    put(row, "read_mib_per_s", per_s(read).scaled(1.0 / MIB));
    put(row, "write_mib_per_s", per_s(written).scaled(1.0 / MIB));
    put(row, "average_active_sessions_count", per_s(span.db_time_ns()).scaled(1e-9));
}

/// Percentiles by the ending of their names.
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

fn latencies(stem: &str, which: &[(&str, f64)], durations: &Histogram, row: &mut Row) {
    for (suffix, q) in which {
        let name = format!("{stem}_us_{suffix}");
        put(row, &name, percentile_us(durations, *q));
    }
    let most = durations.max_ns().map_or_else(|| Figure::na("nothing counted"), micros);
    put(row, &format!("{stem}_us_max"), most);
}

fn operations(span: &Span<'_>, row: &mut Row) {
    let mut all = Histogram::new();
    for op in &span.driver.ops {
        all.merge(&op.service);
    }
    put(row, "op_us_avg", us_mean(&all));
    latencies("op", &PERCENTILES, &all, row);
}

fn events(span: &Span<'_>, row: &mut Row) {
    for event in &span.stats.events {
        let count = event.waits.count();
        if count == 0 {
            continue;
        }
        // What the writers wait for is nobody's response time: its tail is enough.
        let (who, which) = match event.actor {
            Actor::Foreground => ("", &PERCENTILES[..]),
            Actor::Background => ("background_", &PERCENTILES[2..]),
        };
        let stem = format!("{who}{}", slug(&event.name));
        let rate = Figure::Count(count).per(span.elapsed_s, NO_TIME);
        put(row, &format!("{stem}_waits_count_per_s"), rate);
        latencies(&stem, which, &event.waits, row);
    }
}

/// Requests at the layer below the waits; both directions of one event together.
fn requests(span: &Span<'_>, row: &mut Row) {
    let mut by_event: BTreeMap<&str, Histogram> = BTreeMap::new();
    for request in &span.stats.requests {
        let of_event = by_event.entry(&request.event).or_default();
        of_event.merge(&request.completions);
    }
    for (event, completions) in by_event {
        if completions.is_empty() {
            continue;
        }
        let stem = format!("ring_{}", slug(event));
        let rate = Figure::Count(completions.count()).per(span.elapsed_s, NO_TIME);
        put(row, &format!("{stem}_count_per_s"), rate);
        let which = [PERCENTILES[0], PERCENTILES[2]];
        latencies(&stem, &which, &completions, row);
    }
}

fn gauges(span: &Span<'_>, row: &mut Row) {
    for (name, value) in &span.to.stats.gauges {
        let name = match name.as_str() {
            "dirty_buffers" => "dirty_buffers_blocks",
            name if CONSTANT.contains(&name) => continue,
            name => name,
        };
        put(row, name, Figure::Count(*value));
    }
}

fn cpu(span: &Span<'_>, row: &mut Row) {
    let host = &span.to.host;
    if let Some(cpus) = host.cpus {
        put(row, "online_cpus_count", Figure::Count(cpus));
    }
    if let Some(millicpus) = host.usable_millicpus {
        let cpus = Figure::decimal(millicpus as f64 / 1e3);
        put(row, "usable_cpus_count", cpus);
    }
    if let Some(tasks) = host.procs_running {
        put(row, "runnable_tasks_count", Figure::Count(tasks));
    }
    if let Some([load, ..]) = host.load {
        put(row, "load_1m", Figure::decimal(load));
    }
    if let Some(moved) = cpu_delta_ns(&span.from.host, host) {
        let total = cpu_total_ns(&moved) as f64;
        let share = |ns: u64| Figure::decimal(100.0 * ns as f64).per(total, NO_TIME);
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = moved;
        put(row, "host_user_pct", share(user + nice));
        put(row, "host_system_pct", share(system + irq + softirq));
        put(row, "host_idle_pct", share(idle));
        put(row, "host_iowait_pct", share(iowait));
        put(row, "host_steal_pct", share(steal));
    }
}

/// The devices under the data together; of their busy shares the largest.
fn devices(span: &Span<'_>, row: &mut Row) {
    let disks = disk_deltas(&span.from.host, &span.to.host);
    if disks.is_empty() {
        return;
    }
    let per_s = |count: u64| Figure::Count(count).per(span.elapsed_s, NO_TIME);
    let sum = |of: fn(&assay_measure::snapshot::DiskReading) -> u64| -> u64 { disks.iter().map(of).sum() };
    let ways = [
        ("read", sum(|d| d.reads), sum(|d| d.read_bytes), sum(|d| d.read_ns)),
        ("write", sum(|d| d.writes), sum(|d| d.write_bytes), sum(|d| d.write_ns)),
    ];
    for (way, requests, bytes, ns) in ways {
        let name = format!("device_{way}_requests_count_per_s");
        put(row, &name, per_s(requests));
        let name = format!("device_{way}_mib_per_s");
        put(row, &name, per_s(bytes).scaled(1.0 / MIB));
        let each = micros(ns).per(requests as f64, "no requests");
        put(row, &format!("device_{way}_us_avg"), each);
    }
    put(row, "device_flushes_count_per_s", per_s(sum(|d| d.flushes)));
    if let Some(busiest) = disks.iter().max_by_key(|disk| disk.busy_ns / disk.devices.max(1)) {
        put(row, "device_busy_pct", busy_pct(busiest, span.elapsed_s * 1e9, NO_TIME));
    }
}

/// Share of the step in which some task, or all of them, waited for a resource.
fn pressure(span: &Span<'_>, row: &mut Row) {
    for (name, now) in &span.to.host.psi_ns {
        let stalled = delta(span.from.host.psi_ns.get(name).copied(), Some(*now));
        let share = stalled.scaled(1e-7).per(span.elapsed_s * span.to.host.hosts.max(1) as f64, NO_TIME);
        put(row, &format!("psi_{name}_pct"), share);
    }
}
