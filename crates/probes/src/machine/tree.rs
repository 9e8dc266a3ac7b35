//! Files below a root, each of which may be missing.

use super::{Cache, Cpu, Node, Pool};
use assay_run::host::text::{cpu_list, cpus_allowed};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

/// A root and what lies below it.
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Whether it is the machine that this process runs on.
    pub(super) fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// A file without its final line end; `None` where it is missing, unreadable or empty.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        let text = text.trim_end();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number<N: std::str::FromStr>(&self, path: &str) -> Option<N> {
        self.text(path)?.trim().parse().ok()
    }

    fn list(&self, path: &str) -> Option<Vec<u32>> {
        Some(cpu_list(&self.text(path)?).into_iter().collect())
    }

    /// Numbers at the end of names below a directory: `cpu12`, `node0`.
    fn numbered(&self, dir: &str, name: &str) -> Vec<u32> {
        let entries = fs::read_dir(self.root.join(dir)).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| {
            let found = entry.file_name().to_string_lossy().into_owned();
            found.strip_prefix(name)?.parse().ok()
        };
        let mut all: Vec<u32> = entries.filter_map(number).collect();
        all.sort_unstable();
        all
    }

    /// CPUs that are there and those that run: of `/sys`, else the processors that `/proc/cpuinfo` lists.
    pub(super) fn numbers_of_cpus(&self, cpuinfo: &str) -> (Vec<u32>, Vec<u32>) {
        let number = |line: &str| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == "processor").then(|| value.trim().parse().ok())?
        };
        let listed: Vec<u32> = cpuinfo.lines().filter_map(number).collect();
        let online = self.list(&format!("{CPUS}/online")).unwrap_or(listed);
        let present = self.list(&format!("{CPUS}/present"));
        (present.unwrap_or_else(|| online.clone()), online)
    }

    /// CPUs this process may use; of the whole machine nothing else is asked of the process.
    pub(super) fn usable(&self) -> Vec<u32> {
        if !self.is_here() {
            return Vec::new();
        }
        let status = self.text("proc/self/status").unwrap_or_default();
        let list = cpus_allowed(&status).map(cpu_list).unwrap_or_default();
        list.into_iter().collect()
    }

    pub(super) fn cpu(&self, number: u32) -> Cpu {
        let dir = format!("{CPUS}/cpu{number}");
        let topology = |name: &str| format!("{dir}/topology/{name}");
        let siblings = self.list(&topology("core_cpus_list"));
        let siblings = siblings.or_else(|| self.list(&topology("thread_siblings_list")));
        Cpu {
            number,
            package: self.number(&topology("physical_package_id")),
            die: self.number(&topology("die_id")),
            core: self.number(&topology("core_id")),
            siblings: siblings.unwrap_or_default(),
            max_khz: self.number(&format!("{dir}/cpufreq/cpuinfo_max_freq")),
            min_khz: self.number(&format!("{dir}/cpufreq/cpuinfo_min_freq")),
            capacity: self.number(&format!("{dir}/cpu_capacity")),
        }
    }

    /// Caches of a CPU; one without a size is left out.
    pub(super) fn caches(&self, cpu: u32) -> Vec<Cache> {
        let dir = format!("{CPUS}/cpu{cpu}/cache");
        let cache = |index: u32| {
            let file = |name: &str| format!("{dir}/index{index}/{name}");
            Some(Cache {
                level: self.number(&file("level"))?,
                kind: self.text(&file("type"))?,
                bytes: size(&self.text(&file("size"))?)?,
                cpus: self.list(&file("shared_cpu_list")).unwrap_or_else(|| vec![cpu]),
            })
        };
        let all = self.numbered(&dir, "index");
        all.into_iter().filter_map(cache).collect()
    }

    pub(super) fn nodes(&self) -> Vec<Node> {
        let node = |number: u32| {
            let dir = format!("{NODES}/node{number}");
            let memory = self.memory(&format!("{dir}/meminfo"));
            let distances = self.text(&format!("{dir}/distance")).unwrap_or_default();
            Node {
                number,
                cpus: self.list(&format!("{dir}/cpulist")).unwrap_or_default(),
                memory_bytes: memory.get("MemTotal").copied(),
                free_bytes: memory.get("MemFree").copied(),
                distances: distances.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect(),
            }
        };
        let all = self.numbered(NODES, "node");
        all.into_iter().map(node).collect()
    }

    /// Gauges by name; kB are bytes here. A node's lines begin `Node 0`.
    pub(super) fn memory(&self, path: &str) -> BTreeMap<String, u64> {
        let text = self.text(path).unwrap_or_default();
        let gauge = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let name = name.split_ascii_whitespace().next_back()?;
            let mut words = value.split_ascii_whitespace();
            let value: u64 = words.next()?.parse().ok()?;
            let factor = if words.next() == Some("kB") { 1024 } else { 1 };
            Some((name.to_owned(), value.saturating_mul(factor)))
        };
        const WANTED: [&str; 9] = [
            "MemTotal",
            "MemFree",
            "MemAvailable",
            "AnonHugePages",
            "HugePages_Total",
            "HugePages_Free",
            "Hugepagesize",
            "SwapTotal",
            "SwapFree",
        ];
        let wanted = |(name, _): &(String, u64)| WANTED.contains(&name.as_str());
        text.lines().filter_map(gauge).filter(wanted).collect()
    }

    pub(super) fn pools(&self) -> Vec<Pool> {
        const DIR: &str = "sys/kernel/mm/hugepages";
        let entries = fs::read_dir(self.root.join(DIR)).into_iter().flatten().flatten();
        let pool = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            Some(Pool {
                page_bytes: kib.saturating_mul(1024),
                pages: self.number(&format!("{DIR}/{name}/nr_hugepages"))?,
                free: self.number(&format!("{DIR}/{name}/free_hugepages"))?,
            })
        };
        let mut all: Vec<Pool> = entries.filter_map(pool).collect();
        all.sort_by_key(|pool| pool.page_bytes);
        all
    }

    /// The word in brackets of a choice: `always [madvise] never`.
    pub(super) fn chosen(&self, path: &str) -> String {
        let text = self.text(path).unwrap_or_default();
        let inside = text.split_once('[').and_then(|(_, rest)| {
            let (word, _) = rest.split_once(']')?;
            Some(word.to_owned())
        });
        inside.unwrap_or_default()
    }
}

/// `48K`, `1M`: bytes.
fn size(text: &str) -> Option<u64> {
    let (number, factor) = match text.trim().split_at(text.trim().len().saturating_sub(1)) {
        (number, "K") => (number, 1 << 10),
        (number, "M") => (number, 1 << 20),
        (number, "G") => (number, 1 << 30),
        _ => (text.trim(), 1),
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(factor)?;
    (bytes > 0).then_some(bytes)
}
