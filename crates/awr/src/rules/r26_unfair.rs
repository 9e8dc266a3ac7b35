//! R26: the target did not serve all sessions alike.

use super::*;

const THRESHOLD: f64 = 0.7;

pub(super) const RULE: Rule = Rule {
    id: "R26",
    title: "The target did not serve all sessions alike",
    changes_figures: true,
    fires_when: || {
        format!(
            "The slowest session did less than {THRESHOLD} of the operations of the median session; high from half of that down"
        )
    },
    why: "Means over sessions hide this.",
    what_to_do: "Look for unfair scheduling, a hot schema or uneven data.",
    cannot_judge_when: "Operations per session are n/a.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let spread = &record.driver.session_spread;
    let slowest = need(&spread.min_count, "operations per session")?;
    let median = need(&spread.median_count, "operations per session")?;
    if median <= 0.0 || slowest >= THRESHOLD * median {
        return Ok(None);
    }
    let ratio = slowest / median;
    let text = format!(
        "The target did not serve all sessions alike: the slowest did {} operations, the median session {} ({} %).",
        fixed(slowest, 0),
        fixed(median, 0),
        fixed(100.0 * ratio, 0)
    );
    let evidence = [("slowest_over_median_ratio", ratio), ("slowest_ops_count", slowest), ("median_ops_count", median)];
    Ok(Some(RULE.advise(ratio <= THRESHOLD / 2.0, text, &evidence)))
}
