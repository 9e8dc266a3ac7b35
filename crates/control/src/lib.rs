//! What reaches beyond one process: a fleet of hosts that run one test together, pages for who watches or reads runs, and
//! figures for a monitoring system.
//!
//! The only crate with an asynchronous runtime. It measures nothing: each part of a fleet is a run like any other, in a process of
//! its own, whose snapshots are added here. Nothing here prints.
#![forbid(unsafe_code)]

pub mod fleet;
pub mod push;
pub mod serve;

use assay_run::dataset::rows::drawn_id;
use std::io;

/// Why pages are not served, or figures not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The request is wrong.
    #[error("{0}")]
    Refused(String),
    /// The host or the other end cannot serve.
    #[error("{0}")]
    Unusable(String),
}

/// A new token: 128 random bits.
///
/// # Errors
/// The system gives none.
pub fn new_token() -> io::Result<String> {
    let half = || drawn_id().map_err(io::Error::other);
    Ok(format!("{:016x}{:016x}", half()?, half()?))
}
