//! The figures: the keys are those of an imported ping, so that both compare, and a few that only assay has.

use super::info::{LoadedInfo, PingInfo};
use assay_measure::record::metric::{Better, Group, lower, of_key, plain};
use assay_measure::record::{Figure, Latency, Metric};

fn metric(group: Group, key: &str, name: &str, value: Figure) -> Metric {
    let (unit, better) = of_key(key);
    Metric { layer: "network".to_owned(), ..plain(group, key, name, unit, better, value) }
}

/// The percentiles of a distribution under a stem.
fn percentiles(group: Group, stem: &str, name: &str, of: &Latency, p9999: Option<&Figure>) -> Vec<Metric> {
    let mut all: Vec<Metric> = [
        ("avg", &of.us_avg),
        ("min", &of.us_min),
        ("p50", &of.us_p50),
        ("p90", &of.us_p90),
        ("p99", &of.us_p99),
        ("p999", &of.us_p999),
        ("max", &of.us_max),
    ]
    .into_iter()
    .map(|(suffix, figure)| lower(group, &format!("{stem}_us_{suffix}"), &format!("{name} {suffix}"), figure))
    .collect();
    all.extend(p9999.map(|figure| lower(group, &format!("{stem}_us_p9999"), &format!("{name} p9999"), figure)));
    all
}

fn counts(info: &PingInfo) -> Vec<Metric> {
    let per_s = Figure::Count(info.received_count).per(info.elapsed_s, "no time passed");
    let mut all = vec![metric(Group::Operation, "rtt_per_s", "replies", per_s)];
    for (key, name, count) in [
        ("packets_sent_count", "requests sent", info.sent_count),
        ("packets_received_count", "requests answered", info.received_count),
        ("packets_lost_count", "requests lost", info.lost_count),
        ("packets_duplicate_count", "replies too late or twice", info.strays_count),
        ("rtt_above_1ms_count", "round trips above 1 ms", info.above_ms[0]),
        ("rtt_above_10ms_count", "round trips above 10 ms", info.above_ms[1]),
        ("rtt_above_100ms_count", "round trips above 100 ms", info.above_ms[2]),
    ] {
        all.push(metric(Group::Imported, key, name, Figure::Count(count)));
    }
    all.push(lower(Group::Imported, "rtt_us_mdev", "mdev, as ping computes it", &info.ping_us_mdev));
    all
}

/// The same beside a stream, and what the stream carried.
fn loaded(of: &LoadedInfo) -> Vec<Metric> {
    let group = Group::Operation;
    let mut all = percentiles(group, "rtt", "round trip", &of.service, None);
    all.extend(percentiles(group, "rtt_response", "since due", &of.response, None));
    let count = |count| Figure::Count(count);
    all.extend([
        metric(group, "tcp_throughput_bits_per_s_mean", "the stream", of.stream_bits_per_s.clone()),
        metric(Group::Imported, "packets_sent_count", "requests sent", count(of.sent_count)),
        metric(Group::Imported, "packets_lost_count", "requests lost", count(of.lost_count)),
    ]);
    let scoped = |metric: Metric| Metric { scope: "loaded".to_owned(), ..metric };
    all.into_iter().map(scoped).collect()
}

/// All of them.
pub(super) fn all(info: &PingInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    for (key, name, figure) in [
        ("rtt_us_p50", "round trip p50", &info.service.us_p50),
        ("rtt_us_p99", "round trip p99", &info.service.us_p99),
        ("rtt_response_us_p99", "since due p99", &info.response.us_p99),
    ] {
        all.push(lower(Group::Primary, key, name, figure));
    }
    all.push(Metric { better: Better::Lower, ..metric(Group::Primary, "packets_lost_pct", "lost", info.lost_pct()) });
    let operation = Group::Operation;
    all.extend(percentiles(operation, "rtt", "round trip", &info.service, Some(&info.us_p9999)));
    let response = &info.response;
    all.extend(percentiles(operation, "rtt_response", "since due", response, Some(&info.response_us_p9999)));
    if !info.server.hist_ns.is_empty() {
        all.extend(percentiles(operation, "rtt_server", "within the server", &info.server, None));
        all.extend(percentiles(operation, "rtt_network", "without the server", &info.network, None));
    }
    all.extend(counts(info));
    all.extend(info.loaded.iter().flat_map(loaded));
    for metric in &mut all {
        "network".clone_into(&mut metric.layer);
    }
    all
}
