//! Instance statistics as a database shows them: how a run becomes a record, and how that record is reported.
//!
//! [`record::build`] is the only place that sees raw readings; everything else reads only the
//! [`assay_measure::record::Record`]. Runs of a workload and imported database reports have the same sections, charts,
//! figures and rules. Nothing here does I/O or prints.
#![forbid(unsafe_code)]

pub mod charts;
mod database;
mod deltas;
pub mod identities;
pub mod integrity;
pub mod record;
pub mod recover;
mod result_line;
pub mod rules;
pub mod sections;
mod waits;

#[cfg(test)]
mod testing;

pub use database::{Workload, figures};

use assay_measure::kind::Kind;

/// What a database shows of itself.
pub const INSTANCE: Workload = Workload("instance");

/// The kinds of imports whose records show an instance, or figures of a workload. Some imports also have a kind of their own: that
/// kind handles records with its part.
pub static KINDS: &[&dyn Kind] = &[
    &INSTANCE,
    &Workload("transactions"),
    &Workload("orders"),
    &Workload("network"),
    &Workload("ping"),
    &Workload("redo"),
    &Workload("cpu"),
    &Workload("memory"),
    &Workload("storage"),
];
