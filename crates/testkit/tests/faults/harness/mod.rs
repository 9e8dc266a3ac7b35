//! The fault harness: the whole engine on a simulated disk, on one thread, by seed.
//!
//! Driver threads, writers and recovery are the real ones; they take turns as a seed says, on a clock that moves only
//! when told, over files that lose power, tear, rot and fail. An oracle that knows what was acknowledged judges what is on
//! the disk after every crash. `docs/design/faults.md` tells more.

mod base;
mod bugs;
mod command;
mod dice;
mod exhaustive;
mod inspect;
mod model;
mod run;
mod seed;

pub(crate) use base::Base;
pub(crate) use bugs::{BUGS, Bug};
pub(crate) use command::command;
pub(crate) use exhaustive::{Searched, WORKLOADS};
pub(crate) use seed::Tally;

use inspect::Inspector;
use run::Trace;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The seed.
    pub(crate) seed: u64,
    /// What went wrong.
    pub(crate) text: String,
    /// What happened before, if that was asked for.
    pub(crate) trace: Vec<String>,
}

/// Runs seeds, one after another, on this thread.
#[derive(Debug)]
pub(crate) struct Harness<'a> {
    bases: &'a [Base],
}

impl<'a> Harness<'a> {
    /// A harness that starts from these data sets.
    #[must_use]
    pub(crate) fn new(bases: &'a [Base]) -> Self {
        Self { bases }
    }

    /// Runs `seeds` until one fails; returns what happened in the last, if that was asked for.
    ///
    /// # Errors
    /// The first that failed.
    pub(crate) fn run(
        &self,
        seeds: impl Iterator<Item = u64>,
        trace: bool,
        tally: &mut Tally,
    ) -> Result<Vec<String>, Failure> {
        self.each(seeds, trace, |bases, seed, trace| seed::run_seed(bases, seed, None, tally, trace))
    }

    /// Searches workloads, numbers below [`WORKLOADS`], until one fails: every cut of each.
    ///
    /// # Errors
    /// The first that failed; its number is the seed.
    pub(crate) fn search(&self, workloads: impl Iterator<Item = u64>, searched: &mut Searched) -> Result<(), Failure> {
        self.each(workloads, false, |bases, number, trace| exhaustive::search(bases, number, searched, trace)).map(drop)
    }

    /// Plants a bug and runs `seeds` until it is found; the failure that gave it away, or `None`.
    pub(crate) fn hunt(&self, bug: Bug, seeds: impl Iterator<Item = u64>) -> Option<Failure> {
        let (tally, bug) = (&mut Tally::default(), Some(bug));
        self.each(seeds, false, |bases, seed, trace| seed::run_seed(bases, seed, bug, tally, trace)).err()
    }

    fn each(
        &self,
        numbers: impl Iterator<Item = u64>,
        wanted: bool,
        mut case: impl FnMut(&[(&Base, &Inspector<'_>)], u64, &mut Trace) -> Result<(), String>,
    ) -> Result<Vec<String>, Failure> {
        let inspectors: Vec<Inspector<'_>> = self.bases.iter().map(Inspector::new).collect();
        let bases: Vec<(&Base, &Inspector<'_>)> = self.bases.iter().zip(&inspectors).collect();
        let mut lines = Vec::new();
        for seed in numbers {
            let mut trace = Trace { wanted, lines: Vec::new() };
            let guarded = AssertUnwindSafe(|| case(&bases, seed, &mut trace));
            let outcome = catch_unwind(guarded).unwrap_or_else(|panic| Err(panic_text(&*panic)));
            lines = trace.lines;
            if let Err(text) = outcome {
                return Err(Failure { seed, text, trace: lines });
            }
        }
        Ok(lines)
    }
}

/// A panic is a failure like any other: the seed must be told.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("no text"))
}
