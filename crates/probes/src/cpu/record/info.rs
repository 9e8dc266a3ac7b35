//! What `assay cpu` measured, in a record.

use crate::conditions::Conditions;
use crate::load::LoadInfo;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};
use assay_measure::section::Cell;

/// The part of a record.
#[figures(group = Host)]
pub(crate) struct CpuInfo {
    /// Version of the kernels: figures of different sets do not compare.
    pub kernel_set: String,
    /// `kernels` or `soak`.
    pub mode: String,
    /// CPUs in the order in which threads were put on them.
    pub cpus: Vec<u32>,
    /// Physical cores among them.
    pub cores_count: Figure,
    /// CPUs that could be used at once, by affinity and quota.
    pub usable_cpus: Figure,
    /// Whether the compiler optimised the kernels (a release build).
    pub is_optimised: bool,
    /// Whether every thread stayed on the CPU it was given.
    pub is_pinned: bool,
    /// Bytes of a page of the data: larger pages were not requested.
    pub page_bytes: u64,
    /// Length of one window, ms.
    pub window_ms: Figure,
    /// What reading the clock costs, ns.
    pub clock_read_ns: Figure,
    /// Median effective clock of all shots' threads, MHz.
    pub effective_mhz: Figure,
    /// Cost of a mispredicted branch, ns.
    pub misprediction_ns: Figure,
    /// Every kernel, one CPU and all.
    pub kernels: Vec<KernelRow>,
    /// The scaling curve.
    pub scaling: Vec<ScalingRow>,
    /// Pairs of CPUs.
    pub pairs: Vec<PairRow>,
    /// Each CPU's clock.
    pub clocks: Vec<ClockRow>,
    /// The clock over time.
    pub clock_series: Vec<ClockPoint>,
    /// Who else used the host.
    #[metrics]
    pub conditions: Conditions,
    /// The load, of `--soak`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<LoadInfo>,
    /// Wrong results.
    #[metric("wrong results", Lower)]
    pub verification_errors_count: u64,
    /// The first of them, in words.
    pub verification_errors: Vec<String>,
}

impl Part for CpuInfo {
    const NAME: &str = "cpu";
}

/// A kernel with so many threads.
#[figures]
pub(crate) struct KernelRow {
    /// Its name in the set.
    pub kernel: String,
    /// What is counted.
    pub unit: String,
    /// What limits it on most machines.
    pub bound: String,
    /// The code path that ran.
    pub path: String,
    /// The database work that it represents.
    pub about: String,
    /// Threads, each on its own CPU.
    pub threads_count: u64,
    /// Repetitions made.
    pub repetitions_count: u64,
    /// Units per second of wall time, all threads: median of the repetitions.
    pub per_s: Figure,
    /// The minimum.
    pub per_s_min: Figure,
    /// The most.
    pub per_s_max: Figure,
    /// Coefficient of variation of the repetitions, %.
    pub cv_pct: Figure,
    /// Half width of the 95 % interval of their mean, units per second.
    pub per_s_half_width: Figure,
    /// Units per second of CPU time: median.
    pub per_cpu_s: Figure,
    /// Coefficient of variation of that, %.
    pub per_cpu_s_cv_pct: Figure,
    /// CPU time that the threads got, as a share of their windows, %.
    pub given_pct: Figure,
    /// Effective clock right after, MHz: median.
    pub mhz: Figure,
    /// Of an unsteady one, what moved with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub moved_with: String,
}

/// One point of the scaling curve.
#[figures]
pub(crate) struct ScalingRow {
    /// The kernel.
    #[column("Kernel")]
    pub kernel: String,
    /// What is counted.
    pub unit: String,
    /// What limits it on most machines.
    #[column("bound by")]
    pub bound: String,
    /// Threads.
    #[column("Threads")]
    pub threads_count: u64,
    /// Where they were.
    pub cpus: Vec<u32>,
    /// Units per second, all threads: median.
    #[column("M/s or MB/s", with = millions)]
    pub per_s: Figure,
    /// Of the slowest thread, in the repetition of the median.
    #[column("slowest", with = millions)]
    pub thread_per_s_min: Figure,
    /// Of the quickest.
    #[column("quickest", with = millions)]
    pub thread_per_s_max: Figure,
    /// Rate over threads times the rate of one thread; 1 is perfect.
    #[column("efficiency", 2)]
    pub efficiency_ratio: Figure,
    /// Effective clock over that of one thread: the part of the loss that is the clock's.
    #[column("clock", 2)]
    pub clock_ratio: Figure,
    /// Efficiency over the clock's part: what sharing costs.
    #[column("shared", 2)]
    pub shared_ratio: Figure,
    /// Rate per CPU second over that of one thread: the efficiency without what others took.
    #[column("per CPU s", 2)]
    pub per_cpu_s_ratio: Figure,
    /// CPU time that the threads got, %; other processes or guests had the rest.
    #[column("given %", 1)]
    pub given_pct: Figure,
    /// Whether it is the largest number of threads with an efficiency of at least 0.8.
    #[column("knee")]
    pub is_knee: bool,
}

fn millions(figure: &Figure) -> Cell {
    Cell::figure(&figure.scaled(1e-6), 2)
}

/// A pair of CPUs.
#[figures]
pub(crate) struct PairRow {
    /// `line`, `switch` or `wake`.
    #[column("What")]
    pub what: String,
    /// The first CPU.
    #[column("from CPU")]
    pub from: u32,
    /// The other.
    #[column("to CPU")]
    pub to: u32,
    /// One way, ns: median of the batches.
    #[column("ns")]
    pub ns: Figure,
    /// Of the quickest batch, ns.
    #[column("quickest")]
    pub ns_min: Figure,
    /// Batches.
    #[column("batches")]
    pub batches_count: u64,
}

/// The clock of a CPU, MHz.
#[figures]
pub(crate) struct ClockRow {
    /// Which.
    #[column("CPU")]
    pub cpu: u32,
    /// Effective, alone, before everything.
    #[column("before")]
    pub before_mhz: Figure,
    /// The same after everything.
    #[column("after")]
    pub after_mhz: Figure,
    /// What the frequency driver reported right after that.
    #[column("reported", with = or_reason)]
    pub told_mhz: Figure,
}

/// The clock at an instant.
#[figures]
pub(crate) struct ClockPoint {
    /// After the begin, s.
    pub t_s: f64,
    /// Threads at work.
    pub threads_count: u64,
    /// Mean over them.
    pub mhz_mean: Figure,
    /// The lowest.
    pub mhz_min: Figure,
}
