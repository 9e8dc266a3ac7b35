//! The figures of several platforms.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};
use assay_measure::units::many;

/// What the hosts found.
#[figures(group = Host)]
pub(crate) struct PlatformsInfo {
    /// As every host was asked.
    pub plan: String,
    pub path: String,
    /// Their class, or from the least to the most.
    pub class: String,
    pub hosts_count: u64,
    pub measured_count: u64,
    #[metric("hosts unlike the others", Lower)]
    pub odd_count: u64,
    #[metric("needs beyond the failing limit, on all hosts", Lower)]
    pub needs_failed_count: u64,
    /// Those without figures first, then the oddest.
    #[metrics]
    pub hosts: Vec<HostRow>,
    /// Their metrics have the names of the needs.
    pub needs: Vec<SpreadRow>,
    pub sums: Vec<SumRow>,
    pub tests: Vec<TestRow>,
    pub facts: Vec<FactRow>,
    pub found: Vec<FoundRow>,
}

impl Part for PlatformsInfo {
    const NAME: &str = super::NAME;
}

/// One host, with the figures of its own needs.
#[figures(group = Host, scope = "{name}")]
pub(crate) struct HostRow {
    #[column("Host")]
    pub name: String,
    #[column("Class")]
    pub class: String,
    #[column("commit p99 us", 0)]
    #[metric("commit of many p99")]
    pub commit_us_p99: Figure,
    #[column("commits/s", 0)]
    #[metric("commits at p99 <= 5 ms")]
    pub commits_per_s: Figure,
    #[column("read p99 us", 0)]
    #[metric("read p99 at depth 1")]
    pub read_us_p99: Figure,
    #[column("reads/s", 0)]
    #[metric("reads at p99 <= 1 ms")]
    pub reads_per_s: Figure,
    #[column("read MiB/s", 0)]
    #[metric("sequential reads")]
    pub read_mib_per_s: Figure,
    #[column("write MiB/s", 0)]
    #[metric("sequential writes")]
    pub write_mib_per_s: Figure,
    #[column("MHz", 0)]
    #[metric("measured clock", Higher)]
    pub cpu_mhz: Figure,
    /// Before the first test.
    #[column("busy %", 0)]
    #[metric("host busy before the tests", Lower)]
    pub busy_before_pct: Figure,
    /// `fit`, `2 warnings`, `1 need failed`; or why it gave nothing.
    #[column("Verdict")]
    pub verdict: String,
    /// Of its tests and of itself.
    #[column("findings")]
    pub findings_count: u64,
    /// The needs in which it is unlike the others.
    #[column("Odd in")]
    pub odd_in: String,
    pub failed_count: u64,
}

/// A need on all hosts.
#[figures]
pub(crate) struct SpreadRow {
    #[column("What a database needs")]
    pub need: String,
    #[column("Least", 1)]
    pub least: Figure,
    #[column("Median", 1)]
    pub median: Figure,
    #[column("Most", 1)]
    pub most: Figure,
    #[column("Unit")]
    pub unit: String,
    #[column("hosts")]
    pub hosts_count: u64,
    #[column("warn")]
    pub warned_count: u64,
    #[column("fail")]
    pub failed_count: u64,
    /// Hosts unlike the others, with their figures.
    #[column("Odd")]
    pub odd: String,
    pub is_higher_better: bool,
}

impl SpreadRow {
    /// The figure of the host that has least of what is wanted.
    pub(super) fn worst(&self) -> &Figure {
        if self.is_higher_better { &self.least } else { &self.most }
    }
}

/// A rate of all hosts that measured it at the same time.
#[figures]
pub(crate) struct SumRow {
    #[column("All hosts together")]
    pub what: String,
    /// Or why the hosts' rates are not added.
    #[column("Sum", 0)]
    pub sum: Figure,
    #[column("Unit")]
    pub unit: String,
    #[column("hosts")]
    pub hosts_count: u64,
    #[column("Least of one", 0)]
    pub least: Figure,
    #[column("Most of one", 0)]
    pub most: Figure,
    /// Of the host whose 99th percentile is largest.
    #[column("slowest p99 us", 0)]
    pub slowest_us_p99: Figure,
    #[column("By test")]
    pub test: String,
    /// Of its metric.
    pub key: String,
    pub scope: String,
}

/// A test, and how well the hosts made it at the same time.
#[figures]
pub(crate) struct TestRow {
    #[column("Test")]
    pub test: String,
    #[column("hosts")]
    pub hosts_count: u64,
    /// Of the earliest begin, after the start.
    #[column("Begins at s", 1)]
    pub begin_s: Figure,
    /// From the first host's first request to the last one's.
    #[column("begun within ms", 1)]
    pub begin_spread_ms: Figure,
    /// From the last begin to the first end.
    #[column("together s", 1)]
    pub together_s: Figure,
    /// Of the time from the first begin to the last end.
    #[column("%", 0)]
    pub together_pct: Figure,
    /// Of the latest end, after the start.
    pub end_s: Figure,
    /// Hosts without a whole result.
    #[column("Without a whole result")]
    pub note: String,
}

/// A value of a fact that is not the same on all hosts.
#[figures]
pub(crate) struct FactRow {
    #[column("Fact")]
    pub fact: String,
    #[column("Hosts")]
    pub hosts: String,
    #[column("Value, or why it cannot be known")]
    pub value: String,
}

/// A finding and who has it.
#[figures]
pub(crate) struct FoundRow {
    #[column("Test")]
    pub test: String,
    #[column("Rule")]
    pub rule: String,
    #[column("Severity")]
    pub severity: String,
    #[column("hosts")]
    pub hosts_count: u64,
    #[column("Hosts")]
    pub hosts: String,
    /// As the first of them has it.
    #[column("Finding of the first")]
    pub text: String,
}

/// Hosts that a cell names.
const NAMED: usize = 6;

/// Names for a cell: `all`, or some of them.
pub(super) fn who(names: &[&str], all: u64) -> String {
    let more = names.len().saturating_sub(NAMED);
    match names.len() as u64 {
        count if count == all && all > 1 => "all".to_owned(),
        _ if more > 0 => format!("{} and {}", names[..NAMED].join(", "), many(more as u64, "other")),
        _ => names.join(", "),
    }
}
