//! Instance activity, absolute values, buffer pool, writer and log.

use assay_measure::counter_catalog::{self, Stat};
use assay_measure::record::{Figure, Record, StatRow};
use assay_measure::section::{Cell, Column, Sections, left, number_or_reason, right};

pub(super) fn statistics(page: &mut Sections, record: &Record) {
    const COLUMNS: [Column; 6] = [
        left("Instance Activity Stats", 44),
        right("Total", 22),
        right("per Second", 18),
        right("per Trans", 18),
        right("per Op", 14),
        left(" Source", 20),
    ];
    page.unheaded("Instance Activity Statistics");
    page.columns(&COLUMNS);
    if record.instance.stats.is_empty() {
        page.line("n/a (no counters)");
    }
    let mut rows: Vec<&StatRow> = record.instance.stats.values().collect();
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
                name.into(),
                Cell::figure(&row.total.scaled(factor), 0),
                Cell::figure(&row.per_s.scaled(factor), 1),
                Cell::figure(&row.per_tx.scaled(factor), 1),
                Cell::figure(&row.per_op.scaled(factor), 1),
                match row.total.reason() {
                    Some(reason) => format!(" {} - n/a ({reason})", row.source),
                    None => format!(" {}", row.source),
                }
                .into(),
            ],
        );
    }
}

pub(super) fn absolute(page: &mut Sections, record: &Record) {
    page.heading("Instance Activity Stats - Absolute Values");
    if record.instance.gauges.is_empty() {
        page.line("n/a (no gauges)");
        return;
    }
    const COLUMNS: [Column; 3] = [left("Statistic", 44), right("Begin", 22), right("End", 22)];
    page.columns(&COLUMNS);
    for (name, row) in &record.instance.gauges {
        page.row(&COLUMNS, &[name.clone().into(), Cell::figure(&row.begin, 0), Cell::figure(&row.end, 0)]);
    }
}

/// A derived figure: label, part, whole (none: the part itself), factor, decimals.
type Derived = (&'static str, Stat, Option<Stat>, f64, usize);

const BUFFER_POOL: [Derived; 24] = [
    ("Buffers requested", counter_catalog::FREE_BUFFER_REQUESTED, None, 1.0, 0),
    (
        "Buffers inspected per buffer requested",
        counter_catalog::FREE_BUFFER_INSPECTED,
        Some(counter_catalog::FREE_BUFFER_REQUESTED),
        1.0,
        3,
    ),
    ("Dirty buffers met while seeking", counter_catalog::DIRTY_BUFFERS_INSPECTED, None, 1.0, 0),
    (
        "Dirty share of buffers inspected, %",
        counter_catalog::DIRTY_BUFFERS_INSPECTED,
        Some(counter_catalog::FREE_BUFFER_INSPECTED),
        100.0,
        1,
    ),
    ("Pinned buffers met while seeking", counter_catalog::PINNED_BUFFERS_INSPECTED, None, 1.0, 0),
    ("Buffers newly dirtied", counter_catalog::BUFFERS_DIRTIED, None, 1.0, 0),
    ("Buffers cleaned", counter_catalog::BUFFERS_CLEANED, None, 1.0, 0),
    ("Checkpoints completed", counter_catalog::DBWR_CHECKPOINTS, None, 1.0, 0),
    ("Buffers written for checkpoints", counter_catalog::DBWR_CHECKPOINT_BUFFERS, None, 1.0, 0),
    (
        "Share of writes not for checkpoints, %",
        counter_catalog::PHYSICAL_WRITES_NON_CHECKPOINT,
        Some(counter_catalog::PHYSICAL_WRITES),
        100.0,
        1,
    ),
    (
        "Share of writes that are undo blocks, %",
        counter_catalog::DBWR_UNDO_WRITES,
        Some(counter_catalog::PHYSICAL_WRITES),
        100.0,
        1,
    ),
    ("Blocks that changed while they were written", counter_catalog::WRITE_CLONES, None, 1.0, 0),
    (
        "Blocks per write request",
        counter_catalog::PHYSICAL_WRITES,
        Some(counter_catalog::PHYSICAL_WRITE_REQUESTS),
        1.0,
        2,
    ),
    (
        "Write requests per submit call of the writers",
        counter_catalog::PHYSICAL_WRITE_REQUESTS,
        Some(counter_catalog::DBWR_SUBMITS),
        1.0,
        1,
    ),
    (
        "Share of cache reads prefetched, %",
        counter_catalog::PHYSICAL_READS_CACHE_PREFETCH,
        Some(counter_catalog::PHYSICAL_READS_CACHE),
        100.0,
        1,
    ),
    ("Checkpoints begun by the clock", counter_catalog::CHECKPOINTS_TIMED, None, 1.0, 0),
    ("Checkpoints requested (log volume, commands)", counter_catalog::CHECKPOINTS_REQUESTED, None, 1.0, 0),
    ("Write phases of checkpoints (paced), ms", counter_catalog::CHECKPOINT_WRITE_TIME, None, 1e-6, 0),
    ("Sync phases of checkpoints, ms", counter_catalog::CHECKPOINT_SYNC_TIME, None, 1e-6, 0),
    ("Buffers written by the background writer", counter_catalog::BUFFERS_WRITTEN_BY_WRITER, None, 1.0, 0),
    ("Buffers written by sessions themselves", counter_catalog::BUFFERS_WRITTEN_BY_BACKENDS, None, 1.0, 0),
    ("Rounds that the background writer ended early", counter_catalog::WRITER_STOPS, None, 1.0, 0),
    ("Buffers allocated", counter_catalog::BUFFERS_ALLOCATED, None, 1.0, 0),
    ("Buffers evicted", counter_catalog::BUFFER_EVICTIONS, None, 1.0, 0),
];

const LOG: [Derived; 17] = [
    ("Redo bytes per commit", counter_catalog::REDO_SIZE, Some(counter_catalog::USER_COMMITS), 1.0, 1),
    ("Redo bytes per row changed", counter_catalog::REDO_SIZE, Some(counter_catalog::ROWS_CHANGED), 1.0, 1),
    ("Block changes per row changed", counter_catalog::DB_BLOCK_CHANGES, Some(counter_catalog::ROWS_CHANGED), 1.0, 2),
    ("Undo share of redo, %", counter_catalog::UNDO_CHANGE_SIZE, Some(counter_catalog::REDO_SIZE), 100.0, 1),
    ("Commits per log write (group commit)", counter_catalog::USER_COMMITS, Some(counter_catalog::REDO_WRITES), 1.0, 2),
    ("Bytes per log write", counter_catalog::REDO_BYTES_WRITTEN, Some(counter_catalog::REDO_WRITES), 1.0, 0),
    ("Time per log write, us", counter_catalog::REDO_WRITE_TIME, Some(counter_catalog::REDO_WRITES), 1e-3, 1),
    ("Time per commit wait, us", counter_catalog::REDO_SYNCH_TIME, Some(counter_catalog::REDO_SYNCH_WRITES), 1e-3, 1),
    ("Wastage of bytes written, %", counter_catalog::REDO_WASTAGE, Some(counter_catalog::REDO_BYTES_WRITTEN), 100.0, 1),
    ("Log switches", counter_catalog::REDO_LOG_SWITCHES, None, 1.0, 0),
    ("Waits for log space", counter_catalog::REDO_LOG_SPACE_REQUESTS, None, 1.0, 0),
    ("Allocations that found the log buffer full", counter_catalog::REDO_ALLOCATION_RETRIES, None, 1.0, 0),
    ("Control file writes", counter_catalog::CONTROL_WRITES, None, 1.0, 0),
    ("Page images in the log", counter_catalog::WAL_FULL_PAGES, None, 1.0, 0),
    ("Redo bytes per log record", counter_catalog::REDO_SIZE, Some(counter_catalog::REDO_ENTRIES), 1.0, 1),
    ("Commits per log sync (group commit)", counter_catalog::USER_COMMITS, Some(counter_catalog::WAL_SYNCS), 1.0, 2),
    ("Time per log sync, us", counter_catalog::WAL_SYNC_TIME, Some(counter_catalog::WAL_SYNCS), 1e-3, 1),
];

fn total(record: &Record, stat: Stat) -> Figure {
    let row = record.instance.stats.get(stat.key);
    row.map_or_else(|| Figure::na("unsupported"), |row| row.total.clone())
}

fn derive(record: &Record, (_, part, whole, factor, _): &Derived) -> Figure {
    let part = total(record, *part).scaled(*factor);
    match whole.map(|whole| total(record, whole)) {
        None => part,
        Some(Figure::Na(reason)) => Figure::Na(reason),
        Some(whole) => part.per(whole.value().unwrap_or(0.0), "nothing counted"),
    }
}

const LIST: [Column; 2] = [left("Figure", 52), right("Value", 23)];

fn list(page: &mut Sections, record: &Record, title: &str, rows: &[Derived]) {
    page.heading(title);
    let figures: Vec<Figure> = rows.iter().map(|row| derive(record, row)).collect();
    if figures.iter().all(|figure| figure.value().unwrap_or(0.0) == 0.0) {
        page.line("n/a (nothing counted)");
        return;
    }
    page.untitled(&LIST);
    for (row, figure) in rows.iter().zip(&figures) {
        // What a target has no notion of is no gap in its report.
        if figure.reason() == Some("unsupported") {
            continue;
        }
        let value = number_or_reason(figure, row.4);
        page.row(&LIST, &[row.0.to_owned(), value]);
    }
}

pub(super) fn buffer_pool(page: &mut Sections, record: &Record) {
    list(page, record, "Buffer Pool and Checkpoint Activity", &BUFFER_POOL);
}

pub(super) fn redo(page: &mut Sections, record: &Record) {
    list(page, record, "Log Activity", &LOG);
}
