//! The first things to know of round trips.

use super::info::{LoadedInfo, PingInfo};
use assay_measure::cpu;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, beside, rerun_command};
use assay_measure::record::{Figure, Latency, Record};
use assay_measure::section::number;
use assay_measure::units::{fixed, told};

fn words(title: &'static str, text: String) -> HeadlineLine {
    HeadlineLine::of(title, Vec::new(), &text)
}

/// The method, and where it goes.
pub(super) fn method(info: &PingInfo) -> String {
    let place =
        if info.host == info.address { info.address.clone() } else { format!("{} ({})", info.host, info.address) };
    match info.port {
        0 => format!("{} to {place}", info.method),
        port => format!("{} to {place}, port {port}", info.method),
    }
}

fn figures(latency: &Latency) -> Vec<HeadlineFigure> {
    let all = [(&latency.us_p50, "us median"), (&latency.us_p99, "us p99"), (&latency.us_max, "us at most")];
    all.into_iter().map(|(figure, unit)| HeadlineFigure::new(figure, unit)).collect()
}

/// The headline.
pub(super) fn of(record: &Record, info: &PingInfo) -> Headline {
    let none = "n/a (no request was answered)";
    let pace = match info.rate_per_s {
        0.0 => "each after the previous reply".to_owned(),
        rate => format!("{} per second on schedule", fixed(rate, if rate < 10.0 { 1 } else { 0 })),
    };
    let mut rows = vec![HeadlineLine::of("Round trip", figures(&info.service), none)];
    rows.push(HeadlineLine::of("Since due", figures(&info.response), none));
    if !info.server.hist_ns.is_empty() {
        rows.push(HeadlineLine::of("Without server", figures(&info.network), none));
    }
    rows.extend(info.loaded.as_ref().map(|loaded| under_load(info, loaded)));
    rows.push(words(
        "ping's figures",
        format!(
            "min/avg/max/mdev {}/{}/{}/{} us",
            number(&info.service.us_min, 0),
            number(&info.ping_us_avg, 0),
            number(&info.service.us_max, 0),
            number(&info.ping_us_mdev, 0)
        ),
    ));
    rows.push(words("Lost", format!("{} of {} ({} %)", info.lost_count, info.sent_count, number(&info.lost_pct(), 3))));
    rows.push(words(
        "Slow",
        format!("{} above 1 ms, {} above 10 ms, {} above 100 ms", info.above_ms[0], info.above_ms[1], info.above_ms[2]),
    ));
    Headline {
        tested: format!(
            "{}: {} requests of {} bytes, {pace}, for {} s.",
            method(info),
            info.sent_count,
            info.size_bytes,
            fixed(info.elapsed_s, 1)
        ),
        rows,
        steadiness: steadiness(record, info),
        limit: limit(record, info),
        next: next(record, info),
        rerun_command: rerun_command(record),
        ..Headline::default()
    }
}

/// What a stream beside them does to the requests.
fn under_load(info: &PingInfo, loaded: &LoadedInfo) -> HeadlineLine {
    let mut told = figures(&loaded.service);
    if let Some(bits_per_s) = loaded.stream_bits_per_s.value() {
        told.push(HeadlineFigure::new(&Figure::decimal(bits_per_s / 1e6), "Mbit/s beside it"));
    }
    let without_us = info.service.us_p50.value().unwrap_or_default();
    let times = loaded.service.us_p50.per(without_us, "no median without it");
    if times.value().is_some() {
        told.push(HeadlineFigure::new(&times, "times the median without"));
    }
    HeadlineLine::of("Under load", told, "n/a (no request was answered beside the stream)")
}

/// Whose time a round trip is.
fn limit(record: &Record, info: &PingInfo) -> Limit {
    if let Some(limit) = cpu::limit(record) {
        return limit;
    }
    let whole = info.service.us_p50.value();
    let server = info.server.us_p50.value();
    match (whole, server) {
        (Some(whole), Some(server)) if server > whole / 2.0 => Limit::new(
            "the server, which takes most of a round trip",
            format!(
                "It holds a request for {} of {}; the network and both kernels take {}.",
                told(server, "us", 0),
                told(whole, "us", 0),
                info.network.us_p50.value().map_or_else(|| "n/a".to_owned(), |us| told(us, "us", 0))
            ),
        ),
        (Some(whole), _) => Limit::new(
            "the network in both directions",
            format!(
                "One session at a time gets at most {} round trips per second; {}.",
                fixed(1e6 / whole, 0),
                info.holds
            ),
        ),
        (None, _) => Limit::unknown("too few requests were answered"),
    }
}

fn steadiness(record: &Record, info: &PingInfo) -> String {
    let of = &record.checks.steadiness;
    let (Some(cv), Some(trend)) = (of.variation_ratio.value(), of.last_over_first_ratio.value()) else {
        return "n/a (fewer than three seconds with replies)".to_owned();
    };
    let told = format!(
        "the medians of the seconds vary by {} % of their mean, the last quarter is {} % of the first",
        fixed(100.0 * cv, 1),
        fixed(100.0 * trend, 0)
    );
    let spikes = match (info.service.us_max.value(), info.service.us_p50.value()) {
        (Some(most), Some(middle)) if most > 20.0 * middle => "; single replies take far longer",
        _ => "",
    };
    if cv <= 0.10 && (0.9..=1.1).contains(&trend) {
        format!("steady: {told}{spikes}")
    } else {
        format!("not steady: {told}{spikes}")
    }
}

fn next(record: &Record, info: &PingInfo) -> Vec<Next> {
    let keep = ["METHOD", "PORT", "SECRET_FILE"];
    let again = beside(record, "ping", &info.host, &keep);
    let echo = beside(record, "ping", &info.host, &keep[1..]);
    let mut all = Vec::new();
    if !info.method.ends_with("echo") {
        all.push(Next::new(
            format!("{echo} --method tcp-echo --reply 0 --size 8192"),
            "against `assay ping server` on that host: what a commit waits for",
        ));
    }
    if Figure::Count(info.sent_count).value() < Some(10_000.0) {
        all.push(Next::new(format!("{again} --time 60s"), "shows the rare slow replies: p99.9 needs ten thousand"));
    }
    if info.loaded.is_none() {
        all.push(Next::new(
            format!("{again} --load 5201"),
            "beside a stream to `assay net server` on that host: what a backup does to a commit",
        ));
    }
    all.push(Next::new(beside(record, "net", &info.host, &[]), "measures the throughput of the network"));
    all
}
