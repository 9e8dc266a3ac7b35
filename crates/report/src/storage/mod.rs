//! The storage probe's readers: fio's faces, and our own record with what follows from it.
//!
//! `fio` renders raw readings word for word where scripts and plotters read them. `build` turns
//! them into the record; `native` is that record's part of fio's JSON, `section` what stands below
//! fio's text. Rules and thresholds: docs/design/io-record.md.

mod advice;
mod analysis;
mod build;
mod caps;
mod charts;
mod conditions;
mod delivered;
pub mod fio;
mod groups;
mod headline;
mod integrity;
mod metrics;
mod native;
mod options;
mod section;
mod sections;
mod series;
mod warnings;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use build::build;
pub use native::native;
pub use section::section;

pub(crate) use build::load as load_of;

use crate::instance::{self, Workload};
use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Delivered, Headline, Kind};
use assay_measure::record::{Metric, Part, Record, StorageInfo};
use assay_measure::section::Sections;

/// The kind of `assay io`, and of what other storage tools print.
#[derive(Debug)]
pub struct Storage;

/// What a record says whose tool told sums alone, without jobs.
const SUMS: Workload = Workload(StorageInfo::NAME);

impl Storage {
    fn info(record: &Record) -> StorageInfo {
        record.parts.get().unwrap_or_default()
    }
}

impl Kind for Storage {
    fn name(&self) -> &'static str {
        StorageInfo::NAME
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        let mut all = instance::figures(record);
        all.extend(metrics::all(&Self::info(record)));
        all
    }

    fn sections(&self, record: &Record) -> Sections {
        sections::render(record, &Self::info(record))
    }

    fn imported(&self, record: &Record, page: &mut Sections) {
        if let Some(info) = record.parts.get() {
            sections::imported(page, &info);
        }
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        match record.parts.get() {
            Some(info) => charts::all(record, &info).into_iter().for_each(draw),
            None => SUMS.charts(record, draw),
        }
    }

    fn headline(&self, record: &Record) -> Headline {
        match record.parts.get() {
            Some(info) => headline::of(&info),
            None => SUMS.headline(record),
        }
    }

    fn delivered(&self, record: &Record) -> Delivered {
        let info = Self::info(record);
        match info.groups.is_empty() {
            true => Delivered::sustained(record),
            false => delivered::of(&info.groups),
        }
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        conditions::all(&Self::info(baseline), &Self::info(candidate))
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        record.parts.read::<StorageInfo>().map(drop)
    }
}
