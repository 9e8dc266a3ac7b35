//! `runs trend`: one figure over the runs, and which runs lie outside its usual range.

use super::list::chosen;
use crate::catalogue::Catalogue;
use crate::cli::WhichArgs;
use crate::cli::format::{CSV, HTML, JSON};
use crate::exit::{Code, Failure};
use crate::{plan_text, ui};
use assay_measure::record::Figure;
use assay_report::html::{self, Assets};
use assay_report::trend::{Trend, TrendPoint};

pub(super) fn trend(key: &str, which: &WhichArgs, format: &str) -> Result<Code, Failure> {
    let catalogue = Catalogue::open(&which.dir)?;
    let (info, values) = catalogue.metric(key)?;
    let runs = chosen(&catalogue, which)?.into_iter();
    let point = runs.filter_map(|run| {
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
    let trend = trend.with_usual();
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
