//! Who else used the host while something was measured: what other processes took, what a quota withheld.

use crate::host::CpuTimes;
use assay_measure::clock::Ns;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Record};
use assay_measure::section::{number, number_or_reason};
use assay_measure::snapshot::{HostReading, RunData, Snapshot};
use assay_run::host::Sampler;
use std::time::Instant;

pub(crate) const NOT_EXPOSED: &str = "not exposed";
/// Less CPU time than this share of their windows: the host was not ours, %.
pub(crate) const OURS_PCT: f64 = 99.0;

/// The host as it was when a measurement began.
pub(crate) struct Around {
    sampler: Sampler,
    before: HostReading,
    cpus: Option<CpuTimes>,
    begun: Instant,
}

/// The host before and after a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HostWindow {
    pub(crate) before: HostReading,
    pub(crate) after: HostReading,
    /// CPU time the hypervisor gave to others, %.
    pub(crate) steal_pct: Option<f64>,
    pub(crate) elapsed_ns: Ns,
}

impl Around {
    pub(crate) fn begin() -> Self {
        let mut sampler = Sampler::new(Vec::new());
        Self { before: sampler.sample(), sampler, cpus: CpuTimes::read(), begun: Instant::now() }
    }

    pub(crate) fn end(mut self) -> HostWindow {
        HostWindow {
            elapsed_ns: self.begun.elapsed().as_nanos() as Ns,
            steal_pct: self.cpus.zip(CpuTimes::read()).and_then(|(before, after)| after.steal_pct(&before)),
            before: self.before,
            after: self.sampler.sample(),
        }
    }
}

/// The record of a run that took so long, without figures.
pub(crate) fn labelled(run: &RunData, elapsed_ns: Ns) -> Record {
    let mut record = Record::labelled(run);
    record.interval.elapsed_s = Figure::decimal(elapsed_ns as f64 / 1e9);
    record.interval.whole_run_s.clone_from(&record.interval.elapsed_s);
    record
}

impl HostWindow {
    /// The record of a run within this window, with what the host did meanwhile.
    pub(crate) fn record(&self, mut run: RunData) -> Record {
        run.begin.host.clone_from(&self.before);
        run.end = Snapshot { at_ns: self.elapsed_ns, host: self.after.clone(), ..Snapshot::default() };
        let os = assay_awr::record::os(&run);
        Record { os, ..labelled(&run, self.elapsed_ns) }
    }
}

/// Who else used the host while it was measured.
#[figures(group = Host)]
pub(crate) struct Conditions {
    /// CPU time the hypervisor gave to others, %.
    #[metric("CPU time given to other guests", Lower)]
    pub steal_pct: Figure,
    /// CPU time our threads were given, of their windows, %.
    #[metric("CPU time given to the threads of assay")]
    pub given_pct: Figure,
    /// Time in which they could run but had no CPU, of their windows, %.
    pub run_delay_pct: Figure,
    /// Time a quota held this control group back, s.
    #[metric("time throttled by a quota", Lower)]
    pub throttled_s: Figure,
    /// Share of the time in which some task waited for a CPU, %.
    pub cpu_pressure_pct: Figure,
    /// Switches of context on the whole host, 1/s.
    pub context_switches_per_s: Figure,
}

impl Conditions {
    /// Of a window, with what the threads themselves were given of their windows.
    pub(crate) fn of(host: &HostWindow, given_pct: Figure, run_delay_pct: Figure) -> Self {
        let seconds = host.elapsed_ns as f64 / 1e9;
        let known = |value: Option<f64>| Figure::known(value, NOT_EXPOSED);
        let risen = |get: fn(&HostReading) -> Option<u64>| {
            let both = get(&host.before).zip(get(&host.after));
            known(both.map(|(before, after)| after.saturating_sub(before) as f64))
        };
        Self {
            steal_pct: known(host.steal_pct),
            given_pct,
            run_delay_pct,
            throttled_s: risen(|host| host.cgroup_throttled_ns).scaled(1e-9),
            cpu_pressure_pct: risen(|host| host.psi_ns.get("cpu_some").copied())
                .scaled(1e-7)
                .per(seconds, "no time passed"),
            context_switches_per_s: risen(|host| host.context_switches).per(seconds, "no time passed"),
        }
    }

    /// Names and values for people.
    pub(crate) fn shown(&self) -> Vec<(&'static str, String)> {
        let told = |figure: &Figure, decimals, unit: &str| match figure.value() {
            Some(_) => format!("{} {unit}", number(figure, decimals)),
            None => number_or_reason(figure, decimals),
        };
        vec![
            ("CPU time given to the threads of assay", told(&self.given_pct, 1, "%")),
            ("Steal", told(&self.steal_pct, 2, "%")),
            ("Run delay", told(&self.run_delay_pct, 1, "% of the windows")),
            ("Throttled by a quota", told(&self.throttled_s, 2, "s")),
            ("CPU pressure (some task waited)", told(&self.cpu_pressure_pct, 1, "%")),
            ("Context switches", told(&self.context_switches_per_s, 0, "1/s")),
        ]
    }
}
