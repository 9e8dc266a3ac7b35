//! Looks up options as they were typed.

use super::entry::Entry;
use crate::readings::{JobReading, StorageReadings};

/// The last value given: the job's own, else the global one.
pub(super) fn value<'a>(readings: &'a StorageReadings, job: &'a JobReading, name: &str) -> Option<&'a str> {
    let own = job.options.iter().rev();
    let all = own.chain(readings.global_options.iter().rev());
    let (_, value) = all.into_iter().find(|(given, _)| given == name)?;
    value.as_deref()
}

/// Whether the job continues after failed I/Os, so that the report counts them.
pub(super) fn passes_errors(readings: &StorageReadings, entry: &Entry<'_>) -> bool {
    let asked = value(readings, entry.job, "continue_on_error");
    entry.errors_passed > 0 || asked.is_some_and(|what| what != "none")
}
