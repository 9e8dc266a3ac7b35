//! Maps a reading to the dictionary's statistics; `docs/design/postgres-statistics.md` has the same as a table.

use super::about::About;
use super::io::{self, COMBINED, Row, Sums, part};
use super::raw::{self, Raw, less, minus, sum};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::snapshot::{Reading, StatSet};

pub(super) const DATABASE: &str = "pg_stat_database";
pub(super) const BGWRITER: &str = "pg_stat_bgwriter";
pub(super) const CHECKPOINTER: &str = "pg_stat_checkpointer";
pub(super) const WAL: &str = "pg_stat_wal";
pub(super) const IO: &str = "pg_stat_io";
const STATEMENTS: &str = "pg_stat_statements";
const TABLES: &str = "pg_stat_user_tables";
const TABLE_BLOCKS: &str = "pg_statio_user_tables";
const INDEX_BLOCKS: &str = "pg_statio_user_indexes";
const LSN: &str = "wal_lsn";

/// Reason for a missing value without any other reason.
pub(super) const SILENT: &str = "unknowable: the server gives no value";
pub(super) const FROM_14: &str = "absent: came with PostgreSQL 14";
pub(super) const FROM_16: &str = "absent: came with PostgreSQL 16";
const FROM_18: &str = "absent: came with PostgreSQL 18";
/// Reason for the missing time of untimed I/O.
pub(super) const UNTIMED: &str = "disabled: track_io_timing";
pub(super) const WAL_UNTIMED: &str = "disabled: track_wal_io_timing";
const NO_TABLES: &str = "unknowable: the data set has no such table yet";

/// Statistics of the dictionary that no server version reports.
const NEVER: [(Stat, &str); 27] = [
    (counter_catalog::BUFFERS_CLEANED, "unsupported"),
    (counter_catalog::DB_BLOCK_GETS, "unsupported"),
    (counter_catalog::CONSISTENT_GETS, "unsupported"),
    (counter_catalog::DB_BLOCK_CHANGES, "unsupported"),
    (counter_catalog::CACHE_SHARED_MISSES, "unknowable"),
    (counter_catalog::PHYSICAL_READS_CACHE_PREFETCH, "unknowable"),
    (counter_catalog::PHYSICAL_READS_DIRECT, "unsupported"),
    (counter_catalog::PHYSICAL_WRITES_DIRECT, "unsupported"),
    (counter_catalog::PHYSICAL_READ_MULTI_BLOCK_REQUESTS, "unsupported"),
    (counter_catalog::PHYSICAL_READ_LARGE_REQUESTS, "unsupported"),
    (counter_catalog::PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS, "unsupported"),
    (counter_catalog::FREE_BUFFER_REQUESTED, "unsupported"),
    (counter_catalog::FREE_BUFFER_INSPECTED, "unsupported"),
    (counter_catalog::DIRTY_BUFFERS_INSPECTED, "unsupported"),
    (counter_catalog::PINNED_BUFFERS_INSPECTED, "unsupported"),
    (counter_catalog::HOT_BUFFERS_SPARED, "unsupported"),
    (counter_catalog::DBWR_UNDO_WRITES, "unsupported"),
    (counter_catalog::UNDO_CHANGE_SIZE, "unsupported"),
    (counter_catalog::REDO_BLOCKS_WRITTEN, "unsupported"),
    (counter_catalog::REDO_WASTAGE, "unsupported"),
    (counter_catalog::REDO_SYNCH_WRITES, "unknowable"),
    (counter_catalog::REDO_SYNCH_TIME, "unknowable"),
    (counter_catalog::REDO_LOG_SPACE_REQUESTS, "unsupported"),
    (counter_catalog::REDO_LOG_SPACE_TIME, "unsupported"),
    (counter_catalog::REDO_LOG_SWITCHES, "unsupported"),
    (counter_catalog::CONTROL_WRITES, "unsupported"),
    (counter_catalog::CONTROL_BYTES_WRITTEN, "unsupported"),
];

/// Work of our own connections, to be subtracted from the database's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Transactions published by the time of the reading.
    pub transactions: u64,
    /// Statements of ours counted by `pg_stat_statements`.
    pub calls: u64,
}

/// One reading and what is needed to interpret it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapper<'a> {
    pub raw: &'a Raw,
    pub about: &'a About,
    pub own: Own,
}

impl Mapper<'_> {
    /// Counters and gauges.
    pub(super) fn stats(self) -> StatSet {
        let mut set = StatSet::default();
        for (stat, reason) in NEVER {
            set.put(stat, Reading::Na(reason.to_owned()), "postgres");
        }
        self.database(&mut set);
        self.data_set(&mut set);
        self.reads(&mut set);
        self.writes(&mut set);
        self.log(&mut set);
        self.totals(&mut set);
        self.checkpoints(&mut set);
        self.gauges(&mut set);
        set
    }

    pub(super) fn db(&self, column: &str) -> Reading {
        if !self.about.counts {
            return Reading::Na("disabled: track_counts".to_owned());
        }
        self.raw.count("db", column, SILENT)
    }

    pub(super) fn blks_read(&self) -> Reading {
        minus(self.db("blks_fetched"), self.db("blks_hit"))
    }

    fn since(&self, version: u32, group: &str, column: &str, absent: &str) -> Reading {
        let absent = if self.about.version < version { absent } else { SILENT };
        self.raw.count(group, column, absent)
    }

    pub(super) fn wal(&self, column: &str) -> Reading {
        self.since(14, "wal", column, FROM_14)
    }

    /// A time from `pg_stat_wal` (14 to 17).
    pub(super) fn wal_ns(&self, column: &str) -> Reading {
        if self.about.version >= 14 && !self.about.wal_timing {
            return Reading::Na(WAL_UNTIMED.to_owned());
        }
        self.raw.ms("wal", column, FROM_14)
    }

    /// Sums over rows of `pg_stat_io`.
    pub(super) fn io(&self, pick: impl Fn(Row<'_>) -> bool) -> Result<Sums, String> {
        Sums::of(self.raw, pick)
    }

    /// A time, if it is measured.
    pub(super) fn timed(on: bool, ns: Reading) -> Reading {
        if on { ns } else { Reading::Na(UNTIMED.to_owned()) }
    }

    fn database(&self, set: &mut StatSet) {
        let own = self.own;
        let commits = less(self.db("xact_commit"), own.transactions);
        set.put(counter_catalog::SERVER_COMMITS, commits, DATABASE);
        set.put(counter_catalog::SERVER_ROLLBACKS, self.db("xact_rollback"), DATABASE);
        let transactions = Reading::Count(own.transactions);
        set.put(counter_catalog::COLLECTOR_TRANSACTIONS, transactions, "client");
        for (stat, column) in [
            (counter_catalog::TUPLES_RETURNED, "tup_returned"),
            (counter_catalog::TUPLES_FETCHED, "tup_fetched"),
            (counter_catalog::TUPLES_INSERTED, "tup_inserted"),
            (counter_catalog::TUPLES_UPDATED, "tup_updated"),
            (counter_catalog::TUPLES_DELETED, "tup_deleted"),
            (counter_catalog::SERVER_DEADLOCKS, "deadlocks"),
            (counter_catalog::SERVER_TEMP_FILES, "temp_files"),
            (counter_catalog::SERVER_TEMP_BYTES, "temp_bytes"),
        ] {
            set.put(stat, self.db(column), DATABASE);
        }
        let active = self.raw.ms("db", "active_time", FROM_14);
        set.put(counter_catalog::SERVER_ACTIVE_TIME, active, DATABASE);
        let sessions = self.since(14, "db", "sessions", FROM_14);
        set.put(counter_catalog::SERVER_SESSIONS, sessions, DATABASE);
        let of_statements = |column: &str| match &self.about.statements {
            Ok(_) => self.raw.count("statements", column, SILENT),
            Err(reason) => Reading::Na(reason.clone()),
        };
        let calls = less(of_statements("calls"), own.calls);
        set.put(counter_catalog::STATEMENT_CALLS, calls, STATEMENTS);
        let dirtied = of_statements("shared_blks_dirtied");
        set.put(counter_catalog::BUFFERS_DIRTIED, dirtied, STATEMENTS);
    }

    fn data_set(&self, set: &mut StatSet) {
        let of = |group: &str, column: &str| self.raw.count(group, column, NO_TABLES);
        set.put(counter_catalog::TABLE_GETS, of("table", "blks_fetched"), TABLE_BLOCKS);
        set.put(counter_catalog::TABLE_HITS, of("table", "blks_hit"), TABLE_BLOCKS);
        set.put(counter_catalog::INDEX_GETS, of("index", "blks_fetched"), INDEX_BLOCKS);
        set.put(counter_catalog::INDEX_HITS, of("index", "blks_hit"), INDEX_BLOCKS);
        set.put(counter_catalog::SCAN_BLOCKS, of("scan", "blks_fetched"), TABLE_BLOCKS);
        set.put(counter_catalog::TABLE_UPDATES, of("table", "n_tup_upd"), TABLES);
        set.put(counter_catalog::TABLE_UPDATES_HOT, of("table", "n_tup_hot_upd"), TABLES);
        let absent = if self.about.version < 16 { FROM_16 } else { NO_TABLES };
        let moved = self.raw.count("table", "n_tup_newpage_upd", absent);
        set.put(counter_catalog::TABLE_UPDATES_NEW_PAGE, moved, TABLES);
    }

    fn reads(&self, set: &mut StatSet) {
        let reads = self.blks_read();
        let gets = self.db("blks_fetched");
        for stat in [counter_catalog::SESSION_LOGICAL_READS, counter_catalog::GETS_FROM_CACHE] {
            set.put(stat, gets.clone(), DATABASE);
        }
        set.put(counter_catalog::CACHE_HITS, self.db("blks_hit"), DATABASE);
        for stat in [
            counter_catalog::PHYSICAL_READS,
            counter_catalog::PHYSICAL_READS_CACHE,
            counter_catalog::CACHE_DEMAND_MISSES,
        ] {
            set.put(stat, reads.clone(), DATABASE);
        }
        let bytes = raw::times(reads.clone(), self.about.block_bytes);
        set.put(counter_catalog::PHYSICAL_READ_BYTES, bytes, DATABASE);
        match self.about.version {
            // Each block is a separate read.
            ..=16 => set.put(counter_catalog::PHYSICAL_READ_REQUESTS, reads, DATABASE),
            17 => set.put(counter_catalog::PHYSICAL_READ_REQUESTS, Reading::Na(COMBINED.to_owned()), IO),
            _ => {
                let sessions = self.io(|row| row.is_relation() && row.is_session());
                let requests = part(&sessions, |sums| sums.reads);
                set.put(counter_catalog::PHYSICAL_READ_REQUESTS, requests, IO);
            }
        }
    }

    /// Blocks written by the checkpointer, the background writer, and all other processes.
    pub(super) fn writers(&self) -> [(Reading, &'static str); 3] {
        let clean = (self.raw.count("bgwriter", "buffers_clean", SILENT), BGWRITER);
        let of = |column| (self.raw.count("bgwriter", column, SILENT), BGWRITER);
        if self.about.version < 16 {
            return [of("buffers_checkpoint"), clean, of("buffers_backend")];
        }
        // Also on 16, where session writes reach pg_stat_bgwriter through the checkpointer, late and in steps.
        let others = self.io(|row| row.is_relation() && !row.is_writer());
        let blocks = |sums: &Sums| (sums.write_bytes + sums.extend_bytes) / self.about.block_bytes;
        let checkpoint = match self.about.version {
            16 => of("buffers_checkpoint"),
            _ => (self.raw.count("checkpointer", "buffers_written", SILENT), CHECKPOINTER),
        };
        [checkpoint, clean, (part(&others, blocks), IO)]
    }

    fn writes(&self, set: &mut StatSet) {
        let [checkpoint, clean, backends] = self.writers();
        let without_checkpoint = sum([clean.0.clone(), backends.0.clone()]);
        let all = sum([checkpoint.0.clone(), without_checkpoint.clone()]);
        let source = if self.about.version < 16 { BGWRITER } else { IO };
        for stat in [counter_catalog::PHYSICAL_WRITES, counter_catalog::PHYSICAL_WRITES_FROM_CACHE] {
            set.put(stat, all.clone(), source);
        }
        set.put(counter_catalog::PHYSICAL_WRITES_NON_CHECKPOINT, without_checkpoint, source);
        let bytes = raw::times(all.clone(), self.about.block_bytes);
        set.put(counter_catalog::PHYSICAL_WRITE_BYTES, bytes, source);
        // Each written block is one call. From 16 on only extends may be combined, so the count is a lower bound there.
        // 18 counts calls.
        let relations = self.io(|row| row.is_relation());
        let (requests, source) = match self.about.version {
            ..=15 => (all, source),
            16 | 17 => (part(&relations, |sums| sums.writes), "pg_stat_io (>=)"),
            _ => (part(&relations, |sums| sums.writes + sums.extends), IO),
        };
        set.put(counter_catalog::PHYSICAL_WRITE_REQUESTS, requests, source);
        set.put(counter_catalog::DBWR_CHECKPOINT_BUFFERS, checkpoint.0, checkpoint.1);
        set.put(counter_catalog::BUFFERS_WRITTEN_BY_WRITER, clean.0, clean.1);
        set.put(counter_catalog::BUFFERS_WRITTEN_BY_BACKENDS, backends.0, backends.1);
        let sessions = self.io(|row| row.is_relation() && row.is_session());
        let (syncs, source) = if self.about.version < 16 {
            (self.raw.count("bgwriter", "buffers_backend_fsync", SILENT), BGWRITER)
        } else {
            (part(&sessions, |sums| sums.fsyncs), IO)
        };
        set.put(counter_catalog::BACKEND_SYNCS, syncs, source);
        let evictions = part(&self.io(|row| row.is_relation()), |sums| sums.evictions);
        set.put(counter_catalog::BUFFER_EVICTIONS, evictions, IO);
        let stops = self.raw.count("bgwriter", "maxwritten_clean", SILENT);
        set.put(counter_catalog::WRITER_STOPS, stops, BGWRITER);
        let allocated = self.raw.count("bgwriter", "buffers_alloc", SILENT);
        set.put(counter_catalog::BUFFERS_ALLOCATED, allocated, BGWRITER);
    }

    fn log(&self, set: &mut StatSet) {
        let standby = "unsupported: a standby writes no log";
        set.put(counter_catalog::REDO_SIZE, self.raw.plain("lsn", standby), LSN);
        set.put(counter_catalog::REDO_ENTRIES, self.wal("wal_records"), WAL);
        set.put(counter_catalog::WAL_FULL_PAGES, self.wal("wal_fpi"), WAL);
        set.put(counter_catalog::WAL_BYTES, self.wal("wal_bytes"), WAL);
        let full = self.wal("wal_buffers_full");
        set.put(counter_catalog::REDO_ALLOCATION_RETRIES, full, WAL);
        let log = self.log_writes();
        set.put(counter_catalog::REDO_WRITES, log.writes, log.source);
        let time = sum([log.write_ns, log.sync_ns.clone()]);
        set.put(counter_catalog::REDO_WRITE_TIME, time, log.source);
        set.put(counter_catalog::REDO_BYTES_WRITTEN, log.bytes, log.source);
        set.put(counter_catalog::WAL_SYNCS, log.syncs, log.source);
        set.put(counter_catalog::WAL_SYNC_TIME, log.sync_ns, log.source);
    }

    /// Log writes of all processes: `pg_stat_wal` from 14 to 17, `pg_stat_io` from 18 on.
    pub(super) fn log_writes(&self) -> LogWrites {
        if self.about.version < 18 {
            return LogWrites {
                writes: self.wal("wal_write"),
                syncs: self.wal("wal_sync"),
                write_ns: self.wal_ns("wal_write_time"),
                sync_ns: self.wal_ns("wal_sync_time"),
                bytes: Reading::Na(FROM_18.to_owned()),
                source: WAL,
            };
        }
        let sums = self.io(|row| row.is_wal() && row.context == "normal");
        let timed = |ns: Reading| {
            if self.about.wal_timing { ns } else { Reading::Na(WAL_UNTIMED.to_owned()) }
        };
        LogWrites {
            writes: part(&sums, |sums| sums.writes),
            syncs: part(&sums, |sums| sums.fsyncs),
            write_ns: timed(part(&sums, |sums| sums.write_ns)),
            sync_ns: timed(part(&sums, |sums| sums.fsync_ns)),
            bytes: part(&sums, |sums| sums.write_bytes),
            source: IO,
        }
    }

    /// Totals of requests and bytes, including the log; only 18 counts them all in one place.
    fn totals(&self, set: &mut StatSet) {
        let all = if self.about.version >= 18 { self.io(|_| true) } else { Err(FROM_18.to_owned()) };
        for (stat, reading) in [
            (counter_catalog::PHYSICAL_READ_TOTAL_REQUESTS, part(&all, |sums| sums.reads)),
            (counter_catalog::PHYSICAL_READ_TOTAL_BYTES, part(&all, |sums| sums.read_bytes)),
            (counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS, part(&all, |sums| sums.writes + sums.extends)),
            (counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES, part(&all, |sums| sums.write_bytes + sums.extend_bytes)),
        ] {
            set.put(stat, reading, io::source(self.about.version));
        }
    }

    fn checkpoints(&self, set: &mut StatSet) {
        let (group, source, names) = if self.about.version < 17 {
            let names = ["checkpoints_timed", "checkpoints_req", "checkpoint_write_time", "checkpoint_sync_time"];
            ("bgwriter", BGWRITER, names)
        } else {
            let names = ["num_timed", "num_requested", "write_time", "sync_time"];
            ("checkpointer", CHECKPOINTER, names)
        };
        let [timed, requested, write, sync] = names;
        let timed = self.raw.count(group, timed, SILENT);
        let requested = self.raw.count(group, requested, SILENT);
        set.put(counter_catalog::CHECKPOINTS_TIMED, timed.clone(), source);
        set.put(counter_catalog::CHECKPOINTS_REQUESTED, requested.clone(), source);
        let done =
            if self.about.version < 18 { sum([timed, requested]) } else { self.raw.count(group, "num_done", SILENT) };
        set.put(counter_catalog::DBWR_CHECKPOINTS, done, source);
        let of = |column| self.raw.ms(group, column, SILENT);
        set.put(counter_catalog::CHECKPOINT_WRITE_TIME, of(write), source);
        set.put(counter_catalog::CHECKPOINT_SYNC_TIME, of(sync), source);
        let slru = self.since(18, group, "slru_written", FROM_18);
        set.put(counter_catalog::SLRU_WRITTEN, slru, source);
    }

    fn gauges(&self, set: &mut StatSet) {
        for (name, group, column) in [
            ("server_sessions_count", "db", "numbackends"),
            ("dead_rows_count", "table", "n_dead_tup"),
            ("live_rows_count", "table", "n_live_tup"),
        ] {
            if let Reading::Count(n) = self.raw.count(group, column, "") {
                set.gauges.insert(name.to_owned(), n);
            }
        }
    }
}

/// See [`Mapper::log_writes`].
pub(super) struct LogWrites {
    pub writes: Reading,
    pub syncs: Reading,
    pub write_ns: Reading,
    pub sync_ns: Reading,
    pub bytes: Reading,
    pub source: &'static str,
}
