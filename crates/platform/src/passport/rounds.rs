//! The tests of a round, and the figures that are taken from it.

use crate::finished::Finished;
use crate::plan::{Against, CLOCK, CPU, Job, MEMORY, NETWORK, ROUND_TRIPS, Test, jobs_words};
use assay_measure::cpu;
use assay_measure::record::Record;
use std::path::Path;

/// Rounds of a passport. Six against six others tell a change whose rounds do not overlap with an error of 2 in 924.
pub const ROUNDS: usize = 6;
/// What all rounds take unless told otherwise, s.
pub const USUAL_S: u64 = 90;
/// With less a round is too short for its tests, s.
pub const LEAST_S: u64 = 40;
/// The test of the storage.
const STORAGE: &str = "storage";

/// A figure of a round.
pub(super) struct Row {
    /// Its name, which ends in its unit.
    pub(super) what: &'static str,
    /// In words, before and after its value.
    pub(super) unit: &'static str,
    test: &'static str,
    key: &'static str,
    scope: &'static str,
    pub(super) is_higher_better: bool,
    /// A change below this part is none, however regular. Decided here: boxes of one kind differ by less.
    pub(super) least: f64,
}

const fn row(
    what: &'static str,
    unit: &'static str,
    [test, key, scope]: [&'static str; 3],
    is_higher_better: bool,
    least: f64,
) -> Row {
    Row { what, unit, test, key, scope, is_higher_better, least }
}

pub(super) const ROWS: [Row; 14] = [
    row("commits_per_s", "durable 4 KiB writes/s by one session", [STORAGE, "write_ios_per_s", "commit"], true, 0.3),
    row("read_us_p50", "us a read of 8 KiB at depth 1", [STORAGE, "read_lat_us_p50", "one"], false, 0.3),
    row("reads_per_s", "reads/s of 8 KiB at depth 32", [STORAGE, "read_ios_per_s", "deep"], true, 0.25),
    row("scan_mib_per_s", "MiB/s read in 1 MiB blocks", [STORAGE, "read_mib_per_s", "scan"], true, 0.25),
    row("writes_per_s", "writes/s of 16 KiB at depth 32", [STORAGE, "write_ios_per_s", "writes"], true, 0.25),
    row("btree_lookups_per_s", "lookups/s in an index of 16 MiB", [CPU, "btree_16m_lookups_per_s", ""], true, 0.2),
    row("tuple_rows_per_s", "rows/s unpacked", [CPU, "tuple_rows_per_s", ""], true, 0.2),
    // A quota lets a short test run as fast as ever, and then takes the CPUs away.
    row("cpu_given_pct", "% of the CPU time that its tests asked for", [CPU, "given_pct", ""], true, 0.2),
    row("cpu_mhz", "MHz measured", [CPU, "effective_mhz", ""], true, 0.15),
    row("memory_gb_per_s", "GB/s read from memory", [MEMORY, "read_gb_per_s_p50", ""], true, 0.2),
    row("memory_ns", "ns a read of memory", [MEMORY, "latency_huge_ns_p50", ""], false, 0.25),
    row("clock_read_ns", "ns a read of the clock", [CLOCK, "clock_read_ns_p50", ""], false, 0.5),
    row("round_trip_us_p50", "us a round trip to the peer", [ROUND_TRIPS, "rtt_us_p50", ""], false, 0.5),
    row("network_bits_per_s", "bits/s to the peer", [NETWORK, "tcp_throughput_bits_per_s", ""], true, 0.25),
];

impl Row {
    /// The key and the scope of its metric.
    #[cfg(test)]
    pub(super) fn source(&self) -> (&'static str, &'static str) {
        (self.key, self.scope)
    }
}

/// Shares of a round, of thirteen, besides the peer's.
const STORAGE_SHARE: f64 = 6.0 / 13.0;
const COMPUTED_SHARE: f64 = 3.0 / 13.0;
/// The jobs of the storage's test. Reads come first, so that the file is written whole before it is read.
const JOBS: [(&str, &str, &str, u32); 5] = [
    ("one", "randread", "8k", 1),
    ("deep", "randread", "8k", 32),
    ("scan", "read", "1m", 8),
    ("writes", "randwrite", "16k", 32),
    ("commit", "write", "4k", 1),
];

/// The tests of one of [`ROUNDS`] that take so many seconds together.
#[must_use]
pub fn tests(seconds: u64, file: &Path, file_bytes: u64, has_peer: bool) -> Vec<Test> {
    let round_s = seconds as f64 / ROUNDS as f64 - if has_peer { 2.0 } else { 0.0 };
    let job_s = round_s * STORAGE_SHARE / JOBS.len() as f64;
    let jobs = JOBS.map(|(name, rw, block, depth)| Job { name: name.to_owned(), rw, block, depth });
    let mut words = jobs_words(file, file_bytes, &format!("{}ms", (1e3 * job_s).round()), &jobs);
    words.push("--fdatasync=1".to_owned());
    let test = |name, probe, against, seconds: f64| Test {
        name,
        probe,
        about: "",
        against,
        seconds: (seconds.round() as u64).max(1),
        words: Vec::new(),
    };
    let computed_s = round_s * COMPUTED_SHARE;
    let mut all = vec![
        Test { words, ..test(STORAGE, "io", Against::Place, round_s * STORAGE_SHARE) },
        test(CPU, "cpu", Against::Host, computed_s),
        test(MEMORY, "memory", Against::Host, computed_s),
        test(CLOCK, "clock", Against::Host, 1.0),
    ];
    if has_peer {
        all.push(test(ROUND_TRIPS, "ping", Against::Peer, 1.0));
        all.push(test(NETWORK, "net", Against::Peer, 1.0));
    }
    all
}

/// The value of a figure in a round, and the largest share of it that others may have taken; none where its test has none.
pub(super) fn value(row: &Row, round: &[Finished]) -> Option<(f64, f64)> {
    let test = Finished::of(round, row.test)?;
    let value = test.value(row.key, row.scope).value()?;
    Some((value, test.record.as_ref().map_or(0.0, lost_share)))
}

/// Whether a round of the rows has a test for this one.
pub(super) fn is_planned(row: &Row, has_peer: bool) -> bool {
    has_peer || ![ROUND_TRIPS, NETWORK].contains(&row.test)
}

/// Others on a device take no more of it than this. Decided here: nobody tells how much it was.
const DEVICE_SHARE: f64 = 0.9;

/// What other processes may have taken that had much of the CPUs, or used the device (the storage probe's A17).
fn lost_share(record: &Record) -> f64 {
    let of_device = if record.doubts().any(|(id, _)| id == "A17") { DEVICE_SHARE } else { 0.0 };
    cpu::lost_share(record).max(of_device)
}
