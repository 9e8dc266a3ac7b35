//! R21: the host was noisy or capped.

use super::*;

const STEAL: f64 = 1.0;
const HOLE: f64 = 0.5;
/// Part of the window for which a CPU limit may stop the run before that is high.
const THROTTLED: f64 = 0.02;

pub(super) const RULE: Rule = Rule {
    id: "R21",
    title: "The host was noisy or capped",
    changes_figures: true,
    fires_when: || {
        format!(
            "The hypervisor withheld at least {STEAL} % of CPU time, a CPU limit throttled the run, or the CPU columns miss 100 % by more than {HOLE}; high from twice either, or where the limit took {THROTTLED} of the window"
        )
    },
    why: "Another guest or a limit slowed this run, so the figures show it.",
    what_to_do: "Compare this run only with runs on the same kind of host, raise the limit, or repeat it on another host.",
    cannot_judge_when: "A column of host CPU use is n/a, and none of the others fires.",
    source: "Published load tests of the method: CPU columns of 75 % in a virtual machine.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let pct = |name: &str| {
        let figure = record.os.cpu_pct.get(name).cloned().unwrap_or_default();
        need(&figure, &format!("host CPU {name}"))
    };
    let steal = pct("steal");
    let sum = || Ok(pct("user")? + pct("system")? + pct("iowait")? + pct("idle")? + pct("steal")?);
    let sum: Result<f64, Missing> = sum();
    let off = sum.as_ref().map_or(0.0, |sum| (sum - 100.0).abs());
    let throttled_s = record.os.cgroup_throttled_us.value().map(|us| us / 1e6).filter(|s| *s > 0.0);
    let (mut said, mut evidence) = (Vec::new(), Vec::new());
    if let Some(steal) = steal.as_ref().ok().filter(|steal| **steal >= STEAL) {
        said.push(format!("the hypervisor withheld {} % of CPU time (steal)", fixed(*steal, 1)));
    }
    if let Some(seconds) = throttled_s {
        said.push(format!("the CPU limit of this cgroup throttled it for {} s", fixed(seconds, 2)));
        evidence.push(("throttled_s", seconds));
    }
    if let Some(sum) = sum.as_ref().ok().filter(|_| off > HOLE) {
        said.push(format!("the CPU columns sum to {} %, so time is missing from the account", fixed(*sum, 1)));
    }
    if said.is_empty() {
        // What is known is silent; what is not may hide something.
        return sum.map(|_| None);
    }
    evidence.extend(steal.as_ref().ok().map(|steal| ("steal_pct", *steal)));
    evidence.extend(sum.ok().map(|sum| ("cpu_columns_sum_pct", sum)));
    let share = throttled_s.zip(elapsed(record).ok()).map_or(0.0, |(throttled, elapsed)| throttled / elapsed);
    let high = steal.unwrap_or(0.0) >= 2.0 * STEAL || share >= THROTTLED || off > 2.0 * HOLE;
    let text = format!("The host was noisy or capped: {}.", said.join("; "));
    Ok(Some(RULE.advise(high, text, &evidence)))
}
