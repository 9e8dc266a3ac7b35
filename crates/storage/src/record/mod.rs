//! The outputs of the storage probe: fio's formats, and assay's own record with its conclusions.
//!
//! `fio` prints raw readings exactly as scripts and plotters read them. `build` turns them into the record; `native` is
//! that record's part of fio's JSON, `section` the text below fio's report. Rules: `advice`, `warnings`, `caps`,
//! `limits`.

mod advice;
mod analysis;
mod build;
mod caps;
mod charts;
mod conditions;
mod delivered;
pub mod fio;
mod goal;
mod groups;
mod headline;
pub mod info;
mod integrity;
mod limits;
mod metrics;
mod native;
mod options;
mod rows;
mod section;
mod sections;
mod series;
mod view;
mod warnings;

#[cfg(test)]
mod tests;

pub use build::build;
pub(crate) use build::verdict;
pub use native::native;
pub use section::section;

pub use build::load as load_of;

use assay_awr::rules::settings_differ;
use assay_awr::sections::imported;
use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Delivered, Headline, Kind};
use assay_measure::record::{Advice, Metric, Part, Record};
use assay_measure::rule::Rule;
use assay_measure::section::Sections;
use info::StorageInfo;

/// The record kind of `assay io`, and of results of other storage tools.
#[derive(Debug)]
pub struct Storage;

impl Storage {
    fn info(record: &Record) -> StorageInfo {
        record.parts.get().unwrap_or_default()
    }
}

impl Kind for Storage {
    fn name(&self) -> &'static str {
        StorageInfo::NAME
    }

    /// A tool that reports only totals without jobs is shown like a workload.
    fn tells(&self, record: &Record) -> bool {
        record.import.is_none() || record.parts.get::<StorageInfo>().is_some()
    }

    fn rules(&self) -> Vec<Rule> {
        advice::rules()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        let mut all = assay_awr::figures(record);
        all.extend(metrics::all(&Self::info(record)));
        all
    }

    fn sections(&self, record: &Record) -> Sections {
        let Some(import) = &record.import else {
            return sections::render(record, &Self::info(record));
        };
        let info = Self::info(record);
        imported(record, import, &|page| sections::imported(page, &info))
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        let all = charts::all(record, &Self::info(record));
        all.into_iter().for_each(draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        headline::of(record, &Self::info(record))
    }

    fn delivered(&self, record: &Record) -> Delivered {
        let info = Self::info(record);
        if info.groups.is_empty() { Delivered::sustained(record) } else { delivered::of(&info.groups) }
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        conditions::all(&Self::info(baseline), &Self::info(candidate))
    }

    fn several(&self, records: &[&Record]) -> Vec<Advice> {
        let mut found: Vec<Advice> = settings_differ(records).into_iter().collect();
        // A probe that ran all the sizes has reported it itself.
        let mut said = records.iter().flat_map(|record| &record.advice);
        if !said.any(|advice| advice.id == "R11") {
            found.extend(limits::two_limits(&limits::groups(records)));
        }
        found
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        match record.import {
            // Another tool's result may lack it.
            Some(_) => record.parts.read::<StorageInfo>().map(drop),
            None => record.parts.require::<StorageInfo>(),
        }
    }
}
