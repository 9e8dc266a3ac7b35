//! The host beside the run: cumulative readings at every snapshot, facts once.
//!
//! Everything comes from `/proc` and `/sys`. A source that this kernel does not have
//! leaves its field empty (n/a for readers), never 0. The parsers are pure functions
//! in [`text`]; this module only reads files.

mod caps;
mod facts;
pub(crate) mod limits;
pub mod memory;
pub mod text;

pub use facts::facts;

use assay_measure::snapshot::HostReading;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

/// A number that differs for every call of every process: for names and seeds, not for keys.
pub fn random_u64() -> u64 {
    // The standard library seeds its hashers from the operating system.
    RandomState::new().hash_one(std::process::id())
}

/// The same in 32 bits.
pub fn random_u32() -> u32 {
    (random_u64() >> 32) as u32
}

/// Reads the host's counters; one per run.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// Kernel names of the whole devices under the data.
    disks: Vec<String>,
    cgroup: Option<Cgroup>,
    ns_per_tick: u64,
    page_bytes: u64,
}

/// Where this process's CPU throttling is counted.
#[derive(Clone, Debug)]
struct Cgroup {
    file: PathBuf,
    key: &'static str,
    /// cgroup v2 counts microseconds, v1 nanoseconds.
    ns_per_unit: u64,
}

impl Sampler {
    /// Watches the devices of these kernel names.
    #[must_use]
    pub fn new(disks: Vec<String>) -> Self {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Self {
            disks,
            cgroup: cgroup(),
            ns_per_tick: 1_000_000_000 / ticks,
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    /// Names of the devices watched.
    #[must_use]
    pub fn disks(&self) -> &[String] {
        &self.disks
    }

    /// One reading. Takes some 200 us on a small host, more with many CPUs.
    #[must_use]
    pub fn sample(&mut self) -> HostReading {
        let mut host = HostReading {
            memory_bytes: text::meminfo(&read("/proc/meminfo")),
            vmstat: text::vmstat(&read("/proc/vmstat")),
            nets: text::net_dev(&read("/proc/net/dev")),
            load: text::loadavg(&read("/proc/loadavg")),
            process_rss_bytes: text::statm_rss_pages(&read("/proc/self/statm")).map(|pages| pages * self.page_bytes),
            process_cpu_ns: Some(process_cpu_ns()),
            ..HostReading::default()
        };
        if let Some(stat) = text::stat(&read("/proc/stat"), self.ns_per_tick) {
            host.cpu_ns = Some(stat.cpu_ns);
            host.cpus = Some(stat.cpus);
            host.context_switches = stat.context_switches;
            host.procs_running = stat.procs_running;
        }
        host.disks = text::diskstats(&read("/proc/diskstats"))
            .into_iter()
            .filter(|disk| self.disks.contains(&disk.name))
            .collect();
        (host.process_read_bytes, host.process_write_bytes) = text::self_io(&read("/proc/self/io"));
        for resource in ["cpu", "io", "memory"] {
            let pressure = text::pressure(&read(&format!("/proc/pressure/{resource}")));
            let totals = [("some", pressure.some_ns), ("full", pressure.full_ns)];
            for (kind, total) in totals {
                // "full" of the CPU is undefined for a whole host (kernel accounting/psi.rst).
                if let Some(ns) = total.filter(|_| (resource, kind) != ("cpu", "full")) {
                    host.psi_ns.insert(format!("{resource}_{kind}"), ns);
                }
            }
        }
        host.cgroup_throttled_ns = self.cgroup.as_ref().and_then(|cgroup| {
            let text = fs::read_to_string(&cgroup.file).ok()?;
            text::keyed(&text, cgroup.key).map(|value| value * cgroup.ns_per_unit)
        });
        host
    }
}

/// Thousandths of CPUs that the calling thread can use: the least of those on line, its affinity and the quota of the
/// control group; `None` where the kernel reports none of them.
#[must_use]
pub fn usable_millicpus() -> Option<u64> {
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    limits::Watch::new(vec![thread]).usable_millicpus()
}

/// A missing file reads as empty text, from which no parser makes a number.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// CPU time of all threads, running and ended, ns.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The file that counts this process's throttling, under either cgroup version.
fn cgroup() -> Option<Cgroup> {
    let membership = read("/proc/self/cgroup");
    let candidates = [
        (text::cgroup_path(&membership, ""), "", "throttled_usec", 1000),
        (text::cgroup_path(&membership, "cpu"), "cpu,cpuacct", "throttled_time", 1),
        (text::cgroup_path(&membership, "cpu"), "cpu", "throttled_time", 1),
    ];
    for (path, controller, key, ns_per_unit) in candidates {
        let Some(path) = path else { continue };
        let root = Path::new("/sys/fs/cgroup").join(controller);
        // Inside a container the path of the host may not exist: then the root is ours.
        for file in [root.join(path.trim_start_matches('/')).join("cpu.stat"), root.join("cpu.stat")] {
            let found = fs::read_to_string(&file).unwrap_or_default();
            if text::keyed(&found, key).is_some() {
                return Some(Cgroup { file, key, ns_per_unit });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_of_this_host_holds_what_every_linux_has() {
        let mut sampler = Sampler::new(vec!["vda".to_owned()]);
        let first = sampler.sample();
        let second = sampler.sample();
        assert!(first.cpus.expect("/proc/stat is everywhere") >= 1);
        assert!(second.process_cpu_ns >= first.process_cpu_ns);
        assert!(first.process_rss_bytes.expect("statm is everywhere") > 0);
        assert!(first.memory_bytes["total"] > first.memory_bytes["available"]);
        let cpu = |reading: &HostReading| reading.cpu_ns.expect("a cpu line").iter().sum::<u64>();
        assert!(cpu(&second) >= cpu(&first));
        assert!(first.disks.iter().all(|disk| sampler.disks().contains(&disk.name)));
    }
}
