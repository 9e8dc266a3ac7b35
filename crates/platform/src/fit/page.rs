//! What is shown of a fit.

use super::here::FitStepRow;
use super::info::{FitInfo, HOLDS, ShapeRow};
use super::load::{COMMIT_US, COMMITS, READ_US, READS, REDO, WRITES};
use assay_measure::chart::{Axis, Chart, ChartMark, Drawn, Rows, Stroke, Trace};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::palette::{BLUE, GREEN, ORANGE, VERMILION};
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Sections, common};
use assay_measure::units::{fixed, many, short, six, size, told};

fn value(info: &FitInfo, name: &str) -> Option<f64> {
    info.load.iter().find(|row| row.figure == name)?.derived_value.value()
}

fn figure(info: &FitInfo, name: &str, unit: &str) -> HeadlineFigure {
    let row = info.load.iter().find(|row| row.figure == name);
    HeadlineFigure::new(&row.map_or_else(Figure::default, |row| row.derived_value.clone()), unit)
}

fn verdict(info: &FitInfo) -> String {
    match info.headroom_ratio.value() {
        Some(ratio) if ratio >= 1.0 => {
            let more = if info.limit.is_empty() { ", and more was not tried" } else { "" };
            format!("holds, with {} x headroom{more}", six(ratio))
        }
        Some(0.0) => "does not hold".to_owned(),
        Some(ratio) => format!("does not hold, only {} x of it", six(ratio)),
        None => match info.needed_ios_per_s.value() {
            Some(ios) => format!("needs {} IOPS and {}", short(ios), bytes(info)),
            None => "n/a".to_owned(),
        },
    }
}

fn bytes(info: &FitInfo) -> String {
    info.needed_bytes_per_s.value().map_or_else(|| "bytes/s that are n/a".to_owned(), |bytes| told(bytes, "bytes/s", 0))
}

/// The first things to know.
pub(super) fn headline(record: &Record, info: &FitInfo) -> Headline {
    let place = if info.place.is_empty() { String::new() } else { format!(", offered to this box on {}", info.place) };
    let of = match info.reports_count {
        1 => String::new(),
        count => format!(", the peak of {}", many(count, "report")),
    };
    let begin = if info.begin.is_empty() { String::new() } else { format!(" from {}", info.begin) };
    let mut rows = vec![
        HeadlineLine::told(
            "Load there",
            vec![
                figure(info, READS, "reads/s"),
                figure(info, WRITES, "writes/s"),
                figure(info, COMMITS, "commits/s"),
                figure(info, REDO, "bytes/s of redo"),
            ],
        ),
        latency("Reads", READ_US, info),
        latency("Commits", COMMIT_US, info),
    ];
    if info.reports_count > 1 {
        rows.push(HeadlineLine::told(
            "Over the reports",
            vec![
                HeadlineFigure::new(&info.least_ios_per_s, "IOPS at least"),
                HeadlineFigure::new(&info.most_ios_per_s, "at most"),
            ],
        ));
    }
    if !info.shapes.is_empty() {
        rows.push(HeadlineLine::of("Price list", Vec::new(), &cheapest(&info.shapes)));
    }
    Headline {
        verdict: verdict(info),
        tested: format!("The load of {}{of} ({}{begin}){place}.", info.report, info.tool),
        rows,
        steadiness: match info.steps.len() as u64 {
            0 => "n/a (nothing was measured)".to_owned(),
            steps => format!("n/a ({}; the report of each tells its own)", many(steps, "step")),
        },
        limit: limit(info),
        next: next(info),
        rerun_command: rerun_command(record),
        ..Headline::default()
    }
}

/// `0.4 ms here at 1 x, 0.9 ms there`.
fn latency(title: &'static str, name: &str, info: &FitInfo) -> HeadlineLine {
    let there = figure(info, name, "us there");
    let here = info
        .sides
        .iter()
        .find(|row| row.side == name)
        .map(|row| HeadlineFigure::new(&row.here_value, "us here at 1 x"));
    HeadlineLine::told(title, here.into_iter().filter(|here| here.value.value().is_some()).chain([there]).collect())
}

fn cheapest(shapes: &[ShapeRow]) -> String {
    // They stand by price.
    match shapes.iter().find(|shape| shape.verdict == HOLDS) {
        Some(shape) => format!(
            "{} is the cheapest that holds it: {} {} a month",
            shape.shape,
            shape.currency,
            short(shape.month.value().unwrap_or_default())
        ),
        None => "none of its shapes is known to hold it".to_owned(),
    }
}

fn limit(info: &FitInfo) -> Limit {
    let asked = info.steps.iter().filter_map(|step| step.factor.value()).fold(0.0, f64::max);
    match info.limit.as_str() {
        _ if info.steps.is_empty() => Limit::unknown("nothing was offered here"),
        "" => Limit::unknown(&format!("the box held all that was tried, up to {} x", six(asked))),
        what => Limit::new(what.to_owned(), info.limit_evidence.clone()),
    }
}

fn next(info: &FitInfo) -> Vec<Next> {
    if info.steps.is_empty() {
        // The server stays where it is, and what it counted goes to the other box.
        let report =
            if info.report.contains("://") { "RECORD" } else { &assay_measure::plain::shell_word(&info.report) };
        let why = "offers this load to the box whose storage PATH is on";
        return vec![Next::new(format!("assay fit {report} PATH"), why)];
    }
    let platform = Next::new("assay platform", "says what a database needs besides, and what the kernel tells");
    let cpu = Next::new("assay cpu", "on both boxes: the CPUs' work is not in this load");
    vec![cpu, platform]
}

/// The whole report.
pub(super) fn render(record: &Record, info: &FitInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "FIT", &info.report);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.table_of("Asked, Had There, Had Here", SIDES, &info.sides, "nothing was derived");
    page.table_of("Steps", STEPS, &info.steps, "nothing was offered here");
    page.table_of("Load", LOAD, &info.load, "nothing was derived");
    page.table_of("Assumptions", "What the report does not tell.", &info.assumptions, "none");
    if !info.caches.is_empty() {
        let what = "Reads that are left where the cache here answers another part of the gets, all else as there.";
        page.table_of("Another Cache", what, &info.caches, "no hit ratio is told");
    }
    if !info.not_carried.is_empty() {
        page.table_of("Not Carried Over", CELLS, &info.not_carried, "nothing");
    }
    if !info.reports.is_empty() {
        page.table_of(
            "Reports",
            "The load is that of the peak: most reads and writes per second.",
            &info.reports,
            "one",
        );
    }
    if !info.instances.is_empty() {
        page.table_of("Instances", "As the report prints them; the load is their sum.", &info.instances, "one");
    }
    page.table_of(
        "How It Is Offered",
        &offered(info),
        &info.offer,
        "a figure of the load is missing, so nothing is offered",
    );
    for sentence in &info.unmet {
        page.wrapped("not met: ", &format!("{sentence}."));
    }
    if !info.shapes.is_empty() {
        page.table_of(
            "Price List",
            "By price. IOPS: reads, writes and log writes; bytes: read, written and redo.",
            &info.shapes,
            "none",
        );
    }
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

fn offered(info: &FitInfo) -> String {
    let needs = info.disk_bytes.value().zip(info.time_s.value()).map(|(bytes, seconds)| {
        format!(
            " It takes {} of disk while it lasts, and about {} min and the loading.",
            size(bytes as u64),
            fixed((seconds / 60.0).ceil(), 0)
        )
    });
    format!("Settings of the target, as an open loop.{}", needs.unwrap_or_default())
}

const SIDES: &str = "Rates per second, latencies in us. What is offered is what the settings below come to.";
const STEPS: &str = "Each holds where the rate was kept and neither reads nor commits took longer than there, beyond what the seconds of \
                     the step leave open.";
const LOAD: &str =
    "Each figure with what the report calls it, and the formula; n/a is missing, and nothing takes its place.";
const CELLS: &str = "Work of the storage there that another one does not do.";

/// The headroom: what was done, and how long it took, against the multiple.
pub(super) fn charts(info: &FitInfo) -> Vec<Drawn> {
    if info.steps.is_empty() {
        return Vec::new();
    }
    let factor = |step: &FitStepRow| step.factor.value().unwrap_or_default();
    let mut steps: Vec<_> = info.steps.iter().collect();
    steps.sort_by(|a, b| factor(a).total_cmp(&factor(b)));
    let factors: Vec<f64> = steps.iter().map(|step| factor(step)).collect();
    let ends = info.headroom_ratio.value().filter(|ratio| *ratio > 0.0);
    let base = |id: &str, title: &str, y: Axis| Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis::of("multiple of the load", ""),
        y,
        rows: Rows::Numbers(factors.clone()),
        marks: ends.map(|at| ChartMark { at, text: format!("holds: {} x", six(at)) }).into_iter().collect(),
        ..Chart::default()
    };
    let mut rate = base("c-headroom", "Headroom", Axis::of("operations", "1/s"));
    rate.traces = vec![
        Trace::new("asked", Stroke::Dashed, ORANGE, steps.iter().map(|step| Some(step.asked_per_s as f64)).collect()),
        Trace::new("done", Stroke::Joined, BLUE, steps.iter().map(|step| step.done_per_s.value()).collect()),
    ];
    let mut latency = base("c-latency", "Latency against the load", Axis::log("mean", "us"));
    latency.traces = vec![
        Trace::new("read", Stroke::Joined, GREEN, steps.iter().map(|step| step.read_us.value()).collect()),
        Trace::new("commit", Stroke::Joined, VERMILION, steps.iter().map(|step| step.commit_us.value()).collect()),
    ];
    for (name, what) in [(READ_US, "read there"), (COMMIT_US, "commit there")] {
        latency.limits.extend(value(info, name).map(|at| ChartMark { at, text: what.to_owned() }));
    }
    [rate, latency].into_iter().map(|chart| Drawn::or(chart, "no step was measured")).collect()
}
