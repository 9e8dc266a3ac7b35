//! Readings whose every figure can be checked by hand: closed loops at a given rate a second, so
//! that Little's law holds by construction.

use crate::readings::{CloneReading, JobLabel, JobReading, SecondReading, StorageReadings, Way, depth_slot};
use assay_measure::clock::NS_PER_S;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{DiskReading, Fact, HostReading, RunData};

/// One job of one clone.
#[derive(Clone)]
pub(crate) struct Loop {
    pub(crate) name: &'static str,
    pub(crate) rw: &'static str,
    pub(crate) way: Way,
    pub(crate) depth: u32,
    pub(crate) block: u64,
    /// I/Os of each second.
    pub(crate) per_second: Vec<u64>,
    pub(crate) options: Vec<(&'static str, &'static str)>,
}

impl Loop {
    pub(crate) fn read(name: &'static str, depth: u32, per_second: &[u64]) -> Self {
        Self {
            name,
            rw: "randread",
            way: Way::Read,
            depth,
            block: 8192,
            per_second: per_second.to_vec(),
            options: vec![("direct", "1"), ("ioengine", "io_uring")],
        }
    }

    pub(crate) fn write(name: &'static str, depth: u32, per_second: &[u64]) -> Self {
        Self { rw: "randwrite", way: Way::Write, ..Self::read(name, depth, per_second) }
    }
}

/// Time from the preparation of a request to its submission.
pub(crate) const SLAT_NS: u64 = 10_000;

/// Each loop is a group of its own, one after the other.
pub(crate) fn readings(loops: &[Loop]) -> StorageReadings {
    let mut all = StorageReadings {
        host: Some(HostReading {
            hosts: 1,
            cpus: Some(4),
            cpu_ns: Some([10, 0, 20, 70, 0, 0, 0, 0, 0, 0].map(|pct: u64| pct * NS_PER_S)),
            ..HostReading::default()
        }),
        facts: facts(&[
            ("kernel", "6.1.0"),
            ("memory_bytes", "8589934592"),
            ("fs_type", "ext4"),
            ("mount_options", "rw,relatime"),
            ("is_tmpfs", "no"),
            ("disk", "vda"),
            ("scheduler", "none"),
            ("write_cache", "write back"),
        ]),
        started_ms: 1_600_000_000_000,
        timestamp_ms: 1_600_000_060_000,
        ..StorageReadings::default()
    };
    let mut device = disk(0, 0, 0);
    for (at, one) in loops.iter().enumerate() {
        add(&mut all, at, one, &mut device);
    }
    all.disks = vec![device];
    all.process_cpu_ns = all.clones.iter().map(|c| c.user_ns + c.system_ns).sum::<u64>() + 5_000_000;
    all
}

fn add(all: &mut StorageReadings, at: usize, one: &Loop, device: &mut DiskReading) {
    let way = one.way.index();
    let mut clone = CloneReading {
        job: at,
        pid: 4000 + at as u32,
        runtime_ns: one.per_second.len() as u64 * NS_PER_S,
        user_ns: one.per_second.len() as u64 * 100_000_000,
        system_ns: one.per_second.len() as u64 * 200_000_000,
        ..CloneReading::default()
    };
    for (second, ios) in one.per_second.iter().enumerate() {
        let mut reading = SecondReading {
            group: at as u32,
            end_ns: (second as u64 + 1) * NS_PER_S,
            length_ns: NS_PER_S,
            disks: vec![disk(way, *ios, one.block)],
            ..SecondReading::default()
        };
        reading.ios[way] = *ios;
        reading.bytes[way] = ios * one.block;
        let lat_ns = (u64::from(one.depth) * NS_PER_S).checked_div(*ios).unwrap_or(0);
        let clat_ns = lat_ns.saturating_sub(SLAT_NS);
        let mut lat = Histogram::new();
        // Half a tenth quicker, half a tenth slower.
        for (n, clat_ns) in [(ios / 2, clat_ns - clat_ns / 10), (ios / 2, clat_ns + clat_ns / 10), (ios % 2, clat_ns)] {
            lat.record_n(SLAT_NS + clat_ns, n);
            let reading = &mut clone.ways[way];
            reading.slat.record_n(SLAT_NS, n);
            reading.clat.record_n(clat_ns, n);
            reading.lat.record_n(SLAT_NS + clat_ns, n);
            clone.in_flight_ns += u128::from(n) * u128::from(SLAT_NS + clat_ns);
        }
        reading.lat[way] = lat;
        all.seconds.push(reading);
        merge(device, &disk(way, *ios, one.block));
    }
    let ios: u64 = one.per_second.iter().sum();
    clone.ways[way].ios = ios;
    clone.ways[way].bytes = ios * one.block;
    clone.ways[way].runtime_ns = clone.runtime_ns;
    clone.depths[depth_slot(one.depth)] = ios;
    clone.submits[1] = ios;
    clone.completes[1] = ios;
    clone.kernel_entries = ios / 4;
    clone.context_switches = ios / 2;
    all.elapsed_ns += clone.runtime_ns;
    all.jobs.push(job(at, one));
    all.clones.push(clone);
}

fn job(at: usize, one: &Loop) -> JobReading {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), Some((*value).to_owned()));
    JobReading {
        name: one.name.to_owned(),
        group: at as u32,
        options: one.options.iter().map(owned).collect(),
        label: JobLabel {
            rw: one.rw.to_owned(),
            block_bytes: [(one.block, one.block); 3],
            ioengine: "io_uring".to_owned(),
            iodepth: one.depth,
            numjobs: 1,
            ..JobLabel::default()
        },
        effective: [("rw", one.rw.to_owned()), ("iodepth", one.depth.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        files: vec![format!("/data/{}", one.name)],
        region_bytes: 64 << 30,
        features: vec!["registered buffers".to_owned()],
        refused: vec![("DEFER_TASKRUN".to_owned(), "the kernel is older than 6.1".to_owned())],
        timing: "per batch".to_owned(),
        seed: 42 + at as u64,
        ..JobReading::default()
    }
}

pub(crate) fn facts(pairs: &[(&str, &str)]) -> Vec<Fact> {
    let fact = |(name, value): &(&str, &str)| Fact { name: (*name).to_owned(), value: (*value).to_owned() };
    pairs.iter().map(fact).collect()
}

fn disk(way: usize, ios: u64, block: u64) -> DiskReading {
    let (reads, writes) = if way == 0 { (ios, 0) } else { (0, ios) };
    DiskReading {
        name: "vda".to_owned(),
        reads,
        read_bytes: reads * block,
        read_ns: reads * 90_000,
        writes,
        write_bytes: writes * block,
        write_ns: writes * 90_000,
        busy_ns: 950_000_000 * u64::from(ios > 0),
        weighted_ns: ios * 90_000,
        ..DiskReading::default()
    }
}

fn merge(into: &mut DiskReading, other: &DiskReading) {
    into.reads += other.reads;
    into.read_bytes += other.read_bytes;
    into.read_ns += other.read_ns;
    into.writes += other.writes;
    into.write_bytes += other.write_bytes;
    into.write_ns += other.write_ns;
    into.busy_ns += other.busy_ns;
    into.weighted_ns += other.weighted_ns;
}

/// A rate of `ios` a second with a little even scatter, `seconds` long: fixed, so that a report of it is.
pub(crate) fn around(ios: u64, seconds: usize) -> Vec<u64> {
    let scatter = |second: usize| {
        let u = (second as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        ios + ios * u / 1024 / 10 - ios / 20
    };
    (0..seconds).map(scatter).collect()
}

pub(crate) fn labels() -> RunData {
    RunData {
        run_id: "0123abcd".to_owned(),
        workload: "io".to_owned(),
        engine: "probe".to_owned(),
        version: "0.1.0".to_owned(),
        started: "2026-11-21T03:00:00Z".to_owned(),
        host: facts(&[("kernel", "6.1.0"), ("memory_bytes", "8589934592")]),
        ..RunData::default()
    }
}
