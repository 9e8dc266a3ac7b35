//! What follows for a database, in plain words.

use crate::facts;
use crate::info::{NeedRow, PlatformInfo};
use crate::needs::{FAIL, WARN};
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::fixed;

pub(crate) const RULES: &Judges<PlatformInfo> =
    &[(BUSY, busy), (FAILS, fails), (WARNS, warns), (FACTS, found), (SLOW_CLOCK, slow_clock)];

/// How busy a host may be before the first test, %. Decided here: a tenth of the CPUs moves a p99.
pub const MOST_BUSY_PCT: f64 = 10.0;

pub(crate) const BUSY: Rule = Rule {
    id: "B4",
    title: "Other processes kept the host busy",
    changes_figures: true,
    fires_when: || format!("Before the first test the CPUs were more than {MOST_BUSY_PCT} % busy; always high"),
    why: "The tests share the CPUs with them: the figures are of what they leave.",
    what_to_do: "Measure again when the host is quiet.",
    cannot_judge_when: "The kernel does not tell CPU times: then the rule is silent.",
    source: "Decided here.",
};

fn busy(_: &Record, info: &PlatformInfo) -> Option<Advice> {
    let pct = info.busy_before_pct.value().filter(|pct| *pct > MOST_BUSY_PCT)?;
    let text = format!(
        "Before the first test other processes kept the CPUs {} % busy: the figures are of what they leave.",
        fixed(pct, 0)
    );
    Some(BUSY.advise(true, text, &[("busy_before_pct", pct)]))
}

const FAILS: Rule = Rule {
    id: "B1",
    title: "The box does not have what a database needs",
    changes_figures: false,
    fires_when: || "A need is beyond its failing limit; always high".to_owned(),
    why: "A database on it will wait there first.",
    what_to_do: "Read the test of the row, whose report says what limits it; where your database needs less, say so in --goals.",
    cannot_judge_when: "A test has no result: its rows say so.",
    source: "Each limit names its own.",
};

const WARNS: Rule = Rule {
    id: "B2",
    title: "The box is short of what a database needs",
    changes_figures: false,
    fires_when: || "A need is beyond its warning limit and not beyond the failing one".to_owned(),
    why: "A busy database may wait there.",
    what_to_do: "Read the test of the row; where your database needs less, say so in --goals.",
    cannot_judge_when: "A test has no result: its rows say so.",
    source: "Each limit names its own.",
};

const FACTS: Rule = Rule {
    id: "B3",
    title: "A setting of the box is not what a database wants",
    changes_figures: false,
    fires_when: || "A fact is a finding".to_owned(),
    why: "The kernel's setting costs a database time, memory or safety.",
    what_to_do: "Each finding says it. assay changes no setting.",
    cannot_judge_when: "The kernel does not tell a fact: its row says why.",
    source: "Each fact names its own.",
};

fn beyond(info: &PlatformInfo, verdict: &str) -> Vec<String> {
    info.needs.iter().filter(|row| row.verdict == verdict).map(NeedRow::told).collect()
}

fn fails(_: &Record, info: &PlatformInfo) -> Option<Advice> {
    let rows = beyond(info, FAIL);
    (!rows.is_empty())
        .then(|| FAILS.advise(true, format!("{}.", rows.join("; ")), &[("needs_failed_count", rows.len() as f64)]))
}

fn warns(_: &Record, info: &PlatformInfo) -> Option<Advice> {
    let rows = beyond(info, WARN);
    (!rows.is_empty())
        .then(|| WARNS.advise(false, format!("{}.", rows.join("; ")), &[("needs_warned_count", rows.len() as f64)]))
}

fn found(_: &Record, info: &PlatformInfo) -> Option<Advice> {
    let rows: Vec<String> = info
        .facts
        .iter()
        .filter(|row| row.verdict == facts::FINDING)
        .map(|row| format!("{}: {}; {}", row.fact, row.value, row.advice))
        .collect();
    (!rows.is_empty())
        .then(|| FACTS.advise(false, format!("{}.", rows.join(". ")), &[("facts_found_count", rows.len() as f64)]))
}

/// The CPUs run at less than this part of what the kernel claims. Decided here: sbc-bench's users met 73 %.
const CLOCK_RATIO: f64 = 0.8;

const SLOW_CLOCK: Rule = Rule {
    id: "B8",
    title: "The CPUs run slower than they claim",
    changes_figures: false,
    fires_when: || format!("The measured clock is below {} % of the claimed one", fixed(100.0 * CLOCK_RATIO, 0)),
    why: "Heat, a power limit or a hypervisor that gives less holds the CPUs back.",
    what_to_do: "Look at the governor, the temperature and the steal time; measure again when nothing else runs.",
    cannot_judge_when: "The kernel claims no clock, or it was not measured: then the rule is silent.",
    source: "Decided here.",
};

fn slow_clock(_: &Record, info: &PlatformInfo) -> Option<Advice> {
    let (measured, claimed) = info.measured_mhz.value().zip(info.claimed_mhz.value())?;
    let text = || format!("The CPUs run at {} MHz; the kernel claims {} MHz.", fixed(measured, 0), fixed(claimed, 0));
    let evidence = [("measured_mhz", measured), ("claimed_mhz", claimed)];
    (measured < CLOCK_RATIO * claimed).then(|| SLOW_CLOCK.advise(false, text(), &evidence))
}
