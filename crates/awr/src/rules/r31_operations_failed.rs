//! R31: operations failed.

use super::*;

pub(super) const RULE: Rule = Rule {
    id: "R31",
    title: "Operations failed",
    changes_figures: true,
    fires_when: || {
        "A session counted a failed operation during the run, before or after the window included; always high"
            .to_owned()
    },
    why: "The figures are of the operations that did not fail.",
    what_to_do: "Read the classes of errors under Driver Statistics, remove their cause and repeat the run.",
    cannot_judge_when: "Never: every run counts its errors.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let failed = record.driver.errors_whole_run_count;
    if failed == 0 {
        return Ok(None);
    }
    let text = format!(
        "{} operations failed: throughput does not include them, and latency may include the short path of an error.",
        thousands(failed)
    );
    Ok(Some(RULE.advise(true, text, &[("failed_ops_count", failed as f64)])))
}
