//! Charts of the durable-write curve, of recovery, and of imports.

use super::latency;
use crate::html::chart::{Axis, Chart, Drawn, Kind, Rows, Trace};
use crate::html::palette::{BLUE, GREY, ORANGE, VERMILION, nth};
use assay_measure::record::{Figure, Record, RecoveryInfo, SyncInfo, SyncStep};

/// Charts of `assay sync`.
pub(super) fn sync(info: &SyncInfo) -> Vec<Drawn> {
    let rate = Axis::log("writes made durable", "1/s");
    let time = Axis::log("latency", "us");
    let part = |part: &'static str| info.steps.iter().filter(move |step| step.part == part);
    let streams = |step: &SyncStep| step.streams_count as f64;
    let bytes = |step: &SyncStep| step.bytes as f64;
    let curve: Vec<&SyncStep> = part("curve").collect();
    let sizes: Vec<&SyncStep> = part("sizes").collect();
    let mut all = vec![
        by_method(
            "c-curve",
            "Durable writes against streams",
            &curve,
            &streams,
            ("streams", ""),
            rate.clone(),
            &|s| &s.per_s,
        ),
        by_method(
            "c-curve-p50",
            "Median latency against streams",
            &curve,
            &streams,
            ("streams", ""),
            time.clone(),
            &|s| &s.latency.p50_us,
        ),
        by_method(
            "c-curve-p99",
            "p99 latency against streams",
            &curve,
            &streams,
            ("streams", ""),
            time,
            &|s| &s.latency.p99_us,
        ),
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
    let one = info
        .steps
        .iter()
        .filter(|step| step.part == "curve" && step.streams_count == 1);
    for (at, step) in one
        .filter(|step| !step.latency.hist_ns.is_empty())
        .enumerate()
    {
        let title = format!(
            "Histogram: {}, one stream, {} bytes",
            step.method, step.bytes
        );
        all.push(latency::of_buckets(
            &format!("c-hist-sync-{at}"),
            &title,
            &step.latency.hist_ns.pow2_us(),
        ));
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
        note: "Layer syscall: from the call that writes to the return of what made it durable."
            .to_owned(),
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
        chart
            .traces
            .push(Trace::new(name, Kind::Joined, nth(at), y).at(xs));
    }
    Drawn::or(chart, "the probe made no such step")
}

fn safety(info: &SyncInfo) -> Drawn {
    let column = |of: &dyn Fn(usize) -> Option<f64>| (0..info.safety.len()).map(of).collect();
    let chart = Chart {
        id: "c-safety".to_owned(),
        title: "What each level of safety costs".to_owned(),
        note: "Commits per second (layer syscall); the table below says what each level may lose."
            .to_owned(),
        x: Axis::of("level of safety", ""),
        y: Axis::log("commits", "1/s"),
        rows: Rows::Names(info.safety.iter().map(|row| row.level.clone()).collect()),
        traces: vec![
            Trace::new(
                "one stream",
                Kind::Bar,
                BLUE,
                column(&|at| info.safety[at].single_per_s.value()),
            ),
            Trace::new(
                "many streams",
                Kind::Bar,
                ORANGE,
                column(&|at| info.safety[at].many_per_s.value()),
            ),
        ],
        ..Chart::default()
    };
    Drawn::or(chart, "no level was measured")
}

/// Charts of `assay recovery`.
pub(super) fn recovery(info: &RecoveryInfo) -> Vec<Drawn> {
    const MIB: f64 = 1_048_576.0;
    let mut steps: Vec<_> = (info.steps.iter())
        .filter_map(|step| Some((step.replayed_bytes.value()? / MIB, step)))
        .collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut chart = Chart {
        id: "c-recovery".to_owned(),
        title: "Time to the first commit against the redo replayed".to_owned(),
        note: "One kill each. The dashed line is the least-squares line over the kills.".to_owned(),
        x: Axis::of("redo replayed", "MiB"),
        y: Axis::of("time", "s"),
        rows: Rows::Numbers(steps.iter().map(|(mib, _)| *mib).collect()),
        ..Chart::default()
    };
    let column = |of: &dyn Fn(usize) -> Option<f64>| (0..steps.len()).map(of).collect();
    chart.traces = vec![
        Trace::new(
            "first commit",
            Kind::Joined,
            BLUE,
            column(&|at| steps[at].1.first_commit_s.value()),
        ),
        Trace::new(
            "recovery itself",
            Kind::Joined,
            ORANGE,
            column(&|at| steps[at].1.recovery_s.value()),
        ),
        Trace::new(
            "95 % of the old rate",
            Kind::Joined,
            VERMILION,
            column(&|at| steps[at].1.rate_95_s.value()),
        ),
    ];
    if let (Some(fixed), Some(slope)) = (info.fixed_s.value(), info.per_mib_s.value()) {
        let line = column(&|at| Some(fixed + slope * steps[at].0));
        chart
            .traces
            .push(Trace::new("fitted line", Kind::Dashed, GREY, line));
    }
    if let Some(wanted) = info.rto_wanted_s.value() {
        let text = format!("wanted: {wanted} s");
        chart.limits = vec![crate::html::chart::Mark { at: wanted, text }];
    }
    vec![Drawn::or(chart, "no kill was followed by a recovery")]
}

/// Charts of an import: what its figures give.
pub(super) fn imported(record: &Record) -> Vec<Drawn> {
    let mut all = vec![top_events(record)];
    let events = record
        .events
        .iter()
        .filter(|event| event.p50_us.value().is_some() || event.p99_us.value().is_some());
    let percentiles: Vec<_> = (events.take(8))
        .map(|event| {
            let figures = vec![
                ("p50", event.p50_us.clone()),
                ("p90", event.p90_us.clone()),
                ("p99", event.p99_us.clone()),
                ("p99.9", event.p999_us.clone()),
                ("max", event.max_us.clone()),
            ];
            (event.name.clone(), figures)
        })
        .collect();
    let operations: Vec<_> = (record.driver.ops.iter())
        .map(|op| {
            let latency = &op.response;
            let figures = vec![
                ("min", latency.min_us.clone()),
                ("p50", latency.p50_us.clone()),
                ("p90", latency.p90_us.clone()),
                ("p99", latency.p99_us.clone()),
                ("max", latency.max_us.clone()),
            ];
            (op.kind.clone(), figures)
        })
        .collect();
    if !operations.is_empty() {
        all.push(latency::percentile_chart(
            "c-op-percentiles",
            "Latency percentiles by operation",
            "As imported (layer client).",
            &operations,
        ));
    }
    all.push(latency::percentile_chart(
        "c-event-percentiles",
        "Latency percentiles by event",
        "As imported, or from the imported histogram.",
        &percentiles,
    ));
    all.extend(latency::histograms(record));
    all
}

fn top_events(record: &Record) -> Drawn {
    let mut rows: Vec<(String, f64)> = (record.events.iter())
        .filter(|event| event.actor == "foreground" && event.class != "Idle")
        .filter_map(|event| Some((event.name.clone(), event.db_time_pct.value()?)))
        .take(10)
        .collect();
    let model = &record.time_model;
    let cpu = model.db_time_us.value().filter(|all| *all > 0.0);
    if let Some((cpu, all)) = model.db_cpu_us.value().zip(cpu) {
        rows.push(("DB CPU".to_owned(), 100.0 * cpu / all));
    }
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let chart = Chart {
        id: "c-top-events".to_owned(),
        title: "Share of DB time".to_owned(),
        note: "Foreground events and DB CPU as imported (layer engine); CPU inside waits counts twice, so they may add up to more than 100.".to_owned(),
        x: Axis::of("event", ""),
        y: Axis::of("share of DB time", "%"),
        rows: Rows::Names(rows.iter().map(|(name, _)| name.clone()).collect()),
        traces: vec![Trace::new("% DB time", Kind::Bar, BLUE, rows.iter().map(|(_, share)| Some(*share)).collect())],
        ..Chart::default()
    };
    Drawn::or(chart, "the import has no events with a share of DB time")
}
