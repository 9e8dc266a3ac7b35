//! fio's outputs for a storage probe: text, JSON, json+, terse and the progress line, as fio 3.33 prints them, because
//! people and scripts know them by heart.
//!
//! Everything is derived from [`StorageReadings`] alone. Besides the version, these differences are deliberate:
//! `fdatasync` counts neither among the depths nor among short reads; shares of depths add up to 100 %; wall time is
//! UTC; the decimal rate of the steady state is correct; `lat_ns` always has percentiles; `job options` always has
//! `rw`, `iodepth`, `numjobs` and `bs` (`native` lists those that were not typed); `eta` is 0 at the end. Percentiles
//! follow fio's rules: they exist for any number of samples and are not limited to the extremes.

mod entry;
mod eta;
mod json;
mod latency;
mod number;
mod options;
mod percentile;
mod terse;
mod text;
mod tree;
mod wall;

#[cfg(test)]
mod tests;

pub use eta::eta;
pub use json::json;
pub use number::{Step, short};
pub use terse::terse;
pub use text::{header, text};

use crate::readings::StorageReadings;

/// The version string in fio's place: [`StorageReadings::fio_version`], or `assay-` and the version of this program.
#[must_use]
pub fn version(readings: &StorageReadings) -> &str {
    match readings.fio_version.as_str() {
        "" => concat!("assay-", env!("CARGO_PKG_VERSION")),
        version => version,
    }
}
