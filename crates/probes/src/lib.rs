//! Probes of one part of the platform, that need no data set: a folder for each.
#![forbid(unsafe_code)]

pub mod cpu;
pub mod sync;
