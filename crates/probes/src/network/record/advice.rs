//! What may change what the figures of a network mean.

use super::info::NetworkInfo;
use crate::rules;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::fixed;
use assay_measure::{cap, cpu};

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<NetworkInfo> = &[
    (ONE_HOST, |_, info| rules::one_host(&ONE_HOST, info.is_loopback)),
    (SHORT, short),
    (CONGESTION_DIFFERS, congestion_differs),
    (STOLEN, stolen),
    (DISTURBED, disturbed),
    (cap::RULE, |record, _| cap::judge(record)),
];

const ONE_HOST: Rule = rules::of_one_host(
    "N1",
    "The packets never left the host, and both ends share its CPUs: the kernel's copies are measured, not a network.",
);

/// What a platform may grant for so long is no rate of it, s.
const BURST_S: f64 = 5.0;

const SHORT: Rule = Rule {
    id: "N2",
    title: "The test was short",
    changes_figures: true,
    fires_when: || format!("A test by time ran for less than {BURST_S} s"),
    why: "A burst that a platform grants for some seconds would not show.",
    what_to_do: "Run 60 s or more before you quote a rate.",
    cannot_judge_when: "Never: the length is known.",
    source: "Decided here.",
};

fn short(_: &Record, info: &NetworkInfo) -> Option<Advice> {
    (info.elapsed_s < BURST_S && info.time_s > 0).then(|| {
        let text = format!("The test was shorter than {BURST_S} s.");
        SHORT.explain(false, text, &[("elapsed_s", info.elapsed_s)])
    })
}

const CONGESTION_DIFFERS: Rule = Rule {
    id: "N3",
    title: "The hosts differ in congestion control",
    changes_figures: true,
    fires_when: || "The two ends use different congestion control".to_owned(),
    why: "Under loss the two directions behave differently.",
    what_to_do: "Set one for both with --congestion.",
    cannot_judge_when: "An end did not tell its own: then the rule is silent.",
    source: "Decided here.",
};

fn congestion_differs(_: &Record, info: &NetworkInfo) -> Option<Advice> {
    let (local, remote) = (&info.congestion_local, &info.congestion_remote);
    (!local.is_empty() && !remote.is_empty() && local != remote).then(|| {
        let text = format!("The hosts differ in congestion control: {local} here, {remote} there.");
        CONGESTION_DIFFERS.explain(false, text, &[])
    })
}

const STOLEN: Rule = Rule {
    id: "N4",
    title: "A hypervisor withheld CPU time of an end",
    changes_figures: true,
    fires_when: || format!("Steal is at least {} % on one of the hosts", cpu::STEAL_PCT),
    why: "The rate may show the load of the neighbours, not the network.",
    what_to_do: "Repeat the test at another time, or with dedicated CPUs.",
    cannot_judge_when: "The other end is not an assay, or a kernel exposes no steal: then the rule is silent about it.",
    source: "Decided here.",
};

fn stolen(_: &Record, info: &NetworkInfo) -> Option<Advice> {
    let ends = [(&info.native_local, "this host"), (&info.native_remote, "the other host")];
    let steal = ends.into_iter().filter_map(|(end, host)| Some((end.as_ref()?.steal_pct?, host)));
    let stolen: Vec<(f64, &str)> = steal.filter(|(pct, _)| *pct >= cpu::STEAL_PCT).collect();
    let most = stolen.iter().map(|(pct, _)| *pct).reduce(f64::max)?;
    let each: Vec<String> =
        stolen.iter().map(|(pct, host)| format!("{} % of the CPU time of {host}", fixed(*pct, 1))).collect();
    let text = format!("The hypervisor withheld {}.", each.join(" and "));
    Some(STOLEN.explain(false, text, &[("steal_pct_max", most)]))
}

/// Steal has a rule of its own, about both ends.
const DISTURBED: Rule = rules::of_other_load(
    "N5",
    || format!("Other processes used at least {} % of the host's CPU time", cpu::OTHERS_PCT),
    "Their load slowed this end of the test.",
);

fn disturbed(record: &Record, _: &NetworkInfo) -> Option<Advice> {
    let others = cpu::others(cpu::shares(record)?)?;
    Some(DISTURBED.explain(false, format!("During the measurement {others}."), &[]))
}
