//! The record of a run, from raw measurements to files.

use crate::answer;
use crate::before;
use crate::exit::Failure;
use crate::html;
use crate::rundir::{RECORD, REPORT, REPORT_HTML, RunDir};
use assay_awr::record::SeriesBuilder;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_report::answer::Context;
use assay_report::formats::{Input, find};

/// The files of a record, and the format of each.
const FILES: [(&str, &str); 3] = [(RECORD, "json"), (REPORT, "full"), (REPORT_HTML, "html")];

/// Derives everything from what was measured, the series from the snapshots as they came.
pub(crate) fn of(data: &RunData, series: SeriesBuilder) -> Record {
    let mut record = assay_awr::record::build_with(data, series);
    if data.part.is_some() {
        for kind in crate::registry::kinds() {
            if kind.name() == record.kind {
                kind.complete(data, &mut record);
            }
        }
        assay_measure::kind::attach_metrics(assay_report::kinds::of(&record), &mut record);
    }
    record
}

/// Exact identities that do not hold: the run cannot be trusted.
pub(crate) fn violations(record: &Record) -> Vec<String> {
    let violated = assay_measure::identity::violated_exact(record);
    violated.iter().map(|identity| format!("identity {} does not hold: {}", identity.id, identity.rule)).collect()
}

/// Writes the files of a record.
pub(crate) fn write(dir: &RunDir, record: &Record) -> Result<(), Failure> {
    let records = [record];
    let context = Context { previous: before::previous(record, dir.path()), ..Context::default() };
    let input = Input { assets: html::beside(dir), context, ..Input::of(&records) };
    for (file, name) in FILES {
        dir.write(file, &answer::written(find(name).unwrap_or_default(), &input, dir.path())?)?;
    }
    Ok(())
}
