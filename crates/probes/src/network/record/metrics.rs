//! The figures: the keys are those of an imported iperf3, so that both compare, and a few that only assay has.

use super::info::{NetworkInfo, StreamInfo, rate};
use crate::network::lines::sum;
use crate::network::results::{Native, StreamEnd};
use assay_measure::plain::slug;
use assay_measure::record::metric::{Better, Group, of_key, plain};
use assay_measure::record::{Figure, Metric};

/// All of them, the receivers' rates first: only received data counts.
pub(super) fn all(info: &NetworkInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    for way in info.ways() {
        let role = match (info.is_bidirectional, way) {
            (false, _) => "",
            (true, true) => "TX-C ",
            (true, false) => "RX-C ",
        };
        let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
        for (side, is_sender) in [("receiver", false), ("sender", true)] {
            let scope = format!("{role}{side}");
            match side_of(&streams, is_sender) {
                Some(end) => all.extend(of_side(info, &scope, &end, way)),
                None => all.push(missing(info, &scope)),
            }
        }
        if info.is_udp() {
            all.extend(exact(&streams, &format!("{role}receiver")));
        }
    }
    all.extend(of_cpus(info));
    if info.max_segment_bytes > 0 {
        let bytes = Figure::Count(info.max_segment_bytes);
        all.push(metric(Group::Imported, "", "tcp_mss_bytes", "TCP segment", bytes));
    }
    all
}

/// All streams of a side as one; nothing where one is not known.
pub(super) fn side_of(streams: &[&StreamInfo], is_sender: bool) -> Option<StreamEnd> {
    let of = |stream: &&StreamInfo| if is_sender { stream.sent.clone() } else { stream.received.clone() };
    let all: Option<Vec<StreamEnd>> = streams.iter().map(of).collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(sum(&all.iter().collect::<Vec<_>>()))
}

fn metric(group: Group, scope: &str, key: &str, name: &str, value: Figure) -> Metric {
    let (unit, better) = of_key(key);
    Metric { scope: scope.to_owned(), layer: "network".to_owned(), ..plain(group, key, name, unit, better, value) }
}

fn missing(info: &NetworkInfo, scope: &str) -> Metric {
    let key = format!("{}_throughput_bits_per_s_mean", info.protocol);
    let why = "the test was stopped before the other end reported";
    metric(Group::Imported, scope, &key, &format!("rate, {scope}"), Figure::na(why))
}

/// The keys of a side under its protocol.
struct Side<'a> {
    info: &'a NetworkInfo,
    scope: &'a str,
    all: Vec<Metric>,
}

impl Side<'_> {
    fn put(&mut self, group: Group, key: &str, name: &str, value: Figure) {
        let key = format!("{}_{key}", self.info.protocol);
        let name = format!("{name}, {}", self.scope);
        self.all.push(metric(group, self.scope, &key, &name, value));
    }

    fn count(&mut self, key: &str, name: &str, count: Option<u64>) {
        if let Some(count) = count {
            self.put(Group::Imported, key, name, Figure::Count(count));
        }
    }
}

fn of_side(info: &NetworkInfo, scope: &str, end: &StreamEnd, way: bool) -> Vec<Metric> {
    let group = if end.is_sender { Group::Imported } else { Group::Primary };
    let mut side = Side { info, scope, all: Vec::new() };
    let bits = Figure::decimal(rate(end.bytes, end.seconds));
    side.put(group, "throughput_bits_per_s_mean", "rate", bits);
    let role = match (info.is_bidirectional, way) {
        (false, _) => String::new(),
        (true, true) => format!("_{}", slug("TX-C")),
        (true, false) => format!("_{}", slug("RX-C")),
    };
    let series = format!("{}_throughput_bits_per_s{role}", info.protocol);
    side.all[0].series = Some(series);
    side.put(Group::Imported, "interval_s", "time", Figure::decimal(end.seconds));
    let rtt = |at: usize| end.rtt_us.map(|rtt| rtt[at]);
    for (key, name, count) in [
        ("moved_bytes", "moved", Some(end.bytes)),
        ("retransmits_count", "segments retransmitted", end.retransmits),
        ("cwnd_bytes_max", "largest congestion window", end.cwnd_max_bytes),
        ("rtt_us_min", "shortest sampled round trip", rtt(0)),
        ("rtt_us_avg", "mean sampled round trip", rtt(1)),
        ("rtt_us_max", "longest sampled round trip", rtt(2)),
        ("retransmitted_bytes", "sent again", end.bytes_retransmitted),
        ("rtt_floor_us", "shortest round trip the kernel saw", end.min_rtt_us),
    ] {
        side.count(key, name, count);
    }
    if info.is_udp() {
        side.count("datagrams_count", "datagrams", Some(end.datagrams));
    }
    if info.is_udp() && !end.is_sender {
        let pct = Figure::decimal(100.0 * end.lost as f64).per(end.datagrams as f64, "nothing arrived");
        side.put(Group::Primary, "jitter_us_mean", "jitter", Figure::decimal(1e6 * end.jitter_s));
        side.put(Group::Imported, "lost_pct", "lost by iperf3's count", pct);
        side.count("lost_count", "lost by iperf3's count", Some(end.lost));
        side.count("out_of_order_count", "out of order", Some(end.out_of_order));
    }
    side.all
}

/// What was sent less what arrived, each datagram once.
pub(super) fn exact_loss(streams: &[&StreamInfo]) -> Option<(u64, u64)> {
    let pair = |stream: &&StreamInfo| {
        let sent = stream.sent.as_ref()?.datagrams_in_all?;
        let unique = stream.received.as_ref()?.unique_in_all?;
        Some((sent.saturating_sub(unique), sent))
    };
    let all: Option<Vec<(u64, u64)>> = streams.iter().map(pair).collect();
    let all = all?;
    Some((all.iter().map(|pair| pair.0).sum(), all.iter().map(|pair| pair.1).sum()))
}

fn exact(streams: &[&StreamInfo], scope: &str) -> Vec<Metric> {
    let why = "the other end is not assay, or was not asked";
    let (lost, pct) = match exact_loss(streams) {
        Some((lost, sent)) => {
            (Figure::Count(lost), Figure::decimal(100.0 * lost as f64).per(sent as f64, "nothing was sent"))
        }
        None => (Figure::na(why), Figure::na(why)),
    };
    let lower = |metric: Metric| Metric { better: Better::Lower, ..metric };
    let key = "udp_lost_exact_pct";
    vec![
        lower(metric(Group::Primary, scope, key, &format!("lost of those sent, {scope}"), pct)),
        lower(metric(Group::Imported, scope, "udp_lost_exact_count", &format!("lost of those sent, {scope}"), lost)),
    ]
}

/// The busiest thread of a side, % of a CPU.
pub(super) fn busiest(native: Option<&Native>) -> Option<f64> {
    let native = native?;
    let shares = native.streams.iter().filter_map(|stream| {
        let share = 100.0 * stream.cpu_s? / stream.seconds;
        Some(share).filter(|share| share.is_finite())
    });
    shares.max_by(f64::total_cmp)
}

fn of_cpus(info: &NetworkInfo) -> Vec<Metric> {
    let known = |value: Option<f64>, why: &str| Figure::known(value, why);
    let told = "the other end did not report it";
    let remote = info.cpu_remote.map(|cpu| cpu.total);
    let mut all = Vec::new();
    for (scope, total, native) in
        [("local", Some(info.cpu_local.total), &info.native_local), ("remote", remote, &info.native_remote)]
    {
        let thread = known(busiest(native.as_ref()), told);
        for (key, name, value) in [
            ("network_cpu_pct", "CPU of the process", known(total, told)),
            ("network_thread_cpu_pct_max", "CPU of the busiest stream", thread),
        ] {
            all.push(metric(Group::Imported, scope, key, &format!("{name}, {scope}"), value));
        }
    }
    all
}
