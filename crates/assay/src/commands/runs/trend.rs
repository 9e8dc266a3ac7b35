//! `runs trend`: one figure over the runs, and which runs lie outside its usual range.

use super::list::chosen;
use crate::catalogue::{Catalogue, Entry};
use crate::cli::WhichArgs;
use crate::cli::format::{CSV, HTML, JSON};
use crate::exit::{Code, Failure};
use crate::{plan_text, ui};
use assay_measure::record::Figure;
use assay_report::html::{self, Assets};
use assay_report::trend::{Trend, TrendPoint};
use std::collections::BTreeMap;

/// A usual range over several targets would be of none of them.
fn of_one_target(runs: &[Entry], key: &str) -> Result<(), Failure> {
    let mut targets = BTreeMap::<&str, usize>::new();
    for run in runs {
        *targets.entry(&run.engine).or_default() += 1;
    }
    if targets.len() < 2 {
        return Ok(());
    }
    let counts: Vec<String> = targets.iter().map(|(name, runs)| format!("{name} ({runs})")).collect();
    let example = targets.keys().find(|name| !name.is_empty()).copied().unwrap_or_default();
    Err(Failure::usage(format!(
        "{key}: runs of several targets have it: {}; a trend is of one: add --target {example}",
        counts.join(", ")
    )))
}

/// The figure over the runs that have it.
pub(crate) fn over_runs(key: &str, which: &WhichArgs) -> Result<Trend, Failure> {
    let catalogue = Catalogue::open(&which.dir)?;
    let (info, values) = catalogue.metric(key)?;
    let mut runs = chosen(&catalogue, which)?;
    runs.retain(|run| values.contains_key(&run.name));
    of_one_target(&runs, key)?;
    let point = runs.into_iter().filter_map(|run| {
        let value = match values.get(&run.name)? {
            Ok(value) => Figure::decimal(*value),
            Err(reason) => Figure::na(reason),
        };
        Some(TrendPoint {
            run: run.id,
            started: run.started,
            label: run.label,
            value,
            verdict: run.verdict,
            tags: run.tags,
            usual: None,
        })
    });
    let trend = Trend { points: point.collect(), key: info.key, name: info.name, unit: info.unit, better: info.better };
    Ok(trend.with_usual())
}

pub(super) fn trend(key: &str, which: &WhichArgs, format: &str) -> Result<Code, Failure> {
    let trend = over_runs(key, which)?;
    if trend.points.is_empty() {
        ui::say(&format!("{}: no matching run has {key}", which.dir.display()));
    }
    ui::product(&match format {
        JSON => plan_text::pretty(&trend.json()),
        CSV => trend.csv(),
        HTML => html::trend(&trend, &Assets::Embedded),
        _ => trend.render(),
    })?;
    Ok(Code::Good)
}
