//! A sweep as text: per curve a table, a chart and what was read off it.

use super::curve::{UNTESTED, amount};
use super::{Curve, Estimate, Step, Sweep, held_text, step};
use assay_measure::record::Figure;
use assay_measure::section::{Sections, number};
use assay_measure::units::{fixed, significant, thousands};

/// Columns of the chart's bars.
const BAR: usize = 60;

/// Renders a sweep, each line at most as wide as its longest name or sentence.
#[must_use]
pub fn render(sweep: &Sweep) -> String {
    let mut page = Sections::default();
    title(&mut page, sweep);
    for curve in &sweep.curves {
        curve_of(&mut page, sweep, curve);
    }
    if !sweep.advice.is_empty() {
        page.heading("Advice");
        for advice in &sweep.advice {
            page.wrapped(&format!("{:<4} ", advice.id), &advice.text);
        }
    }
    steps_of(&mut page, sweep);
    page.heading("Rules");
    for (name, rule) in &sweep.rules {
        page.wrapped(&format!("{name:<8} "), rule);
    }
    page.line("");
    page.line("End of Sweep");
    crate::text::write(&page)
}

fn title(page: &mut Sections, sweep: &Sweep) {
    let info = &sweep.sweep;
    page.line(&format!("Sweep {}", info.id));
    page.line(&"=".repeat(6 + info.id.len()));
    for (name, value) in [
        ("target", info.target.clone()),
        ("workload", info.workload.clone()),
        ("started", info.started.clone()),
        ("version", info.version.clone()),
        ("seed", info.seed.to_string()),
        ("steps", sweep.steps.len().to_string()),
        ("verdict", info.verdict.clone()),
    ] {
        page.line(&format!("{name:<10} {value}"));
    }
    for axis in &info.axes {
        page.line(&format!("{:<10} {}", axis.name, axis.values.join(",")));
    }
    for reason in &info.verdict_reasons {
        page.wrapped("           ", reason);
    }
}

/// One step's line: its numbers in a curve's order.
fn members<'a>(curve: &Curve, sweep: &'a Sweep) -> Vec<&'a Step> {
    let find = |number: &u64| sweep.steps.iter().find(|step| step.place.step == *number);
    curve.steps.iter().filter_map(find).collect()
}

fn curve_of(page: &mut Sections, sweep: &Sweep, curve: &Curve) {
    let held = held_text(&curve.held);
    let over = match curve.load.as_str() {
        "cpus" => "CPUs",
        other => other,
    };
    if held.is_empty() {
        page.heading(&format!("Curve over {over}"));
    } else {
        page.heading(&format!("Curve over {over}, {held}"));
    }
    let steps = members(curve, sweep);
    if steps.is_empty() {
        page.line("n/a (no step counts)");
    } else {
        table(page, &throughput(curve, &steps));
        page.line("");
        page.line(
            "Operation latency, layer client, and the read waited for most, layer engine; us:",
        );
        page.line("");
        table(page, &latency(curve, &steps));
        page.line("");
        chart(page, curve, &steps);
        page.line("");
    }
    if !curve.left_out.is_empty() {
        let numbers: Vec<String> = curve.left_out.iter().map(u64::to_string).collect();
        page.wrapped(
            "",
            &format!(
                "Left out, since they do not count (see Steps): {}.",
                numbers.join(", ")
            ),
        );
    }
    if let Some(sentence) = active_data(curve, &steps) {
        page.wrapped("", &sentence);
    }
    page.wrapped("", &curve.knee.sentence);
    if !curve.goal.sentence.is_empty() {
        page.wrapped("", &curve.goal.sentence);
    }
    law(page, curve);
}

/// A curve whose smallest loads have less data to touch compares unlike things there: says so.
fn active_data(curve: &Curve, steps: &[&Step]) -> Option<String> {
    if curve.load != "sessions" {
        return None;
    }
    let active: Vec<f64> = steps
        .iter()
        .filter_map(|step| step.active_blocks.value())
        .collect();
    let most = active.iter().copied().fold(0.0, f64::max);
    let less: Vec<String> = steps
        .iter()
        .filter(|step| {
            step.active_blocks
                .value()
                .is_some_and(|blocks| blocks < most)
        })
        .map(|step| load_text(curve, step))
        .collect();
    (!less.is_empty()).then(|| {
        format!(
            "Less data to touch at {}: fewer sessions than schemas use only the first ones, so more of it fits into the cache and the gains after it are understated. Fewer schemas (-s 1) keep the data the same.",
            less.join(", ")
        )
    })
}

/// What the curve is drawn over, at a step.
fn load_text(curve: &Curve, step: &Step) -> String {
    match curve.load.as_str() {
        "sessions" => thousands(step.place.sessions),
        "cpus" => number(&step.place.cpus, 0),
        name => step.place.over.get(name).cloned().unwrap_or_default(),
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn throughput(curve: &Curve, steps: &[&Step]) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        &curve.load,
        "ops/s",
        "gain %",
        "gets/s",
        "reads/s",
        "writes/s",
        "CPU us/op",
        "CPU us/IO",
        "Little",
        "steady",
        "top event",
    ])];
    rows.extend(steps.iter().map(|step| {
        vec![
            load_text(curve, step),
            number(&step.ops_per_s, 1),
            number(&step.gain_pct, 1),
            number(&step.logical_reads_blocks_per_s, 0),
            number(&step.read_requests_per_s, 0),
            number(&step.write_requests_per_s, 0),
            number(&step.cpu_us_per_op, 1),
            number(&step.cpu_us_per_io, 1),
            little(step),
            step.steady.state.clone(),
            step.top_event.clone(),
        ]
    }));
    rows
}

/// `1.00`, with a mark where the law does not hold.
fn little(step: &Step) -> String {
    let mut text = number(&step.little_ratio, 3);
    let ratio = step.little_ratio.value();
    if ratio.is_some_and(|ratio| (ratio - 1.0).abs() > step::LITTLE) {
        text.push('!');
    }
    text
}

fn latency(curve: &Curve, steps: &[&Step]) -> Vec<Vec<String>> {
    let mut rows = vec![row([
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
    ])];
    rows.extend(steps.iter().map(|step| {
        let us = |figure: &Figure| number(figure, 1);
        let read = &step.read;
        let name = match read.name.as_str() {
            "" => "none",
            name => name,
        };
        vec![
            load_text(curve, step),
            us(&step.op.avg_us),
            us(&step.op.p50_us),
            us(&step.op.p99_us),
            us(&step.op.p999_us),
            us(&step.op.max_us),
            us(&read.avg_us),
            us(&read.p99_us),
            us(&read.p999_us),
            name.to_owned(),
        ]
    }));
    rows
}

/// Numbers at the right of columns as wide as needed; the last column is text.
fn table(page: &mut Sections, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let width = widths[column];
            if column + 1 == columns {
                text.push_str(&format!("  {cell}"));
            } else {
                text.push_str(&format!("  {cell:>width$}"));
            }
        }
        text
    };
    for (at, cells) in rows.iter().enumerate() {
        page.line(&line(cells));
        if at == 0 {
            page.line(&line(&rule));
        }
    }
}

/// A bar for each step, and where the law says it should end.
fn chart(page: &mut Sections, curve: &Curve, steps: &[&Step]) {
    let rate = |step: &Step| step.ops_per_s.value().unwrap_or(0.0);
    let fitted = |at: usize| curve.usl.fitted_ops_per_s.get(at).and_then(Figure::value);
    let most = steps.iter().map(|step| rate(step)).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let by_law = if curve.usl.fitted { ", | the law" } else { "" };
    page.line(&format!(
        "Operations per second over {}, # is {}{by_law}:",
        curve.load,
        significant(most / BAR as f64, 3)
    ));
    page.line("");
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
        page.line(&format!("  {:>width$} {bar}", labels[at]));
    }
}

fn law(page: &mut Sections, curve: &Curve) {
    let usl = &curve.usl;
    page.line("");
    if !usl.fitted {
        page.wrapped("", &usl.sentence);
        return;
    }
    page.wrapped("Universal Scalability Law: ", &usl.sentence);
    let line = |page: &mut Sections, name: &str, estimate: &Estimate, digits: usize| {
        page.line(&format!("  {name:<34} {}", estimated(estimate, digits)));
    };
    line(page, "lambda, operations/s of one", &usl.lambda_per_s, 5);
    line(page, "sigma, contention", &usl.sigma_ratio, 3);
    line(page, "kappa, coherency", &usl.kappa_ratio, 3);
    page.line(&format!(
        "  Computed from the law, not measured ({UNTESTED}):"
    ));
    line(page, "peak load", &usl.peak_load, 3);
    line(page, "peak or limit, operations/s", &usl.peak_ops_per_s, 4);
    for projection in &usl.projections {
        let name = format!("operations/s at {}", amount(&curve.load, projection.load));
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
    format!(
        "{} (95 %: {} to {})",
        text(&estimate.value),
        text(&estimate.low),
        text(&estimate.high)
    )
}

/// Every step in the order it ran, with what has to be said of it.
fn steps_of(page: &mut Sections, sweep: &Sweep) {
    page.heading("Steps");
    let mut rows = vec![row([
        "step",
        "sessions",
        "verdict",
        "window s",
        "settled s",
        "range %",
        "slope %",
        "warnings",
        "directory",
    ])];
    rows.extend(sweep.steps.iter().map(|step| {
        let steady = &step.steady;
        vec![
            step.place.step.to_string(),
            thousands(step.place.sessions),
            step.verdict.clone(),
            number(&step.elapsed_s, 1),
            number(&steady.from_s, 1),
            number(&steady.range_ratio.scaled(100.0), 1),
            number(&steady.slope_ratio.scaled(100.0), 1),
            step.warnings_count.to_string(),
            step.place.directory.clone(),
        ]
    }));
    table(page, &rows);
    for step in &sweep.steps {
        for reason in &step.verdict_reasons {
            page.wrapped(&format!("step {}: ", step.place.step), reason);
        }
        if step.steady.state == "no" {
            page.wrapped(
                &format!("step {}: ", step.place.step),
                &format!(
                    "never settled: over its last {} s throughput ranged over {} % and moved by {} %; give it more --time",
                    fixed(steady_s(step), 0),
                    number(&step.steady.range_ratio.scaled(100.0), 1),
                    number(&step.steady.slope_ratio.scaled(100.0), 1)
                ),
            );
        }
    }
}

fn steady_s(step: &Step) -> f64 {
    step.steady.window_s.value().unwrap_or(0.0)
}
