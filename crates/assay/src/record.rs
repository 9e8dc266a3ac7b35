//! The record of a run and its faces, from raw measurements to files.

use crate::exit::{Code, Failure};
use crate::held::Held;
use crate::rundir::{OLD_SWEEP, RECORD, REPEAT, REPORT, RunDir};
use assay_awr::record::SeriesBuilder;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_report::compare::Repeats;
use std::fmt::Display;
use std::path::Path;

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
    /// Of a record that is not held to its identities.
    pub(crate) fn of(record: Record) -> Result<Self, Failure> {
        Ok(Self {
            text: assay_report::text::render(&record),
            json: json(&record)?,
            void: Vec::new(),
            record,
        })
    }
}

/// Derives everything from what was measured, the series from the snapshots as they came.
pub(crate) fn faces(data: &RunData, series: SeriesBuilder) -> Result<Faces, Failure> {
    let mut faces = Faces::of(assay_awr::record::build_with(data, series))?;
    faces.void = assay_measure::identity::violated_exact(&faces.record)
        .iter()
        .map(|identity| format!("identity {} does not hold: {}", identity.id, identity.rule))
        .collect();
    Ok(faces)
}

/// `record.json` with its final line end.
pub(crate) fn json(record: &Record) -> Result<String, Failure> {
    assay_report::json::write(record)
        .map_err(|error| Failure::new(Code::Bug, format!("record.json: {error}")))
}

/// Writes `record.json`, `report.txt` and `report.html`.
pub(crate) fn write(dir: &RunDir, faces: &Faces) -> Result<(), Failure> {
    dir.write(RECORD, &faces.json)?;
    dir.write(REPORT, &faces.text)?;
    crate::html::write_report(dir, &faces.record)
}

/// Reads a record.
pub(crate) fn read(path: &Path) -> Result<Record, Failure> {
    read_as(path, assay_report::json::read)
}

/// Reads the summary of repeats.
pub(crate) fn read_repeats(path: &Path) -> Result<Repeats, Failure> {
    read_as(path, Repeats::read)
}

fn read_as<T, E: Display>(path: &Path, read: fn(&str) -> Result<T, E>) -> Result<T, Failure> {
    let bad = |what: &dyn Display| Failure::usage(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(&error))?;
    read(&text).map_err(|error| bad(&error))
}

/// Whether a directory holds a record or a summary of repeats that can be read.
pub(crate) fn is_in(dir: &Held) -> bool {
    let holds =
        |name, readable: &dyn Fn(&str) -> bool| dir.read(name).is_ok_and(|text| readable(&text));
    let is_record = |text: &str| assay_report::json::read(text).is_ok();
    holds(RECORD, &is_record)
        || holds(OLD_SWEEP, &is_record)
        || holds(REPEAT, &|text| Repeats::read(text).is_ok())
}
