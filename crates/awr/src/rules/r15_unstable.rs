//! R15: unstable or cache-backed storage.

use super::*;

const VARIATION: f64 = 0.3;
const TREND: f64 = 0.7;
/// A fall twice as deep.
const DEEP: f64 = 1.0 - 2.0 * (1.0 - TREND);

pub(super) const RULE: Rule = Rule {
    id: "R15",
    title: "Unstable or cache-backed storage",
    changes_figures: true,
    fires_when: || {
        format!(
            "Throughput per second varies by more than {VARIATION} of its mean, or the last quarter of the window ran at less than {TREND} of the first; high from twice that variation, or from {DEEP:.1} of the first down"
        )
    },
    why: "The mean does not describe a typical second of the run: a cache was full, or a burst credit was spent.",
    what_to_do: "Increase RUN_TIME until the rate is level, and quote the later part.",
    cannot_judge_when: "Throughput per second is n/a.",
    source: "Published load tests of the method: 0.71 of a standard disk against 0.23 of flash.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let steady = &record.checks.steadiness;
    let variation = need(&steady.variation_ratio, "throughput per second")?;
    let trend = steady.last_over_first_ratio.value();
    let falls = trend.is_some_and(|trend| trend < TREND);
    if variation <= VARIATION && !falls {
        return Ok(None);
    }
    let trend_text = trend.map_or_else(String::new, |trend| {
        format!(", the last quarter of the window ran at {} % of the first quarter", fixed(100.0 * trend, 0))
    });
    let text = format!(
        "Unstable or cache-backed storage: throughput per second varies by {} % of its mean{trend_text}.",
        fixed(100.0 * variation, 0)
    );
    let mut evidence = vec![("variation_ratio", variation)];
    evidence.extend(trend.map(|trend| ("last_over_first_ratio", trend)));
    let high = variation >= 2.0 * VARIATION || trend.is_some_and(|trend| trend <= DEEP);
    Ok(Some(RULE.advise(high, text, &evidence)))
}
