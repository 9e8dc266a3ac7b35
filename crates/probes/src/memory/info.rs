//! What `assay memory` measured, in a record.

use crate::conditions::Conditions;
use crate::load::LoadInfo;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};

/// Version of the loops, the chain and the patterns: figures of different versions do not compare.
pub(super) const SET: &str = "mem-v1";

/// The part of a record.
#[figures(group = Host)]
pub(crate) struct MemoryInfo {
    /// Version of the kernel set.
    pub kernel_set: String,
    /// `bench` or `soak`.
    pub mode: String,
    /// CPUs in the order in which threads were put on them.
    pub cpus: Vec<u32>,
    /// Whether every thread stayed on the CPU it was given.
    pub is_pinned: bool,
    /// Whether the compiler optimised the loops (a release build).
    pub is_optimised: bool,
    /// Instructions of the bandwidth loops: `AVX`, `SSE2`, `portable`.
    pub path: String,
    /// Pages requested for the arrays: `4k`, `thp`, `2m` or `1g`.
    pub pages: String,
    /// Transparent huge pages, as the kernel is set.
    pub transparent_huge_pages: String,
    /// Data caches, as the kernel reports them.
    pub caches: Vec<CacheRow>,
    /// How large the arrays were, and by what.
    pub arrays: ArrayRule,
    #[metrics]
    pub bandwidth: Vec<BandwidthRow>,
    pub saturation: Vec<SaturationRow>,
    pub ladder: Vec<LadderRow>,
    /// Flat parts of the ladders, by change of slope.
    #[metrics(PlateauRow::is_known)]
    pub plateaus: Vec<PlateauRow>,
    /// The result of requesting pages.
    #[metrics]
    pub got: Vec<PagesRow>,
    /// Several chains side by side.
    #[metrics]
    pub chains: Vec<ChainRow>,
    /// The latency beside readers.
    #[metrics]
    pub loaded: Vec<LoadedRow>,
    /// First touch of fresh memory.
    #[metrics]
    pub faults: Vec<FaultRow>,
    /// NUMA nodes with memory.
    pub nodes: Vec<u32>,
    #[metrics]
    pub numa: Vec<NumaRow>,
    /// Median effective clock while chasing, MHz.
    #[metric("effective clock")]
    pub effective_mhz: Figure,
    #[metrics]
    pub conditions: Conditions,
    /// The load, of `--soak`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<LoadInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soaked: Option<Soaked>,
    /// Memory that did not return what was written.
    #[metric("wrong words", Lower)]
    pub verification_errors_count: u64,
    /// The first of them, in words.
    pub verification_errors: Vec<String>,
    /// What was not measured, and why.
    pub left_out: Vec<(String, String)>,
}

impl Part for MemoryInfo {
    const NAME: &str = "memory";
}

/// Caches of one level.
#[figures]
pub(crate) struct CacheRow {
    pub name: String,
    /// Of one.
    pub bytes: u64,
    pub count: u64,
    /// CPUs that share the first.
    pub shared_by: String,
}

/// The size of the arrays (cpu-memory-probe 5.1): at least four times all last-level caches, and 64 MiB.
#[figures]
pub(crate) struct ArrayRule {
    pub last_level_bytes: Figure,
    /// The size that the rule requires of each array.
    pub wanted_bytes: u64,
    /// The size of each array.
    pub bytes: u64,
    pub is_met: bool,
    /// Why the rule was not met; empty if it was.
    pub why: String,
}

/// A kernel with so many threads.
#[figures(group = Host, scope = "{kernel} {stores} {threads_count} cpu")]
pub(crate) struct BandwidthRow {
    /// `copy`, `scale`, `add`, `triad`, `read` or `fill`.
    #[column("Kernel")]
    pub kernel: String,
    /// `normal` or `non-temporal`; empty of a kernel that stores nothing.
    #[column("stores")]
    pub stores: String,
    #[column("threads")]
    pub threads_count: u64,
    /// Named bytes per second, 10^9: median of the passes.
    #[column("median", 2)]
    #[metric("median pass", half_width = gb_per_s_half_width)]
    pub gb_per_s_p50: Figure,
    /// Of the best pass: what STREAM prints.
    #[column("best", 2)]
    #[metric("best pass")]
    pub gb_per_s_max: Figure,
    /// With the lines that normal stores read first: median.
    #[column("bus, median", 2)]
    #[metric("median pass, on the bus")]
    pub bus_gb_per_s_p50: Figure,
    /// Coefficient of variation of the passes, %.
    #[column("CV %", 1)]
    pub cv_pct: Figure,
    #[column("passes")]
    pub passes_count: u64,
    /// CPU time the threads were given, of what their passes took, %.
    #[column("given %", 1)]
    pub given_pct: Figure,
    /// Half width of the 95 % interval of their mean.
    pub gb_per_s_half_width: Figure,
}

/// How many threads a kernel needs.
#[figures]
pub(crate) struct SaturationRow {
    #[column("Kernel")]
    pub kernel: String,
    #[column("stores")]
    pub stores: String,
    /// The fewest with at least 95 % of the best rate.
    #[column("threads")]
    pub threads_count: u64,
    /// The most that were tried.
    #[column("of")]
    pub threads_most_count: u64,
    #[column("GB/s", 2)]
    pub gb_per_s_p50: Figure,
}

/// One step of a ladder.
#[figures]
pub(crate) struct LadderRow {
    /// `4k`, `thp`, `2m` or `1g`.
    pub pages: String,
    /// `lines`: a pointer in each 64 bytes; `pages`: one in each 4 KiB.
    pub spacing: String,
    pub bytes: u64,
    /// Of a step: median of the batches.
    pub ns_p50: Figure,
    /// Of the quickest batch.
    pub ns_min: Figure,
    pub cycles_p50: Figure,
    pub hops_count: u64,
}

/// A flat part of a ladder.
#[figures(group = Host, scope = "{level} {pages}")]
pub(crate) struct PlateauRow {
    pub pages: String,
    /// `L1d`, `L2`, `L3`, `memory`, or `?` where no level is near.
    pub level: String,
    pub from_bytes: u64,
    /// The largest size that is still on it.
    pub to_bytes: u64,
    #[metric("latency")]
    #[serde(alias = "ns_p50")]
    pub latency_ns_p50: Figure,
    /// Size of one such cache, as the kernel reports it.
    pub cache_bytes: Figure,
}

impl PlateauRow {
    /// Of a cache that the kernel reports, or of memory.
    fn is_known(&self) -> bool {
        self.level != "?"
    }
}

/// The result of requesting pages.
#[figures(group = Host, scope = "{what} {pages}")]
pub(crate) struct PagesRow {
    /// What they were for.
    #[column("Memory")]
    pub what: String,
    #[column("pages requested")]
    pub pages: String,
    #[column("size", with = sized)]
    pub bytes: u64,
    /// The share that really is huge, by the kernel's own books.
    #[column("huge %", with = or_reason)]
    #[metric("really huge")]
    pub huge_pct: Figure,
}

/// Chains of one thread side by side.
#[figures(group = Host, scope = "{chains_count} chains")]
pub(crate) struct ChainRow {
    #[column("Chains")]
    pub chains_count: u64,
    /// Between two steps of any of them.
    #[column("ns per step", 1)]
    pub ns_p50: Figure,
    /// Parallel steps: the latency of one chain over this one.
    #[column("times one chain", 2)]
    #[metric("steps in flight at once", Higher)]
    pub parallel_ratio: Figure,
    /// 64 bytes a step, 10^9.
    #[column("GB/s of lines", 2)]
    pub gb_per_s: Figure,
}

/// The latency while others read.
#[figures(group = Host, scope = "{readers_count} readers")]
pub(crate) struct LoadedRow {
    #[column("Readers")]
    pub readers_count: u64,
    /// Of all readers.
    #[column("GB/s they read", 2)]
    pub gb_per_s: Figure,
    #[column("ns per step", 1)]
    #[metric("latency beside readers")]
    #[serde(alias = "ns_p50")]
    pub loaded_latency_ns_p50: Figure,
}

/// First touch of fresh memory.
#[figures(group = Host, scope = "{pages} {threads_count} cpu")]
pub(crate) struct FaultRow {
    #[column("Pages")]
    pub pages: String,
    #[column("threads")]
    pub threads_count: u64,
    #[column("GB/s", 2)]
    #[metric("first touch")]
    #[serde(alias = "gb_per_s")]
    pub first_touch_gb_per_s: Figure,
    #[column("faults/s")]
    #[metric("page faults")]
    #[serde(alias = "faults_per_s")]
    pub page_faults_per_s: Figure,
    /// Of a thread, per fault.
    #[column("us per fault", 2)]
    pub us_per_fault: Figure,
    /// Giving it back.
    #[column("unmap GB/s", 1)]
    pub unmap_gb_per_s: Figure,
}

/// CPUs of one node, memory of another.
#[figures(group = Host, scope = "node {cpu_node} to {memory}")]
pub(crate) struct NumaRow {
    #[column("CPUs of node")]
    pub cpu_node: u32,
    /// A node, or `interleaved`.
    #[column("memory of node")]
    pub memory: String,
    /// The firmware's.
    #[column("distance")]
    pub distance: Figure,
    #[column("ns per step", 1)]
    #[metric("latency")]
    #[serde(alias = "ns_p50")]
    pub numa_latency_ns_p50: Figure,
    /// All CPUs of the node read.
    #[column("read GB/s", 2)]
    #[metric("read")]
    #[serde(alias = "gb_per_s")]
    pub numa_gb_per_s: Figure,
    /// Pages in the requested place, %.
    #[column("pages there %")]
    pub placed_pct: Figure,
}

/// What a load wrote and read back.
#[figures]
pub(crate) struct Soaked {
    pub worker_bytes: u64,
    pub total_bytes: u64,
    /// Wrong words by worker and 16 MiB of its memory.
    pub regions: Vec<(u64, u64, u64)>,
    /// Errors that the memory controller corrected meanwhile.
    pub edac_corrected_count: Figure,
    /// Errors that it could not.
    pub edac_uncorrected_count: Figure,
}
