//! Whose the host was while something was measured: what others took, what a quota withheld.

use assay_measure::clock::Ns;
use assay_measure::figures::figures;
use assay_measure::record::Figure;
use assay_measure::section::{number, number_or_reason};
use assay_measure::snapshot::HostReading;

pub(crate) const NOT_EXPOSED: &str = "not exposed";

/// Whose the host was while it was measured.
#[figures(group = Host)]
pub(crate) struct Conditions {
    /// CPU time the hypervisor gave to others, %.
    #[metric("CPU time given to other guests", Lower)]
    pub steal_pct: Figure,
    /// CPU time our threads were given, of their windows, %.
    #[metric("CPU time given to the threads of assay")]
    pub given_pct: Figure,
    /// Time they could run and had no CPU, of their windows, %.
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
    /// Of two readings so far apart, with what the threads themselves were given of their windows.
    pub(crate) fn of(
        (before, after): (&HostReading, &HostReading),
        elapsed_ns: Ns,
        steal_pct: Option<f64>,
        given_pct: Figure,
        run_delay_pct: Figure,
    ) -> Self {
        let seconds = elapsed_ns as f64 / 1e9;
        let known = |value: Option<f64>| value.map_or_else(|| Figure::na(NOT_EXPOSED), Figure::decimal);
        let risen = |get: fn(&HostReading) -> Option<u64>| {
            let both = get(before).zip(get(after));
            known(both.map(|(before, after)| after.saturating_sub(before) as f64))
        };
        Self {
            steal_pct: known(steal_pct),
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
