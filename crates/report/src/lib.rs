//! Readers of a run: from raw readings to the record, and from the record to
//! text, summary, CSV and JSON.
//!
//! [`record::build`] is the only place that sees raw readings; everything else
//! reads the [`assay_measure::record::Record`] alone, so a report never needs
//! the run. Nothing here does I/O or prints.
#![forbid(unsafe_code)]

pub mod advice;
mod bounds;
pub mod brief;
pub mod compare;
pub mod cost;
pub mod csv;
pub mod export;
pub mod faces;
pub mod html;
pub mod import;
mod instance;
pub mod integrity;
pub mod json;
pub mod kinds;
pub mod record;
pub mod recover;
pub mod recovery;
pub mod result_line;
mod sections;
pub mod storage;
pub mod summary;
pub mod sweep;
pub mod text;

#[cfg(test)]
mod edited;
#[cfg(test)]
mod fixture;
