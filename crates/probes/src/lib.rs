//! Probes of one part of the platform, that need no data set: a folder for each, and what several of them share.
#![forbid(unsafe_code)]

mod crew;
mod host;
mod load;

pub mod cpu;
pub mod sync;
