//! The figures of interference.

use super::role::{ROLES, Role};
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};
use assay_measure::units::{short, significant, told};

/// What `assay interference` measured. Times are from an operation's submission to its end (layer `syscall`).
#[figures(group = Storage)]
pub(crate) struct InterferenceInfo {
    /// Where the files were, removed since.
    pub directory: String,
    /// Kernel name of the device; empty where there is none.
    pub disk: String,
    pub is_memory: bool,
    pub is_direct: bool,
    pub data_bytes: u64,
    pub seed: u64,
    /// How much of a slice is counted, s.
    pub slice_s: f64,
    /// Rounds planned.
    pub rounds: u32,
    /// Combinations that were not reached in any round, in words.
    pub missing: Vec<String>,
    /// How many times as slow commits and point reads are beside the role that slows them most: of the pairs told apart from noise, or of
    /// all where none is.
    #[metric("commits slowed, times", Primary, Lower)]
    pub commit_slowdown_ratio: Figure,
    #[metric("point reads slowed, times", Primary, Lower)]
    pub read_slowdown_ratio: Figure,
    #[metrics]
    pub roles: Vec<RoleRow>,
    #[metrics]
    pub pairs: Vec<PairRow>,
}

impl Part for InterferenceInfo {
    const NAME: &str = "interference";
}

/// A role alone.
#[figures(group = Storage, scope = "{role}")]
pub(crate) struct RoleRow {
    #[column("Role alone")]
    pub role: String,
    #[column("One operation")]
    pub operation: String,
    #[column("per s")]
    #[metric("operations alone")]
    pub alone_per_s: Figure,
    #[column("MB/s", 1)]
    pub mb_per_s: Figure,
    #[column("p50 us")]
    pub alone_us_p50: Figure,
    #[column("p90 us")]
    #[metric("latency alone")]
    pub alone_us_p90: Figure,
    #[column("p99 us")]
    #[metric("latency alone", Primary)]
    pub alone_us_p99: Figure,
    #[column("slices")]
    pub slices_count: u64,
    /// Standard deviation of the rate over the rounds, of their mean.
    #[column("varied %", 1)]
    pub spread_pct: Figure,
}

/// A role beside another one.
#[figures(group = Storage, scope = "{role} beside {beside}")]
pub(crate) struct PairRow {
    #[column("Role")]
    pub role: String,
    #[column("beside")]
    pub beside: String,
    /// `p99`, or `p90` where too few operations are beyond it; empty where neither is known.
    #[column("of")]
    pub statistic: String,
    #[column("alone us")]
    pub alone_us: Figure,
    #[column("beside us")]
    pub beside_us: Figure,
    #[column("p99 x", 2)]
    #[metric("latency in multiples of alone", Lower)]
    pub latency_ratio_p99: Figure,
    #[column("p90 x", 2)]
    #[metric("latency in multiples of alone", Lower)]
    pub latency_ratio_p90: Figure,
    /// The 95 % interval of the multiple of the statistic.
    #[column("from", 2)]
    pub low_ratio: Figure,
    #[column("to", 2)]
    pub high_ratio: Figure,
    /// One of the words below.
    #[column("verdict")]
    pub verdict: String,
    /// Whether the rate gave the verdict: it fell by much more than the percentile rose, or that is not known.
    #[column("by rate")]
    pub is_by_rate: bool,
    #[column("alone/s")]
    pub alone_per_s: Figure,
    #[column("beside/s")]
    pub beside_per_s: Figure,
    #[column("rate x", 2)]
    #[metric("operations in multiples of alone", Higher)]
    pub rate_ratio: Figure,
    #[column("rounds")]
    pub rounds_count: u64,
}

/// Values of [`PairRow::verdict`].
pub(super) const SLOWER: &str = "slower";
pub(super) const FASTER: &str = "faster";
pub(super) const CLOSE: &str = "less than a fifth";
pub(super) const NOISE: &str = "not told apart from noise";
pub(super) const UNKNOWN: &str = "n/a";

fn role(name: &str) -> Option<&'static Role> {
    ROLES.iter().find(|role| role.name == name)
}

impl PairRow {
    /// The multiple of the statistic that was judged.
    pub(super) fn times(&self) -> &Figure {
        if self.statistic == "p90" { &self.latency_ratio_p90 } else { &self.latency_ratio_p99 }
    }

    /// How many times as slow, by what was judged.
    pub(super) fn slowdown(&self) -> Option<f64> {
        if self.is_by_rate { self.rate_ratio.value().map(|ratio| 1.0 / ratio) } else { self.times().value() }
    }

    /// As a cell of the matrix: `6.1 x`, `3.2 x p90`, `1/25 rate`, with a question mark where it is not told apart from noise.
    pub(super) fn cell(&self) -> String {
        let Some(slowdown) = self.slowdown() else { return "n/a".to_owned() };
        let times = significant(slowdown, 2);
        let told = match (self.is_by_rate, self.statistic.as_str()) {
            (true, _) if self.is_slower() => format!("1/{times} rate"),
            (true, _) => format!("{} x rate", significant(1.0 / slowdown, 2)),
            (false, "p90") => format!("{times} x p90"),
            (false, _) => format!("{times} x"),
        };
        told + if self.verdict == NOISE { " ?" } else { "" }
    }

    pub(super) fn is_slower(&self) -> bool {
        self.verdict == SLOWER
    }

    /// `a backup copy makes commits 6.1 x slower at p99: 1,200 us -> 7,320 us`, or what it leaves of their rate.
    pub(super) fn told(&self) -> String {
        let (Some(slowed), Some(other)) = (role(&self.role), role(&self.beside)) else { return String::new() };
        let value = |figure: &Figure| figure.value().unwrap_or(f64::NAN);
        let s = if other.are_several { "" } else { "s" };
        if self.is_by_rate {
            let part = significant(100.0 * value(&self.rate_ratio), 2);
            let [from, to] = [&self.alone_per_s, &self.beside_per_s].map(|per_s| short(value(per_s)));
            return format!("{} cut{s} {} to {part} % of their rate: {from}/s -> {to}/s", other.slows, slowed.slowed);
        }
        let [from, to] = [&self.alone_us, &self.beside_us].map(|us| told(value(us), "us", 0));
        let times = significant(value(self.times()), 2);
        format!("{} make{s} {} {times} x slower at {}: {from} -> {to}", other.slows, slowed.slowed, self.statistic)
    }

    /// The same in two words, behind a sentence about the same other role.
    pub(super) fn told_short(&self) -> String {
        let told = self.cell().replace(" p90", " at p90").replace(" rate", " of their rate");
        format!("{} {told}", role(&self.role).map_or("", |role| role.slowed))
    }
}

impl InterferenceInfo {
    /// The pairs that are slower, the worst first; what users wait for before what works in the background.
    pub(super) fn slower(&self) -> Vec<&PairRow> {
        let mut slower: Vec<&PairRow> = self.pairs.iter().filter(|pair| pair.is_slower()).collect();
        slower.sort_by(|a, b| {
            let key = |pair: &PairRow| (pair.is_waited_for(), pair.slowdown().unwrap_or(0.0));
            key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal)
        });
        slower
    }

    /// How many times as slow a role is beside the one that slows it most.
    pub(super) fn worst_of(&self, role: usize) -> Figure {
        let of_role = || self.pairs.iter().filter(|pair| pair.role == ROLES[role].name);
        let most = |is_told: bool| {
            let told = of_role().filter(|pair| pair.is_slower() || !is_told);
            told.filter_map(PairRow::slowdown).reduce(f64::max)
        };
        let why = of_role().find_map(|pair| pair.times().reason()).unwrap_or("no pair could be judged");
        Figure::known(most(true).or_else(|| most(false)), why)
    }

    /// The pair that is this one the other way round.
    pub(super) fn other(&self, pair: &PairRow) -> Option<&PairRow> {
        self.pairs.iter().find(|other| (&other.role, &other.beside) == (&pair.beside, &pair.role))
    }

    pub(super) fn alone(&self, name: &str) -> Option<&RoleRow> {
        self.roles.iter().find(|row| row.role == name)
    }
}

impl PairRow {
    /// Whether sessions wait for the role: commits and point reads.
    pub(super) fn is_waited_for(&self) -> bool {
        [ROLES[super::role::LOG].name, ROLES[super::role::READS].name].contains(&self.role.as_str())
    }
}
