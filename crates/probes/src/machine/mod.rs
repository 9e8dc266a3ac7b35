//! What a machine consists of, from `/proc` and `/sys` alone: CPUs, cores, sockets, caches, NUMA nodes, memory.
//!
//! Every file is optional, and all of them may be below another root: a tree captured on another machine. Missing
//! information is left out, never made up.

mod identity;
mod tree;

#[cfg(test)]
pub(crate) mod trees;

pub(crate) use identity::Identity;
pub(crate) use tree::Tree;

use assay_measure::figures::figures;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A whole machine.
#[figures]
pub(crate) struct Machine {
    /// The identity of the CPUs.
    pub identity: Identity,
    /// Numbers of the present CPUs.
    pub present: Vec<u32>,
    /// Numbers of the online CPUs; the same where the kernel does not distinguish them.
    pub online: Vec<u32>,
    /// Numbers of those that this process may use; empty of a captured tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usable: Vec<u32>,
    /// Each CPU that runs.
    pub cpus: Vec<Cpu>,
    /// Each cache, the smallest level first.
    pub caches: Vec<Cache>,
    /// NUMA nodes; empty where the kernel reports none.
    pub nodes: Vec<Node>,
    /// Gauges of `/proc/meminfo` by its own names, bytes (`HugePages_*`: pages).
    pub memory: BTreeMap<String, u64>,
    /// Pools of huge pages.
    pub pools: Vec<Pool>,
    /// Transparent huge pages: `always`, `madvise` or `never`; empty where it is not exposed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub transparent_huge_pages: String,
}

/// One CPU, as the operating system counts them.
#[figures]
pub(crate) struct Cpu {
    pub number: u32,
    /// Socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<u32>,
    /// Piece of silicon in the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
    /// Core in the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Threads of the same core, this one among them; empty where it is not exposed.
    pub siblings: Vec<u32>,
    /// Of the frequency driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_khz: Option<u64>,
    /// The scheduler's capacity, of 1024; it differs between the CPUs of hybrid machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
}

/// One cache.
#[figures]
#[derive(Eq, PartialOrd, Ord)]
pub(crate) struct Cache {
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    pub bytes: u64,
    /// CPUs that share it.
    pub cpus: Vec<u32>,
}

/// One NUMA node.
#[figures]
pub(crate) struct Node {
    pub number: u32,
    /// None for a node that has only memory (CXL).
    pub cpus: Vec<u32>,
    /// 0 of a node without memory; `None` where it is not exposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// The firmware's distance to each node, in their order; 10 is near.
    pub distances: Vec<u32>,
}

/// Huge pages of one size that are kept ready.
#[figures]
pub(crate) struct Pool {
    pub page_bytes: u64,
    pub pages: u64,
    pub free: u64,
}

impl Cache {
    /// `L1d`, `L1i`, `L2`, ...
    pub(crate) fn name(&self) -> String {
        let kind = match self.kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        format!("L{}{kind}", self.level)
    }
}

/// Caches of one level and kind: how large one is, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) level: u32,
    /// Of the largest one.
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Of all of them.
    pub(crate) total_bytes: u64,
    /// CPUs that share the first one.
    pub(crate) shared_by: Vec<u32>,
}

impl Machine {
    /// Reads what lies below a root; `/` is this machine.
    pub(crate) fn read(root: &Path) -> Self {
        let tree = Tree::new(root);
        let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
        let (present, online) = tree.numbers_of_cpus(&cpuinfo);
        let cpus: Vec<Cpu> = online.iter().map(|cpu| tree.cpu(*cpu)).collect();
        let mut caches: BTreeSet<Cache> = BTreeSet::new();
        for cpu in &online {
            caches.extend(tree.caches(*cpu));
        }
        Self {
            identity: Identity::of(&tree, &cpuinfo),
            usable: tree.usable(),
            nodes: tree.nodes(),
            memory: tree.memory("proc/meminfo"),
            pools: tree.pools(),
            transparent_huge_pages: tree.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
            caches: caches.into_iter().collect(),
            present,
            online,
            cpus,
        }
    }

    /// Numbers of sockets that run; `None` where the kernel does not tell.
    pub(crate) fn packages(&self) -> Option<BTreeSet<u32>> {
        let all: Option<BTreeSet<u32>> = self.cpus.iter().map(|cpu| cpu.package).collect();
        all.filter(|all| !all.is_empty())
    }

    /// Cores that run, by socket and number.
    pub(crate) fn cores(&self) -> Option<BTreeSet<(u32, u32)>> {
        let core = |cpu: &Cpu| Some((cpu.package?, cpu.core?));
        let all: Option<BTreeSet<(u32, u32)>> = self.cpus.iter().map(core).collect();
        all.filter(|all| !all.is_empty())
    }

    /// Most threads of a core that run.
    pub(crate) fn threads_per_core(&self) -> Option<usize> {
        let runs = |cpu: &&u32| self.online.contains(cpu);
        let threads = self.cpus.iter().map(|cpu| cpu.siblings.iter().filter(runs).count());
        threads.max().filter(|threads| *threads > 0)
    }

    /// CPUs that are offline.
    pub(crate) fn offline(&self) -> Vec<u32> {
        let runs = |cpu: &&u32| self.online.binary_search(cpu).is_ok();
        self.present.iter().filter(|cpu| !runs(cpu)).copied().collect()
    }

    /// Kinds of caches, the smallest level first, data before instructions.
    pub(crate) fn levels(&self) -> Vec<Level> {
        let mut levels: Vec<Level> = Vec::new();
        for cache in &self.caches {
            let name = cache.name();
            match levels.iter_mut().find(|level| level.name == name) {
                Some(level) => {
                    level.count += 1;
                    level.total_bytes += cache.bytes;
                    level.bytes = level.bytes.max(cache.bytes);
                }
                None => levels.push(Level {
                    name,
                    level: cache.level,
                    bytes: cache.bytes,
                    count: 1,
                    total_bytes: cache.bytes,
                    shared_by: cache.cpus.clone(),
                }),
            }
        }
        levels
    }

    /// The caches that data pass on their way to memory.
    pub(crate) fn data_levels(&self) -> Vec<Level> {
        let mut levels = self.levels();
        levels.retain(|level| !level.name.ends_with('i'));
        levels
    }

    /// Bytes of all caches of the last level together; `None` where the kernel tells of no cache.
    pub(crate) fn last_level_bytes(&self) -> Option<u64> {
        self.data_levels().last().map(|level| level.total_bytes)
    }

    /// CPUs by what they can do, the strongest first: highest clock, else the scheduler's capacity. One kind of CPU is one
    /// class.
    pub(crate) fn classes(&self) -> Vec<(u64, Vec<u32>)> {
        let by = |of: &dyn Fn(&Cpu) -> Option<u64>| {
            let mut classes: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for cpu in &self.cpus {
                classes.entry(of(cpu).unwrap_or(0)).or_default().push(cpu.number);
            }
            classes.into_iter().rev().collect::<Vec<_>>()
        };
        let clocks = by(&|cpu| cpu.max_khz.map(|khz| khz / 1000));
        match clocks.len() {
            1 => by(&|cpu| cpu.capacity),
            _ => clocks,
        }
    }
}

/// Numbers as the kernel writes them: `0-3,6`.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    list(numbers, 2)
}

/// The same as lscpu does, which writes two neighbours as `0,1`.
pub(crate) fn lscpu_ranges(numbers: &[u32]) -> String {
    list(numbers, 3)
}

fn list(numbers: &[u32], least: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = numbers;
    while let Some((first, _)) = rest.split_first() {
        let run = rest.iter().zip(*first..).take_while(|(a, b)| **a == *b);
        let run = run.count();
        if run >= least {
            words.push(format!("{first}-{}", rest[run - 1]));
        } else {
            words.extend(rest[..run].iter().map(u32::to_string));
        }
        rest = &rest[run..];
    }
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_kernel_and_as_lscpu_do() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(lscpu_ranges(&[0, 1, 4, 5, 6]), "0,1,4-6");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn this_machine_runs_a_cpu_and_nothing_of_it_is_made_up() {
        let here = Machine::read(Path::new("/"));
        assert!(!here.online.is_empty() && !here.usable.is_empty());
        assert_eq!(here.cpus.len(), here.online.len());
        assert!(here.memory.contains_key("MemTotal"));
        let nowhere = Machine::read(Path::new("/nonexistent"));
        assert_eq!(nowhere, Machine::default());
    }

    #[test]
    fn cores_of_two_sockets_with_the_same_number_are_two() {
        let dir = trees::two_sockets();
        let machine = Machine::read(dir.path());
        assert_eq!(machine.packages().map(|all| all.len()), Some(2));
        assert_eq!(machine.cores().map(|all| all.len()), Some(16));
        assert_eq!(machine.threads_per_core(), Some(1));
        let levels = machine.levels();
        let names: Vec<&str> = levels.iter().map(|level| level.name.as_str()).collect();
        assert_eq!(names, ["L1d", "L1i", "L2", "L3"]);
        assert_eq!((levels[3].count, levels[3].bytes), (2, 25_344 << 10));
        assert_eq!(machine.last_level_bytes(), Some(2 * (25_344 << 10)));
    }

    #[test]
    fn classes_follow_the_clock_and_offline_cpus_are_told() {
        let dir = trees::hybrid();
        let machine = Machine::read(dir.path());
        let classes = machine.classes();
        assert_eq!(classes.len(), 2);
        assert_eq!(classes[0], (5200, vec![0, 1, 2, 3]));
        assert_eq!(classes[1], (3900, vec![4, 5, 6, 7]));
        let dir = trees::offline();
        let machine = Machine::read(dir.path());
        assert_eq!((machine.offline(), machine.online.len()), (vec![2, 5, 6, 7], 4));
        assert_eq!(machine.threads_per_core(), Some(2), "cores 0 and 4");
        assert_eq!(machine.classes().len(), 1);
    }
}
