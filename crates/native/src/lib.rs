//! The native target: the database I/O path with no database.
//!
//! A small block engine on its own files: [`layout`], [`block_format`] and [`control`] say what the data set is,
//! `prepare`, `check` and `destroy` are its life cycle, and [`engine`] runs sessions on it.
//! `docs/design/native-layout.md` gives every byte.
#![forbid(unsafe_code)]

mod adopt;
mod audit;
pub mod block_format;
mod bulk;
mod check;
mod claim;
mod content;
pub mod control;
pub mod control_file;
mod control_format;
mod control_rules;
pub mod crash;
pub mod crash_rules;
mod destroy;
mod device;
pub mod engine;
mod errors;
pub mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod layout;
mod load_plan;
mod memory;
pub mod params;
pub mod paths;
mod prepare;
mod recovery;
mod redo_format;

mod survey;
mod take_back;
mod target;
mod undo_format;

pub use target::Native;

#[cfg(test)]
mod tests;
