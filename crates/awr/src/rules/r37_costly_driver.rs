//! R37: the load generator takes a part of each operation.

use super::*;

const THRESHOLD: f64 = 20.0;

pub(super) const RULE: Rule = Rule {
    id: "R37",
    title: "The load generator takes a part of each operation",
    changes_figures: true,
    fires_when: || {
        format!(
            "assay itself uses at least {THRESHOLD} % of the CPU time of an operation, by the null engine; high from twice that"
        )
    },
    why: "A cheaper load generator would find other figures.",
    what_to_do: "Increase WORK_UNIT, so that an operation does more work.",
    cannot_judge_when: "Never: without the cost of the null engine the rule is silent.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let Some(pct) = record.driver.floor_pct.value().filter(|pct| *pct >= THRESHOLD) else {
        return Ok(None);
    };
    let text = format!(
        "The load generator uses {} % of the CPU time of an operation: the figures include the cost of assay itself.",
        fixed(pct, 1)
    );
    fired(&RULE, pct, THRESHOLD, text, &[("floor_pct", pct)])
}
