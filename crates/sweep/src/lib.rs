//! A sweep: the same workload under rising load, its curves, and where they bend.
//!
//! Reads the records of the steps and nothing else (`docs/design/sweep.md`): the steps as measured, and per curve the
//! knee, the highest load that keeps a latency goal, and the Universal Scalability Law with its confidence. Measured
//! and computed figures are never in the same list.
#![forbid(unsafe_code)]

mod advice;
pub mod auto;
mod charts;
mod curve;
mod headline;
mod info;
mod knee;
mod metrics;
mod rules;
mod same;
mod sections;
mod step;
mod under_way;
mod usl;

#[cfg(test)]
mod tests;

pub use curve::{HOSTS, points};
pub use info::{Curve, Estimate, Goal, Knee, Projection, SweepAxis, SweepInfo, Usl};
pub use knee::Point;
pub use step::{StepLatency, StepPlace, SweepStep};
pub use under_way::UnderWay;

use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Delivered, Headline, Kind};
use assay_measure::record::{Advice, Metric, Part, Record};
use assay_measure::rule::Rule;
use assay_measure::section::Sections;

/// The kind of `assay sweep`.
#[derive(Debug)]
pub struct Sweep;

impl Sweep {
    fn info(record: &Record) -> SweepInfo {
        record.parts.get().unwrap_or_default()
    }
}

impl Kind for Sweep {
    fn name(&self) -> &'static str {
        SweepInfo::NAME
    }

    fn rules(&self) -> Vec<Rule> {
        advice::RULES.to_vec()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        metrics::all(&Self::info(record))
    }

    fn sections(&self, record: &Record) -> Sections {
        sections::render(record, &Self::info(record))
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        charts::all(&Self::info(record)).into_iter().for_each(draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        headline::of(record, &Self::info(record))
    }

    fn delivered(&self, record: &Record) -> Delivered {
        headline::delivered(&Self::info(record))
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        same::checks(&Self::info(baseline), &Self::info(candidate))
    }

    fn several(&self, records: &[&Record]) -> Vec<Advice> {
        let is_step = |record: &&&Record| record.kind != SweepInfo::NAME;
        let steps: Vec<&Record> = records.iter().filter(is_step).copied().collect();
        advice::over_records(&steps)
    }

    fn members(&self, record: &Record) -> Vec<String> {
        Self::info(record).steps.into_iter().map(|step| step.place.directory).collect()
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        record.parts.require::<SweepInfo>()
    }
}
