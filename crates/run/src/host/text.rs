//! Parsers of `/proc` and `/sys` texts: pure, forgiving towards newer kernels (more
//! fields), and silent (`None`, absent key) about what is not there. Formats: kernel
//! `Documentation/filesystems/proc.rst`, `admin-guide/iostats.rst`, `accounting/psi.rst`.

use assay_measure::snapshot::{DiskReading, NetReading};
use std::collections::{BTreeMap, BTreeSet};

/// Sectors of `/proc/diskstats` are of this size on every device.
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

/// What `/proc/stat` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice; ns.
    pub cpu_ns: [u64; 10],
    /// CPUs online.
    pub cpus: u64,
    /// Context switches since boot.
    pub context_switches: Option<u64>,
    /// Runnable tasks.
    pub procs_running: Option<u64>,
}

/// `/proc/stat`; `None` without its `cpu` line.
#[must_use]
pub fn stat(text: &str, ns_per_tick: u64) -> Option<Stat> {
    let mut stat = Stat::default();
    let mut found = false;
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        match fields.next() {
            Some("cpu") => {
                found = true;
                for (ns, field) in stat.cpu_ns.iter_mut().zip(fields) {
                    *ns = field.parse::<u64>().ok()?.saturating_mul(ns_per_tick);
                }
            }
            Some("ctxt") => stat.context_switches = number(fields.next()),
            Some("procs_running") => stat.procs_running = number(fields.next()),
            Some(name) if name.starts_with("cpu") => stat.cpus += 1,
            _ => {}
        }
    }
    found.then_some(stat)
}

/// `/proc/diskstats`, all devices. Kernels before 4.18 and 5.5 lack the later fields.
#[must_use]
pub fn diskstats(text: &str) -> Vec<DiskReading> {
    text.lines().filter_map(disk).collect()
}

fn disk(line: &str) -> Option<DiskReading> {
    let mut fields = line.split_ascii_whitespace().skip(2);
    let name = fields.next()?.to_owned();
    let values: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let [
        reads,
        read_merges,
        read_sectors,
        read_ms,
        writes,
        write_merges,
        write_sectors,
        write_ms,
        in_flight,
        busy_ms,
        weighted_ms,
        ..,
    ] = values[..]
    else {
        return None;
    };
    let later = |at: usize| values.get(at).copied().unwrap_or(0);
    Some(DiskReading {
        name,
        reads,
        read_merges,
        read_bytes: read_sectors.saturating_mul(SECTOR_BYTES),
        read_ns: read_ms.saturating_mul(NS_PER_MS),
        writes,
        write_merges,
        write_bytes: write_sectors.saturating_mul(SECTOR_BYTES),
        write_ns: write_ms.saturating_mul(NS_PER_MS),
        in_flight,
        busy_ns: busy_ms.saturating_mul(NS_PER_MS),
        weighted_ns: weighted_ms.saturating_mul(NS_PER_MS),
        // Linux 4.18 added four fields of discards, 5.5 two of flushes.
        discard_ns: later(14).saturating_mul(NS_PER_MS),
        flushes: later(15),
        flush_ns: later(16).saturating_mul(NS_PER_MS),
        devices: 1,
    })
}

/// `/proc/meminfo`: `total`, `free`, `available`, `buffers`, `cached`, `dirty`,
/// `writeback`, `anon_huge_pages`, `swap_total`, `swap_free`; bytes.
#[must_use]
pub fn meminfo(text: &str) -> BTreeMap<String, u64> {
    const NAMES: [(&str, &str); 10] = [
        ("MemTotal", "total"),
        ("MemFree", "free"),
        ("MemAvailable", "available"),
        ("Buffers", "buffers"),
        ("Cached", "cached"),
        ("Dirty", "dirty"),
        ("Writeback", "writeback"),
        ("AnonHugePages", "anon_huge_pages"),
        ("SwapTotal", "swap_total"),
        ("SwapFree", "swap_free"),
    ];
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let wanted = NAMES.iter().find(|(theirs, _)| *theirs == name);
        let kib = number(value.split_ascii_whitespace().next());
        if let (Some((_, ours)), Some(kib)) = (wanted, kib) {
            found.insert((*ours).to_owned(), kib.saturating_mul(1024));
        }
    }
    found
}

/// `/proc/vmstat`: `pgmajfault`, `pswpin`, `pswpout`, in pages or events.
#[must_use]
pub fn vmstat(text: &str) -> BTreeMap<String, u64> {
    ["pgmajfault", "pswpin", "pswpout"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), keyed(text, name)?)))
        .collect()
}

/// `/proc/loadavg`: 1, 5 and 15 minutes.
#[must_use]
pub fn loadavg(text: &str) -> Option<[f64; 3]> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<f64>);
    Some([fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?])
}

/// Pressure-stall totals of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some task was stalled, ns.
    pub some_ns: Option<u64>,
    /// All tasks were stalled, ns.
    pub full_ns: Option<u64>,
}

/// `/proc/pressure/*`.
#[must_use]
pub fn pressure(text: &str) -> Pressure {
    let total = |kind: &str| {
        text.lines()
            .find(|line| line.split_ascii_whitespace().next() == Some(kind))?
            .split_ascii_whitespace()
            .find_map(|field| field.strip_prefix("total="))?
            .parse::<u64>()
            .ok()
            .map(|us| us.saturating_mul(1000))
    };
    Pressure { some_ns: total("some"), full_ns: total("full") }
}

/// `/proc/net/dev` without loopback.
#[must_use]
pub fn net_dev(text: &str) -> Vec<NetReading> {
    text.lines().filter_map(interface).collect()
}

fn interface(line: &str) -> Option<NetReading> {
    let (name, counters) = line.split_once(':')?;
    let name = name.trim();
    let values: Vec<u64> = counters.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    // Receive: bytes packets errs drop fifo frame compressed multicast; transmit: bytes packets errs drop ...
    if name == "lo" || values.len() < 12 {
        return None;
    }
    Some(NetReading {
        name: name.to_owned(),
        rx_bytes: values[0],
        rx_packets: values[1],
        tx_bytes: values[8],
        tx_packets: values[9],
        errors: values[2] + values[3] + values[10] + values[11],
    })
}

/// `/proc/self/io`: (read_bytes, write_bytes) that reached a block device.
#[must_use]
pub fn self_io(text: &str) -> (Option<u64>, Option<u64>) {
    (keyed(text, "read_bytes:"), keyed(text, "write_bytes:"))
}

/// Resident pages: second field of `/proc/self/statm`.
#[must_use]
pub fn statm_rss_pages(text: &str) -> Option<u64> {
    number(text.split_ascii_whitespace().nth(1))
}

/// The value after `key` in a text of `key value` lines.
#[must_use]
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        (fields.next() == Some(key)).then(|| number(fields.next())).flatten()
    })
}

/// This process's group in `/proc/self/cgroup`: of the v1 hierarchy with `controller`,
/// or of v2 (empty controller list) for "".
#[must_use]
pub fn cgroup_path<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

/// Most CPUs a list may name: beyond any machine, so that a damaged text costs no memory.
const CPUS_MAX: u32 = 65_536;

/// The CPUs of a kernel CPU list such as `0-3,6`; what is no list names none.
#[must_use]
pub fn cpu_list(text: &str) -> BTreeSet<u32> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>())
            && last < CPUS_MAX
        {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// The CPU list a thread may run on, of `/proc/PID/status`.
#[must_use]
pub fn cpus_allowed(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim()).filter(|list| !list.is_empty())
}

/// `cpu.max`: quota and period, as thousandths of a CPU; `Some(None)` is no limit.
#[must_use]
pub fn cpu_max_millis(text: &str) -> Option<Option<u64>> {
    let mut fields = text.split_ascii_whitespace();
    let (quota, period) = (fields.next()?, number(fields.next())?);
    if quota == "max" {
        return Some(None);
    }
    let quota = number(Some(quota))?;
    Some(Some(quota.checked_mul(1000)?.checked_div(period)?))
}

/// The fields of `/proc/PID/stat` after the name, which may hold blanks and brackets itself: field 3 first.
pub fn process_stat(text: &str) -> impl Iterator<Item = &str> {
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_ascii_whitespace()
}

/// The first value of `key` in `/proc/cpuinfo`.
#[must_use]
pub fn cpuinfo<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn number(field: Option<&str>) -> Option<u64> {
    field?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stat_reads_ticks_cpus_and_steal() {
        let text = "cpu  10 2 3 400 5 0 1 7 0 0\ncpu0 5 1 1 200 2 0 0 3 0 0\n\
                    cpu1 5 1 2 200 3 0 1 4 0 0\nintr 1 2\nctxt 99\nprocs_running 3\n";
        let stat = stat(text, 10_000_000).expect("a cpu line");
        assert_eq!(stat.cpu_ns[0], 100_000_000);
        assert_eq!(stat.cpu_ns[7], 70_000_000);
        assert_eq!((stat.cpus, stat.context_switches), (2, Some(99)));
        assert_eq!(stat.procs_running, Some(3));
        assert_eq!(super::stat("intr 5\n", 1), None);
    }

    #[test]
    fn diskstats_reads_old_and_new_lines() {
        let text = " 254 0 vda 10 1 80 5 20 2 160 7 3 11 12 6 0 8 2 4 9\n\
                    \x20  8 0 sda 1 0 8 1 0 0 0 0 0 1 1\n 7 0 loop0 1 2\n";
        let disks = diskstats(text);
        assert_eq!(disks.len(), 2);
        assert_eq!(disks[0].name, "vda");
        assert_eq!(disks[0].read_bytes, 80 * 512);
        assert_eq!((disks[0].write_ns, disks[0].in_flight), (7_000_000, 3));
        assert_eq!((disks[0].flushes, disks[0].flush_ns), (4, 9_000_000));
        assert_eq!((disks[0].discard_ns, disks[1].discard_ns), (2_000_000, 0));
        assert_eq!((disks[1].reads, disks[1].flushes), (1, 0));
    }

    #[test]
    fn memory_and_faults_are_bytes_and_counts() {
        let memory = meminfo("MemTotal:  1000 kB\nMemAvailable: 10 kB\nHugePages_Total: 5\n");
        assert_eq!(memory["total"], 1_024_000);
        assert_eq!(memory.len(), 2);
        let faults = vmstat("pgfault 8\npgmajfault 3\npswpin 0\n");
        assert_eq!(faults["pgmajfault"], 3);
        assert!(!faults.contains_key("pswpout"));
    }

    #[test]
    fn pressure_is_total_time_and_absent_where_the_kernel_has_none() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=5\n";
        assert_eq!(pressure(text).some_ns, Some(12_000));
        assert_eq!(pressure(text).full_ns, Some(5_000));
        assert_eq!(pressure(""), Pressure::default());
    }

    #[test]
    fn interfaces_leave_loopback_out() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n\
                    \x20 eth0:100 2 1 2 0 0 0 0 300 4 3 4 0 0 0 0\n";
        let nets = net_dev(text);
        assert_eq!(nets.len(), 1);
        assert_eq!((nets[0].rx_bytes, nets[0].tx_bytes, nets[0].errors), (100, 300, 10));
    }

    #[test]
    fn process_io_and_memory() {
        let io = "rchar: 5\nread_bytes: 4096\nwrite_bytes: 512\n";
        assert_eq!(self_io(io), (Some(4096), Some(512)));
        assert_eq!(statm_rss_pages("900 45 3 1 0 2 0\n"), Some(45));
        assert_eq!(loadavg("0.50 1.25 2.00 1/200 7\n"), Some([0.5, 1.25, 2.0]));
    }

    #[test]
    fn cpu_lists_affinity_and_quota() {
        let cpus = |text| cpu_list(text).into_iter().collect::<Vec<_>>();
        assert_eq!(cpus("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpus(""), [0_u32; 0]);
        assert_eq!(cpus("1-99999999,x,7"), [7]);
        let status = "Name:\tassay\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        assert_eq!(cpus_allowed(status), Some("0-1"));
        assert_eq!(cpus_allowed("Name:\tassay\n"), None);
        assert_eq!(cpu_max_millis("150000 100000\n"), Some(Some(1500)));
        assert_eq!(cpu_max_millis("max 100000\n"), Some(None));
        assert_eq!(cpu_max_millis("100000 0\n"), None);
        assert_eq!(cpu_max_millis("max\n"), None);
    }

    #[test]
    fn cgroup_membership_of_both_versions() {
        let text = "4:cpu,cpuacct:/docker/x\n0::/user.slice\n";
        assert_eq!(cgroup_path(text, ""), Some("/user.slice"));
        assert_eq!(cgroup_path(text, "cpu"), Some("/docker/x"));
        assert_eq!(cgroup_path(text, "memory"), None);
    }

    #[test]
    fn the_name_of_a_process_hides_no_field() {
        let found: Vec<&str> = process_stat("7 (a) b) S 1 2\n").collect();
        assert_eq!(found, ["S", "1", "2"]);
        assert_eq!(process_stat("7").next(), None);
    }

    #[test]
    fn the_first_cpu_names_the_model() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nprocessor\t: 1\n";
        assert_eq!(cpuinfo(text, "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(cpuinfo(text, "flags"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "[ -~\n\t]{0,400}") {
            let _ = stat(&text, 1);
            let _ = diskstats(&text);
            let _ = meminfo(&text);
            let _ = pressure(&text);
            let _ = net_dev(&text);
            let _ = process_stat(&text).count();
            let _ = cgroup_path(&text, "cpu");
            let _ = cpu_list(&text);
            let _ = cpus_allowed(&text);
            let _ = cpu_max_millis(&text);
            let _ = loadavg(&text);
        }
    }
}
