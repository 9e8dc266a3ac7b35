//! The rules that keep committed work safe in a crash. A test can drop one to see whether the harness notices.

/// A rule of the engine or of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashRule {
    /// No block is written before the redo that describes it.
    RedoFirst,
    /// No frame is written whose redo is still private to its transaction.
    PrivateRedoStays,
    /// The checkpoint passes no block that is still dirty.
    CheckpointBehindDirty,
    /// Recovery rolls back uncommitted transactions.
    LosersTakenBack,
}

/// The rules that are kept: all, or all but one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrashRules {
    dropped: Option<CrashRule>,
}

impl CrashRules {
    /// All but this one.
    #[must_use]
    pub fn without(rule: CrashRule) -> Self {
        Self { dropped: Some(rule) }
    }

    /// Whether this rule is kept.
    pub(crate) fn keep(self, rule: CrashRule) -> bool {
        self.dropped != Some(rule)
    }

    /// Whether all are. An invariant that hangs on a rule is asserted only then: the harness is to find what a dropped rule does to
    /// the data set.
    pub(crate) fn are_whole(self) -> bool {
        self.dropped.is_none()
    }
}
