//! The figures of a clock.

use crate::conditions::Conditions;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};

/// From this share of the cheapest system call on, a read leaves user space; up to the other, it does not. Decided here: a read by a system
/// call does more than getppid, so a tenth is for noise; in user space a read takes a fifth of it and less, and half leaves room for slow ones.
pub(super) const CALLS: f64 = 0.9;
pub(super) const CALLS_NOT: f64 = 0.5;
/// The path of such a read.
pub(super) const LEAVES: &str = "system call or trap";

/// What `assay clock` measured.
#[figures(group = Host)]
pub(crate) struct ClockInfo {
    /// The kernel's clock source in use, and those it has; `unknown` where it does not tell.
    pub source: String,
    pub available: String,
    /// `user space`, `system call or trap` or `not clear`: how CLOCK_MONOTONIC is read, inferred from the costs.
    pub path: String,
    /// One read of CLOCK_MONOTONIC, ns: the median of the rounds, half the 95 % interval of their mean, and how they vary.
    #[metric("one read of the clock", Primary, half_width = read_ns_half_width)]
    pub clock_read_ns_p50: Figure,
    pub read_ns_half_width: Figure,
    pub read_cv_pct: Figure,
    /// By round, ns.
    pub rounds_ns: Vec<f64>,
    /// The cheapest system call (getppid), ns.
    #[metric("cheapest system call")]
    pub system_call_ns_p50: Figure,
    /// A read, the difference to the one before and its bucket, ns: what pg_test_timing calls per loop time; and the same without the
    /// time in which others had the CPU.
    #[metric("loop that reads and counts, as pg_test_timing's")]
    pub loop_ns_avg: Figure,
    #[metric("the same by CPU time")]
    pub loop_cpu_ns_avg: Figure,
    /// The smallest step above 0 between two readings, ns.
    #[metric("smallest step")]
    pub step_ns_min: Figure,
    /// Steps below 1 us, %.
    #[metric("steps below 1 us", Higher)]
    pub below_1us_pct: Figure,
    /// How often any clock went back within one thread.
    #[metric("steps backwards", Primary, Lower)]
    pub backwards_count: u64,
    /// No two CPUs' clocks are further apart, ns, n/a where a pair has no bound; and how far some two are at least.
    #[metric("CPUs' clocks apart, at most", Primary)]
    pub clocks_apart_ns_max: Figure,
    #[metric("CPUs' clocks apart, at least")]
    pub clocks_apart_ns_min: Figure,
    #[metrics]
    pub timed: Vec<TimedRow>,
    #[metrics]
    pub clocks: Vec<ClockRow>,
    #[metrics]
    pub pairs: Vec<PairRow>,
    pub steps: Vec<StepRow>,
    #[metrics]
    pub conditions: Conditions,
    pub is_optimised: bool,
    /// Of the loop that reads and counts, s.
    pub loop_s: f64,
}

impl Part for ClockInfo {
    const NAME: &str = "clock";
}

/// What a step of a database takes longer where it is timed.
#[figures(group = Host, scope = "{step}")]
pub(crate) struct TimedRow {
    #[column("Step that is timed")]
    pub step: String,
    /// More time, %.
    #[column("takes longer, %", 3)]
    #[metric("longer where it is timed", Lower)]
    pub longer_pct: Figure,
    #[column("who times it")]
    pub by: String,
}

/// A clock.
#[figures(group = Host, scope = "{clock}")]
pub(crate) struct ClockRow {
    #[column("CLOCK_")]
    pub clock: String,
    /// One read, the median of the rounds, and half the 95 % interval of their mean, ns.
    #[column("read, ns", 1)]
    #[metric("one read", half_width = read_ns_half_width)]
    pub read_ns_p50: Figure,
    #[column("+-", 1)]
    pub read_ns_half_width: Figure,
    /// A read with its difference and bucket, ns; and of that on a CPU.
    #[column("loop, ns", 1)]
    pub loop_ns_avg: Figure,
    #[column("on a CPU", 1)]
    pub loop_cpu_ns_avg: Figure,
    /// The smallest step above 0, ns.
    #[column("smallest step, ns")]
    #[metric("smallest step")]
    pub step_ns_min: Figure,
    /// How often it went back, and how far at most, ns.
    #[column("went back")]
    pub backwards_count: u64,
    pub backwards_ns_max: Figure,
    #[column("what it is")]
    pub about: String,
}

/// Two CPUs.
#[figures(group = Host, scope = "cpu {from} to {to}")]
pub(crate) struct PairRow {
    #[column("CPU")]
    pub from: u32,
    #[column("and CPU")]
    pub to: u32,
    /// How far the second is ahead, ns: the middle of what the exchanges leave room for, and half of that room.
    #[column("ahead, ns", 1)]
    pub offset_ns: Figure,
    #[column("+-", 1)]
    pub bound_ns: Figure,
    /// The largest distance that the exchanges leave room for, ns; and the smallest.
    #[column("at most", 1)]
    #[metric("apart, at most")]
    pub apart_ns_max: Figure,
    #[column("at least", 1)]
    pub apart_ns_min: Figure,
    /// The quickest way there and back, ns.
    #[column("there and back, ns")]
    pub trip_ns_min: Figure,
    #[column("exchanges")]
    pub exchanges_count: u64,
}

/// Steps of a size.
#[figures]
pub(crate) struct StepRow {
    /// us.
    #[column("< us")]
    pub below_us: u64,
    #[column("% of total", 5)]
    pub share_pct: Figure,
    #[column("count")]
    pub steps_count: u64,
}
