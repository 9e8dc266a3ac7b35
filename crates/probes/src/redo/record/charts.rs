//! The charts of a redo test.

use super::info::RedoInfo;
use super::whole;
use assay_measure::chart::{Axis, Chart, ChartMark, Drawn, Stroke, Trace, buckets};
use assay_measure::palette::{BLUE, ORANGE, nth};

pub(super) fn all(info: &RedoInfo) -> Vec<Drawn> {
    let mut all = vec![rate(info)];
    if info.mode != "async" {
        all.push(latency(info));
        let title = "Histogram: commits";
        all.push(buckets::of_buckets("c-hist-redo", title, &info.commit.hist_ns.pow2_us()));
        all.push(parts(info));
    }
    all
}

fn ends(info: &RedoInfo) -> Vec<f64> {
    (1..=whole(info).len()).map(|second| second as f64).collect()
}

fn rate(info: &RedoInfo) -> Drawn {
    let y = whole(info).iter().map(|row| Some(row.messages_count as f64));
    let mark = info.cap.iter().map(|cap| ChartMark { at: cap.at_s, text: format!("cap of {:.0}/s", cap.per_s) });
    let chart = Chart {
        id: "c-redo-rate".to_owned(),
        title: "Messages per second".to_owned(),
        note: "Acknowledged (SYNC) or consumed by the standby (ASYNC) in each second.".to_owned(),
        x: Axis::of("time", "s"),
        y: Axis::of("messages", "1/s"),
        traces: vec![Trace::new("messages", Stroke::Line, BLUE, y.collect()).at(ends(info))],
        marks: mark.collect(),
        ..Chart::default()
    };
    Drawn::or(chart, "nothing was sent")
}

fn latency(info: &RedoInfo) -> Drawn {
    let of = |us: f64, count: u64| (count > 0).then(|| us / count as f64);
    let rows = || whole(info).iter();
    let total = rows().map(|row| of(row.total_us, row.messages_count));
    let disk = rows().map(|row| of(row.disk_us, row.messages_count).filter(|us| *us > 0.0));
    let chart = Chart {
        id: "c-redo-latency".to_owned(),
        title: "Latency by second".to_owned(),
        note: "Means of each second: the whole latency, and the part that the standby's disk took.".to_owned(),
        x: Axis::of("time", "s"),
        y: Axis::of("latency", "us"),
        traces: vec![
            Trace::new("commit", Stroke::Line, BLUE, total.collect()).at(ends(info)),
            Trace::new("disk-write", Stroke::Line, ORANGE, disk.collect()).at(ends(info)),
        ],
        ..Chart::default()
    };
    Drawn::or(chart, "nothing was acknowledged")
}

/// Where the time of a message goes, by standby.
fn parts(info: &RedoInfo) -> Drawn {
    let names: Vec<String> = info.standbys.iter().map(|one| one.name.clone()).collect();
    let column = |of: fn(&super::info::StandbyInfo) -> &assay_measure::record::Figure| {
        info.standbys.iter().map(|one| of(one).value()).collect()
    };
    let trace = |at, name: &str, of| Trace::new(name, Stroke::Bar, nth(at), column(of));
    let chart = Chart {
        id: "c-redo-parts".to_owned(),
        title: "Where the time of a message goes".to_owned(),
        note: "Means. Network: everything except the standby's own time; it includes both network stacks.".to_owned(),
        x: Axis::of("standby", ""),
        y: Axis::of("time", "us"),
        rows: assay_measure::chart::Rows::Names(names),
        traces: vec![
            trace(0, "network", |one| &one.network.us_avg),
            trace(1, "disk-write", |one| &one.disk.us_avg),
            trace(2, "apply", |one| &one.apply.us_avg),
            trace(3, "rest of the standby", |one| &one.queue.us_avg),
        ],
        ..Chart::default()
    };
    Drawn::or(chart, "nothing was acknowledged")
}
