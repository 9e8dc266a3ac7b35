//! The vocabulary of a measurement: clocks, units, random streams, histograms,
//! statistics, snapshots, configuration grammar and the record.
//!
//! Everything here is pure: no I/O, no threads, no printing. Every other crate
//! may depend on it; it depends on none of ours.
#![forbid(unsafe_code)]

// The attribute `figures` names this crate so, wherever its struct is.
extern crate self as assay_measure;

pub mod cap;
pub mod chart;
pub mod class;
pub mod clock;
pub mod config;
pub mod counter_catalog;
pub mod counters;
pub mod cpu;
mod defaults;
pub mod facts;
pub mod families;
pub mod figures;
pub mod fleet;
pub mod histogram;
pub mod history;
pub mod identity;
pub mod kind;
pub mod level_change;
pub mod locked;
pub mod palette;
pub mod permutation;
pub mod plain;
pub mod precision;
pub mod prng;
pub mod record;
pub mod rule;
pub mod schedule;
pub mod section;
pub mod series;
pub mod snapshot;
pub mod statistics;
pub mod steady;
pub mod timeline;
pub mod units;

#[cfg(test)]
mod testing;
