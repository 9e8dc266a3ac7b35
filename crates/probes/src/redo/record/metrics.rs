//! The metrics of a redo test: those that a report of oratcptest has under the keys of its import, and more.

use super::demand;
use super::info::{RedoInfo, StandbyInfo};
use assay_measure::record::metric::{Better, Group, lower, plain};
use assay_measure::record::{Figure, Latency, Metric};

/// Percentiles of a latency under a stem.
fn latency(group: Group, stem: &str, name: &str, of: &Latency) -> Vec<Metric> {
    let figures = [
        ("avg", &of.us_avg),
        ("p50", &of.us_p50),
        ("p90", &of.us_p90),
        ("p99", &of.us_p99),
        ("p999", &of.us_p999),
        ("max", &of.us_max),
    ];
    let of =
        |(end, figure): (&str, &Figure)| lower(group, &format!("{stem}_us_{end}"), &format!("{name} {end}"), figure);
    figures.into_iter().map(of).collect()
}

pub(super) fn all(info: &RedoInfo) -> Vec<Metric> {
    let mut all = rates(info);
    if info.mode != "async" {
        // Where commits share messages, a message's time is not a commit's.
        let (stem, name) =
            if demand::is_grouped(info) { ("redo_commit", "commit") } else { ("redo_transport", "message") };
        if let Some(standby) = info.standbys.first().filter(|_| stem == "redo_commit") {
            let of = &standby.total;
            all.extend(latency(Group::Operation, "redo_transport", "message", of));
        }
        let commits = latency(Group::Operation, stem, name, &info.commit);
        all.extend(commits.into_iter().map(|mut metric| {
            if metric.key.ends_with("_avg") || metric.key.ends_with("_p99") {
                (metric.group, metric.is_primary) = (Group::Primary, true);
            }
            metric
        }));
    }
    let is_one = info.standbys.len() == 1;
    for standby in &info.standbys {
        let scope = if is_one { "" } else { standby.name.as_str() };
        scoped(&mut all, scope, of_standby(info, standby));
    }
    for row in info.rules.iter().filter(|_| !is_one) {
        let of_rule = latency(Group::Operation, "redo_commit", "commit", &row.latency);
        scoped(&mut all, &row.rule, of_rule);
    }
    for row in &info.modes {
        let of_mode = latency(Group::Storage, "redo_write_mode", "disk-write", &row.disk);
        scoped(&mut all, &row.mode, of_mode);
    }
    all.extend(local(info));
    all.extend(demand::metrics(info));
    if let Some(cap) = &info.cap {
        let value = Figure::decimal(cap.per_s);
        all.push(plain(Group::Storage, "redo_cap_per_s", "cap on messages", "1/s", Better::Higher, value));
    }
    let cpu = info.cpu_s.scaled(1e6);
    let cpu = cpu.per(info.messages_count as f64, "no messages");
    let name = "CPU of the primary per message";
    all.push(lower(Group::Host, "redo_client_cpu_us", name, &cpu));
    let of_client = |metric: Metric| Metric { layer: "client".to_owned(), ..metric };
    all.into_iter().map(of_client).collect()
}

fn scoped(all: &mut Vec<Metric>, scope: &str, metrics: Vec<Metric>) {
    all.extend(metrics.into_iter().map(|metric| Metric { scope: scope.to_owned(), ..metric }));
}

fn rates(info: &RedoInfo) -> Vec<Metric> {
    let elapsed = info.elapsed_s.value().unwrap_or(0.0);
    let per_s = |count: u64| Figure::Count(count).per(elapsed, "no time passed");
    let bytes: u64 = info.seconds.iter().map(|second| second.bytes).sum();
    let rate = |key: &str, name: &str, unit: &str, group, value| Metric {
        series: Some(key.to_owned()),
        ..plain(group, key, name, unit, Better::Higher, value)
    };
    let (messages, throughput) = ("redo_transport_per_s", "redo_transport_bytes_per_s");
    vec![
        rate(messages, "messages", "1/s", Group::Primary, per_s(info.messages_count)),
        rate(throughput, "throughput, including headers", "bytes/s", Group::Operation, per_s(bytes)),
        plain(
            Group::Operation,
            "redo_transport_message_bytes",
            "message payload",
            "bytes",
            Better::Neither,
            if demand::is_grouped(info) { info.group_bytes_avg.clone() } else { Figure::Count(info.length_bytes) },
        ),
    ]
}

fn local(info: &RedoInfo) -> Vec<Metric> {
    if info.local == "none" {
        return Vec::new();
    }
    let rows = [
        ("redo_local_write", "local log write", &info.local_write),
        ("redo_serial_commit", "commit, local then remote", &info.serial),
        ("redo_parallel_commit", "commit, local and remote at once", &info.parallel),
    ];
    let rows = rows.into_iter();
    rows.flat_map(|(key, name, of)| latency(Group::Operation, key, name, of)).collect()
}

/// What one of several consumed, where each has a stream of its own.
fn stream_to(standby: &StandbyInfo) -> Vec<Metric> {
    let rate = |key: &str, name: &str, unit: &str, value: &Figure| {
        let value = value.clone();
        plain(Group::Operation, key, name, unit, Better::Higher, value)
    };
    let (messages, throughput) = ("redo_standby_per_s", "redo_standby_bytes_per_s");
    let name = "throughput, including headers";
    vec![rate(messages, "messages", "1/s", &standby.per_s), rate(throughput, name, "bytes/s", &standby.bytes_per_s)]
}

fn of_standby(info: &RedoInfo, standby: &StandbyInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    let is_sync = info.mode != "async";
    if !is_sync && info.standbys.len() > 1 {
        all.extend(stream_to(standby));
    }
    if is_sync && info.standbys.len() > 1 {
        all.extend(latency(Group::Operation, "redo_standby", "message", &standby.total));
    }
    if is_sync {
        all.extend(latency(Group::Operation, "redo_transport_network", "network", &standby.network));
        all.extend(latency(Group::Operation, "redo_transport_server", "standby", &standby.server));
    }
    if standby.write_mode != "none" {
        all.extend(latency(Group::Storage, "redo_transport_disk_write", "disk-write", &standby.disk));
    }
    all.push(plain(
        Group::Operation,
        "socket_send_buffer_bytes",
        "socket send buffer at the end",
        "bytes",
        Better::Neither,
        standby.send_buffer_bytes.clone(),
    ));
    all.push(lower(Group::Operation, "rtt_us", "round trip measured by TCP", &standby.rtt_us));
    all.push(plain(
        Group::Operation,
        "tcp_retransmits_count",
        "segments retransmitted",
        "count",
        Better::Lower,
        standby.retransmits_count.clone(),
    ));
    let cpu = standby.cpu_s.scaled(1e6).per(standby.messages_count as f64, "no messages");
    all.push(lower(Group::Host, "redo_server_cpu_us", "CPU of the standby per message", &cpu));
    all
}
