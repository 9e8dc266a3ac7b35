//! Probes of one part of the platform, which need no data set: a folder for each, and what several of them share.
#![forbid(unsafe_code)]

mod conditions;
mod crew;
mod dial;
mod host;
mod load;
mod machine;
mod peer;
mod rules;
mod scratch;

pub mod clock;
pub mod cpu;
pub mod durability;
pub mod first_touch;
pub mod interference;
pub mod memory;
pub mod network;
pub mod ping;
pub mod redo;
pub mod sync;
pub mod throttle;
pub mod topology;

/// Every probe of this crate, in the order of their help: adding one touches its folder and this file.
pub const PROBES: &[assay_run::probe::ProbeSpec] = &[
    sync::SPEC,
    throttle::SPEC,
    first_touch::SPEC,
    interference::SPEC,
    durability::SPEC,
    cpu::SPEC,
    memory::SPEC,
    topology::SPEC,
    clock::SPEC,
    network::SPEC,
    ping::SPEC,
    redo::SPEC,
];
