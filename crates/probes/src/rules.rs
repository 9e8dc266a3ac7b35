//! Rules that several probes have: each probe gives its number and what the condition does to its figures.

use assay_measure::cpu;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::Rule;

pub(crate) const fn of_the_build(id: &'static str, why: &'static str) -> Rule {
    Rule {
        id,
        title: "The build is not optimised",
        changes_figures: true,
        fires_when: || "assay was built without optimisation; always high".to_owned(),
        why,
        what_to_do: "Use a release build (cargo build --release).",
        cannot_judge_when: "Never: the build is known.",
        source: "Decided here.",
    }
}

pub(crate) fn not_optimised(rule: &Rule, is_optimised: bool) -> Option<Advice> {
    (!is_optimised).then(|| rule.explain(true, "This assay was built without optimisation.", &[]))
}

pub(crate) const fn of_pinning(id: &'static str) -> Rule {
    Rule {
        id,
        title: "Threads were not kept on their CPUs",
        changes_figures: true,
        fires_when: || {
            "The kernel refused to keep a thread on its CPU in a measurement (the threads of a load may move)"
                .to_owned()
        },
        why: "A figure for one CPU may come from several.",
        what_to_do: "Run without a cpuset or policy that forbids it.",
        cannot_judge_when: "Never: the call tells.",
        source: "Decided here.",
    }
}

pub(crate) fn not_pinned(rule: &Rule, is_pinned: bool) -> Option<Advice> {
    (!is_pinned).then(|| rule.explain(false, "assay could not keep threads on their CPUs.", &[]))
}

pub(crate) const fn of_one_host(id: &'static str, why: &'static str) -> Rule {
    Rule {
        id,
        title: "The other end is this host",
        changes_figures: true,
        fires_when: || {
            "The address of the other end is on loopback, or the one that this host sends from; always high".to_owned()
        },
        why,
        what_to_do: "Test against another host.",
        cannot_judge_when: "The other end is this host by another of its addresses: then the rule is silent.",
        source: "Decided here.",
    }
}

pub(crate) fn one_host(rule: &Rule, is_loopback: bool) -> Option<Advice> {
    is_loopback.then(|| rule.explain(true, "The other end is this host.", &[]))
}

pub(crate) const fn of_other_load(id: &'static str, fires_when: fn() -> String, why: &'static str) -> Rule {
    Rule {
        id,
        title: "Others used the CPUs of this host",
        changes_figures: true,
        fires_when,
        why,
        what_to_do: "Measure again on an idle host, or with dedicated CPUs where the hypervisor withheld them.",
        cannot_judge_when: "The CPU use of the host or of this process is n/a: then the rule is silent.",
        source: "Decided here.",
    }
}

pub(crate) fn disturbed(rule: &Rule, record: &Record) -> Option<Advice> {
    Some(rule.explain(false, format!("During the measurement {}.", cpu::disturbed(record)?), &[]))
}
