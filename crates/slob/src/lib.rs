//! The workload of the SLOB method: what its sessions do ([`session`]), and the kind of its records.
//!
//! A target that bears it performs its operations; nothing here does I/O or prints.
#![forbid(unsafe_code)]

pub mod session;
mod workload;

pub use workload::Slob;

/// The kind of its records: runs of a workload on a target.
pub const SLOB: assay_awr::Workload = assay_awr::Workload(NAME);

/// Its name: of the workload, of the kind of its records.
pub const NAME: &str = "slob";
