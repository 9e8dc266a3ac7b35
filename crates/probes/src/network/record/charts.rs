//! Charts of a network.

use super::info::{IntervalInfo, IntervalStream, NetworkInfo, rate};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, ORANGE, nth};

/// All of them.
pub(super) fn all(info: &NetworkInfo) -> Vec<Drawn> {
    let mut all = vec![rates(info)];
    if !info.is_udp() && info.way(true).next().is_some() {
        all.push(of_tcp(info, "c-cwnd", "Congestion window", "KiB", &|stream| {
            Some(stream.cwnd_bytes? as f64 / 1024.0)
        }));
        all.push(of_tcp(info, "c-rtt", "Round trip under load", "ms", &|stream| Some(stream.rtt_us? as f64 / 1e3)));
        all.push(of_tcp(info, "c-retr", "Segments sent again", "", &|stream| Some(stream.retransmits? as f64)));
    }
    all
}

fn over_time(info: &NetworkInfo, id: &str, title: &str, y: Axis) -> Chart {
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis::of("time", "s"),
        y,
        rows: Rows::Numbers(info.measured().map(|interval| interval.end_s).collect()),
        ..Chart::default()
    }
}

fn rates(info: &NetworkInfo) -> Drawn {
    let y = Axis::of("rate", "Mbit/s");
    let mut chart = over_time(info, "c-rate", "Rate by interval", y);
    chart.note = "What this side sent and received between two readings, all streams.".to_owned();
    for (way, name, color) in [(true, "sent", BLUE), (false, "received", ORANGE)] {
        let of = |interval: &IntervalInfo| {
            let is_there = info.way(way).next().is_some();
            is_there.then(|| rate(interval.bytes(info.way(way)), interval.seconds()) / 1e6)
        };
        chart.traces.push(Trace::new(name, Stroke::Line, color, info.measured().map(of).collect()));
    }
    Drawn::or(chart, "no interval ended")
}

fn of_tcp(
    info: &NetworkInfo,
    id: &str,
    title: &str,
    unit: &str,
    get: &dyn Fn(&IntervalStream) -> Option<f64>,
) -> Drawn {
    let mut chart = over_time(info, id, title, Axis::of(&title.to_lowercase(), unit));
    chart.note = "From the sender's kernel at the end of each interval (TCP_INFO).".to_owned();
    for (at, stream) in info.way(true).take(8) {
        let y = info.measured().map(|interval| get(interval.streams.get(at)?)).collect();
        chart.traces.push(Trace::new(&format!("stream {}", stream.id), Stroke::Line, nth(at), y));
    }
    Drawn::or(chart, "no interval ended")
}
