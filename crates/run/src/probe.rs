//! The contract of a probe: a test of one part of the platform that needs no data set.
//!
//! A [`Target`](crate::engine::Target) lives on: it is prepared, run and destroyed. A probe is
//! aimed at a place, measures, and leaves that place as it found it.

mod hosts;
mod option;

pub use hosts::{OfHost, added};
pub use option::ProbeOption;

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
    /// [`ProbeSpec::options`]); empty: measure `place` for `time` in the probe's usual way.
    pub words: Vec<String>,
}

crate::probe_options! {
    /// Of a probe whose tool has it.
    pub OF_TOOL:
    /// What would be printed is appended to a file.
    LOGFILE: "logfile" ["FILE"], "Append what would be printed (see --format) to FILE";
}

impl Request {
    /// Measure at this place, for this long, in the usual way.
    #[must_use]
    pub fn at(place: &Path, time: Duration) -> Self {
        Self { place: place.to_path_buf(), time, words: Vec::new() }
    }

    /// The given value of an option, otherwise its default: empty for an option that is off, its name for a switch that
    /// is on.
    #[must_use]
    pub fn option<'a>(&'a self, option: &ProbeOption) -> &'a str {
        let said = self.words.iter().rev().find_map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, word));
            (name == option.name).then_some(value)
        });
        said.unwrap_or(option.default)
    }
}

/// What makes the other end of a probe ready.
pub type Serve = fn(&Request) -> Result<Box<dyn Serving>, EngineError>;

impl Takes {
    /// What the word in the place of a request makes ready, if it asks for the other end.
    #[must_use]
    pub fn server(&self, place: &Path) -> Option<Serve> {
        let (word, serve) = match self {
            Self::Peer(serve) => (SERVER, *serve),
            Self::PlaceOr(word, serve) => (*word, *serve),
            Self::Place | Self::Nothing => return None,
        };
        (place.as_os_str() == word).then_some(serve)
    }
}

/// See [`ProbeSpec::over_hosts`]; `None` where a part cannot be read.
pub type OverHosts = fn(&RunData, &[&serde_json::Value]) -> Option<Record>;

/// What a probe measures against.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// A directory or file, so that its command takes a PATH.
    Place,
    /// Another host, so that its command takes that in place of a PATH, or the word [`SERVER`]: what makes ready to answer there. It
    /// refuses an address that cannot be bound, and words that a server does not have.
    Peer(Serve),
    /// A directory or file as [`Takes::Place`]; or this word in its place, which makes ready to answer as for [`Takes::Peer`].
    PlaceOr(&'static str, Serve),
    /// This host.
    Nothing,
}

/// A kind of probe: one constant of its folder, one line in the registry of the program. Its command, the help and the manual page of
/// it, the plan's command line and the settings of its records come from here.
#[derive(Clone, Copy)]
pub struct ProbeSpec {
    /// `sync`, ...: also the command's name and the record's workload.
    pub name: &'static str,
    /// One line for help.
    pub about: &'static str,
    /// What its help says below that line, in sentences.
    pub more: &'static str,
    /// What it measures against.
    pub takes: Takes,
    /// What help says of its PATH.
    pub place_help: &'static str,
    /// How long it measures by default, as typed; `None` for a probe that measures nothing which takes time: its command has
    /// no `--time`.
    pub usual_time: Option<&'static str>,
    /// How long it measures with `--quick`, as typed; `None`: it has no such flag.
    pub quick_time: Option<&'static str>,
    /// Other spellings of `--time` that its command takes and does not show: those of the tool it replaces.
    pub time_also: &'static [&'static str],
    /// Whether its words are a language of their own, for which the program has a command of its own.
    pub has_own_command: bool,
    /// Whether its command also takes its long flags with one dash (`-port=5555`), as the tool that it replaces does.
    pub has_long_flags_with_one_dash: bool,
    /// The figures that `--until` can follow from round to round: a short name of the field (or nothing), and the keys of the
    /// metric, of which a record has one. None of a probe that changes what it measures, or measures nothing twice.
    pub follows: &'static [(&'static str, &'static [&'static str])],
    /// Options of its own, in the order of help: lists one after the other, of which several probes may share one.
    pub options: &'static [&'static [ProbeOption]],
    /// The kind of its records.
    pub kind: &'static dyn Kind,
    /// The record of one test that several hosts made at the same time, from labels and the part of each host's [`Measured::data`];
    /// `None` for a probe whose readings do not add up.
    pub over_hosts: Option<OverHosts>,
    /// Aims at a place and plans for about the time asked. Looks without touching. It refuses a place that must not or cannot be used
    /// (somebody else's file, no such directory, too little space), and words that the probe's language does not have.
    pub aim: fn(&Request) -> Result<Box<dyn Aimed>, EngineError>,
}

impl ProbeSpec {
    /// One that looks at this host, and takes no time worth a word; what a probe has beside that is said by name.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: &'static dyn Kind,
        aim: fn(&Request) -> Result<Box<dyn Aimed>, EngineError>,
    ) -> Self {
        Self {
            name,
            about: "",
            more: "",
            takes: Takes::Nothing,
            place_help: "A directory, or a new file that assay makes and removes",
            usual_time: None,
            quick_time: None,
            time_also: &[],
            has_own_command: false,
            has_long_flags_with_one_dash: false,
            follows: &[],
            options: &[],
            over_hosts: None,
            kind,
            aim,
        }
    }

    /// All options of its own.
    pub fn options(&self) -> impl Iterator<Item = &'static ProbeOption> + use<> {
        self.options.iter().flat_map(|list| list.iter())
    }
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
    /// I/O errors, a full disk, or [`EngineError::Interrupted`] when nothing was measured yet: what is returned has figures.
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

    /// Everything is laid out; returns when the measurement may be got ready. Of a fleet, shortly before all hosts begin.
    fn ready(&self) {}

    /// Returns when the first request may be made: of a fleet, at the instant that all hosts begin at.
    fn begin(&self) {}

    /// Whether other hosts do the same at this time: then nothing is added that this one alone would.
    fn is_one_of_many(&self) -> bool {
        false
    }

    /// How far a step is whose end the time asked for does not tell, in words; about once a second.
    fn say(&self, _how_far: &str) {}

    /// What is going on, about once a second, in the probe's own type; called from a thread of its own.
    fn live(&self, _now: &dyn Any) {}

    /// A cumulative reading before the end, where the words asked for one every so often.
    fn status(&self, _readings: &dyn Measured) {}
}

/// What a probe measured. Code that knows the probe may downcast it to its own type ([`Any`]).
pub trait Measured: Any + Debug {
    /// Whether a stop request ended it before its time.
    fn was_stopped(&self) -> bool;

    /// Its readings as the data of a run: the window, its operations, and all of them as the part; `None` where those of several hosts
    /// do not add up ([`ProbeSpec::over_hosts`]).
    fn data(&self, _labels: &RunData) -> Option<RunData> {
        None
    }

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
