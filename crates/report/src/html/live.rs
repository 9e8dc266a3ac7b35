//! The page of a run that goes on: that of its record so far, and above it six figures that are new each second.

use super::script::Assets;
use super::tile::tile;
use crate::answer::Context;
use crate::kinds;
use assay_measure::record::metric::find;
use assay_measure::record::{Figure, Metric, Record};
use serde::Serialize;

/// A figure above the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveTile {
    /// What it is, and of which time.
    pub name: String,
    /// For people.
    pub value: String,
    /// Its unit; empty for words and what is not known.
    pub unit: String,
    /// The metric of the whole run's record that it is; empty where it is of the last seconds or none of them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The metric's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
}

/// One second of a run: what stands above its page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Live {
    /// Whether the run has ended and its record is kept.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// How far it is, in a sentence.
    pub now: String,
    /// The figures.
    pub tiles: Vec<LiveTile>,
    /// The page of a run that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// Why nothing is known of the last seconds.
const ENDED: &str = "the run has ended";

impl Live {
    /// Of a record so far and that of the last ten seconds, which a run that has ended lacks.
    #[must_use]
    pub fn of(whole: &Record, recent: Option<&Record>) -> Self {
        let limit = recent.map(|recent| kinds::of(recent).headline(recent).limit);
        let limit = limit.map_or_else(
            || format!("n/a ({ENDED})"),
            |limit| if limit.what.is_empty() { limit.evidence } else { limit.what },
        );
        let asked = whole.plan.settings.iter().find(|line| line.name == "RATE" && line.value != "0");
        let mut tiles = Vec::new();
        let mut both = |key: &str| {
            let Some(metric) = find(&whole.metrics, key) else { return };
            let value = recent.map_or(Figure::na(ENDED), |recent| {
                find(&recent.metrics, key).map_or(Figure::na("absent"), |metric| metric.value.clone())
            });
            tiles.push(shown(&Metric { value, ..metric.clone() }, "last 10 s"));
            tiles.push(LiveTile {
                key: metric.full_key(),
                figure: Some(metric.value.clone()),
                ..shown(metric, "whole")
            });
        };
        both("ops_per_s");
        let operation = whole.driver.ops.iter().max_by_key(|row| row.count);
        for suffix in ["p50", "p99"] {
            let name = operation.map(|row| format!("{} response {suffix}", row.kind));
            let metric = whole.metrics.iter().find(|metric| Some(&metric.name) == name.as_ref());
            metric.iter().for_each(|metric| both(&metric.key));
        }
        let words = |name: &str, value: String| LiveTile { name: name.to_owned(), value, ..LiveTile::default() };
        tiles.extend(asked.map(|line| words("Operations asked for, 1/s", line.value.clone())));
        tiles.push(words("Limited by, last 10 s", limit));
        let errors = Figure::Count(whole.driver.errors_whole_run_count);
        let plain = |name: &str, unit: &str, value| Metric {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
            ..Metric::default()
        };
        tiles.push(shown(&plain("Errors", "operations", errors), "whole run"));
        let cpu = recent.map_or(Figure::na(ENDED), |recent| recent.driver.thread_cpu_pct.clone());
        tiles.push(shown(&plain("Driver CPU, of its threads", "%", cpu), "last 10 s"));
        let now = whole.run.verdict_reasons.first().unwrap_or(&whole.run.verdict);
        let is_final = recent.is_none();
        let now = if is_final { format!("the run has ended: {}", whole.run.verdict) } else { now.clone() };
        Self { is_final, now, tiles, page: None }
    }
}

fn shown(metric: &Metric, of: &str) -> LiveTile {
    let tile = tile(metric);
    LiveTile { name: format!("{}, {of}", tile.name), value: tile.value, unit: tile.unit, ..LiveTile::default() }
}

/// The page of a run that goes on.
#[must_use]
pub fn live(whole: &Record, recent: &Record, context: &Context) -> String {
    let mut page = super::page_of(whole, context);
    page.live = Some(Live::of(whole, Some(recent)));
    page.render(&Assets::Served)
}
