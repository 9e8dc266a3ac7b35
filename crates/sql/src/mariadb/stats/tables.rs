//! The dictionary's statistics by the names of the server's status variables; `file.` are the columns of
//! `performance_schema` about table files.

use crate::statistics::{CounterRow, EventRow, row};
use assay_measure::counter_catalog::*;
use assay_measure::snapshot::{Actor, WaitClass};

use Actor::{Background, Foreground};
use WaitClass::{Application, Configuration, SystemIo, UserIo};

const OWN: &str = "mysql";
const READ: &str = "innodb_pages_read";
const WRITTEN: &str = "innodb_pages_written";
const GETS: &str = "innodb_buffer_pool_read_requests";
const AHEAD: &str = "innodb_buffer_pool_read_ahead + innodb_buffer_pool_read_ahead_rnd";

/// Totals with a part of each, a part above its total. The server reads its counters one after the other while they
/// change, so a part may seem to grow by more than its total. To avoid that, the difference is kept from falling, and the
/// total is part plus difference.
pub(super) const TOTALS: [(&str, &str); 6] = [
    (READ, AHEAD),
    (GETS, READ),
    ("innodb_data_reads", READ),
    ("innodb_data_read", "innodb_pages_read in blocks"),
    ("innodb_data_writes", WRITTEN),
    ("innodb_data_written", "innodb_pages_written in blocks"),
];

/// Counters.
pub(super) const COUNTERS: &[CounterRow] = &[
    // MySQL's name after MariaDB's.
    row(&[REDO_SIZE], 0, ["innodb_lsn_current | innodb_redo_log_current_lsn"], ""),
    row(&[REDO_ENTRIES], 0, ["innodb_log_write_requests"], ""),
    row(&[REDO_WRITES], 0, ["innodb_log_writes"], ""),
    row(&[REDO_BYTES_WRITTEN], 0, ["innodb_os_log_written"], ""),
    row(&[REDO_ALLOCATION_RETRIES], 0, ["innodb_log_waits"], ""),
    row(&[STATEMENT_CALLS], 0, ["com_stmt_execute"], ""),
    row(&[SERVER_DEADLOCKS], 0, ["innodb_deadlocks"], ""),
    row(&[SERVER_TEMP_FILES], 0, ["created_tmp_files"], ""),
    row(&[SERVER_SESSIONS], 0, ["connections"], ""),
    // Requests to change a page; one page may be requested several times.
    row(&[DB_BLOCK_CHANGES], 0, ["innodb_buffer_pool_write_requests"], ""),
    row(&[HOT_BUFFERS_SPARED], 0, ["innodb_buffer_pool_pages_made_young"], ""),
    row(&[DOUBLEWRITE_PAGES], 0, ["innodb_dblwr_pages_written"], ""),
    row(&[DOUBLEWRITE_BATCHES], 0, ["innodb_dblwr_writes"], ""),
    row(&[DATA_FILE_SYNCS], 0, ["innodb_data_fsyncs"], ""),
    row(&[WAL_SYNCS], 0, ["innodb_os_log_fsyncs"], ""),
    row(&[TUPLES_INSERTED], 0, ["handler_write"], ""),
    row(&[TUPLES_UPDATED], 0, ["handler_update"], ""),
    row(&[TUPLES_DELETED], 0, ["handler_delete"], ""),
    // The first row of a range is read by its key, the others as next rows.
    row(&[TUPLES_FETCHED], 0, ["handler_read_key + handler_read_next"], ""),
    row(&[TUPLES_RETURNED], 0, ["handler_read_key + handler_read_next + handler_read_rnd_next"], ""),
    // Each page is read or written by a separate request.
    row(&[SESSION_LOGICAL_READS, GETS_FROM_CACHE], 0, [GETS], ""),
    row(&[PHYSICAL_READS, PHYSICAL_READS_CACHE, PHYSICAL_READ_REQUESTS], 0, [READ], ""),
    row(&[PHYSICAL_READ_BYTES], 0, ["=physical reads in blocks"], READ),
    row(&[CACHE_HITS], 0, ["=session logical reads - =physical reads"], GETS),
    row(&[PHYSICAL_READS_CACHE_PREFETCH], 0, [AHEAD], "innodb_buffer_pool_read_ahead"),
    row(&[CACHE_DEMAND_MISSES], 0, ["=physical reads - =physical reads cache prefetch"], READ),
    row(&[PHYSICAL_WRITES, PHYSICAL_WRITES_FROM_CACHE, PHYSICAL_WRITE_REQUESTS], 0, [WRITTEN], ""),
    row(&[PHYSICAL_WRITE_BYTES], 0, ["=physical writes in blocks"], WRITTEN),
    row(&[PHYSICAL_READ_TOTAL_REQUESTS], 0, ["innodb_data_reads"], ""),
    row(&[PHYSICAL_READ_TOTAL_BYTES], 0, ["innodb_data_read"], ""),
    row(&[PHYSICAL_WRITE_TOTAL_REQUESTS], 0, ["innodb_data_writes"], ""),
    row(&[PHYSICAL_WRITE_TOTAL_BYTES], 0, ["innodb_data_written"], ""),
    row(&[SERVER_COMMITS], 0, ["n/a unknowable: the server counts reading statements among its commits"], OWN),
    row(&[SERVER_WRITE_TRANSACTIONS], 0, ["write_transactions"], "binlog_cache_use | SHOW ENGINE INNODB STATUS"),
    row(&[SERVER_ACTIVE_TIME], 0, ["n/a disabled: statements are not instrumented (performance_schema)"], OWN),
    row(
        &[
            CACHE_SHARED_MISSES,
            PHYSICAL_WRITES_NON_CHECKPOINT,
            REDO_WRITE_TIME,
            REDO_SYNCH_WRITES,
            REDO_SYNCH_TIME,
            SERVER_ROLLBACKS,
            BACKGROUND_TIME,
        ],
        0,
        ["n/a unknowable"],
        OWN,
    ),
    row(
        &[
            DB_BLOCK_GETS,
            CONSISTENT_GETS,
            INDEX_GETS,
            INDEX_HITS,
            PHYSICAL_READS_DIRECT,
            PHYSICAL_WRITES_DIRECT,
            PHYSICAL_READ_MULTI_BLOCK_REQUESTS,
            PHYSICAL_READ_LARGE_REQUESTS,
            PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS,
            FREE_BUFFER_REQUESTED,
            FREE_BUFFER_INSPECTED,
            DIRTY_BUFFERS_INSPECTED,
            PINNED_BUFFERS_INSPECTED,
            BUFFERS_DIRTIED,
            BUFFERS_CLEANED,
            DBWR_CHECKPOINTS,
            DBWR_CHECKPOINT_BUFFERS,
            DBWR_UNDO_WRITES,
            REDO_BLOCKS_WRITTEN,
            REDO_WASTAGE,
            REDO_LOG_SPACE_REQUESTS,
            REDO_LOG_SPACE_TIME,
            REDO_LOG_SWITCHES,
            UNDO_CHANGE_SIZE,
            CONTROL_WRITES,
            CONTROL_BYTES_WRITTEN,
        ],
        0,
        ["n/a unsupported"],
        OWN,
    ),
];

/// Wait events. Sessions read pages themselves and wait for each; server threads write and sync pages.
pub(super) const EVENTS: &[EventRow] = &[
    row(
        &[("db file sequential read", UserIo, Foreground)],
        0,
        ["file.count_read | innodb_buffer_pool_reads", "file.sum_timer_read"],
        "performance_schema | innodb_buffer_pool_reads",
    ),
    row(
        &[("db file parallel write", SystemIo, Background)],
        0,
        ["file.count_write | innodb_data_writes", "file.sum_timer_write"],
        "performance_schema | innodb_data_writes",
    ),
    row(
        &[("data file sync", SystemIo, Background)],
        0,
        ["file.count_misc | innodb_data_fsyncs", "file.sum_timer_misc"],
        "performance_schema | innodb_data_fsyncs",
    ),
    row(
        &[("log file parallel write", SystemIo, Background)],
        0,
        ["innodb_log_writes", "n/a absent: the log's writes have no instrument"],
        "",
    ),
    row(&[("log buffer space", Configuration, Foreground)], 0, ["innodb_log_waits", "n/a unknowable"], ""),
    row(&[("free buffer waits", Configuration, Foreground)], 0, ["innodb_buffer_pool_wait_free", "n/a unknowable"], ""),
    row(
        &[("enq: TX - row lock contention", Application, Foreground)],
        0,
        ["innodb_row_lock_waits", "innodb_row_lock_time in ms"],
        "",
    ),
];

/// Gauges.
pub(super) const GAUGES: &[(&str, &str)] = &[
    ("server_sessions_count", "threads_connected"),
    ("dirty_pages_count", "innodb_buffer_pool_pages_dirty"),
    ("buffer_pool_pages_count", "innodb_buffer_pool_pages_data"),
    ("checkpoint_age_bytes", "innodb_checkpoint_age"),
    ("checkpoint_age_max_bytes", "innodb_checkpoint_max_age"),
    ("buffer_pool_pages_free_count", "innodb_buffer_pool_pages_free"),
    ("row_lock_waiting_count", "innodb_row_lock_current_waits"),
    ("history_list_count", "innodb_history_list_length"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::unknown;

    #[test]
    fn every_formula_is_of_statistics_that_there_are() {
        assert_eq!(unknown(COUNTERS), [""; 0]);
        assert_eq!(unknown(EVENTS), [""; 0]);
    }
}
