//! The contract of a probe: a test of one part of the platform that needs no data set.
//!
//! A [`Target`](crate::engine::Target) lives on: it is prepared, run and destroyed. A probe is
//! aimed at a place, measures, and leaves that place as it found it.

use crate::engine::{EngineError, Line};
use crate::stop::Stop;
use assay_measure::sync::SyncReadings;
use std::path::Path;
use std::time::Duration;

/// A kind of probe: one folder of `engines/`, one line in the registry.
pub trait Probe: Sync {
    /// `sync`, ...: also the command's name and the record's workload.
    fn name(&self) -> &'static str;

    /// One line for help.
    fn about(&self) -> &'static str;

    /// Aims at a place and plans for about `time` of measuring. Looks without touching.
    ///
    /// # Errors
    /// A place that must not or cannot be used: somebody else's file, no such directory, too
    /// little space.
    fn aim(&self, place: &Path, time: Duration) -> Result<Box<dyn Aimed>, EngineError>;
}

/// A probe aimed at a place.
pub trait Aimed {
    /// What it will do: printed before the first byte is written.
    fn plan(&self) -> Vec<Line>;

    /// Measures. A stop request ends it at the next step with what there is; whatever it put
    /// into its place is gone when this returns, however it returns.
    ///
    /// # Errors
    /// I/O errors, a full disk, or [`EngineError::Interrupted`] when nothing was measured yet.
    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Readings, EngineError>;
}

/// Receives progress.
pub trait Steps: Sync {
    /// Step `number` of `of`, from 1, begins; `what` says what it measures.
    fn step(&self, number: usize, of: usize, what: &str);
}

/// What a probe measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Readings {
    /// Durable writes.
    Sync(Box<SyncReadings>),
}
