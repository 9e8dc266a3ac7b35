//! What sessions do: the contract between the driver loop and a workload.
//!
//! A workload lists its kinds of operations by name; the loop, the recorder, the time line and the trace know a kind by
//! its place in that list, records by its name. Its operations are a function of (plan, session): they depend on no
//! thread, no clock and no answer of the engine.

use crate::plan::Plan;
use crate::work::Op;
pub use crate::work::Step;
use assay_measure::clock::Ns;
use assay_measure::snapshot::Snapshot;
use std::fmt::Debug;

/// Where one session's steps come from.
pub trait Steps: Debug + Send {
    /// The next step. `plan` is the one the session was made with.
    fn next(&mut self, plan: &Plan) -> Step;
}

/// A line about a run in progress.
pub trait LiveLine {
    /// What stands above the lines.
    fn head(&self) -> String;

    /// The line at a snapshot; called with each, whether or not it is shown.
    fn line(&mut self, now: &Snapshot) -> String;
}

/// What sessions do.
pub trait Workload: Debug + Send + Sync {
    /// Its name: of the kind of its records too.
    fn name(&self) -> &'static str;

    /// Its kinds of operations by name, at most 16; [`Op::kind`] is a place here.
    fn kinds(&self) -> &'static [&'static str];

    /// The source of session `session` (from 1) whose own schema is `home`.
    fn session(&self, plan: &Plan, session: u32, home: u32) -> Box<dyn Steps>;

    /// Rows that an operation must touch; `None` where that is for the data to say.
    fn rows_expected(&self, plan: &Plan, op: &Op) -> Option<u64>;

    /// The line that is shown of a run each second, where the workload has one of its own.
    fn live(&self, sessions: usize) -> Option<Box<dyn LiveLine>> {
        let _ = sessions;
        None
    }

    /// Attempts at an operation whose failure another attempt may mend.
    fn attempts(&self) -> u32 {
        2
    }

    /// Pause before attempt `attempt` + 2 (so 0 is the first one again), ns; `word` is random.
    fn back_off_ns(&self, attempt: u32, word: u64) -> Ns {
        let _ = (attempt, word);
        0
    }
}
