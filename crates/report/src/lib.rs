//! Records of any kind in all [`formats`]; of several: comparison, repeats, trend, cost.
//!
//! Knows no kind: it asks a record's [`Kind`](assay_measure::kind::Kind) for its content; the program installs the
//! kinds ([`kinds::install`]). A report never needs the run. Nothing here does I/O or prints.
#![forbid(unsafe_code)]

pub mod advice;
pub mod answer;
pub mod compare;
pub mod cost;
pub mod formats;
pub mod html;
pub mod json;
pub mod kinds;
pub mod text;
pub mod trend;
mod unknown;

#[cfg(test)]
extern crate self as assay_report;

#[cfg(test)]
mod edited;
#[cfg(test)]
#[path = "../../testkit/src/fixtures/storage.rs"]
mod storage_readings;
#[cfg(test)]
mod testing;
