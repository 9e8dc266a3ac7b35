//! fio's faces of a storage probe: text, JSON, json+, terse and the progress line, as fio 3.33
//! prints them, because people and scripts know them by heart.
//!
//! Reads [`StorageReadings`] alone and derives everything from them. What is different on purpose,
//! besides the version: `fdatasync` is neither counted among the depths nor among short reads;
//! shares of depths add up to 100 %; wall time is UTC; the decimal rate of the steady state is
//! right; `lat_ns` always has percentiles; `job options` always tells `rw`, `iodepth`, `numjobs`
//! and `bs` (which of them were not typed stands under `native`); `eta` is 0 once all is done.
//! Percentiles are fio's own: given for any number of samples and not held within the extremes.

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

/// What stands where fio names its version: [`StorageReadings::fio_version`], or
/// `assay-` and the version of this program.
#[must_use]
pub fn version(readings: &StorageReadings) -> &str {
    match readings.fio_version.as_str() {
        "" => concat!("assay-", env!("CARGO_PKG_VERSION")),
        version => version,
    }
}
