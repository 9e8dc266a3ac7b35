//! Targets and probes: one folder each, one registry, one conformance suite.
#![forbid(unsafe_code)]

pub mod conformance;
mod dataset;
pub mod native;
pub mod null;
pub mod postgres;
pub mod registry;
pub mod storage;
pub mod sync;
