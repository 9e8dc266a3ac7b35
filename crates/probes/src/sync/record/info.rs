//! The durable-write curve in a record.

use super::super::reading::{SyncMethod, SyncPart};
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Latency, Part};

/// What `assay sync` measured. Layer of every latency and rate: `syscall`, that is
/// from the call of `pwrite` to the return of what made it durable.
#[figures(group = Storage)]
pub(crate) struct SyncInfo {
    /// The scratch file, removed since.
    pub path: String,
    /// Bytes of its preallocated, zero-written part.
    pub file_bytes: u64,
    /// Whether the writes went past the page cache.
    pub direct: bool,
    /// `syscall`.
    pub layer: String,
    /// F0: median time of one 4 KiB overwrite made durable by one stream, us.
    #[metric("durable 4 KiB write p50", Primary)]
    #[serde(alias = "f0_us")]
    pub durable_write_us_p50: Figure,
    /// Median time of the same write without a flush, us.
    #[metric("unsynced 4 KiB write p50")]
    #[serde(alias = "unsynced_us")]
    pub unsynced_write_us_p50: Figure,
    /// F0 over the unsynced write.
    pub sync_over_unsynced_ratio: Figure,
    /// 2 / F0: above this many commits per second a commit delay only adds latency.
    pub commit_delay_limit_per_s: Figure,
    /// Commits per second that the user asked about (`--commits`); n/a (not asked for).
    pub commits_asked_per_s: Figure,
    /// Every step, in the order they were made.
    pub steps: Vec<SyncStep>,
    /// Cost of each level of safety in commits per second.
    #[metrics]
    pub safety: Vec<SafetyRow>,
}

/// One step of the curve.
#[figures]
pub(crate) struct SyncStep {
    /// `flush`, `unsynced`, `curve`, `sizes` or `safety`.
    #[column("Part")]
    pub part: String,
    /// `write + fdatasync`, `O_DSYNC write`, ...
    #[column("Method")]
    pub method: String,
    /// `preallocated` or `new` (it grows with each write).
    #[column("File")]
    pub file: String,
    /// Streams, each with one write in flight.
    #[column("Streams")]
    pub streams_count: u64,
    /// Bytes of one write.
    #[column("Bytes")]
    pub bytes: u64,
    /// Writes made.
    #[column("n")]
    pub writes_count: Figure,
    /// Flushes that made them durable.
    pub flushes_count: Figure,
    /// How long, s.
    #[column("s", 2)]
    pub elapsed_s: Figure,
    /// Writes per second, the median of the step's rounds.
    #[column("per s")]
    pub per_s: Figure,
    /// Half width of the 95 % confidence interval of that rate over the rate, from the
    /// rounds of the step, 0..100.
    #[column("+-%", 1)]
    pub per_s_ci95_pct: Figure,
    /// From the start of a write to the end of what made it durable.
    #[columns]
    pub latency: Latency,
    /// Bytes that the device wrote meanwhile, for all processes (including the file system's journal).
    pub device_write_bytes: Figure,
    /// A word on how it came about.
    #[column("Note")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One level of safety.
#[figures(group = Storage, scope = "{level}")]
pub(crate) struct SafetyRow {
    /// `none`, `group`, `sync` or `sync, parallel`.
    #[column("Level")]
    pub level: String,
    /// Commits per second of one stream.
    #[column("1 stream/s")]
    #[metric("commits of one stream")]
    #[serde(alias = "single_per_s")]
    pub single_commits_per_s: Figure,
    /// Share of the commits per second of level `none` that is lost with one stream, 0..100.
    #[column("cost %", 1)]
    pub single_cost_pct: Figure,
    /// Median commit time with one stream, us.
    #[column("p50 us", 1)]
    #[metric("commit of one stream p50")]
    #[serde(alias = "single_p50_us")]
    pub single_commit_us_p50: Figure,
    /// 99 % of its commits took at most so long, us.
    #[metric("commit of one stream p99")]
    pub single_commit_us_p99: Figure,
    /// Commits per second of all streams together.
    #[column("many/s")]
    #[metric("commits of all streams")]
    #[serde(alias = "many_per_s")]
    pub many_commits_per_s: Figure,
    /// How many streams that is.
    pub many_streams_count: u64,
    /// The cost with many streams.
    #[column("cost %", 1)]
    pub many_cost_pct: Figure,
    /// 99th percentile of the commit time with many streams, us.
    #[column("p99 us", 1)]
    #[metric("commit of all streams p99")]
    #[serde(alias = "many_p99_us")]
    pub many_commit_us_p99: Figure,
    /// Commits that one flush made durable, with many streams.
    #[column("per flush", 2)]
    pub many_commits_per_flush: Figure,
    /// Its meaning, and what a power cut may lose.
    #[column("Meaning")]
    pub meaning: String,
}

impl SyncInfo {
    /// The step of one session that commits to one log, or of the many that share its flushes.
    pub(super) fn commits(&self, many: bool) -> Option<&SyncStep> {
        let of = (super::part(SyncPart::Safety), SyncMethod::Group.name());
        self.steps
            .iter()
            .find(|step| (step.part.as_str(), step.method.as_str()) == of && (step.streams_count > 1) == many)
    }
}

impl SyncStep {
    /// A rate with the ends of its 95 % interval: low, middle, high. `None` where there is no
    /// interval, since such a rate cannot be compared.
    pub(super) fn interval(&self) -> Option<[f64; 3]> {
        let rate = self.per_s.value()?;
        let half = rate * self.per_s_ci95_pct.value()? / 100.0;
        Some([rate - half, rate, rate + half])
    }
}

impl Part for SyncInfo {
    const NAME: &str = "sync";
}
