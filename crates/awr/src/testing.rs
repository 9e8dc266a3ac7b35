//! What tests share.

use crate::Workload;
use assay_measure::record::Record;

/// Runs of the workload that tests record.
static SLOB: Workload = Workload("slob");

/// The report of a record as text.
pub(crate) fn text(record: &Record) -> String {
    assay_report::kinds::install([crate::KINDS, &[&SLOB]].concat());
    assay_report::text::render(record)
}
