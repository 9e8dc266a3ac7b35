//! R5: free buffer waits end with a timer.

use super::*;

const THRESHOLD: f64 = 80.0;
/// The bucket of 8 to 16 ms.
const TIMER: usize = 14;

pub(super) const RULE: Rule = Rule {
    id: "R5",
    title: "Free buffer waits end with a timer",
    changes_figures: false,
    fires_when: || format!("At least {THRESHOLD} % of ten or more free buffer waits last 8 to 16 ms"),
    why: "Sessions look again after that time, whatever the writers did.",
    what_to_do: "Use the count and the share of these waits, not their average.",
    cannot_judge_when: "The number of free buffer waits is n/a.",
    source: "Published load tests of the method: 90.3 %.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let Some(waits) = named(record, "free buffer waits", "foreground") else {
        return Ok(None);
    };
    let count = need(&waits.count, "free buffer waits")?;
    let Some(timer) = waits.hist_us.get(TIMER).filter(|_| count >= 10.0) else {
        return Ok(None);
    };
    let pct = 100.0 * *timer as f64 / count;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let text =
        format!("{} % of free buffer waits last 8 to 16 ms: this is the re-check timer, not a latency.", fixed(pct, 1));
    Ok(Some(RULE.advise(false, text, &[("timer_bucket_pct", pct)])))
}
