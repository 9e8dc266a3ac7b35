//! Code that the tests of several crates share and no program contains: conformance suites, fixtures, the simulated
//! disk with its faults, injected bugs.
#![forbid(unsafe_code)]

pub mod conformance;
pub mod fixtures;
pub mod places;
pub mod port;
pub mod rules;
pub mod sim;
pub mod sim_engine;
pub mod trace;
