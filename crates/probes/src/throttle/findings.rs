//! What follows from the fitted loads, in plain words.

use super::fit::{FALL_RATIO, SAME_RATIO, STILL_RATIO};
use super::info::{NAMED_RATIO, ThrottleInfo, ThrottleRow, UNKNOWN};
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::fixed;

/// A burst that is so many times the sustained rate is high. Decided here: a test that ends within it is wrong by that factor.
const HIGH_TIMES: f64 = 2.0;

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<ThrottleInfo> =
    &[(NO_DEVICE, no_device), (NAMED, named), (BURST, burst), (CAPPED, capped)];

const NO_DEVICE: Rule = Rule {
    id: "TH4",
    title: "The loads did not reach a device",
    changes_figures: true,
    fires_when: || "The file lies in memory (tmpfs), or the file system refuses direct I/O; always high".to_owned(),
    why: "A cap of the device cannot be seen through memory.",
    what_to_do: "Name a directory on a device that takes direct I/O.",
    cannot_judge_when: "Never: the file system and the open call tell.",
    source: "Decided here.",
};

fn no_device(_: &Record, info: &ThrottleInfo) -> Option<Advice> {
    let text = format!("The reads of {} came from memory.", info.path);
    (info.is_memory || !info.is_direct).then(|| NO_DEVICE.explain(true, text, &[]))
}

const NAMED: Rule = Rule {
    id: "TH3",
    title: "A control group caps the storage",
    changes_figures: false,
    fires_when: || {
        format!(
            "A sustained rate is within {} % of a limit that io.max or blkio.throttle sets on the device for a control group of this \
             process; always high",
            fixed(100.0 * NAMED_RATIO, 0)
        )
    },
    why: "The device may do more than that.",
    what_to_do: "Raise or remove the limit of the group, or state it beside every figure.",
    cannot_judge_when: "The control groups cannot be read, or the file lies on no block device of its own: then the rule is silent.",
    source: "The kernel's documentation of control groups.",
};

fn named(_: &Record, info: &ThrottleInfo) -> Option<Advice> {
    let capped: Vec<&ThrottleRow> = info.loads.iter().filter(|row| row.is_named()).collect();
    let first = capped.first()?;
    let told = |row: &&ThrottleRow| format!("{} ({})", row.sustained(), row.by);
    let text = format!("A control group caps the storage: {}.", list(&capped, told));
    Some(NAMED.explain(true, text, &[("sustained_per_s", value(&first.sustained_per_s))]))
}

const BURST: Rule = Rule {
    id: "TH2",
    title: "A burst ends",
    changes_figures: false,
    fires_when: || {
        format!(
            "A rate falls by {} % or more to a level, and the burst is back after the pause; high where the burst is {HIGH_TIMES} times the \
             level or more",
            fixed(100.0 * FALL_RATIO, 0)
        )
    },
    why: "A test that is shorter than the burst shows a rate that the storage does not keep.",
    what_to_do: "Plan with the sustained rate, and measure for longer than the burst.",
    cannot_judge_when: "The burst lasts longer than the load: then the rule is silent.",
    source: "Decided here.",
};

fn burst(_: &Record, info: &ThrottleInfo) -> Option<Advice> {
    let times = |row: &&ThrottleRow| value(&row.burst_per_s) / value(&row.sustained_per_s);
    let bursts: Vec<&ThrottleRow> = info.loads.iter().filter(|row| row.burst_per_s.value().is_some()).collect();
    let most = bursts.iter().map(times).reduce(f64::max)?;
    let told = |row: &&ThrottleRow| {
        format!(
            "{} for {} s, then {}; the bucket fills again in {} s without load",
            row.words(&row.burst_per_s),
            fixed(value(&row.burst_s), 1),
            row.sustained(),
            fixed(value(&row.refill_s), 1)
        )
    };
    let text = format!("A burst ends: {}.", list(&bursts, told));
    Some(BURST.explain(most >= HIGH_TIMES, text, &[("burst_over_sustained_ratio", most)]))
}

const CAPPED: Rule = Rule {
    id: "TH1",
    title: "A cap outside of this system",
    changes_figures: false,
    fires_when: || {
        format!(
            "A rate is that of a token bucket, or it stays within {} % of its median from second to second and within {} % of itself at four times \
             the depth, and no limit of a control group is near it",
            fixed(100.0 * STILL_RATIO, 0),
            fixed(100.0 * SAME_RATIO, 0)
        )
    },
    why: "No software on this host goes beyond it.",
    what_to_do: "Look up what the provider grants this volume and this instance: the smaller of the two is the cap.",
    cannot_judge_when: "A device that is as even as a limit cannot be told from one; a bucket that outlasts the load is not seen.",
    source: "Decided here.",
};

fn capped(_: &Record, info: &ThrottleInfo) -> Option<Advice> {
    let capped: Vec<&ThrottleRow> = info.loads.iter().filter(|row| row.is_capped() && !row.is_named()).collect();
    let first = capped.first()?;
    let told = |row: &&ThrottleRow| format!("{} ({})", row.sustained(), row.cap);
    let text = format!("Something caps the storage: {}. Who caps is {UNKNOWN}.", list(&capped, told));
    Some(CAPPED.explain(false, text, &[("sustained_per_s", value(&first.sustained_per_s))]))
}

fn list(rows: &[&ThrottleRow], told: impl Fn(&&ThrottleRow) -> String) -> String {
    rows.iter().map(told).collect::<Vec<_>>().join(", ")
}

fn value(figure: &Figure) -> f64 {
    figure.value().unwrap_or(f64::NAN)
}
