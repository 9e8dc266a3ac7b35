//! The contract of a probe: a test of one part of the platform that needs no data set.
//!
//! A [`Target`](crate::engine::Target) lives on: it is prepared, run and destroyed. A probe is
//! aimed at a place, measures, and leaves that place as it found it.

use crate::engine::{EngineError, Line};
use crate::stop::Stop;
use assay_measure::kind::Kind;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use std::any::Any;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a probe is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The directory or file to measure in, for a probe that is just given a place.
    pub place: PathBuf,
    /// About how long to measure.
    pub time: Duration,
    /// The probe's own language, a word each (fio's options and job files, ...); empty: measure
    /// `place` for `time` in the probe's usual way.
    pub words: Vec<String>,
}

impl Request {
    /// Measure there, for so long, in the usual way.
    #[must_use]
    pub fn at(place: &Path, time: Duration) -> Self {
        Self {
            place: place.to_path_buf(),
            time,
            words: Vec::new(),
        }
    }
}

/// A kind of probe: one crate or folder, one line in the registry of the program.
pub trait Probe: Sync {
    /// `sync`, ...: also the command's name and the record's workload.
    fn name(&self) -> &'static str;

    /// One line for help.
    fn about(&self) -> &'static str;

    /// What its help says below that line, in sentences.
    fn more(&self) -> &'static str {
        ""
    }

    /// How long it measures where nobody says, as the command line has it; `None` of a probe with words of its own.
    fn usual_time(&self) -> Option<&'static str> {
        None
    }

    /// The kind of its records; `None` where another probe or workload brings it.
    fn kind(&self) -> Option<&'static dyn Kind> {
        None
    }

    /// Aims at a place and plans for about the time asked. Looks without touching.
    ///
    /// # Errors
    /// A place that must not or cannot be used: somebody else's file, no such directory, too
    /// little space; words that the probe's language does not have.
    fn aim(&self, request: &Request) -> Result<Box<dyn Aimed>, EngineError>;
}

/// A probe aimed at a place.
pub trait Aimed {
    /// What it will do: printed before the first byte is written.
    fn plan(&self) -> Vec<Line>;

    /// Measures. A stop request ends it at the next step with what there is; whatever it put
    /// into its place is gone when this returns, however it returns, unless the words asked for
    /// files by name.
    ///
    /// # Errors
    /// I/O errors, a full disk, or [`EngineError::Interrupted`] when nothing was measured yet.
    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError>;
}

/// Receives progress.
pub trait Steps: Sync {
    /// Step `number` of `of`, from 1, begins; `what` says what it measures.
    fn step(&self, number: usize, of: usize, what: &str);

    /// What is going on, about once a second, in the probe's own type; called from a thread of its own.
    fn live(&self, _now: &dyn Any) {}

    /// A cumulative reading before the end, where the words asked for one every so often.
    fn status(&self, _readings: &dyn Measured) {}
}

/// What a probe measured. Who knows the probe may ask for its own type ([`Any`]).
pub trait Measured: Any + Debug {
    /// Whether anything was.
    fn is_empty(&self) -> bool;

    /// Whether a stop request ended it before its time.
    fn was_stopped(&self) -> bool;

    /// Its record, figures, advice and all. `labels` brings id, label, settings and the host's facts; of the
    /// measurements in it nothing is read. `None` of a probe whose command draws more than the record from its readings.
    fn record(&self, _labels: &RunData) -> Option<Record> {
        None
    }
}
