//! What a command claims a data set for: runs share it, every other command has it alone.

/// How [`Purpose::Series`] is called.
pub(crate) const SERIES: &str = "series of runs";

/// What a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Shared with other runs.
    Run,
    /// Shared too: of a sweep or of repeats, between whose runs nobody may remove the data set. It is no load itself.
    Series,
    /// Alone.
    Prepare,
    /// Alone: a run would change what is being read.
    Check,
    /// Alone.
    Destroy,
}

impl Purpose {
    /// For people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Series => SERIES,
            Self::Prepare => "prepare",
            Self::Check => "check",
            Self::Destroy => "destroy",
        }
    }

    /// Whether others that share may have it at the same time.
    pub(crate) fn shares(self) -> bool {
        matches!(self, Self::Run | Self::Series)
    }
}
