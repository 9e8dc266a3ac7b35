//! What tests share.

use assay_measure::record::Record;

/// The report of a record as text.
pub(crate) fn text(record: &Record) -> String {
    assay_report::kinds::install(crate::KINDS.to_vec());
    assay_report::text::render(record)
}
