//! Charts of round trips.

use super::info::{PingInfo, SecondRow};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::histogram::slot_low_and_width_ns;
use assay_measure::palette::{BLUE, ORANGE, nth};
use assay_measure::record::Latency;

/// All of them.
pub(super) fn all(info: &PingInfo) -> Vec<Drawn> {
    vec![over_time(info), above(info)]
}

fn over_time(info: &PingInfo) -> Drawn {
    let mut chart = Chart {
        id: "c-rtt-time".to_owned(),
        title: "Round trip by second".to_owned(),
        note: "Median and slowest of each second, by when the requests were due.".to_owned(),
        x: Axis::of("time", "s"),
        y: Axis::log("round trip", "us"),
        rows: Rows::Numbers((1..=info.seconds.len()).map(|at| at as f64).collect()),
        ..Chart::default()
    };
    let of =
        |get: fn(&SecondRow) -> Option<f64>| info.seconds.iter().map(|row| get(row).filter(|us| *us > 0.0)).collect();
    chart.traces = vec![
        Trace::new("median", Stroke::Line, BLUE, of(|row| row.us_p50)),
        Trace::new("slowest", Stroke::Line, ORANGE, of(|row| row.us_max)),
        Trace::new("slowest since due", Stroke::Dotted, nth(2), of(|row| row.response_us_max)),
    ];
    Drawn::or(chart, "no second had a reply")
}

/// The share of requests above a time, from right to left.
fn above(info: &PingInfo) -> Drawn {
    let mut chart = Chart {
        id: "c-rtt-above".to_owned(),
        title: "Share of requests that took longer".to_owned(),
        note: "Both axes are logarithmic: a long tail is a line that extends to the right.".to_owned(),
        x: Axis::log("time", "us"),
        y: Axis::log("requests above it", "%"),
        ..Chart::default()
    };
    let trace = |name: &str, color, of: &Latency| {
        let all = of.hist_ns.count();
        let mut left = all;
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for (slot, count) in of.hist_ns.sparse() {
            left -= count.min(left);
            let (low, width) = slot_low_and_width_ns(slot as usize);
            x.push((low + width) as f64 / 1e3);
            y.push((left > 0).then(|| 100.0 * left as f64 / all as f64));
        }
        Trace::new(name, Stroke::Joined, color, y).at(x)
    };
    chart.traces = vec![trace("round trip", BLUE, &info.service), trace("since due", ORANGE, &info.response)];
    if let Some(loaded) = &info.loaded {
        let more = trace("round trip, loaded", nth(2), &loaded.service);
        chart.traces.push(more);
    }
    Drawn::or(chart, "too few requests were answered")
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::histogram::Histogram;

    #[test]
    fn the_tail_ends_at_the_longest_time() {
        let mut histogram = Histogram::new();
        histogram.record_n(24_700, 1000);
        histogram.record(3_423_000);
        let info = PingInfo { service: Latency::of(&histogram), ..PingInfo::default() };
        let Drawn::Chart(chart) = above(&info) else {
            panic!("no chart");
        };
        let Some(Rows::Numbers(x)) = &chart.traces[0].x else {
            panic!("no numbers");
        };
        for (x, us) in x.iter().zip([24.7, 3423.0]) {
            assert!((us..us * 1.02).contains(x), "{x} of {us}");
        }
    }
}
