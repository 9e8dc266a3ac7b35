//! The engine contract, the plan, the SLOB workload, the driver loop and the collector.
//!
//! Threads live here; printing does not. Engines implement [`engine`]'s traits
//! and know nothing of reports; the binary calls `execute` and writes
//! down what it returns.
#![forbid(unsafe_code)]

pub mod engine;
pub mod plan;
pub mod stop;
