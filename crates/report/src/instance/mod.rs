//! What a database shows of itself, and a workload on it: their figures, sections, charts and headline.

mod figures;
mod headline;

#[cfg(test)]
mod tests;

use crate::html::charts;
use crate::sections;
use assay_measure::chart::Drawn;
use assay_measure::kind::{Headline, Kind};
use assay_measure::record::{Metric, Record};
use assay_measure::section::Sections;

pub(crate) use figures::all as figures;

/// A workload under the name of its kind: operations by sessions, and the instance that served them.
#[derive(Debug)]
pub(crate) struct Workload(pub(crate) &'static str);

impl Kind for Workload {
    fn name(&self) -> &'static str {
        self.0
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        figures::all(record)
    }

    fn sections(&self, record: &Record) -> Sections {
        sections::workload(record)
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        charts::workload(record, draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        headline::of(record)
    }
}
