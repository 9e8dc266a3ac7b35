//! R21: the host was noisy or capped.

use super::*;

const STEAL: f64 = 1.0;
const HOLE: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    id: "R21",
    title: "The host was noisy or capped",
    changes_figures: true,
    fires_when: || {
        format!(
            "The hypervisor withheld at least {STEAL} % of CPU time, a CPU limit throttled the run, or the CPU columns miss 100 % by more than {HOLE}; high at twice either, or where the limit took 2 % of the window"
        )
    },
    why: "Another guest or a limit slowed this run, so the figures show it.",
    what_to_do: "Compare this run only with runs on the same kind of host, raise the limit, or repeat it on another host.",
    cannot_judge_when: "Host CPU use is n/a.",
    source: "Published load tests of the method: CPU columns of 75 % in a virtual machine.",
};

pub(super) fn judge(record: &Record) -> Judged {
    let pct = |name: &str| {
        let figure = record.os.cpu_pct.get(name).cloned().unwrap_or_default();
        need(&figure, &format!("host CPU {name}"))
    };
    let steal = pct("steal")?;
    let sum = pct("user")? + pct("system")? + pct("iowait")? + pct("idle")? + steal;
    let throttled = record.os.cgroup_throttled_us.value();
    let throttled_s = throttled.map(|us| us / 1e6).filter(|s| *s > 0.0);
    let hole = (sum - 100.0).abs() > HOLE;
    let mut said = Vec::new();
    if steal >= STEAL {
        said.push(format!("the hypervisor withheld {} % of CPU time (steal)", fixed(steal, 1)));
    }
    if let Some(seconds) = throttled_s {
        said.push(format!("the CPU limit of this cgroup throttled it for {} s", fixed(seconds, 2)));
    }
    if hole {
        said.push(format!("the CPU columns sum to {} %, so time is missing from the account", fixed(sum, 1)));
    }
    if said.is_empty() {
        return Ok(None);
    }
    let mut evidence = vec![("steal_pct", steal), ("cpu_columns_sum_pct", sum)];
    evidence.extend(throttled_s.map(|seconds| ("throttled_s", seconds)));
    let share = throttled_s.unwrap_or(0.0) / elapsed(record)?;
    let high = steal >= 2.0 * STEAL || share >= 0.02 || (sum - 100.0).abs() > 2.0 * HOLE;
    let text = format!("The host was noisy or capped: {}.", said.join("; "));
    Ok(Some(RULE.advise(high, text, &evidence)))
}
