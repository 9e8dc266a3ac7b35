//! The metrics of the CPUs. No sum over kernels: a figure is of one kernel, in its own unit.

use super::info::{CpuInfo, KernelRow};
use assay_measure::figures::{Figures as _, Group, metric};
use assay_measure::record::metric::{Better, plain};
use assay_measure::record::{Figure, Metric};
use assay_measure::units::many;

/// The few that a comparison is judged by, all of all CPUs: kernel and name for people.
const PRIMARY: [(&str, &str); 4] = [
    ("btree-16m", "index lookups, all CPUs"),
    ("tuple", "rows decoded, all CPUs"),
    ("crc32c-hw", "bytes checksummed, all CPUs"),
    ("memcpy-8k-256m", "bytes copied from memory, all CPUs"),
];

/// All of them.
pub(super) fn all(info: &CpuInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    if !info.kernel_set.is_empty() {
        all.push(metric(Group::Primary, "effective_mhz", "effective clock", "", info.effective_mhz.clone()));
    }
    let most = info.kernels.iter().map(|row| row.threads_count).max().unwrap_or(0);
    for row in info.kernels.iter().filter(|row| row.threads_count > 0) {
        all.extend(of_kernel(row, row.threads_count == most));
    }
    all.extend(info.pairs.iter().map(pair));
    all.extend(info.metrics());
    match &info.soak {
        Some(soak) => all.extend(soak.metrics("kernel calls of the load")),
        None => {
            let ns = info.misprediction_ns.clone();
            all.push(metric(Group::Host, "misprediction_ns", "mispredicted branch", "", ns));
        }
    }
    for metric in &mut all {
        "cpu".clone_into(&mut metric.layer);
    }
    all
}

fn of_kernel(row: &KernelRow, is_widest: bool) -> Vec<Metric> {
    // Bytes are told in MB, as people say them.
    let (word, factor) = match row.unit.as_str() {
        "bytes" => ("mb", 1e-6),
        other => (other, 1.0),
    };
    let unit = if word == "mb" { "MB/s" } else { "1/s" };
    let interval = row.per_s.value().zip(row.per_s_half_width.value());
    let interval = interval.map(|(value, half)| ((value - half).max(0.0) * factor, (value + half) * factor));
    let scope = format!("{} {} cpu", row.kernel, row.threads_count);
    let metric = |key: String, name: String, figure: &Figure| Metric {
        scope: scope.clone(),
        ..plain(Group::Host, &key, &name, unit, Better::Higher, figure.scaled(factor))
    };
    let threads = many(row.threads_count, "thread");
    let wall = Metric {
        interval,
        ..metric(format!("{word}_per_s"), format!("{} {}, {threads}", row.kernel, row.unit), &row.per_s)
    };
    let of_cpu = metric(
        format!("by_cpu_time_{word}_per_s"),
        format!("{} {} per second of CPU time, {threads}", row.kernel, row.unit),
        &row.per_cpu_s,
    );
    let primary = PRIMARY.iter().find(|(kernel, _)| *kernel == row.kernel && is_widest);
    let primary = primary.map(|(kernel, name)| Metric {
        key: format!("{}_{word}_per_s", kernel.replace('-', "_")),
        scope: String::new(),
        name: (*name).to_owned(),
        group: Group::Primary,
        is_primary: true,
        ..wall.clone()
    });
    primary.into_iter().chain([wall, of_cpu]).collect()
}

fn pair(row: &super::info::PairRow) -> Metric {
    let name = match row.what.as_str() {
        "line" => "cache line",
        "switch" => "switch through a pipe",
        _ => "wake-up",
    };
    let scope = format!("cpu {} to {}", row.from, row.to);
    metric(Group::Host, &format!("{}_ns_p50", row.what), name, &scope, row.ns.clone())
}
