//! The metrics of memory.

use super::super::info::{BandwidthRow, MemoryInfo};
use super::huge;
use assay_measure::record::metric::{Better, Group, plain};
use assay_measure::record::{Figure, Metric};

/// All of them.
pub(super) fn all(info: &MemoryInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    if info.mode == "bench" {
        all.extend(primary(info));
    }
    all.extend(info.bandwidth.iter().flat_map(of_kernel));
    all.extend(of_ladder(info));
    all.extend(of_pages(info));
    all.extend(of_numa(info));
    all.extend(of_load(info));
    all.extend(of_host(info));
    for metric in &mut all {
        "memory".clone_into(&mut metric.layer);
    }
    all
}

fn scoped(scope: String, key: &str, name: &str, unit: &str, better: Better, figure: &Figure) -> Metric {
    Metric { scope, ..plain(Group::Host, key, name, unit, better, figure.clone()) }
}

/// The row of a kernel with the most threads.
pub(super) fn widest<'a>(info: &'a MemoryInfo, kernel: &str, stores: &str) -> Option<&'a BandwidthRow> {
    let is_it = |row: &&BandwidthRow| row.kernel == kernel && row.stores == stores;
    let rows = info.bandwidth.iter().filter(is_it);
    rows.max_by_key(|row| row.threads_count)
}

/// The few that a comparison is judged by. Triad is that with normal stores, which every machine has.
fn primary(info: &MemoryInfo) -> Vec<Metric> {
    let of = |kernel: &str, stores: &str, key: &str, name: &str| {
        let row = widest(info, kernel, stores);
        let figure = row.map_or_else(Figure::default, |row| row.gb_per_s_p50.clone());
        let metric = plain(Group::Primary, key, name, "GB/s", Better::Higher, figure);
        Metric { interval: row.and_then(interval), ..metric }
    };
    let latency = |pages: &str, key: &str, name: &str| {
        let figure = super::latency(info, pages);
        plain(Group::Primary, key, name, "ns", Better::Lower, figure)
    };
    let mut all = vec![
        of("triad", "normal", "triad_gb_per_s_p50", "triad, normal stores, all CPUs"),
        of("read", "", "read_gb_per_s_p50", "read, all CPUs"),
        latency("4k", "latency_4k_ns_p50", "latency of memory in 4 KiB pages"),
    ];
    if let Some(pages) = huge(info) {
        let name = format!("latency of memory in huge pages ({pages})");
        all.push(latency(pages, "latency_huge_ns_p50", &name));
    }
    all
}

fn interval(row: &BandwidthRow) -> Option<(f64, f64)> {
    let (value, half) = (row.gb_per_s_p50.value()?, row.gb_per_s_half_width.value()?);
    Some(((value - half).max(0.0), value + half))
}

fn of_kernel(row: &BandwidthRow) -> [Metric; 3] {
    let words = [&row.kernel, &row.stores].map(String::as_str).join(" ");
    let s = if row.threads_count == 1 { "" } else { "s" };
    let scope = format!("{} {} cpu", words.trim(), row.threads_count);
    let name = format!("{}, {} thread{s}", words.trim(), row.threads_count);
    let metric = |key: &str, what: &str, figure: &Figure| {
        let name = format!("{name}{what}");
        scoped(scope.clone(), key, &name, "GB/s", Better::Higher, figure)
    };
    [
        Metric { interval: interval(row), ..metric("gb_per_s_p50", "", &row.gb_per_s_p50) },
        metric("gb_per_s_max", ", best pass", &row.gb_per_s_max),
        metric("bus_gb_per_s_p50", ", on the bus", &row.bus_gb_per_s_p50),
    ]
}

fn of_ladder(info: &MemoryInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    for row in info.plateaus.iter().filter(|row| row.level != "?") {
        let scope = format!("{} {}", row.level, row.pages);
        let name = format!("latency of {}, {} pages", row.level, row.pages);
        all.push(scoped(scope, "latency_ns_p50", &name, "ns", Better::Lower, &row.ns_p50));
    }
    for row in &info.chains {
        let scope = format!("{} chains", row.chains_count);
        let name = format!("steps under way at once of {} chains", row.chains_count);
        let better = Better::Higher;
        all.push(scoped(scope, "parallel_ratio", &name, "ratio", better, &row.parallel_ratio));
    }
    for row in &info.loaded {
        let scope = format!("{} readers", row.readers_count);
        let name = format!("latency beside {} readers", row.readers_count);
        all.push(scoped(scope, "loaded_latency_ns_p50", &name, "ns", Better::Lower, &row.ns_p50));
    }
    all
}

fn of_pages(info: &MemoryInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    for row in &info.faults {
        let scope = format!("{} {} cpu", row.pages, row.threads_count);
        let name = |what: &str| format!("{what}, {} pages, {} threads", row.pages, row.threads_count);
        all.extend([
            scoped(scope.clone(), "page_faults_per_s", &name("page faults"), "1/s", Better::Higher, &row.faults_per_s),
            scoped(scope, "first_touch_gb_per_s", &name("first touch"), "GB/s", Better::Higher, &row.gb_per_s),
        ]);
    }
    for row in &info.got {
        let scope = format!("{} {}", row.what, row.pages);
        let name = format!("really huge, {} in {} pages", row.what, row.pages);
        all.push(scoped(scope, "huge_pct", &name, "%", Better::Neither, &row.huge_pct));
    }
    all
}

fn of_numa(info: &MemoryInfo) -> Vec<Metric> {
    let each = info.numa.iter().flat_map(|row| {
        let scope = format!("node {} to {}", row.cpu_node, row.memory);
        let name = |what: &str| format!("{what}, CPUs of node {}, memory {}", row.cpu_node, row.memory);
        [
            scoped(scope.clone(), "numa_latency_ns_p50", &name("latency"), "ns", Better::Lower, &row.ns_p50),
            scoped(scope, "numa_gb_per_s", &name("read"), "GB/s", Better::Higher, &row.gb_per_s),
        ]
    });
    each.collect()
}

fn of_load(info: &MemoryInfo) -> Vec<Metric> {
    let Some(soak) = &info.soak else {
        return Vec::new();
    };
    let rate = Figure::Count(soak.ops_count).per(soak.real_s, "no time passed");
    let busy = soak.cpus_busy.clone();
    vec![
        plain(Group::Primary, "soak_ops_per_s", "pages of the load", "1/s", Better::Higher, rate),
        plain(Group::Host, "soak_cpus_busy_count", "CPUs kept busy", "count", Better::Neither, busy),
    ]
}

fn of_host(info: &MemoryInfo) -> Vec<Metric> {
    let of = &info.conditions;
    let errors = Figure::Count(info.verification_errors_count);
    let host = |key, name, unit, better, figure: &Figure| plain(Group::Host, key, name, unit, better, figure.clone());
    vec![
        host("effective_mhz", "effective clock", "MHz", Better::Higher, &info.effective_mhz),
        host("steal_pct", "CPU time given to other guests", "%", Better::Lower, &of.steal_pct),
        host("given_pct", "CPU time given to the threads of assay", "%", Better::Neither, &of.given_pct),
        host("verification_errors_count", "wrong words", "count", Better::Lower, &errors),
    ]
}
