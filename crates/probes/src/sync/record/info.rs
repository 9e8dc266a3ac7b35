//! The durable-write curve in a record.

use assay_measure::record::{Figure, Latency, Part};
use serde::{Deserialize, Serialize};

/// What `assay sync` measured. Layer of every latency and rate: `syscall`, that is
/// from the call of `pwrite` to the return of what made it durable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    pub f0_us: Figure,
    /// Median time of the same write without a flush, us.
    pub unsynced_us: Figure,
    /// F0 over the unsynced write.
    pub sync_over_unsynced_ratio: Figure,
    /// 2 / F0: above this many commits per second a commit delay only adds latency.
    pub commit_delay_limit_per_s: Figure,
    /// Every step, in the order they were made.
    pub steps: Vec<SyncStep>,
    /// Cost of each level of safety in commits per second.
    pub safety: Vec<SafetyRow>,
}

/// One step of the curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SyncStep {
    /// `flush`, `unsynced`, `curve`, `sizes` or `safety`.
    pub part: String,
    /// `write + fdatasync`, `O_DSYNC write`, ...
    pub method: String,
    /// `preallocated` or `new` (it grows with each write).
    pub file: String,
    /// Streams, each with one write in flight.
    pub streams_count: u64,
    /// Bytes of one write.
    pub bytes: u64,
    /// Writes made.
    pub writes_count: Figure,
    /// Flushes that made them durable.
    pub flushes_count: Figure,
    /// How long, s.
    pub elapsed_s: Figure,
    /// Writes per second, the median of the step's rounds.
    pub per_s: Figure,
    /// Half width of the 95 % confidence interval of that rate over the rate, from the
    /// rounds of the step, 0..100.
    pub per_s_ci95_pct: Figure,
    /// From the start of a write to the end of what made it durable.
    pub latency: Latency,
    /// Bytes the device wrote meanwhile, whoever asked (the file system's journal included).
    pub device_write_bytes: Figure,
    /// A word on how it came about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One level of safety.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SafetyRow {
    /// `none`, `group`, `sync` or `sync, parallel`.
    pub level: String,
    /// What it means and what a power cut may take.
    pub meaning: String,
    /// Commits per second of one stream.
    pub single_per_s: Figure,
    /// Commits per second of all streams together.
    pub many_per_s: Figure,
    /// How many streams that is.
    pub many_streams_count: u64,
    /// Commits that one flush made durable, with many streams.
    pub many_commits_per_flush: Figure,
    /// Median commit time with one stream, us.
    pub single_p50_us: Figure,
    /// 99th percentile of the commit time with many streams, us.
    pub many_p99_us: Figure,
    /// Share of the commits per second of level `none` that is lost with one stream, 0..100.
    pub single_cost_pct: Figure,
    /// The same with many streams.
    pub many_cost_pct: Figure,
}

impl Part for SyncInfo {
    const NAME: &str = "sync";
}
