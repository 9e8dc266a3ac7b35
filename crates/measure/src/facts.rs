//! Facts about a host and an engine that several places name: each key once, with its title.
//!
//! The code that provides a fact and the code that shows it use the same [`FactKey`], so a misspelt name does not
//! compile.

use crate::snapshot::Fact;
use crate::units::size;

/// A fact under a stable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactKey {
    /// Its name in records: snake case, unit last.
    pub name: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// Other names it has in records of imports and of older versions.
    pub also: &'static [&'static str],
}

const fn key(name: &'static str, title: &'static str, also: &'static [&'static str]) -> FactKey {
    FactKey { name, title, also }
}

/// What an engine counts as a get, where it is not a block of rows or of an index.
pub const GETS: FactKey = key("gets_counted", "What a get is", &[]);
/// How late a server's sessions publish their counters at most, s; absent if they publish at every mark.
pub const LATE_S: FactKey = key("statistics_late_s", "Counters late by at most, s", &[]);
/// The product a server is.
pub const ENGINE: FactKey = key("engine", "Product", &[]);
/// Names of the facts that a report shows first about a server, in order, separated by spaces.
pub const SERVER_TOLD: FactKey = key("server_facts_told", "Told first", &[]);
/// The events to which a server's sampled waits belong, where those have their own names: `event = wait, wait; event =
/// ...`.
pub const WAITS_ARE: FactKey = key("sampled_waits_are", "Sampled waits are", &[]);
/// Version of a server, as it says it.
pub const SERVER_VERSION: FactKey = key("server_version", "Server version", &[]);
/// Name of a server's database under test.
pub const DATABASE: FactKey = key("database", "Database", &[]);
/// Whether a server is on this host, and by what evidence.
pub const SERVER_HOST: FactKey = key("server_host", "Server", &[]);
/// `yes` where the database is a library in this process: its sessions' threads do all of its work.
pub const IN_PROCESS: FactKey = key("server_in_process", "Database in this process", &[]);
/// `yes` where all I/O of an engine inside this process bypasses the page cache, by what was achieved.
pub const PAST_PAGE_CACHE: FactKey = key("page_cache_bypassed", "Page cache bypassed", &[]);
/// How an engine reads without read calls; absent if every read is a call.
pub const READ_WITHOUT_CALLS: FactKey = key("reads_without_calls", "Reads without calls by", &[]);
/// What makes an engine's reads reach the devices; absent if they already do, or if no remedy is known.
pub const DEVICE_READS: FactKey = key("device_reads_with", "Reads from devices with", &[]);
/// When a data set was made, s since 1970.
pub const DATA_MADE: FactKey = key("data_set_made_unix_s", "Data set made, s since 1970", &[]);
/// Redo that was written to a data set since then.
pub const DATA_REDO: FactKey = key("data_set_redo_bytes", "Redo written to it, bytes", &[]);
/// Name of the host.
pub const HOSTNAME: FactKey = key("hostname", "Host name", &[]);
/// Release of the kernel.
pub const KERNEL: FactKey = key("kernel", "Kernel", &["kernel_release"]);
/// Model of the processor.
pub const CPU_MODEL: FactKey = key("cpu_model", "CPU model", &["cpu"]);
/// CPUs this process may use.
pub const CPUS: FactKey = key("cpus_usable", "CPUs", &["cpus"]);
/// Memory of the host, bytes.
pub const MEMORY_BYTES: FactKey = key("memory_bytes", "Memory", &["memory"]);
/// The hypervisor, or the sign that there is one.
pub const VIRTUALISATION: FactKey = key("virtualisation", "Virtualisation", &["virtualization", "hypervisor"]);
/// Make and model of the machine.
pub const PRODUCT: FactKey = key("product", "Machine", &[]);
/// How the engine's files were opened.
pub const IO_MODE: FactKey = key("io_mode", "I/O mode", &[]);
/// What that came to.
pub const IO_MODE_ACHIEVED: FactKey = key("io_mode_achieved", "I/O mode achieved", &[]);
/// The parameter of a server that says how large its cache is.
pub const CACHE_PARAMETER: FactKey = key("cache_parameter", "Cache sized by", &[]);
/// Bytes of a block.
pub const BLOCK_BYTES: FactKey = key("block_bytes", "Block size", &["block_size"]);
/// File system under the data.
pub const FILE_SYSTEM: FactKey = key("device_fs_type", "File system", &[]);
/// Kernel's name of the disk under the data.
pub const DISK: FactKey = key("device_disk", "Device", &[]);
/// Model of that disk.
pub const DISK_MODEL: FactKey = key("device_model", "Device model", &[]);
/// I/O scheduler of that disk.
pub const DISK_SCHEDULER: FactKey = key("device_scheduler", "Scheduler", &[]);

/// Facts that say how to read other facts; not shown.
pub const OF_READING: [FactKey; 3] = [SERVER_TOLD, WAITS_ARE, IN_PROCESS];

/// Who does the work of a database: the processes of its server, or the threads of sessions in this process.
#[must_use]
pub fn workers(facts: &[Fact]) -> &'static str {
    if IN_PROCESS.find(facts).is_some() { "session threads" } else { "server processes" }
}

/// What a database is to a run: a server, or a library in this process.
#[must_use]
pub fn kind(facts: &[Fact]) -> &'static str {
    if IN_PROCESS.find(facts).is_some() { "library" } else { "server" }
}

impl FactKey {
    /// Its value where it is known, under its own name before any other.
    #[must_use]
    pub fn find<'a>(&self, facts: &'a [Fact]) -> Option<&'a str> {
        let value = self.told(facts)?;
        (!value.starts_with("n/a")).then_some(value)
    }

    /// Its value, or `n/a (reason)`.
    #[must_use]
    pub fn told<'a>(&self, facts: &'a [Fact]) -> Option<&'a str> {
        let mut names = std::iter::once(&self.name).chain(self.also);
        let found = names.find_map(|name| facts.iter().find(|fact| fact.name == *name))?;
        Some(&found.value)
    }

    /// Its value for people: bytes as a size.
    #[must_use]
    pub fn shown(&self, facts: &[Fact]) -> Option<String> {
        let value = self.find(facts)?;
        match (self.name.ends_with("_bytes"), value.parse()) {
            (true, Ok(bytes)) => Some(size(bytes)),
            _ => Some(value.to_owned()),
        }
    }

    /// The fact with this value.
    #[must_use]
    pub fn fact(&self, value: impl ToString) -> Fact {
        Fact::new(self.name, value)
    }
}

/// A limit that a control group sets on the I/O of this process at a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoCap<'a> {
    /// The device's kernel name.
    pub disk: &'a str,
    /// `read_iops`, `write_iops`, `read_bytes` or `write_bytes`, each per second.
    pub kind: &'static str,
    /// So many of them.
    pub per_s: f64,
    /// The setting and the group.
    pub by: &'a str,
}

/// The limits among a host's facts: `io_cap_vda_read_iops` = `5000 by blkio throttle of /load`.
pub fn io_caps(facts: &[Fact]) -> impl Iterator<Item = IoCap<'_>> {
    const KINDS: [&str; 4] = ["read_iops", "write_iops", "read_bytes", "write_bytes"];
    facts.iter().filter_map(|fact| {
        let rest = fact.name.strip_prefix("io_cap_")?;
        let kind = KINDS.into_iter().find(|kind| rest.ends_with(kind))?;
        let disk = rest.strip_suffix(kind)?.strip_suffix('_')?;
        let (per_s, by) = fact.value.split_once(" by ")?;
        Some(IoCap { disk, kind, per_s: per_s.parse().ok()?, by })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_found_by_any_name_it_ever_had_and_its_own_comes_first() {
        let facts = [
            Fact::new("memory", "2 GB"),
            MEMORY_BYTES.fact(1_u64 << 30),
            Fact::new("virtualization", "kvm"),
            KERNEL.fact("n/a (absent)"),
        ];
        assert_eq!(MEMORY_BYTES.shown(&facts).as_deref(), Some("1 GiB"));
        assert_eq!(MEMORY_BYTES.shown(&facts[..1]).as_deref(), Some("2 GB"));
        assert_eq!(VIRTUALISATION.find(&facts), Some("kvm"));
        assert_eq!(KERNEL.find(&facts), None);
        assert_eq!(KERNEL.told(&facts), Some("n/a (absent)"));
        assert_eq!(CPUS.told(&facts), None);
    }
}
