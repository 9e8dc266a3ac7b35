//! A job being read: what the options so far have set.

use crate::readings::DIRECTIONS;
use crate::spec::{JobOptions, OutputOptions, SpecError};

assay_measure::with_defaults! {
    /// A job's options while they are read.
    #[derive(Clone, Debug)]
    pub struct Draft {
        /// What is settled as it is read.
        pub options: JobOptions = JobOptions { clones: 1, ..JobOptions::default() },
        /// `kb_base=1000`.
        pub decimal: bool,
        /// `bs`, bytes.
        pub blocks: [Option<u64>; DIRECTIONS],
        /// `bsrange`, bytes: it goes before `bs`, wherever it stands.
        pub ranges: [Option<(u64, u64)>; DIRECTIONS],
        /// `bssplit`: bytes and percent, which may be left to share out.
        pub splits: [Vec<(u64, Option<u32>)>; DIRECTIONS],
        /// Options of single engines, and whether the job itself gave them: to be judged when its
        /// engine is known.
        pub engine_options: Vec<(&'static str, bool)>,
        /// The job itself named its engine.
        pub own_engine: bool,
        /// Remarks on options without effect.
        pub notes: Vec<String>,
    }
}

impl Draft {
    /// What a job begins with, when these are the options for all.
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

/// More errors than this help nobody.
const MOST_ERRORS: usize = 64;

/// What stands where: the whole command line, before it is checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Errors so far.
    pub errors: Vec<SpecError>,
    /// Options of the command line alone.
    pub output: OutputOptions,
    /// Text of each job file and include, in the order of reading.
    pub files: Vec<String>,
}

impl Reading {
    /// No error more would be told: what follows need not be looked at.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// One more error.
    pub(super) fn refuse(&mut self, origin: &str, what: impl Into<String>) {
        if self.errors.len() < MOST_ERRORS {
            self.errors.push(SpecError { origin: origin.to_owned(), what: what.into() });
        }
    }

    /// Something to be said, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.output.notes.contains(&note) {
            self.output.notes.push(note);
        }
    }
}
