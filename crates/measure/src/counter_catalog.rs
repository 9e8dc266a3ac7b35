//! The dictionary of statistics: AWR's name, our key and the unit of each.
//!
//! Engines and reports use the same constants for counters, so each name exists once. Definitions: awr-statistics 2.1.

/// Gauge: arrivals of a rate that are due and wait for a free session.
pub const ARRIVALS_WAITING: &str = "arrivals_waiting_count";

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain occurrences or requests.
    Count,
    /// Database blocks.
    Blocks,
    /// Bytes.
    Bytes,
    /// Nanoseconds of accumulated time.
    Ns,
}

/// One statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The field's name, as in `V$SYSSTAT`.
    pub name: &'static str,
    /// Key in the record: snake case, unit last.
    pub key: &'static str,
    /// Unit of the stored value.
    pub unit: Unit,
}

macro_rules! dictionary {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $key:literal, $unit:ident;)*) => {
        $($(#[$doc])* pub const $id: Stat = Stat { name: $name, key: $key, unit: Unit::$unit };)*
        /// Every statistic, in no particular order.
        pub const DICTIONARY: &[Stat] = &[$($id),*];
    };
}

dictionary! {
    /// Current-mode plus consistent gets.
    SESSION_LOGICAL_READS = "session logical reads", "session_logical_reads_blocks", Blocks;
    /// Gets of the current version, to modify it.
    DB_BLOCK_GETS = "db block gets", "db_block_gets_blocks", Blocks;
    /// Gets for reading.
    CONSISTENT_GETS = "consistent gets", "consistent_gets_blocks", Blocks;
    /// The part of consistent gets that walked the index.
    INDEX_GETS = "consistent gets (index)", "consistent_gets_index_blocks", Blocks;
    /// Gets that went through the buffer cache (direct reads excluded).
    GETS_FROM_CACHE = "session logical reads from cache", "session_logical_reads_from_cache_blocks", Blocks;
    /// Gets answered by a resident buffer.
    CACHE_HITS = "buffer cache hits", "buffer_cache_hits_blocks", Blocks;
    /// Gets that had to read the block themselves.
    CACHE_DEMAND_MISSES = "buffer cache demand misses", "buffer_cache_demand_misses_blocks", Blocks;
    /// Gets that waited for another session's read of the block.
    CACHE_SHARED_MISSES = "buffer cache waits for other reads", "buffer_cache_waits_for_other_reads_blocks", Blocks;
    /// Index gets that found the block resident.
    INDEX_HITS = "buffer cache hits (index)", "buffer_cache_hits_index_blocks", Blocks;
    /// Block modifications: data, undo and undo headers alike.
    DB_BLOCK_CHANGES = "db block changes", "db_block_changes_count", Count;
    /// Blocks read, cache and direct.
    PHYSICAL_READS = "physical reads", "physical_reads_blocks", Blocks;
    /// Blocks read into the cache.
    PHYSICAL_READS_CACHE = "physical reads cache", "physical_reads_cache_blocks", Blocks;
    /// Blocks read ahead of demand.
    PHYSICAL_READS_CACHE_PREFETCH = "physical reads cache prefetch", "physical_reads_cache_prefetch_blocks", Blocks;
    /// Blocks read into private memory.
    PHYSICAL_READS_DIRECT = "physical reads direct", "physical_reads_direct_blocks", Blocks;
    /// Read calls for data blocks.
    PHYSICAL_READ_REQUESTS = "physical read IO requests", "physical_read_io_requests_count", Count;
    /// Bytes of data blocks read.
    PHYSICAL_READ_BYTES = "physical read bytes", "physical_read_bytes", Bytes;
    /// All read calls: data, redo, control file.
    PHYSICAL_READ_TOTAL_REQUESTS = "physical read total IO requests", "physical_read_total_io_requests_count", Count;
    /// All bytes read.
    PHYSICAL_READ_TOTAL_BYTES = "physical read total bytes", "physical_read_total_bytes", Bytes;
    /// Read calls of more than one block.
    PHYSICAL_READ_MULTI_BLOCK_REQUESTS = "physical read total multi block requests", "physical_read_total_multi_block_requests_count", Count;
    /// Read calls of 128 KiB and more.
    PHYSICAL_READ_LARGE_REQUESTS = "physical read requests large", "physical_read_requests_large_count", Count;
    /// Blocks written, from cache and direct.
    PHYSICAL_WRITES = "physical writes", "physical_writes_blocks", Blocks;
    /// Blocks written by the database writers.
    PHYSICAL_WRITES_FROM_CACHE = "physical writes from cache", "physical_writes_from_cache_blocks", Blocks;
    /// Blocks written from private memory.
    PHYSICAL_WRITES_DIRECT = "physical writes direct", "physical_writes_direct_blocks", Blocks;
    /// Blocks that would have been written without checkpoint advancement.
    PHYSICAL_WRITES_NON_CHECKPOINT = "physical writes non checkpoint", "physical_writes_non_checkpoint_blocks", Blocks;
    /// Write calls for data blocks.
    PHYSICAL_WRITE_REQUESTS = "physical write IO requests", "physical_write_io_requests_count", Count;
    /// Bytes of data blocks written.
    PHYSICAL_WRITE_BYTES = "physical write bytes", "physical_write_bytes", Bytes;
    /// All write calls: data, redo, control file.
    PHYSICAL_WRITE_TOTAL_REQUESTS = "physical write total IO requests", "physical_write_total_io_requests_count", Count;
    /// All bytes written.
    PHYSICAL_WRITE_TOTAL_BYTES = "physical write total bytes", "physical_write_total_bytes", Bytes;
    /// Write calls of more than one block.
    PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS = "physical write total multi block requests", "physical_write_total_multi_block_requests_count", Count;
    /// Statement executions.
    EXECUTE_COUNT = "execute count", "execute_count", Count;
    /// Protocol calls; for the client loop one per operation.
    USER_CALLS = "user calls", "user_calls_count", Count;
    /// Commits asked for by operations.
    USER_COMMITS = "user commits", "user_commits_count", Count;
    /// Rollbacks asked for by operations.
    USER_ROLLBACKS = "user rollbacks", "user_rollbacks_count", Count;
    /// Sessions opened.
    LOGONS = "logons cumulative", "logons_cumulative_count", Count;
    /// Buffers sought for a read, a new block or a clone.
    FREE_BUFFER_REQUESTED = "free buffer requested", "free_buffer_requested_count", Count;
    /// Buffers looked at while seeking.
    FREE_BUFFER_INSPECTED = "free buffer inspected", "free_buffer_inspected_count", Count;
    /// Dirty buffers met while seeking.
    DIRTY_BUFFERS_INSPECTED = "dirty buffers inspected", "dirty_buffers_inspected_count", Count;
    /// Pinned buffers met while seeking.
    PINNED_BUFFERS_INSPECTED = "pinned buffers inspected", "pinned_buffers_inspected_count", Count;
    /// Buffers spared because they were touched.
    HOT_BUFFERS_SPARED = "hot buffers moved to head of LRU", "hot_buffers_moved_to_head_of_lru_count", Count;
    /// Buffers that turned dirty (clean before).
    BUFFERS_DIRTIED = "buffers newly dirtied", "buffers_newly_dirtied_count", Count;
    /// Buffers that a writer turned clean.
    BUFFERS_CLEANED = "buffers cleaned", "buffers_cleaned_count", Count;
    /// Buffers written for checkpoints.
    DBWR_CHECKPOINT_BUFFERS = "DBWR checkpoint buffers written", "dbwr_checkpoint_buffers_written_count", Count;
    /// Undo blocks written.
    DBWR_UNDO_WRITES = "DBWR undo block writes", "dbwr_undo_block_writes_count", Count;
    /// Checkpoints completed by the writers.
    DBWR_CHECKPOINTS = "DBWR checkpoints", "dbwr_checkpoints_count", Count;
    /// Copies made so that a block can change while it is written.
    WRITE_CLONES = "write clones created in background", "write_clones_created_in_background_count", Count;
    /// Submit calls of the writers.
    DBWR_SUBMITS = "DBWR submit calls", "dbwr_submit_calls_count", Count;
    /// Bytes of redo placed in the log buffer.
    REDO_SIZE = "redo size", "redo_size_bytes", Bytes;
    /// Redo records.
    REDO_ENTRIES = "redo entries", "redo_entries_count", Count;
    /// Log writes.
    REDO_WRITES = "redo writes", "redo_writes_count", Count;
    /// Log blocks written.
    REDO_BLOCKS_WRITTEN = "redo blocks written", "redo_blocks_written_count", Count;
    /// Bytes written to the logs.
    REDO_BYTES_WRITTEN = "redo bytes written", "redo_bytes_written", Bytes;
    /// Bytes of log block headers written.
    REDO_HEADER_BYTES = "redo block header bytes", "redo_block_header_bytes", Bytes;
    /// Unused tail bytes of log blocks written.
    REDO_WASTAGE = "redo wastage", "redo_wastage_bytes", Bytes;
    /// Time of log writes including their sync.
    REDO_WRITE_TIME = "redo write time", "redo_write_time_ns", Ns;
    /// Commits that waited for the log.
    REDO_SYNCH_WRITES = "redo synch writes", "redo_synch_writes_count", Count;
    /// Time commits waited for the log.
    REDO_SYNCH_TIME = "redo synch time", "redo_synch_time_ns", Ns;
    /// Allocations that found the log buffer full.
    REDO_ALLOCATION_RETRIES = "redo buffer allocation retries", "redo_buffer_allocation_retries_count", Count;
    /// Waits for a log file to become available.
    REDO_LOG_SPACE_REQUESTS = "redo log space requests", "redo_log_space_requests_count", Count;
    /// Time of those waits.
    REDO_LOG_SPACE_TIME = "redo log space wait time", "redo_log_space_wait_time_ns", Ns;
    /// Log switches.
    REDO_LOG_SWITCHES = "redo log switches", "redo_log_switches_count", Count;
    /// Bytes of the redo that describe undo.
    UNDO_CHANGE_SIZE = "undo change vector size", "undo_change_vector_size_bytes", Bytes;
    /// Bytes written to the control file.
    CONTROL_BYTES_WRITTEN = "control file bytes written", "control_file_bytes_written", Bytes;
    /// Writes of the control file.
    CONTROL_WRITES = "control file writes", "control_file_writes_count", Count;
    /// Rows an operation touched through the index or by scan.
    ROWS_VISITED = "table rows visited", "table_rows_visited_count", Count;
    /// Rows an update changed.
    ROWS_CHANGED = "table rows changed", "table_rows_changed_count", Count;
    /// Changed payload bytes of rows.
    CHANGED_BYTES = "table bytes changed", "table_bytes_changed", Bytes;
    /// Blocks of the scan table read by scans.
    SCAN_BLOCKS = "table scan blocks gotten", "table_scan_blocks_gotten_blocks", Blocks;
    /// Scans of the scan table.
    TABLE_SCANS = "table scans", "table_scans_count", Count;
    /// Time the driver threads ran operations (wall, between dispatch and suspension).
    ON_THREAD_TIME = "session on-thread time", "session_on_thread_time_ns", Ns;
    /// Time sessions were ready but not yet dispatched.
    RUN_QUEUE_TIME = "session run-queue time", "session_run_queue_time_ns", Ns;
    /// Foreground time in calls, idle waits excluded.
    DB_TIME = "DB time", "db_time_ns", Ns;
    /// CPU of the driver threads.
    DB_CPU = "DB CPU", "db_cpu_ns", Ns;
    /// CPU of background threads.
    BACKGROUND_CPU = "background cpu time", "background_cpu_time_ns", Ns;
    /// Wall time of background threads outside idle waits.
    BACKGROUND_TIME = "background elapsed time", "background_elapsed_time_ns", Ns;
    /// Bytes the ring saw arrive, counted at completion (redundant on purpose).
    RING_READ_BYTES = "ring completed read bytes", "ring_completed_read_bytes", Bytes;
    /// Read requests the ring completed (redundant on purpose).
    RING_READ_REQUESTS = "ring completed read requests", "ring_completed_read_requests_count", Count;
    /// Bytes the ring saw written, counted at completion (redundant on purpose).
    RING_WRITE_BYTES = "ring completed write bytes", "ring_completed_write_bytes", Bytes;
    /// Write requests the ring completed (redundant on purpose).
    RING_WRITE_REQUESTS = "ring completed write requests", "ring_completed_write_requests_count", Count;
    /// Bytes the kernel read from devices for the processes of a server (`/proc/<pid>/io` read_bytes).
    SERVER_DEVICE_READ_BYTES = "server process bytes read from devices", "server_process_read_bytes", Bytes;
    /// Bytes of pages the processes of a server made dirty (`/proc/<pid>/io` write_bytes): not what reached a device.
    SERVER_DIRTIED_BYTES = "server process bytes dirtied", "server_process_write_bytes", Bytes;
    /// Bytes the read calls of a server's processes returned, from wherever (`/proc/<pid>/io` rchar).
    SERVER_READ_CALL_BYTES = "server process bytes by read calls", "server_process_read_call_bytes", Bytes;
    /// Read calls of a server's processes (`/proc/<pid>/io` syscr).
    SERVER_READ_CALLS = "server process read calls", "server_process_read_calls_count", Count;
    /// Time the server's processes of our sessions could run but had no CPU.
    SERVER_RUN_DELAY = "server run delay", "server_run_delay_ns", Ns;
    /// CPU of server sessions that are not this run's.
    SERVER_OTHER_CPU = "server cpu time of other sessions", "server_other_sessions_cpu_time_ns", Ns;
    /// Kernel submissions (`io_uring_enter` or its stand-in).
    RING_SUBMITS = "ring submit calls", "ring_submit_calls_count", Count;
    /// Commits as a server counts them, read-only ones included, the collector's own left out.
    SERVER_COMMITS = "server commits", "server_commits_count", Count;
    /// Rollbacks as a server counts them.
    SERVER_ROLLBACKS = "server rollbacks", "server_rollbacks_count", Count;
    /// Transactions of a server that changed data, whether they committed or not: each has a log to write.
    SERVER_WRITE_TRANSACTIONS = "server write transactions", "server_write_transactions_count", Count;
    /// The collector's own transactions, already left out of the server's counts.
    COLLECTOR_TRANSACTIONS = "collector transactions", "collector_transactions_count", Count;
    /// Statement executions as `pg_stat_statements` counts them in the tested database, the collector's left out.
    STATEMENT_CALLS = "statement calls", "statement_calls_count", Count;
    /// Time the server's sessions spent executing, by its own count of completed statements.
    SERVER_ACTIVE_TIME = "server active time", "server_active_time_ns", Ns;
    /// Sessions opened in the tested database, by all clients.
    SERVER_SESSIONS = "server sessions opened", "server_sessions_opened_count", Count;
    /// Statements the server executed, those of blocks and its own ones included.
    SERVER_EXECUTIONS = "server executions", "server_executions_count", Count;
    /// Time the CPUs of the server's host were busy, by the server's own view of its host.
    SERVER_HOST_BUSY = "server host cpu busy time", "server_host_cpu_busy_time_ns", Ns;
    /// Time they were idle, including waiting for I/O.
    SERVER_HOST_IDLE = "server host cpu idle time", "server_host_cpu_idle_time_ns", Ns;
    /// The part of it with I/O in flight.
    SERVER_HOST_IOWAIT = "server host cpu iowait time", "server_host_cpu_iowait_time_ns", Ns;
    /// Deadlocks the server broke.
    SERVER_DEADLOCKS = "server deadlocks", "server_deadlocks_count", Count;
    /// Temporary files the server made.
    SERVER_TEMP_FILES = "server temporary files", "server_temporary_files_count", Count;
    /// Bytes written to them.
    SERVER_TEMP_BYTES = "server temporary file bytes", "server_temporary_file_bytes", Bytes;
    /// Gets of table blocks of the data set, the server's count.
    TABLE_GETS = "table block gets", "table_block_gets_blocks", Blocks;
    /// The part of them that found the block in the buffer cache.
    TABLE_HITS = "table block hits", "table_block_hits_blocks", Blocks;
    /// Rows scans and index entries returned, whole database.
    TUPLES_RETURNED = "tuples returned", "tuples_returned_count", Count;
    /// Rows fetched through an index, whole database.
    TUPLES_FETCHED = "tuples fetched", "tuples_fetched_count", Count;
    /// Rows inserted, whole database.
    TUPLES_INSERTED = "tuples inserted", "tuples_inserted_count", Count;
    /// Rows updated, whole database.
    TUPLES_UPDATED = "tuples updated", "tuples_updated_count", Count;
    /// Rows deleted, whole database.
    TUPLES_DELETED = "tuples deleted", "tuples_deleted_count", Count;
    /// Rows of the data set updated.
    TABLE_UPDATES = "table rows updated (server)", "table_rows_updated_count", Count;
    /// The part of them that stayed on their page and touched no index.
    TABLE_UPDATES_HOT = "table rows updated (HOT)", "table_rows_updated_hot_count", Count;
    /// The part of them that moved to another page.
    TABLE_UPDATES_NEW_PAGE = "table rows updated to another page", "table_rows_updated_new_page_count", Count;
    /// Log bytes as the server's statistics count them; the redo size is the distance of log positions.
    WAL_BYTES = "wal bytes", "wal_bytes", Bytes;
    /// Page images in the log.
    WAL_FULL_PAGES = "wal full page images", "wal_full_page_images_count", Count;
    /// Syncs of the log.
    WAL_SYNCS = "wal syncs", "wal_syncs_count", Count;
    /// Their time.
    WAL_SYNC_TIME = "wal sync time", "wal_sync_time_ns", Ns;
    /// Checkpoints begun by the clock.
    CHECKPOINTS_TIMED = "checkpoints timed", "checkpoints_timed_count", Count;
    /// Checkpoints asked for, by the log's growth or by command.
    CHECKPOINTS_REQUESTED = "checkpoints requested", "checkpoints_requested_count", Count;
    /// Length of the checkpoints' write phases: paced on purpose, no I/O time.
    CHECKPOINT_WRITE_TIME = "checkpoint write time", "checkpoint_write_time_ns", Ns;
    /// Length of their sync phases.
    CHECKPOINT_SYNC_TIME = "checkpoint sync time", "checkpoint_sync_time_ns", Ns;
    /// Buffers the background writer wrote.
    BUFFERS_WRITTEN_BY_WRITER = "buffers written by background writer", "buffers_written_by_background_writer_blocks", Blocks;
    /// Buffers that all others wrote or added: sessions, vacuum.
    BUFFERS_WRITTEN_BY_BACKENDS = "buffers written by backends", "buffers_written_by_backends_blocks", Blocks;
    /// Data file syncs of sessions.
    BACKEND_SYNCS = "data file syncs by backends", "data_file_syncs_by_backends_count", Count;
    /// Rounds that the background writer ended early because it had written enough.
    WRITER_STOPS = "background writer stops", "background_writer_stops_count", Count;
    /// Buffers handed out for a block; the server publishes them late.
    BUFFERS_ALLOCATED = "buffers allocated", "buffers_allocated_count", Count;
    /// Blocks evicted from the buffer cache to make room.
    BUFFER_EVICTIONS = "buffer evictions", "buffer_evictions_count", Count;
    /// Blocks of transaction status and other small caches written by checkpoints.
    SLRU_WRITTEN = "slru blocks written", "slru_blocks_written_blocks", Blocks;
    /// Pages first written to the doublewrite area, where a torn write does no harm.
    DOUBLEWRITE_PAGES = "doublewrite pages written", "doublewrite_pages_written_blocks", Blocks;
    /// Writes of several such pages.
    DOUBLEWRITE_BATCHES = "doublewrite batches written", "doublewrite_batches_written_count", Count;
    /// Syncs of data files, by any thread.
    DATA_FILE_SYNCS = "data file syncs", "data_file_syncs_count", Count;
}
