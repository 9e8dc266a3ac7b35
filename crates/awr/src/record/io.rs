//! IO profile and IOStat rows of the window.

use crate::deltas::disk_deltas;
use crate::deltas::{Deltas, NO_WINDOW};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::record::{Figure, IoProfileRow, IoRow, PathRow};
use assay_measure::snapshot::{DiskReading, IoReading};

const MIB: f64 = 1_048_576.0;

/// Where nobody tells requests apart by their size.
const NOT_BY_SIZE: &str = "unknowable: requests are not counted by size";

/// One reading as a row of the record. Who counts its own requests knows their sizes, a server's views do not.
pub(crate) fn row(io: &IoReading, source: &str) -> IoRow {
    let known = |column: &str, n: u64| match io.na.get(column) {
        Some(reason) => Figure::na(reason),
        None => Figure::Count(n),
    };
    let is_ours = source == OWN;
    let by_size = |column: &str, n: u64| {
        if is_ours || io.na.contains_key(column) { known(column, n) } else { Figure::na(NOT_BY_SIZE) }
    };
    let (small_reads, large_reads) = (io.small_read_requests, io.large_read_requests);
    let (small_writes, large_writes) = (io.small_write_requests, io.large_write_requests);
    IoRow {
        function: io.function.clone(),
        file_type: io.file_type.clone(),
        read_requests_count: known("read_requests", small_reads.saturating_add(large_reads)),
        small_read_requests_count: by_size("read_requests", small_reads),
        large_read_requests_count: by_size("read_requests", large_reads),
        read_bytes: known("read_bytes", io.read_bytes),
        write_requests_count: known("write_requests", small_writes.saturating_add(large_writes)),
        small_write_requests_count: by_size("write_requests", small_writes),
        large_write_requests_count: by_size("write_requests", large_writes),
        write_bytes: known("write_bytes", io.write_bytes),
        waits_count: known("waits", io.waits),
        wait_us: known("wait_ns", io.wait_ns).scaled(1e-3),
        source: source.to_owned(),
    }
}

/// The source of an engine's own counters.
const OWN: &str = "sysstat";

/// Where the rows of a function were read.
fn source(deltas: &Deltas<'_>, function: &str) -> String {
    let sources = &deltas.data.end.stats.sources;
    let said = sources.get(&format!("io {function}")).or_else(|| sources.get("io"));
    said.map_or_else(|| OWN.to_owned(), Clone::clone)
}

pub(super) fn functions(deltas: &Deltas<'_>) -> Vec<IoRow> {
    let moved = |row: &IoRow| {
        let figures =
            [&row.read_requests_count, &row.read_bytes, &row.write_requests_count, &row.write_bytes, &row.waits_count];
        figures.iter().any(|n| n.value().is_some_and(|n| n > 0.0))
    };
    let readings = deltas.window.stats.io.iter();
    let mut rows: Vec<IoRow> = readings.map(|io| row(io, &source(deltas, &io.function))).filter(moved).collect();
    rows.sort_by(|a, b| (&a.function, &a.file_type).cmp(&(&b.function, &b.file_type)));
    rows
}

/// Every path that did anything, with what its disk did meanwhile.
pub(super) fn paths(deltas: &Deltas<'_>) -> Vec<PathRow> {
    let disks = disk_deltas(&deltas.data.begin.host, &deltas.data.end.host);
    let mut rows: Vec<PathRow> = deltas
        .window
        .stats
        .paths
        .iter()
        .filter(|path| path.read_requests + path.write_requests > 0)
        .map(|path| {
            let disk = disks.iter().find(|disk| disk.name == path.device);
            let figure = |field: fn(&DiskReading) -> u64| {
                disk.map_or_else(|| Figure::na("no device known"), |disk| Figure::Count(field(disk)))
            };
            PathRow {
                path: path.path.clone(),
                file_type: path.file_type.clone(),
                read_requests_count: path.read_requests,
                read_bytes: path.read_bytes,
                write_requests_count: path.write_requests,
                write_bytes: path.write_bytes,
                device: path.device.clone(),
                device_reads_count: figure(|disk| disk.reads),
                device_read_bytes: figure(|disk| disk.read_bytes),
                device_writes_count: figure(|disk| disk.writes),
                device_write_bytes: figure(|disk| disk.write_bytes),
            }
        })
        .collect();
    rows.sort_by(|a, b| (&a.path, &a.file_type).cmp(&(&b.path, &b.file_type)));
    rows
}

/// Rows that both directions have a counter for: label, unit, read, write, factor.
type Pair = (&'static str, &'static str, Stat, Stat, f64);
const TOTAL: Pair = (
    "Total Requests",
    "count",
    counter_catalog::PHYSICAL_READ_TOTAL_REQUESTS,
    counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS,
    1.0,
);
const DATABASE: Pair = (
    "Database Requests",
    "count",
    counter_catalog::PHYSICAL_READ_REQUESTS,
    counter_catalog::PHYSICAL_WRITE_REQUESTS,
    1.0,
);
const TOTAL_MIB: Pair = (
    "Total (MB)",
    "mib",
    counter_catalog::PHYSICAL_READ_TOTAL_BYTES,
    counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES,
    1.0 / MIB,
);
const DATABASE_MIB: Pair =
    ("Database (MB)", "mib", counter_catalog::PHYSICAL_READ_BYTES, counter_catalog::PHYSICAL_WRITE_BYTES, 1.0 / MIB);
const BLOCKS: [Pair; 3] = [
    ("Database (blocks)", "blocks", counter_catalog::PHYSICAL_READS, counter_catalog::PHYSICAL_WRITES, 1.0),
    (
        "Via Buffer Cache (blocks)",
        "blocks",
        counter_catalog::PHYSICAL_READS_CACHE,
        counter_catalog::PHYSICAL_WRITES_FROM_CACHE,
        1.0,
    ),
    ("Direct (blocks)", "blocks", counter_catalog::PHYSICAL_READS_DIRECT, counter_catalog::PHYSICAL_WRITES_DIRECT, 1.0),
];

fn profile_row(name: &str, unit: &str, read: Figure, write: Figure) -> IoProfileRow {
    IoProfileRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        read_write_per_s: read.plus(&write),
        read_per_s: read,
        write_per_s: write,
    }
}

pub(super) fn profile(deltas: &Deltas<'_>) -> Vec<IoProfileRow> {
    let w = &deltas.window;
    let pair = |(name, unit, read, write, factor): Pair| {
        let rate = |stat: Stat| w.rate(stat).scaled(factor);
        profile_row(name, unit, rate(read), rate(write))
    };
    let optimized = |name: &str, unit: &str| {
        let none = || Figure::na("unsupported");
        profile_row(name, unit, none(), none())
    };
    // A target without a log has none to read either.
    let log_reads = |field: fn(&IoReading) -> u64| match w.get(counter_catalog::REDO_WRITES) {
        Figure::Na(reason) => Figure::Na(reason),
        _ => {
            let is_log = |io: &&IoReading| io.file_type == "Log File";
            let mut log = w.stats.io.iter().filter(is_log).peekable();
            // Only an engine of its own is known to have read none where it has no row.
            if log.peek().is_none() && deltas.is_server() {
                Figure::na("unknowable")
            } else {
                Figure::Count(log.map(field).sum()).per(w.elapsed_s, NO_WINDOW)
            }
        }
    };
    let log_requests = log_reads(|io| io.small_read_requests + io.large_read_requests);
    let log_mib = log_reads(|io| io.read_bytes).scaled(1.0 / MIB);
    let redo_mib = w.rate(counter_catalog::REDO_BYTES_WRITTEN).scaled(1.0 / MIB);
    let mut rows = vec![
        pair(TOTAL),
        pair(DATABASE),
        optimized("Optimized Requests", "count"),
        profile_row("Redo Requests", "count", log_requests, w.rate(counter_catalog::REDO_WRITES)),
        pair(TOTAL_MIB),
        pair(DATABASE_MIB),
        optimized("Optimized Total (MB)", "mib"),
        profile_row("Redo (MB)", "mib", log_mib, redo_mib),
    ];
    rows.extend(BLOCKS.map(pair));
    rows
}
