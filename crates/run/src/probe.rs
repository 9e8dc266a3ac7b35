//! The contract of a probe: a test of one part of the platform that needs no data set.
//!
//! A [`Target`](crate::engine::Target) lives on: it is prepared, run and destroyed. A probe is
//! aimed at a place, measures, and leaves that place as it found it.

mod words;

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
    /// The directory or file to measure in, for a probe that is just given a place; the other host for one that has a peer.
    pub place: PathBuf,
    /// About how long to measure.
    pub time: Duration,
    /// The probe's own language, a word each (fio's options and job files; `NAME=VALUE` or `NAME` for one of
    /// [`ProbeFacts::options`]); empty: measure `place` for `time` in the probe's usual way.
    pub words: Vec<String>,
}

/// An option of a probe's own: its command makes a flag of it, the record a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeOption {
    /// The flag without its dashes, and the word's name.
    pub name: &'static str,
    /// Other spellings: of one letter a short flag (`-b`), of more a flag that is taken and not shown.
    pub also: &'static [&'static str],
    /// What help calls its value; empty for a switch.
    pub value: &'static str,
    /// What holds where nobody says, as it would be typed; empty: it is off.
    pub default: &'static str,
    /// One line for help; one without is taken and not shown.
    pub help: &'static str,
}

/// `--logfile`, of a probe whose tool has it: what would be printed is appended to a file.
pub const LOGFILE: ProbeOption =
    ProbeOption::new("logfile", &[], "FILE", "", "Append what would be printed (see --format) to FILE");

impl Request {
    /// Measure there, for so long, in the usual way.
    #[must_use]
    pub fn at(place: &Path, time: Duration) -> Self {
        Self { place: place.to_path_buf(), time, words: Vec::new() }
    }

    /// What was said of an option, else its default: empty for one that is off, its name for a switch that is on.
    #[must_use]
    pub fn option<'a>(&'a self, option: &ProbeOption) -> &'a str {
        let said = self.words.iter().rev().find_map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, word));
            (name == option.name).then_some(value)
        });
        said.unwrap_or(option.default)
    }
}

/// What a probe measures against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Takes {
    /// A directory or file, so that its command takes a PATH.
    #[default]
    Place,
    /// Another host, so that its command takes that in place of a PATH, or the word [`SERVER`].
    Peer,
    /// This host.
    Nothing,
}

/// What a probe is called, and what its command says and takes.
#[derive(Clone, Copy, Default)]
pub struct ProbeFacts {
    /// `sync`, ...: also the command's name and the record's workload.
    pub name: &'static str,
    /// One line for help.
    pub about: &'static str,
    /// What its help says below that line, in sentences.
    pub more: &'static str,
    /// What it measures against.
    pub takes: Takes,
    /// How long it measures where nobody says, as the command line has it; `None` of a probe with words of its own.
    pub usual_time: Option<&'static str>,
    /// Other spellings of `--time` that its command takes and does not show: those of the tool it stands in for.
    pub time_also: &'static [&'static str],
    /// Whether it measures nothing that takes time, so that its command has no `--time`.
    pub only_looks: bool,
    /// Whether its command also takes its long flags with one dash (`-port=5555`), as the tool does that it stands in for.
    pub has_long_flags_with_one_dash: bool,
    /// Options of its own.
    pub options: &'static [ProbeOption],
    /// The kind of its records; `None` where another probe or workload brings it.
    pub kind: Option<&'static dyn Kind>,
}

/// A kind of probe: one crate or folder, one line in the registry of the program.
pub trait Probe: Sync {
    /// What it is called, says and takes.
    fn facts(&self) -> ProbeFacts;

    /// What answers on the other host, for a probe with a peer.
    ///
    /// # Errors
    /// An address that cannot be bound; words that a server does not have.
    fn server(&self, _request: &Request) -> Result<Box<dyn Serving>, EngineError> {
        Err(EngineError::Usage(format!("{} has no server", self.facts().name)))
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

/// In place of a peer: this program is to be the other end.
pub const SERVER: &str = "server";

/// The other end of a probe, ready to serve.
pub trait Serving {
    /// Where it listens and whom it serves.
    fn plan(&self) -> Vec<Line>;

    /// Serves until a stop request, whatever its clients do; `say` takes a line of what happens.
    ///
    /// # Errors
    /// The socket it listens on is lost.
    fn serve(&self, stop: &Stop, say: &(dyn Fn(&str) + Sync)) -> Result<(), EngineError>;
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

    /// Its record, figures, advice and all; one whose verdict is invalid ends the command with the exit code of an
    /// invalid run. `labels` brings id, label, settings and the host's facts; of the
    /// measurements in it nothing is read. `None` of a probe whose command draws more than the record from its readings.
    fn record(&self, _labels: &RunData) -> Option<Record> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_what_was_said_last_else_its_default() {
        let option = |name, default| ProbeOption { name, also: &[], value: "N", default, help: "" };
        let request =
            Request { words: ["load=2", "load=3=4", "quiet"].map(str::to_owned).to_vec(), ..Request::default() };
        assert_eq!(request.option(&option("load", "1")), "3=4");
        assert_eq!(request.option(&option("quiet", "")), "quiet");
        assert_eq!(request.option(&option("other", "5")), "5");
        assert_eq!(request.option(&option("loa", "")), "");
    }
}
