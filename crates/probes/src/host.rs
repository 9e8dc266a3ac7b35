//! Host readings beside a measurement: CPUs and their placement, steal, CPU time of a thread.

use assay_measure::clock::Ns;
use assay_run::dataset::lines::text;
use assay_run::engine::Line;
use assay_run::host;
pub(crate) use assay_run::thread_clock::{ThreadTimes, read as thread_times};
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Columns of `/proc/stat`'s `cpu` line that add up to all time; guest time is part of user time.
const COLUMNS: usize = 8;
/// Followed by the time of waiting for I/O.
const IDLE: usize = 3;
const STEAL: usize = 7;

/// CPU time of all CPUs, ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    /// Of every kind.
    pub(crate) all: u64,
    /// Idle, waiting for I/O or not.
    pub(crate) idle: u64,
    /// What the hypervisor gave to others; kernels before 2.6.11 have no such column.
    pub(crate) steal: Option<u64>,
}

impl CpuTimes {
    /// `/proc/stat`; `None` without its `cpu` line.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let columns: Option<Vec<u64>> =
            line.split_ascii_whitespace().take(COLUMNS).map(|column| column.parse().ok()).collect();
        let columns = columns?;
        Some(Self {
            all: columns.iter().sum(),
            idle: columns.iter().skip(IDLE).take(2).sum(),
            steal: columns.get(STEAL).copied(),
        })
    }

    /// Now.
    pub(crate) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Share of all time since `before` in which the CPUs were busy, %.
    pub(crate) fn busy_pct(&self, before: &Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let idle = self.idle.checked_sub(before.idle)?;
        Some(100.0 * (1.0 - idle as f64 / all as f64))
    }

    /// Share of all time since `before` that others got, %.
    pub(crate) fn steal_pct(&self, before: &Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let steal = self.steal?.checked_sub(before.steal?)?;
        Some(100.0 * steal as f64 / all as f64)
    }
}

/// CPU time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> Ns {
    ns(ClockId::ThreadCPUTime)
}

fn ns(clock: ClockId) -> Ns {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process, all threads, ended ones too: user and system, ns. Their sum is exact; how it is divided is
/// what the kernel's ticks saw.
pub(crate) fn process_times() -> (Ns, Ns) {
    let total = ns(ClockId::ProcessCPUTime);
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15 of proc(5), of which the third comes first.
    let ticks: Vec<u64> =
        host::text::process_stat(&stat).skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    let [user, system] = ticks[..] else {
        return (total, 0);
    };
    let share = system as f64 / (user + system).max(1) as f64;
    let system = (total as f64 * share) as u64;
    (total - system, system)
}

/// CPUs this process may use, rising.
pub(crate) fn allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else {
        return vec![0];
    };
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    all.map(|cpu| cpu as u32).collect()
}

/// CPUs as a list for people: `0, 2, 1, 3`.
pub(crate) fn listed(cpus: &[u32]) -> String {
    let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
    names.join(", ")
}

/// The CPUs in the order in which threads are put on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// One for each core first, socket by socket, then the siblings.
    pub(crate) cpus: Vec<u32>,
    /// Physical cores among them; `None` where the kernel does not report it.
    pub(crate) cores: Option<usize>,
}

impl Placement {
    /// Of these CPUs; `(package, core)` of each as the kernel tells it.
    pub(crate) fn of(cpus: &[u32], core: impl Fn(u32) -> Option<(u32, u32)>) -> Self {
        let mut seen: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let mut all: Vec<(usize, u32, u32)> = Vec::new();
        for cpu in cpus {
            let Some((package, core)) = core(*cpu) else {
                return Self { cpus: cpus.to_vec(), cores: None };
            };
            let before = seen.entry((package, core)).or_default();
            all.push((*before, package, *cpu));
            *before += 1;
        }
        all.sort_unstable();
        Self { cpus: all.iter().map(|(_, _, cpu)| *cpu).collect(), cores: Some(seen.len()) }
    }

    /// Of the CPUs this process may use.
    pub(crate) fn here() -> Self {
        let number = |cpu: u32, name: &str| -> Option<u32> {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
            fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        Self::of(&allowed(), |cpu| Some((number(cpu, "physical_package_id")?, number(cpu, "core_id")?)))
    }

    /// For the plan.
    pub(crate) fn line(&self) -> Line {
        text("cpus", "CPUs, in placement order", listed(&self.cpus))
    }

    /// Numbers of threads to try: doubling, half of all, all cores, all CPUs.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let all = self.cpus.len();
        let doubling = std::iter::successors(Some(1), |n| Some(n * 2));
        let mut counts: BTreeSet<usize> = doubling.take_while(|n| *n < all).collect();
        counts.extend([all, all.div_ceil(2)]);
        counts.extend(self.cores);
        counts.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_18_a_captured_pair_yields_its_steal_and_an_absent_column_none() {
        let before = CpuTimes::parse("cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1 2\n").unwrap();
        // 200 ticks later, 30 of them stolen; guest time is in user time already.
        let after = CpuTimes::parse("cpu  180 0 60 870 15 0 10 65 40 0\n").unwrap();
        assert_eq!(after.all - before.all, 200);
        assert_eq!(after.steal_pct(&before), Some(15.0));
        // 75 of the 200 idle.
        assert_eq!(after.busy_pct(&before), Some(62.5));
        let old = CpuTimes::parse("cpu  100 0 50 800 10 0 5\n").unwrap();
        assert_eq!((old.steal, old.steal_pct(&old)), (None, None));
        assert_eq!(after.steal_pct(&old), None);
        assert_eq!(CpuTimes::parse("intr 5\n"), None);
    }

    #[test]
    fn cores_of_one_socket_come_first_and_siblings_last() {
        // Two sockets of two cores with two threads each, numbered as Linux does.
        let core = |cpu: u32| Some((cpu / 2 % 2, cpu % 2));
        let placed = Placement::of(&[0, 1, 2, 3, 4, 5, 6, 7], core);
        assert_eq!(placed.cpus, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(placed.cores, Some(4));
        assert_eq!(placed.counts(), [1, 2, 4, 8]);
        // Siblings side by side.
        let placed = Placement::of(&[0, 1, 2, 3], |cpu| Some((0, cpu / 2)));
        assert_eq!(placed.cpus, [0, 2, 1, 3]);
        let unknown = Placement::of(&[3, 5, 9], |_| None);
        assert_eq!((unknown.cpus.as_slice(), unknown.cores), (&[3, 5, 9][..], None));
        assert_eq!(unknown.counts(), [1, 2, 3]);
    }

    #[test]
    fn a_thread_that_works_was_given_time() {
        let before = thread_times();
        let mut x = 1_u64;
        while thread_times().cpu_ns == before.cpu_ns {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let (user, system) = process_times();
        assert!(user + system >= thread_times().since(&before).cpu_ns);
        assert!(!allowed().is_empty());
    }
}
