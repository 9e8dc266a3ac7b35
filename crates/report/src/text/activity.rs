//! Instance activity, absolute values, buffer pool, writer and log.

use super::page::{Column, Page, left, number, right};
use assay_measure::record::{Figure, Record, StatRow};
use assay_measure::stats::{self, Stat};

pub(super) fn statistics(page: &mut Page, record: &Record) {
    const COLUMNS: [Column; 6] = [
        left("Instance Activity Stats", 44),
        right("Total", 22),
        right("per Second", 18),
        right("per Trans", 18),
        right("per Op", 14),
        left(" Source", 9),
    ];
    page.line("");
    page.columns(&COLUMNS);
    if record.stats.is_empty() {
        page.line("n/a (no counters)");
    }
    let mut rows: Vec<&StatRow> = record.stats.values().collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    for row in rows {
        // Stored in ns; people read us.
        let (name, factor) = match row.unit.as_str() {
            "ns" => (format!("{} (us)", row.name), 1e-3),
            _ => (row.name.clone(), 1.0),
        };
        page.row(
            &COLUMNS,
            &[
                name,
                number(&row.total.scaled(factor), 0),
                number(&row.per_s.scaled(factor), 1),
                number(&row.per_tx.scaled(factor), 1),
                number(&row.per_op.scaled(factor), 1),
                format!(" {}", row.source),
            ],
        );
    }
}

pub(super) fn absolute(page: &mut Page, record: &Record) {
    page.heading("Instance Activity Stats - Absolute Values");
    if record.gauges.is_empty() {
        page.line("n/a (no gauges)");
        return;
    }
    const COLUMNS: [Column; 3] = [left("Statistic", 44), right("Begin", 22), right("End", 22)];
    page.columns(&COLUMNS);
    for (name, row) in &record.gauges {
        page.row(
            &COLUMNS,
            &[name.clone(), number(&row.begin, 0), number(&row.end, 0)],
        );
    }
}

/// A derived figure with its label and decimals.
struct Derived {
    name: &'static str,
    figure: Figure,
    decimals: usize,
}

fn total(record: &Record, stat: Stat) -> Figure {
    let row = record.stats.get(stat.key);
    row.map_or_else(|| Figure::na("unsupported"), |row| row.total.clone())
}

/// One counter over another, times a factor.
fn quotient(record: &Record, part: Stat, whole: Stat, factor: f64) -> Figure {
    let whole = total(record, whole);
    match whole.value() {
        Some(whole) => total(record, part)
            .scaled(factor)
            .per(whole, "nothing counted"),
        None => whole,
    }
}

fn list(page: &mut Page, title: &str, rows: &[Derived]) {
    page.heading(title);
    if rows
        .iter()
        .all(|row| row.figure.value().unwrap_or(0.0) == 0.0)
    {
        page.line("n/a (nothing counted)");
        return;
    }
    for row in rows {
        let value = match row.figure.reason() {
            Some(reason) => format!("n/a ({reason})"),
            None => number(&row.figure, row.decimals),
        };
        page.line(&format!("{:<52} {value:>22}", row.name));
    }
}

pub(super) fn buffer_pool(page: &mut Page, record: &Record) {
    let count = |name, stat| Derived {
        name,
        figure: total(record, stat),
        decimals: 0,
    };
    let quotient = |name, part, whole, factor, decimals| Derived {
        name,
        figure: quotient(record, part, whole, factor),
        decimals,
    };
    list(
        page,
        "Buffer Pool and Checkpoint Activity",
        &[
            count("Buffers requested", stats::FREE_BUFFER_REQUESTED),
            quotient(
                "Buffers inspected per buffer requested",
                stats::FREE_BUFFER_INSPECTED,
                stats::FREE_BUFFER_REQUESTED,
                1.0,
                3,
            ),
            count(
                "Dirty buffers met while seeking",
                stats::DIRTY_BUFFERS_INSPECTED,
            ),
            count(
                "Pinned buffers met while seeking",
                stats::PINNED_BUFFERS_INSPECTED,
            ),
            count("Buffers newly dirtied", stats::BUFFERS_DIRTIED),
            count("Buffers cleaned", stats::BUFFERS_CLEANED),
            count("Checkpoints completed", stats::DBWR_CHECKPOINTS),
            count(
                "Buffers written for checkpoints",
                stats::DBWR_CHECKPOINT_BUFFERS,
            ),
            quotient(
                "Share of writes not for checkpoints, %",
                stats::PHYSICAL_WRITES_NON_CHECKPOINT,
                stats::PHYSICAL_WRITES,
                100.0,
                1,
            ),
            quotient(
                "Blocks per write request",
                stats::PHYSICAL_WRITES,
                stats::PHYSICAL_WRITE_REQUESTS,
                1.0,
                2,
            ),
            quotient(
                "Write requests per submit call of the writers",
                stats::PHYSICAL_WRITE_REQUESTS,
                stats::DBWR_SUBMITS,
                1.0,
                1,
            ),
            quotient(
                "Blocks read per block prefetched, % prefetched",
                stats::PHYSICAL_READS_CACHE_PREFETCH,
                stats::PHYSICAL_READS_CACHE,
                100.0,
                1,
            ),
        ],
    );
}

pub(super) fn redo(page: &mut Page, record: &Record) {
    let count = |name, stat| Derived {
        name,
        figure: total(record, stat),
        decimals: 0,
    };
    let quotient = |name, part, whole, factor, decimals| Derived {
        name,
        figure: quotient(record, part, whole, factor),
        decimals,
    };
    list(
        page,
        "Log Activity",
        &[
            quotient(
                "Redo bytes per commit",
                stats::REDO_SIZE,
                stats::USER_COMMITS,
                1.0,
                1,
            ),
            quotient(
                "Redo bytes per row changed",
                stats::REDO_SIZE,
                stats::ROWS_CHANGED,
                1.0,
                1,
            ),
            quotient(
                "Block changes per row changed",
                stats::DB_BLOCK_CHANGES,
                stats::ROWS_CHANGED,
                1.0,
                2,
            ),
            quotient(
                "Undo share of redo, %",
                stats::UNDO_CHANGE_SIZE,
                stats::REDO_SIZE,
                100.0,
                1,
            ),
            quotient(
                "Commits per log write (group commit)",
                stats::USER_COMMITS,
                stats::REDO_WRITES,
                1.0,
                2,
            ),
            quotient(
                "Bytes per log write",
                stats::REDO_BYTES_WRITTEN,
                stats::REDO_WRITES,
                1.0,
                0,
            ),
            quotient(
                "Time per log write, us",
                stats::REDO_WRITE_TIME,
                stats::REDO_WRITES,
                1e-3,
                1,
            ),
            quotient(
                "Time per commit wait, us",
                stats::REDO_SYNCH_TIME,
                stats::REDO_SYNCH_WRITES,
                1e-3,
                1,
            ),
            quotient(
                "Wastage of bytes written, %",
                stats::REDO_WASTAGE,
                stats::REDO_BYTES_WRITTEN,
                100.0,
                1,
            ),
            count("Log switches", stats::REDO_LOG_SWITCHES),
            count("Waits for log space", stats::REDO_LOG_SPACE_REQUESTS),
            count(
                "Allocations that found the log buffer full",
                stats::REDO_ALLOCATION_RETRIES,
            ),
            count("Control file writes", stats::CONTROL_WRITES),
        ],
    );
}
