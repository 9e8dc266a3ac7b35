//! R32: the cache hit another share than its size predicts.

use super::*;

pub(super) const RULE: Rule = Rule {
    id: "R32",
    title: "The cache hit another share than its size predicts",
    changes_figures: true,
    fires_when: || {
        format!(
            "Buffer Hit and the share that cache size and active blocks predict differ by more than {HIT_POINTS} points; high from twice that"
        )
    },
    why: "The run did not read from its data as its settings say.",
    what_to_do: "Use a longer WARMUP, or check SCALE, the hot spot and scans.",
    cannot_judge_when: "Never: without both figures the rule is silent.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let checks = &record.checks;
    let (Some(expected), Some(measured)) = (checks.hit_expected_pct.value(), checks.hit_measured_pct.value()) else {
        return Ok(None);
    };
    let apart = (expected - measured).abs();
    if apart <= HIT_POINTS {
        return Ok(None);
    }
    let cause = if measured > expected {
        "block accesses are less even than the formula assumes (hot spot, hot schema, scans), or SCALE differs from \
         what was loaded"
    } else {
        "the cache was not full when the window began (use a longer WARMUP), or scans displaced blocks"
    };
    let text = format!(
        "Buffer hit ratio is {} % while cache size and active blocks predict {} %: {cause}. Physical reads per \
         operation do not match the stated data size.",
        fixed(measured, 1),
        fixed(expected, 1),
    );
    Ok(Some(RULE.finding(
        apart >= 2.0 * HIT_POINTS,
        text,
        &[("buffer_hit_pct", measured), ("buffer_hit_expected_pct", expected)],
    )))
}
