//! What may change what the figures of a network mean.

use super::info::NetworkInfo;
use assay_measure::cpu;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::Rule;
use assay_measure::units::fixed;

/// What judges by a rule.
type Judge = fn(&Record, &NetworkInfo) -> Option<Advice>;

/// The rules with what judges them, in the order in which findings are read.
const RULES: &[(Rule, Judge)] = &[
    (ONE_HOST, one_host),
    (SHORT, short),
    (CONGESTION_DIFFERS, congestion_differs),
    (STOLEN, stolen),
    (DISTURBED, disturbed),
];

/// The rules of a network.
pub(super) fn rules() -> Vec<Rule> {
    RULES.iter().map(|(rule, _)| *rule).collect()
}

/// All findings, in the order they are read.
pub(super) fn advise(record: &Record, info: &NetworkInfo) -> Vec<Advice> {
    RULES.iter().filter_map(|(_, judge)| judge(record, info)).collect()
}

const ONE_HOST: Rule = Rule {
    id: "N1",
    title: "Both ends are this host",
    changes_figures: true,
    fires_when: || {
        "The address of the other end is on loopback, or the one that the test sends from; always high".to_owned()
    },
    why: "The packets never left the host, and both ends share its CPUs: the kernel's copies are measured, not a network.",
    what_to_do: "Run the server on another host.",
    cannot_judge_when: "The other end is this host by another of its addresses: then the rule is silent.",
    source: "Decided here.",
};

fn one_host(_: &Record, info: &NetworkInfo) -> Option<Advice> {
    info.is_loopback.then(|| {
        let text = "Both ends are this host: the packets never left it, and both ends share its CPUs. This measures the \
                    kernel's copies, not a network.";
        ONE_HOST.finding(true, text.to_owned(), &[])
    })
}

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
        let text = format!(
            "The test was shorter than {BURST_S} s: a burst that a platform grants for some seconds would not show. Run 60 s \
             or more before you quote a rate."
        );
        SHORT.finding(false, text, &[("elapsed_s", info.elapsed_s)])
    })
}

const CONGESTION_DIFFERS: Rule = Rule {
    id: "N3",
    title: "The hosts differ in congestion control",
    changes_figures: true,
    fires_when: || "The two ends use different congestion control".to_owned(),
    why: "Under loss the two ways are not alike.",
    what_to_do: "Name one with --congestion.",
    cannot_judge_when: "An end did not tell its own: then the rule is silent.",
    source: "Decided here.",
};

fn congestion_differs(_: &Record, info: &NetworkInfo) -> Option<Advice> {
    let (local, remote) = (&info.congestion_local, &info.congestion_remote);
    (!local.is_empty() && !remote.is_empty() && local != remote).then(|| {
        let text = format!(
            "The hosts differ in congestion control, {local} here and {remote} there: under loss the two directions behave \
              differently. Set one with --congestion."
        );
        CONGESTION_DIFFERS.finding(false, text, &[])
    })
}

const STOLEN: Rule = Rule {
    id: "N4",
    title: "A hypervisor withheld CPU time of an end",
    changes_figures: true,
    fires_when: || format!("Steal is at least {} % on one of the hosts", cpu::STEAL_PCT),
    why: "The rate may be that of the neighbours.",
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
    let text = format!("The hypervisor withheld {}: the rate may be that of the neighbours.", each.join(" and "));
    Some(STOLEN.finding(false, text, &[("steal_pct_max", most)]))
}

const DISTURBED: Rule = Rule {
    id: "N5",
    title: "Others used the CPUs of this host",
    changes_figures: true,
    fires_when: || format!("Other processes used at least {} % of the host's CPU time", cpu::OTHERS_PCT),
    why: "Others slowed this end of the test.",
    what_to_do: "Measure again on an idle host.",
    cannot_judge_when: "The CPU use of the host or of this process is n/a: then the rule is silent.",
    source: "Decided here.",
};

fn disturbed(record: &Record, _: &NetworkInfo) -> Option<Advice> {
    let others = cpu::others(cpu::shares(record)?)?;
    Some(DISTURBED.finding(false, format!("During the measurement {others}."), &[]))
}
