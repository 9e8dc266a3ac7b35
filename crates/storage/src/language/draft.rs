//! A job while its options are read.

use crate::readings::DIRECTIONS;
use crate::spec::{JobOptions, OutputOptions, SpecError};

assay_measure::with_defaults! {
    /// The options of a job, set one after another.
    #[derive(Clone, Debug)]
    pub struct Draft {
        /// Options that need no later decision.
        pub options: JobOptions = JobOptions { clones: 1, ..JobOptions::default() },
        /// `kb_base=1000`.
        pub decimal: bool,
        /// `bs`, bytes.
        pub blocks: [Option<u64>; DIRECTIONS],
        /// `bsrange`, bytes: takes precedence over `bs`, regardless of order.
        pub ranges: [Option<(u64, u64)>; DIRECTIONS],
        /// `bssplit`: bytes and percent; entries without a percentage share the rest.
        pub splits: [Vec<(u64, Option<u32>)>; DIRECTIONS],
        /// Options of single engines, and whether the job itself gave them; checked once the job's engine is known.
        pub engine_options: Vec<(&'static str, bool)>,
        /// Whether the job itself named its engine.
        pub own_engine: bool,
        /// Notes on options without effect.
        pub notes: Vec<String>,
    }
}

impl Draft {
    /// The initial state of a job, given the options for all jobs.
    #[must_use]
    pub fn begin(&self) -> Self {
        let mut draft = self.clone();
        draft.own_engine = false;
        for (_, own) in &mut draft.engine_options {
            *own = false;
        }
        draft
    }
}

/// Maximum number of errors to report; more would not help anyone.
const MOST_ERRORS: usize = 64;

/// Everything read from the command line, before it is checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Errors so far.
    pub errors: Vec<SpecError>,
    /// Options that only the command line has.
    pub output: OutputOptions,
    /// Text of each job file and include, in the order of reading.
    pub files: Vec<String>,
}

impl Reading {
    /// Whether the maximum number of errors is reached: then the rest need not be checked.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Adds an error.
    pub(super) fn refuse(&mut self, origin: &str, what: impl Into<String>) {
        if self.errors.len() < MOST_ERRORS {
            self.errors.push(SpecError { origin: origin.to_owned(), what: what.into() });
        }
    }

    /// Adds a note, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.output.notes.contains(&note) {
            self.output.notes.push(note);
        }
    }
}
