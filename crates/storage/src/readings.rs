//! The raw readings of the storage probe, before any figure is derived.
//!
//! `assay io` fills these while it runs; the report turns them into fio's text and JSON and into the record. All
//! counters are cumulative from the end of a job's ramp and can be merged over clones.

mod families;

pub use families::{FAMILIES, FAMILY_BOUNDS_NS, FamilyCounts, family_of};

use assay_measure::clock::Ns;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{DiskReading, Fact, HostReading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Directions of a transfer, in fio's order.
pub const DIRECTIONS: usize = 3;

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the device.
    Read,
    /// To the device.
    Write,
    /// Discarded by the device.
    Trim,
}

impl Way {
    /// All directions, in the order of every array here.
    pub const ALL: [Self; DIRECTIONS] = [Self::Read, Self::Write, Self::Trim];

    /// `read`, `write`, `trim`: keys of the JSON tree.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }

    /// Its index in arrays.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Durations with their histogram and the exact sum of their squares, so that mean and standard deviation are exact and
/// merging is an exact addition.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LatencyReading {
    /// Buckets, count, sum, extremes.
    pub histogram: Histogram,
    /// Sum of the squares, ns^2.
    #[serde(default)]
    pub squares_ns2: u128,
}

impl Clone for LatencyReading {
    fn clone(&self) -> Self {
        Self { histogram: self.histogram.clone(), squares_ns2: self.squares_ns2 }
    }
}

impl PartialEq for LatencyReading {
    fn eq(&self, other: &Self) -> bool {
        self.squares_ns2 == other.squares_ns2 && self.histogram == other.histogram
    }
}

impl LatencyReading {
    /// An empty reading that can record without allocating.
    #[must_use]
    pub fn new() -> Self {
        Self { histogram: Histogram::new(), squares_ns2: 0 }
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.record(ns);
        self.squares_ns2 += u128::from(ns) * u128::from(ns);
    }

    /// Counts `n` equal durations.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        self.histogram.record_n(ns, n);
        self.squares_ns2 += u128::from(ns) * u128::from(ns) * u128::from(n);
    }

    /// Adds the durations of another reading: associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.squares_ns2 = self.squares_ns2.saturating_add(other.squares_ns2);
    }

    /// Sample standard deviation (divisor n - 1), ns; 0 for one duration, `None` while empty.
    #[must_use]
    pub fn stddev_ns(&self) -> Option<f64> {
        let n = u128::from(self.histogram.count());
        if n == 0 {
            return None;
        }
        if n == 1 {
            return Some(0.0);
        }
        // n * sum(x^2) - sum(x)^2 is exact in integers, so no digits are lost to cancellation.
        let sum = u128::from(self.histogram.sum_ns());
        let spread = n.checked_mul(self.squares_ns2).and_then(|all| all.checked_sub(sum.checked_mul(sum)?));
        let variance = match spread {
            Some(spread) => spread as f64 / (n as f64 * (n - 1) as f64),
            None => {
                let mean = sum as f64 / n as f64;
                ((self.squares_ns2 as f64 - n as f64 * mean * mean) / (n - 1) as f64).max(0.0)
            }
        };
        Some(variance.sqrt())
    }
}

/// Samples of a rate of one clone at a fixed interval (`bwavgtime`, `iopsavgtime`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// Samples taken.
    pub count: u64,
    /// Smallest; meaningless while `count` is 0.
    pub min: f64,
    /// Largest; meaningless while `count` is 0.
    pub max: f64,
    /// Running mean.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub deviation_squares: f64,
}

impl Samples {
    /// Adds one sample (Welford's update).
    pub fn take(&mut self, value: f64) {
        if self.count == 0 {
            (self.min, self.max) = (value, value);
        } else {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.deviation_squares += delta * (value - self.mean);
    }

    /// Sample standard deviation; 0 for fewer than two samples.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.deviation_squares / (self.count - 1) as f64).sqrt()
    }
}

/// One direction of one clone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WayReading {
    /// Bytes moved.
    pub bytes: u64,
    /// Completed I/Os without the failed ones.
    pub ios: u64,
    /// I/Os that moved less than requested.
    pub short_ios: u64,
    /// From the clone's first measured time to the last one of this direction.
    pub runtime_ns: Ns,
    /// From the request's preparation to the return of the call that submitted it; empty for
    /// engines that submit and complete in one call.
    pub slat: LatencyReading,
    /// From the submission to the reaping.
    pub clat: LatencyReading,
    /// From the preparation to the reaping: the headline.
    pub lat: LatencyReading,
    /// From the time the request was due; `None` without a rate.
    pub response: Option<LatencyReading>,
    /// Bandwidth samples, KiB/s.
    pub bw: Samples,
    /// IOPS samples.
    pub iops: Samples,
}

/// Counts by depth at submission: 1, 2, 4, 8, 16, 32, >=64 as lower bounds.
pub type DepthCounts = [u64; 7];
/// Counts by batch: 0, 1..=4, ..=8, ..=16, ..=32, ..=64, above.
pub type BatchCounts = [u64; 7];

/// The bucket of a depth (at least 1).
#[must_use]
pub fn depth_slot(depth: u32) -> usize {
    (31 - depth.max(1).leading_zeros()).min(6) as usize
}

/// The bucket of a batch size.
#[must_use]
pub fn batch_slot(batch: u32) -> usize {
    match batch {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// Data of the first line of fio's report on a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobLabel {
    /// `randread`, ...: fio's spelling.
    pub rw: String,
    /// Smallest and largest block of each direction, bytes.
    pub block_bytes: [(u64, u64); DIRECTIONS],
    /// The engine in use: `io_uring`, `libaio`, `psync`, `null`, ...
    pub ioengine: String,
    /// I/Os kept in flight per clone.
    pub iodepth: u32,
    /// Clones.
    pub numjobs: u32,
    /// Submission and completion are one call, so there is no slat.
    pub synchronous: bool,
    /// `clat_percentiles`, `lat_percentiles`, `slat_percentiles`, which the text report follows.
    pub clat_percentiles: bool,
    /// See above.
    pub lat_percentiles: bool,
    /// See above.
    pub slat_percentiles: bool,
    /// Latencies disabled by options (`disable_slat`, ...; `gtod_reduce` disables all).
    pub no_slat: bool,
    /// See above.
    pub no_clat: bool,
    /// See above.
    pub no_lat: bool,
    /// Bandwidth samples disabled by an option.
    pub no_bw: bool,
    /// Percentiles to report, in percent, ascending.
    pub percentiles: Vec<f64>,
    /// Digits of shortened numbers (`significant_figures`).
    pub significant_figures: u32,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `description`.
    pub description: Option<String>,
    /// Target I/Os per second of each direction, where the job sets a rate.
    pub rate_iops: [Option<f64>; DIRECTIONS],
    /// The latency goal of a search for a depth.
    #[serde(default)]
    pub latency_goal: Option<GoalLabel>,
}

/// `latency_target` as requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GoalLabel {
    /// `latency_target`.
    pub target_ns: Ns,
    /// `latency_window`.
    pub window_ns: Ns,
    /// `latency_percentile`, percent.
    pub percentile: f64,
    /// `latency_run`: the depth was adapted until the end, and everything was measured.
    pub adapts: bool,
}

/// The result of one clone's search for a depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchReading {
    /// Final depth.
    pub depth: u32,
    /// Number of windows judged, without the measured one.
    pub windows: u32,
    /// Time spent searching before the measurement.
    pub searched_ns: Ns,
    /// I/Os since the last window began: the measured ones, unless the depth was adapted until the end.
    pub ios: u64,
    /// How many of these took longer than the target.
    pub slow_ios: u64,
}

/// One clone of one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CloneReading {
    /// Index of its job in [`StorageReadings::jobs`].
    pub job: usize,
    /// From 0.
    pub clone: u32,
    /// The thread's id.
    pub pid: u32,
    /// errno of the error that ended it; 0 without an error.
    pub error: i32,
    /// The error in words.
    pub error_text: Option<String>,
    /// I/Os that failed without ending the clone (`continue_on_error`).
    pub errors_passed: u64,
    /// Reads, writes, trims.
    pub ways: [WayReading; DIRECTIONS],
    /// `clat` of all directions by fio's bounds. Without these counts (a total of 0) the reports take the shares from
    /// the histograms, accurate to one bucket at each bound.
    #[serde(default)]
    pub clat_families: FamilyCounts,
    /// `fsync`, `fdatasync`: from the start of the call to its end.
    pub sync: LatencyReading,
    /// Depth at the submission of each I/O, without syncs.
    pub depths: DepthCounts,
    /// I/Os per submitting call.
    pub submits: BatchCounts,
    /// I/Os per reaping call.
    pub completes: BatchCounts,
    /// Calls into the kernel to submit or wait.
    pub kernel_entries: u64,
    /// From its first measured time to its end or to this reading.
    pub runtime_ns: Ns,
    /// The thread's time in user mode over that time.
    pub user_ns: Ns,
    /// The thread's time in the kernel.
    pub system_ns: Ns,
    /// Time in which the thread could have run and had no CPU; 0 where the kernel keeps no such count.
    pub run_delay_ns: Ns,
    /// Context switches, voluntary and involuntary.
    pub context_switches: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that did not need I/O.
    pub minor_faults: u64,
    /// Integral over time of I/Os in flight, I/O x ns, updated at each change independently of the latencies. Divided
    /// by `runtime_ns` it is the mean depth that Little's law must confirm.
    pub in_flight_ns: u128,
    /// Blocks that were read back and verified.
    pub verified_ios: u64,
    /// The search for a depth that meets `latency_target`, if any.
    #[serde(default)]
    pub search: Option<SearchReading>,
}

/// One job: the data that its clones share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobReading {
    /// `--name` or the section.
    pub name: String,
    /// Report group, from 0.
    pub group: u32,
    /// Options of the job as given, in order; values as typed, `None` for bare flags.
    pub options: Vec<(String, Option<String>)>,
    /// See [`JobLabel`].
    pub label: JobLabel,
    /// Effective settings that fio-style plotters look for: `rw`, `iodepth`, `numjobs`, `bs`.
    pub effective: BTreeMap<String, String>,
    /// Paths of its files.
    pub files: Vec<String>,
    /// Bytes of its region in all files.
    pub region_bytes: u64,
    /// Features that the ring obtained.
    pub features: Vec<String>,
    /// Features that the kernel refused, and why.
    pub refused: Vec<(String, String)>,
    /// `per I/O` or `per batch`: how often times were taken.
    pub timing: String,
    /// Steady state, if the job requests it.
    pub steady: Option<SteadyReading>,
    /// Seed of its random streams.
    pub seed: u64,
    /// Remarks on its figures, in sentences.
    pub notes: Vec<String>,
}

impl JobReading {
    /// The latency goal of a search for a depth.
    #[must_use]
    pub fn latency_goal(&self) -> Option<GoalLabel> {
        self.label.latency_goal
    }
}

/// Steady-state detection of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyReading {
    /// As given: `iops:0.3%`, `bw_slope:1`, ...
    pub criterion: String,
    /// Window, s.
    pub duration_s: u64,
    /// Ramp before it, s.
    pub ramp_s: u64,
    /// Whether the criterion was met.
    pub attained: bool,
    /// Value of the criterion in the last window, in its own unit.
    pub last: Option<f64>,
    /// Slope over the last window, per second.
    pub slope: Option<f64>,
    /// Largest deviation from the mean in the last window, in percent.
    pub deviation_pct: Option<f64>,
    /// IOPS of each second of the last window.
    pub iops: Vec<u64>,
    /// Bandwidth of each second of the last window, KiB/s.
    pub bw_kib_per_s: Vec<u64>,
    /// Mean latency of each second of the last window, ns.
    pub lat_ns: Vec<f64>,
}

/// The preconditioning of files or devices before the jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreconditionReading {
    /// Name of the job that requested it.
    pub job: String,
    /// `fill` or `snia`.
    pub method: String,
    /// Paths that were overwritten.
    pub files: Vec<String>,
    /// How many of their bytes were overwritten.
    pub bytes: u64,
    /// How often they were filled from end to end.
    pub fills: u32,
    /// Bandwidth of each fill, bytes per second.
    pub fill_bytes_per_s: Vec<f64>,
    /// Block size of the random writes, bytes.
    pub block_bytes: u64,
    /// Length of a round of random writes, s.
    pub round_s: f64,
    /// IOPS of each round.
    pub rounds: Vec<f64>,
    /// Number of rounds in the window.
    pub window: u32,
    /// Whether the rounds of a window were alike; always true for `fill`.
    pub attained: bool,
    /// Largest minus smallest of the last window, percent of its mean.
    pub excursion_pct: Option<f64>,
    /// Rise or fall of the fitted line over the last window, percent of its mean.
    pub slope_pct: Option<f64>,
    /// Total time, ns.
    pub elapsed_ns: Ns,
}

/// One second of one report group, over all clones, synchronised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondReading {
    /// Report group.
    pub group: u32,
    /// End of the second since the group's first measured time, ns.
    pub end_ns: Ns,
    /// Its length, ns: one second except for the last.
    pub length_ns: Ns,
    /// I/Os that completed in it, by direction.
    pub ios: [u64; DIRECTIONS],
    /// Bytes they moved.
    pub bytes: [u64; DIRECTIONS],
    /// Their `lat`.
    pub lat: [Histogram; DIRECTIONS],
    /// Time from due to completion, if there is a rate.
    pub response: Option<Histogram>,
    /// Syncs that completed in it.
    pub syncs: u64,
    /// The devices during this second: reads, writes, their bytes and times, as in [`StorageReadings::disks`].
    pub disks: Vec<DiskReading>,
}

/// Everything that one `assay io` measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageReadings {
    /// The version of the measuring program in fio's formats; if empty, `assay-` and the version of the reading
    /// program. Some consumers of fio's JSON insist on `fio-N.N`.
    #[serde(default)]
    pub fio_version: String,
    /// Global options as given.
    pub global_options: Vec<(String, Option<String>)>,
    /// The jobs in order.
    pub jobs: Vec<JobReading>,
    /// Their clones, by job, then clone.
    pub clones: Vec<CloneReading>,
    /// The seconds of each group, in order.
    pub seconds: Vec<SecondReading>,
    /// Devices below the files: their activity over the whole run (differences).
    pub disks: Vec<DiskReading>,
    /// The host over the same time (differences).
    pub host: Option<HostReading>,
    /// The platform under each file.
    pub facts: Vec<Fact>,
    /// Preconditioning of files and devices before the jobs (`precondition`).
    #[serde(default)]
    pub precondition: Vec<PreconditionReading>,
    /// Wall clock at this reading, ms since 1970.
    pub timestamp_ms: u64,
    /// Wall clock at the start of the first job, ms since 1970.
    pub started_ms: u64,
    /// Time since the first job's start.
    pub elapsed_ns: Ns,
    /// CPU time of the whole process over `elapsed_ns`, user and system, ns.
    pub process_cpu_ns: Ns,
    /// Whether it was stopped on request.
    pub stopped: bool,
    /// Whether a job is still running: this is an intermediate reading.
    pub running: bool,
}

impl StorageReadings {
    /// Errors of clones, one sentence each.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let failed = self.clones.iter().filter(|clone| clone.error != 0 || clone.errors_passed > 0);
        failed
            .map(|clone| {
                let job = self.jobs.get(clone.job).map_or("?", |job| &job.name);
                let passed = format!("{} I/Os failed, and the job continued", clone.errors_passed);
                let passed = (clone.errors_passed > 0).then_some(passed);
                let whats: Vec<String> = clone.error_text.iter().cloned().chain(passed).collect();
                format!("{job}, clone {}: {}", clone.clone, whats.join("; "))
            })
            .collect()
    }

    /// Completed I/Os of all clones and directions.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.clones.iter().flat_map(|clone| clone.ways.iter().map(|way| way.ios)).sum()
    }
}

/// One moment of a run, for the progress line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageLive {
    /// fio's state letter of each clone: `P` set up, `R r W w M m` running, `F` syncing, `V` verifying, `E` and `_`
    /// ended, ...
    pub states: String,
    /// Clones running.
    pub running: u32,
    /// Files open.
    pub files: u32,
    /// Share done, 0 to 1; `None` while it is unknown.
    pub done: Option<f64>,
    /// Time left, s.
    pub eta_s: Option<u64>,
    /// Bytes per second over the last interval, by direction; `None` if no job has this direction.
    pub bytes_per_s: [Option<f64>; DIRECTIONS],
    /// I/Os per second over the last interval.
    pub ios_per_s: [Option<f64>; DIRECTIONS],
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> LatencyReading {
        let mut latency = LatencyReading::new();
        values.iter().for_each(|&ns| latency.record(ns));
        latency
    }

    #[test]
    fn a_known_spread_is_exact() {
        let latency = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        let stddev = latency.stddev_ns().unwrap();
        assert!((stddev - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12, "{stddev}");
        assert_eq!(of(&[7]).stddev_ns(), Some(0.0));
        assert_eq!(LatencyReading::new().stddev_ns(), None);
    }

    #[test]
    fn depths_and_batches_fall_into_fios_slots() {
        let depths: Vec<usize> = [1, 2, 3, 4, 31, 32, 63, 64, 4096].map(depth_slot).to_vec();
        assert_eq!(depths, [0, 1, 1, 2, 4, 5, 5, 6, 6]);
        let batches: Vec<usize> = [0, 1, 4, 5, 8, 9, 32, 33, 64, 65].map(batch_slot).to_vec();
        assert_eq!(batches, [0, 1, 1, 2, 2, 3, 4, 5, 5, 6]);
    }

    proptest! {
        #[test]
        fn merging_is_recording_all(a in prop::collection::vec(0_u64..1 << 40, 0..50), b in prop::collection::vec(0_u64..1 << 40, 0..50)) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&merged, &of(&all));
        }

        #[test]
        fn n_equal_durations_are_n_records(ns in 0_u64..1 << 40, n in 1_u64..100) {
            let mut many = LatencyReading::new();
            many.record_n(ns, n);
            prop_assert_eq!(many, of(&vec![ns; n as usize]));
        }

        #[test]
        fn a_streaming_spread_agrees_with_two_passes(values in prop::collection::vec(0.0_f64..1e6, 2..60)) {
            let mut samples = Samples::default();
            values.iter().for_each(|&value| samples.take(value));
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let stddev = (squares / (values.len() - 1) as f64).sqrt();
            prop_assert!((samples.stddev() - stddev).abs() <= 1e-6 * (1.0 + stddev));
        }
    }
}
