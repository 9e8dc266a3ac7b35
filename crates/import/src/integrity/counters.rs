//! Identities between imported counters, and between the rates that are printed of them.

use super::{MIB, Must, Printed, Side, judge};
use assay_measure::record::Identity;
use assay_measure::stats::{self, Stat};

/// Blocks that rode along without being counted: of genuine reports up to 4 % of all that did.
const ALONG_PPM: f64 = 100_000.0;

/// What the statistics of one snapshot may be apart: of genuine reports up to 300.
const SKEW_PPM: f64 = 500.0;

/// Two statistics of which the first may not exceed the second.
type Pair = (&'static str, &'static str, Stat, Stat);
/// Two rows of the load profile.
type Rows = (&'static str, &'static str, &'static str, &'static str);

/// Bytes and blocks.
const BYTES: [Pair; 2] = [
    ("I3", "physical read bytes = physical reads x block size", stats::PHYSICAL_READ_BYTES, stats::PHYSICAL_READS),
    ("I4", "physical write bytes = physical writes x block size", stats::PHYSICAL_WRITE_BYTES, stats::PHYSICAL_WRITES),
];

/// The same of the load profile.
const MEGABYTES: [Rows; 2] = [
    ("I3b", "Read IO (MB) = Physical read (blocks) x block size, per second", "Read IO (MB)", "Physical read (blocks)"),
    (
        "I4b",
        "Write IO (MB) = Physical write (blocks) x block size, per second",
        "Write IO (MB)",
        "Physical write (blocks)",
    ),
];

/// Wholes and their two parts, with the difference that is allowed in parts per million, or at least five.
const PARTS: [(&str, &str, Stat, [Stat; 2], f64); 3] = [
    (
        "I1",
        "physical reads = cache + direct",
        stats::PHYSICAL_READS,
        [stats::PHYSICAL_READS_CACHE, stats::PHYSICAL_READS_DIRECT],
        0.0,
    ),
    (
        "I2",
        "physical writes = from cache + direct",
        stats::PHYSICAL_WRITES,
        [stats::PHYSICAL_WRITES_FROM_CACHE, stats::PHYSICAL_WRITES_DIRECT],
        0.0,
    ),
    (
        "I5",
        "session logical reads = db block gets + consistent gets",
        stats::SESSION_LOGICAL_READS,
        [stats::DB_BLOCK_GETS, stats::CONSISTENT_GETS],
        10.0,
    ),
];

const AT_MOST: [Pair; 7] = [
    ("I6a", "read requests of data <= physical reads", stats::PHYSICAL_READ_REQUESTS, stats::PHYSICAL_READS),
    ("I6c", "write requests of data <= physical writes", stats::PHYSICAL_WRITE_REQUESTS, stats::PHYSICAL_WRITES),
    (
        "I7a",
        "read requests of data <= all read requests",
        stats::PHYSICAL_READ_REQUESTS,
        stats::PHYSICAL_READ_TOTAL_REQUESTS,
    ),
    ("I7b", "read bytes of data <= all bytes read", stats::PHYSICAL_READ_BYTES, stats::PHYSICAL_READ_TOTAL_BYTES),
    (
        "I7c",
        "write requests of data <= all write requests",
        stats::PHYSICAL_WRITE_REQUESTS,
        stats::PHYSICAL_WRITE_TOTAL_REQUESTS,
    ),
    ("I7d", "write bytes of data <= all bytes written", stats::PHYSICAL_WRITE_BYTES, stats::PHYSICAL_WRITE_TOTAL_BYTES),
    (
        "I12",
        "physical writes non checkpoint <= physical writes",
        stats::PHYSICAL_WRITES_NON_CHECKPOINT,
        stats::PHYSICAL_WRITES,
    ),
];

const RATES_AT_MOST: [Rows; 2] = [
    ("I6d", "Read IO requests <= Physical read (blocks), per second", "Read IO requests", "Physical read (blocks)"),
    ("I6e", "Write IO requests <= Physical write (blocks), per second", "Write IO requests", "Physical write (blocks)"),
];

const OF_THE_PROFILE: [(&str, &str, usize); 2] = [
    ("I7e", "Database Requests <= Total Requests of the I/O profile, reads", 0),
    ("I7f", "Database Requests <= Total Requests of the I/O profile, writes", 1),
];

pub(super) fn counters(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let block = p.block().filter(|_| !p.has_several_block_sizes());
    // The statistics of a snapshot are read one after the other while the instance works on.
    let skew = |side: Option<Side>| side.map_or(0.0, |side| side.share(SKEW_PPM));
    let two = block.map_or(0.0, |block| 2.0 * block);
    for (id, text, bytes, count) in BYTES {
        let blocks = || Some(p.total(count)?.times(block?));
        judge(all, id, text, Must::Equal, p.total(bytes).zip(blocks()), two.max(skew(p.total(bytes))));
    }
    for (id, text, mib, count) in MEGABYTES {
        let blocks = || Some(p.load(count, "per_s")?.times(block? / MIB));
        let sides = p.load(mib, "per_s").zip(blocks());
        judge(all, id, text, Must::Equal, sides, 0.05);
    }
    for (id, text, whole, parts, ppm) in PARTS {
        let sum = || Some(p.total(parts[0])?.plus(p.total(parts[1])?));
        let sides = p.total(whole).zip(sum());
        let allowed = sides.map_or(0.0, |(whole, _)| whole.share(ppm));
        let allowed = allowed.max(5.0).max(skew(p.total(whole)));
        judge(all, id, text, Must::Equal, sides, allowed);
    }
}

pub(super) fn requests(p: &Printed<'_>, all: &mut Vec<Identity>) {
    for (id, text, left, right) in AT_MOST {
        let sides = p.total(left).zip(p.total(right));
        judge(all, id, text, Must::NotAbove, sides, 0.0);
    }
    let text = "physical reads - read requests <= prefetched + direct blocks";
    // On storage that answers part of a request from its cache, blocks ride along that no statistic names.
    let allowed = alongside(p).map_or(0.0, |(along, _)| along.share(ALONG_PPM));
    judge(all, "I6b", text, Must::NotAbove, alongside(p), allowed);
    for (id, text, requests, blocks) in RATES_AT_MOST {
        let sides = p.load(requests, "per_s").zip(p.load(blocks, "per_s"));
        judge(all, id, text, Must::NotAbove, sides, 0.0);
    }
    for (id, text, way) in OF_THE_PROFILE {
        let rows = p.io_profile("Database Requests");
        let sides = rows.zip(p.io_profile("Total Requests"));
        let sides = sides.map(|(data, all)| (data[way], all[way]));
        judge(all, id, text, Must::NotAbove, sides, 0.1);
    }
    let least = || {
        let least = p.load("Read IO requests", "per_s")?;
        let least = least.times(p.block()? / MIB);
        Some((least, p.load("Read IO (MB)", "per_s")?))
    };
    let allowed = least().map_or(0.0, |(left, _)| left.share(1000.0) + 0.05);
    let text = "read requests x block size <= Read IO (MB), per second";
    judge(all, "I30", text, Must::NotAbove, least(), allowed);
}

/// Blocks that rode along in requests of several, and those that may have.
fn alongside(p: &Printed<'_>) -> Option<(Side, Side)> {
    let reads = p.total(stats::PHYSICAL_READS)?;
    let requests = p.total(stats::PHYSICAL_READ_REQUESTS)?;
    let prefetched = p.total(stats::PHYSICAL_READS_CACHE_PREFETCH)?;
    let direct = p.total(stats::PHYSICAL_READS_DIRECT)?;
    Some((reads.plus(requests.times(-1.0)), prefetched.plus(direct)))
}
