//! Targets and probes: one folder each, one registry, one conformance suite.
#![forbid(unsafe_code)]

pub mod native;
pub mod registry;
