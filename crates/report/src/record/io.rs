//! IO profile and IOStat rows of the window.

use super::deltas::{Deltas, NO_WINDOW, micros};
use super::host::disk_deltas;
use assay_measure::record::{Figure, IoProfileRow, IoRow, PathRow};
use assay_measure::snapshot::{DiskReading, IoReading};
use assay_measure::stats::{self, Stat};

const MIB: f64 = 1_048_576.0;

/// One reading as a row of the record.
pub(crate) fn row(io: &IoReading) -> IoRow {
    IoRow {
        function: io.function.clone(),
        file_type: io.file_type.clone(),
        small_read_requests_count: io.small_read_requests,
        large_read_requests_count: io.large_read_requests,
        read_bytes: io.read_bytes,
        small_write_requests_count: io.small_write_requests,
        large_write_requests_count: io.large_write_requests,
        write_bytes: io.write_bytes,
        waits_count: io.waits,
        wait_us: micros(io.wait_ns),
    }
}

pub(super) fn functions(deltas: &Deltas<'_>) -> Vec<IoRow> {
    let mut rows: Vec<IoRow> = deltas
        .window
        .stats
        .io
        .iter()
        .map(row)
        .filter(|row| row.read_requests() + row.write_requests() + row.waits_count > 0)
        .collect();
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
                disk.map_or_else(
                    || Figure::na("no device known"),
                    |disk| Figure::Count(field(disk)),
                )
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
    stats::PHYSICAL_READ_TOTAL_REQUESTS,
    stats::PHYSICAL_WRITE_TOTAL_REQUESTS,
    1.0,
);
const DATABASE: Pair = (
    "Database Requests",
    "count",
    stats::PHYSICAL_READ_REQUESTS,
    stats::PHYSICAL_WRITE_REQUESTS,
    1.0,
);
const TOTAL_MIB: Pair = (
    "Total (MB)",
    "mib",
    stats::PHYSICAL_READ_TOTAL_BYTES,
    stats::PHYSICAL_WRITE_TOTAL_BYTES,
    1.0 / MIB,
);
const DATABASE_MIB: Pair = (
    "Database (MB)",
    "mib",
    stats::PHYSICAL_READ_BYTES,
    stats::PHYSICAL_WRITE_BYTES,
    1.0 / MIB,
);
const BLOCKS: [Pair; 3] = [
    (
        "Database (blocks)",
        "blocks",
        stats::PHYSICAL_READS,
        stats::PHYSICAL_WRITES,
        1.0,
    ),
    (
        "Via Buffer Cache (blocks)",
        "blocks",
        stats::PHYSICAL_READS_CACHE,
        stats::PHYSICAL_WRITES_FROM_CACHE,
        1.0,
    ),
    (
        "Direct (blocks)",
        "blocks",
        stats::PHYSICAL_READS_DIRECT,
        stats::PHYSICAL_WRITES_DIRECT,
        1.0,
    ),
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
    let log_reads = |field: fn(&IoReading) -> u64| match w.get(stats::REDO_WRITES) {
        Figure::Na(reason) => Figure::Na(reason),
        _ => {
            let log = w.stats.io.iter().filter(|io| io.file_type == "Log File");
            Figure::Count(log.map(field).sum()).per(w.elapsed_s, NO_WINDOW)
        }
    };
    let log_requests = log_reads(|io| io.small_read_requests + io.large_read_requests);
    let log_mib = log_reads(|io| io.read_bytes).scaled(1.0 / MIB);
    let redo_mib = w.rate(stats::REDO_BYTES_WRITTEN).scaled(1.0 / MIB);
    let mut rows = vec![
        pair(TOTAL),
        pair(DATABASE),
        optimized("Optimized Requests", "count"),
        profile_row(
            "Redo Requests",
            "count",
            log_requests,
            w.rate(stats::REDO_WRITES),
        ),
        pair(TOTAL_MIB),
        pair(DATABASE_MIB),
        optimized("Optimized Total (MB)", "mib"),
        profile_row("Redo (MB)", "mib", log_mib, redo_mib),
    ];
    rows.extend(BLOCKS.map(pair));
    rows
}
