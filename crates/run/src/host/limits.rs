//! How much CPU the run may use, and when that changes: CPUs on line, the quota of the
//! control group, the affinity of the driver threads.

use super::{read, text};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Where version 2 of the control groups is mounted, alone or beside version 1.
const ROOTS_V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const ROOTS_V1: [&str; 2] = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"];

/// What of the limits changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Online,
    Quota,
    Affinity,
    MainAffinity,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub limit: Limit,
    pub from: String,
    pub to: String,
}

/// The limits at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Limits {
    /// As the kernel writes it: `0-3,6`.
    online: String,
    quota: Option<Quota>,
    /// CPU list of each driver thread, by how many have it.
    affinity: BTreeMap<String, usize>,
    /// CPU list of the process's first thread, which `taskset -p` changes.
    main: String,
}

/// A CPU quota: time per period.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Quota {
    /// Thousandths of a CPU; `None` is no limit.
    millicpus: Option<u64>,
    /// Quota and period in the kernel's own numbers.
    words: String,
}

impl Quota {
    fn text(&self) -> String {
        match self.millicpus {
            Some(m) => format!("{}.{:03} CPUs ({})", m / 1000, m % 1000, self.words),
            None => "no limit".to_owned(),
        }
    }
}

/// Watches the limits.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    threads: Vec<i32>,
    last: Limits,
}

impl Watch {
    /// For driver threads with these kernel ids.
    pub(crate) fn new(threads: Vec<i32>) -> Self {
        let last = look(&threads);
        Self { threads, last }
    }

    /// What changed since it looked last.
    pub(crate) fn changes(&mut self) -> Vec<Change> {
        let mut now = look(&self.threads);
        // A thread that has ended leaves no list behind: the others' lists alone are no change.
        if now.affinity.values().sum::<usize>() < self.threads.len() {
            now.affinity.clone_from(&self.last.affinity);
        }
        let changes = differences(&self.last, &now);
        self.last = now;
        changes
    }

    /// Thousandths of CPUs the driver threads can use; `None` if nothing is known.
    pub(crate) fn usable_millicpus(&self) -> Option<u64> {
        self.last.usable_millicpus()
    }
}

impl Limits {
    fn usable_millicpus(&self) -> Option<u64> {
        let online = text::cpu_list(&self.online);
        let allowed: BTreeSet<u32> = self.affinity.keys().flat_map(|list| text::cpu_list(list)).collect();
        let cpus = match (online.is_empty(), allowed.is_empty()) {
            (true, true) => return None,
            (true, false) => allowed.len(),
            (false, true) => online.len(),
            (false, false) => online.intersection(&allowed).count(),
        };
        let whole = 1000 * cpus as u64;
        let quota = self.quota.as_ref().and_then(|quota| quota.millicpus);
        Some(quota.map_or(whole, |quota| quota.min(whole)))
    }

    fn affinity_text(&self) -> String {
        if self.affinity.len() == 1 {
            return self.affinity.keys().next().cloned().unwrap_or_default();
        }
        let each = self.affinity.iter().map(|(list, threads)| {
            let s = if *threads == 1 { "" } else { "s" };
            format!("{list} ({threads} thread{s})")
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

fn differences(old: &Limits, now: &Limits) -> Vec<Change> {
    let quota = |limits: &Limits| limits.quota.as_ref().map_or_else(String::new, Quota::text);
    let mut pairs = vec![
        (Limit::Online, old.online.clone(), now.online.clone()),
        (Limit::Quota, quota(old), quota(now)),
        (Limit::Affinity, old.affinity_text(), now.affinity_text()),
    ];
    // Of the whole process moved at once, one word is enough.
    if now.main != now.affinity_text() {
        pairs.push((Limit::MainAffinity, old.main.clone(), now.main.clone()));
    }
    pairs
        .into_iter()
        // What could not be read at one of the instants (a thread just ended) is no change.
        .filter(|(_, from, to)| from != to && !from.is_empty() && !to.is_empty())
        .map(|(limit, from, to)| Change { limit, from, to })
        .collect()
}

fn look(threads: &[i32]) -> Limits {
    let mut affinity = BTreeMap::new();
    for thread in threads {
        if let Some(list) = allowed(&format!("/proc/self/task/{thread}/status")) {
            *affinity.entry(list).or_default() += 1;
        }
    }
    Limits {
        online: read(ONLINE).trim().to_owned(),
        quota: quota(),
        affinity,
        main: allowed("/proc/self/status").unwrap_or_default(),
    }
}

/// The affinity of a thread as a CPU list.
fn allowed(status: &str) -> Option<String> {
    let status = fs::read_to_string(status).ok()?;
    text::cpus_allowed(&status).map(str::to_owned)
}

/// The tightest quota from this process's group up to the root; `None` without the controller.
fn quota() -> Option<Quota> {
    let membership = read("/proc/self/cgroup");
    let v2 = text::cgroup_path(&membership, "").map(|path| (path, &ROOTS_V2, v2_quota as Read));
    let v1 = text::cgroup_path(&membership, "cpu").map(|path| (path, &ROOTS_V1, v1_quota as Read));
    let mut found: Option<Quota> = None;
    for (path, roots, read) in [v2, v1].into_iter().flatten() {
        for dir in groups(roots, path) {
            let Some(quota) = read(&dir) else { continue };
            let tighter = match (&found, quota.millicpus) {
                (None, _) => true,
                (Some(known), Some(limit)) => known.millicpus.is_none_or(|known| limit < known),
                (Some(_), None) => false,
            };
            if tighter {
                found = Some(quota);
            }
        }
    }
    found
}

/// `80000 of 100000 us`, of what version 2 of the control groups writes.
fn words_of(quota_and_period: &str) -> String {
    format!("{} us", quota_and_period.replacen(' ', " of ", 1))
}

type Read = fn(&Path) -> Option<Quota>;

/// The directories of a group and those above it, under every root.
fn groups(roots: &[&str], path: &str) -> Vec<PathBuf> {
    let roots = roots.iter().map(Path::new);
    roots.flat_map(|root| upward(root, path)).collect()
}

/// The directory of a group below a root, and those above it.
pub(super) fn upward(root: &Path, path: &str) -> Vec<PathBuf> {
    // In a container the host's path may not exist here: then the root is our group.
    let own = root.join(path.trim_start_matches('/'));
    let own = if own.is_dir() { own } else { root.to_owned() };
    let above = own.ancestors().take_while(|dir| dir.starts_with(root));
    above.map(Path::to_path_buf).collect()
}

fn v2_quota(dir: &Path) -> Option<Quota> {
    let words = fs::read_to_string(dir.join("cpu.max")).ok()?;
    let millicpus = text::cpu_max_millis(&words)?;
    Some(Quota { millicpus, words: words_of(words.trim()) })
}

fn v1_quota(dir: &Path) -> Option<Quota> {
    let quota = fs::read_to_string(dir.join("cpu.cfs_quota_us")).ok()?;
    let period = fs::read_to_string(dir.join("cpu.cfs_period_us")).ok()?;
    let (quota, period) = (quota.trim(), period.trim());
    // Version 1 writes -1 where version 2 writes "max".
    let text = if quota.starts_with('-') { format!("max {period}") } else { format!("{quota} {period}") };
    Some(Quota { millicpus: text::cpu_max_millis(&text)?, words: words_of(&text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(online: &str, millicpus: Option<u64>, affinity: &[(&str, usize)]) -> Limits {
        Limits {
            online: online.to_owned(),
            quota: Some(Quota { millicpus, words: "cpu.max".to_owned() }),
            affinity: affinity.iter().map(|(l, n)| ((*l).to_owned(), *n)).collect(),
            main: affinity[0].0.to_owned(),
        }
    }

    #[test]
    fn the_tightest_limit_counts() {
        let usable = |limits: Limits| limits.usable_millicpus();
        assert_eq!(usable(limits("0-7", None, &[("0-7", 8)])), Some(8000));
        assert_eq!(usable(limits("0-7", None, &[("0-1", 1), ("1-2", 1)])), Some(3000));
        assert_eq!(usable(limits("0-1", None, &[("0-7", 8)])), Some(2000));
        assert_eq!(usable(limits("0-7", Some(1500), &[("0-7", 8)])), Some(1500));
        assert_eq!(usable(limits("0-7", Some(9000), &[("0-7", 8)])), Some(8000));
        assert_eq!(usable(Limits::default()), None);
    }

    #[test]
    fn each_change_is_named_with_its_old_and_new_value() {
        let old = limits("0-3", None, &[("0-3", 4)]);
        let now = limits("0-2", Some(1500), &[("0", 1), ("0-3", 3)]);
        let seen: Vec<_> =
            differences(&old, &now).into_iter().map(|change| (change.limit, change.from, change.to)).collect();
        let s = str::to_owned;
        assert_eq!(
            seen,
            [
                (Limit::Online, s("0-3"), s("0-2")),
                (Limit::Quota, s("no limit"), s("1.500 CPUs (cpu.max)")),
                (Limit::Affinity, s("0-3"), s("0 (1 thread), 0-3 (3 threads)")),
                (Limit::MainAffinity, s("0-3"), s("0")),
            ]
        );
        assert!(differences(&now, &now).is_empty());
    }

    #[test]
    fn a_process_moved_as_a_whole_is_one_change_and_an_unreadable_limit_none() {
        let old = limits("0-3", None, &[("0-3", 4)]);
        assert_eq!(differences(&old, &limits("0-3", None, &[("1", 4)])).len(), 1);
        assert!(differences(&old, &limits("", None, &[("", 4)])).is_empty());
    }

    #[test]
    fn a_thread_that_ended_is_no_change_of_the_others() {
        let (tid, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            crate::threads::stay_on(0);
            let _ = tid.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = ended.recv();
        });
        let this = rustix::thread::gettid().as_raw_nonzero().get();
        let mut watch = Watch::new(vec![this, told.recv().expect("its id")]);
        let usable = watch.usable_millicpus();
        drop(end);
        other.join().expect("it ends");
        // The kernel lets go of the thread a moment later.
        for _ in 0..50 {
            assert_eq!(watch.changes(), []);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(watch.usable_millicpus(), usable);
    }

    #[test]
    fn this_thread_has_an_affinity_and_this_host_a_cpu() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let mut watch = Watch::new(vec![thread]);
        assert!(watch.usable_millicpus().is_some_and(|m| m > 0));
        assert!(watch.changes().is_empty());
        assert_eq!(watch.last.affinity.values().sum::<usize>(), 1);
    }
}
