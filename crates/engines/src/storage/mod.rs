//! `assay io`: the bare storage, by fio's options, job files and reports.
//!
//! Owns the job language, the files it works on, the I/O patterns and the work loop; knows
//! nothing of reports. The requests themselves belong to `assay_block`. See `README.md`.

pub mod files;
pub mod spec;
