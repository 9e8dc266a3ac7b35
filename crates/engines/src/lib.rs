//! Targets and probes: one folder each, one registry, one conformance suite.
#![forbid(unsafe_code)]

pub mod conformance;
mod lines;
pub mod native;
pub mod null;
pub mod postgres;
pub mod registry;
mod room;
mod rows;
pub mod storage;
pub mod sync;
