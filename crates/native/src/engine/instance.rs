//! An open data set: what all threads of the engine share.

use super::activity::Activity;
use super::cache::{Cache, SessionRef};
use super::counters::{C, Counters, Event, Io};
use super::options::{ChecksumMode, EngineOptions};
use super::path_io::PathIo;
use super::redo::Redo;
use super::row_locks::RowLocks;
use super::undo::UndoSpace;
use crate::control::{Control, MOST_NUMBER, SESSIONS_WORD, SLOT_BYTES, State};
use crate::control_file::ControlFile;
use crate::files::Files;
use crate::layout::{Geometry, Page, PageMap};
use crate::redo_format::LOG_HEADER_BYTES;
use assay_block::Waker;
use assay_measure::clock::{Clock, Ns};
use assay_measure::locked::locked;
use assay_measure::permutation::Permutation;
use assay_run::engine::{EngineError, OpError};
use assay_run::plan::RedoStress;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Driver threads an instance serves at most.
pub(crate) const MAX_THREADS: usize = 256;

/// An error of an operation.
pub(crate) fn failed(class: &'static str, text: String) -> OpError {
    OpError { class, text, retryable: false }
}

/// Wake-ups for the sessions of one driver thread.
#[derive(Default)]
pub(crate) struct Mailbox {
    pub(crate) waker: OnceLock<Waker>,
    pub(crate) full: AtomicBool,
    pub(crate) posts: Mutex<Vec<SessionRef>>,
}

/// What a writer is asked for.
#[derive(Default)]
pub(crate) struct WriterOrders {
    /// Redo address the checkpoint shall pass; 0 is none.
    pub(crate) checkpoint: u64,
    /// Write everything and end.
    pub(crate) stop: bool,
}

/// Orders to all writers.
#[derive(Default)]
pub(crate) struct Orders {
    /// Redo address the checkpoint shall pass; 0 is none.
    pub(crate) checkpoint: u64,
    /// One bit for each writer that has not yet been told that a session waits for free buffers.
    make_free: u64,
    /// Write everything and end.
    pub(crate) stop: bool,
}

/// What a writer's ring has done.
#[derive(Default)]
pub(crate) struct RingTotals {
    pub(crate) all: assay_block::RingCounters,
    pub(crate) by_file: Vec<assay_block::FileCounters>,
}

/// The shared state of an open data set.
pub(crate) struct Instance {
    pub(crate) options: EngineOptions,
    pub(crate) geometry: Geometry,
    pub(crate) map: PageMap,
    pub(crate) data_set: u64,
    pub(crate) active_scale: u64,
    pub(crate) redo_stress: RedoStress,
    pub(crate) obfuscate: bool,
    /// Private redo is published when it exceeds this.
    pub(crate) private_redo_bytes: usize,
    pub(crate) control: Mutex<ControlFile>,
    pub(crate) files: Files,
    pub(crate) clock: Clock,
    pub(crate) cache: Cache,
    pub(crate) redo: Redo,
    pub(crate) undo: UndoSpace,
    pub(crate) locks: RowLocks,
    pub(crate) mailboxes: Vec<Mailbox>,
    /// What every session does, for the activity history.
    pub(crate) activity: Activity,
    pub(crate) orders: Mutex<Orders>,
    pub(crate) ordered: Condvar,
    /// Counters of the writers; they lock it for a moment per batch.
    pub(crate) background: Mutex<Counters>,
    /// What each writer's ring counted.
    pub(crate) ring_totals: Mutex<Vec<RingTotals>>,
    /// What went to which path.
    pub(crate) path_io: PathIo,
    /// Writers beside the first that have not ended.
    pub(crate) helpers: AtomicUsize,
    /// The incremental checkpoint's target: older redo should not be needed any more. The first writer sets it.
    pub(crate) target_lsn: AtomicU64,
    /// Everything below is in the data files and the control file says so.
    pub(crate) checkpoint_lsn: AtomicU64,
    marked_open: AtomicBool,
    transactions: AtomicU64,
    failure: OnceLock<String>,
    permutations: Vec<Permutation>,
}

/// Private redo of one session, bytes: 64 KiB, or less where so many sessions could not
/// all have a claim on the log buffer at once.
fn private_redo_bytes(buffer_bytes: usize, sessions: usize) -> usize {
    (buffer_bytes / (2 * sessions.max(1))).clamp(8 * 1024, 64 * 1024)
}

/// The parts an [`Instance`] is put together from.
pub(crate) struct Parts {
    pub(crate) options: EngineOptions,
    pub(crate) control: ControlFile,
    pub(crate) files: Files,
    pub(crate) cache: Cache,
    pub(crate) redo: Redo,
    pub(crate) active_scale: u64,
    pub(crate) redo_stress: RedoStress,
    pub(crate) obfuscate: bool,
    pub(crate) clock: Clock,
    /// Driver threads it serves at most.
    pub(crate) threads: usize,
}

impl Instance {
    pub(crate) fn new(parts: Parts) -> Self {
        let control = parts.control.control().clone();
        let geometry = control.geometry;
        let sessions = parts.options.sessions;
        Self {
            map: geometry.map(),
            data_set: control.data_set,
            undo: UndoSpace::new(&geometry, sessions),
            permutations: (1..=control.loaded_schemas)
                .map(|schema| Permutation::new(geometry.seed, schema, geometry.scale))
                .collect(),
            checkpoint_lsn: AtomicU64::new(parts.redo.durable()),
            geometry,
            options: parts.options,
            active_scale: parts.active_scale,
            redo_stress: parts.redo_stress,
            obfuscate: parts.obfuscate,
            private_redo_bytes: private_redo_bytes(parts.redo.capacity() as usize, sessions),
            path_io: PathIo::new(&parts.files, &parts.control),
            control: Mutex::new(parts.control),
            files: parts.files,
            clock: parts.clock,
            cache: parts.cache,
            redo: parts.redo,
            locks: RowLocks::new(),
            mailboxes: (0..parts.threads).map(|_| Mailbox::default()).collect(),
            activity: Activity::new(sessions),
            orders: Mutex::new(Orders::default()),
            ordered: Condvar::new(),
            background: Mutex::new(Counters::default()),
            ring_totals: Mutex::new(Vec::new()),
            helpers: AtomicUsize::new(0),
            target_lsn: AtomicU64::new(0),
            marked_open: AtomicBool::new(false),
            transactions: AtomicU64::new(control.change_number),
            failure: OnceLock::new(),
        }
    }

    /// The key permutation of a schema, from 1.
    pub(crate) fn permutation(&self, schema: u32) -> &Permutation {
        &self.permutations[schema as usize - 1]
    }

    /// Whether checksums of blocks read are verified.
    pub(crate) fn verify_reads(&self) -> bool {
        self.options.checksum != ChecksumMode::Off
    }

    /// Adjacent pages from `first` on that lie in one file, at most `most`.
    pub(crate) fn adjacent(&self, first: Page, most: u64) -> u64 {
        most.min(self.map.pages_in_run(first))
    }

    /// A number no other transaction has.
    pub(crate) fn next_transaction(&self) -> u64 {
        let number = self.transactions.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(number < MOST_NUMBER, "U1: transaction numbers never come again");
        number
    }

    /// The highest number given out so far.
    pub(crate) fn last_transaction(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// Stops the engine for good: operations fail with this reason from now on.
    pub(crate) fn fail(&self, reason: &str) {
        let _ = self.failure.set(reason.to_owned());
        for mailbox in &self.mailboxes {
            if let Some(waker) = mailbox.waker.get() {
                waker.wake();
            }
        }
    }

    /// The reason the engine stopped, if it did.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// An error once the engine has stopped.
    pub(crate) fn check_alive(&self) -> Result<(), OpError> {
        match self.failure() {
            None => Ok(()),
            Some(reason) => Err(failed("engine stopped", reason.to_owned())),
        }
    }

    /// Wakes a session of another thread.
    pub(crate) fn post(&self, who: SessionRef) {
        let mailbox = &self.mailboxes[usize::from(who.thread)];
        locked(&mailbox.posts).push(who);
        mailbox.full.store(true, Ordering::Release);
        if let Some(waker) = mailbox.waker.get() {
            waker.wake();
        }
    }

    /// Notes a session that wants to be posted when buffers become free.
    pub(crate) fn free_waiter(&self, who: SessionRef) {
        locked(&self.cache.free_waiters).push(who);
    }

    /// Asks the writers to make buffers free.
    pub(crate) fn post_writer(&self) {
        let all = u64::MAX >> (64 - self.options.writers);
        let mut orders = locked(&self.orders);
        if orders.make_free != all {
            orders.make_free = all;
            self.ordered.notify_all();
        }
    }

    /// Asks for a checkpoint that passes `lsn`.
    pub(crate) fn request_checkpoint(&self, lsn: u64) {
        let mut orders = locked(&self.orders);
        if orders.checkpoint < lsn {
            orders.checkpoint = lsn;
            self.ordered.notify_all();
        }
    }

    /// Waits for an order to writer `number`; at most `timeout`.
    pub(crate) fn wait_for_orders(&self, number: usize, timeout: Duration) -> WriterOrders {
        let mine = 1u64 << number;
        let orders = locked(&self.orders);
        let idle = |o: &mut Orders| {
            !o.stop && o.make_free & mine == 0 && o.checkpoint <= self.checkpoint_lsn.load(Ordering::Acquire)
        };
        let (mut orders, _) =
            self.ordered.wait_timeout_while(orders, timeout, idle).unwrap_or_else(PoisonError::into_inner);
        let taken = WriterOrders { checkpoint: orders.checkpoint, stop: orders.stop };
        orders.make_free &= !mine;
        taken
    }

    /// Wakes the driver threads whose sessions got what they wait for from the log.
    pub(crate) fn wake_log_waiters(&self, but: usize) {
        let durable = self.redo.durable();
        for (thread, awaited) in self.redo.awaited.iter().enumerate() {
            if thread != but
                && awaited.0.load(Ordering::SeqCst) <= durable
                && let Some(waker) = self.mailboxes[thread].waker.get()
            {
                waker.wake();
            }
        }
    }

    /// Marks the data set open before its first block changes, so that a crash is noticed.
    pub(crate) fn mark_open(&self, c: &Counters) -> Result<(), OpError> {
        if self.marked_open.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut file = locked(&self.control);
        if !self.marked_open.load(Ordering::Acquire) {
            let mut control = file.control().clone();
            control.state = State::Open;
            control.engine[SESSIONS_WORD] = self.options.sessions as u64;
            self.store_control(&mut file, control, c).map_err(|e| failed("io", e.to_string()))?;
            self.marked_open.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Whether a block was changed since open.
    pub(crate) fn is_marked_open(&self) -> bool {
        self.marked_open.load(Ordering::Acquire)
    }

    /// Writes the control file and counts it.
    pub(crate) fn store_control(
        &self,
        file: &mut ControlFile,
        control: Control,
        c: &Counters,
    ) -> Result<(), EngineError> {
        let begin = self.clock.now_ns();
        file.store(control)?;
        c.charge(Event::ControlWrite, self.clock.now_ns() - begin);
        self.path_io.wrote(self.path_io.control_row(), SLOT_BYTES as u64);
        c.add(C::ControlWrites, 1);
        c.add(C::ControlBytes, SLOT_BYTES as u64);
        c.write_request(Io::ControlFile, SLOT_BYTES as u64);
        c.add(C::BlockingWriteBytes, SLOT_BYTES as u64);
        c.add(C::BlockingWriteRequests, 1);
        Ok(())
    }

    /// Opens the next log file: its header goes to disk before its first block.
    pub(crate) fn switch_log(
        &self,
        file: usize,
        sequence: u64,
        first_lsn: u64,
        c: &Counters,
    ) -> Result<(), EngineError> {
        let header = self.redo.file_header(sequence, first_lsn);
        let begin: Ns = self.clock.now_ns();
        let number = self.files.redo_first + file as u16;
        let log = &self.files.list[usize::from(number)];
        let what = || format!("write the header of {}", self.files.path(number).display());
        log.write_at(0, &header).map_err(|e| EngineError::Unusable(format!("{}: {e}", what())))?;
        log.sync_data().map_err(|e| EngineError::Unusable(format!("{}: {e}", what())))?;
        c.charge(Event::LogSingleWrite, self.clock.now_ns() - begin);
        let row = self.path_io.row_of(number);
        self.path_io.wrote(row, header.len() as u64);
        c.write_request(Io::LogFile, header.len() as u64);
        c.add(C::BlockingWriteBytes, header.len() as u64);
        c.add(C::BlockingWriteRequests, 1);
        c.add(C::RedoBytes, header.len() as u64);
        c.add(C::RedoBlocks, 1);
        c.add(C::RedoHeaderBytes, header.len() as u64);
        c.add(C::LogSwitches, 1);
        let mut control_file = locked(&self.control);
        let mut control = control_file.control().clone();
        control.log_sequence = sequence;
        self.store_control(&mut control_file, control, c)?;
        drop(control_file);
        self.redo.switched(file, sequence, first_lsn);
        // A switch starts a lazy checkpoint of everything before it, whoever made it.
        self.request_checkpoint(first_lsn);
        Ok(())
    }

    /// What is wrong with a log write that ended, if anything is. Such a write stops the engine and is not
    /// tried again: what the device has of it is unknown from then on.
    pub(crate) fn log_write_problem(
        &self,
        flush: &super::redo::Flush,
        result: &std::io::Result<u32>,
    ) -> Option<String> {
        let what = match result {
            Ok(bytes) if *bytes as usize == flush.bytes => return None,
            Ok(bytes) => format!("wrote {bytes}"),
            Err(error) => format!("failed: {error}"),
        };
        let file = usize::from(self.files.redo_first) + flush.file;
        let path = self.files.list[file].path().display();
        Some(format!("a log write of {} bytes at {} of {path} {what}", flush.bytes, flush.offset))
    }

    /// Counts a finished log write.
    pub(crate) fn count_log_write(&self, flush: &super::redo::Flush, ns: Ns, c: &Counters) {
        c.charge(Event::LogWrite, ns);
        c.add(C::RedoWrites, 1);
        c.add(C::RedoWriteTime, ns);
        c.add(C::RedoBlocks, flush.blocks);
        c.add(C::RedoBytes, flush.bytes as u64);
        c.add(C::RedoHeaderBytes, flush.blocks * LOG_HEADER_BYTES as u64);
        c.add(C::RedoWastage, flush.wastage);
        c.write_request(Io::LogFile, flush.bytes as u64);
        c.io_wait(Io::LogFile, ns);
    }
}
