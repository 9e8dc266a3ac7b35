//! The workload of the SLOB method: its parameters ([`params`]), what they make of a run ([`plan`]), what its sessions do
//! ([`session`]), and the kind of its records.
//!
//! A target that bears it performs its operations; nothing here does I/O or prints.
#![forbid(unsafe_code)]

pub mod params;
pub mod plan;
mod rules;
pub mod session;
mod workload;

pub use workload::Slob;

use assay_measure::config::WorkloadParams;

/// The kind of its records: runs of a workload on a target.
pub const SLOB: assay_awr::Workload = assay_awr::Workload(NAME);

/// Its name: of the workload, of the kind of its records.
pub const NAME: &str = "slob";

/// Its parameters and what holds between them.
pub static SETTINGS: WorkloadParams = WorkloadParams { name: NAME, params: params::PARAMS, rules: rules::apply };
