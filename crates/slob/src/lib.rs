//! The workload of the SLOB method: its parameters ([`params`]), the plan they make for a run ([`plan`]), the
//! operations of its sessions ([`session`]), and the kind of its records.
//!
//! A target performs the operations; nothing here does I/O or prints.
#![forbid(unsafe_code)]

pub mod params;
pub mod plan;
mod rules;
pub mod session;
mod workload;

pub use workload::Slob;

use assay_measure::config::WorkloadParams;

/// The kind of its records: runs of this workload on a target.
pub const SLOB: assay_awr::Workload = assay_awr::Workload(NAME);

/// The name of the workload and of its record kind.
pub const NAME: &str = "slob";

/// Its parameters and the relations between them.
pub static SETTINGS: WorkloadParams = WorkloadParams { name: NAME, params: params::PARAMS, rules: rules::apply };
