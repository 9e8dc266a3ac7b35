//! Frozen readings of a storage probe, shared by the tests of all its faces.
//!
//! Two report groups: `mixed`, two clones of 70/30 random reads and writes through io_uring at
//! depth 8, and `redo`, one clone that writes 4 KiB with fdatasync and a rate. Four measured
//! seconds each. Latencies are a fixed sequence, so that every figure is reproducible.

use crate::readings::{
    CloneReading, JobLabel, JobReading, Latency, Samples, SecondReading, StorageReadings, Way, WayReading, depth_slot,
};
use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{DiskReading, Fact, HostReading};

/// Measured seconds of each group.
pub(crate) const SECONDS: u64 = 4;
/// I/Os a second and direction of one clone of `mixed`: reads, writes.
pub(crate) const MIXED_IOS: [u64; 2] = [700, 300];
/// Writes a second of `redo`.
pub(crate) const REDO_IOS: u64 = 200;
/// Block of `mixed`, bytes.
pub(crate) const MIXED_BLOCK: u64 = 8192;
/// Block of `redo`, bytes.
pub(crate) const REDO_BLOCK: u64 = 4096;
/// fio's default list.
pub(crate) const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The whole frozen run.
pub fn readings() -> StorageReadings {
    let mut clones = vec![mixed_clone(0), mixed_clone(1), redo_clone()];
    for clone in &mut clones {
        for way in &clone.ways {
            for (slot, n) in way.clat.histogram.sparse() {
                let (low, width) = assay_measure::histogram::slot_low_and_width_ns(slot as usize);
                clone.clat_families.record_n(low + width / 2, n);
            }
        }
    }
    StorageReadings {
        fio_version: "assay-0.0.0".to_owned(),
        global_options: options(&[("ioengine", Some("io_uring")), ("direct", Some("1")), ("time_based", None)]),
        jobs: vec![mixed_job(), redo_job()],
        seconds: seconds(&clones),
        clones,
        disks: vec![disk(2 * SECONDS)],
        host: Some(HostReading { hosts: 1, cpus: Some(2), ..HostReading::default() }),
        facts: vec![
            fact("file system", "ext4"),
            fact("device", "vda"),
            fact("scheduler", "none"),
            fact("kernel", "6.1.0"),
        ],
        timestamp_ms: 1_600_000_008_123,
        started_ms: 1_600_000_000_000,
        elapsed_ns: 2 * SECONDS * NS_PER_S + 120_000_000,
        process_cpu_ns: 620_000_000,
        ..StorageReadings::default()
    }
}

/// Readings of one job with one clone, to be filled by a test.
pub fn one_clone(label: JobLabel, clone: CloneReading) -> StorageReadings {
    StorageReadings {
        fio_version: "assay-0.0.0".to_owned(),
        jobs: vec![JobReading {
            name: "one".to_owned(),
            label,
            timing: "per batch".to_owned(),
            ..JobReading::default()
        }],
        elapsed_ns: clone.runtime_ns,
        clones: vec![clone],
        timestamp_ms: 1_600_000_000_000,
        started_ms: 1_600_000_000_000,
        ..StorageReadings::default()
    }
}

/// A label with fio's defaults for `rw` through `ioengine`.
pub fn label(rw: &str, ioengine: &str, iodepth: u32, numjobs: u32, block: u64) -> JobLabel {
    JobLabel {
        rw: rw.to_owned(),
        block_bytes: [(block, block); 3],
        ioengine: ioengine.to_owned(),
        iodepth,
        numjobs,
        synchronous: ioengine == "psync",
        clat_percentiles: true,
        percentiles: PERCENTILES.to_vec(),
        significant_figures: 4,
        ..JobLabel::default()
    }
}

/// Options as typed.
pub fn options(given: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    let owned = given.iter();
    owned.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect()
}

/// The `k`-th latency of stream `stream`, ns: a body around 100 us with a tail to some ms.
pub fn latency_ns(stream: u64, k: u64) -> Ns {
    // Weyl's sequence: equidistributed, the same everywhere.
    let u = (stream + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_mul(k + 1) >> 44;
    match u % 1000 {
        0..=1 => 3_000_000 + u * 3,
        2..=19 => 400_000 + u / 2,
        _ => 80_000 + u % 60_000,
    }
}

fn fact(name: &str, value: &str) -> Fact {
    Fact { name: name.to_owned(), value: value.to_owned() }
}

fn mixed_job() -> JobReading {
    let mut label = label("randrw", "io_uring", 8, 2, MIXED_BLOCK);
    label.group_reporting = true;
    label.description = Some("data files".to_owned());
    let effective = [("rw", "randrw"), ("iodepth", "8"), ("numjobs", "2"), ("bs", "8192")];
    JobReading {
        name: "mixed".to_owned(),
        group: 0,
        options: options(&[
            ("name", Some("mixed")),
            ("rw", Some("randrw")),
            ("rwmixread", Some("70")),
            ("bs", Some("8k")),
            ("iodepth", Some("8")),
            ("numjobs", Some("2")),
            ("runtime", Some("4")),
            ("group_reporting", None),
            ("description", Some("data files")),
        ]),
        label,
        effective: strings(&effective),
        files: vec!["/data/mixed.0.0".to_owned(), "/data/mixed.1.0".to_owned()],
        region_bytes: 64 << 20,
        features: vec!["registered buffers".to_owned(), "registered files".to_owned()],
        refused: vec![("no sqarray".to_owned(), "the kernel is older than 6.6".to_owned())],
        timing: "per batch".to_owned(),
        seed: 42,
        ..JobReading::default()
    }
}

fn redo_job() -> JobReading {
    let mut label = label("write", "psync", 1, 1, REDO_BLOCK);
    label.rate_iops[Way::Write.index()] = Some(REDO_IOS as f64);
    let effective = [("rw", "write"), ("iodepth", "1"), ("numjobs", "1"), ("bs", "4096")];
    JobReading {
        name: "redo".to_owned(),
        group: 1,
        options: options(&[
            ("name", Some("redo")),
            ("stonewall", None),
            ("ioengine", Some("psync")),
            ("rw", Some("write")),
            ("fdatasync", Some("1")),
            ("rate_iops", Some("200")),
            ("runtime", Some("4")),
        ]),
        label,
        effective: strings(&effective),
        files: vec!["/data/redo.0.0".to_owned()],
        region_bytes: 16 << 20,
        timing: "per I/O".to_owned(),
        seed: 43,
        ..JobReading::default()
    }
}

fn strings(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    let owned = pairs.iter();
    owned.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn samples(values: &[f64]) -> Samples {
    let mut samples = Samples::default();
    values.iter().for_each(|&value| samples.take(value));
    samples
}

fn mixed_clone(clone: u32) -> CloneReading {
    let mut reading = CloneReading {
        job: 0,
        clone,
        pid: 4000 + clone,
        runtime_ns: SECONDS * NS_PER_S + 412_345,
        user_ns: 40_000_000,
        system_ns: 160_000_000,
        context_switches: 3_900,
        minor_faults: 12,
        kernel_entries: 4_010,
        in_flight_ns: 8 * u128::from(SECONDS * NS_PER_S),
        ..CloneReading::default()
    };
    for (way, per_second) in MIXED_IOS.into_iter().enumerate() {
        let ios = per_second * SECONDS;
        let stream = u64::from(clone) * 2 + way as u64;
        reading.ways[way] = way_reading(stream, ios, MIXED_BLOCK, Some(4_200));
        reading.ways[way].runtime_ns = reading.runtime_ns - 100_000 * way as u64;
        let kib = (per_second * MIXED_BLOCK / 1024) as f64;
        let around = [kib - 16.0, kib + 24.0, kib, kib - 8.0, kib, kib, kib, kib + 8.0];
        reading.ways[way].bw = samples(&around);
        reading.ways[way].iops = samples(&around.map(|kib| kib / 8.0));
    }
    let all = (MIXED_IOS[0] + MIXED_IOS[1]) * SECONDS;
    reading.depths[depth_slot(8)] = all - 7;
    for depth in 1..8 {
        reading.depths[depth_slot(depth)] += 1;
    }
    reading.submits[1] = all;
    reading.completes[0] = 10;
    reading.completes[1] = all - 2;
    reading.completes[2] = 2;
    reading
}

fn redo_clone() -> CloneReading {
    let ios = REDO_IOS * SECONDS;
    let mut reading = CloneReading {
        job: 1,
        pid: 4100,
        runtime_ns: SECONDS * NS_PER_S + 3_000_001,
        user_ns: 20_000_000,
        system_ns: 60_000_000,
        context_switches: 1_700,
        major_faults: 1,
        minor_faults: 9,
        kernel_entries: 2 * ios,
        in_flight_ns: u128::from(SECONDS * NS_PER_S / 40),
        ..CloneReading::default()
    };
    let mut write = way_reading(9, ios, REDO_BLOCK, None);
    write.runtime_ns = reading.runtime_ns;
    write.bw = samples(&[800.0; 8]);
    write.iops = samples(&[200.0; 8]);
    let mut response = Latency::new();
    for k in 0..ios {
        response.record(latency_ns(9, k) + 5_000);
        reading.sync.record(900_000 + latency_ns(10, k));
    }
    write.response = Some(response);
    reading.ways[Way::Write.index()] = write;
    reading.depths[0] = ios;
    reading.submits[1] = ios;
    reading.completes[1] = ios;
    reading
}

fn way_reading(stream: u64, ios: u64, block: u64, slat_ns: Option<Ns>) -> WayReading {
    let mut way = WayReading { bytes: ios * block, ios, ..WayReading::default() };
    for k in 0..ios {
        let clat = latency_ns(stream, k);
        // Without slat fio still counts the time around the call in `lat`.
        let before = slat_ns.map_or(60, |ns| ns + k % 900);
        if slat_ns.is_some() {
            way.slat.record(before);
        }
        way.clat.record(clat);
        way.lat.record(before + clat);
    }
    way
}

/// Each group's seconds: the clones' latencies dealt evenly.
fn seconds(clones: &[CloneReading]) -> Vec<SecondReading> {
    let of_group = |group: u32| clones.iter().filter(move |clone| clone.job == group as usize);
    let mut seconds = Vec::new();
    for group in 0..2 {
        for second in 1..=SECONDS {
            let mut reading = SecondReading {
                group,
                end_ns: second * NS_PER_S,
                length_ns: NS_PER_S,
                disks: vec![disk(1)],
                ..SecondReading::default()
            };
            for way in Way::ALL.map(Way::index) {
                for clone in of_group(group) {
                    let whole = &clone.ways[way];
                    reading.ios[way] += whole.ios / SECONDS;
                    reading.bytes[way] += whole.bytes / SECONDS;
                    reading.lat[way].merge(&part(&whole.lat.histogram, second));
                    if let Some(response) = &whole.response {
                        let mine = reading.response.get_or_insert_default();
                        mine.merge(&part(&response.histogram, second));
                    }
                }
            }
            if group == 1 {
                reading.syncs = REDO_IOS;
            }
            seconds.push(reading);
        }
    }
    seconds
}

/// One second's share of a histogram: every `SECONDS`-th duration, by rank.
fn part(whole: &Histogram, second: u64) -> Histogram {
    let mut part = Histogram::default();
    let mut rank = 0;
    for (slot, n) in whole.sparse() {
        let (low, width) = assay_measure::histogram::slot_low_and_width_ns(slot as usize);
        let due = (rank..rank + n).filter(|rank| rank % SECONDS == second - 1);
        part.record_n(low + width / 2, due.count() as u64);
        rank += n;
    }
    part
}

/// What the device did in `seconds` seconds.
fn disk(seconds: u64) -> DiskReading {
    DiskReading {
        name: "vda".to_owned(),
        reads: 1400 * seconds,
        read_merges: 3 * seconds,
        read_bytes: 1400 * 8192 * seconds,
        read_ns: 150_000_000 * seconds,
        writes: 620 * seconds,
        write_merges: seconds,
        write_bytes: 620 * 8192 * seconds,
        write_ns: 70_000_000 * seconds,
        busy_ns: 640_000_000 * seconds,
        weighted_ns: 221_000_000 * seconds,
        flushes: 200 * seconds,
        flush_ns: 90_000_000 * seconds,
        ..DiskReading::default()
    }
}
