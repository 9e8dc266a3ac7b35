//! The metrics of memory.

use super::super::info::{BandwidthRow, MemoryInfo};
use super::huge;
use assay_measure::figures::{Figures as _, Group, Metric, between, metric};

/// All of them.
pub(super) fn all(info: &MemoryInfo) -> Vec<Metric> {
    let primary = if info.mode == "bench" { primary(info) } else { Vec::new() };
    let load = info.soak.iter().flat_map(|soak| soak.metrics("pages of the load"));
    let mut all: Vec<Metric> = primary.into_iter().chain(info.metrics()).chain(load).collect();
    for metric in &mut all {
        "memory".clone_into(&mut metric.layer);
    }
    all
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
        let row = widest(info, kernel, stores).cloned().unwrap_or_default();
        between(metric(Group::Primary, key, name, "", row.gb_per_s_p50), &row.gb_per_s_half_width)
    };
    let latency =
        |pages: &str, key: &str, name: &str| metric(Group::Primary, key, name, "", super::latency(info, pages));
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
