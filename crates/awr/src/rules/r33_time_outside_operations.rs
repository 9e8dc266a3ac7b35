//! R33: time is lost outside operations.

use super::*;

/// Little's law must account for the sessions within this part.
const LITTLE_RATIO: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "R33",
    title: "Time is lost outside operations",
    changes_figures: true,
    fires_when: || {
        format!(
            "Little's law accounts for another number of sessions than there were, by more than {LITTLE_RATIO} of them; high from twice that"
        )
    },
    why: "Latency and rate cannot both be read as those of the platform.",
    what_to_do: "Increase WORK_UNIT, or use fewer sessions per driver thread.",
    cannot_judge_when: "Never: without operations, and under a rate, the rule is silent.",
    source: "J. D. C. Little, 1961; the threshold is decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let checks = &record.checks;
    let (Some(found), Some(there)) = (checks.little_sessions.value(), checks.little_expected_sessions.value()) else {
        return Ok(None);
    };
    let apart = (found - there).abs();
    if apart <= LITTLE_RATIO * there {
        return Ok(None);
    }
    let text = format!(
        "Little's law accounts for {} of {} sessions: operation times and throughput do not describe the same load. \
         Time is lost outside operations (driver loop, late dispatch).",
        fixed(found, 2),
        fixed(there, 0)
    );
    fired(&RULE, apart, LITTLE_RATIO * there, text, &[("little_sessions", found), ("sessions", there)])
}
