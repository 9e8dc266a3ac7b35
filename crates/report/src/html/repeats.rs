//! The page of repeats: how much the same test differs when nothing changes.

use super::facts::wall;
use super::from_sections;
use super::page::{Page, view};
use super::script::Assets;
use crate::compare::Repeats;
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, ORANGE};
use assay_measure::record::Figure;

/// The page of a directory of repeats.
#[must_use]
pub fn repeats(repeats: &Repeats, assets: &Assets) -> String {
    let label = if repeats.label.is_empty() { String::new() } else { format!(" \"{}\"", repeats.label) };
    let reasons = if repeats.verdict_reasons.is_empty() {
        String::new()
    } else {
        format!(": {}", repeats.verdict_reasons.join("; "))
    };
    let charts = [rates(repeats), noise(repeats)];
    let page = Page {
        title: format!("Repeats {}{label}: {} on {}", repeats.id, repeats.workload, repeats.target),
        version: repeats.version.clone(),
        facts: vec![
            ("Started".to_owned(), wall(&repeats.started)),
            ("Runs".to_owned(), format!("{} of {}", repeats.runs.len(), repeats.wanted_count)),
        ],
        verdict: format!("The repeats are {}{reasons}.", repeats.verdict),
        verdict_class: if repeats.verdict == "complete" { "good" } else { "warn" },
        charts: charts.into_iter().map(view).collect(),
        sections: from_sections::of(&repeats.sections()),
        ..Page::default()
    };
    page.render(assets)
}

fn rates(repeats: &Repeats) -> Drawn {
    let y = repeats.runs.iter().map(|run| run.ops_per_s.value()).collect();
    let chart = Chart {
        id: "c-repeats".to_owned(),
        title: "Operations per second of each run".to_owned(),
        note: "The same test with nothing changed, in the order of the runs.".to_owned(),
        x: Axis::of("run", ""),
        y: Axis::of("operations", "1/s"),
        rows: Rows::Names(repeats.runs.iter().map(|run| run.directory.clone()).collect()),
        traces: vec![Trace::new("operations", Stroke::Bar, BLUE, y)],
        ..Chart::default()
    };
    Drawn::or(chart, "no run has this figure")
}

fn noise(repeats: &Repeats) -> Drawn {
    let column =
        |of: fn(&crate::compare::NoiseRow) -> &Figure| repeats.noise.iter().map(|row| of(row).value()).collect();
    let chart = Chart {
        id: "c-noise".to_owned(),
        title: "Noise of the declared figures".to_owned(),
        note: "How much a figure varies between runs, and the smallest difference that two groups of this many runs \
            would show 19 times in 20."
            .to_owned(),
        x: Axis::of("figure", ""),
        y: Axis::of("of the mean", "%"),
        rows: Rows::Names(repeats.noise.iter().map(|row| row.name.clone()).collect()),
        traces: vec![
            Trace::new("standard deviation between runs", Stroke::Bar, BLUE, column(|row| &row.variation_pct)),
            Trace::new("smallest difference shown", Stroke::Bar, ORANGE, column(|row| &row.detectable_95_pct)),
        ],
        ..Chart::default()
    };
    Drawn::or(chart, "too few runs")
}
