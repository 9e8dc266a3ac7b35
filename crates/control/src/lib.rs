//! What reaches beyond one process: a fleet of hosts that run one test together.
//!
//! The only crate with an asynchronous runtime. It measures nothing: each host's part is a run like any other, in a process of
//! its own, whose snapshots are added here. Nothing here prints.
#![forbid(unsafe_code)]

pub mod fleet;
