//! What tests share.

use crate::Workload;
use assay_measure::record::Record;

/// Runs of the workload that tests record.
static SLOB: Workload = Workload("slob");

/// What the report has to know of kinds.
pub(crate) fn install() {
    assay_report::kinds::install([crate::KINDS, &[&SLOB]].concat());
}

/// The report of a record as text.
pub(crate) fn text(record: &Record) -> String {
    install();
    assay_report::text::render(record)
}
