//! The content of a comparison: the structure that text, JSON and HTML show (schema `assay-compare/1`).

use crate::cost::Cost;
use assay_measure::figures::figures;
pub use assay_measure::kind::{Check, Finding};
use assay_measure::record::{Advice, Figure};
use serde::{Deserialize, Serialize};

/// The value of [`Comparison::schema`] this version writes.
pub const SCHEMA: &str = "assay-compare/1";

/// Two or more groups of runs, each against the first.
#[figures]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// The groups in the order given; the first is the baseline.
    pub groups: Vec<GroupInfo>,
    /// What the integrity rules found in each run.
    pub integrity: Vec<Doubt>,
    /// Each group after the first against the first.
    pub pairs: Vec<Pair>,
    /// Every figure that a group has, declared (primary) ones first, then in report order.
    pub rows: Vec<ComparedRow>,
    /// Waits of events that at least two groups have with a distribution.
    pub histograms: Vec<SharedHistogram>,
    /// Findings of the rules that look at several runs.
    pub advice: Vec<Advice>,
    /// What each group costs and by which prices (of its first run); empty without prices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// The outcome in sentences, one or more for each pair.
    pub conclusion: Vec<String>,
}

/// One group: a run, or several repeats of one.
#[figures]
pub struct GroupInfo {
    /// `A`, `B`, ...: how the group is called in tables.
    pub letter: String,
    /// As named on the command line.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunCard>,
    /// What limited the first of them, in few words; empty where nothing shows a limit.
    pub limited_by: String,
    /// What the rules find in its runs, the weightiest first, each rule once.
    pub findings: Vec<Advice>,
}

/// One run of a group, to be recognised by.
#[figures]
pub struct RunCard {
    /// Short id.
    pub id: String,
    /// The user's label, or empty.
    pub label: String,
    /// `slob`, `io`, ... or the tool that measured it, of an import.
    pub workload: String,
    /// `native`, `postgres`, ...; of a probe where it measured.
    pub engine: String,
    /// RFC 3339 time of the start, or empty.
    pub started: String,
    /// Sessions; 0 if unknown.
    pub sessions: u64,
    /// Length of the measured window, s.
    pub elapsed_s: Figure,
    /// `complete`, `incomplete` or `invalid`.
    pub verdict: String,
}

/// One thing about a run that does not agree with itself.
#[figures]
pub struct Doubt {
    /// Letter of the group.
    pub group: String,
    /// Id of the run.
    pub run: String,
    /// The finding in a sentence.
    pub text: String,
}

/// A group against the baseline.
#[figures]
pub struct Pair {
    /// Letter of the baseline.
    pub baseline: String,
    /// Letter of the group that is compared with it.
    pub candidate: String,
    /// What has to be alike, each with both values.
    pub checks: Vec<Check>,
    /// Ids of the runs that are in both groups: if there is one, nothing is judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared_runs: Vec<String>,
    /// Sides whose host other processes kept busy: a change that this can explain is not called a difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
    /// One of the checks forbids the words "faster" and "slower".
    pub forbids_faster: bool,
    /// `repeats` (run-to-run variance is known), `within-run` (only that inside the runs is) or `values` (none is).
    pub method: String,
    /// How the differences were judged, in a sentence.
    pub method_text: String,
    /// Declared figures that were tested together: what Holm's correction divides by.
    pub family_count: u64,
}

/// What others did to the runs of one side.
#[figures]
pub struct Disturbance {
    /// Letter of the group.
    pub group: String,
    /// Id of the run that suffered most.
    pub run: String,
    /// The largest share of their pace that the group's runs may have lost to it, mean over the runs, 0..100.
    pub lost_pct: f64,
    /// What others did to that run, as a clause.
    pub text: String,
}

/// One figure of every group.
#[figures]
pub struct ComparedRow {
    /// Stable key, as gates name it.
    pub key: String,
    /// Name for people.
    pub name: String,
    /// `primary`, `load profile`, `operations`, `events`, `io profile`, `storage`, `imported`, `efficiency`, `host`,
    /// `statistics` or `cost`.
    pub section: String,
    /// Unit of [`ComparedCell::value`].
    pub unit: String,
    /// `higher`, `lower` or `neither`.
    pub better: String,
    /// One of the declared figures, which verdicts rest on.
    pub is_primary: bool,
    /// It has columns per second, per transaction and per operation.
    pub is_counter: bool,
    /// `client`, `engine`, `syscall`, `device`, `network`.
    pub layer: String,
    /// One for each group, in their order.
    pub cells: Vec<ComparedCell>,
    /// One for each pair, in their order.
    pub against: Vec<Against>,
}

/// A figure of one group: of its run, or the geometric mean of its repeats.
#[figures]
pub struct ComparedCell {
    /// The figure: per second for a counter.
    pub value: Figure,
    /// Over the window; n/a for a figure that is no counter.
    pub total: Figure,
    /// Per second.
    pub per_s: Figure,
    /// Per transaction.
    pub per_tx: Figure,
    /// Per operation.
    pub per_op: Figure,
    /// Standard deviation between repeats over their mean, 0..100; n/a for one run.
    pub spread_pct: Figure,
}

/// A figure of one group against the baseline's.
#[figures]
pub struct Against {
    /// `repeats`, `within-run`, `values` or empty where nothing could be compared.
    pub method: String,
    /// What was compared: `3 and 3 repeats`, `10 and 10 batches of 30 s`.
    pub basis: String,
    /// Candidate over baseline.
    pub ratio: Figure,
    /// Lower end of its 95 % interval.
    pub low_ratio: Figure,
    /// Upper end of its 95 % interval.
    pub high_ratio: Figure,
    /// Chance of such a difference between equals, two-sided, 0..1.
    pub p: Figure,
    /// The same corrected for all declared figures (Holm); n/a for figures that are not declared.
    pub p_holm: Figure,
    /// Degrees of freedom of Student's t.
    pub degrees: Figure,
    /// Smallest difference that would have been seen 8 times in 10, %.
    pub detectable_80_pct: Figure,
    /// Smallest difference that would have been seen 19 times in 20, %.
    pub detectable_95_pct: Figure,
    /// Other processes on the hosts may have changed it: the true ratio may lie outside the interval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_disturbed: bool,
    /// In a word.
    pub verdict: DifferenceVerdict,
    /// In a sentence.
    pub sentence: String,
    /// The basis of the sentence, if it is weak: `within-run only, run-to-run variance is unknown`; usually empty.
    pub remark: String,
}

/// The outcome for one figure, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceVerdict {
    /// A difference is shown, to the good.
    Better,
    /// A difference is shown, to the bad.
    Worse,
    /// A difference upwards is shown; it is neither good nor bad, or may not be called so.
    Higher,
    /// A difference downwards is shown; it is neither good nor bad, or may not be called so.
    Lower,
    /// There is none of a relevant size.
    NoDifference,
    /// Noise, or what others took of the hosts, could hide or explain a difference of a size that matters.
    NotMeasurable,
    /// The runs are too short to say.
    TooShort,
    /// One value each: nothing is known of its noise.
    OneValue,
    /// A side has no figure.
    #[default]
    Na,
}

/// Waits of one event in several groups, side by side.
#[figures]
pub struct SharedHistogram {
    /// Event.
    pub event: String,
    /// One for each group; empty where the group has none of it.
    pub groups: Vec<WaitShares>,
}

/// How the waits of an event, and their time, are spread over power-of-two buckets.
#[figures]
pub struct WaitShares {
    /// Waits in all.
    pub waits_count: u64,
    /// Share of the waits with 2^(i-1) <= us < 2^i, 0..100, entry i.
    pub waits_pct: Vec<f64>,
    /// Share of their time, 0..100, a wait taken for the middle of its bucket.
    pub time_pct: Vec<f64>,
}

impl DifferenceVerdict {
    /// At most ten letters, as tables print it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NoDifference => "none shown",
            Self::NotMeasurable => "not now",
            Self::TooShort => "too short",
            Self::OneValue => "one value",
            Self::Na => "n/a",
        }
    }

    /// Whether a difference is shown.
    #[must_use]
    pub fn is_shown(self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Higher | Self::Lower)
    }
}

impl Comparison {
    /// The row of a key.
    #[must_use]
    pub fn row(&self, key: &str) -> Option<&ComparedRow> {
        self.rows.iter().find(|row| row.key == key)
    }
}
