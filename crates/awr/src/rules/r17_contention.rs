//! R17: sessions contend.

use super::*;

const THRESHOLD: f64 = 5.0;

pub(super) const RULE: Rule = Rule {
    id: "R17",
    title: "Sessions contend",
    changes_figures: false,
    fires_when: || {
        format!(
            "Waits for other sessions (reads of theirs, busy buffers, locks, latches) take at least {THRESHOLD} % of DB time; high from twice that"
        )
    },
    why: "Sessions wait for each other, not for the storage.",
    what_to_do: "Look at which waits they are; for a test of I/O alone use one session per schema.",
    cannot_judge_when: "DB time is n/a.",
    source: "Published notes on threads per schema.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let pct = share(record, is_lock)?;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let text = format!("Sessions contend: {} % of DB time waits for another session.", fixed(pct, 1));
    fired(&RULE, pct, THRESHOLD, text, &[("other_session_waits_pct", pct)])
}
