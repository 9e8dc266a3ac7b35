//! Requests in flight: one [`Ring`] per thread, over io_uring or, where that is refused, over helper threads.
//!
//! A ring takes leases of frames ([`Exclusive`]) and its own buffers ([`Buffer`]), lends their memory to the kernel,
//! and returns them with the completion. Each request lives in a slot until its completion has been popped. The slot
//! keeps the lease and the address list alive whatever the caller does meanwhile, even if it drops the ring. A request
//! allocates nothing.
//!
//! Who calls it: engines, one ring per driver thread, and log writers. It knows nothing about the content of a block.

mod backed;
mod counters;
mod helpers;
mod slab;
mod uring;
mod waker;

pub use counters::{FileCounters, RingCounters};
pub use slab::Buffer;
pub use waker::Waker;

use crate::mapping::Mapping;
use crate::pool::{Exclusive, Pool};
use crate::{BlockError, DirectFile, Features};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of requests in flight per ring.
pub(crate) const MAX_ENTRIES: u32 = 16_384;

/// How requests reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// io_uring, or helper threads if the kernel refuses it; [`Features::refused`] has the reason.
    Auto,
    /// io_uring or an error.
    Uring,
    /// Helper threads with blocking positional reads and writes.
    Helpers,
}

/// Size and kind of a [`Ring`].
#[derive(Debug, Clone)]
pub struct RingOptions {
    /// Maximum number of requests in flight, 1 to 16,384.
    pub entries: u32,
    /// Number of buffers in the ring's slab; may be 0.
    pub buffers: usize,
    /// Bytes per buffer, a multiple of 4096.
    pub buffer_bytes: usize,
    /// The pool whose frames `read_frame` and `read_frames` take.
    pub pool: Option<Arc<Pool>>,
    /// The files; requests name them by their index here.
    pub files: Vec<Arc<DirectFile>>,
    /// How requests reach the kernel.
    pub backend: Backend,
    /// Number of helper threads, if any are used; at least 1.
    pub helpers: usize,
}

/// One finished request.
#[derive(Debug)]
pub struct Completion {
    /// The caller's tag of the request.
    pub tag: u64,
    /// Bytes moved (0 for a synchronisation or a no-operation). A short count is passed on unchanged: at the end of a
    /// file, or on a full disk.
    pub result: io::Result<u32>,
    /// The leases or buffer of the request.
    pub lease: CompletionLease,
    /// The time given to the last [`Ring::stamp`] before the request was submitted to the kernel, by the caller's
    /// clock; 0 without a stamp.
    pub submitted: u64,
}

/// What a finished request returns.
#[derive(Debug)]
pub enum CompletionLease {
    /// For [`Ring::read_frame`].
    Frame(Exclusive),
    /// For [`Ring::read_frames`], in the order given.
    Frames(Vec<Exclusive>),
    /// For [`Ring::read_buffer`] and [`Ring::write_buffer`].
    Buffer(Buffer),
    /// For [`Ring::sync_file`] and [`Ring::nop`].
    None,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    ReadScattered,
    Write,
    WriteDurable,
    Sync,
    Nop,
}

/// A request as a backend needs it. Its slot keeps its memory alive.
struct Request {
    kind: Kind,
    slot: u32,
    file: u16,
    offset: u64,
    /// Start of the memory, or of the address list for `ReadScattered`.
    address: *mut u8,
    /// Bytes, or entries of the address list.
    len: u32,
    /// Its location in the registered memory.
    place: Place,
}

/// Which area of registered memory a request uses, so that a backend can find the index under which it is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Frame(u32),
    /// Scattered over frames from the lowest to the highest index given here, in any order.
    Frames(u32, u32),
    Buffer(u32),
    Nowhere,
}

/// Keeps everything alive that a request in flight uses.
struct Slot {
    tag: u64,
    kind: Kind,
    file: u16,
    lease: CompletionLease,
    /// Addresses of a scattered read; the capacity is reused.
    addresses: Vec<libc::iovec>,
    /// See [`Completion::submitted`].
    submitted: u64,
}

enum Engine {
    Uring(uring::Uring),
    Helpers(helpers::Helpers),
    Backed(backed::Backed),
}

/// Requests in flight of one thread. Not `Send`: the ring is set up for a single submitting thread.
pub struct Ring {
    // The engine is dropped first, and its drop waits until nothing is in flight.
    engine: Engine,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Completions taken from the engine and not popped yet: the slot, and the result as the kernel reports it.
    done: VecDeque<(u32, i32)>,
    /// Slots queued since the last submit; one stamp applies to them all.
    queued: Vec<u32>,
    slab: Rc<Slab>,
    pool: Option<Arc<Pool>>,
    files: Box<[FileState]>,
    features: Features,
    counters: RingCounters,
}

/// What a ring keeps of each of its files.
struct FileState {
    /// Added to every offset: the position of the file's byte 0 on its device.
    base: u64,
    /// First byte that must not be written.
    limit: u64,
    counters: FileCounters,
}

impl FileState {
    fn of(file: &DirectFile) -> Self {
        Self { base: file.base(), limit: file.limit(), counters: FileCounters::default() }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ring")
            .field("backend", &self.features.backend)
            .field("in_flight", &self.in_flight())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Refuses more requests or files than a ring can number.
fn check_limits(entries: u32, files: usize) -> Result<(), BlockError> {
    if entries == 0 || entries > MAX_ENTRIES {
        return Err(BlockError::Invalid {
            what: format!("a ring has 1 to {MAX_ENTRIES} requests in flight, not {entries}"),
        });
    }
    if u16::try_from(files).is_err() {
        return Err(BlockError::Invalid { what: format!("a ring serves up to 65535 files, not {files}") });
    }
    Ok(())
}

impl Ring {
    /// Sets up a ring. [`Ring::features`] lists what the kernel granted and refused.
    ///
    /// # Errors
    /// [`BlockError::Invalid`] for options that cannot work, [`BlockError::NoUring`] if io_uring was requested by name
    /// and is refused, [`BlockError::Memory`], [`BlockError::Ring`].
    pub fn open(options: RingOptions) -> Result<Ring, BlockError> {
        let RingOptions { entries, buffers, buffer_bytes, pool, files, backend, helpers } = options;
        check_limits(entries, files.len())?;
        let slab = Slab::new(buffers, buffer_bytes, |bytes, what| slab_memory(&files, bytes, what))?;
        let file_states = files.iter().map(|file| FileState::of(file)).collect();
        let mut features = Features::default();
        let setup = Setup { entries, files, pool: pool.clone(), slab: Rc::clone(&slab), helpers };
        let backed = backed::Backed::open(&setup, &mut features)?;
        let engine = match (backed, backend) {
            (Some(backed), _) => Engine::Backed(backed),
            (None, Backend::Helpers) => Engine::Helpers(helpers::Helpers::open(&setup, &mut features)?),
            (None, Backend::Uring) => {
                Engine::Uring(uring::Uring::open(&setup, &mut features).map_err(|why| BlockError::NoUring { why })?)
            }
            (None, Backend::Auto) => match uring::Uring::open(&setup, &mut features) {
                Ok(uring) => Engine::Uring(uring),
                Err(why) => {
                    features = Features::default();
                    features.refuse("io_uring", why);
                    Engine::Helpers(helpers::Helpers::open(&setup, &mut features)?)
                }
            },
        };
        let slots = (0..entries).map(|_| Slot::empty()).collect();
        Ok(Ring {
            engine,
            slots,
            free: (0..entries).rev().collect(),
            done: VecDeque::with_capacity(entries as usize),
            queued: Vec::with_capacity(entries as usize),
            slab,
            pool,
            files: file_states,
            features,
            counters: RingCounters::default(),
        })
    }

    /// What the kernel granted and refused.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Takes a free buffer from the slab, or `None` while all are in use. Its content is left over from its last use
    /// (zeroes at first). Dropping it returns it.
    #[inline]
    pub fn take_buffer(&mut self) -> Option<Buffer> {
        Slab::take(&self.slab)
    }

    /// Returns a buffer to the slab it came from; the same as dropping it.
    #[inline]
    pub fn give_back(&mut self, buffer: Buffer) {
        drop(buffer);
    }

    /// Queues a read of one whole frame. The completion returns the lease.
    ///
    /// # Errors
    /// Returns the lease while as many requests are in flight as the ring has entries.
    ///
    /// # Panics
    /// If the frame is not of the ring's pool or the file index is out of range.
    #[inline]
    pub fn read_frame(&mut self, file: u16, offset: u64, mut frame: Exclusive, tag: u64) -> Result<(), Exclusive> {
        let pool = self.pool_of(&frame);
        let (address, len) = (pool.address(frame.frame()), pool.frame_bytes());
        let Some(slot) = self.take_slot(file) else {
            return Err(frame);
        };
        frame.mark_written();
        let place = Place::Frame(frame.frame());
        self.start(slot, tag, Kind::Read, CompletionLease::Frame(frame), (file, offset), (address, len), place);
        Ok(())
    }

    /// Queues one read of consecutive blocks scattered over frames in the order given.
    ///
    /// # Errors
    /// Returns the leases while as many requests are in flight as the ring has entries.
    ///
    /// # Panics
    /// If there are no frames or more than 1024 (the kernel's limit), a frame is not of the ring's pool, or the file
    /// index is out of range.
    pub fn read_frames(
        &mut self,
        file: u16,
        offset: u64,
        mut frames: Vec<Exclusive>,
        tag: u64,
    ) -> Result<(), Vec<Exclusive>> {
        assert!((1..=1024).contains(&frames.len()), "a scattered read takes 1 to 1024 frames, not {}", frames.len());
        let Some(slot) = self.take_slot(file) else {
            return Err(frames);
        };
        let mut addresses = std::mem::take(&mut self.slots[slot as usize].addresses);
        addresses.clear();
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for frame in &mut frames {
            let pool = self.pool_of(frame);
            let address = pool.address(frame.frame());
            addresses.push(libc::iovec { iov_base: address.cast(), iov_len: pool.frame_bytes() });
            frame.mark_written();
            lowest = lowest.min(frame.frame());
            highest = highest.max(frame.frame());
        }
        let (list, count) = (addresses.as_mut_ptr().cast(), addresses.len());
        self.slots[slot as usize].addresses = addresses;
        let lease = CompletionLease::Frames(frames);
        let place = Place::Frames(lowest, highest);
        self.start(slot, tag, Kind::ReadScattered, lease, (file, offset), (list, count), place);
        Ok(())
    }

    /// Queues a read of `len` bytes into the beginning of a buffer.
    ///
    /// # Errors
    /// Returns the buffer while as many requests are in flight as the ring has entries.
    ///
    /// # Panics
    /// If the buffer belongs to another ring or is shorter than `len`, or the file index is out of range.
    pub fn read_buffer(&mut self, file: u16, offset: u64, buffer: Buffer, len: usize, tag: u64) -> Result<(), Buffer> {
        self.transfer(Kind::Read, file, offset, buffer, len, tag)
    }

    /// Queues a write of the first `len` bytes of a buffer. With `durable` the completion means that the data, and what
    /// is needed to read it back, has reached stable storage (`RWF_DSYNC`).
    ///
    /// # Errors
    /// Returns the buffer while as many requests are in flight as the ring has entries.
    ///
    /// # Panics
    /// If the buffer belongs to another ring or is shorter than `len`, or the file index is out of range.
    pub fn write_buffer(
        &mut self,
        file: u16,
        offset: u64,
        buffer: Buffer,
        len: usize,
        durable: bool,
        tag: u64,
    ) -> Result<(), Buffer> {
        let kind = if durable { Kind::WriteDurable } else { Kind::Write };
        self.transfer(kind, file, offset, buffer, len, tag)
    }

    /// Queues a synchronisation of a file's data (`fdatasync`). It covers all writes popped before it was queued; those
    /// still in flight may or may not be covered.
    ///
    /// # Errors
    /// `Err` while as many requests are in flight as the ring has entries.
    ///
    /// # Panics
    /// If the file index is out of range.
    #[expect(clippy::result_unit_err, reason = "there is nothing to hand back and only one cause: the ring is full")]
    pub fn sync_file(&mut self, file: u16, tag: u64) -> Result<(), ()> {
        let slot = self.take_slot(file).ok_or(())?;
        let nothing = (std::ptr::null_mut(), 0);
        self.start(slot, tag, Kind::Sync, CompletionLease::None, (file, 0), nothing, Place::Nowhere);
        Ok(())
    }

    /// Queues a request that only passes through the ring: for measuring the ring itself.
    ///
    /// # Errors
    /// `Err` while as many requests are in flight as the ring has entries.
    #[inline]
    #[expect(clippy::result_unit_err, reason = "there is nothing to hand back and only one cause: the ring is full")]
    pub fn nop(&mut self, tag: u64) -> Result<(), ()> {
        let slot = self.free.pop().ok_or(())?;
        let nothing = (std::ptr::null_mut(), 0);
        self.start(slot, tag, Kind::Nop, CompletionLease::None, (0, 0), nothing, Place::Nowhere);
        Ok(())
    }

    /// Requests queued, in the kernel, or finished but not popped. The ring's own wake-up entry does not count.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Completions that can be popped, as of the last submit.
    #[inline]
    pub fn arrived(&self) -> usize {
        self.done.len()
    }

    /// Records `now`, a time of the caller's clock, as the submission time of everything queued; each completion
    /// returns it. Call this just before [`Ring::submit`]: one stamp per submit, none per request.
    #[inline]
    pub fn stamp(&mut self, now: u64) {
        for slot in self.queued.drain(..) {
            self.slots[slot as usize].submitted = now;
        }
    }

    /// Submits everything queued to the kernel and waits until `wait_for` completions can be popped, a [`Waker`] calls,
    /// a signal arrives or `timeout` is over, whichever comes first. With `wait_for` 0 it never waits, but ready
    /// completions become visible. It waits for no more completions than are in flight; with none in flight and
    /// `wait_for` above 0 it waits for a wake-up or the timeout. It may return early: check and call again.
    ///
    /// # Errors
    /// [`BlockError::Ring`] if the kernel does not take the requests; they stay queued.
    #[inline]
    pub fn submit(&mut self, wait_for: u32, timeout: Duration) -> Result<(), BlockError> {
        self.queued.clear();
        let in_flight = self.in_flight() as u32;
        let wait_for = wait_for.min(in_flight.max(1));
        match &mut self.engine {
            Engine::Uring(uring) => uring.submit(&mut self.done, wait_for, timeout, &mut self.counters.submits),
            Engine::Helpers(helpers) => {
                helpers.submit(&mut self.done, wait_for, timeout, &mut self.counters.submits);
                Ok(())
            }
            Engine::Backed(backed) => {
                backed.submit(&mut self.slots, wait_for, &mut self.counters.submits);
                Ok(())
            }
        }
    }

    /// The next completion, oldest first, without a system call. `None` means that none is visible without entering the
    /// kernel.
    #[inline]
    pub fn pop(&mut self) -> Option<Completion> {
        if self.done.is_empty() {
            match &mut self.engine {
                Engine::Uring(uring) => uring.reap(&mut self.done),
                Engine::Helpers(helpers) => helpers.reap(&mut self.done),
                Engine::Backed(backed) => backed.reap(&mut self.done),
            }
        }
        let (index, outcome) = self.done.pop_front()?;
        let slot = &mut self.slots[index as usize];
        let (tag, kind, file) = (slot.tag, slot.kind, slot.file);
        let submitted = slot.submitted;
        let lease = std::mem::replace(&mut slot.lease, CompletionLease::None);
        self.free.push(index);
        let result = u32::try_from(outcome).map_err(|_| io::Error::from_raw_os_error(-outcome));
        let moved = result.as_ref().ok().copied();
        self.counters.count(kind, moved);
        if let (Some(state), Some(bytes)) = (self.files.get_mut(usize::from(file)), moved) {
            state.counters.count(kind, bytes);
        }
        Some(Completion { tag, result, lease, submitted })
    }

    /// Tags of the completions already known, in the order in which [`Ring::pop`] will return them.
    pub fn coming(&self) -> impl Iterator<Item = u64> + '_ {
        self.done.iter().map(|(slot, _)| self.slots[*slot as usize].tag)
    }

    /// Prefetches the frame that [`Ring::pop`] will return next, if one is known: it arrives while the caller works on
    /// the one before.
    #[inline]
    pub fn prefetch_next(&self) {
        if let (Some(pool), Some(&(slot, _))) = (&self.pool, self.done.front())
            && let CompletionLease::Frame(frame) = &self.slots[slot as usize].lease
        {
            pool.prefetch_frame(frame.frame());
        }
    }

    /// A handle with which other threads can end a waiting [`Ring::submit`].
    ///
    /// From the first call on, waiting for several completions costs up to one kernel entry per completion, since a
    /// wake-up must be able to end the wait at any time.
    pub fn waker(&self) -> Waker {
        match &self.engine {
            Engine::Uring(uring) => uring.waker(),
            Engine::Helpers(helpers) => helpers.waker(),
            Engine::Backed(backed) => backed.waker(),
        }
    }

    /// Counters since the ring was opened.
    #[inline]
    pub fn counters(&self) -> RingCounters {
        self.counters
    }

    /// Counters per file, in index order. Their sums are those of [`Ring::counters`].
    pub fn file_counters(&self) -> impl Iterator<Item = FileCounters> + '_ {
        self.files.iter().map(|state| state.counters)
    }

    fn transfer(
        &mut self,
        kind: Kind,
        file: u16,
        offset: u64,
        mut buffer: Buffer,
        len: usize,
        tag: u64,
    ) -> Result<(), Buffer> {
        assert!(buffer.is_of(&self.slab), "a buffer was used with a ring that does not own it");
        assert!(len <= buffer.len(), "{len} bytes are more than a buffer of {}", buffer.len());
        assert!(
            offset.saturating_add(len as u64) <= self.files[usize::from(file)].limit,
            "bytes {offset} to {} lie outside file {file}",
            offset.saturating_add(len as u64)
        );
        let Some(slot) = self.take_slot(file) else {
            return Err(buffer);
        };
        let place = Place::Buffer(buffer.index());
        let memory = (buffer.as_mut_ptr(), len);
        self.start(slot, tag, kind, CompletionLease::Buffer(buffer), (file, offset), memory, place);
        Ok(())
    }

    fn take_slot(&mut self, file: u16) -> Option<u32> {
        assert!((file as usize) < self.files.len(), "file {file} of a ring with {} files", self.files.len());
        self.free.pop()
    }

    fn pool_of(&self, frame: &Exclusive) -> &Pool {
        let pool = self.pool.as_deref().expect("a ring that reads into frames is opened with their pool");
        assert!(Pool::id_of(frame) == pool.id(), "a frame of another pool than the ring's");
        pool
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the one place where all parts of a request meet")]
    fn start(
        &mut self,
        index: u32,
        tag: u64,
        kind: Kind,
        lease: CompletionLease,
        (file, offset): (u16, u64),
        (address, len): (*mut u8, usize),
        place: Place,
    ) {
        let slot = &mut self.slots[index as usize];
        slot.tag = tag;
        slot.kind = kind;
        slot.file = file;
        // A no-operation has no file, and a ring that only submits those has none at all.
        let base = self.files.get(usize::from(file)).map_or(0, |state| state.base);
        slot.lease = lease;
        slot.submitted = 0;
        self.queued.push(index);
        let len = u32::try_from(len).expect("frames and buffers are below 4 GiB");
        let request = Request { kind, slot: index, file, offset: offset + base, address, len, place };
        match &mut self.engine {
            Engine::Uring(uring) => uring.queue(&request),
            Engine::Helpers(helpers) => helpers.queue(&request),
            Engine::Backed(backed) => backed.queue(&request),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let remaining = self.in_flight() - self.done.len();
        let finished = match &mut self.engine {
            Engine::Uring(uring) => uring.drain(remaining),
            Engine::Helpers(helpers) => helpers.drain(),
            Engine::Backed(backed) => backed.drain(&mut self.slots),
        };
        if !finished {
            // The kernel may still write into this memory, and nothing can tell when it stops. The only safe choice is
            // to leak the memory.
            std::mem::forget(std::mem::take(&mut self.slots));
            std::mem::forget(Rc::clone(&self.slab));
            std::mem::forget(self.pool.clone());
        }
    }
}

/// Memory for the buffers of a ring over these files. For files of a backend, pages are allocated at their first touch:
/// tests create many short-lived rings.
fn slab_memory(files: &[Arc<DirectFile>], bytes: usize, what: &'static str) -> Result<Mapping, BlockError> {
    if files.iter().any(|file| file.backed().is_some()) {
        Mapping::untouched(bytes, what)
    } else {
        Mapping::new(bytes, false, what)
    }
}

/// What both backends are set up from.
struct Setup {
    entries: u32,
    files: Vec<Arc<DirectFile>>,
    pool: Option<Arc<Pool>>,
    slab: Rc<Slab>,
    helpers: usize,
}

impl Slot {
    fn empty() -> Self {
        Self { tag: 0, kind: Kind::Nop, file: 0, lease: CompletionLease::None, addresses: Vec::new(), submitted: 0 }
    }
}

#[cfg(test)]
mod tests;
