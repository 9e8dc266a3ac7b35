//! IO profile and IOStat rows of the window.

use super::deltas::{Deltas, NO_WINDOW, micros};
use assay_measure::record::{Figure, IoProfileRow, IoRow};
use assay_measure::snapshot::IoReading;
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

pub(super) fn profile(deltas: &Deltas<'_>) -> Vec<IoProfileRow> {
    let w = &deltas.window;
    let row = |name: &str, unit: &str, read: Figure, write: Figure| IoProfileRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        read_write_per_s: read.plus(&write),
        read_per_s: read,
        write_per_s: write,
    };
    let rate = |stat: Stat| w.rate(stat);
    let mib = |stat: Stat| w.rate(stat).scaled(1.0 / MIB);
    let log_reads = |field: fn(&IoReading) -> u64| match w.get(stats::REDO_WRITES) {
        Figure::Na(reason) => Figure::Na(reason),
        _ => {
            let log = w.stats.io.iter().filter(|io| io.file_type == "Log File");
            Figure::Count(log.map(field).sum()).per(w.elapsed_s, NO_WINDOW)
        }
    };
    let optimized = || Figure::na("unsupported");
    vec![
        row(
            "Total Requests",
            "count",
            rate(stats::PHYSICAL_READ_TOTAL_REQUESTS),
            rate(stats::PHYSICAL_WRITE_TOTAL_REQUESTS),
        ),
        row(
            "Database Requests",
            "count",
            rate(stats::PHYSICAL_READ_REQUESTS),
            rate(stats::PHYSICAL_WRITE_REQUESTS),
        ),
        row("Optimized Requests", "count", optimized(), optimized()),
        row(
            "Redo Requests",
            "count",
            log_reads(|io| io.small_read_requests + io.large_read_requests),
            rate(stats::REDO_WRITES),
        ),
        row(
            "Total (MB)",
            "mib",
            mib(stats::PHYSICAL_READ_TOTAL_BYTES),
            mib(stats::PHYSICAL_WRITE_TOTAL_BYTES),
        ),
        row(
            "Database (MB)",
            "mib",
            mib(stats::PHYSICAL_READ_BYTES),
            mib(stats::PHYSICAL_WRITE_BYTES),
        ),
        row("Optimized Total (MB)", "mib", optimized(), optimized()),
        row(
            "Redo (MB)",
            "mib",
            log_reads(|io| io.read_bytes).scaled(1.0 / MIB),
            mib(stats::REDO_BYTES_WRITTEN),
        ),
        row(
            "Database (blocks)",
            "blocks",
            rate(stats::PHYSICAL_READS),
            rate(stats::PHYSICAL_WRITES),
        ),
        row(
            "Via Buffer Cache (blocks)",
            "blocks",
            rate(stats::PHYSICAL_READS_CACHE),
            rate(stats::PHYSICAL_WRITES_FROM_CACHE),
        ),
        row(
            "Direct (blocks)",
            "blocks",
            rate(stats::PHYSICAL_READS_DIRECT),
            rate(stats::PHYSICAL_WRITES_DIRECT),
        ),
    ]
}
