//! The storage part of a record.

use assay_measure::figures::figures;
use assay_measure::histogram::Histogram;
use assay_measure::record::{DiskRow, Figure, Part, Steadiness};
use assay_measure::snapshot::SettingLine;

/// What `assay io` measured. The layer of every latency and rate is `syscall`: from the preparation of a request to the
/// reaping of its completion.
#[figures]
pub struct StorageInfo {
    /// `syscall`.
    pub layer: String,
    /// Jobs as requested, in order.
    pub jobs: Vec<StorageJob>,
    /// Report groups: jobs that ran concurrently, combined.
    pub groups: Vec<StorageGroup>,
    /// Preconditioning of files and devices before the jobs; none of their figures contains it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub precondition: Vec<StoragePrecondition>,
    /// The devices below the files over the whole run, whoever used them.
    pub disks: Vec<DiskRow>,
    /// How the disks' figures compare with ours.
    pub devices: StorageDevices,
    /// CPU time of the whole process divided by all I/Os of the run.
    pub process_cpu_us_per_io: Figure,
    /// How the bytes reached the device, judged by the file system and by the device's counters, not by a successful
    /// open.
    pub io_mode_achieved: String,
}

/// One job, with its clones combined.
#[figures]
pub struct StorageJob {
    /// `--name` or the section.
    pub name: String,
    /// Report group, from 0.
    pub group: u32,
    /// `randread`, ...
    pub rw: String,
    /// The engine in use.
    pub ioengine: String,
    /// I/Os kept in flight per clone, as requested.
    pub iodepth_count: u64,
    /// Clones.
    pub numjobs_count: u64,
    /// `8 KiB`, `4 KiB-64 KiB`, `(R) 4 KiB (W) 8 KiB`.
    pub block_sizes: String,
    /// Options with their origin: `global`, `job`, or `effective` for values after resolving.
    pub options: Vec<SettingLine>,
    /// Paths of its files.
    pub files: Vec<String>,
    /// Bytes of its region in all files.
    pub region_bytes: u64,
    /// `per I/O` or `per batch`: how often times were taken.
    pub timing: String,
    /// Features that the ring obtained.
    pub features: Vec<String>,
    /// Features that the kernel refused, and why.
    pub refused: Vec<StorageRefusal>,
    /// Seed of its random streams.
    pub seed: u64,
    /// Runtime of the longest clone, from its first measured time to its end, s.
    pub runtime_s: Figure,
    /// Reads, writes, trims; unused directions are absent.
    pub ways: Vec<StorageWay>,
    /// `fsync` and `fdatasync`, from the start of the call to its end.
    pub sync: StorageLatency,
    /// CPU cost of the driver.
    pub cpu: StorageCpu,
    /// Mean I/Os in flight, counted at each change independently of the latencies.
    pub in_flight_mean_count: Figure,
    /// Mean I/Os in flight by Little's law: IOPS x mean lat.
    pub little_count: Figure,
    /// I/Os that failed without ending the job.
    pub errors_count: u64,
    /// Errors that ended clones early: `clone 3: Input/output error (5)`.
    pub errors: Vec<String>,
    /// Blocks that were read back and verified.
    pub verified_ios_count: u64,
    /// Steady state, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<StorageSteady>,
    /// The search for a depth that meets a latency, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<StorageSearch>,
    /// Notes on its figures, in sentences.
    pub notes: Vec<String>,
}

/// A feature that was refused although it was requested or would have helped.
#[figures]
#[derive(Eq)]
pub struct StorageRefusal {
    /// `IORING_SETUP_IOPOLL`, `registered buffers`, ...
    pub feature: String,
    /// The reason.
    pub reason: String,
}

/// The preconditioning of files or devices.
#[figures]
pub struct StoragePrecondition {
    /// The job that requested it.
    pub job: String,
    /// `fill` or `snia`.
    pub method: String,
    /// Paths that were overwritten.
    pub files: Vec<String>,
    /// How many of their bytes were overwritten.
    pub written_over_bytes: u64,
    /// How often they were filled from end to end.
    pub fills_count: u32,
    /// Rate of each fill, 2^20 bytes per second.
    pub fill_mib_per_s: Vec<Figure>,
    /// Block size of the random writes.
    pub block_bytes: u64,
    /// Length of a round of random writes, s.
    pub round_s: Figure,
    /// Writes per second of each round.
    pub round_ios_per_s: Vec<Figure>,
    /// Number of last rounds that are judged.
    pub window_rounds_count: u32,
    /// Whether they were alike; always true for `fill`.
    pub attained: bool,
    /// Largest minus smallest round of the window, percent of its mean.
    pub excursion_pct: Figure,
    /// Rise of the fitted line over the window, percent of its mean.
    pub slope_pct: Figure,
    /// Total time, s.
    pub elapsed_s: Figure,
}

/// One direction of a job or a group.
#[figures]
pub struct StorageWay {
    /// `read`, `write` or `trim`.
    pub way: String,
    /// I/Os that succeeded.
    pub ios_count: u64,
    /// Bytes they moved.
    pub moved_bytes: u64,
    /// I/Os that moved less than requested.
    pub short_ios_count: u64,
    /// The divisor of the rates: the longest clone's time in this direction, s.
    pub runtime_s: Figure,
    /// I/Os per second.
    pub ios_per_s: Figure,
    /// Bytes per second, 10^6.
    pub mb_per_s: Figure,
    /// Bytes per second, 2^20.
    pub mib_per_s: Figure,
    /// Requested I/Os per second; n/a without a rate.
    pub target_ios_per_s: Figure,
    /// The headline: from the preparation of a request to its reaping.
    pub lat: StorageLatency,
    /// From the submission to the reaping.
    pub clat: StorageLatency,
    /// From the preparation to the return of the call that submitted.
    pub slat: StorageLatency,
    /// From the time a request was due to its reaping; n/a without a rate.
    pub response: StorageLatency,
}

/// A latency distribution; a percentile with fewer than ten samples beyond it is n/a.
#[figures]
pub struct StorageLatency {
    /// Samples.
    pub count: u64,
    /// Mean, us.
    #[serde(alias = "avg_us")]
    pub us_avg: Figure,
    /// Sample standard deviation, us.
    #[serde(alias = "stddev_us")]
    pub us_stddev: Figure,
    /// Smallest, us.
    #[serde(alias = "min_us")]
    pub us_min: Figure,
    /// Median, us.
    #[serde(alias = "p50_us")]
    pub us_p50: Figure,
    /// 90th percentile, us.
    #[serde(alias = "p90_us")]
    pub us_p90: Figure,
    /// 95th percentile, us.
    #[serde(alias = "p95_us")]
    pub us_p95: Figure,
    /// 99th percentile, us.
    #[serde(alias = "p99_us")]
    pub us_p99: Figure,
    /// 99.9th percentile, us.
    #[serde(alias = "p999_us")]
    pub us_p999: Figure,
    /// 99.99th percentile, us.
    #[serde(alias = "p9999_us")]
    pub us_p9999: Figure,
    /// 99.999th percentile, us.
    #[serde(alias = "p99999_us")]
    pub us_p99999: Figure,
    /// Largest, us.
    #[serde(alias = "max_us")]
    pub us_max: Figure,
    /// The whole distribution.
    pub hist_ns: Histogram,
}

/// CPU cost of driving the I/O.
#[figures]
pub struct StorageCpu {
    /// User time of the clones per I/O, us.
    pub user_us_per_io: Figure,
    /// Kernel time of the clones per I/O, us.
    pub system_us_per_io: Figure,
    /// User and kernel time relative to the clones' time, 0..100.
    pub thread_cpu_pct: Figure,
    /// The busiest clone's share of a CPU, 0..100.
    pub thread_cpu_max_pct: Figure,
    /// Calls into the kernel to submit or wait, per I/O.
    pub kernel_entries_per_io: Figure,
    /// Context switches per I/O.
    pub context_switches_per_io: Figure,
    /// Page faults that needed I/O.
    pub major_faults_count: u64,
}

/// The search of a job for the highest depth that meets a latency (`latency_target`). The figures of the job are of one
/// window at that depth, unless `adapts`.
#[figures]
pub struct StorageSearch {
    /// The latency goal, us.
    pub target_us: Figure,
    /// How long each depth was tried, s.
    pub window_s: Figure,
    /// Percentage of the I/Os that had to meet it.
    pub percentile_pct: Figure,
    /// Whether the depth was adapted until the end and everything was measured (`latency_run`).
    pub adapts: bool,
    /// Final depth of each clone.
    pub depths_count: Vec<u64>,
    /// Number of windows judged before the measurement, for the clone that needed most.
    pub windows_count: u64,
    /// Time spent before the measurement, for the clone that needed most, s.
    pub searched_s: Figure,
    /// Percentage of the measured I/Os that met the target.
    pub within_target_pct: Figure,
    /// Whether that percentage is high enough.
    pub attained: bool,
}

/// Steady-state detection of a job.
#[figures]
pub struct StorageSteady {
    /// As given: `iops:0.3%`, `bw_slope:1`, ...
    pub criterion: String,
    /// Whether the criterion was met.
    pub attained: bool,
    /// Window, s.
    pub window_s: u64,
    /// Ramp before it, s.
    pub ramp_s: u64,
    /// Value of the criterion in the last window, in its own unit.
    pub last_value: Figure,
    /// Slope over the last window, per second, in the criterion's unit.
    pub slope_per_s: Figure,
    /// Largest deviation from the mean in the last window, percent.
    pub deviation_pct: Figure,
    /// I/Os of each second of the last window.
    pub window_ios_per_s: Vec<u64>,
    /// KiB of each second of the last window.
    pub window_kib_per_s: Vec<u64>,
}

/// The jobs of one report group, combined.
#[figures]
pub struct StorageGroup {
    /// From 0.
    pub group: u32,
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// The directions used, merged over its clones.
    pub ways: Vec<StorageWay>,
    /// Bytes per second in whole, synchronised seconds, MiB/s. fio's own group figures add up each clone's extremes,
    /// which never occurred at the same time.
    pub bw_total_mib_per_s: StorageSpread,
    /// I/Os per second of the same seconds.
    pub iops_total_per_s: StorageSpread,
    /// Steadiness over those seconds; its change points are those of `changes`.
    pub steadiness: Steadiness,
    /// The analysed quantity: `IOPS`, or `response latency` if a rate fixes the IOPS.
    pub analysed: String,
    /// Why changes could not be analysed, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_analysed: Option<String>,
    /// Changes of level, in order.
    pub changes: Vec<StorageChange>,
    /// Levels between them: one more than the changes, or none without an analysis.
    pub levels: Vec<StorageLevel>,
    /// Rise of a straight line over the group's time as a share of the mean, if the series drifts rather than steps;
    /// n/a otherwise.
    pub drift_ratio: Figure,
    /// Seconds between stalls if throughput dips periodically; n/a otherwise.
    pub stall_period_s: Figure,
    /// Share of the group's seconds with a request at the busiest device, 0..100.
    pub device_busy_pct: Figure,
}

/// Mean and spread of per-second figures.
#[figures]
pub struct StorageSpread {
    /// Number of seconds.
    pub samples_count: u64,
    /// Smallest second.
    pub min: Figure,
    /// Largest second.
    pub max: Figure,
    /// Mean of the seconds.
    pub mean: Figure,
    /// Sample standard deviation.
    pub stddev: Figure,
    /// Standard deviation divided by the mean.
    pub variation_ratio: Figure,
}

/// A change of level in the per-second series.
#[figures]
pub struct StorageChange {
    /// End of the last second of the level before, s since the group's first measured time.
    pub at_s: Figure,
    /// Median of the level after divided by that of the level before.
    pub ratio: Figure,
    /// Probability of such a difference without a change, by bootstrap; an upper bound.
    pub chance_ratio: Figure,
    /// Bytes read until then.
    pub read_bytes: u64,
    /// Bytes written until then.
    pub written_bytes: u64,
}

/// A level between two changes.
#[figures]
pub struct StorageLevel {
    /// Its start, s.
    pub from_s: Figure,
    /// Its end, s.
    pub to_s: Figure,
    /// Median of its seconds: I/Os per second, or us of response latency.
    pub median: Figure,
    /// Median bytes per second, MiB.
    pub mib_per_s: Figure,
    /// Standard deviation of its seconds divided by the mean.
    pub variation_ratio: Figure,
}

/// The devices' counters beside our own. Reported, never asserted: others may use the device too, and data that goes
/// through the page cache reaches it at another time or never.
#[figures]
pub struct StorageDevices {
    /// Bytes the jobs read.
    pub job_read_bytes: u64,
    /// Bytes the devices delivered.
    pub device_read_bytes: Figure,
    /// Device bytes divided by job bytes.
    pub read_ratio: Figure,
    /// Bytes the jobs wrote.
    pub job_write_bytes: u64,
    /// Bytes the devices received.
    pub device_write_bytes: Figure,
    /// Device bytes divided by job bytes.
    pub write_ratio: Figure,
}

impl Part for StorageInfo {
    const NAME: &str = "storage";
}
