//! What the sessions of one driver thread share: ring, waits, wake-ups, counters.
//!
//! A session is a future that the thread polls when the awaited event has happened; nothing else wakes it, so a wake-up
//! cannot be lost or doubled. Each wait has a number, and every wake-up names its wait.

use super::cache::SessionRef;
use super::counters::{C, Counters, Event, Io};
use super::instance::Instance;
use crate::layout::Page;
use assay_block::{Buffer, Exclusive, Ring, Shared};
use assay_measure::clock::Ns;
use assay_run::engine::{Op, OpError, Tag};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Between operations.
    Idle,
    /// Being polled, or about to be.
    Ready,
    /// Waits for what `event` says.
    Waiting,
}

/// A direct read that ended.
pub(crate) struct DirectRead {
    /// The scan's own number of the request.
    pub(crate) number: u32,
    pub(crate) buffer: Buffer,
    pub(crate) result: std::io::Result<u32>,
}

/// One session as its thread sees it.
pub(crate) struct Slot {
    pub(crate) session: u32,
    pub(crate) op: Cell<Option<Op>>,
    pub(crate) log_off: Cell<bool>,
    /// It begins no more operations, and what its log-off takes is not charged.
    pub(crate) leaving: Cell<bool>,
    pub(crate) outcome: Cell<Option<Result<u64, OpError>>>,
    pub(crate) state: Cell<State>,
    pub(crate) event: Cell<Event>,
    pub(crate) wait: Cell<u32>,
    pub(crate) wait_start: Cell<Ns>,
    pub(crate) waited: Cell<Ns>,
    pub(crate) ready_at: Cell<Ns>,
    pub(crate) pending_reads: Cell<u32>,
    pub(crate) reads: RefCell<Vec<(Page, Result<Shared, OpError>)>>,
    pub(crate) direct: RefCell<VecDeque<DirectRead>>,
    /// A scan buffer that another session handed over.
    pub(crate) granted: RefCell<Option<Buffer>>,
}

impl Slot {
    pub(crate) fn new(session: u32) -> Self {
        Self {
            session,
            op: Cell::new(None),
            log_off: Cell::new(false),
            leaving: Cell::new(false),
            outcome: Cell::new(None),
            state: Cell::new(State::Idle),
            event: Cell::new(Event::SequentialRead),
            wait: Cell::new(0),
            wait_start: Cell::new(0),
            waited: Cell::new(0),
            ready_at: Cell::new(0),
            pending_reads: Cell::new(0),
            reads: RefCell::new(Vec::new()),
            direct: RefCell::new(VecDeque::new()),
            granted: RefCell::new(None),
        }
    }
}

/// A read; deferred where it does not fit into the ring or the device's queue yet.
pub(crate) enum Deferred {
    Frame(Page, Exclusive, Tag),
    Frames(Page, Vec<Exclusive>, Tag),
    Buffer(Page, Buffer, usize, (Tag, u32)),
}

/// The thread's shared state.
pub(crate) struct Shell<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) thread: usize,
    pub(crate) ring: RefCell<Ring>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) c: Counters,
    /// The last stamp taken on this thread.
    pub(crate) now: Cell<Ns>,
    pub(crate) ready: RefCell<VecDeque<Tag>>,
    /// Sessions to poll again at once: somebody held a frame for a moment.
    pub(crate) retry: RefCell<Vec<Tag>>,
    pub(crate) timers: RefCell<BinaryHeap<Reverse<(Ns, Tag, u32)>>>,
    /// Commits in the order of their addresses.
    pub(crate) commits: RefCell<VecDeque<(u64, Tag)>>,
    /// Sessions that wait for log space.
    pub(crate) log_space: RefCell<Vec<Tag>>,
    /// The log's generation when the oldest of them found no room.
    pub(crate) log_seen: Cell<u64>,
    /// Buffers that scans may still take; the rest of the ring's are the log's.
    pub(crate) scan_buffers: Cell<usize>,
    /// Sessions that wait for a scan buffer.
    pub(crate) buffer_queue: RefCell<VecDeque<Tag>>,
    pub(crate) deferred: RefCell<VecDeque<Deferred>>,
    /// Requests in flight beyond which reads are deferred: the kernel would put the thread to sleep until the
    /// device has room, with all its sessions.
    pub(crate) read_room: usize,
    /// Requests queued in the ring and not yet pushed to the kernel.
    pub(crate) unpushed: Cell<u32>,
}

/// Tries of a locked frame that only give way to other sessions.
const BUSY_SPINS: u32 = 16;
/// Sleep before each further try.
const BUSY_SLEEP_NS: Ns = 50_000;

/// Ring tags: what completed, in the high bits; for whom, in the low.
pub(crate) const TAG_READ: u64 = 1 << 32;
pub(crate) const TAG_LOG: u64 = 2 << 32;
/// Above it stands the number of a direct read.
const TAG_NUMBER_SHIFT: u32 = 40;

/// The tag of a session's direct read.
fn direct_tag((tag, number): (Tag, u32)) -> u64 {
    TAG_READ | u64::from(tag) | u64::from(number) << TAG_NUMBER_SHIFT
}

/// The number in such a tag.
pub(crate) fn direct_number(tag: u64) -> u32 {
    (tag >> TAG_NUMBER_SHIFT) as u32
}

impl<'a> Shell<'a> {
    pub(crate) fn slot(&self, tag: Tag) -> &Slot {
        &self.slots[tag as usize]
    }

    /// Names the wait a session is about to begin.
    pub(crate) fn reference(&self, tag: Tag) -> SessionRef {
        SessionRef { thread: self.thread as u16, tag, wait: self.slot(tag).wait.get() }
    }

    /// Ends a session's wait, charges it and queues the session.
    pub(crate) fn wake(&self, tag: Tag, stamp: Ns, timeout: bool) {
        let slot = self.slot(tag);
        if slot.state.get() != State::Waiting {
            return;
        }
        let ns = stamp.saturating_sub(slot.wait_start.get());
        match (slot.leaving.get(), timeout) {
            (true, _) => {}
            (false, true) => self.c.charge_timeout(slot.event.get(), ns),
            (false, false) => self.c.charge(slot.event.get(), ns),
        }
        slot.waited.set(ns);
        slot.wait.set(slot.wait.get().wrapping_add(1));
        slot.ready_at.set(stamp.max(slot.wait_start.get()));
        slot.state.set(State::Ready);
        self.instance.activity.run_queue(slot.session);
        self.ready.borrow_mut().push_back(tag);
    }

    /// Wakes a session for one particular wait only.
    pub(crate) fn wake_for(&self, who: SessionRef, stamp: Ns, timeout: bool) {
        if self.slot(who.tag).wait.get() == who.wait {
            self.wake(who.tag, stamp, timeout);
        }
    }

    /// Wakes sessions wherever they live.
    pub(crate) fn wake_all(&self, waiters: Vec<SessionRef>, stamp: Ns) {
        for who in waiters {
            if usize::from(who.thread) == self.thread {
                self.wake_for(who, stamp, false);
            } else {
                self.instance.post(who);
            }
        }
    }

    /// Queues a session that found no room in the log at generation `seen`.
    pub(crate) fn queue_for_log(&self, tag: Tag, seen: u64) {
        let mut waiters = self.log_space.borrow_mut();
        // The oldest failure counts: what moved since then may help anyone in the list.
        let oldest = if waiters.is_empty() { seen } else { self.log_seen.get().min(seen) };
        self.log_seen.set(oldest);
        waiters.push(tag);
    }

    /// Suspends the running session until [`Shell::wake`]; returns the ns waited.
    pub(crate) async fn wait(&self, tag: Tag, event: Event) -> Ns {
        let slot = self.slot(tag);
        debug_assert_ne!(
            slot.state.get(),
            State::Waiting,
            "S1: a session waits for one thing at a time; session {} for {event:?}",
            slot.session
        );
        slot.event.set(event);
        slot.state.set(State::Waiting);
        Suspender::default().await;
        slot.waited.get()
    }

    /// Gives way to the other sessions of this thread, then tries again: a buffer busy wait. A holder that
    /// does not let go at once has lost its CPU, so later tries sleep and leave it theirs.
    pub(crate) async fn busy(&self, tag: Tag, tries: &mut u32) {
        *tries += 1;
        if *tries > BUSY_SPINS {
            self.wait_at_most(tag, Event::BufferBusy, BUSY_SLEEP_NS).await;
            return;
        }
        self.retry.borrow_mut().push(tag);
        self.wait(tag, Event::BufferBusy).await;
    }

    /// As [`Shell::wait`], but a timer ends it at the latest after `ns`.
    pub(crate) async fn wait_at_most(&self, tag: Tag, event: Event, ns: Ns) -> Ns {
        let wait = self.slot(tag).wait.get();
        self.timers.borrow_mut().push(Reverse((self.now.get() + ns, tag, wait)));
        self.wait(tag, event).await
    }

    /// File and byte of a page that is about to be read.
    fn locate(&self, page: Page) -> (u16, u64) {
        let map = &self.instance.map;
        debug_assert!(
            map.holds(page),
            "Y1: what is read lies in the data set; page {} is not of {:?}",
            page.0,
            map.geometry
        );
        map.locate(page)
    }

    /// Queues the read of one page into its frame.
    pub(crate) fn read_page(&self, tag: Tag, page: Page, frame: Exclusive) {
        self.read(Deferred::Frame(page, frame, tag));
        self.expect_read(tag);
    }

    /// Queues one request for adjacent pages into scattered frames.
    pub(crate) fn read_pages(&self, tag: Tag, first: Page, frames: Vec<Exclusive>) {
        self.read(Deferred::Frames(first, frames, tag));
        self.expect_read(tag);
    }

    /// Queues a direct read of adjacent pages into private memory, `who` being the session and its own number
    /// of the request. Each wakes the session by itself.
    pub(crate) fn read_direct(&self, who: (Tag, u32), first: Page, buffer: Buffer, bytes: usize) {
        self.read(Deferred::Buffer(first, buffer, bytes, who));
    }

    fn expect_read(&self, tag: Tag) {
        let slot = self.slot(tag);
        slot.pending_reads.set(slot.pending_reads.get() + 1);
    }

    /// Queues a read in the ring, or behind those that wait for room there.
    fn read(&self, read: Deferred) {
        let left = if self.deferred.borrow().is_empty() { self.queue(read) } else { Some(read) };
        if let Some(read) = left {
            self.deferred.borrow_mut().push_back(read);
        }
        self.unpushed.set(self.unpushed.get() + 1);
    }

    /// Queues a read in the ring; gives it back where there is no room.
    fn queue(&self, read: Deferred) -> Option<Deferred> {
        let mut ring = self.ring.borrow_mut();
        if ring.in_flight() >= self.read_room {
            return Some(read);
        }
        match read {
            Deferred::Frame(page, frame, tag) => {
                let (file, offset) = self.locate(page);
                ring.read_frame(file, offset, frame, TAG_READ | u64::from(tag))
                    .err()
                    .map(|frame| Deferred::Frame(page, frame, tag))
            }
            Deferred::Frames(page, frames, tag) => {
                let (file, offset) = self.locate(page);
                ring.read_frames(file, offset, frames, TAG_READ | u64::from(tag))
                    .err()
                    .map(|frames| Deferred::Frames(page, frames, tag))
            }
            Deferred::Buffer(page, buffer, bytes, who) => {
                let (file, offset) = self.locate(page);
                ring.read_buffer(file, offset, buffer, bytes, direct_tag(who))
                    .err()
                    .map(|buffer| Deferred::Buffer(page, buffer, bytes, who))
            }
        }
    }

    /// Gives what is queued to the kernel in the middle of a poll. A ring that refuses keeps it for the
    /// driver's next push, which reports the error.
    pub(crate) fn push_now(&self) {
        let mut ring = self.ring.borrow_mut();
        ring.stamp(self.instance.clock.now_ns());
        if ring.submit(0, std::time::Duration::ZERO).is_ok() {
            self.unpushed.set(0);
        }
    }

    /// Queues what did not fit before, oldest first, as far as there is room now.
    pub(crate) fn retry_deferred(&self) {
        let mut deferred = self.deferred.borrow_mut();
        while let Some(read) = deferred.pop_front() {
            if let Some(read) = self.queue(read) {
                deferred.push_front(read);
                return;
            }
        }
    }

    /// Lets a page go; without a cache it is dropped at once.
    pub(crate) fn unpin(&self, pin: Shared, page: Page) {
        let frame = pin.frame();
        let cache = &self.instance.cache;
        cache.pool.unpin(pin);
        if cache.drop_on_unpin && page.0 < crate::layout::UNDO_BASE {
            cache.discard(frame, page);
        }
    }

    /// Gives a buffer of the log back.
    pub(crate) fn give_buffer(&self, buffer: Buffer) {
        self.ring.borrow_mut().give_back(buffer);
    }

    /// A private buffer for a scan; a thread has few, so that 1000 sessions need no gigabyte.
    pub(crate) fn take_scan_buffer(&self, tag: Tag) -> Option<Buffer> {
        let granted = self.slot(tag).granted.borrow_mut().take();
        if granted.is_some() {
            return granted;
        }
        let left = self.scan_buffers.get().checked_sub(1)?;
        let buffer = self.ring.borrow_mut().take_buffer()?;
        self.scan_buffers.set(left);
        Some(buffer)
    }

    /// Hands a scan buffer to the session that has waited longest for one, or back to the ring. Handed over
    /// and not put back: whoever gives would be the first to take it again.
    pub(crate) fn give_scan_buffer(&self, buffer: Buffer) {
        let next = self.buffer_queue.borrow_mut().pop_front();
        if let Some(tag) = next {
            *self.slot(tag).granted.borrow_mut() = Some(buffer);
            self.retry.borrow_mut().push(tag);
        } else {
            self.ring.borrow_mut().give_back(buffer);
            self.scan_buffers.set(self.scan_buffers.get() + 1);
        }
    }

    /// Counts one read request of `blocks` adjacent pages into the cache.
    pub(crate) fn count_read(&self, first: Page, blocks: u64) {
        self.c.add(C::ReadsCache, blocks);
        self.c.add(C::ReadRequests, 1);
        self.c.add(C::ReadMultiBlock, u64::from(blocks > 1));
        self.c.read_request(self.read_row(first), blocks * u64::from(self.instance.geometry.block_bytes));
    }

    /// The I/O row of a cache read of this page.
    pub(crate) fn read_row(&self, page: Page) -> Io {
        if page.0 >= crate::layout::UNDO_BASE { Io::CacheReadUndo } else { Io::CacheReadData }
    }

    /// Counts `n` gets through the cache.
    pub(crate) fn count_gets(&self, current: bool, n: u64) {
        self.c.add(C::GetsFromCache, n);
        self.c.add(if current { C::DbBlockGets } else { C::ConsistentGets }, n);
    }
}

/// Pending once.
#[derive(Default)]
pub(crate) struct Suspender(bool);

impl Future for Suspender {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        Poll::Pending
    }
}
