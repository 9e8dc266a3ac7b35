//! R7: log files are small for this redo rate.

use super::*;

const PER_HOUR: f64 = 4.0;

pub(super) const RULE: Rule = Rule {
    id: "R7",
    title: "Log files are small for this redo rate",
    changes_figures: false,
    fires_when: || {
        format!(
            "A session waits for an incomplete checkpoint, or a window of at least {LEAST_S} s has two or more log switches at more than {PER_HOUR} per hour; high from twice either"
        )
    },
    why: "Each switch forces a checkpoint, and sessions wait where it is not complete.",
    what_to_do: "Make each log file as large as the redo of 15 minutes.",
    cannot_judge_when: "Log switches, redo size or elapsed time is n/a, or a shorter window has such a rate. Where sessions only read the rule is silent.",
    source: "Published load tests of the method: 8 switches in 5 min.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    if only_reads(record) {
        return Ok(None);
    }
    let elapsed = elapsed(record)?;
    let switches = stat(record, "redo_log_switches_count")?;
    let incomplete = foreground(record, |event| event.name == "log file switch (checkpoint incomplete)");
    let incomplete: f64 = incomplete.filter_map(|event| event.count.value()).sum();
    let per_hour = switches * 3600.0 / elapsed;
    // One switch is no rate yet, and several of a short run are none either.
    let is_rate = elapsed >= LEAST_S;
    let fast = switches >= 2.0 && per_hour > PER_HOUR;
    let sustained = fast && is_rate;
    if incomplete == 0.0 && !sustained {
        return if fast {
            Err(Missing(format!(
                "log switches per hour: {} switches in {} s give no hourly rate, which needs 15 min",
                fixed(switches, 0),
                fixed(elapsed, 0)
            )))
        } else {
            Ok(None)
        };
    }
    let wanted = stat(record, "redo_size_bytes")? / elapsed * 900.0;
    let text = format!(
        "Log files are small for this redo rate: {} switches{}, {} wait{} for an incomplete checkpoint. \
         For four switches per hour each file should hold {}.",
        fixed(switches, 0),
        if is_rate { format!(" ({} per hour)", fixed(per_hour, 0)) } else { format!(" in {} s", fixed(elapsed, 0)) },
        fixed(incomplete, 0),
        if incomplete == 1.0 { "" } else { "s" },
        size(wanted as u64)
    );
    let mut evidence = vec![
        ("log_switches_count", switches),
        ("checkpoint_incomplete_count", incomplete),
        ("log_file_wanted_bytes", wanted),
    ];
    evidence.extend(is_rate.then_some(("log_switches_per_hour", per_hour)));
    let high = (sustained && per_hour >= 2.0 * PER_HOUR) || incomplete >= 2.0;
    Ok(Some(RULE.finding(high, text, &evidence)))
}
