//! The figures of a passport and of an acceptance.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};

/// What a box did in some rounds, and how that compares with a passport.
#[figures(group = Host)]
pub(crate) struct PassportInfo {
    /// Where it wrote and read, and against whom.
    pub path: String,
    pub peer: String,
    /// The file of the passport; empty of a passport itself.
    pub passport: String,
    /// Where and when that was made.
    pub passport_host: String,
    pub passport_made: String,
    pub seconds: u64,
    pub file_bytes: u64,
    pub rounds_count: u64,
    pub rows: Vec<PassportRow>,
    /// Facts that are not as the passport says.
    pub changed: Vec<ChangedRow>,
}

impl Part for PassportInfo {
    const NAME: &str = "passport";
}

/// A figure of the rounds.
#[figures]
pub(crate) struct PassportRow {
    #[column("Figure")]
    pub what: String,
    #[column("Unit")]
    pub unit: String,
    /// Middle and range of the passport's rounds.
    #[column("Passport", 1)]
    pub passport_value: Figure,
    #[column("Least", 1)]
    pub passport_least: Figure,
    #[column("Most", 1)]
    pub passport_most: Figure,
    /// The same of those here.
    #[column("Here", 1)]
    pub here_value: Figure,
    #[column("Least", 1)]
    pub here_least: Figure,
    #[column("Most", 1)]
    pub here_most: Figure,
    /// Rounds here that others disturbed.
    #[column("Disturbed")]
    pub disturbed_count: u64,
    /// From which change on it would have been told.
    #[column("Told from, %", 0)]
    pub told_from_pct: Figure,
    /// `worse`, `as good`, `better`, `cannot tell`, or `measured` of a passport itself.
    #[column("Verdict")]
    pub verdict: String,
    pub is_higher_better: bool,
}

/// A fact that is not as the passport says.
#[figures]
pub(crate) struct ChangedRow {
    #[column("Fact")]
    pub fact: String,
    #[column("Passport")]
    pub was: String,
    #[column("Here")]
    pub is: String,
}

pub(super) const MEASURED: &str = "measured";
pub(super) const WORSE: &str = "worse";
pub(super) const SAME: &str = "as good";
pub(super) const BETTER: &str = "better";
pub(super) const UNKNOWN: &str = "cannot tell";
