//! What the probe measured: raw readings, before anything is derived.

use crate::conditions::HostWindow;
use crate::load::LoadReading;
use assay_measure::clock::Ns;
use assay_measure::snapshot::Fact;

/// One thread of a shot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ThreadReading {
    pub(super) cpu: u32,
    pub(super) is_pinned: bool,
    /// Calls that ended within its window.
    pub(super) calls: u64,
    /// From its first call's begin to its last one's end.
    pub(super) elapsed_ns: Ns,
    /// What of that it was on a CPU.
    pub(super) cpu_ns: Ns,
    /// What of that it was runnable and on none.
    pub(super) run_delay_ns: Option<Ns>,
    /// Effective clock of its CPU right after.
    pub(super) mhz: f64,
}

/// One kernel, so many threads, one repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ShotReading {
    pub(super) kernel: &'static str,
    pub(super) repetition: u32,
    /// When it ended, ns after the first one began.
    pub(super) ended_ns: Ns,
    pub(super) threads: Vec<ThreadReading>,
    /// What the hypervisor gave to others meanwhile.
    pub(super) steal_pct: Option<f64>,
}

/// What a pair of threads hands to and fro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairKind {
    /// A cache line, one way.
    Line,
    /// A byte through a pipe: a switch of context.
    Pipe,
    /// A wake-up of a thread that sleeps on a futex.
    Wake,
}

/// A pair of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PairReading {
    pub(super) kind: PairKind,
    pub(super) from: u32,
    pub(super) to: u32,
    /// One way: median of the batches.
    pub(super) ns: f64,
    /// Of the quickest batch.
    pub(super) ns_min: f64,
    pub(super) batches: u64,
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CpuReadings {
    /// In the order in which threads are put on them.
    pub(super) cpus: Vec<u32>,
    pub(super) cores: Option<usize>,
    pub(super) is_pinned: bool,
    pub(super) usable_millicpus: Option<u64>,
    /// Switches of the platform.
    pub(super) facts: Vec<Fact>,
    /// What reading the clock costs.
    pub(super) clock_read_ns: f64,
    /// Whether the compiler made the kernels as quick as it can.
    pub(super) is_optimised: bool,
    /// Length of one window.
    pub(super) window_ns: Ns,
    /// Effective clock of each CPU alone, before and after.
    pub(super) mhz_before: Vec<(u32, f64)>,
    pub(super) mhz_after: Vec<(u32, f64)>,
    /// What the frequency driver told right after those.
    pub(super) mhz_told: Vec<Option<f64>>,
    pub(super) shots: Vec<ShotReading>,
    pub(super) pairs: Vec<PairReading>,
    pub(super) soak: Option<LoadReading>,
    /// Kernels that were not run, and why.
    pub(super) left_out: Vec<(&'static str, String)>,
    /// The first few results that were not what they must be.
    pub(super) wrong: Vec<String>,
    pub(super) host: HostWindow,
    pub(super) is_stopped: bool,
}
