//! The record: everything one run measured, with everything a reader needs.
//!
//! Schema `assay/2`: an envelope that every kind of test shares, `instance` for what a database shows of itself, and
//! `parts` for what only one kind has. Every face reads this and nothing else, so every derived figure is already
//! here, unrounded. Keys end in their unit; a figure is a number or `{"na": "reason"}`. Readers ignore keys they do
//! not know and take `n/a (absent)` for keys they miss, so old and new versions of this schema read each other's records.

use crate::figures::figures;
use crate::snapshot::{Fact, SettingLine};
use std::collections::BTreeMap;

mod activity;
pub mod bounds;
mod event;
mod figure;
mod import;
mod instance;
mod io;
mod judged;
mod labels;
mod latency;
pub mod metric;
mod parts;
mod path;
mod precision;
mod reads;
mod series;
mod server;
mod spelling;
pub mod steady;

pub use activity::{AshInfo, AshRow, TimelineRow};
pub use event::{EventRow, SAMPLED, WaitClassRow};
pub use figure::{Figure, PercentRow, Truth};
pub use import::{ImportInfo, ImportNote, ImportedFile, ImportedValue};
pub use instance::{Instance, LayerRow, LoadRow, RequestLayers, ScanInfo, StatRow, TimeModel};
pub use io::{IoProfileRow, IoRow};
pub use judged::{Advice, Identity};
pub use latency::{Latency, percentile_us, us_mean};
pub use metric::Metric;
pub use parts::{Part, Parts};
pub use path::PathRow;
pub use precision::Precision;
pub use reads::ReadSources;
pub use series::{HeatRow, Series};
pub use server::{ServerInfo, ServerRow};

/// The value of [`Record::schema`] this version writes.
pub const SCHEMA: &str = "assay/2";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One run, complete and self-sufficient.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// The sort of test, by the name of its [`crate::kind::Kind`].
    pub kind: String,
    /// `false` in the record of a run that goes on; absent in one that is kept.
    #[serde(rename = "final", skip_serializing_if = "Option::is_none")]
    pub is_final: Option<bool>,
    /// What ran and how it ended.
    pub run: RunInfo,
    /// The measured window and its denominators.
    pub interval: Interval,
    /// Settings and engine facts.
    pub plan: PlanInfo,
    /// Facts about the host.
    pub host: HostInfo,
    /// The host during the window.
    #[serde(skip_serializing_if = "is_default")]
    pub os: OsInfo,
    /// Every figure under a stable key, the few that a comparison is judged by first.
    pub metrics: Vec<Metric>,
    /// What the load generator itself measured.
    #[serde(skip_serializing_if = "is_default")]
    pub driver: DriverInfo,
    /// Per second, from the gate on.
    #[serde(skip_serializing_if = "is_default")]
    pub series: Series,
    /// Events on the time line, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineRow>,
    /// How well the figure of `--until` is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Checks and remarks beside the numbers.
    #[serde(skip_serializing_if = "is_default")]
    pub checks: Checks,
    /// The identities of awr-statistics 2.3, in order.
    pub integrity: Vec<Identity>,
    /// What the run remarked that may have changed its figures, in sentences. Findings may say so too: see
    /// [`Record::doubts`].
    pub warnings: Vec<String>,
    /// Findings of the rules.
    pub advice: Vec<Advice>,
    /// Rules that could not be judged, each with the figure that is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice_unjudged: Vec<String>,
    /// The origin of figures that assay did not measure; only in a record of `assay import`.
    #[serde(rename = "provenance", skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportInfo>,
    /// A database's own statistics.
    #[serde(skip_serializing_if = "is_default")]
    pub instance: Instance,
    /// What only one kind of test has, by the kind's name.
    #[serde(skip_serializing_if = "is_default")]
    pub parts: Parts,
}

impl Record {
    /// All that may change what the figures mean, each with the rule that found it (empty for a remark of the run): what
    /// is a warning for every reader. What changes the figures most comes first.
    pub fn doubts(&self) -> impl Iterator<Item = (&str, &str)> {
        let remarks = self.warnings.iter().map(|text| ("", text.as_str()));
        let findings = |is_high: bool| {
            let all = self.advice.iter().filter(move |advice| advice.changes_figures);
            all.filter(move |advice| (advice.severity == "high") == is_high)
        };
        let findings = findings(true).chain(findings(false));
        findings.map(|advice| (advice.id.as_str(), advice.text.as_str())).chain(remarks)
    }

    /// The findings that leave the figures what they are.
    pub fn hints(&self) -> impl Iterator<Item = &Advice> {
        self.advice.iter().filter(|advice| !advice.changes_figures)
    }
}

/// What ran and how it ended.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunInfo {
    /// Short random id, also in the directory's name.
    pub id: String,
    /// The user's label, if any.
    pub label: Option<String>,
    /// `slob`, later others.
    pub workload: String,
    /// `native`, `null`, ...
    pub engine: String,
    /// assay's version.
    pub version: String,
    /// RFC 3339 wall time of the start.
    pub started: String,
    /// The master seed of every random stream.
    pub seed: u64,
    /// `complete`, `incomplete` or `invalid`.
    pub verdict: String,
    /// Why it is not complete, in sentences.
    pub verdict_reasons: Vec<String>,
    /// Sessions planned.
    pub sessions: u64,
    /// Fixed iterations (WORK_LOOP) instead of a timed window.
    pub fixed_iterations: bool,
}

/// The measured window and what rates divide by.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// RFC 3339 wall time of the begin snapshot, a label.
    pub begin: String,
    /// RFC 3339 wall time of the end snapshot, a label.
    pub end: String,
    /// Begin, s after the gate.
    pub begin_s: Figure,
    /// End, s after the gate.
    pub end_s: Figure,
    /// Begin to end, s, by the monotonic clock.
    pub elapsed_s: Figure,
    /// Gate to the end of the drain, s: the interval of the exact identities.
    pub whole_run_s: Figure,
    /// Between the first and the last thread's publication, the larger of both snapshots, ms.
    pub skew_ms: Figure,
    /// Sum of the sessions' active time inside the window over sessions x elapsed, 0..1.
    pub worker_active_fraction: Figure,
    /// Commits and rollbacks in the window.
    pub tx_count: Figure,
    /// Executions in the window.
    pub execs_count: Figure,
    /// User calls in the window.
    pub calls_count: Figure,
    /// Driver operations ended in the window.
    pub ops_count: Figure,
    /// Sessions that had not stopped at the begin snapshot.
    pub sessions_begin_count: Figure,
    /// Sessions that had not stopped at the end snapshot.
    pub sessions_end_count: Figure,
}

/// What was to run, as resolved.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanInfo {
    /// Every effective parameter with its origin; secrets are `***`.
    pub settings: Vec<SettingLine>,
    /// Facts of the engine: achieved I/O mode, block size, files, ring features.
    pub engine_facts: Vec<Fact>,
}

/// What the run ran on.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostInfo {
    /// Kernel, CPU, memory, device, file system, ...
    pub facts: Vec<Fact>,
}

/// One gauge at both ends of the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GaugeRow {
    /// At the begin snapshot.
    pub begin: Figure,
    /// At the end snapshot.
    pub end: Figure,
}

/// The host during the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OsInfo {
    /// Online CPUs.
    pub cpus_count: Figure,
    /// The ten columns of `/proc/stat`, s: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
    pub cpu_s: BTreeMap<String, Figure>,
    /// Shares of all CPU time, 0..100: user (with nice), system (with irq and softirq), iowait,
    /// steal, idle (without iowait), `idle_awr` (with it), busy.
    pub cpu_pct: BTreeMap<String, Figure>,
    /// Load averages of 1, 5 and 15 minutes at begin.
    pub load_begin: Vec<Figure>,
    /// Load averages of 1, 5 and 15 minutes at end.
    pub load_end: Vec<Figure>,
    /// Context switches.
    pub context_switches_count: Figure,
    /// Runnable tasks at the end.
    pub procs_running_end_count: Figure,
    /// Memory by kind, bytes.
    pub memory_bytes: BTreeMap<String, GaugeRow>,
    /// Pressure stall time by resource and kind.
    pub psi: BTreeMap<String, PsiRow>,
    /// Major faults and swap.
    pub vmstat_count: BTreeMap<String, Figure>,
    /// Devices under the data.
    pub disk: Vec<DiskRow>,
    /// Interfaces but loopback.
    pub net: Vec<NetRow>,
    /// This process.
    pub process: ProcessInfo,
    /// Time this cgroup was throttled, us.
    pub cgroup_throttled_us: Figure,
}

/// Pressure stall time of one resource.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PsiRow {
    /// Stalled, us.
    pub total_us: Figure,
    /// Share of the window, 0..100.
    pub share_pct: Figure,
}

/// One block device during the window (`/proc/diskstats`).
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiskRow {
    /// Kernel name, e.g. `vda`.
    pub name: String,
    /// Reads completed.
    pub reads_count: u64,
    /// Reads merged.
    pub read_merges_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time per read, us.
    #[serde(alias = "read_avg_us")]
    pub read_us_avg: Figure,
    /// Writes completed.
    pub writes_count: u64,
    /// Writes merged.
    pub write_merges_count: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time per write, us.
    #[serde(alias = "write_avg_us")]
    pub write_us_avg: Figure,
    /// Flushes completed.
    pub flushes_count: u64,
    /// Time per flush, us.
    #[serde(alias = "flush_avg_us")]
    pub flush_us_avg: Figure,
    /// Share of the window with a request in flight, 0..100.
    pub busy_pct: Figure,
    /// Mean requests in flight.
    pub queue_mean_count: Figure,
}

/// One network interface during the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NetRow {
    /// Interface name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets_count: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets_count: u64,
    /// Errors and drops, both ways.
    pub errors_count: u64,
}

/// This process during the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessInfo {
    /// Bytes this process caused to be read from devices.
    pub read_bytes: Figure,
    /// Bytes this process caused to be written.
    pub write_bytes: Figure,
    /// CPU of all threads, s.
    pub cpu_s: Figure,
    /// Resident memory.
    pub rss_bytes: GaugeRow,
}

/// What the load generator itself measured, layer `client`.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriverInfo {
    /// Threads that drove sessions.
    pub threads_count: u64,
    /// Operations by kind; kinds never run are absent.
    pub ops: Vec<OpRow>,
    /// Operations that failed in the window, by class of error.
    pub errors_count: BTreeMap<String, u64>,
    /// Operations that failed from the gate to the end of the drain.
    pub errors_whole_run_count: u64,
    /// Operations retried in the window.
    pub retries_count: u64,
    /// The same by class of the error that caused the retry; retries that failed are also in `errors_count`.
    pub retries_by_class_count: BTreeMap<String, u64>,
    /// Operations whose key range was the hot spot's.
    pub hot_spot_hits_count: u64,
    /// Operations redirected to schema 1.
    pub hot_schema_hits_count: u64,
    /// Think times taken.
    pub think_count: u64,
    /// Time slept in them, s.
    pub think_s: Figure,
    /// Sum of operation time, s.
    pub busy_s: Figure,
    /// Operations in flight at begin.
    pub in_flight_begin_count: u64,
    /// Operations in flight at end.
    pub in_flight_end_count: u64,
    /// Time the operations in flight at begin had taken by then, us.
    pub in_flight_begin_us: Figure,
    /// Time the operations in flight at end had taken by then, us.
    pub in_flight_end_us: Figure,
    /// Lateness of starts under a RATE.
    pub schedule_lag: Latency,
    /// CPU of the driver threads, s.
    pub thread_cpu_s: Figure,
    /// CPU of the driver threads over threads x elapsed, 0..100.
    pub thread_cpu_pct: Figure,
    /// Runnable but not on a CPU (schedstat), s.
    pub thread_run_delay_s: Figure,
    /// The null engine's cost of one operation through the same loop, ns.
    pub floor_ns_per_op: Figure,
    /// That cost over the driver threads' CPU per operation, 0..100.
    pub floor_pct: Figure,
    /// One clock reading, ns.
    pub clock_read_ns: Figure,
    /// Ops per session, whole run.
    pub session_spread: SessionSpread,
    /// Per session, whole run.
    pub per_session: Vec<SessionRow>,
}

/// One kind of operation in the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpRow {
    /// `select`, `update` or `scan`.
    pub kind: String,
    /// Operations ended.
    pub count: u64,
    /// Per second of the window.
    pub per_s: Figure,
    /// Rows touched.
    pub rows_count: u64,
    /// From the start of the operation to its end.
    pub service: Latency,
    /// From the intended start; equals `service` in a closed loop.
    pub response: Latency,
}

/// How evenly the sessions progressed, by operations over the whole run.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionSpread {
    /// Operations of the slowest session.
    pub min_count: Figure,
    /// Operations of the middle one.
    pub median_count: Figure,
    /// Operations of the fastest.
    pub max_count: Figure,
    /// Standard deviation over mean.
    pub variation_ratio: Figure,
}

/// One session over the whole run.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionRow {
    /// 1-based.
    pub session: u64,
    /// 1-based home schema.
    pub schema: u64,
    /// Operations ended.
    pub ops_count: u64,
    /// Rows touched.
    pub rows_count: u64,
    /// Time in operations, s.
    pub busy_s: Figure,
    /// Time thinking, s.
    pub think_s: Figure,
    /// Start of the first operation, s after the gate.
    pub first_op_s: Figure,
    /// End of the last operation, s after the gate.
    pub last_op_s: Figure,
}

/// Checks and remarks beside the numbers.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checks {
    /// Hit ratio that cache, active blocks and index predict, 0..100.
    pub hit_expected_pct: Figure,
    /// Hit ratio measured, 0..100.
    pub hit_measured_pct: Figure,
    /// Index gets that found the block resident, 0..100.
    pub index_hit_pct: Figure,
    /// Blocks the run could touch.
    pub active_blocks: Figure,
    /// Blocks of the cache.
    pub cache_blocks: Figure,
    /// Sessions that ops/s x (mean service + mean think) accounts for (Little's law).
    pub little_sessions: Figure,
    /// Actual sessions.
    pub little_expected_sessions: Figure,
    /// Bytes the engine read.
    pub engine_read_bytes: Figure,
    /// Bytes this process read from devices, by the kernel's account.
    pub process_read_bytes: Figure,
    /// Bytes that the devices under the data read, for all processes.
    pub device_read_bytes: Figure,
    /// Bytes the engine wrote.
    pub engine_write_bytes: Figure,
    /// Bytes this process wrote, by the kernel's account.
    pub process_write_bytes: Figure,
    /// Bytes that the devices under the data wrote, for all processes.
    pub device_write_bytes: Figure,
    /// How steady the window was.
    pub steadiness: Steadiness,
}

/// How steady ops/s was over the seconds of the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// Whole steps of the series looked at.
    pub steps_count: Figure,
    /// Mean ops/s.
    pub mean_per_s: Figure,
    /// Slowest second.
    pub min_per_s: Figure,
    /// Fastest second.
    pub max_per_s: Figure,
    /// Standard deviation over mean.
    pub variation_ratio: Figure,
    /// Mean of the last quarter over mean of the first.
    pub last_over_first_ratio: Figure,
    /// Ends of the seconds after which the level changed for good, s after the gate.
    pub change_points_s: Vec<f64>,
}

#[cfg(test)]
mod tests;
