//! What follows from the matrix, in plain words.

use super::info::{InterferenceInfo, PairRow};
use super::matrix::NEWS_RATIO;
use super::role::{BACKUP, CHECKPOINT, LOG, READS, ROLES, SCAN};
use assay_measure::facts::KERNEL;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::statistics::ALPHA;
use assay_measure::units::fixed;

/// So many times as slow, commits or point reads make a finding high. Decided here: users feel a doubled wait.
const HIGH_RATIO: f64 = 2.0;
/// Pairs that a finding names beside the worst.
const NAMED: usize = 3;

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<InterferenceInfo> = &[(NO_DEVICE, no_device), (SLOWED, slowed)];

const NO_DEVICE: Rule = Rule {
    id: "IF2",
    title: "The roles did not reach a device",
    changes_figures: true,
    fires_when: || "A file lies in memory (tmpfs), or the file system refuses direct I/O; always high".to_owned(),
    why: "What roles do to each other in memory says nothing about a device.",
    what_to_do: "Name a directory on a device that takes direct I/O.",
    cannot_judge_when: "Never: the file system and the open call tell.",
    source: "Decided here.",
};

fn no_device(_: &Record, info: &InterferenceInfo) -> Option<Advice> {
    let text = format!("The files in {} were read from memory.", info.directory);
    (info.is_memory || !info.is_direct).then(|| NO_DEVICE.explain(true, text, &[]))
}

const SLOWED: Rule = Rule {
    id: "IF1",
    title: "Work beside it slows a role",
    changes_figures: false,
    fires_when: || {
        format!(
            "The 99th percentile of a role beside another is {NEWS_RATIO} times that alone or more (the 90th, where too few operations are \
             beyond the 99th), or its rate is smaller by that factor; and it is told apart from noise with {} % error over all 20 ordered \
             pairs together; high where commits or point reads are {HIGH_RATIO} times as slow or more",
            fixed(100.0 * ALPHA, 0)
        )
    },
    why: "Sessions wait longer while the other work runs.",
    what_to_do: "Limit the rate of the other work, or give it a device of its own; the finding says what fits the pair.",
    cannot_judge_when: "Fewer than four rounds: the pair has no verdict. With few rounds a small difference is not told apart from noise.",
    source: "Decided here; Holm, Scand. J. Stat. 6, 1979.",
};

fn slowed(record: &Record, info: &InterferenceInfo) -> Option<Advice> {
    let slower = info.slower();
    let worst = slower.first()?;
    let named: Vec<String> = slower.iter().skip(1).take(NAMED).map(|pair| pair.told()).collect();
    let more = match slower.len().saturating_sub(NAMED + 1) {
        0 => String::new(),
        more => format!("; {more} more in the matrix"),
    };
    let also = if named.is_empty() { String::new() } else { format!(" Also: {}{more}.", named.join("; ")) };
    let text = format!("{}. {}{also}", worst.told(), remedy(record, worst));
    let is_high = |pair: &&PairRow| pair.is_waited_for() && pair.slowdown() >= Some(HIGH_RATIO);
    let evidence = [("slowdown_ratio", worst.slowdown().unwrap_or(f64::NAN))];
    Some(SLOWED.finding(slower.iter().any(is_high), text, &evidence))
}

/// What helps this pair, of what this system has.
fn remedy(record: &Record, pair: &PairRow) -> String {
    let is = |name: &str, role: usize| name == ROLES[role].name;
    let log_apart = if is(&pair.role, LOG) { " Or put the log on a device of its own." } else { "" };
    let scheduler = device(record, "scheduler").unwrap_or_default();
    let beside = pair.beside.as_str();
    if is(beside, BACKUP) {
        let group =
            device(record, RATE_LIMIT).map_or_else(String::new, |limit| format!(", or {limit} of its control group"));
        let priority = if honours_priority(record, scheduler) {
            format!(" Or run it with `ionice -c 3`, which {scheduler} honours.")
        } else {
            String::new()
        };
        format!("Limit the backup's rate (its own option{group}), or take it from a standby.{priority}{log_apart}")
    } else if is(beside, SCAN) {
        let reads_first = match scheduler {
            "mq-deadline" if !is(&pair.role, READS) => {
                " The scheduler mq-deadline prefers reads to writes: compare with none."
            }
            _ => "",
        };
        format!("Run large scans at another time or on a standby.{reads_first}{log_apart}")
    } else if is(beside, CHECKPOINT) {
        format!(
            "Spread the checkpoint's writes over more time (checkpoint_completion_target, innodb_io_capacity, \
             FAST_START_MTTR_TARGET).{log_apart}"
        )
    } else if is(beside, LOG) {
        "Put the log on a device of its own, or let more commits share a sync.".to_owned()
    } else {
        format!("Cache more, so that fewer reads reach the storage, or use a faster device.{log_apart}")
    }
}

/// Which setting of a control group limits the rate of I/O here; among the device's facts.
pub(super) const RATE_LIMIT: &str = "cgroup_rate_limit";

/// A fact of the device.
fn device<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    record.plan.engine_facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
}

/// Whether an I/O scheduler honours `ionice`: BFQ does, mq-deadline since Linux 5.14.
fn honours_priority(record: &Record, scheduler: &str) -> bool {
    let kernel = KERNEL.find(&record.host.facts).unwrap_or_default();
    let mut version = kernel.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (version.next().unwrap_or(0), version.next().unwrap_or(0));
    scheduler == "bfq" || scheduler == "mq-deadline" && version >= (5, 14)
}
