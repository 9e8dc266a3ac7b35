//! The native engine's part of a driver thread: polls sessions, drives the ring,
//! writes the log, and accounts for every nanosecond of a session's call.
//!
//! A call is cut, without gaps, into on-thread time (polled), waits (suspension
//! to the stamp of the batch that ended it) and run-queue time (that stamp to
//! the next poll); their sum is DB time.

use super::context::{Shell, Slot, State, TAG_LOG, TAG_READ};
use super::counters::{C, Request, export_ring};
use super::instance::{Instance, failed};
use super::redo::{ANY_PROGRESS, FLUSH_BYTES, Flush, NO_WAITER, Step};
use super::session::Session;
use crate::block_format::{self, Kind};
use crate::layout::{Class, Page};
use assay_block::{Bursts, Completion as RingCompletion, CompletionLease, Exclusive, Ring};
use assay_measure::clock::Ns;
use assay_measure::locked::locked;
use assay_measure::snapshot::StatSet;
use assay_run::engine::{Assignment, Completion, Driver, EngineError, Op, Outcome, Submit, Tag};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

/// Pending redo is written after this long although nobody asked (LGWR's 3 s).
const FLUSH_IDLE_NS: Ns = 3_000_000_000;

/// Queued reads are pushed to the kernel in groups of this size while more sessions are polled:
/// the device does not idle until a long batch has been worked off.
const PUSH_EARLY: u32 = 8;
/// After a quarter of the completions that may come, within these bounds, the sessions run that they woke, and what these ask for is
/// pushed: with few in flight the device must not idle, with many each push costs more than it gains.
const DRAIN_SLICE: std::ops::RangeInclusive<usize> = 4..=16;

/// While sessions are ready to run, a flush that is due lets them run first, so that their commits
/// share it: at most as long as the last log write took, and never longer than this.
const GATHER_NS_MAX: Ns = 500_000;
/// Nor for more turns than this, however little time they take.
const GATHER_TURNS_MAX: u32 = 64;

/// A log write of this thread under way.
struct LogWrite {
    flush: Flush,
    begin: Ns,
}

type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The driver of one thread.
pub struct NativeDriver<'a> {
    shell: Rc<Shell<'a>>,
    sessions: Vec<Running<'a>>,
    writing: Option<LogWrite>,
    /// Sessions that are logging off.
    leaving: usize,
    last_flush: Ns,
    /// How long the last log write took.
    write_ns: Ns,
    /// Since when a flush is due that lets ready sessions run first, and for how many turns.
    gathering: Option<(Ns, u32)>,
    completions: Vec<Completion>,
    arrivals: Arrivals,
    bursts: Bursts,
}

/// When the completions that the ring hands out next arrived: one stamp for all that were there together. What comes later, also with
/// a push that lies between, needs a stamp of its own: an earlier one would time its wait too short.
#[derive(Debug, Default)]
struct Arrivals {
    stamp: Ns,
    /// Completions still to be handed out.
    left: usize,
}

impl Arrivals {
    /// The arrival of the next completion, if it was stamped.
    fn next(&mut self) -> Option<Ns> {
        self.left = self.left.checked_sub(1)?;
        Some(self.stamp)
    }
}

impl<'a> NativeDriver<'a> {
    pub(crate) fn open(instance: &'a Instance, assignment: &Assignment, ring: Ring, read_room: usize) -> Self {
        let slots: Vec<Slot> = assignment.sessions.iter().map(|(session, _)| Slot::new(*session)).collect();
        let _ = instance.mailboxes[assignment.thread].waker.set(ring.waker());
        let count = slots.len();
        let shell = Rc::new(Shell {
            instance,
            thread: assignment.thread,
            ring: RefCell::new(ring),
            slots,
            c: super::counters::Counters::default(),
            now: Cell::new(instance.clock.now_ns()),
            ready: RefCell::new(VecDeque::new()),
            retry: RefCell::new(Vec::new()),
            timers: RefCell::new(BinaryHeap::new()),
            commits: RefCell::new(VecDeque::new()),
            log_space: RefCell::new(Vec::new()),
            log_seen: Cell::new(0),
            scan_buffers: Cell::new(instance.options.scan_buffers(count)),
            buffer_queue: RefCell::new(VecDeque::new()),
            deferred: RefCell::new(VecDeque::new()),
            read_room,
            unpushed: Cell::new(0),
        });
        let sessions = (0..count)
            .map(|tag| Box::pin(Session::new(Rc::clone(&shell), tag as Tag).serve()) as Running<'a>)
            .collect();
        let last_flush = shell.now.get();
        Self {
            shell,
            sessions,
            writing: None,
            leaving: 0,
            last_flush,
            write_ns: 0,
            gathering: None,
            completions: Vec::new(),
            arrivals: Arrivals::default(),
            bursts: Bursts::default(),
        }
    }

    /// Polls one session from `from` on; returns its outcome if its operation ended.
    fn poll(&mut self, tag: Tag, from: Ns) -> Option<Outcome> {
        let shell = Rc::clone(&self.shell);
        let slot = shell.slot(tag);
        slot.state.set(State::Ready);
        shell.instance.activity.on_cpu(slot.session);
        // A log-off is no call: what it does is counted, what it takes is not DB time.
        let no_call = slot.leaving.get().then(|| shell.c.session_times());
        let begin = shell.now.get().max(from);
        shell.c.add(C::RunQueue, begin - from);
        let mut context = Context::from_waker(Waker::noop());
        let _ = self.sessions[tag as usize].as_mut().poll(&mut context);
        let end = shell.instance.clock.now_ns().max(begin);
        shell.c.add(C::OnThread, end - begin);
        shell.now.set(end);
        if let Some(times) = no_call {
            shell.c.restore_session_times(times);
        }
        if let Some(result) = slot.outcome.take() {
            slot.state.set(State::Idle);
            return Some(Outcome { end_ns: end, result });
        }
        slot.wait_start.set(end);
        shell.instance.activity.waiting(slot.session, slot.event.get());
        None
    }

    /// Polls every ready session once more until none is ready.
    fn run_ready(&mut self) -> Result<(), EngineError> {
        loop {
            if self.shell.unpushed.get() >= PUSH_EARLY {
                self.push(0, Duration::ZERO)?;
            }
            let next = self.shell.ready.borrow_mut().pop_front();
            let Some(tag) = next else { break };
            let from = self.shell.slot(tag).ready_at.get();
            if let Some(outcome) = self.poll(tag, from) {
                if self.shell.slot(tag).leaving.get() {
                    self.leaving -= 1;
                } else {
                    self.completions.push(Completion { tag, outcome });
                }
            }
        }
        // Those that met a locked frame try again after everybody else had a turn.
        let retry = std::mem::take(&mut *self.shell.retry.borrow_mut());
        let stamp = self.shell.now.get();
        for tag in retry {
            self.shell.wake(tag, stamp, false);
        }
        Ok(())
    }

    /// Pushes what is queued to the kernel and waits for completions, at most so long: for most of a burst where all that sessions
    /// wait for is reads, for one where they wait for the log. A wake-up ends the wait.
    fn push_and_sleep(&mut self, most: Duration) -> Result<(), EngineError> {
        if most.is_zero() {
            return self.push(0, most);
        }
        let shell = &self.shell;
        let of_reads =
            self.writing.is_none() && shell.commits.borrow().is_empty() && shell.log_space.borrow().is_empty();
        let in_flight = shell.ring.borrow().in_flight() as u32;
        self.push(if of_reads { self.bursts.wanted(in_flight) } else { 1 }, most)?;
        let came = self.shell.ring.borrow().arrived() as u32;
        if of_reads && came > 0 {
            self.bursts.came(came);
        }
        Ok(())
    }

    /// Pushes what is queued, and deferred reads for which there is room now, to the kernel and waits as told.
    fn push(&mut self, wait_for: u32, timeout: Duration) -> Result<(), EngineError> {
        self.shell.retry_deferred();
        self.shell.unpushed.set(0);
        let mut ring = self.shell.ring.borrow_mut();
        // The last stamp is that of the poll that queued these requests: no clock is read for it.
        ring.stamp(self.shell.now.get());
        let pushed = ring.submit(wait_for, timeout);
        pushed
            .map_err(|e| EngineError::Unusable(format!("the ring of driver thread {} failed: {e}", self.shell.thread)))
    }

    /// Moves everything that happened elsewhere into the ready queue.
    fn collect_wakeups(&mut self) {
        let shell = &self.shell;
        let now = shell.now.get();
        let mailbox = &shell.instance.mailboxes[shell.thread];
        if mailbox.full.load(Ordering::Acquire) {
            mailbox.full.store(false, Ordering::Release);
            let posts = std::mem::take(&mut *locked(&mailbox.posts));
            for who in posts {
                shell.wake_for(who, now, false);
            }
        }
        loop {
            let due = matches!(shell.timers.borrow().peek(), Some(Reverse((at, _, _))) if *at <= now);
            if !due {
                break;
            }
            let Some(Reverse((_, tag, wait))) = shell.timers.borrow_mut().pop() else {
                break;
            };
            if shell.slot(tag).wait.get() == wait {
                shell.wake(tag, now, true);
            }
        }
        self.wake_log_waiters();
    }

    /// Wakes commits that are durable and sessions that waited for log space.
    fn wake_log_waiters(&self) {
        let shell = &self.shell;
        let redo = &shell.instance.redo;
        let now = shell.now.get();
        let durable = redo.durable();
        let stopped = shell.instance.failure().is_some();
        loop {
            let first = shell.commits.borrow().front().copied();
            let Some((lsn, tag)) = first else { break };
            if lsn > durable && !stopped {
                break;
            }
            shell.commits.borrow_mut().pop_front();
            shell.wake(tag, now, false);
        }
        let room = redo.generation() != shell.log_seen.get();
        if (room || stopped) && !shell.log_space.borrow().is_empty() {
            for tag in std::mem::take(&mut *shell.log_space.borrow_mut()) {
                shell.wake(tag, now, false);
            }
        }
        self.announce();
    }

    /// Tells those who finish log writes what this thread's sessions wait for.
    fn announce(&self) {
        let shell = &self.shell;
        let redo = &shell.instance.redo;
        let commits = shell.commits.borrow();
        let unwritten = commits.back().is_some_and(|(lsn, _)| *lsn > redo.reserved());
        let awaited = if !shell.log_space.borrow().is_empty() || unwritten && self.writing.is_none() {
            ANY_PROGRESS
        } else {
            commits.front().map_or(NO_WAITER, |(lsn, _)| *lsn)
        };
        // Before the next look at what is durable, so that no end of a write is missed.
        redo.awaited[shell.thread].0.store(awaited, Ordering::SeqCst);
    }

    fn flush_due(&self) -> bool {
        let shell = &self.shell;
        let redo = &shell.instance.redo;
        let unwritten = redo.unwritten();
        if unwritten == 0 {
            return false;
        }
        let commits = shell.commits.borrow();
        let commit_waits = commits.back().is_some_and(|(lsn, _)| *lsn > redo.reserved());
        commit_waits
            || !shell.log_space.borrow().is_empty()
            || unwritten >= redo.due_bytes()
            || shell.now.get() - self.last_flush > FLUSH_IDLE_NS
    }

    /// Whether a flush that is due should let ready sessions run first.
    fn gathers(&mut self, more_ready: bool) -> bool {
        let now = self.shell.now.get();
        let (since, turns) = self.gathering.get_or_insert((now, 0));
        *turns += 1;
        more_ready && *turns <= GATHER_TURNS_MAX && now - *since < self.write_ns.min(GATHER_NS_MAX)
    }

    /// Begins a log write if one is due and this thread has none under way.
    fn drive_log(&mut self, more_ready: bool) -> Result<(), EngineError> {
        // After an error nothing more is written: what the disk holds may not be what was written last.
        if self.writing.is_some() || self.shell.instance.failure().is_some() {
            return Ok(());
        }
        if !self.flush_due() {
            self.gathering = None;
            return Ok(());
        }
        if self.gathers(more_ready) {
            return Ok(());
        }
        self.gathering = None;
        let shell = Rc::clone(&self.shell);
        let redo = &shell.instance.redo;
        // Announced before the attempt: if others must end first, they will wake this thread.
        self.announce();
        loop {
            let buffer = shell.ring.borrow_mut().take_buffer();
            let Some(mut buffer) = buffer else {
                return Ok(());
            };
            let checkpoint = shell.instance.checkpoint_lsn.load(Ordering::Acquire);
            let step = redo.reserve(FLUSH_BYTES.min(buffer.len()), checkpoint);
            if let Step::Write(flush) = step {
                let begin = shell.instance.clock.now_ns();
                shell.now.set(begin);
                redo.fill(&flush, &mut buffer);
                let file = shell.instance.files.redo_first + flush.file as u16;
                let queued =
                    shell.ring.borrow_mut().write_buffer(file, flush.offset, buffer, flush.bytes, true, TAG_LOG);
                self.writing = Some(LogWrite { flush, begin });
                return queued.map_err(|_| EngineError::Unusable("the ring has no room for a log write".to_owned()));
            }
            shell.give_buffer(buffer);
            if !self.after_no_write(step)? {
                return Ok(());
            }
        }
    }

    /// Handles every step but a write; whether to try again at once.
    fn after_no_write(&mut self, step: Step) -> Result<bool, EngineError> {
        let instance = self.shell.instance;
        match step {
            Step::Switch { file, sequence, first_lsn } => {
                instance.switch_log(file, sequence, first_lsn, &self.shell.c)?;
                // Others found the log busy meanwhile.
                instance.wake_log_waiters(self.shell.thread);
                Ok(true)
            }
            Step::Stalled(lsn) => {
                instance.request_checkpoint(lsn);
                Ok(false)
            }
            Step::Nothing | Step::Busy | Step::Write(_) => Ok(false),
        }
    }

    fn finish_flush(&mut self, result: &std::io::Result<u32>) {
        let Some(LogWrite { flush, begin }) = self.writing.take() else {
            return;
        };
        let instance = self.shell.instance;
        match instance.log_write_problem(&flush, result) {
            None => {
                self.write_ns = self.shell.now.get() - begin;
                instance.count_log_write(&flush, self.write_ns, &self.shell.c);
                instance.redo.finish(flush);
            }
            Some(problem) => instance.fail(&problem),
        }
        self.last_flush = self.shell.now.get();
        instance.wake_log_waiters(self.shell.thread);
    }

    /// Verifies a block that arrived.
    fn verify(&self, page: Page, frame: &Exclusive) -> Result<(), String> {
        let instance = self.shell.instance;
        let block = instance.cache.pool.bytes(frame);
        let (kind, schema) = match instance.map.class(page) {
            Class::Data => (Kind::Data, instance.map.schema_of(page)),
            Class::Index => (Kind::Index, instance.map.schema_of(page)),
            Class::Scan => (Kind::Scan, instance.map.schema_of(page)),
            Class::Undo => {
                // A header block or an undo block: the kind is part of what is read back.
                let first = self.shell.instance.options.sessions as u64;
                let is_header = page.0 - crate::layout::UNDO_BASE < first;
                (if is_header { Kind::UndoHeader } else { Kind::Undo }, 0)
            }
        };
        block_format::verify(block, kind, page, schema, instance.data_set, instance.verify_reads())
            .and_then(|()| block_format::verify_lsn(block, instance.redo.tail()))
            .map_err(|mismatch| format!("page {}: {mismatch}", page.0))
    }

    /// Publishes one frame that was read for session `tag`.
    fn finish_frame(&self, tag: Tag, frame: Exclusive, error: Option<&str>) {
        let shell = &self.shell;
        let cache = &shell.instance.cache;
        let page = cache.page_of(frame.frame());
        let checked = match error {
            Some(text) => Err(("io", format!("read of page {}: {text}", page.0))),
            None => self.verify(page, &frame).map_err(|text| ("corrupt", text)),
        };
        let (result, waiters) = match checked {
            Ok(()) => {
                let (pin, waiters) = cache.finish_read(page, frame);
                (Ok(pin), waiters)
            }
            Err((class, text)) => (Err(failed(class, text)), cache.fail_read(page, frame)),
        };
        shell.slot(tag).reads.borrow_mut().push((page, result));
        shell.wake_all(waiters, shell.now.get());
    }

    fn finish_read(&mut self, completion: RingCompletion, stamp: Ns) {
        let shell = Rc::clone(&self.shell);
        let tag = (completion.tag & 0xffff_ffff) as Tag;
        let block_bytes = shell.instance.geometry.block_bytes as usize;
        let expect = |blocks: usize| match &completion.result {
            Ok(bytes) if *bytes as usize == blocks * block_bytes => None,
            Ok(bytes) => Some(format!("{bytes} bytes of {}", blocks * block_bytes)),
            Err(error) => Some(error.to_string()),
        };
        match completion.lease {
            CompletionLease::Frame(frame) => {
                let error = expect(1);
                self.finish_frame(tag, frame, error.as_deref());
            }
            CompletionLease::Frames(frames) => {
                let error = expect(frames.len());
                for frame in frames {
                    self.finish_frame(tag, frame, error.as_deref());
                }
            }
            CompletionLease::Buffer(buffer) => {
                let read = super::context::DirectRead {
                    number: super::context::direct_number(completion.tag),
                    buffer,
                    result: completion.result,
                };
                shell.slot(tag).direct.borrow_mut().push_back(read);
                shell.wake(tag, stamp, false);
                return;
            }
            CompletionLease::None => {}
        }
        let slot = shell.slot(tag);
        slot.pending_reads.set(slot.pending_reads.get() - 1);
        if slot.pending_reads.get() == 0 {
            shell.wake(tag, stamp, false);
        }
    }

    /// Records how long the ring had a request that succeeded, by what waits for it.
    fn count_completion(&self, completion: &RingCompletion, stamp: Ns) {
        let shell = &self.shell;
        let Ok(bytes) = completion.result else { return };
        let kind = if completion.tag & TAG_LOG != 0 {
            Request::LogWrite
        } else if matches!(completion.lease, CompletionLease::Buffer(_)) {
            Request::Direct
        } else {
            let tag = (completion.tag & 0xffff_ffff) as Tag;
            Request::of_cache_read(shell.slot(tag).event.get())
        };
        let ns = stamp.saturating_sub(completion.submitted);
        shell.c.completed(kind, u64::from(bytes), ns);
    }

    /// Takes the completions that the ring has. Sessions that got their block run while the rest is worked off, and what they
    /// ask for goes to the kernel: it would have nothing to do meanwhile.
    fn drain_ring(&mut self) -> Result<(), EngineError> {
        // Sessions ask for more on the way; those completions are for the next turn.
        let most = self.shell.ring.borrow().in_flight();
        let slice = (most / 4).clamp(*DRAIN_SLICE.start(), *DRAIN_SLICE.end());
        for taken in 0..most {
            let Some((mut completion, stamp)) = self.next_completion() else {
                break;
            };
            self.shell.ring.borrow().prefetch_next();
            self.count_completion(&completion, stamp);
            if completion.tag & TAG_LOG != 0 {
                let lease = std::mem::replace(&mut completion.lease, CompletionLease::None);
                if let CompletionLease::Buffer(buffer) = lease {
                    self.shell.give_buffer(buffer);
                }
                self.finish_flush(&completion.result);
            } else if completion.tag & TAG_READ != 0 {
                self.finish_read(completion, stamp);
            }
            if taken % slice == slice - 1 {
                self.run_ready()?;
                if self.shell.unpushed.get() > 0 || !self.shell.deferred.borrow().is_empty() {
                    self.push(0, Duration::ZERO)?;
                }
            }
        }
        Ok(())
    }

    /// The next completion that the ring has, and when it arrived.
    fn next_completion(&mut self) -> Option<(RingCompletion, Ns)> {
        let completion = self.shell.ring.borrow_mut().pop()?;
        let stamp = self.arrivals.next().unwrap_or_else(|| {
            let stamp = self.shell.instance.clock.now_ns();
            self.shell.now.set(stamp);
            self.arrivals = Arrivals { stamp, left: self.show_arrived() };
            stamp
        });
        Some((completion, stamp))
    }

    /// Sessions whose read has arrived wait for this thread from now on, also while it works on those before them, which takes
    /// long where others keep its CPU: a sample has to say what the times say. How many completions there are.
    fn show_arrived(&self) -> usize {
        let shell = &self.shell;
        let ring = shell.ring.borrow();
        let of_reads = ring.coming().map(|tag| {
            let slot = (tag & TAG_READ != 0).then(|| shell.slot((tag & 0xffff_ffff) as Tag));
            // One that asked for several waits for the last of them.
            if let Some(slot) = slot
                && slot.pending_reads.get() == 1
                && slot.state.get() == State::Waiting
            {
                shell.instance.activity.run_queue(slot.session);
            }
        });
        of_reads.count()
    }

    /// How long the ring may sleep: until the next timer, and not at all with work at hand.
    fn sleep_limit(&self, timeout: Duration) -> Duration {
        let shell = &self.shell;
        let busy = !self.completions.is_empty()
            || !shell.ready.borrow().is_empty()
            || shell.instance.mailboxes[shell.thread].full.load(Ordering::Acquire);
        if busy {
            return Duration::ZERO;
        }
        let next = shell.timers.borrow().peek().map(|Reverse((at, _, _))| *at);
        next.map_or(timeout, |at| timeout.min(Duration::from_nanos(at.saturating_sub(shell.now.get()))))
    }
}

impl Driver for NativeDriver<'_> {
    fn submit(&mut self, tag: Tag, op: &Op, now_ns: Ns) -> Submit {
        self.shell.slot(tag).op.set(Some(*op));
        match self.poll(tag, now_ns) {
            Some(outcome) => Submit::Done(outcome),
            None => Submit::Queued,
        }
    }

    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.collect_wakeups();
        self.run_ready()?;
        self.drive_log(timeout.is_zero())?;
        let sleep = self.sleep_limit(timeout);
        self.push_and_sleep(sleep)?;
        self.shell.now.set(self.shell.instance.clock.now_ns());
        self.drain_ring()?;
        self.collect_wakeups();
        self.run_ready()?;
        // Sessions whose operation ended are about to begin the next.
        self.drive_log(!self.completions.is_empty())?;
        out.append(&mut self.completions);
        Ok(())
    }

    fn stats(&mut self, into: &mut StatSet) {
        self.shell.c.export(u64::from(self.shell.instance.geometry.block_bytes), into);
        let ring = self.shell.ring.borrow();
        export_ring(&ring.counters(), into);
        let by_file: Vec<_> = ring.file_counters().collect();
        self.shell.instance.path_io.export(&by_file, into);
    }

    fn leave(&mut self, tag: Tag) {
        let shell = Rc::clone(&self.shell);
        let slot = shell.slot(tag);
        if slot.state.get() != State::Idle || slot.leaving.replace(true) {
            return;
        }
        slot.log_off.set(true);
        if self.poll(tag, shell.now.get()).is_none() {
            self.leaving += 1;
        }
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.end()
    }
}

impl NativeDriver<'_> {
    /// What every session waits for, for a harness that has come to a standstill.
    pub fn waits(&self) -> Vec<String> {
        let slots = self.shell.slots.iter();
        slots.map(|slot| format!("session {} {:?} {:?}", slot.session, slot.state.get(), slot.event.get())).collect()
    }

    /// Sessions that are logging off.
    #[must_use]
    pub fn leaving(&self) -> usize {
        self.leaving
    }
}

impl NativeDriver<'_> {
    /// Logs the sessions off and waits for this thread's own log writes.
    fn end(&mut self) -> Result<(), EngineError> {
        let shell = Rc::clone(&self.shell);
        for tag in 0..shell.slots.len() as Tag {
            self.leave(tag);
        }
        let mut ended = Vec::new();
        while self.leaving > 0 && shell.instance.failure().is_none() {
            self.reap(Duration::from_millis(10), &mut ended)?;
        }
        while self.writing.is_some() && shell.instance.failure().is_none() {
            self.reap(Duration::from_millis(10), &mut ended)?;
        }
        Ok(())
    }
}

impl Drop for NativeDriver<'_> {
    /// What COMMIT_EVERY left open is committed before the thread goes, and a log write under way must end.
    fn drop(&mut self) {
        let instance = self.shell.instance;
        if self.end().is_err() && self.writing.is_some() {
            instance.fail("a driver thread ended with a log write in flight");
        }
        instance.redo.awaited[self.shell.thread].0.store(NO_WAITER, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::super::stepped::{EngineOptions, SteppedEngine};
    use super::super::tests::{directory, prepare, settings};
    use super::*;
    use crate::control_file::ControlFile;
    use crate::paths::Places;
    use assay_measure::clock::Clock;
    use assay_run::engine::Doing;
    use assay_run::plan::Plan;

    const SESSIONS: u32 = 12;

    /// A thread that is kept from its CPU while it works off what has arrived: the times say run queue, so do the samples.
    #[test]
    fn a_session_whose_read_has_arrived_is_seen_in_the_run_queue_though_its_thread_comes_to_it_later() {
        let dir = directory();
        let settings = settings(&[("SCALE", "1000"), ("INDEX", "computed"), ("CACHE_MB", "16")]);
        prepare(dir.path(), &settings, 1);
        let plan = Plan { sessions_asked: Some(SESSIONS), ..Plan::plain(1, SESSIONS, 1000) };
        let control = ControlFile::read(dir.path()).unwrap().unwrap();
        let options = EngineOptions::resolve(&settings, &plan, &control).unwrap();
        let clock = Clock::real();
        let places = Places::directory(dir.path());
        let engine = SteppedEngine::open(&places, &plan, options, clock.clone(), 1).unwrap();
        let mut driver = engine.driver(&plan.assignments(1)[0], SESSIONS as usize).unwrap();
        let ask = |driver: &mut NativeDriver<'_>, tags: std::ops::Range<u32>| {
            let all = tags.end;
            for tag in tags {
                let op = Op::Select { schema: 1, first_key: 1 + u64::from(tag) * 50, width: 1 };
                assert!(matches!(driver.submit(tag, &op, clock.now_ns()), Submit::Queued));
            }
            // All of them have arrived then.
            driver.push(all, Duration::from_secs(60)).unwrap();
        };
        let queued = |driver: &NativeDriver<'_>| {
            let mut doing = [Doing::OnCpu; SESSIONS as usize];
            driver.shell.instance.activity.read(&mut doing);
            doing.iter().filter(|doing| **doing == Doing::RunQueue).count()
        };
        ask(&mut driver, 0..SESSIONS / 2);
        let (first, arrived) = driver.next_completion().unwrap();
        assert_eq!(driver.shell.ring.borrow().coming().count(), SESSIONS as usize / 2 - 1);
        assert_eq!(queued(&driver), SESSIONS as usize / 2 - 1);
        driver.finish_read(first, arrived);
        // More arrives with a push before the rest is worked off: what came first keeps its instant, the others get theirs.
        let before = clock.now_ns();
        ask(&mut driver, SESSIONS / 2..SESSIONS - 1);
        for at in 1..SESSIONS - 1 {
            let (completion, stamp) = driver.next_completion().unwrap();
            if at < SESSIONS / 2 {
                assert_eq!(stamp, arrived)
            } else {
                assert!(stamp >= before && stamp > arrived)
            }
            driver.finish_read(completion, stamp);
        }
        ask(&mut driver, SESSIONS - 1..SESSIONS);
        let mut ended = Vec::new();
        while ended.len() < SESSIONS as usize {
            driver.reap(Duration::from_secs(60), &mut ended).unwrap();
        }
        assert!(ended.iter().all(|one| one.outcome.result.is_ok()));
    }
}
