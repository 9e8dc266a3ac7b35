//! The dictionary's statistics by the names of the server's status variables.

use assay_measure::stats::{self, Stat};

pub(super) const ABSENT: &str = "absent: this version of the server has no such counter";
const UNSUPPORTED: &str = "unsupported";

/// Counters of the dictionary by the server's names; those that are parts of one another are `ServerStats::parts`.
pub(super) const COUNTERS: &[(Stat, &str)] = &[
    (stats::REDO_SIZE, "innodb_lsn_current"),
    (stats::REDO_ENTRIES, "innodb_log_write_requests"),
    (stats::REDO_WRITES, "innodb_log_writes"),
    (stats::REDO_BYTES_WRITTEN, "innodb_os_log_written"),
    (stats::REDO_ALLOCATION_RETRIES, "innodb_log_waits"),
    (stats::STATEMENT_CALLS, "com_stmt_execute"),
    (stats::SERVER_DEADLOCKS, "innodb_deadlocks"),
    (stats::SERVER_TEMP_FILES, "created_tmp_files"),
    (stats::SERVER_SESSIONS, "connections"),
    // What asks for a page to be changed: a page may be asked for several times.
    (stats::DB_BLOCK_CHANGES, "innodb_buffer_pool_write_requests"),
    (stats::HOT_BUFFERS_SPARED, "innodb_buffer_pool_pages_made_young"),
    (stats::DOUBLEWRITE_PAGES, "innodb_dblwr_pages_written"),
    (stats::DOUBLEWRITE_BATCHES, "innodb_dblwr_writes"),
    (stats::DATA_FILE_SYNCS, "innodb_data_fsyncs"),
    (stats::WAL_SYNCS, "innodb_os_log_fsyncs"),
    (stats::TUPLES_INSERTED, "handler_write"),
    (stats::TUPLES_UPDATED, "handler_update"),
    (stats::TUPLES_DELETED, "handler_delete"),
];

/// What MySQL calls a counter that MariaDB has under the first name.
pub(super) const RENAMED: &[(&str, &str)] = &[("innodb_lsn_current", "innodb_redo_log_current_lsn")];

/// Statistics that the server cannot tell, or not yet through assay; why.
pub(super) const NEVER: &[(Stat, &str)] = &[
    (stats::DB_BLOCK_GETS, UNSUPPORTED),
    (stats::CONSISTENT_GETS, UNSUPPORTED),
    (stats::INDEX_GETS, UNSUPPORTED),
    (stats::INDEX_HITS, UNSUPPORTED),
    (stats::CACHE_SHARED_MISSES, "unknowable"),
    (stats::PHYSICAL_READS_DIRECT, UNSUPPORTED),
    (stats::PHYSICAL_WRITES_DIRECT, UNSUPPORTED),
    (stats::PHYSICAL_READ_MULTI_BLOCK_REQUESTS, UNSUPPORTED),
    (stats::PHYSICAL_READ_LARGE_REQUESTS, UNSUPPORTED),
    (stats::PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS, UNSUPPORTED),
    (stats::PHYSICAL_WRITES_NON_CHECKPOINT, "unknowable"),
    (stats::FREE_BUFFER_REQUESTED, UNSUPPORTED),
    (stats::FREE_BUFFER_INSPECTED, UNSUPPORTED),
    (stats::DIRTY_BUFFERS_INSPECTED, UNSUPPORTED),
    (stats::PINNED_BUFFERS_INSPECTED, UNSUPPORTED),
    (stats::BUFFERS_DIRTIED, UNSUPPORTED),
    (stats::BUFFERS_CLEANED, UNSUPPORTED),
    (stats::DBWR_CHECKPOINTS, UNSUPPORTED),
    (stats::DBWR_CHECKPOINT_BUFFERS, UNSUPPORTED),
    (stats::DBWR_UNDO_WRITES, UNSUPPORTED),
    (stats::REDO_BLOCKS_WRITTEN, UNSUPPORTED),
    (stats::REDO_WASTAGE, UNSUPPORTED),
    (stats::REDO_WRITE_TIME, "unknowable"),
    (stats::REDO_SYNCH_WRITES, "unknowable"),
    (stats::REDO_SYNCH_TIME, "unknowable"),
    (stats::REDO_LOG_SPACE_REQUESTS, UNSUPPORTED),
    (stats::REDO_LOG_SPACE_TIME, UNSUPPORTED),
    (stats::REDO_LOG_SWITCHES, UNSUPPORTED),
    (stats::UNDO_CHANGE_SIZE, UNSUPPORTED),
    (stats::CONTROL_WRITES, UNSUPPORTED),
    (stats::CONTROL_BYTES_WRITTEN, UNSUPPORTED),
    (stats::SERVER_COMMITS, "unknowable: the server counts reading statements among its commits"),
    (stats::SERVER_ROLLBACKS, "unknowable"),
    (stats::BACKGROUND_TIME, "unknowable"),
    (stats::SERVER_ACTIVE_TIME, "disabled: statements are not instrumented (performance_schema)"),
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
