//! What the host says beside the kernels: CPUs and where they lie, steal, throttling, what a thread was given.

use assay_measure::clock::{Clock, Ns};
use assay_measure::snapshot::Fact;
use assay_run::host::text;
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Columns of `/proc/stat`'s `cpu` line that add up to all time; guest time is part of user time.
const COLUMNS: usize = 8;
const STEAL: usize = 7;

/// CPU time of all CPUs, ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    /// Of every kind.
    pub(super) all: u64,
    /// What the hypervisor gave to others; kernels before 2.6.11 have no such column.
    pub(super) steal: Option<u64>,
}

impl CpuTimes {
    /// `/proc/stat`; `None` without its `cpu` line.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let columns: Option<Vec<u64>> = line
            .split_ascii_whitespace()
            .take(COLUMNS)
            .map(|column| column.parse().ok())
            .collect();
        let columns = columns?;
        Some(Self {
            all: columns.iter().sum(),
            steal: columns.get(STEAL).copied(),
        })
    }

    /// Now.
    pub(super) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Share of all time since `before` that others got, %.
    pub(super) fn steal_pct(&self, before: &Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let steal = self.steal?.checked_sub(before.steal?)?;
        Some(100.0 * steal as f64 / all as f64)
    }
}

/// What the kernel gave a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTimes {
    /// On a CPU.
    pub(super) cpu_ns: Ns,
    /// Runnable and on none; not every kernel counts it.
    pub(super) run_delay_ns: Option<Ns>,
}

impl ThreadTimes {
    pub(super) fn since(&self, before: &Self) -> Self {
        let delay = self.run_delay_ns.zip(before.run_delay_ns);
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            run_delay_ns: delay.map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Of the calling thread. The run delay is the second field of its `schedstat`.
pub(super) fn thread_times() -> ThreadTimes {
    let delay = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let delay = delay.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok());
    ThreadTimes {
        run_delay_ns: delay,
        cpu_ns: ns(ClockId::ThreadCPUTime),
    }
}

fn ns(clock: ClockId) -> Ns {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process, all threads, ended ones too: user and system, ns. Their sum is exact; how it is divided is
/// what the kernel's ticks saw.
pub(super) fn process_times() -> (Ns, Ns) {
    let total = ns(ClockId::ProcessCPUTime);
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15 of proc(5), of which the third comes first.
    let ticks: Vec<u64> = text::process_stat(&stat)
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    let [user, system] = ticks[..] else {
        return (total, 0);
    };
    let share = system as f64 / (user + system).max(1) as f64;
    let system = (total as f64 * share) as u64;
    (total - system, system)
}

/// CPUs this process may use, rising.
pub(super) fn allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else {
        return vec![0];
    };
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    all.map(|cpu| cpu as u32).collect()
}

/// The CPUs in the order in which threads are put on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    /// One for each core first, socket by socket, then the siblings.
    pub(super) cpus: Vec<u32>,
    /// Physical cores among them; `None` where the kernel does not report it.
    pub(super) cores: Option<usize>,
}

impl Placement {
    /// Of these CPUs; `(package, core)` of each as the kernel tells it.
    pub(super) fn of(cpus: &[u32], core: impl Fn(u32) -> Option<(u32, u32)>) -> Self {
        let mut seen: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let mut all: Vec<(usize, u32, u32)> = Vec::new();
        for cpu in cpus {
            let Some((package, core)) = core(*cpu) else {
                return Self {
                    cpus: cpus.to_vec(),
                    cores: None,
                };
            };
            let before = seen.entry((package, core)).or_default();
            all.push((*before, package, *cpu));
            *before += 1;
        }
        all.sort_unstable();
        Self {
            cpus: all.iter().map(|(_, _, cpu)| *cpu).collect(),
            cores: Some(seen.len()),
        }
    }

    /// Of the CPUs this process may use.
    pub(super) fn here() -> Self {
        let number = |cpu: u32, name: &str| -> Option<u32> {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
            fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        Self::of(&allowed(), |cpu| {
            Some((number(cpu, "physical_package_id")?, number(cpu, "core_id")?))
        })
    }

    /// Numbers of threads to try: doubling, half of all, all cores, all CPUs.
    pub(super) fn counts(&self) -> Vec<usize> {
        let all = self.cpus.len();
        let doubling = std::iter::successors(Some(1), |n| Some(n * 2));
        let mut counts: BTreeSet<usize> = doubling.take_while(|n| *n < all).collect();
        counts.extend([all, all.div_ceil(2)]);
        counts.extend(self.cores);
        counts.into_iter().collect()
    }
}

/// The clock the kernel's frequency driver tells for a CPU now, MHz.
pub(super) fn cpufreq_mhz(cpu: u32) -> Option<f64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
    let khz: f64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(khz / 1000.0)
}

/// Switches of the platform that decide what a CPU does: mitigations, siblings, boost, what the kernel was started with.
pub(super) fn facts() -> Vec<Fact> {
    let cpu = Path::new("/sys/devices/system/cpu");
    let told = |name: &str, path: &Path| {
        let text = fs::read_to_string(path).ok();
        let value = text.map_or_else(
            || "n/a (not exposed)".to_owned(),
            |text| text.trim().to_owned(),
        );
        fact(name, value)
    };
    let mut facts = vec![
        told("smt_control", &cpu.join("smt/control")),
        told("cpu_boost", &cpu.join("cpufreq/boost")),
        told(
            "cpu_energy_preference",
            &cpu.join("cpu0/cpufreq/energy_performance_preference"),
        ),
        told("ksm_run", Path::new("/sys/kernel/mm/ksm/run")),
        fact(
            "kernel_words",
            words(&fs::read_to_string("/proc/cmdline").unwrap_or_default()),
        ),
    ];
    let entries = fs::read_dir(cpu.join("vulnerabilities"))
        .into_iter()
        .flatten()
        .flatten();
    let all: BTreeMap<String, String> = entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            Some((
                entry.file_name().to_string_lossy().into_owned(),
                text.trim().to_owned(),
            ))
        })
        .collect();
    let open = all.iter().filter(|(_, text)| *text != "Not affected");
    facts.extend(open.map(|(name, text)| fact(&format!("mitigation_{name}"), text.clone())));
    facts
}

fn fact(name: &str, value: String) -> Fact {
    Fact {
        name: name.to_owned(),
        value,
    }
}

/// Words of a kernel command line that change what CPUs do.
fn words(command_line: &str) -> String {
    const NAMES: [&str; 7] = [
        "isolcpus",
        "nohz_full",
        "rcu_nocbs",
        "mitigations",
        "nosmt",
        "idle",
        "intel_pstate",
    ];
    let matters = |word: &&str| NAMES.contains(&word.split('=').next().unwrap_or(word));
    let found: Vec<&str> = command_line
        .split_ascii_whitespace()
        .filter(matters)
        .collect();
    match found.is_empty() {
        true => "none of isolcpus, nohz_full, rcu_nocbs, mitigations, nosmt, idle, intel_pstate"
            .to_owned(),
        false => found.join(" "),
    }
}

/// What reading the clock costs, ns: the quickest of several hundred batches' means.
pub(super) fn clock_read_ns(clock: &Clock) -> f64 {
    const READS: u64 = 100;
    let batch = || {
        let begun = clock.now_ns();
        for _ in 1..READS {
            std::hint::black_box(clock.now_ns());
        }
        (clock.now_ns() - begun) as f64 / READS as f64
    };
    (0..300).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Bytes that can be had without swapping.
pub(super) fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    text::meminfo(&text).get("available").copied()
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
        assert_eq!(
            (unknown.cpus.as_slice(), unknown.cores),
            (&[3, 5, 9][..], None)
        );
        assert_eq!(unknown.counts(), [1, 2, 3]);
    }

    #[test]
    fn only_words_that_matter_are_told_of_a_command_line() {
        assert_eq!(
            words("root=/dev/vda quiet isolcpus=2-3 nosmt nosmtx=1"),
            "isolcpus=2-3 nosmt"
        );
        assert!(words("quiet").starts_with("none of"));
        assert!(facts().iter().all(|fact| !fact.value.is_empty()));
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
