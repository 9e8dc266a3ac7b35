//! R19: checkpoints cause the writes.

use super::*;

const THRESHOLD: f64 = 60.0;

pub(super) const RULE: Rule = Rule {
    id: "R19",
    title: "Checkpoints cause the writes",
    changes_figures: false,
    fires_when: || {
        format!(
            "Less than {THRESHOLD} % of at least 1000 blocks were written for another reason than a checkpoint; high where checkpoints cause twice the rest of {THRESHOLD} %"
        )
    },
    why: "A block that is changed again is written again.",
    what_to_do: "Use larger log files, so that the cache absorbs repeated changes.",
    cannot_judge_when: "Physical writes, those without a checkpoint, or an import's log switches are n/a; where sessions only read, or an import has no switch, the rule is silent.",
    source: "Published load tests of the method: 56 %.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let writes = stat(record, "physical_writes_blocks")?;
    if writes < 1000.0 || only_reads(record) {
        return Ok(None);
    }
    let pct = 100.0 * stat(record, "physical_writes_non_checkpoint_blocks")? / writes;
    if pct >= THRESHOLD {
        return Ok(None);
    }
    // Only a switch ties the checkpoints of an import to the size of its logs; our engine's follow it by design.
    if record.import.is_some() && stat(record, "redo_log_switches_count")? < 1.0 {
        return Ok(None);
    }
    let driven = 100.0 - pct;
    let log = match setting(record, "REDO_LOG_MB") {
        Some(mb) => format!(" (REDO_LOG_MB {mb}, a checkpoint within 90 % of one log)"),
        None => String::new(),
    };
    let text = format!(
        "Checkpoints cause {} % of the writes: the log file size limits how long a block can stay dirty{log}.",
        fixed(driven, 1)
    );
    let evidence = [("checkpoint_writes_pct", driven)];
    fired(&RULE, driven, 100.0 - THRESHOLD, text, &evidence)
}
