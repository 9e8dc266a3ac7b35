//! The kinds of test, as the program lists them, and the calls that depend on a record's kind.

use crate::unknown::Unknown;
use assay_measure::fleet::Fleet;
use assay_measure::kind::{self, Delivered, Kind};
use assay_measure::record::Record;
use assay_measure::section::Sections;
use std::sync::OnceLock;

/// The program's list.
static KINDS: OnceLock<Vec<&dyn Kind>> = OnceLock::new();

/// Makes kinds known; called once, before the first record is read.
pub fn install(kinds: Vec<&'static dyn Kind>) {
    KINDS.get_or_init(|| kinds);
}

/// All of them.
pub(crate) fn all() -> &'static [&'static dyn Kind] {
    #[cfg(test)]
    crate::testing::install();
    KINDS.get().map_or(&[][..], Vec::as_slice)
}

/// The kind of a record: of those with its name, the last that can report it; the first of all if the record names
/// none. A record of an unknown kind is reported by its figures alone.
#[must_use]
pub fn of(record: &Record) -> &'static dyn Kind {
    let kinds = all();
    let found = if record.kind.is_empty() { kinds.first().copied() } else { kind::of(kinds, record) };
    found.unwrap_or(&Unknown)
}

/// Gives a record the figures of its kind.
pub fn attach_metrics(record: &mut Record) {
    kind::attach_metrics(of(record), record);
}

/// Whether a record was made from runs below it.
#[must_use]
pub fn stands_above_runs(record: &Record) -> bool {
    !of(record).members(record).is_empty()
}

/// The sections of a record, measured here or imported.
#[must_use]
pub fn sections(record: &Record) -> Sections {
    let mut page = of(record).sections(record);
    Fleet::add_section(record, &mut page);
    page
}

/// What a record delivered.
#[must_use]
pub fn delivered(record: &Record) -> Delivered {
    let mut found = of(record).delivered(record);
    found.ios_per_s = match (found.reads_per_s.value(), found.writes_per_s.value()) {
        (Some(_), None) => found.reads_per_s.clone(),
        (None, Some(_)) => found.writes_per_s.clone(),
        _ => found.reads_per_s.plus(&found.writes_per_s),
    };
    found
}
