//! The figures of a platform.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};

/// What `assay platform` found.
#[figures(group = Host)]
pub(crate) struct PlatformInfo {
    /// `quick` or `full`.
    pub plan: String,
    /// Where it wrote and read, and against whom.
    pub path: String,
    pub peer: String,
    /// What people can quote, such as `R50k C8k`.
    pub class: String,
    /// Most reads of 8 KiB per second of which 99 % took at most 1 ms, and at which depth.
    #[metric("reads at p99 <= 1 ms", Primary)]
    pub reads_within_goal_per_s: Figure,
    pub reads_depth: Figure,
    /// Most durable commits per second of which 99 % took at most 5 ms.
    #[metric("commits at p99 <= 5 ms", Primary)]
    pub commits_within_goal_per_s: Figure,
    /// How busy the host was before anything was measured, %.
    #[metric("host busy before the tests", Lower)]
    pub busy_before_pct: Figure,
    /// The CPUs' clock as the kernel claims it, and as it was measured, MHz.
    pub claimed_mhz: Figure,
    pub measured_mhz: Figure,
    /// Their metrics have the names of the needs: [`crate::needs::metrics`].
    pub needs: Vec<NeedRow>,
    pub facts: Vec<FactRow>,
    pub settings: Vec<SettingRow>,
    pub tests: Vec<TestRow>,
    pub found: Vec<FoundRow>,
}

impl Part for PlatformInfo {
    const NAME: &str = "platform";
}

/// What a database needs of a box.
#[figures]
pub(crate) struct NeedRow {
    #[column("What a database needs")]
    pub need: String,
    #[column("Here", 1)]
    pub need_value: Figure,
    #[column("Unit")]
    pub unit: String,
    /// From where on it is a warning, and from where on a failure.
    #[column("Warn", 1)]
    pub warn: Figure,
    #[column("Fail", 1)]
    pub fail: Figure,
    /// `good`, `warn`, `fail` or `cannot know`.
    #[column("Verdict")]
    pub verdict: String,
    #[column("By test")]
    pub test: String,
    /// Where the limits come from.
    #[column("Source of the limits")]
    pub source: String,
    pub is_higher_better: bool,
}

/// What the kernel tells.
#[figures]
pub(crate) struct FactRow {
    #[column("Fact")]
    pub fact: String,
    /// `good`, `finding` or `cannot know`.
    #[column("Verdict")]
    pub verdict: String,
    #[column("ms", 2)]
    pub cost_ms: Figure,
    #[column("Value, or why it cannot be known")]
    pub value: String,
    pub advice: String,
    pub source: String,
}

/// A setting of a database that follows from what was measured.
#[figures]
pub(crate) struct SettingRow {
    #[column("Setting")]
    pub setting: String,
    #[column("Value", 2)]
    pub setting_value: Figure,
    #[column("Formula")]
    pub formula: String,
}

/// A test and how it ended.
#[figures]
pub(crate) struct TestRow {
    #[column("Test")]
    pub test: String,
    #[column("Probe")]
    pub probe: String,
    #[column("s", 1)]
    pub elapsed_s: Figure,
    #[column("Verdict")]
    pub verdict: String,
    /// What the host did meanwhile, %.
    #[column("Host busy, %", 1)]
    pub host_cpu_busy_pct: Figure,
    #[column("Steal, %", 1)]
    pub steal_pct: Figure,
    #[column("Directory")]
    pub directory: String,
}

/// A finding of a test.
#[figures]
pub(crate) struct FoundRow {
    #[column("Test")]
    pub test: String,
    #[column("Rule")]
    pub rule: String,
    #[column("Severity")]
    pub severity: String,
    #[column("Finding")]
    pub text: String,
}
