//! The storage probe's readers: fio's faces, and our own record with what follows from it.
//!
//! `fio` renders raw readings word for word where scripts and plotters read them. `build` turns
//! them into the record; `native` is that record's part of fio's JSON, `section` what stands below
//! fio's text. Rules and thresholds: docs/design/io-record.md.

mod advice;
mod analysis;
mod build;
mod caps;
pub mod fio;
mod groups;
mod integrity;
mod native;
mod options;
mod section;
mod series;
mod warnings;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use build::build;
pub use native::native;
pub use section::section;

pub(crate) use build::load as load_of;
pub(crate) use section::{notes, ring, seed, timing};
