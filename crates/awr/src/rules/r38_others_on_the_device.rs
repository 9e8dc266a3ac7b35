//! R38: other processes used the devices.

use super::*;

/// What the devices may read for one byte that the run asked for.
const MOST: f64 = 1.2;

pub(super) const RULE: Rule = Rule {
    id: "R38",
    title: "Other processes used the devices",
    changes_figures: true,
    fires_when: || {
        format!(
            "The devices under the data read more than {MOST} times what this run asked the kernel for, of more than {}; high from twice that",
            size(SOME_BYTES as u64)
        )
    },
    why: "The device was shared.",
    what_to_do: "Repeat the run on idle devices.",
    cannot_judge_when: "Never: without both figures the rule is silent.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let checks = &record.checks;
    let (Some(process), Some(device)) = (checks.process_read_bytes.value(), checks.device_read_bytes.value()) else {
        return Ok(None);
    };
    if process <= SOME_BYTES || device <= MOST * process {
        return Ok(None);
    }
    let whose = if has_processes(record) { "the server's processes" } else { "this process" };
    let text = format!(
        "The devices under the data read {} while {whose} asked for {}: other processes used the devices. Latency \
         includes this load.",
        size(device as u64),
        size(process as u64)
    );
    fired(&RULE, device, MOST * process, text, &[("device_read_bytes", device), ("process_read_bytes", process)])
}
