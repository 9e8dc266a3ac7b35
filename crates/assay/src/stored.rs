//! Records in run directories: reading them, and finding out whether there is one.

use crate::dir_handle::DirHandle;
use crate::exit::Failure;
use crate::rundir::{RECORD, REPEAT};
use assay_measure::record::Record;
use assay_report::compare::Repeats;
use assay_run::bounded;
use std::fmt::Display;
use std::path::Path;

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
    let text = bounded::text(path, bounded::RECORD).map_err(|error| bad(&error))?;
    read(&text).map_err(|error| bad(&error))
}

/// Whether a directory holds a record or a summary of repeats that can be read.
pub(crate) fn is_in(dir: &DirHandle) -> bool {
    let holds =
        |name, readable: &dyn Fn(&str) -> bool| dir.read(name, bounded::RECORD).is_ok_and(|text| readable(&text));
    let is_record = |text: &str| assay_report::json::read(text).is_ok();
    holds(RECORD, &is_record) || holds(REPEAT, &|text| Repeats::read(text).is_ok())
}
