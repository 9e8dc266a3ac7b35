//! The sections of a sweep: for each curve its conclusions, then its figures; text and page draw the same sections.

use crate::curve::{UNTESTED, amount, held_text, load_text, us_text};
use crate::info::{Curve, Estimate, SweepInfo};
use crate::step::{self, SweepStep};
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Align, Cell, Sections, common, number};
use assay_measure::units::{fixed, significant, thousands};

/// Columns of the chart's bars.
const BAR: usize = 60;

/// Everything there is to say, what was found first.
pub(crate) fn render(record: &Record, info: &SweepInfo) -> Sections {
    let mut page = Sections::default();
    title(&mut page, record, info);
    for curve in &info.curves {
        findings(&mut page, info, curve);
    }
    // The record of an earlier version has none, whatever its steps say.
    if !record.warnings.is_empty() {
        common::warnings(&mut page, record);
    }
    common::advice(&mut page, record);
    for curve in &info.curves {
        figures(&mut page, info, curve);
    }
    steps_of(&mut page, info);
    page.heading("Rules");
    for (name, rule) in &info.rules {
        page.wrapped(&format!("{name:<8} "), rule);
    }
    if !record.plan.settings.is_empty() {
        common::parameters(&mut page, record);
    }
    page
}

fn title(page: &mut Sections, record: &Record, info: &SweepInfo) {
    let run = &record.run;
    let label = common::label(record);
    page.title(&format!("ASSAY SWEEP REPORT for run {}{label}: {} on {}", run.id, run.workload, info.target));
    page.line(&format!("assay {}, started {}. {}", run.version, run.started, common::verdict(record)));
    page.line("");
    let goal = match info.goal_us_p99.value() {
        Some(us) => us_text(us),
        None => "none".to_owned(),
    };
    for (name, value) in [("steps", info.steps.len().to_string()), ("seed", run.seed.to_string()), ("p99 goal", goal)] {
        page.named(name, 10, value);
    }
    for axis in &info.axes {
        page.named(&axis.name, 10, axis.values.join(","));
    }
}

/// `sessions`, `CPUs with THREADS=2`.
fn over(curve: &Curve) -> String {
    let over = match curve.load.as_str() {
        "cpus" => "CPUs",
        other => other,
    };
    match held_text(&curve.held).as_str() {
        "" => over.to_owned(),
        held => format!("{over}, {held}"),
    }
}

/// Where a curve bends, what it promises, and what spoils it.
fn findings(page: &mut Sections, info: &SweepInfo, curve: &Curve) {
    page.judgement(&format!("Curve over {}", over(curve)));
    page.wrapped("", &curve.knee.sentence);
    if !curve.goal.sentence.is_empty() {
        page.wrapped("", &curve.goal.sentence);
    }
    let lead = if curve.usl.fitted { "Universal Scalability Law: " } else { "" };
    page.wrapped(lead, &curve.usl.sentence);
    if let Some(sentence) = active_data(curve, &info.members(curve)) {
        page.wrapped("", &sentence);
    }
    if !curve.left_out.is_empty() {
        let numbers: Vec<String> = curve.left_out.iter().map(u64::to_string).collect();
        page.wrapped(
            "",
            &format!("Left out because they are not valid or were repeated (see Steps): {}.", numbers.join(", ")),
        );
    }
}

fn figures(page: &mut Sections, info: &SweepInfo, curve: &Curve) {
    let steps = info.members(curve);
    page.heading(&format!("Throughput over {}", over(curve)));
    if steps.is_empty() {
        page.line("n/a (no step is valid)");
        return;
    }
    throughput(page, (info, curve), &steps);
    chart(page, (info, curve), &steps);
    law(page, info, curve);
    page.heading(&format!("Latency over {}", over(curve)));
    page.line("Operation latency (layer client) and the read event with the longest waits (layer engine); us:");
    page.line("");
    latency(page, curve, &steps);
}

/// A curve whose smallest loads have less data to touch compares unlike things there: says so.
fn active_data(curve: &Curve, steps: &[&SweepStep]) -> Option<String> {
    if curve.load != "sessions" {
        return None;
    }
    let active: Vec<f64> = steps.iter().filter_map(|step| step.active_blocks.value()).collect();
    let most = active.iter().copied().fold(0.0, f64::max);
    let less: Vec<String> = steps
        .iter()
        .filter(|step| step.active_blocks.value().is_some_and(|blocks| blocks < most))
        .map(|step| load_text(curve, step))
        .collect();
    (!less.is_empty()).then(|| {
        format!(
            "Less data to touch at {}: fewer sessions than schemas use only the first schemas, so more of the data \
             fits into the cache, and later gains are understated. With fewer schemas (-s 1) the data stays the same.",
            less.join(", ")
        )
    })
}

/// Titles of which the last column is words, the others figures.
fn titles<const N: usize>(titles: [&str; N]) -> Vec<(&str, Align)> {
    let mut all: Vec<_> = titles.iter().map(|title| (*title, Align::Right)).collect();
    if let Some((_, align)) = all.last_mut() {
        *align = Align::Left;
    }
    all
}

fn throughput(page: &mut Sections, (info, curve): (&SweepInfo, &Curve), steps: &[&SweepStep]) {
    let rate = info.per_s().replace("operations", "ops");
    let titles = titles([
        &curve.load,
        &rate,
        "gain %",
        "gets/s",
        "reads/s",
        "writes/s",
        "CPU us/op",
        "CPU us/IO",
        "host busy %",
        "Little",
        "steady",
        "top event",
    ]);
    let rows = steps.iter().map(|step| {
        vec![
            load_text(curve, step).into(),
            Cell::figure(&step.ops_per_s, 1),
            Cell::figure(&step.gain_pct, 1),
            Cell::figure(&step.logical_reads_blocks_per_s, 0),
            Cell::figure(&step.read_requests_per_s, 0),
            Cell::figure(&step.write_requests_per_s, 0),
            Cell::figure(&step.cpu_us_per_op, 1),
            Cell::figure(&step.cpu_us_per_io, 1),
            Cell::figure(&step.host_busy_pct, 1),
            little(step),
            step.steady.state.clone().into(),
            step.top_event.clone().into(),
        ]
    });
    page.fitted(&titles, rows.collect());
}

/// `1.00`, with a mark where the law does not hold.
fn little(step: &SweepStep) -> Cell {
    let mut cell = Cell::figure(&step.little_ratio, 3);
    let ratio = step.little_ratio.value();
    if ratio.is_some_and(|ratio| (ratio - 1.0).abs() > step::LITTLE) {
        cell.text.push('!');
    }
    cell
}

fn latency(page: &mut Sections, curve: &Curve, steps: &[&SweepStep]) {
    let titles = titles([
        &curve.load,
        "mean",
        "p50",
        "p99",
        "p99.9",
        "max",
        "read mean",
        "read p99",
        "read p99.9",
        "read event",
    ]);
    let rows = steps.iter().map(|step| {
        let us = |figure: &Figure| Cell::figure(figure, 1);
        let read = &step.read;
        let name = match read.name.as_str() {
            "" => "none",
            name => name,
        };
        vec![
            load_text(curve, step).into(),
            us(&step.op.us_avg),
            us(&step.op.us_p50),
            us(&step.op.us_p99),
            us(&step.op.us_p999),
            us(&step.op.us_max),
            us(&read.us_avg),
            us(&read.us_p99),
            us(&read.us_p999),
            name.to_owned().into(),
        ]
    });
    page.fitted(&titles, rows.collect());
}

/// A bar for each step, and where the law says it should end.
fn chart(page: &mut Sections, (info, curve): (&SweepInfo, &Curve), steps: &[&SweepStep]) {
    let rate = |step: &SweepStep| step.ops_per_s.value().unwrap_or(0.0);
    let fitted = |at: usize| curve.usl.fitted_ops_per_s.get(at).and_then(Figure::value);
    let most = steps.iter().map(|step| rate(step)).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let by_law = if curve.usl.fitted { ", | the law" } else { "" };
    let mut lines = vec![
        String::new(),
        format!(
            "{} over {}, # is {}{by_law}:",
            info.per_s().replace("/s", " per second"),
            curve.load,
            significant(most / BAR as f64, 3)
        ),
        String::new(),
    ];
    let labels: Vec<String> = steps.iter().map(|step| load_text(curve, step)).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0);
    for (at, step) in steps.iter().enumerate() {
        let length = |rate: f64| (rate / most * BAR as f64).round() as usize;
        let mut bar: Vec<char> = vec!['#'; length(rate(step))];
        if let Some(law) = fitted(at) {
            let mark = length(law).clamp(1, BAR + 20) - 1;
            if mark >= bar.len() {
                bar.resize(mark + 1, ' ');
            }
            bar[mark] = '|';
        }
        let bar: String = bar.into_iter().collect();
        lines.push(format!("  {:>width$} {bar}", labels[at]));
    }
    page.drawing(lines);
}

/// The law's coefficients and what is computed from them.
fn law(page: &mut Sections, info: &SweepInfo, curve: &Curve) {
    let usl = &curve.usl;
    if !usl.fitted {
        return;
    }
    page.line("");
    let line = |page: &mut Sections, name: &str, estimate: &Estimate, digits: usize| {
        page.named(&format!("  {name}"), 36, estimated(estimate, digits));
    };
    let per_s = info.per_s();
    line(page, &format!("lambda, {per_s} of one"), &usl.lambda_per_s, 5);
    line(page, "sigma, contention", &usl.sigma_ratio, 3);
    line(page, "kappa, coherency", &usl.kappa_ratio, 3);
    page.line(&format!("  Computed from the law, not measured ({UNTESTED}):"));
    line(page, "peak load", &usl.peak_load, 3);
    line(page, &format!("peak or limit, {per_s}"), &usl.peak_ops_per_s, 4);
    for projection in &usl.projections {
        let name = format!("{per_s} at {}", amount(&curve.load, projection.load));
        line(page, &name, &projection.ops_per_s, 4);
    }
}

/// `12.3 (95 %: 11.0 to 13.9)`.
fn estimated(estimate: &Estimate, digits: usize) -> String {
    let text = |figure: &Figure| match figure.value() {
        Some(value) => significant(value, digits),
        None => figure.reason().unwrap_or("n/a").to_owned(),
    };
    if estimate.value.value().is_none() {
        return format!("n/a ({})", text(&estimate.value));
    }
    format!("{} (95 %: {} to {})", text(&estimate.value), text(&estimate.low), text(&estimate.high))
}

/// Every step in the order it ran, with what has to be said of it.
fn steps_of(page: &mut Sections, info: &SweepInfo) {
    page.heading("Steps");
    let titles =
        titles(["step", "sessions", "verdict", "window s", "settled s", "range %", "slope %", "warnings", "directory"]);
    let rows = info.steps.iter().map(|step| {
        let steady = &step.steady;
        vec![
            step.place.step.to_string().into(),
            thousands(step.place.sessions).into(),
            step.verdict.clone().into(),
            Cell::figure(&step.elapsed_s, 1),
            Cell::figure(&steady.from_s, 1),
            Cell::figure(&steady.range_ratio.scaled(100.0), 1),
            Cell::figure(&steady.slope_ratio.scaled(100.0), 1),
            step.warnings_count.to_string().into(),
            step.place.directory.clone().into(),
        ]
    });
    page.fitted(&titles, rows.collect());
    for step in &info.steps {
        for reason in &step.verdict_reasons {
            page.wrapped(&format!("step {}: ", step.place.step), reason);
        }
        if step.steady.state == "no" {
            page.wrapped(
                &format!("step {}: ", step.place.step),
                &format!(
                    "never settled: over its last {} s throughput ranged over {} % and moved by {} %; use a longer \
                     --time",
                    fixed(steady_s(step), 0),
                    number(&step.steady.range_ratio.scaled(100.0), 1),
                    number(&step.steady.slope_ratio.scaled(100.0), 1)
                ),
            );
        }
    }
}

fn steady_s(step: &SweepStep) -> f64 {
    step.steady.window_s.value().unwrap_or(0.0)
}
