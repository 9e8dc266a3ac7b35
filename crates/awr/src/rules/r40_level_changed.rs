//! R40: throughput changed its level.

use super::*;

pub(super) const RULE: Rule = Rule {
    id: "R40",
    title: "Throughput changed its level",
    changes_figures: true,
    fires_when: || "The search for change points finds one in the throughput per second".to_owned(),
    why: "Its mean may be that of no second.",
    what_to_do: "Read the levels in the per-second section, and quote the one that lasts.",
    cannot_judge_when: "Never: without a series the rule is silent.",
    source: "The change-point search of docs/design/series.md.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let points = &record.checks.steadiness.change_points_s;
    let Some(first) = points.first() else {
        return Ok(None);
    };
    let text = format!(
        "Throughput changed its level {}, first {} s after the gate: the window mixes different states of the \
         platform.",
        many(points.len() as u64, "time"),
        fixed(*first, 0)
    );
    Ok(Some(RULE.advise(false, text, &[("change_points_count", points.len() as f64), ("first_change_s", *first)])))
}
