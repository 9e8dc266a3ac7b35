//! Every kind of test whose records are read, one line each, and what is done to a record by its kind.

use crate::instance::Workload;
use crate::recovery::Recovery;
use crate::sections;
use crate::storage::Storage;
use assay_measure::kind::{Delivered, Kind};
use assay_measure::record::Record;
use assay_measure::section::Sections;
use std::sync::OnceLock;

/// Kinds that live in crates of their own, as the program lists them.
static MORE: OnceLock<Vec<&dyn Kind>> = OnceLock::new();

/// Makes kinds of other crates known; called once, before the first record is read.
pub fn install(kinds: Vec<&'static dyn Kind>) {
    MORE.get_or_init(|| kinds);
}

/// The kinds of this crate; of a record that no kind is named in, the first is asked.
static KINDS: &[&dyn Kind] = &[
    &Workload("slob"),
    &Storage,
    &Recovery,
    &Workload("instance"),
    &Workload("transactions"),
    &Workload("orders"),
    &Workload("network"),
    &Workload("ping"),
    &Workload("redo"),
    &Workload("cpu"),
    &Workload("memory"),
];

/// The kind of a record.
#[must_use]
pub fn of(record: &Record) -> &'static dyn Kind {
    let more = MORE.get().map_or(&[][..], Vec::as_slice);
    let mut kinds = KINDS.iter().chain(more);
    let found = kinds.find(|kind| kind.name() == record.kind);
    *found.unwrap_or(&KINDS[0])
}

/// Gives a record the figures of its kind.
pub fn figure(record: &mut Record) {
    assay_measure::kind::figure(of(record), record);
}

/// The sections of a record, measured here or imported.
#[must_use]
pub fn sections(record: &Record) -> Sections {
    match &record.import {
        Some(info) => sections::imported(record, info, of(record)),
        None => of(record).sections(record),
    }
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
