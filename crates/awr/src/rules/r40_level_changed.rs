//! R40: throughput changed its level.

use super::*;
use assay_measure::level_change::LevelChange;
use assay_measure::units::short;

/// A change of so much of the level before it is no detail.
const HIGH_RATIO: f64 = 0.2;

pub(super) const RULE: Rule = Rule {
    id: "R40",
    title: "Throughput changed its level",
    changes_figures: true,
    fires_when: || {
        format!(
            "The search for change points finds one in the throughput per second; high from {} % on",
            100.0 * HIGH_RATIO
        )
    },
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
    let evidence = [("change_points_count", points.len() as f64), ("first_change_s", *first)];
    let Some(change) = LevelChange::of(record) else {
        return Ok(None);
    };
    let all = if points.len() == 1 { String::new() } else { format!(" (the largest of {} changes)", points.len()) };
    let text = format!(
        "Throughput {}{all}, from {} to {} operations/s: the window mixes different states of the platform.",
        change.moved(),
        short(change.before_per_s),
        short(change.after_per_s)
    );
    let is_high = (change.after_per_s / change.before_per_s - 1.0).abs() >= HIGH_RATIO;
    Ok(Some(RULE.advise(is_high, text, &evidence)))
}
