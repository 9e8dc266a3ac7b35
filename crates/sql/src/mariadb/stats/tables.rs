//! The dictionary's statistics by the names of the server's status variables.

use assay_measure::counter_catalog::{self, Stat};

pub(super) const ABSENT: &str = "absent: this version of the server has no such counter";
const UNSUPPORTED: &str = "unsupported";

/// Counters of the dictionary by the server's names; `ServerStats::parts` handles totals and parts.
pub(super) const COUNTERS: &[(Stat, &str)] = &[
    (counter_catalog::REDO_SIZE, "innodb_lsn_current"),
    (counter_catalog::REDO_ENTRIES, "innodb_log_write_requests"),
    (counter_catalog::REDO_WRITES, "innodb_log_writes"),
    (counter_catalog::REDO_BYTES_WRITTEN, "innodb_os_log_written"),
    (counter_catalog::REDO_ALLOCATION_RETRIES, "innodb_log_waits"),
    (counter_catalog::STATEMENT_CALLS, "com_stmt_execute"),
    (counter_catalog::SERVER_DEADLOCKS, "innodb_deadlocks"),
    (counter_catalog::SERVER_TEMP_FILES, "created_tmp_files"),
    (counter_catalog::SERVER_SESSIONS, "connections"),
    // Requests to change a page; one page may be requested several times.
    (counter_catalog::DB_BLOCK_CHANGES, "innodb_buffer_pool_write_requests"),
    (counter_catalog::HOT_BUFFERS_SPARED, "innodb_buffer_pool_pages_made_young"),
    (counter_catalog::DOUBLEWRITE_PAGES, "innodb_dblwr_pages_written"),
    (counter_catalog::DOUBLEWRITE_BATCHES, "innodb_dblwr_writes"),
    (counter_catalog::DATA_FILE_SYNCS, "innodb_data_fsyncs"),
    (counter_catalog::WAL_SYNCS, "innodb_os_log_fsyncs"),
    (counter_catalog::TUPLES_INSERTED, "handler_write"),
    (counter_catalog::TUPLES_UPDATED, "handler_update"),
    (counter_catalog::TUPLES_DELETED, "handler_delete"),
];

/// MySQL's name for a counter, after MariaDB's.
pub(super) const RENAMED: &[(&str, &str)] = &[("innodb_lsn_current", "innodb_redo_log_current_lsn")];

/// Statistics that the server does not report, or that assay does not read yet; with the reason.
pub(super) const NEVER: &[(Stat, &str)] = &[
    (counter_catalog::DB_BLOCK_GETS, UNSUPPORTED),
    (counter_catalog::CONSISTENT_GETS, UNSUPPORTED),
    (counter_catalog::INDEX_GETS, UNSUPPORTED),
    (counter_catalog::INDEX_HITS, UNSUPPORTED),
    (counter_catalog::CACHE_SHARED_MISSES, "unknowable"),
    (counter_catalog::PHYSICAL_READS_DIRECT, UNSUPPORTED),
    (counter_catalog::PHYSICAL_WRITES_DIRECT, UNSUPPORTED),
    (counter_catalog::PHYSICAL_READ_MULTI_BLOCK_REQUESTS, UNSUPPORTED),
    (counter_catalog::PHYSICAL_READ_LARGE_REQUESTS, UNSUPPORTED),
    (counter_catalog::PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS, UNSUPPORTED),
    (counter_catalog::PHYSICAL_WRITES_NON_CHECKPOINT, "unknowable"),
    (counter_catalog::FREE_BUFFER_REQUESTED, UNSUPPORTED),
    (counter_catalog::FREE_BUFFER_INSPECTED, UNSUPPORTED),
    (counter_catalog::DIRTY_BUFFERS_INSPECTED, UNSUPPORTED),
    (counter_catalog::PINNED_BUFFERS_INSPECTED, UNSUPPORTED),
    (counter_catalog::BUFFERS_DIRTIED, UNSUPPORTED),
    (counter_catalog::BUFFERS_CLEANED, UNSUPPORTED),
    (counter_catalog::DBWR_CHECKPOINTS, UNSUPPORTED),
    (counter_catalog::DBWR_CHECKPOINT_BUFFERS, UNSUPPORTED),
    (counter_catalog::DBWR_UNDO_WRITES, UNSUPPORTED),
    (counter_catalog::REDO_BLOCKS_WRITTEN, UNSUPPORTED),
    (counter_catalog::REDO_WASTAGE, UNSUPPORTED),
    (counter_catalog::REDO_WRITE_TIME, "unknowable"),
    (counter_catalog::REDO_SYNCH_WRITES, "unknowable"),
    (counter_catalog::REDO_SYNCH_TIME, "unknowable"),
    (counter_catalog::REDO_LOG_SPACE_REQUESTS, UNSUPPORTED),
    (counter_catalog::REDO_LOG_SPACE_TIME, UNSUPPORTED),
    (counter_catalog::REDO_LOG_SWITCHES, UNSUPPORTED),
    (counter_catalog::UNDO_CHANGE_SIZE, UNSUPPORTED),
    (counter_catalog::CONTROL_WRITES, UNSUPPORTED),
    (counter_catalog::CONTROL_BYTES_WRITTEN, UNSUPPORTED),
    (counter_catalog::SERVER_COMMITS, "unknowable: the server counts reading statements among its commits"),
    (counter_catalog::SERVER_ROLLBACKS, "unknowable"),
    (counter_catalog::BACKGROUND_TIME, "unknowable"),
    (counter_catalog::SERVER_ACTIVE_TIME, "disabled: statements are not instrumented (performance_schema)"),
];

/// Gauges by the server's names.
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
