//! The headline of a network: the received rate, its CPU cost, its steadiness, what limits it.

use super::info::{NetworkInfo, StreamInfo, rate};
use super::limit;
use super::metrics::{busiest, exact_loss, side_of};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Next, beside, rerun_command};
use assay_measure::record::{Figure, Record};
use assay_measure::units::{fixed, many, size};

const NOT_TOLD: &str = "n/a (the other end did not report it)";

fn words(title: &'static str, text: String) -> HeadlineLine {
    HeadlineLine::of(title, Vec::new(), &text)
}

/// `TCP, 4 streams, both ways`
pub(super) fn test(info: &NetworkInfo) -> String {
    let way = match (info.is_bidirectional, info.is_reverse) {
        (true, _) => "both directions at once",
        (false, true) => "from the other host to this one",
        (false, false) => "from this host to the other",
    };
    format!("{}, {} {way}", info.protocol.to_uppercase(), many(info.streams_count, "stream"))
}

/// The headline of a network.
pub(super) fn of(record: &Record, info: &NetworkInfo) -> Headline {
    let place =
        if info.host == info.address { info.address.clone() } else { format!("{} ({})", info.host, info.address) };
    let loop_back = if info.is_loopback { ", on this host's loopback" } else { "" };
    let mut rows = Vec::new();
    for way in info.ways() {
        rows.push(arrived(info, way));
    }
    for way in info.ways() {
        let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
        if info.is_udp() { rows.push(lost(info, way, &streams)) } else { rows.push(sent(info, way, &streams)) }
    }
    rows.push(cpus(info));
    Headline {
        tested: format!("{}; {place}, port {}{loop_back}, for {} s.", test(info), info.port, fixed(info.elapsed_s, 1)),
        rows,
        steadiness: steadiness(record),
        limit: limit::of(record, info),
        next: next(record, info),
        rerun_command: rerun_command(record),
        ..Headline::default()
    }
}

fn title(info: &NetworkInfo, way: bool, one: &'static str, there: &'static str, here: &'static str) -> &'static str {
    match (info.is_bidirectional, way) {
        (false, _) => one,
        (true, true) => there,
        (true, false) => here,
    }
}

fn arrived(info: &NetworkInfo, way: bool) -> HeadlineLine {
    let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
    let got = side_of(&streams, false);
    let sent = side_of(&streams, true);
    let told = got.map_or_else(Vec::new, |got| {
        let bits = rate(got.bytes, got.seconds);
        vec![
            HeadlineFigure::new(&Figure::decimal(bits / 1e6), "Mbit/s"),
            HeadlineFigure::new(&Figure::decimal(bits / 8.0 / 1_048_576.0), "MiB/s"),
        ]
    });
    let otherwise = match sent {
        Some(sent) => format!(
            "n/a (the other end did not report it; {} Mbit/s were sent)",
            fixed(rate(sent.bytes, sent.seconds) / 1e6, 1)
        ),
        None => NOT_TOLD.to_owned(),
    };
    HeadlineLine::of(title(info, way, "Arrived", "Arrived there", "Arrived here"), told, &otherwise)
}

fn sent(info: &NetworkInfo, way: bool, streams: &[&StreamInfo]) -> HeadlineLine {
    let title = title(info, way, "TCP", "TCP there", "TCP here");
    let Some(sent) = side_of(streams, true) else {
        return words(title, NOT_TOLD.to_owned());
    };
    let mut parts = Vec::new();
    if let Some(again) = sent.retransmits {
        parts.push(format!("{again} segments retransmitted"));
    }
    if let Some([least, mean, most]) = sent.rtt_us {
        let ms = |us: u64| fixed(us as f64 / 1e3, 2);
        parts.push(format!("round trip {} to {} ms, mean {}", ms(least), ms(most), ms(mean)));
    }
    if let Some(window) = sent.cwnd_max_bytes {
        parts.push(format!("window up to {}", size(window)));
    }
    if parts.is_empty() {
        parts.push(NOT_TOLD.to_owned());
    }
    words(title, parts.join(", "))
}

fn lost(info: &NetworkInfo, way: bool, streams: &[&StreamInfo]) -> HeadlineLine {
    let title = title(info, way, "Lost", "Lost there", "Lost here");
    let got = side_of(streams, false);
    let jitter = got.as_ref().map(|got| format!(", jitter {} ms", fixed(1e3 * got.jitter_s, 3)));
    let jitter = jitter.unwrap_or_default();
    let pct = |lost: u64, all: u64| fixed(100.0 * lost as f64 / all.max(1) as f64, 3);
    let text = match (exact_loss(streams), &got) {
        (Some((lost, sent)), _) => format!("{lost} of {sent} datagrams sent ({} %){jitter}", pct(lost, sent)),
        (None, Some(got)) => format!(
            "{} of {} datagrams ({} %) by iperf3's count, which misses those lost at the end{jitter}",
            got.lost,
            got.datagrams,
            pct(got.lost, got.datagrams)
        ),
        (None, None) => NOT_TOLD.to_owned(),
    };
    words(title, text)
}

fn cpus(info: &NetworkInfo) -> HeadlineLine {
    let side = |name: &str, total: Option<f64>, thread: Option<f64>| {
        let total = total?;
        let busiest = thread.map_or_else(String::new, |pct| format!(", busiest stream {} %", fixed(pct, 0)));
        Some(format!("{name} {} % of one{busiest}", fixed(total, 0)))
    };
    let local = busiest(info.native_local.as_ref());
    let remote = busiest(info.native_remote.as_ref());
    let parts =
        [side("here", Some(info.cpu_local.total), local), side("there", info.cpu_remote.map(|cpu| cpu.total), remote)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    words("CPU", parts.join("; "))
}

fn steadiness(record: &Record) -> String {
    const FEW: f64 = 3.0;
    let of = &record.checks.steadiness;
    let (Some(steps), Some(cv), Some(trend)) =
        (of.steps_count.value(), of.variation_ratio.value(), of.last_over_first_ratio.value())
    else {
        return "n/a (fewer than two intervals)".to_owned();
    };
    if steps < FEW {
        return "n/a (fewer than three intervals)".to_owned();
    }
    let told = format!(
        "intervals vary by {} % of their mean, the last quarter is {} % of the first",
        fixed(100.0 * cv, 1),
        fixed(100.0 * trend, 0)
    );
    if cv <= 0.05 && (0.9..=1.1).contains(&trend) { format!("steady: {told}") } else { format!("not steady: {told}") }
}

fn next(record: &Record, info: &NetworkInfo) -> Vec<Next> {
    let again = beside(record, "net", &info.host, &["PORT", "SECRET_FILE"]);
    let mut all = Vec::new();
    if info.streams_count == 1 && !info.is_udp() {
        all.push(Next::new(
            format!("{again} --parallel 4"),
            "shows whether a platform caps each stream or all together",
        ));
    }
    if !info.is_bidirectional && !info.is_reverse {
        all.push(Next::new(format!("{again} --reverse"), "measures the reverse direction"));
    }
    all.push(Next::new(
        beside(record, "ping", &info.host, &[]),
        "measures what a commit waits for: the round trip, not the rate",
    ));
    all
}
