//! The record of a run and its faces, from raw measurements to files.

use crate::exit::{Code, Failure};
use crate::rundir::{RECORD, REPORT, RunDir};
use assay_awr::record::SeriesBuilder;
use assay_measure::record::{Advice, Record};
use assay_measure::snapshot::RunData;

/// A record as it is printed and kept.
pub(crate) struct Faces {
    /// `report.txt`.
    pub(crate) text: String,
    /// `record.json`.
    pub(crate) json: String,
    /// Exact identities that do not hold: the run cannot be trusted.
    pub(crate) void: Vec<String>,
    /// What both are faces of.
    pub(crate) record: Record,
}

impl Faces {
    /// With what was found before all that the record says.
    pub(crate) fn finding(self, found: Option<Advice>) -> Result<Self, Failure> {
        let Some(found) = found else { return Ok(self) };
        let mut record = self.record;
        record.advice.insert(0, found);
        Ok(Self { void: self.void, ..Self::of(record)? })
    }

    /// Of a record that is not held to its identities.
    pub(crate) fn of(record: Record) -> Result<Self, Failure> {
        Ok(Self { text: assay_report::text::render(&record), json: json(&record)?, void: Vec::new(), record })
    }
}

/// Derives everything from what was measured, the series from the snapshots as they came.
pub(crate) fn faces(data: &RunData, series: SeriesBuilder) -> Result<Faces, Failure> {
    let mut record = assay_awr::record::build_with(data, series);
    if data.part.is_some() {
        for kind in crate::registry::kinds() {
            if kind.name() == record.kind {
                kind.complete(data, &mut record);
            }
        }
        assay_measure::kind::figure(assay_report::kinds::of(&record), &mut record);
    }
    let mut faces = Faces::of(record)?;
    faces.void = assay_measure::identity::violated_exact(&faces.record)
        .iter()
        .map(|identity| format!("identity {} does not hold: {}", identity.id, identity.rule))
        .collect();
    Ok(faces)
}

/// `record.json` with its final line end.
pub(crate) fn json(record: &Record) -> Result<String, Failure> {
    assay_report::json::write(record).map_err(|error| Failure::new(Code::Bug, format!("record.json: {error}")))
}

/// Writes `record.json`, `report.txt` and `report.html`.
pub(crate) fn write(dir: &RunDir, faces: &Faces) -> Result<(), Failure> {
    dir.write(RECORD, &faces.json)?;
    dir.write(REPORT, &faces.text)?;
    crate::html::write_report(dir, &faces.record)
}
