//! What PostgreSQL counts, by version: groups of columns, and the statistics made of them. `group.column` is a name of
//! ours; `/block` after it divides bytes by the block size.
//!
//! Groups read the functions below the statistics views (`pg_stat_get_db_xact_commit` below `pg_stat_database`), because
//! the views join catalog tables, and a collector that reads tables would change what it counts.

use crate::statistics::{CounterRow, EventRow, FunctionRow, names, names_in, row};
use assay_measure::counter_catalog::*;
use assay_measure::snapshot::{Actor, WaitClass};
use std::collections::BTreeSet;

use Actor::{Background, Foreground};
use WaitClass::{Configuration, SystemIo, UserIo};

const DATABASE: &str = "pg_stat_database";
const BGWRITER: &str = "pg_stat_bgwriter";
const CHECKPOINTER: &str = "pg_stat_checkpointer";
const WAL: &str = "pg_stat_wal";
const IO: &str = "pg_stat_io";
const STATEMENTS: &str = "pg_stat_statements";
const TABLES: &str = "pg_stat_user_tables";
const TABLE_BLOCKS: &str = "pg_statio_user_tables";
const INDEX_BLOCKS: &str = "pg_statio_user_indexes";
const OWN: &str = "postgres";

/// What must be on for a group to be counted or timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing.
    Always,
    /// `track_counts`.
    Counts,
    /// `pg_stat_statements`.
    Statements,
    /// `track_io_timing` in our sessions.
    SessionTimes,
    /// `track_io_timing` in every process.
    ServerTimes,
    /// `track_wal_io_timing`.
    LogTimes,
}

/// Columns that are read together.
#[derive(Debug)]
pub(super) struct Group {
    /// The part of a name before the point.
    pub name: &'static str,
    /// SQL of a column; `{}` is its name.
    pub column: &'static str,
    /// SQL of the rows, with `{database}`, `{tables}`, `{indexes}`, `{scan_tables}` and `{statements}`.
    pub from: &'static str,
    /// What its counts need.
    pub needs: Needs,
    /// What its times need in addition.
    pub times: Needs,
    /// Why a column has no value.
    pub silent: &'static str,
    /// The group with whose reset these columns restart; empty if they never do.
    pub reset: &'static str,
    /// SQL of the time of the last reset, where the group has it.
    pub reset_at: &'static str,
}

const PLAIN: Group = Group {
    name: "",
    column: "{}",
    from: "",
    needs: Needs::Always,
    times: Needs::Always,
    silent: "unknowable: the server gives no value",
    reset: "",
    reset_at: "",
};

const fn view(name: &'static str, from: &'static str, times: Needs) -> Group {
    Group { name, from, times, reset: name, reset_at: "stats_reset", ..PLAIN }
}

const fn tables(name: &'static str, from: &'static str) -> Group {
    let silent = "unknowable: the data set has no such table yet";
    Group { name, column: "sum(pg_stat_get_{}(o))", from, silent, reset: "db", ..PLAIN }
}

const fn io(name: &'static str, from: &'static str, times: Needs) -> Group {
    Group { name, column: "coalesce(sum({}), 0)", from, times, reset: "io", reset_at: "max(stats_reset)", ..PLAIN }
}

/// Rows of `pg_stat_io` with figures under the names of 18, and with words for what they are about. In 16 and 17 every
/// operation is counted in blocks.
pub(super) fn io_rows(version: u32) -> &'static str {
    match version {
        ..16 => "",
        16 | 17 => {
            "with io as materialized (select *, reads as read_requests, reads * op_bytes as read_bytes, \
             writes * op_bytes as write_bytes, extends * op_bytes as extend_bytes, object = 'relation' as data, \
             backend_type = 'client backend' as session, backend_type like 'autovacuum%' as autovacuum, \
             backend_type in ('checkpointer', 'background writer') as writer from pg_catalog.pg_stat_io) "
        }
        _ => {
            "with io as materialized (select *, reads as read_requests, object = 'relation' as data, \
             backend_type = 'client backend' as session, backend_type like 'autovacuum%' as autovacuum, \
             backend_type in ('checkpointer', 'background writer') as writer from pg_catalog.pg_stat_io) "
        }
    }
}

/// Every group; a reading has those that its version's statistics name.
pub(super) const GROUPS: &[Group] = &[
    Group {
        name: "lsn",
        from: "(select case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() - '0/0'::pg_lsn end as position) l",
        silent: "unsupported: a standby writes no log",
        ..PLAIN
    },
    // An identifier is given to each transaction that writes, and to each savepoint that does.
    Group { name: "xids", from: "(select pg_snapshot_xmax(pg_current_snapshot())::text::numeric as next) x", ..PLAIN },
    Group {
        name: "db",
        column: "pg_stat_get_db_{}(o)",
        from: "(select {database}::oid as o) d",
        needs: Needs::Counts,
        reset: "db",
        reset_at: "pg_stat_get_db_stat_reset_time(o)",
        ..PLAIN
    },
    // Of the database too, but not counted by track_counts.
    Group {
        name: "sessions",
        column: "pg_stat_get_db_{}(o)",
        from: "(select {database}::oid as o) d",
        reset: "db",
        ..PLAIN
    },
    Group {
        name: "blocks",
        column: "pg_stat_get_db_{}(o)",
        from: "(select {database}::oid as o) d",
        times: Needs::SessionTimes,
        reset: "db",
        ..PLAIN
    },
    // Without the texts of the statements, which would be read from a file.
    Group {
        name: "statements",
        column: "sum({})",
        from: "{statements}.pg_stat_statements(false) where dbid = {database}",
        needs: Needs::Statements,
        reset: "db",
        ..PLAIN
    },
    tables("table", "unnest(array[{tables}]::oid[]) o"),
    tables("index", "unnest(array[{indexes}]::oid[]) o"),
    tables("scan", "unnest(array[{scan_tables}]::oid[]) o"),
    Group { name: "size", column: "sum(pg_relation_size(o))", from: "unnest(array[{tables}]::oid[]) o", ..PLAIN },
    view("bgwriter", "pg_catalog.pg_stat_bgwriter", Needs::Always),
    view("checkpointer", "pg_catalog.pg_stat_checkpointer", Needs::Always),
    view("wal", "pg_catalog.pg_stat_wal", Needs::LogTimes),
    io("io", "io", Needs::ServerTimes),
    io("io_data", "io where data", Needs::ServerTimes),
    io("io_sessions", "io where data and session", Needs::SessionTimes),
    io("io_not_writers", "io where data and not writer", Needs::ServerTimes),
    io("io_writers", "io where data and writer", Needs::ServerTimes),
    io("io_autovacuum", "io where data and autovacuum", Needs::ServerTimes),
    io("io_normal", "io where data and session and context = 'normal'", Needs::SessionTimes),
    // Scans of large tables use a small ring of buffers.
    io("io_ring", "io where data and session and context = 'bulkread'", Needs::SessionTimes),
    io("io_bulk", "io where data and session and context = 'bulkwrite'", Needs::SessionTimes),
    io("io_log", "io where object = 'wal'", Needs::LogTimes),
    io("io_log_writes", "io where object = 'wal' and context = 'normal'", Needs::LogTimes),
    io("io_log_init", "io where object = 'wal' and context = 'init'", Needs::LogTimes),
    // These, `io_writers` and `io_normal` divide what is not the log.
    io("io_temp", "io where object not in ('relation', 'wal')", Needs::ServerTimes),
    io("io_vacuum", "io where data and (autovacuum or context = 'vacuum')", Needs::ServerTimes),
    io("io_bulkread", "io where data and context = 'bulkread' and not (writer or autovacuum)", Needs::SessionTimes),
    io("io_bulkwrite", "io where data and context = 'bulkwrite' and not (writer or autovacuum)", Needs::SessionTimes),
    io(
        "io_others",
        "io where data and not (session and context = 'normal' or writer or autovacuum) \
         and context not in ('vacuum', 'bulkread', 'bulkwrite')",
        Needs::ServerTimes,
    ),
];

/// Why 17 cannot report the number of requests.
pub(super) const COMBINED: &str =
    "unknowable: PostgreSQL 17 combines neighbouring reads and counts blocks, not requests";

/// Names of a group's columns in this version.
pub(super) fn columns(group: &Group, version: u32) -> BTreeSet<&'static str> {
    let rows = names(COUNTERS, version).chain(names(EVENTS, version)).chain(names(FUNCTIONS, version));
    let others = GAUGES.iter().map(|(_, name)| *name).chain(SIZES);
    let all = rows.chain(others.flat_map(names_in)).filter_map(|name| name.split_once('.'));
    let ours = all.filter(|(of, _)| *of == group.name);
    ours.map(|(_, column)| column.trim_end_matches("/block")).collect()
}

/// Pages of the tables, and blocks that were not in the buffers.
pub(super) const SIZES: [&str; 2] = ["size.bytes/block", "db.blocks_fetched - db.blocks_hit"];

/// Counters.
pub(super) const COUNTERS: &[CounterRow] = &[
    row(&[SERVER_COMMITS], 0, ["db.xact_commit - own.statements"], DATABASE),
    row(&[SERVER_ROLLBACKS], 0, ["db.xact_rollback"], DATABASE),
    row(&[SERVER_WRITE_TRANSACTIONS], 0, ["xids.next"], "pg_current_snapshot"),
    row(&[COLLECTOR_TRANSACTIONS], 0, ["own.statements"], "client"),
    row(&[TUPLES_RETURNED], 0, ["db.tuples_returned"], DATABASE),
    row(&[TUPLES_FETCHED], 0, ["db.tuples_fetched"], DATABASE),
    row(&[TUPLES_INSERTED], 0, ["db.tuples_inserted"], DATABASE),
    row(&[TUPLES_UPDATED], 0, ["db.tuples_updated"], DATABASE),
    row(&[TUPLES_DELETED], 0, ["db.tuples_deleted"], DATABASE),
    row(&[SERVER_DEADLOCKS], 0, ["db.deadlocks"], DATABASE),
    row(&[SERVER_TEMP_FILES], 0, ["db.temp_files"], DATABASE),
    row(&[SERVER_TEMP_BYTES], 0, ["db.temp_bytes"], DATABASE),
    row(&[SERVER_ACTIVE_TIME], 14, ["sessions.active_time in ms"], DATABASE),
    row(&[SERVER_SESSIONS], 14, ["sessions.sessions"], DATABASE),
    row(&[STATEMENT_CALLS], 0, ["statements.calls - own.statements"], STATEMENTS),
    row(&[BUFFERS_DIRTIED], 0, ["statements.shared_blks_dirtied"], STATEMENTS),
    // The data set.
    row(&[TABLE_GETS], 0, ["table.blocks_fetched"], TABLE_BLOCKS),
    row(&[TABLE_HITS], 0, ["table.blocks_hit"], TABLE_BLOCKS),
    row(&[INDEX_GETS], 0, ["index.blocks_fetched"], INDEX_BLOCKS),
    row(&[INDEX_HITS], 0, ["index.blocks_hit"], INDEX_BLOCKS),
    row(&[SCAN_BLOCKS], 0, ["scan.blocks_fetched"], TABLE_BLOCKS),
    row(&[TABLE_UPDATES], 0, ["table.tuples_updated"], TABLES),
    row(&[TABLE_UPDATES_HOT], 0, ["table.tuples_hot_updated"], TABLES),
    row(&[TABLE_UPDATES_NEW_PAGE], 16, ["table.tuples_newpage_updated"], TABLES),
    // Reads. Until 16 each block is a read; 17 combines neighbouring blocks; 18 counts calls.
    row(&[SESSION_LOGICAL_READS, GETS_FROM_CACHE], 0, ["db.blocks_fetched"], DATABASE),
    row(&[CACHE_HITS], 0, ["db.blocks_hit"], DATABASE),
    row(
        &[PHYSICAL_READS, PHYSICAL_READS_CACHE, CACHE_DEMAND_MISSES, PHYSICAL_READ_REQUESTS],
        0,
        ["db.blocks_fetched - db.blocks_hit"],
        DATABASE,
    ),
    row(&[PHYSICAL_READ_REQUESTS], 17, ["io_sessions.read_requests"], IO),
    row(&[PHYSICAL_READ_BYTES], 0, ["=physical reads in blocks"], DATABASE),
    // Writes. From 16 on those of sessions reach pg_stat_bgwriter through the checkpointer, late and in steps.
    row(&[DBWR_CHECKPOINT_BUFFERS], 0, ["bgwriter.buffers_checkpoint"], BGWRITER),
    row(&[DBWR_CHECKPOINT_BUFFERS], 17, ["checkpointer.buffers_written"], CHECKPOINTER),
    row(&[BUFFERS_WRITTEN_BY_WRITER], 0, ["bgwriter.buffers_clean"], BGWRITER),
    row(&[BUFFERS_WRITTEN_BY_BACKENDS], 0, ["bgwriter.buffers_backend"], BGWRITER),
    row(
        &[BUFFERS_WRITTEN_BY_BACKENDS],
        16,
        ["io_not_writers.write_bytes/block + io_not_writers.extend_bytes/block"],
        IO,
    ),
    row(&[PHYSICAL_WRITES_NON_CHECKPOINT], 0, [NON_CHECKPOINT], BGWRITER),
    row(&[PHYSICAL_WRITES_NON_CHECKPOINT], 16, [NON_CHECKPOINT], IO),
    row(&[PHYSICAL_WRITES, PHYSICAL_WRITES_FROM_CACHE, PHYSICAL_WRITE_REQUESTS], 0, [WRITES], BGWRITER),
    row(&[PHYSICAL_WRITES, PHYSICAL_WRITES_FROM_CACHE], 16, [WRITES], IO),
    row(&[PHYSICAL_WRITE_BYTES], 0, ["=physical writes in blocks"], BGWRITER),
    row(&[PHYSICAL_WRITE_BYTES], 16, ["=physical writes in blocks"], IO),
    // Each written block is one call, but extends may be combined from 16 on; 18 counts calls.
    row(&[PHYSICAL_WRITE_REQUESTS], 16, ["io_data.writes"], "pg_stat_io (>=)"),
    row(&[PHYSICAL_WRITE_REQUESTS], 18, ["io_data.writes + io_data.extends"], IO),
    row(&[BACKEND_SYNCS], 0, ["bgwriter.buffers_backend_fsync"], BGWRITER),
    row(&[BACKEND_SYNCS], 16, ["io_sessions.fsyncs"], IO),
    row(&[BUFFER_EVICTIONS], 16, ["io_data.evictions"], IO),
    row(&[WRITER_STOPS], 0, ["bgwriter.maxwritten_clean"], BGWRITER),
    row(&[BUFFERS_ALLOCATED], 0, ["bgwriter.buffers_alloc"], BGWRITER),
    // The log. A write is durable only after its sync.
    row(&[REDO_SIZE], 0, ["lsn.position"], "wal_lsn"),
    row(&[REDO_ENTRIES], 14, ["wal.wal_records"], WAL),
    row(&[WAL_FULL_PAGES], 14, ["wal.wal_fpi"], WAL),
    row(&[WAL_BYTES], 14, ["wal.wal_bytes"], WAL),
    row(&[REDO_ALLOCATION_RETRIES], 14, ["wal.wal_buffers_full"], WAL),
    row(&[REDO_WRITES], 14, ["wal.wal_write"], WAL),
    row(&[REDO_WRITES], 18, ["io_log_writes.writes"], IO),
    row(&[REDO_WRITE_TIME], 14, ["wal.wal_write_time + wal.wal_sync_time in ms"], WAL),
    row(&[REDO_WRITE_TIME], 18, ["io_log_writes.write_time + io_log_writes.fsync_time in ms"], IO),
    row(&[REDO_BYTES_WRITTEN], 18, ["io_log_writes.write_bytes"], IO),
    row(&[WAL_SYNCS], 14, ["wal.wal_sync"], WAL),
    row(&[WAL_SYNCS], 18, ["io_log_writes.fsyncs"], IO),
    row(&[WAL_SYNC_TIME], 14, ["wal.wal_sync_time in ms"], WAL),
    row(&[WAL_SYNC_TIME], 18, ["io_log_writes.fsync_time in ms"], IO),
    // Everything, the log included.
    row(&[PHYSICAL_READ_TOTAL_REQUESTS], 18, ["io.reads"], IO),
    row(&[PHYSICAL_READ_TOTAL_BYTES], 18, ["io.read_bytes"], IO),
    row(&[PHYSICAL_WRITE_TOTAL_REQUESTS], 18, ["io.writes + io.extends"], IO),
    row(&[PHYSICAL_WRITE_TOTAL_BYTES], 18, ["io.write_bytes + io.extend_bytes"], IO),
    // Checkpoints.
    row(&[CHECKPOINTS_TIMED], 0, ["bgwriter.checkpoints_timed"], BGWRITER),
    row(&[CHECKPOINTS_TIMED], 17, ["checkpointer.num_timed"], CHECKPOINTER),
    row(&[CHECKPOINTS_REQUESTED], 0, ["bgwriter.checkpoints_req"], BGWRITER),
    row(&[CHECKPOINTS_REQUESTED], 17, ["checkpointer.num_requested"], CHECKPOINTER),
    row(&[DBWR_CHECKPOINTS], 0, ["bgwriter.checkpoints_timed + bgwriter.checkpoints_req"], BGWRITER),
    row(&[DBWR_CHECKPOINTS], 17, ["checkpointer.num_timed + checkpointer.num_requested"], CHECKPOINTER),
    row(&[DBWR_CHECKPOINTS], 18, ["checkpointer.num_done"], CHECKPOINTER),
    row(&[CHECKPOINT_WRITE_TIME], 0, ["bgwriter.checkpoint_write_time in ms"], BGWRITER),
    row(&[CHECKPOINT_WRITE_TIME], 17, ["checkpointer.write_time in ms"], CHECKPOINTER),
    row(&[CHECKPOINT_SYNC_TIME], 0, ["bgwriter.checkpoint_sync_time in ms"], BGWRITER),
    row(&[CHECKPOINT_SYNC_TIME], 17, ["checkpointer.sync_time in ms"], CHECKPOINTER),
    row(&[SLRU_WRITTEN], 18, ["checkpointer.slru_written"], CHECKPOINTER),
    row(
        &[CACHE_SHARED_MISSES, PHYSICAL_READS_CACHE_PREFETCH, REDO_SYNCH_WRITES, REDO_SYNCH_TIME],
        0,
        ["n/a unknowable"],
        OWN,
    ),
    row(
        &[
            BUFFERS_CLEANED,
            DB_BLOCK_GETS,
            CONSISTENT_GETS,
            DB_BLOCK_CHANGES,
            PHYSICAL_READS_DIRECT,
            PHYSICAL_WRITES_DIRECT,
            PHYSICAL_READ_MULTI_BLOCK_REQUESTS,
            PHYSICAL_READ_LARGE_REQUESTS,
            PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS,
            FREE_BUFFER_REQUESTED,
            FREE_BUFFER_INSPECTED,
            DIRTY_BUFFERS_INSPECTED,
            PINNED_BUFFERS_INSPECTED,
            HOT_BUFFERS_SPARED,
            DBWR_UNDO_WRITES,
            UNDO_CHANGE_SIZE,
            REDO_BLOCKS_WRITTEN,
            REDO_WASTAGE,
            REDO_LOG_SPACE_REQUESTS,
            REDO_LOG_SPACE_TIME,
            REDO_LOG_SWITCHES,
            CONTROL_WRITES,
            CONTROL_BYTES_WRITTEN,
        ],
        0,
        ["n/a unsupported"],
        OWN,
    ),
];

const NON_CHECKPOINT: &str = "=buffers written by background writer + =buffers written by backends";
const WRITES: &str = "=DBWR checkpoint buffers written + =physical writes non checkpoint";

/// Gauges.
pub(super) const GAUGES: &[(&str, &str)] = &[
    ("server_sessions_count", "sessions.numbackends"),
    ("dead_rows_count", "table.dead_tuples"),
    ("live_rows_count", "table.live_tuples"),
];

const READ: &str = "db file sequential read";
const BY_WRITERS: &str = "=DBWR checkpoint buffers written + =buffers written by background writer";
const FROM_16: &str = "n/a absent: came with PostgreSQL 16";
const FROM_18: &str = "n/a absent: came with PostgreSQL 18";

/// Events with totals but no distribution. All other waits come only from activity samples.
pub(super) const EVENTS: &[EventRow] = &[
    row(&[(READ, UserIo, Foreground)], 0, ["=physical reads", "blocks.blk_read_time in ms"], DATABASE),
    row(&[(READ, UserIo, Foreground)], 16, ["io_normal.reads", "io_normal.read_time in ms"], IO),
    row(
        &[("backend writes", Configuration, Foreground)],
        0,
        ["=buffers written by backends", "blocks.blk_write_time in ms"],
        BGWRITER,
    ),
    row(&[("backend writes", Configuration, Foreground)], 16, ["io_normal.writes", "io_normal.write_time in ms"], IO),
    row(&[("db file parallel write", SystemIo, Background)], 0, [BY_WRITERS, FROM_16], BGWRITER),
    row(
        &[("db file parallel write", SystemIo, Background)],
        16,
        ["io_writers.writes", "io_writers.write_time in ms"],
        IO,
    ),
    row(&[("data file extend", UserIo, Foreground)], 16, ["io_normal.extends", "io_normal.extend_time in ms"], IO),
    row(&[("data file sync", Configuration, Foreground)], 16, ["io_normal.fsyncs", "io_normal.fsync_time in ms"], IO),
    row(&[("direct path read", UserIo, Foreground)], 16, ["io_ring.reads", "io_ring.read_time in ms"], IO),
    row(
        &[("direct path write", UserIo, Foreground)],
        16,
        ["io_bulk.writes + io_bulk.extends", "io_bulk.write_time + io_bulk.extend_time in ms"],
        IO,
    ),
    row(&[("data file sync", SystemIo, Background)], 16, ["io_writers.fsyncs", "io_writers.fsync_time in ms"], IO),
    row(&[(READ, SystemIo, Background)], 16, ["io_autovacuum.reads", "io_autovacuum.read_time in ms"], IO),
    // Of all processes, mostly of committing sessions.
    row(&[("log file parallel write", SystemIo, Background)], 0, ["=redo writes", "=redo write time"], WAL),
    row(&[("log file parallel write", SystemIo, Background)], 18, ["=redo writes", "=redo write time"], IO),
    row(
        &[("log buffer space", Configuration, Foreground)],
        0,
        ["=redo buffer allocation retries", "n/a unknowable"],
        WAL,
    ),
    row(
        &[("log file switch completion", Configuration, Foreground)],
        18,
        ["io_log_init.writes", "io_log_init.write_time + io_log_init.fsync_time in ms"],
        IO,
    ),
];

const DATA: &str = "Data File";

/// A row of the sums of one group of `pg_stat_io`.
macro_rules! sums {
    ($function:literal, $file_type:expr, $since:literal, $group:literal) => {
        row(
            &[($function, $file_type)],
            $since,
            [
                concat!($group, ".read_requests"),
                concat!($group, ".read_bytes"),
                concat!($group, ".writes + ", $group, ".extends"),
                concat!($group, ".write_bytes + ", $group, ".extend_bytes"),
                concat!($group, ".read_requests + ", $group, ".writes + ", $group, ".extends"),
                concat!($group, ".read_time + ", $group, ".write_time + ", $group, ".extend_time in ms"),
            ],
            IO,
        )
    };
}

/// I/O by function and file type.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row(
        &[("DBWR", DATA)],
        0,
        ["", "", BY_WRITERS, "=physical writes - =buffers written by backends in blocks", FROM_16, FROM_16],
        BGWRITER,
    ),
    sums!("DBWR", DATA, 16, "io_writers"),
    // Reads are the database's, writes the whole server's.
    row(
        &[("Buffer Cache Reads", DATA)],
        0,
        [
            "=physical reads",
            "=physical read bytes",
            "=buffers written by backends",
            "=buffers written by backends in blocks",
            "=physical reads + =buffers written by backends",
            "blocks.blk_read_time + blocks.blk_write_time in ms",
        ],
        "pg_stat_database, pg_stat_bgwriter",
    ),
    sums!("Buffer Cache Reads", DATA, 16, "io_normal"),
    // Until 17 the bytes written are unknown; the bytes generated are known.
    row(
        &[("LGWR", "Log File")],
        14,
        [FROM_18, FROM_18, "=redo writes", FROM_18, "=redo writes", "=redo write time"],
        WAL,
    ),
    sums!("LGWR", "Log File", 18, "io_log"),
    sums!("Direct Reads", DATA, 16, "io_bulkread"),
    sums!("Direct Writes", DATA, 16, "io_bulkwrite"),
    sums!("Vacuum", DATA, 16, "io_vacuum"),
    sums!("Others", DATA, 16, "io_others"),
    sums!("Others", "Temp File", 16, "io_temp"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::unknown;

    #[test]
    fn every_formula_is_of_groups_and_statistics_that_there_are() {
        assert_eq!(unknown(COUNTERS), [""; 0]);
        assert_eq!(unknown(EVENTS), [""; 0]);
        assert_eq!(unknown(FUNCTIONS), [""; 0]);
        for version in 13..=18 {
            let all = names(COUNTERS, version).chain(names(EVENTS, version)).chain(names(FUNCTIONS, version));
            for name in all.chain(GAUGES.iter().map(|(_, name)| *name)) {
                let group = name.split_once('.').map(|(group, _)| group);
                let is_there = |group| group == "own" || GROUPS.iter().any(|known| known.name == group);
                assert!(group.is_some_and(is_there), "{version}: {name}");
            }
        }
    }
}
