//! A load in a record.

use super::LoadReading;
use assay_measure::figures::{Group, Metric, figures, metric};
use assay_measure::record::Figure;
use assay_measure::statistics::mean;

/// A load for a time.
#[figures]
pub(crate) struct LoadInfo {
    /// This process, as the metrics block names it.
    pub pid: u32,
    /// Workers.
    pub workers_count: u64,
    /// Operations.
    pub ops_count: u64,
    /// Mean wall time of the workers, s.
    pub real_s: f64,
    /// User time of all, s.
    pub user_s: f64,
    /// System time of all, s.
    pub system_s: f64,
    /// User and system time over wall time.
    pub cpus_busy: Figure,
    /// The lowest clock seen, MHz.
    pub mhz_min: Figure,
    /// Mean of the clocks seen, MHz.
    pub mhz_mean: Figure,
    /// Every second.
    pub seconds: Vec<LoadSecond>,
}

impl LoadInfo {
    /// Its metrics; `ops`: what an operation is, in the plural.
    pub(crate) fn metrics(&self, ops: &str) -> [Metric; 2] {
        let rate = Figure::Count(self.ops_count).per(self.real_s, "no time passed");
        [
            metric(Group::Primary, "soak_ops_per_s", ops, "", rate),
            metric(Group::Host, "soak_cpus_busy_count", "CPUs kept busy", "", self.cpus_busy.clone()),
        ]
    }
}

/// One second of a load.
#[figures]
pub(crate) struct LoadSecond {
    /// Its end, s after the begin.
    pub t_s: f64,
    /// Operations per second.
    pub ops_per_s: Figure,
    /// Mean clock, MHz.
    pub mhz_mean: Figure,
    /// Lowest clock, MHz.
    pub mhz_min: Figure,
    /// CPU time the hypervisor gave to others, %.
    pub steal_pct: Figure,
    /// Time a quota held this control group back within it, s.
    pub throttled_s: Figure,
}

fn known(value: Option<f64>) -> Figure {
    Figure::known(value, "not exposed")
}

impl LoadInfo {
    /// Of what was read.
    pub(crate) fn of(reading: &LoadReading) -> Self {
        let mut seconds = Vec::with_capacity(reading.seconds.len());
        let (mut ended, mut ops) = (0, 0);
        for second in &reading.seconds {
            let length = (second.ended_ns - ended).max(1) as f64 / 1e9;
            seconds.push(LoadSecond {
                t_s: second.ended_ns as f64 / 1e9,
                ops_per_s: Figure::decimal((second.ops - ops) as f64 / length),
                mhz_mean: known(second.mhz.map(|(_, mean)| mean)),
                mhz_min: known(second.mhz.map(|(least, _)| least)),
                steal_pct: known(second.steal_pct),
                throttled_s: known(second.throttled_ns.map(|ns| ns as f64 / 1e9)),
            });
            (ended, ops) = (second.ended_ns, second.ops);
        }
        let clocks = reading.seconds.iter().filter_map(|second| second.mhz);
        let means: Vec<f64> = clocks.clone().map(|(_, mean)| mean).collect();
        let cpu_s = (reading.user_ns + reading.system_ns) as f64 / 1e9;
        let real_s = reading.real_ns as f64 / 1e9;
        Self {
            pid: std::process::id(),
            workers_count: reading.workers,
            ops_count: reading.ops,
            real_s,
            user_s: reading.user_ns as f64 / 1e9,
            system_s: reading.system_ns as f64 / 1e9,
            cpus_busy: Figure::decimal(cpu_s).per(real_s, "no time passed"),
            mhz_min: known(clocks.map(|(least, _)| least).reduce(f64::min)),
            mhz_mean: known((!means.is_empty()).then(|| mean(&means))),
            seconds,
        }
    }
}
