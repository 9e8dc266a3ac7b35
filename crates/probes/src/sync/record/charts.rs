//! Charts of the durable-write curve.

use super::info::{SyncInfo, SyncStep};
use assay_measure::chart::buckets;
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, ORANGE, nth};
use assay_measure::record::Figure;

/// All of them.
pub(super) fn all(info: &SyncInfo) -> Vec<Drawn> {
    let rate = Axis::log("writes made durable", "1/s");
    let time = Axis::log("latency", "us");
    let part = |part: &'static str| info.steps.iter().filter(move |step| step.part == part);
    let streams = |step: &SyncStep| step.streams_count as f64;
    let bytes = |step: &SyncStep| step.bytes as f64;
    let curve: Vec<&SyncStep> = part("curve").collect();
    let sizes: Vec<&SyncStep> = part("sizes").collect();
    let mut all = vec![
        by_method("c-curve", "Durable writes against streams", &curve, &streams, ("streams", ""), rate.clone(), &|s| {
            &s.per_s
        }),
        by_method(
            "c-curve-p50",
            "Median latency against streams",
            &curve,
            &streams,
            ("streams", ""),
            time.clone(),
            &|s| &s.latency.us_p50,
        ),
        by_method("c-curve-p99", "p99 latency against streams", &curve, &streams, ("streams", ""), time, &|s| {
            &s.latency.us_p99
        }),
        by_method(
            "c-sizes",
            "Durable writes against their size",
            &sizes,
            &bytes,
            ("bytes of one write", "bytes"),
            rate,
            &|s| &s.per_s,
        ),
        safety(info),
    ];
    let one = info.steps.iter().filter(|step| step.part == "curve" && step.streams_count == 1);
    for (at, step) in one.filter(|step| !step.latency.hist_ns.is_empty()).enumerate() {
        let title = format!("Histogram: {}, one stream, {} bytes", step.method, step.bytes);
        all.push(buckets::of_buckets(&format!("c-hist-sync-{at}"), &title, &step.latency.hist_ns.pow2_us()));
    }
    all
}

/// One line for each method and file.
fn by_method(
    id: &str,
    title: &str,
    steps: &[&SyncStep],
    x: &dyn Fn(&SyncStep) -> f64,
    (x_title, x_unit): (&str, &str),
    y: Axis,
    of: &dyn Fn(&SyncStep) -> &Figure,
) -> Drawn {
    let mut chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        note: "Layer syscall: from the start of the write call until the call that made it durable returns.".to_owned(),
        x: Axis::log(x_title, x_unit),
        y,
        ..Chart::default()
    };
    let mut names: Vec<String> = Vec::new();
    for step in steps {
        let name = format!("{}, {} file", step.method, step.file);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for (at, name) in names.iter().enumerate() {
        let mut points: Vec<(f64, Option<f64>)> = (steps.iter())
            .filter(|step| format!("{}, {} file", step.method, step.file) == *name)
            .map(|step| (x(step), of(step).value()))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let y = points.iter().map(|(_, y)| *y).collect();
        let xs = points.iter().map(|(x, _)| *x).collect();
        chart.traces.push(Trace::new(name, Stroke::Joined, nth(at), y).at(xs));
    }
    Drawn::or(chart, "the probe made no such step")
}

fn safety(info: &SyncInfo) -> Drawn {
    let column = |of: &dyn Fn(usize) -> Option<f64>| (0..info.safety.len()).map(of).collect();
    let chart = Chart {
        id: "c-safety".to_owned(),
        title: "Cost of each level of safety".to_owned(),
        note: "Commits per second (layer syscall); the table below shows what each level may lose.".to_owned(),
        x: Axis::of("level of safety", ""),
        y: Axis::log("commits", "1/s"),
        rows: Rows::Names(info.safety.iter().map(|row| row.level.clone()).collect()),
        traces: vec![
            Trace::new("one stream", Stroke::Bar, BLUE, column(&|at| info.safety[at].single_commits_per_s.value())),
            Trace::new("many streams", Stroke::Bar, ORANGE, column(&|at| info.safety[at].many_commits_per_s.value())),
        ],
        ..Chart::default()
    };
    Drawn::or(chart, "no level was measured")
}
