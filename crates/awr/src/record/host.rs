//! The host during the window, from the readings of `/proc` at both ends.

use crate::deltas::{
    CPU_COLUMNS, Deltas, NO_SOURCE, NO_WINDOW, busy_pct, cpu_delta_ns, cpu_total_ns, delta, disk_deltas, micros,
};
use assay_measure::record::{DiskRow, Figure, GaugeRow, NetRow, OsInfo, ProcessInfo, PsiRow};
use assay_measure::snapshot::HostReading;
use std::collections::BTreeMap;

pub(crate) fn os(deltas: &Deltas<'_>) -> OsInfo {
    let (from, to) = (&deltas.data.begin.host, &deltas.data.end.host);
    // Hosts that are merged stall side by side.
    let hosts_s = deltas.window.elapsed_s * to.hosts.max(1) as f64;
    let moved = cpu_delta_ns(from, to);
    OsInfo {
        cpus_count: to.cpus.map_or_else(Figure::default, Figure::Count),
        cpu_s: cpu_seconds(moved.as_ref()),
        cpu_pct: cpu_shares(moved.as_ref()),
        load_begin: load(from),
        load_end: load(to),
        context_switches_count: delta(from.context_switches, to.context_switches),
        procs_running_end_count: to.procs_running.map_or_else(Figure::default, Figure::Count),
        memory_bytes: gauges(&from.memory_bytes, &to.memory_bytes),
        psi: moved_by_name(&from.psi_ns, &to.psi_ns)
            .into_iter()
            .map(|(name, ns)| {
                let row = PsiRow { total_us: ns.scaled(1e-3), share_pct: ns.scaled(1e-7).per(hosts_s, NO_WINDOW) };
                (name, row)
            })
            .collect(),
        vmstat_count: moved_by_name(&from.vmstat, &to.vmstat),
        disk: disks(deltas),
        net: nets(from, to),
        process: process(from, to),
        cgroup_throttled_us: delta(from.cgroup_throttled_ns, to.cgroup_throttled_ns).scaled(1e-3),
    }
}

fn cpu_seconds(moved: Option<&[u64; 10]>) -> BTreeMap<String, Figure> {
    let Some(moved) = moved else {
        return BTreeMap::new();
    };
    CPU_COLUMNS.iter().zip(moved).map(|(name, ns)| ((*name).to_owned(), Figure::decimal(*ns as f64 / 1e9))).collect()
}

fn cpu_shares(moved: Option<&[u64; 10]>) -> BTreeMap<String, Figure> {
    let share = |ns: u64| match moved.map(cpu_total_ns) {
        None => Figure::na(NO_SOURCE),
        Some(0) => Figure::na(NO_WINDOW),
        Some(total) => Figure::decimal(100.0 * ns as f64 / total as f64),
    };
    let c = moved.copied().unwrap_or([0; 10]);
    [
        ("user", c[0] + c[1]),
        ("system", c[2] + c[5] + c[6]),
        ("iowait", c[4]),
        ("steal", c[7]),
        ("idle", c[3]),
        ("idle_awr", c[3] + c[4]),
        ("busy", c[0] + c[1] + c[2] + c[5] + c[6] + c[7]),
    ]
    .into_iter()
    .map(|(name, ns)| (name.to_owned(), share(ns)))
    .collect()
}

fn load(host: &HostReading) -> Vec<Figure> {
    match host.load {
        Some(load) => load.into_iter().map(Figure::decimal).collect(),
        None => vec![Figure::default(); 3],
    }
}

fn gauges(from: &BTreeMap<String, u64>, to: &BTreeMap<String, u64>) -> BTreeMap<String, GaugeRow> {
    let figure = |value: Option<&u64>| value.map_or_else(Figure::default, |v| Figure::Count(*v));
    from.keys()
        .chain(to.keys())
        .map(|name| {
            let row = GaugeRow { begin: figure(from.get(name)), end: figure(to.get(name)) };
            (name.clone(), row)
        })
        .collect()
}

fn moved_by_name(from: &BTreeMap<String, u64>, to: &BTreeMap<String, u64>) -> BTreeMap<String, Figure> {
    to.iter().map(|(name, now)| (name.clone(), delta(from.get(name).copied(), Some(*now)))).collect()
}

fn disks(deltas: &Deltas<'_>) -> Vec<DiskRow> {
    let elapsed_ns = deltas.window.elapsed_s * 1e9;
    let each_us = |ns: u64, count: u64| micros(ns).per(count as f64, "no requests");
    disk_deltas(&deltas.data.begin.host, &deltas.data.end.host)
        .into_iter()
        .map(|d| DiskRow {
            reads_count: d.reads,
            read_merges_count: d.read_merges,
            read_bytes: d.read_bytes,
            read_us_avg: each_us(d.read_ns, d.reads),
            writes_count: d.writes,
            write_merges_count: d.write_merges,
            write_bytes: d.write_bytes,
            write_us_avg: each_us(d.write_ns, d.writes),
            flushes_count: d.flushes,
            flush_us_avg: each_us(d.flush_ns, d.flushes),
            busy_pct: busy_pct(&d, elapsed_ns, NO_WINDOW),
            queue_mean_count: Figure::decimal(d.weighted_ns as f64).per(elapsed_ns, NO_WINDOW),
            name: d.name,
        })
        .collect()
}

fn nets(from: &HostReading, to: &HostReading) -> Vec<NetRow> {
    to.nets
        .iter()
        .filter_map(|now| {
            let then = from.nets.iter().find(|net| net.name == now.name)?;
            Some(NetRow {
                name: now.name.clone(),
                rx_bytes: now.rx_bytes.saturating_sub(then.rx_bytes),
                rx_packets_count: now.rx_packets.saturating_sub(then.rx_packets),
                tx_bytes: now.tx_bytes.saturating_sub(then.tx_bytes),
                tx_packets_count: now.tx_packets.saturating_sub(then.tx_packets),
                errors_count: now.errors.saturating_sub(then.errors),
            })
        })
        .collect()
}

fn process(from: &HostReading, to: &HostReading) -> ProcessInfo {
    let gauge = |value: Option<u64>| value.map_or_else(Figure::default, Figure::Count);
    ProcessInfo {
        read_bytes: delta(from.process_read_bytes, to.process_read_bytes),
        write_bytes: delta(from.process_write_bytes, to.process_write_bytes),
        cpu_s: delta(from.process_cpu_ns, to.process_cpu_ns).scaled(1e-9),
        rss_bytes: GaugeRow { begin: gauge(from.process_rss_bytes), end: gauge(to.process_rss_bytes) },
    }
}
