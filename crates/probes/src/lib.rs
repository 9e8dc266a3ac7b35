//! Probes of one part of the platform, that need no data set: a folder for each, and what several of them share.
#![forbid(unsafe_code)]

mod conditions;
mod crew;
mod host;
mod load;
mod machine;

pub mod cpu;
pub mod memory;
pub mod sync;
pub mod topology;
