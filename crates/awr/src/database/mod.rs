//! A database's own statistics, and a workload on it: their figures, sections, charts and headline.

mod figures;
mod headline;
mod limit;
mod printed_figures;
mod time;

#[cfg(test)]
mod tests;

use crate::charts;
use crate::result_line;
use crate::rules;
use crate::sections;
use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Headline, Kind};
use assay_measure::record::{Advice, Metric, Record};
use assay_measure::rule::Rule;
use assay_measure::section::Sections;

pub use figures::all as figures;

/// A workload under the name of its kind: operations by sessions, and the instance that served them.
#[derive(Debug)]
pub struct Workload(pub &'static str);

impl Kind for Workload {
    fn name(&self) -> &'static str {
        self.0
    }

    fn rules(&self) -> Vec<Rule> {
        rules::rules()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        figures::all(record)
    }

    fn sections(&self, record: &Record) -> Sections {
        match &record.import {
            Some(info) => sections::imported(record, info, &|_| ()),
            None => sections::workload(record),
        }
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        charts::workload(record, draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        headline::of(record)
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        headline::from_devices(baseline, candidate).into_iter().collect()
    }

    fn in_file_of_tool(&self, record: &Record, tool: &str) -> Option<String> {
        (tool == "pgio").then(|| result_line::render(record))?
    }

    fn several(&self, records: &[&Record]) -> Vec<Advice> {
        rules::settings_differ(records).into_iter().collect()
    }
}
