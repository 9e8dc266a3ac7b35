//! The page of one figure over several runs.

use super::page::{Page, Tile, headline, named, view};
use super::script::Assets;
use super::table::{Cell, Table};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREY, VERMILION};
use assay_measure::record::Figure;
use assay_measure::sample::mean;

/// One run of a trend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrendPoint {
    /// Short id of the run.
    pub run: String,
    /// RFC 3339 wall time of its start.
    pub started: String,
    /// Its label; empty if it has none.
    pub label: String,
    /// The figure, in the trend's unit.
    pub value: Figure,
    /// `complete`, `incomplete` or `invalid`.
    pub verdict: String,
    /// Tags, in words.
    pub tags: Vec<String>,
}

/// The page of a figure over runs, in the order given, which is by time.
#[must_use]
pub fn trend(title: &str, unit: &str, points: &[TrendPoint], assets: &Assets) -> String {
    let known: Vec<f64> = points
        .iter()
        .filter_map(|point| point.value.value())
        .collect();
    let page = Page {
        title: format!("Trend: {title}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        verdict: format!(
            "{} of {} run(s) have the figure.",
            known.len(),
            points.len()
        ),
        verdict_class: "good",
        tiles: tiles(&known, unit),
        charts: vec![view(Drawn::or(line(title, unit, points), "no run has it"))],
        tables: named(vec![table(title, unit, points)]),
        ..Page::default()
    };
    page.render(assets)
}

fn tiles(known: &[f64], unit: &str) -> Vec<Tile> {
    let lowest = known.iter().copied().min_by(f64::total_cmp);
    let highest = known.iter().copied().max_by(f64::total_cmp);
    let middle = (!known.is_empty()).then(|| mean(known));
    let all = [("lowest", lowest), ("mean", middle), ("highest", highest)];
    let tile = |(name, value): (&str, Option<f64>)| {
        Some(Tile {
            name: name.to_owned(),
            value: headline(value?),
            unit: unit.to_owned(),
        })
    };
    all.into_iter().filter_map(tile).collect()
}

fn line(title: &str, unit: &str, points: &[TrendPoint]) -> Chart {
    let known: Vec<f64> = (points.iter())
        .filter_map(|point| point.value.value())
        .collect();
    let complete = |point: &TrendPoint| point.verdict == "complete";
    let column = |keep: &dyn Fn(&TrendPoint) -> bool| {
        let value = |point: &TrendPoint| point.value.value().filter(|_| keep(point));
        points.iter().map(value).collect()
    };
    let mut chart = Chart {
        id: "c-trend".to_owned(),
        title: title.to_owned(),
        note: "One point a run, by its start; runs that are not complete stand apart. The dashed line is the mean of all.".to_owned(),
        x: Axis::of("run", ""),
        y: Axis::of(title, unit),
        rows: Rows::Names(points.iter().map(name).collect()),
        ..Chart::default()
    };
    chart.traces = vec![
        Trace::new("complete runs", Stroke::Joined, BLUE, column(&complete)),
        Trace::new(
            "other runs",
            Stroke::Hollow,
            VERMILION,
            column(&|p| !complete(p)),
        ),
    ];
    if known.len() > 1 {
        chart.traces.push(Trace::new(
            "mean",
            Stroke::Dashed,
            GREY,
            vec![Some(mean(&known)); points.len()],
        ));
    }
    chart
}

fn table(title: &str, unit: &str, points: &[TrendPoint]) -> Table {
    let rows = points.iter().map(|point| {
        vec![
            Cell::words(&point.run),
            Cell::words(&point.started),
            Cell::words(&point.label),
            Cell::exact(&point.value),
            Cell::words(&point.verdict),
            Cell::words(point.tags.join(", ")),
        ]
    });
    let value = format!("value ({unit})");
    let columns = ["run", "started", "label", value.as_str(), "verdict", "tags"];
    Table::new("Runs", title, &columns).with(rows.collect(), "no run has it")
}

/// A run on the axis: names must differ.
fn name(point: &TrendPoint) -> String {
    let at: String = point.started.chars().take(16).collect();
    format!("{} {}", at.replace('T', " "), point.run)
}
