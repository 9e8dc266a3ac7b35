//! Streams that share one log, as the sessions of a database do.
//!
//! Group: a stream that finds no flush in progress leads one for all waiting streams; later streams wait and share the
//! next. That is group commit without a timer: it flushes as soon as the device is free. One by one: every commit makes
//! its own write and flush, one after the other.

use super::reading::SyncMethod;
use super::streams::{Offsets, ended, merged, stamp, started};
use super::{Bench, Outcome};
use assay_block::{BlockError, BlockingWriter};
use assay_measure::locked::locked;
use assay_measure::prng::SplitMix64;
use std::sync::{Condvar, Mutex, MutexGuard, RwLock};

/// Bytes of log that one commit adds.
const COMMIT_BYTES: u64 = 512;
/// Bytes of one log write at least: what the device can overwrite without reading.
const WRITE_BYTES: u64 = 4096;

/// The log all streams append to.
struct Log {
    /// Taken by the stream that writes.
    writer: Option<Writer>,
    /// Commits handed in.
    asked: u64,
    /// Commits that are durable.
    durable: u64,
    /// A write or flush failed: all streams stop.
    failed: bool,
}

struct Writer {
    file: BlockingWriter,
    offsets: Offsets,
    flushes: u64,
}

impl Writer {
    /// Makes `commits` commits durable by one write and one flush.
    fn flush(&mut self, commits: u64) -> Result<(), BlockError> {
        let len = (commits * COMMIT_BYTES).next_multiple_of(WRITE_BYTES);
        stamp(&mut self.file.buffer()[..len as usize], 0, self.flushes);
        self.flushes += 1;
        self.file.write(self.offsets.next(), len as usize, false)?;
        self.file.sync_data()
    }
}

struct Together<'a> {
    bench: &'a Bench<'a>,
    log: Mutex<Log>,
    moved: Condvar,
    gate: RwLock<()>,
}

/// Runs the step; the note says how much log a commit is.
pub(super) fn run(bench: &Bench<'_>) -> Result<(Outcome, Option<String>), BlockError> {
    let streams = bench.step.streams;
    let most = (u64::from(streams) * COMMIT_BYTES).next_multiple_of(WRITE_BYTES);
    let mut file = BlockingWriter::open(bench.path, most as usize, true)?;
    SplitMix64(1).fill(file.buffer());
    let writer = Writer { file, offsets: Offsets::new(bench.file_bytes, 0, 1, most), flushes: 0 };
    let together = Together {
        bench,
        log: Mutex::new(Log { writer: Some(writer), asked: 0, durable: 0, failed: false }),
        moved: Condvar::new(),
        gate: RwLock::new(()),
    };
    let outcomes = std::thread::scope(|scope| {
        let closed = together.gate.write();
        let streams = (0..streams).map(|_| || together.stream());
        let started = started(scope, streams);
        if started.1.is_some() {
            together.lock().failed = true;
        }
        drop(closed);
        ended(started)
    });
    let mut outcome = merged(outcomes)?;
    outcome.flushes = together.lock().writer.as_ref().map_or(0, |w| w.flushes);
    let note = format!("{COMMIT_BYTES} bytes of log per commit");
    Ok((outcome, Some(note)))
}

impl Together<'_> {
    fn lock(&self) -> MutexGuard<'_, Log> {
        // A stream that panicked ends the probe by its join.
        locked(&self.log)
    }

    fn stream(&self) -> Result<Outcome, BlockError> {
        drop(self.gate.read());
        let Bench { budget, clock, stop, .. } = self.bench;
        let mut outcome = Outcome::begin(clock);
        let deadline = outcome.begun_ns + budget.as_nanos() as u64;
        while outcome.ended_ns < deadline && !stop.requested() {
            let start = clock.now_ns();
            if !self.commit()? {
                break;
            }
            outcome.record(start, clock.now_ns());
        }
        Ok(outcome)
    }

    /// One commit; false where another stream's failure has ended the log.
    fn commit(&self) -> Result<bool, BlockError> {
        let mut log = self.lock();
        log.asked += 1;
        let mine = log.asked;
        loop {
            if log.durable >= mine {
                return Ok(true);
            }
            if log.failed {
                return Ok(false);
            }
            let Some(writer) = log.writer.take() else {
                log = self.moved.wait(log).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            log = self.lead(log, writer)?;
        }
    }

    /// Flushes for all that have come, or for the next one alone.
    fn lead<'l>(&'l self, log: MutexGuard<'l, Log>, mut writer: Writer) -> Result<MutexGuard<'l, Log>, BlockError> {
        let until = match self.bench.step.method {
            SyncMethod::Group => log.asked,
            _ => log.durable + 1,
        };
        let commits = until - log.durable;
        drop(log);
        let flushed = writer.flush(commits);
        let mut log = self.lock();
        log.writer = Some(writer);
        match flushed {
            Ok(()) => log.durable = until,
            Err(_) => log.failed = true,
        }
        self.moved.notify_all();
        flushed.map(|()| log)
    }
}
