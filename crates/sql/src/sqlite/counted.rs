//! What a session counts beside its rows: waits for the write lock, commits, checkpoints, and what the kernel charged to
//! its thread.
//!
//! SQLite counts hits and misses of its page cache (`sqlite3_db_status`), but `rusqlite` has no safe call for it. Each
//! page that is not in the cache is one read call, so the kernel's account of the thread has the misses exactly; only
//! pages read through memory (SQLITE_MMAP_MB) are missing there.

use super::file::{Db, File, wait};
use crate::here::SOURCE as PROC;
use crate::statistics::{CounterRow, Reader, row};
use assay_measure::counter_catalog::*;
use assay_measure::histogram::Histogram;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Actor, EventReading, Reading, StatSet, WaitClass};
use assay_run::engine::{Doing, EngineError};
use assay_run::host::text::process_stat;
use assay_run::stop::Stop;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, Error, OpenFlags, ffi};
use rustix::thread::gettid;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Keys of the sources.
const HOOK: &str = "wal_hook";
const CLIENT: &str = "client";

/// What a session waits for.
const LOCK: (&str, WaitClass) = ("enq: write lock", WaitClass::Application);
const COMMIT: (&str, WaitClass) = ("log file sync", WaitClass::Commit);
const CHECKPOINT: (&str, WaitClass) = ("checkpoint by session", WaitClass::Configuration);
/// Where a thread is in the kernel's state D, outside its commits and in one that does not wait for the device.
const READ: (&str, WaitClass) = ("db file sequential read", WaitClass::UserIo);
const WRITE: (&str, WaitClass) = ("log file parallel write", WaitClass::SystemIo);
const EVENTS: [(&str, WaitClass); 3] = [LOCK, COMMIT, CHECKPOINT];

/// What a session does that commits without a wait for the device.
const WRITES: u64 = 4;

/// The lines of a thread's account in the kernel.
const LINES: [&str; 5] = ["rchar", "syscr", "wchar", "syscw", "read_bytes"];

/// What the kernel charged to a thread, cumulative, in the order of [`LINES`].
type Io = [u64; 5];

/// The account of a thread of this process; `None` where the kernel keeps none, or the thread has ended.
fn account(thread: i32) -> Option<Io> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/io")).ok()?;
    let keyed =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok());
    let found = LINES.map(keyed);
    found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default))
}

/// How long a thread of this process could run but had no CPU, ns.
fn run_delay(thread: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Whether a thread's `stat` says that it sleeps in the kernel for a device.
fn in_device(stat: &str) -> bool {
    process_stat(stat).next() == Some("D")
}

fn sum(one: Io, other: Io) -> Io {
    std::array::from_fn(|at| one[at] + other[at])
}

fn since(now: Io, before: Io) -> Io {
    std::array::from_fn(|at| now[at].saturating_sub(before[at]))
}

/// Cumulative.
#[derive(Debug)]
struct Kept {
    waits: [Histogram; 3],
    checkpoints: u64,
    /// Of the session's calls so far, and the part of it that was checkpoints'; `None`: no account.
    io: Option<Io>,
    of_checkpoints: Io,
    /// The session's thread, until it ends, and its account when the session began.
    thread: Option<i32>,
    from: Io,
    /// As `io` and `from`, of the time without a CPU.
    delay_ns: Option<u64>,
    delay_from: u64,
}

/// A session that has not begun was charged nothing.
impl Default for Kept {
    fn default() -> Self {
        Self {
            waits: Default::default(),
            checkpoints: 0,
            io: Some(Io::default()),
            of_checkpoints: Io::default(),
            thread: None,
            from: Io::default(),
            delay_ns: Some(0),
            delay_from: 0,
        }
    }
}

impl Kept {
    /// Notes a checkpoint from the thread's account before it and after it: its part never exceeds the whole.
    fn checkpointed(&mut self, before: Io, after: Io) {
        self.of_checkpoints = sum(self.of_checkpoints, since(after, before));
        self.io = Some(since(after, self.from));
    }
}

/// Counts of one session; its own thread writes them, and the collector reads them.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Rows of which a page was sought.
    rows: AtomicU64,
    /// What it waits for now: an event's place in `EVENTS` plus 1; 0: nothing; `WRITES`: it commits without a wait.
    doing: AtomicU64,
    /// Each commit waits for the device.
    waits_for_log: bool,
    /// Waits for the write lock are to end.
    cancelled: AtomicBool,
    kept: Mutex<Kept>,
}

impl Counted {
    /// Counts of a session that has not begun.
    pub(super) fn of(at: &File) -> Arc<Self> {
        Arc::new(Self { waits_for_log: at.waits_for_log(), ..Self::default() })
    }

    /// Opens the connection of a session, which tells what it does, on the session's own thread.
    pub(super) fn open(self: &Arc<Self>, at: &File) -> Result<Db, EngineError> {
        let mut db = at.open(OpenFlags::empty(), Stop::abandoned)?;
        let set = format!(
            "pragma synchronous = {}; pragma cache_size = {}; pragma mmap_size = {}; pragma foreign_keys = on",
            at.synchronous,
            at.cache_pages(at.page(&db)?),
            at.mmap_bytes
        );
        let attached = self.attach(&mut db.0, at).and_then(|()| db.0.execute_batch(&set));
        db.1 = true;
        attached.and_then(|()| db.ours()).map_err(at.told("opening a session"))?;
        self.begins();
        Ok(db)
    }

    /// Begins the accounts, after the schema was read: a read from here on is for a row, or of the index.
    fn begins(&self) {
        let thread = gettid().as_raw_nonzero().get();
        let mut kept = locked(&self.kept);
        let (from, delay) = (account(thread), run_delay(thread));
        (kept.thread, kept.from, kept.io) = (Some(thread), from.unwrap_or_default(), from.map(|_| Io::default()));
        (kept.delay_from, kept.delay_ns) = (delay.unwrap_or_default(), delay.map(|_| 0));
    }

    fn attach(self: &Arc<Self>, db: &mut Connection, at: &File) -> rusqlite::Result<()> {
        let thread = gettid().as_raw_nonzero().get();
        let (waits, stop, longest) = (Arc::clone(self), at.stop.clone(), at.busy);
        let mut since = Instant::now();
        db.busy_handler(Some(move |attempt| {
            if attempt == 0 {
                since = Instant::now();
                waits.doing.store(1, Relaxed);
            }
            wait(attempt, since, longest, stop.abandoned() || waits.cancelled.load(Relaxed))
        }))?;
        let (log, every) = (Arc::clone(self), at.checkpoint_pages);
        db.wal_hook(Some(move |wal: &mut Wal, pages: i32| {
            log.committed(wal, pages.max(0) as u64, every, thread);
            Ok(())
        }))
    }

    /// As SQLite's own hook: a commit that leaves so many pages in the log does a checkpoint.
    fn committed(&self, wal: &mut Wal, pages: u64, every: u64, thread: i32) {
        if pages < every {
            return;
        }
        {
            // From here on the thread's account is not read until it is known what of it was the checkpoint's.
            let _kept = locked(&self.kept);
            self.doing.store(3, Relaxed);
        }
        let (begun, before) = (Instant::now(), account(thread));
        // A log that another session is copying is not an error.
        let _ = wal.checkpoint_v2(CheckpointMode::PASSIVE);
        let (ns, after) = (begun.elapsed().as_nanos() as u64, account(thread));
        let mut kept = locked(&self.kept);
        self.doing.store(0, Relaxed);
        kept.waits[2].record(ns);
        kept.checkpoints += 1;
        if let Some((before, after)) = before.zip(after) {
            kept.checkpointed(before, after);
        }
    }

    pub(super) fn sought(&self, rows: u64) -> u64 {
        self.rows.fetch_add(rows, Relaxed);
        rows
    }

    /// Begins a transaction that writes; a wait for the lock is charged.
    pub(super) fn begin(&self, db: &Connection) -> rusqlite::Result<()> {
        self.doing.store(0, Relaxed);
        let begun = Instant::now();
        let done = db.prepare_cached("begin immediate")?.execute([]).map(drop);
        if self.doing.swap(0, Relaxed) == 1 {
            locked(&self.kept).waits[0].record(begun.elapsed().as_nanos() as u64);
        }
        match done {
            Err(_) if self.cancelled.load(Relaxed) => {
                Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None))
            }
            done => done,
        }
    }

    /// Ends its wait for the write lock, and each later one.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Commits; where that waits for the device, the time without that of a checkpoint is charged.
    pub(super) fn commit(&self, db: &Connection) -> rusqlite::Result<()> {
        let checkpoints_ns = || locked(&self.kept).waits[2].sum_ns();
        let (begun, before) = (Instant::now(), checkpoints_ns());
        self.doing.store(if self.waits_for_log { 2 } else { WRITES }, Relaxed);
        let done = db.prepare_cached("commit")?.execute([]).map(drop);
        self.doing.store(0, Relaxed);
        if self.waits_for_log {
            let ns = begun.elapsed().as_nanos() as u64;
            let other = checkpoints_ns() - before;
            locked(&self.kept).waits[1].record(ns.saturating_sub(other));
        }
        done
    }

    /// Notes what the kernel charged to the session, for the last time.
    pub(super) fn ends(&self) {
        let mut kept = locked(&self.kept);
        self.charged(&mut kept);
        kept.thread = None;
    }

    fn charged(&self, kept: &mut Kept) {
        let thread = kept.thread.filter(|_| self.doing.load(Relaxed) != 3);
        if let Some(now) = thread.and_then(account) {
            kept.io = Some(since(now, kept.from));
        }
        if let Some(now) = kept.thread.and_then(run_delay) {
            kept.delay_ns = Some(now.saturating_sub(kept.delay_from));
        }
    }

    pub(super) fn doing(&self) -> Doing {
        let doing = self.doing.load(Relaxed);
        let stat = || {
            let thread = locked(&self.kept).thread?;
            fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()
        };
        let (event, class) = match EVENTS.get((doing as usize).wrapping_sub(1)) {
            Some(event) => *event,
            None if !stat().is_some_and(|stat| in_device(&stat)) => return Doing::OnCpu,
            None if doing == WRITES => WRITE,
            None => READ,
        };
        Doing::Waiting { event, class }
    }
}

const UNREAD: &str = "n/a unsupported: rusqlite has no safe call of sqlite3_db_status";

/// A page is one read call; what else a thread reads has a few bytes. SQLite has no thread of its own.
const COUNTERS: &[CounterRow] = &[
    row(&[DB_BLOCK_CHANGES], 0, ["n/a unsupported"], CLIENT),
    row(&[INDEX_GETS, INDEX_HITS, BUFFER_EVICTIONS], 0, [UNREAD], CLIENT),
    row(&[WAL_SYNCS], 0, ["n/a unsupported: SQLite counts no syncs; see redo synch writes"], CLIENT),
    row(&[PHYSICAL_READS, PHYSICAL_READS_CACHE, CACHE_DEMAND_MISSES, PHYSICAL_READ_REQUESTS], 0, ["pages read"], PROC),
    row(&[PHYSICAL_READ_BYTES], 0, ["pages read in blocks"], PROC),
    row(&[PHYSICAL_READ_TOTAL_REQUESTS, SERVER_READ_CALLS], 0, ["syscr"], PROC),
    row(&[PHYSICAL_READ_TOTAL_BYTES, SERVER_READ_CALL_BYTES], 0, ["rchar"], PROC),
    row(&[SERVER_DEVICE_READ_BYTES], 0, ["read_bytes"], PROC),
    row(&[SERVER_RUN_DELAY], 0, ["run delay"], PROC),
    row(
        &[PHYSICAL_WRITES, PHYSICAL_WRITES_FROM_CACHE, DBWR_CHECKPOINT_BUFFERS, PHYSICAL_WRITE_REQUESTS],
        0,
        ["pages written"],
        PROC,
    ),
    row(&[PHYSICAL_WRITE_BYTES], 0, ["pages written in blocks"], PROC),
    row(&[PHYSICAL_WRITE_TOTAL_BYTES], 0, ["wchar"], PROC),
    row(&[PHYSICAL_WRITE_TOTAL_REQUESTS], 0, ["syscw"], PROC),
    row(&[REDO_SIZE, REDO_BYTES_WRITTEN], 0, ["wchar - checkpoints' wchar"], PROC),
    row(&[REDO_WRITES], 0, ["syscw - checkpoints' syscw"], PROC),
    row(&[REDO_SYNCH_WRITES], 0, ["commits that wait"], CLIENT),
    row(&[REDO_SYNCH_TIME], 0, ["their time"], CLIENT),
    row(&[DBWR_CHECKPOINTS], 0, ["checkpoints"], HOOK),
    row(&[BACKGROUND_CPU, BACKGROUND_TIME], 0, ["threads of SQLite"], CLIENT),
    row(&[SESSION_LOGICAL_READS, CONSISTENT_GETS, GETS_FROM_CACHE], 0, ["hits + pages read"], CLIENT),
    row(&[CACHE_HITS], 0, ["hits"], PROC),
];

/// Hits as far as samples show them: between two of them, rows whose page was not read.
#[derive(Debug, Default)]
pub(super) struct Hits {
    rows: u64,
    reads: u64,
    owed: u64,
    hits: u64,
}

impl Hits {
    /// Pages of the index are read too, and a scan reads before its rows are told, so there may be more reads than rows:
    /// then nothing is known to have been a hit, and what was read more counts against later rows.
    fn until(&mut self, rows: u64, reads: u64) -> u64 {
        let (sought, read) = (rows - self.rows, reads.saturating_sub(self.reads) + self.owed);
        self.hits += sought.saturating_sub(read);
        self.owed = read.saturating_sub(sought);
        (self.rows, self.reads) = (rows, reads);
        self.hits
    }
}

/// The figures of all sessions, on pages of this size. Without `hits`, rows are not sought one page each.
pub(super) fn sample(sessions: &[Arc<Counted>], page: u64, hits: Option<MutexGuard<'_, Hits>>) -> StatSet {
    let mut all = Kept::default();
    let mut rows = 0;
    for counted in sessions {
        rows += counted.rows.load(Relaxed);
        let mut kept = locked(&counted.kept);
        counted.charged(&mut kept);
        for (mine, more) in all.waits.iter_mut().zip(&kept.waits) {
            mine.merge(more);
        }
        all.checkpoints += kept.checkpoints;
        all.of_checkpoints = sum(all.of_checkpoints, kept.of_checkpoints);
        all.io = all.io.zip(kept.io).map(|(io, more)| sum(io, more));
        all.delay_ns = all.delay_ns.zip(kept.delay_ns).map(|(ns, more)| ns + more);
    }
    let read = all.io.map_or(0, |io| since(io, all.of_checkpoints)[0] / page);
    let hits = hits.map(|mut hits| hits.until(rows, read));
    let value = |_: &str, name: &str, factor: u64| {
        Reading::Count(match name {
            "commits that wait" => all.waits[1].count(),
            "their time" => all.waits[1].sum_ns(),
            "run delay" => match all.delay_ns {
                Some(ns) => ns,
                None => return Reading::Na("absent: /proc/<pid>/schedstat".to_owned()),
            },
            "checkpoints" => all.checkpoints,
            "threads of SQLite" => 0,
            "hits" if hits.is_none() => return Reading::Na(UNREAD.trim_start_matches("n/a ").to_owned()),
            _ => {
                let Some(io) = all.io else {
                    return Reading::Na("absent: /proc/thread-self/io".to_owned());
                };
                let line = |io: Io, name| LINES.iter().position(|line| *line == name).map_or(0, |at| io[at]);
                match name.strip_prefix("checkpoints' ") {
                    Some(name) => line(all.of_checkpoints, name),
                    None if name == "hits" => hits.unwrap_or_default(),
                    None if name == "pages read" => read * factor,
                    None if name == "pages written" => line(all.of_checkpoints, "wchar") / page * factor,
                    None => line(io, name),
                }
            }
        })
    };
    let mut reader =
        Reader { product: "SQLite", version: 0, block_bytes: Ok(page), value: &value, set: StatSet::default() };
    reader.counters(COUNTERS);
    let mut set = reader.set;
    let actor = Actor::Foreground;
    set.events = (EVENTS.into_iter().zip(&all.waits))
        .map(|((name, class), waits)| EventReading {
            name: name.to_owned(),
            class,
            actor,
            timeouts: 0,
            waits: waits.clone(),
        })
        .collect();
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scan_has_read_before_its_rows_are_told_is_no_hit_later() {
        let mut hits = Hits::default();
        assert_eq!(hits.until(10, 4), 6);
        assert_eq!(hits.until(10, 104), 6, "a scan has read 100 pages, and its rows come last");
        assert_eq!(hits.until(60, 104), 6);
        assert_eq!(hits.until(115, 104), 11);
    }

    #[test]
    fn a_thread_in_a_device_is_told_by_its_state() {
        assert!(in_device("7 (a) b) D 1 2") && !in_device("7 (D) R 1 2") && !in_device(""));
    }

    #[test]
    fn what_is_not_a_checkpoints_part_stays_when_a_checkpoint_ends() {
        let mut kept = Kept { from: [1; 5], io: Some([4; 5]), ..Kept::default() };
        kept.checkpointed([7; 5], [20; 5]);
        assert_eq!(kept.io.map(|io| since(io, kept.of_checkpoints)), Some([6; 5]));
    }
}
