//! The engine contract, the plan, the driver loop and the collector.
//!
//! Threads live here; printing does not. Engines implement [`engine`]'s traits and know nothing of reports; the binary
//! calls [`execute()`] and saves what it returns.
#![forbid(unsafe_code)]

mod arrivals;
pub mod bounded;
mod collector;
pub mod command;
mod control;
pub mod dataset;
mod driver_loop;
pub mod engine;
mod execute;
mod floor;
mod history;
pub mod host;
pub mod journal;
pub mod left;
pub mod life;
pub mod load_test;
pub mod lock;
pub mod names;
pub mod null;
mod observer;
pub mod owned;
pub mod plan;
pub mod probe;
mod recorder;
pub mod standstill;
pub mod stop;
pub mod thread_clock;
pub mod threads;
mod timeline;
pub mod trace;
pub mod work;
pub mod workload;

pub use execute::{Labels, Options, RunError, execute};
pub use observer::{Mark, Observer, Unobserved};
pub use timeline::Planned;
