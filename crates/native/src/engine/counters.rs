//! What one thread of the native engine counts, and its export to a [`StatSet`].
//!
//! Each thread owns its table and adds to it without atomics; a snapshot copies
//! it at a turn boundary. Identities: gets from cache = hits + demand misses +
//! waits for other reads; physical reads cache = demand misses + prefetch.

use assay_measure::counter_catalog::{self, Stat};
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{
    Actor, Direction, EventReading, IoReading, RequestReading, StatSet, WaitClass, merge_rows,
};
use std::cell::{Cell, RefCell};

macro_rules! counters {
    ($($id:ident => $stat:ident,)*) => {
        /// Index of a counter in a thread's table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum C { $($id),* }
        /// Statistic of each counter, in the order of [`C`].
        const STATS: &[Stat] = &[$(counter_catalog::$stat),*];
    };
}

counters! {
    DbBlockGets => DB_BLOCK_GETS,
    ConsistentGets => CONSISTENT_GETS,
    IndexGets => INDEX_GETS,
    GetsFromCache => GETS_FROM_CACHE,
    Hits => CACHE_HITS,
    DemandMisses => CACHE_DEMAND_MISSES,
    SharedMisses => CACHE_SHARED_MISSES,
    IndexHits => INDEX_HITS,
    BlockChanges => DB_BLOCK_CHANGES,
    ReadsCache => PHYSICAL_READS_CACHE,
    ReadsPrefetch => PHYSICAL_READS_CACHE_PREFETCH,
    ReadsDirect => PHYSICAL_READS_DIRECT,
    ReadRequests => PHYSICAL_READ_REQUESTS,
    ReadMultiBlock => PHYSICAL_READ_MULTI_BLOCK_REQUESTS,
    WritesFromCache => PHYSICAL_WRITES_FROM_CACHE,
    WritesDirect => PHYSICAL_WRITES_DIRECT,
    WritesNonCheckpoint => PHYSICAL_WRITES_NON_CHECKPOINT,
    WriteRequests => PHYSICAL_WRITE_REQUESTS,
    WriteMultiBlock => PHYSICAL_WRITE_MULTI_BLOCK_REQUESTS,
    Commits => USER_COMMITS,
    FreeRequested => FREE_BUFFER_REQUESTED,
    FreeInspected => FREE_BUFFER_INSPECTED,
    DirtyInspected => DIRTY_BUFFERS_INSPECTED,
    PinnedInspected => PINNED_BUFFERS_INSPECTED,
    HotSpared => HOT_BUFFERS_SPARED,
    Dirtied => BUFFERS_DIRTIED,
    Cleaned => BUFFERS_CLEANED,
    CheckpointBuffers => DBWR_CHECKPOINT_BUFFERS,
    UndoWrites => DBWR_UNDO_WRITES,
    Checkpoints => DBWR_CHECKPOINTS,
    WriteClones => WRITE_CLONES,
    WriterSubmits => DBWR_SUBMITS,
    RedoSize => REDO_SIZE,
    RedoEntries => REDO_ENTRIES,
    RedoWrites => REDO_WRITES,
    RedoBlocks => REDO_BLOCKS_WRITTEN,
    RedoBytes => REDO_BYTES_WRITTEN,
    RedoHeaderBytes => REDO_HEADER_BYTES,
    RedoWastage => REDO_WASTAGE,
    RedoWriteTime => REDO_WRITE_TIME,
    RedoSynchWrites => REDO_SYNCH_WRITES,
    RedoSynchTime => REDO_SYNCH_TIME,
    RedoRetries => REDO_ALLOCATION_RETRIES,
    LogSpaceRequests => REDO_LOG_SPACE_REQUESTS,
    LogSpaceTime => REDO_LOG_SPACE_TIME,
    LogSwitches => REDO_LOG_SWITCHES,
    UndoSize => UNDO_CHANGE_SIZE,
    ControlBytes => CONTROL_BYTES_WRITTEN,
    ControlWrites => CONTROL_WRITES,
    RowsVisited => ROWS_VISITED,
    RowsChanged => ROWS_CHANGED,
    ChangedBytes => CHANGED_BYTES,
    ScanBlocks => SCAN_BLOCKS,
    Scans => TABLE_SCANS,
    OnThread => ON_THREAD_TIME,
    RunQueue => RUN_QUEUE_TIME,
    BackgroundTime => BACKGROUND_TIME,
    BackgroundCpu => BACKGROUND_CPU,
    BlockingWriteBytes => RING_WRITE_BYTES,
    BlockingWriteRequests => RING_WRITE_REQUESTS,
}

macro_rules! events {
    ($($id:ident: $name:literal, $class:ident, $actor:ident;)*) => {
        /// A named wait and how it is classed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($id),* }
        /// Name and class of each event, in the order of [`Event`].
        const EVENTS: &[(&str, WaitClass, Actor)] =
            &[$(($name, WaitClass::$class, Actor::$actor)),*];
    };
}

events! {
    SequentialRead: "db file sequential read", UserIo, Foreground;
    ScatteredRead: "db file scattered read", UserIo, Foreground;
    ParallelRead: "db file parallel read", UserIo, Foreground;
    DirectPathRead: "direct path read", UserIo, Foreground;
    ReadByOther: "read by other session", UserIo, Foreground;
    BufferBusy: "buffer busy waits", Concurrency, Foreground;
    FreeBuffer: "free buffer waits", Configuration, Foreground;
    WriteComplete: "write complete waits", Configuration, Foreground;
    LogBufferSpace: "log buffer space", Configuration, Foreground;
    LogSwitch: "log file switch completion", Configuration, Foreground;
    LogSwitchCheckpoint: "log file switch (checkpoint incomplete)", Configuration, Foreground;
    LogFileSync: "log file sync", Commit, Foreground;
    RowLock: "enq: TX - row lock contention", Application, Foreground;
    WriterSubmit: "db file async I/O submit", SystemIo, Background;
    WriterWrite: "db file parallel write", SystemIo, Background;
    LogWrite: "log file parallel write", SystemIo, Background;
    LogSingleWrite: "log file single write", SystemIo, Background;
    ControlWrite: "control file parallel write", SystemIo, Background;
}

/// Name and class of an event by its number.
pub(crate) fn event_name(number: usize) -> (&'static str, WaitClass) {
    let (name, class, _) = EVENTS[number];
    (name, class)
}

/// A row of "IOStat by function and file type".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Io {
    CacheReadData,
    CacheReadUndo,
    DirectReadData,
    WriterData,
    WriterUndo,
    LogFile,
    ControlFile,
}

const IO_ROWS: &[(&str, &str)] = &[
    ("Buffer Cache Reads", "Data File"),
    ("Buffer Cache Reads", "Undo File"),
    ("Direct Reads", "Data File"),
    ("DBWR", "Data File"),
    ("DBWR", "Undo File"),
    ("LGWR", "Log File"),
    ("Others", "Control File"),
];

/// A kind of request through the ring, by the event whose waits it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Sequential,
    Scattered,
    Parallel,
    Direct,
    DataWrite,
    LogWrite,
}

const REQUESTS: &[(Event, Direction)] = &[
    (Event::SequentialRead, Direction::Read),
    (Event::ScatteredRead, Direction::Read),
    (Event::ParallelRead, Direction::Read),
    (Event::DirectPathRead, Direction::Read),
    (Event::WriterWrite, Direction::Write),
    (Event::LogWrite, Direction::Write),
];

impl Request {
    /// The kind of a cache read, by the event its session waits with.
    pub(crate) fn of_cache_read(event: Event) -> Self {
        match event {
            Event::ParallelRead => Self::Parallel,
            Event::ScatteredRead => Self::Scattered,
            _ => Self::Sequential,
        }
    }
}

#[derive(Default)]
struct RequestCell {
    bytes: u64,
    completions: Histogram,
}

/// Requests of this size and more are "large" (awr: `requests_large`).
const LARGE_BYTES: u64 = 128 * 1024;

/// Counters of time that sessions spend, and of waits that count with it.
const SESSION_TIMES: [C; 7] = [
    C::OnThread,
    C::RunQueue,
    C::RedoSynchWrites,
    C::RedoSynchTime,
    C::RedoRetries,
    C::LogSpaceRequests,
    C::LogSpaceTime,
];

/// Session times at one instant; see [`Counters::session_times`].
pub(crate) struct SessionTimes([u64; SESSION_TIMES.len()]);

#[derive(Clone)]
struct EventCell {
    timeouts: u64,
    waits: Histogram,
}

/// One thread's counters, events and I/O rows.
pub(crate) struct Counters {
    values: Vec<Cell<u64>>,
    events: RefCell<Vec<EventCell>>,
    io: RefCell<Vec<IoReading>>,
    requests: RefCell<Vec<RequestCell>>,
}

impl Default for Counters {
    fn default() -> Self {
        let events = EVENTS.iter().map(|_| EventCell { timeouts: 0, waits: Histogram::new() }).collect();
        let io = IO_ROWS
            .iter()
            .map(|(function, file_type)| IoReading {
                function: (*function).to_owned(),
                file_type: (*file_type).to_owned(),
                ..IoReading::default()
            })
            .collect();
        let values = STATS.iter().map(|_| Cell::new(0)).collect();
        Self {
            values,
            events: RefCell::new(events),
            io: RefCell::new(io),
            requests: RefCell::new(REQUESTS.iter().map(|_| RequestCell::default()).collect()),
        }
    }
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: C, n: u64) {
        let cell = &self.values[counter as usize];
        cell.set(cell.get() + n);
    }

    pub(crate) fn get(&self, counter: C) -> u64 {
        self.values[counter as usize].get()
    }

    /// Charges one wait.
    pub(crate) fn charge(&self, event: Event, ns: u64) {
        self.events.borrow_mut()[event as usize].waits.record(ns);
    }

    /// Charges one wait that a timer ended.
    pub(crate) fn charge_timeout(&self, event: Event, ns: u64) {
        let mut events = self.events.borrow_mut();
        events[event as usize].waits.record(ns);
        events[event as usize].timeouts += 1;
    }

    /// What sessions have spent so far, for [`Counters::restore_session_times`].
    pub(crate) fn session_times(&self) -> SessionTimes {
        SessionTimes(SESSION_TIMES.map(|counter| self.get(counter)))
    }

    /// Takes back the session times since they were noted; counts of work stay.
    pub(crate) fn restore_session_times(&self, times: SessionTimes) {
        for (counter, value) in SESSION_TIMES.iter().zip(times.0) {
            self.values[*counter as usize].set(value);
        }
    }

    /// One read request of so many bytes.
    pub(crate) fn read_request(&self, row: Io, bytes: u64) {
        let row = &mut self.io.borrow_mut()[row as usize];
        row.read_bytes += bytes;
        if bytes >= LARGE_BYTES { row.large_read_requests += 1 } else { row.small_read_requests += 1 }
    }

    /// One write request of so many bytes.
    pub(crate) fn write_request(&self, row: Io, bytes: u64) {
        let row = &mut self.io.borrow_mut()[row as usize];
        row.write_bytes += bytes;
        if bytes >= LARGE_BYTES { row.large_write_requests += 1 } else { row.small_write_requests += 1 }
    }

    /// One request somebody waited for.
    pub(crate) fn io_wait(&self, row: Io, ns: u64) {
        let row = &mut self.io.borrow_mut()[row as usize];
        row.waits += 1;
        row.wait_ns += ns;
    }

    /// One request the ring completed: bytes moved, and ns from its submit to its reaping.
    #[inline]
    pub(crate) fn completed(&self, kind: Request, bytes: u64, ns: u64) {
        let cell = &mut self.requests.borrow_mut()[kind as usize];
        cell.bytes += bytes;
        cell.completions.record(ns);
    }

    /// Adds everything to a set; every statistic appears, so that 0 means observed zero.
    pub(crate) fn export(&self, block_bytes: u64, into: &mut StatSet) {
        for (stat, cell) in STATS.iter().zip(&self.values) {
            into.add(*stat, cell.get());
        }
        let reads = self.get(C::ReadsCache) + self.get(C::ReadsDirect);
        let writes = self.get(C::WritesFromCache) + self.get(C::WritesDirect);
        let io = self.io.borrow();
        let sum = |f: fn(&IoReading) -> u64| io.iter().map(f).sum::<u64>();
        let derived = [
            // A failed update stops the engine instead of being rolled back, so there are none.
            (counter_catalog::USER_ROLLBACKS, 0),
            (counter_catalog::SESSION_LOGICAL_READS, self.get(C::DbBlockGets) + self.get(C::ConsistentGets)),
            (counter_catalog::PHYSICAL_READS, reads),
            (counter_catalog::PHYSICAL_READ_BYTES, reads * block_bytes),
            (counter_catalog::PHYSICAL_WRITES, writes),
            (counter_catalog::PHYSICAL_WRITE_BYTES, writes * block_bytes),
            // Totals come from the I/O rows, the database's own figures from the counters: two counts of the same requests.
            (counter_catalog::PHYSICAL_READ_TOTAL_REQUESTS, sum(|r| r.small_read_requests + r.large_read_requests)),
            (counter_catalog::PHYSICAL_READ_TOTAL_BYTES, sum(|r| r.read_bytes)),
            (counter_catalog::PHYSICAL_READ_LARGE_REQUESTS, sum(|r| r.large_read_requests)),
            (counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS, sum(|r| r.small_write_requests + r.large_write_requests)),
            (counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES, sum(|r| r.write_bytes)),
        ];
        for (stat, value) in derived {
            into.add(stat, value);
        }
        merge_rows(&mut into.io, &io);
        self.export_events(into);
        self.export_requests(into);
    }

    fn export_requests(&self, into: &mut StatSet) {
        for ((event, direction), cell) in REQUESTS.iter().zip(self.requests.borrow().iter()) {
            if cell.completions.is_empty() {
                continue;
            }
            merge_rows(
                &mut into.requests,
                &[RequestReading {
                    event: EVENTS[*event as usize].0.to_owned(),
                    direction: *direction,
                    bytes: cell.bytes,
                    completions: cell.completions.clone(),
                }],
            );
        }
    }

    fn export_events(&self, into: &mut StatSet) {
        for ((name, class, actor), cell) in EVENTS.iter().zip(self.events.borrow().iter()) {
            if !cell.waits.is_empty() {
                merge_rows(
                    &mut into.events,
                    &[EventReading {
                        name: (*name).to_owned(),
                        class: *class,
                        actor: *actor,
                        timeouts: cell.timeouts,
                        waits: cell.waits.clone(),
                    }],
                );
            }
        }
    }
}

/// Adds the ring's own counts, made at completion: the redundant witnesses of the engine's.
pub(crate) fn export_ring(counters: &assay_block::RingCounters, into: &mut StatSet) {
    into.add(counter_catalog::RING_READ_BYTES, counters.read_bytes);
    into.add(counter_catalog::RING_READ_REQUESTS, counters.read_requests);
    into.add(counter_catalog::RING_WRITE_BYTES, counters.write_bytes);
    into.add(counter_catalog::RING_WRITE_REQUESTS, counters.write_requests);
    into.add(counter_catalog::RING_SUBMITS, counters.submits);
}
