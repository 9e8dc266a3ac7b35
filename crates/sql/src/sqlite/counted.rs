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
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};
use rustix::thread::gettid;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Keys of the sources.
const HOOK: &str = "wal_hook";
const CLIENT: &str = "client";

/// What a session waits for.
const LOCK: (&str, WaitClass) = ("enq: write lock", WaitClass::Application);
const COMMIT: (&str, WaitClass) = ("log file sync", WaitClass::Commit);
const CHECKPOINT: (&str, WaitClass) = ("checkpoint by session", WaitClass::Configuration);
const EVENTS: [(&str, WaitClass); 3] = [LOCK, COMMIT, CHECKPOINT];

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
    /// What it waits for now: an event's place in `EVENTS` plus 1; 0: nothing.
    doing: AtomicU64,
    kept: Mutex<Kept>,
}

impl Counted {
    /// Opens the connection of a session, which tells what it does, on the session's own thread.
    pub(super) fn open(self: &Arc<Self>, at: &File) -> Result<Db, EngineError> {
        let mut db = at.open(OpenFlags::empty())?;
        let set = format!(
            "pragma synchronous = {}; pragma cache_size = -{}; pragma mmap_size = {}; pragma foreign_keys = on",
            at.synchronous,
            (at.cache_bytes / 1024).max(1),
            at.mmap_bytes
        );
        let attached = self.attach(&mut db.0, at).and_then(|()| db.0.execute_batch(&set));
        db.1 = true;
        attached.and_then(|()| db.ours()).map_err(at.told("opening a session"))?;
        Ok(db)
    }

    fn attach(self: &Arc<Self>, db: &mut Connection, at: &File) -> rusqlite::Result<()> {
        let thread = gettid().as_raw_nonzero().get();
        {
            let mut kept = locked(&self.kept);
            let from = account(thread);
            (kept.thread, kept.from, kept.io) = (Some(thread), from.unwrap_or_default(), from.map(|_| Io::default()));
        }
        let (waits, stop, longest) = (Arc::clone(self), at.stop.clone(), at.busy);
        let mut since = Instant::now();
        db.busy_handler(Some(move |attempt| {
            if attempt == 0 {
                since = Instant::now();
                waits.doing.store(1, Relaxed);
            }
            wait(attempt, since, longest, &stop)
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
        done
    }

    /// Commits; the time without that of a checkpoint is charged.
    pub(super) fn commit(&self, db: &Connection) -> rusqlite::Result<()> {
        let checkpoints_ns = || locked(&self.kept).waits[2].sum_ns();
        let (begun, before) = (Instant::now(), checkpoints_ns());
        self.doing.store(2, Relaxed);
        let done = db.prepare_cached("commit")?.execute([]).map(drop);
        self.doing.store(0, Relaxed);
        let ns = begun.elapsed().as_nanos() as u64;
        let other = checkpoints_ns() - before;
        locked(&self.kept).waits[1].record(ns.saturating_sub(other));
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
    }

    pub(super) fn doing(&self) -> Doing {
        match EVENTS.get((self.doing.load(Relaxed) as usize).wrapping_sub(1)) {
            Some((event, class)) => Doing::Waiting { event, class: *class },
            None => Doing::OnCpu,
        }
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
    hits: u64,
}

impl Hits {
    /// Pages of the index are read too, so there may be more reads than rows; then nothing is known to have been a hit.
    fn until(&mut self, rows: u64, reads: u64) -> u64 {
        self.hits += (rows - self.rows).saturating_sub(reads.saturating_sub(self.reads));
        (self.rows, self.reads) = (rows, reads);
        self.hits
    }
}

/// The figures of all sessions, on pages of this size. Without `hits`, rows are not sought one page each.
pub(super) fn sample(
    sessions: &[Arc<Counted>],
    page: u64,
    hits: Option<MutexGuard<'_, Hits>>,
    waits_for_log: bool,
) -> StatSet {
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
    }
    let read = all.io.map_or(0, |io| since(io, all.of_checkpoints)[0] / page);
    let hits = hits.map(|mut hits| hits.until(rows, read));
    let value = |_: &str, name: &str, factor: u64| {
        let commits = if waits_for_log { &all.waits[1] } else { &Histogram::default() };
        Reading::Count(match name {
            "commits that wait" => commits.count(),
            "their time" => commits.sum_ns(),
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
    fn what_is_not_a_checkpoints_part_stays_when_a_checkpoint_ends() {
        let mut kept = Kept { from: [1; 5], io: Some([4; 5]), ..Kept::default() };
        kept.checkpointed([7; 5], [20; 5]);
        assert_eq!(kept.io.map(|io| since(io, kept.of_checkpoints)), Some([6; 5]));
    }
}
