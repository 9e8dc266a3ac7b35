//! Whether a control group takes CPU time away.

use super::{Fact, Seen, Tree};

pub(super) const FACT: Fact =
    Fact { name: "CPU quota", source: "the kernel's documentation of control groups, cpu.max", look };

fn look(tree: &Tree) -> Seen {
    let of_v2 = tree.group_files("cpu", "cpu.max").into_iter().filter_map(|text| {
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    let periods = tree.group_files("cpu", "cpu.cfs_period_us");
    let quotas = tree.group_files("cpu", "cpu.cfs_quota_us");
    let of_v1 = quotas.iter().zip(&periods).filter_map(|(quota, period)| {
        let quota: f64 = quota.parse().ok()?;
        (quota > 0.0).then_some(quota / period.parse::<f64>().ok()?)
    });
    let least = of_v2.chain(of_v1).filter(|cpus| cpus.is_finite()).reduce(f64::min);
    match least {
        Some(cpus) => Seen::Finding(
            format!("{cpus:.2} CPUs at a time"),
            "raise or remove the quota: sessions stand still for the rest of each period once it is used up",
        ),
        None if tree.has("proc/self/cgroup") => Seen::Good("none".to_owned()),
        None => Seen::Unknown("control groups cannot be read"),
    }
}
