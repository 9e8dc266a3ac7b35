//! Charts of a sweep: its curves, where they bend, and what the steps measured.

use crate::curve::{amount, held_text, us_text};
use crate::info::{Curve, SweepInfo};
use crate::step::SweepStep;
use assay_measure::chart::{Axis, Chart, ChartMark, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILION};
use assay_measure::record::Figure;

const MEASURED: &str = "measured";
const FITTED: &str = "fitted law";
const PROJECTED: &str = "projection, untested";
const LITTLE: &str = "sessions / mean latency";

/// All of them, curve by curve.
pub(crate) fn all(info: &SweepInfo) -> Vec<Drawn> {
    let curves = info.curves.iter().enumerate();
    curves.flat_map(|(nth, curve)| charts_of(info, curve, nth)).collect()
}

fn held(curve: &Curve) -> String {
    match held_text(&curve.held).as_str() {
        "" => String::new(),
        held => format!(" with {held}"),
    }
}

/// The load of a step, as its curve counts it.
fn load(step: &SweepStep, by: &str) -> f64 {
    match by {
        "sessions" => step.place.sessions as f64,
        "cpus" => step.place.cpus.value().unwrap_or_default(),
        name => {
            let value = step.place.over.get(name);
            value.and_then(|value| value.parse().ok()).unwrap_or_default()
        }
    }
}

fn charts_of(info: &SweepInfo, curve: &Curve, nth: usize) -> Vec<Drawn> {
    let steps = info.members(curve);
    let loads: Vec<f64> = steps.iter().map(|step| load(step, &curve.load)).collect();
    let base = |name: &str, title: &str, y: Axis, note: &str| Chart {
        id: format!("c-{name}-{}", nth + 1),
        title: format!("{title} against {}{}", curve.load, held(curve)),
        note: note.to_owned(),
        x: Axis::spanning(&curve.load, "", &loads),
        y,
        rows: Rows::Numbers(loads.clone()),
        marks: marks(curve),
        ..Chart::default()
    };
    let mut throughput = base("throughput", "Throughput", Axis::of(info.per_s().trim_end_matches("/s"), "1/s"), "");
    throughput.traces = throughput_traces(&steps, &loads, curve);
    throughput.note = throughput_note(&throughput.traces);
    let mut latency = base(
        "latency",
        "Operation latency",
        Axis::log("latency", "us"),
        "All kinds of operations together, as the client sees them, from the intended start (layer client).",
    );
    let column = |of: &dyn Fn(&SweepStep) -> &Figure| steps.iter().map(|step| of(step).value()).collect();
    latency.traces = vec![
        Trace::new("max", Stroke::Dotted, VERMILION, column(&|s| &s.op.us_max)),
        Trace::new("p99", Stroke::Joined, ORANGE, column(&|s| &s.op.us_p99)),
        Trace::new("p50", Stroke::Joined, SKY, column(&|s| &s.op.us_p50)),
        Trace::new("mean", Stroke::Dotted, GREY, column(&|s| &s.op.us_avg)),
    ];
    if let Some(goal) = info.goal_us_p99.value() {
        latency.limits = vec![ChartMark { at: goal, text: format!("goal: p99 {}", us_text(goal)) }];
    }
    let mut cpu = base(
        "cpu",
        "CPU per operation",
        Axis::of("CPU", "us per operation"),
        "CPU time of this process (all threads) and of a server.",
    );
    cpu.traces = vec![Trace::new("CPU per operation", Stroke::Joined, GREEN, column(&|s| &s.cpu_us_per_op))];
    let charts = [throughput, latency, cpu].into_iter();
    charts.map(|chart| Drawn::or(chart, "no step of the curve is valid")).collect()
}

/// What the lines are that are drawn.
fn throughput_note(traces: &[Trace]) -> String {
    let told = [
        (MEASURED, "Points are measured, with twice the standard error of their seconds."),
        (FITTED, "The dashed line is the Universal Scalability Law fitted to them."),
        (PROJECTED, "Hollow points are computed from that law: projections, untested."),
        (
            LITTLE,
            "The dotted line is what Little's law gives for the mean latency of each step: where this line departs \
             from the points, the figures contradict each other.",
        ),
    ];
    let is_there = |name: &str| traces.iter().any(|trace| trace.name == name && trace.has_data());
    let told = told.iter().filter(|(name, _)| is_there(name));
    told.map(|(_, text)| *text).collect::<Vec<_>>().join(" ")
}

fn throughput_traces(steps: &[&SweepStep], loads: &[f64], curve: &Curve) -> Vec<Trace> {
    let rates: Vec<Option<f64>> = steps.iter().map(|step| step.ops_per_s.value()).collect();
    let off: Vec<f64> = (steps.iter())
        .map(|step| {
            let error = step.ops_error_ratio.value().unwrap_or_default();
            2.0 * error * step.ops_per_s.value().unwrap_or_default()
        })
        .collect();
    let mut measured = Trace::new(MEASURED, Stroke::Joined, BLUE, rates);
    measured.error = Some((off.clone(), off));
    let mut traces = vec![measured];
    if curve.usl.fitted {
        let fitted = curve.usl.fitted_ops_per_s.iter().map(Figure::value).collect();
        traces.push(Trace::new(FITTED, Stroke::Dashed, ORANGE, fitted));
    }
    if curve.load == "sessions" {
        let little = steps.iter().zip(loads).map(|(step, load)| {
            let us_mean = step.op.us_avg.value().filter(|us| *us > 0.0)?;
            Some(load * 1e6 / us_mean)
        });
        traces.push(Trace::new(LITTLE, Stroke::Dotted, INK, little.collect()));
    }
    let projected: Vec<_> = curve.usl.projections.iter().collect();
    if !projected.is_empty() {
        let y = projected.iter().map(|point| point.ops_per_s.value.value()).collect();
        let x = projected.iter().map(|point| point.load as f64).collect();
        traces.push(Trace::new(PROJECTED, Stroke::Hollow, GREY, y).at(x));
    }
    traces
}

fn marks(curve: &Curve) -> Vec<ChartMark> {
    let mut marks = Vec::new();
    for (figure, name) in [(&curve.knee.load, "knee"), (&curve.goal.load, "highest load that keeps the goal")] {
        if let Some(at) = figure.value() {
            let text = format!("{name}: {}", amount(&curve.load, at as u64));
            marks.push(ChartMark { at, text });
        }
    }
    marks
}
