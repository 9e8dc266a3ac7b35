//! The native target: the database I/O path with no database.
//!
//! A small block engine on files of its own: [`layout`], [`block_format`],
//! [`permutation`] and [`control`] say what the data set is, `prepare`, `check`
//! and `destroy` are its life cycle, and the engine runs sessions on it.
//! `docs/design/native-layout.md` gives every byte.

pub mod block_format;
pub mod control;
pub mod layout;
pub mod permutation;
