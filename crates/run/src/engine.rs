//! The contract between the driver loop and whatever performs the work.
//!
//! One loop serves blocking and asynchronous engines alike, with fio's three
//! answers: an operation is `Done`, `Queued` or does not fit (`Full`); then reap.

pub use crate::work::{Assignment, DataSet, Op};
use crate::workload::Workload;

use crate::plan::Plan;
use crate::stop::Stop;
use assay_measure::clock::Ns;
use assay_measure::config::{Concern, ParamDef, Settings};
use assay_measure::snapshot::{Fact, StatSet, WaitClass};
use std::time::Duration;

/// Which session an operation belongs to: the index within its driver thread, from 0.
pub type Tag = u32;

/// Why an operation failed. The run goes on up to its error limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpError {
    /// Small class for counting: `io`, `corrupt`, `undo full`, `deadlock`, ...
    pub class: &'static str,
    /// The whole story (the loop keeps the first ten).
    pub text: String,
    /// A retry may help (deadlock, serialisation).
    pub retryable: bool,
}

impl OpError {
    /// An operation of a workload that the engine knows nothing of.
    #[must_use]
    pub fn not_ours() -> Self {
        Self {
            class: "unknown operation",
            text: "this data set belongs to another workload".to_owned(),
            retryable: false,
        }
    }
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Instant of its end, by the run's clock.
    pub end_ns: Ns,
    /// Rows touched, or the error.
    pub result: Result<u64, OpError>,
}

/// The answer to [`Driver::submit`].
#[derive(Debug)]
pub enum Submit {
    /// Ended already.
    Done(Outcome),
    /// In flight; [`Driver::reap`] will return it.
    Queued,
    /// No room now: reap, then submit again.
    Full,
}

/// An operation that ended after it was queued.
#[derive(Debug)]
pub struct Completion {
    /// The session's tag.
    pub tag: Tag,
    /// How it ended.
    pub outcome: Outcome,
}

/// Operations of one session that the target performs by itself, one after the other (LOOP=server): a round trip
/// for all of them.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// The session.
    pub tag: Tag,
    /// In the order they are to be done.
    pub ops: &'a [Op],
    /// No operation begins at or after this instant (by the run's clock), as far as the target's own clock can tell.
    pub until_ns: Ns,
}

/// The outcome of a [`Slice`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceDone {
    /// When its first operation began; the time before is the way there, and no operation's.
    pub begin_ns: Ns,
    /// Of the operations done, in their order; those left over come again first in the next slice. Each begins
    /// when the one before it ends. A failed operation that is worth another attempt is the last one.
    pub outcomes: Vec<Outcome>,
    /// When the answer was there.
    pub end_ns: Ns,
}

/// The part of an engine that lives on one driver thread. Created on that thread and never moved.
pub trait Driver {
    /// Starts an operation of session `tag` (one per session at a time). `start_ns` is the
    /// operation's beginning: DB time counts from it. In a closed loop it is the stamp that
    /// ended the session's previous operation, so it may lie a little before the present
    /// (run-queue time).
    fn submit(&mut self, tag: Tag, op: &Op, start_ns: Ns) -> Submit;

    /// Pushes queued work to the kernel or peer, waits up to `timeout` for at least one
    /// completion (zero: does not wait), and appends all completions to `out`.
    /// May return with none. A failure here ends the run.
    ///
    /// # Errors
    /// When the thread cannot go on (ring broken, peer gone).
    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError>;

    /// Whether a mark and the stop are to find operations ended as far as they end within 50 ms: a server publishes
    /// what a session did only between two operations. The default is no.
    fn settles(&self) -> bool {
        false
    }

    /// Operations this driver takes at once by [`Driver::perform`]; 0, the default: one by one, by [`Driver::submit`].
    fn slice_ops(&self) -> usize {
        0
    }

    /// Has the target perform a slice and waits for it. Only called where [`Driver::slice_ops`] is above 0.
    ///
    /// # Errors
    /// When the thread cannot go on; a failed operation is an outcome.
    fn perform(&mut self, slice: Slice<'_>) -> Result<SliceDone, EngineError> {
        let _ = slice;
        Err(EngineError::Unusable("this target has no loop of its own".to_owned()))
    }

    /// Adds this thread's cumulative statistics to `into`. DB time, op counts and thread CPU are the loop's.
    fn stats(&mut self, into: &mut StatSet);

    /// Session `tag` has ended its last operation. What it left open (COMMIT_EVERY) ends as soon as it can, since others
    /// may wait for it; `reap` returns nothing for that, and the time it takes is no DB time.
    fn leave(&mut self, _tag: Tag) {}

    /// All sessions have ended their last operation: logs them off and waits for what this thread still has
    /// under way, so that the last statistics miss nothing it does. Time spent here is outside DB time.
    ///
    /// # Errors
    /// When the thread cannot go on.
    fn finish(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// What a session inside a call does at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Its thread works for it.
    OnCpu,
    /// It could go on, but its thread works for another session.
    RunQueue,
    /// It waits.
    Waiting {
        /// The event's name.
        event: &'static str,
        /// Its class.
        class: WaitClass,
    },
}

/// An engine's remarks on a run, in full sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// What may have changed the figures, and what to try.
    pub warnings: Vec<String>,
    /// Why the figures are wrong: the run is invalid (exit 4).
    pub invalid: Vec<String>,
}

/// An opened target, shared by the driver threads.
pub trait Engine: Send + Sync {
    /// Facts for the report: achieved I/O mode, block size, files, versions.
    fn facts(&self) -> Vec<Fact>;

    /// What its sessions do.
    fn workload(&self) -> &dyn Workload;

    /// What the engine knows of the run that the kind of its records keeps as it is; asked once, after [`Engine::close`].
    fn part(&self) -> Option<serde_json::Value> {
        None
    }

    /// Driver threads wanted for so many sessions on this host's `cpus`.
    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize;

    /// Opens the driver of one thread; called on that thread, before the gate.
    ///
    /// # Errors
    /// When the target cannot serve the sessions.
    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError>;

    /// Which server [`Engine::sample`] reads, in words that are the same on all of its clients and of no other server; `None`
    /// where what it counts is of this process alone.
    fn server(&self) -> Option<String> {
        None
    }

    /// Cumulative statistics of everything that is not a driver thread (writers, server), plus gauges.
    /// Called at snapshots from the collector's thread, and a last time after [`Engine::close`],
    /// when nothing moves any more: the sums of that reading are exact.
    fn sample(&self) -> StatSet;

    /// What each session inside a call does at this instant; entry k is session k + 1.
    /// Entries come as [`Doing::OnCpu`] and may stay so: right for an engine that never
    /// waits. Called ten times a second beside the driver threads, so it must not lock
    /// anything they lock; sessions outside calls are left out by the caller.
    fn activity(&self, sessions: &mut [Doing]) {
        let _ = sessions;
    }

    /// [`Engine::activity`], or false where nobody looked this time: the tick is left out, and the next one stands
    /// for its time too. For an engine whose look is a round trip, which can be too dear for every tick, or fail.
    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.activity(sessions);
        true
    }

    /// What is to be told of the run; asked once, after [`Engine::close`] and the last [`Engine::sample`].
    fn remarks(&self) -> Remarks {
        Remarks::default()
    }

    /// Whether the driver threads do the database's work themselves, so that their CPU is DB CPU. A server's work is
    /// done elsewhere: then DB CPU is [`Engine::sample`]'s to tell.
    fn works_in_driver_threads(&self) -> bool {
        true
    }

    /// The run enters a phase that may take so long, whatever anybody is waited for, or one (`None`) whose end
    /// [`Engine::overdue`] tells. An engine that waits for somebody else gives up what outlasts it.
    fn phase(&self, name: &'static str, within: Option<Duration>) {
        let _ = (name, within);
    }

    /// Sessions are still at work so long after the instant at which they were told to end. Told again and again, on the
    /// collector's thread, until they are not: an engine whose sessions wait for somebody else can give that up in
    /// time, so that their calls return with an error.
    fn overdue(&self, late: Duration) {
        let _ = late;
    }

    /// Kernel names of the whole devices the data lies on, which the host sampler watches.
    fn watched_disks(&self) -> Vec<String>;

    /// Called once, with every driver closed, after the drain or when a run could not
    /// start: flush, checkpoint, mark clean.
    ///
    /// # Errors
    /// When the target could not be left in order.
    fn close(&self) -> Result<(), EngineError>;
}

/// What exists before anything is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing: `prepare` may create it; `harmless` if `run` may do so by itself.
    Absent {
        /// An absent or empty native directory, or a `temp:` server.
        harmless: bool,
    },
    /// A data set of ours.
    Present(DataSet),
}

/// One line of a plan, a summary: a label and a value, for people and for JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// snake_case with unit last: `total_bytes`, `free_bytes`, `estimated_s`.
    pub key: &'static str,
    /// For people.
    pub label: String,
    /// Number or text.
    pub value: LineValue,
}

/// A value of a [`Line`].
#[derive(Clone, Debug, PartialEq)]
pub enum LineValue {
    /// Whole number in the key's unit.
    Count(u64),
    /// Decimal in the key's unit.
    Decimal(f64),
    /// Text.
    Text(String),
}

/// Receives progress of long work; called at most a few times a second.
pub trait Progress: Sync {
    /// `done` of `total` in bytes of phase `phase`.
    fn update(&self, phase: &str, done_bytes: u64, total_bytes: u64);
}

/// Receives (schema, key, stamp) of a row, from several threads; `None` is a row as it was loaded.
pub type RowStamps<'a> = &'a (dyn Fn(u32, u64, Option<u64>) + Sync);

/// A server that was started for one command. Dropping this stops it and removes its files.
pub struct Started {
    /// The location to use from now on.
    pub location: String,
    /// What was started, where: for people.
    pub lines: Vec<Line>,
    /// Keeps it alive.
    pub keep: Box<dyn Running>,
}

/// A server that was started; it goes when this is dropped.
pub trait Running: Send {
    /// Stops it, removes what it left and tells about it.
    ///
    /// # Errors
    /// Something is left; what, and why.
    fn end(self: Box<Self>) -> Result<Vec<Line>, EngineError>;
}

/// What a server counts of all its clients' work, read from outside a run.
pub trait Watched {
    /// Its cumulative statistics at this instant.
    fn sample(&self) -> StatSet;

    /// Its version, the size of its blocks and of its cache, and what its statistics cover.
    fn facts(&self) -> Vec<Fact>;
}

/// How several hosts run on a target at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Each has a data set of its own, and what it counts is of its process alone.
    Each,
    /// All load one server, which counts for all of them.
    OneServer,
    /// They do not, and why.
    Never(&'static str),
}

/// A target: one crate or folder, one line in the registry of the program.
pub trait Target: Sync {
    /// `native`, `postgres`, ...: also the URL scheme.
    fn name(&self) -> &'static str;

    /// Parameters beside the workload's own.
    fn params(&self) -> &'static [ParamDef];

    /// To which of the targets it belongs that only some of the workload's parameters concern.
    fn concerns(&self) -> &'static [Concern] {
        &[]
    }

    /// What its operations are called, in the plural.
    fn operations(&self) -> &'static str {
        "operations"
    }

    /// Whether a parameter has an effect on this workload; those without are refused where they are given.
    fn heeds(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// What the workload's own settings make of a run's plan.
    ///
    /// # Errors
    /// `Usage` for settings that contradict each other.
    fn shape(&self, settings: &Settings, plan: &mut Plan) -> Result<(), EngineError> {
        let _ = (settings, plan);
        Ok(())
    }

    /// How several hosts run on it at the same time.
    fn hosts(&self) -> Hosts {
        Hosts::OneServer
    }

    /// The refusal of a data set that is there and cannot be added to; `None` where schemas can be.
    fn refuse_again(&self, location: &str, settings: &Settings) -> Option<EngineError> {
        let _ = (location, settings);
        None
    }

    /// Memory that a run with these settings takes in this process whatever it does, as far as that is known before it
    /// is taken: bytes by the parameter that says so.
    fn memory(&self, settings: &Settings) -> Vec<(&'static str, u64)> {
        let _ = settings;
        Vec::new()
    }

    /// How its URL is written, for messages.
    fn form(&self) -> &'static str;

    /// The NAMEs by which `temp:NAME` starts servers of it, the usual one first.
    fn temporary(&self) -> &'static [&'static str] {
        &[]
    }

    /// Parameters that apply to such a server alone.
    fn server_params(&self) -> &'static [&'static str] {
        &[]
    }

    /// Starts what `location` needs started (a `temp:` server); `None` where it needs nothing. Not called for a dry
    /// run: until it is, the other calls answer for what would be started.
    ///
    /// # Errors
    /// No binaries, no room, the server does not come up.
    fn start(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Option<Started>, EngineError> {
        let _ = (location, settings, stop, progress);
        Ok(None)
    }

    /// Looks without touching.
    ///
    /// # Errors
    /// Foreign content, a damaged or unclean data set, no permission.
    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError>;

    /// Reads a server's own statistics while others work on it; nothing is written.
    ///
    /// # Errors
    /// `Usage` where a target has no clients of its own to watch; no connection, no permission.
    fn watch(&self, location: &str, settings: &Settings) -> Result<Box<dyn Watched>, EngineError> {
        let _ = (location, settings);
        Err(EngineError::Usage(format!(
            "target {} cannot be watched: only a server has clients of its own",
            self.name()
        )))
    }

    /// What `prepare` would do for `schemas` schemas: printed before the first byte is written.
    ///
    /// # Errors
    /// When it must not or cannot be done (non-empty directory, too little space).
    fn plan_prepare(&self, location: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError>;

    /// Creates and loads the data set, then verifies it; returns the load summary.
    ///
    /// # Errors
    /// As [`Target::plan_prepare`], and I/O errors; a failure leaves nothing that a later prepare refuses.
    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError>;

    /// Verifies a data set; returns what was checked, or the first violation.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] names file, block, expectation and finding.
    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError>;

    /// Reads every row of a data set that nobody uses and tells which update it carries; a data
    /// set that was not closed is recovered first. For crash tests.
    ///
    /// # Errors
    /// `Usage` where the target cannot tell; else as [`Target::check`].
    fn audit(
        &self,
        _location: &str,
        _settings: &Settings,
        _stop: &Stop,
        _progress: &dyn Progress,
        _rows: RowStamps<'_>,
    ) -> Result<(), EngineError> {
        Err(EngineError::Usage(format!("target {} does not know which update a row contains", self.name())))
    }

    /// What `destroy` would remove.
    ///
    /// # Errors
    /// When there is no data set of ours.
    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError>;

    /// Removes exactly what the data set's control file names.
    ///
    /// # Errors
    /// I/O errors; foreign files are left and named.
    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError>;

    /// Keeps away who needs the data set alone for as long as the answer lives, between the runs of a sweep too.
    /// `None` where a run has its data set alone: there each run claims it anew.
    ///
    /// # Errors
    /// Somebody has it alone; the target does not answer.
    fn share(&self, location: &str, settings: &Settings) -> Result<Option<Box<dyn Send>>, EngineError> {
        let _ = (location, settings);
        Ok(None)
    }

    /// Opens it for a run; recovers it first if its last user did not close it, with progress.
    ///
    /// # Errors
    /// Never loaded to the end, damaged, in use, not fit for the plan, or `Interrupted` during recovery.
    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError>;
}

/// Why a target could not do as asked. The variants decide the exit code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The request contradicts itself or the data set (exit 2).
    #[error("{0}")]
    Usage(String),
    /// The target or the host cannot serve (exit 3): absent, refused, unclean, no space.
    #[error("{0}")]
    Unusable(String),
    /// Content is not what it must be (exit 3).
    #[error("{0}")]
    Damaged(String),
    /// The operating system said no (exit 3).
    #[error("{what}: {source}")]
    Io {
        /// What was being done to which file.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
    /// A session of the run cannot continue although others may: the run is invalid (exit 4).
    #[error("{0}")]
    SessionLost(String),
    /// Stopped on request (exit 130).
    #[error("interrupted")]
    Interrupted,
}
