//! The requests of a load generator: a fixed number of lanes, each with its own buffer.
//!
//! A [`Ring`](crate::Ring) moves leases in and out with every request, since an engine's frames change hands. A load
//! generator needs none of that: request slot i always uses buffer i. So a lane is just a number. A request leases,
//! moves and allocates nothing, and queueing and reaping one costs a few nanoseconds.
//!
//! The safety rule: a lane is busy from the call that queues its request until the call that reaps it, and the buffer
//! of a busy lane is not accessible. Dropping the lanes first waits for the requests that the kernel holds.
//!
//! Who calls it: the storage probe, one [`Lanes`] per thread. It does not know what is being measured.

mod aio;
mod psync;
mod uring;

use crate::features::Features;
use crate::mapping::{ALIGNMENT, HUGE_PAGE, Mapping};
use crate::ring::{Kind, MAX_ENTRIES, RingCounters};
use crate::{BlockError, DirectFile};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Maximum size of a lane's buffer in bytes: a registered piece of memory cannot be larger.
const MAX_LANE_BYTES: usize = 1 << 30;

/// `BLKDISCARD` of `linux/fs.h`: `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// How requests reach the kernel, if at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneEngine {
    /// io_uring.
    Uring(UringMode),
    /// Submits every request as a no-operation to a real io_uring: measures the cost of everything but the I/O.
    Nop(UringMode),
    /// The kernel's older asynchronous interface (`io_submit`). Truly asynchronous for direct I/O only.
    Aio,
    /// One blocking positional call after another.
    Psync(SyncCall),
    /// Does nothing and never enters the kernel: measures the cost of the caller alone.
    Null,
}

/// How io_uring is used. The default enables everything that helps and has no cost elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringMode {
    /// Register buffers, so that pages are pinned once rather than per request.
    pub fixed_buffers: bool,
    /// Register files, so that no reference is taken per request.
    pub registered_files: bool,
    /// Poll for completions (`IORING_SETUP_IOPOLL`); needs direct I/O and a device with poll queues.
    pub polled: bool,
    /// Let a kernel thread submit (`IORING_SETUP_SQPOLL`): no system calls to submit, but one more busy processor.
    pub sq_thread: bool,
    /// The processor to bind that thread to.
    pub sq_thread_cpu: Option<u32>,
    /// Let requests name their buffer directly, not through a list of one. Registered buffers are always named
    /// directly.
    pub nonvectored: bool,
    /// Hand every n-th request to a kernel worker at once (`IOSQE_ASYNC`); 0 means none.
    pub force_async: u32,
    /// Let requests that would block fail with `EAGAIN` (`RWF_NOWAIT`).
    pub nowait: bool,
}

impl Default for UringMode {
    fn default() -> Self {
        Self {
            fixed_buffers: true,
            registered_files: true,
            polled: false,
            sq_thread: false,
            sq_thread_cpu: None,
            nonvectored: true,
            force_async: 0,
            nowait: false,
        }
    }
}

/// Flags of blocking calls. Without any, the calls are `pread` and `pwrite`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncCall {
    /// Let the kernel poll for the completion if the device can (`RWF_HIPRI`); no effect otherwise.
    pub high_priority: bool,
    /// Let calls that would block fail with `EAGAIN` (`RWF_NOWAIT`).
    pub nowait: bool,
}

/// Size and kind of [`Lanes`].
#[derive(Debug, Clone)]
pub struct LanesOptions {
    /// Maximum number of requests in flight, 1 to 16,384.
    pub lanes: u32,
    /// Bytes of one lane's buffer, up to 1 GiB; rounded up to a multiple of 4096. Buffers are aligned to 4096 bytes.
    pub lane_bytes: usize,
    /// The files; requests name them by their index here. May be empty for engines that touch no file (nop, null).
    pub files: Vec<Arc<DirectFile>>,
    /// How requests reach the kernel.
    pub engine: LaneEngine,
}

/// One finished request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneDone {
    /// The lane, now free again.
    pub lane: u32,
    /// Bytes moved (0 for a synchronisation), or the negated error number. A short transfer is reported as it is:
    /// [`Lanes::read_rest`] and [`Lanes::write_rest`] request the rest.
    pub result: i32,
}

/// The state of a lane.
#[derive(Debug, Clone, Copy)]
struct Lane {
    /// `None` while the lane is free.
    kind: Option<Kind>,
    len: u32,
}

/// A request as a backend needs it.
#[derive(Clone, Copy)]
struct Request {
    kind: LaneKind,
    lane: u32,
    file: u16,
    offset: u64,
    address: *mut u8,
    len: u32,
}

/// What a request does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneKind {
    Read,
    Write,
    Sync { data_only: bool },
}

impl LaneKind {
    fn counted_as(self) -> Kind {
        match self {
            LaneKind::Read => Kind::Read,
            LaneKind::Write => Kind::Write,
            LaneKind::Sync { .. } => Kind::Sync,
        }
    }
}

/// What the lanes keep of each file.
struct Place {
    /// Added to every offset: the position of the file's byte 0 on its device.
    base: u64,
    /// First byte that must not be touched.
    limit: u64,
    file: Arc<DirectFile>,
}

enum Engine {
    Uring(uring::UringLanes),
    Aio(aio::AioLanes),
    Psync(psync::PsyncLanes),
    /// Requests in submission order; all but the last `queued` are done.
    Null(Vec<LaneDone>),
}

/// A fixed number of request slots of one thread. Not `Send`: the ring is set up for a single submitting thread.
pub struct Lanes {
    // The engine is dropped first, and its drop waits until nothing is in flight.
    engine: Engine,
    lanes: Box<[Lane]>,
    /// `None` only after a failed drain: the kernel may still write there, so the memory is leaked.
    memory: Option<Memory>,
    base: *mut u8,
    lane_bytes: usize,
    files: Box<[Place]>,
    /// Whether requests touch no file: the engine is nop or null.
    fileless: bool,
    queued: u32,
    in_flight: u32,
    features: Features,
    counters: RingCounters,
    /// Shortens every n-th request, see [`Lanes::shorten`]; 0 is none.
    shorten: u32,
    /// Requests so far that were large enough to shorten.
    cuttable: u32,
    _one_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Lanes")
            .field("backend", &self.features.backend)
            .field("lanes", &self.lanes.len())
            .field("queued", &self.queued)
            .field("in_flight", &self.in_flight)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Lanes {
    /// Sets up lanes on the thread that will use them. [`Lanes::features`] lists what the kernel granted and refused.
    /// Lanes use the requested engine and never silently substitute another.
    ///
    /// # Errors
    /// [`BlockError::Invalid`] for options that cannot work, including polling on a device without poll queues.
    /// [`BlockError::NoUring`] or [`BlockError::NoAio`] if the kernel refuses that interface, with the reason and the
    /// alternative. [`BlockError::Memory`].
    pub fn open(options: LanesOptions) -> Result<Lanes, BlockError> {
        let lane_bytes = check(&options)?;
        let bytes = lane_bytes
            .checked_mul(options.lanes as usize)
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or_else(|| BlockError::Invalid {
                what: format!("{} buffers of {lane_bytes} bytes are more than can be addressed", options.lanes),
            })?;
        let mut features = Features::default();
        let memory = Memory::new(bytes, &mut features)?;
        let setup = Setup { lanes: options.lanes, lane_bytes, base: memory.mapping.base(), files: &options.files };
        let engine = match options.engine {
            LaneEngine::Uring(mode) => {
                Engine::Uring(uring::UringLanes::open(&setup, mode, false, &mut features).map_err(no_uring)?)
            }
            LaneEngine::Nop(mode) => {
                Engine::Uring(uring::UringLanes::open(&setup, mode, true, &mut features).map_err(no_uring)?)
            }
            LaneEngine::Aio => Engine::Aio(aio::AioLanes::open(&setup, &mut features)?),
            LaneEngine::Psync(call) => Engine::Psync(psync::PsyncLanes::open(&setup, call, &mut features)),
            LaneEngine::Null => {
                features.backend = "null";
                Engine::Null(Vec::with_capacity(options.lanes as usize))
            }
        };
        let free = Lane { kind: None, len: 0 };
        let place = |file: &Arc<DirectFile>| Place { base: file.base(), limit: file.limit(), file: Arc::clone(file) };
        Ok(Lanes {
            engine,
            lanes: vec![free; options.lanes as usize].into(),
            base: memory.mapping.base(),
            memory: Some(memory),
            lane_bytes,
            files: options.files.iter().map(place).collect(),
            fileless: matches!(options.engine, LaneEngine::Nop(_) | LaneEngine::Null),
            queued: 0,
            in_flight: 0,
            features,
            counters: RingCounters::default(),
            shorten: 0,
            cuttable: 0,
            _one_thread: PhantomData,
        })
    }

    /// From now on every `every`-th request of at least 1024 bytes asks the kernel for only half of its bytes, so that
    /// it completes short; requesting the rest counts as another request. 0 disables this. For tests of the caller:
    /// kernels complete requests short only at the end of a file, at a size limit and on a full file system, never
    /// where a test could cause it in the middle of a file.
    pub fn shorten(&mut self, every: u32) {
        self.shorten = every;
    }

    /// Bytes to request from the kernel in place of `len`: whole sectors, for direct I/O.
    #[cold]
    fn cut(&mut self, len: u32) -> u32 {
        self.cuttable += u32::from(len >= 1024);
        if len >= 1024 && self.cuttable.is_multiple_of(self.shorten) { (len / 2) & !511 } else { len }
    }

    /// What the kernel granted and refused. The backend is `io_uring`, `nop`, `libaio`, `psync` or `null`.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Number of lanes.
    #[inline]
    pub fn lanes(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// Bytes of each lane's buffer.
    #[inline]
    pub fn lane_bytes(&self) -> usize {
        self.lane_bytes
    }

    /// Requests submitted to the kernel and not yet reaped.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Requests queued and not yet submitted to the kernel.
    #[inline]
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// The first `len` bytes of a lane's buffer.
    ///
    /// # Panics
    /// If the lane is busy or does not exist, or its buffer is shorter.
    #[inline]
    pub fn buffer(&self, lane: u32, len: usize) -> &[u8] {
        let address = self.idle(lane, len);
        // SAFETY: the range lies inside the mapping, which this value owns and which is initialised (zeroed at first).
        // The lane is free, so the kernel does not have it, and only methods that borrow exclusively give it away.
        unsafe { std::slice::from_raw_parts(address, len) }
    }

    /// The first `len` bytes of a lane's buffer, mutable.
    ///
    /// # Panics
    /// If the lane is busy or does not exist, or its buffer is shorter.
    #[inline]
    pub fn buffer_mut(&mut self, lane: u32, len: usize) -> &mut [u8] {
        let address = self.idle(lane, len);
        // SAFETY: as in `buffer`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(address, len) }
    }

    /// The address of a free lane's buffer, of at least `len` bytes.
    #[inline]
    fn idle(&self, lane: u32, len: usize) -> *mut u8 {
        assert!(self.lanes[lane as usize].kind.is_none(), "the buffer of lane {lane} while the lane is busy");
        assert!(len <= self.lane_bytes, "{len} bytes of a lane of {}", self.lane_bytes);
        self.base.wrapping_add(lane as usize * self.lane_bytes)
    }

    /// Queues a read of `len` bytes at `offset` of a file into the beginning of the lane's buffer.
    ///
    /// # Panics
    /// If the lane is busy, its buffer is shorter than `len`, there is no such file, or the range extends beyond the
    /// opened part of the file.
    #[inline]
    pub fn read(&mut self, lane: u32, file: u16, offset: u64, len: u32) {
        self.queue(LaneKind::Read, lane, file, offset, len, 0);
    }

    /// Queues a write of the first `len` bytes of the lane's buffer at `offset` of a file.
    ///
    /// # Panics
    /// As [`Lanes::read`].
    #[inline]
    pub fn write(&mut self, lane: u32, file: u16, offset: u64, len: u32) {
        self.queue(LaneKind::Write, lane, file, offset, len, 0);
    }

    /// Queues the rest of a read that moved only `skip` bytes: `len` bytes at `offset` of a file, into the lane's
    /// buffer after them. The bytes already read stay unless someone changes the buffer in between.
    ///
    /// # Panics
    /// As [`Lanes::read`], for a buffer shorter than `skip + len`.
    pub fn read_rest(&mut self, lane: u32, file: u16, offset: u64, len: u32, skip: u32) {
        self.queue(LaneKind::Read, lane, file, offset, len, skip as usize);
    }

    /// Queues the rest of a write that moved only `skip` bytes: `len` bytes of the lane's buffer from `skip` on, at
    /// `offset` of a file.
    ///
    /// # Panics
    /// As [`Lanes::read_rest`].
    pub fn write_rest(&mut self, lane: u32, file: u16, offset: u64, len: u32, skip: u32) {
        self.queue(LaneKind::Write, lane, file, offset, len, skip as usize);
    }

    /// Queues a synchronisation of a whole file: `fdatasync` with `data_only`, else `fsync`. It covers all writes
    /// reaped before; those in flight may or may not be covered.
    ///
    /// # Panics
    /// As [`Lanes::read`].
    #[inline]
    pub fn sync(&mut self, lane: u32, file: u16, data_only: bool) {
        self.queue(LaneKind::Sync { data_only }, lane, file, 0, 0, 0);
    }

    /// Discards `len` bytes at `offset` of a block device (`BLKDISCARD`): afterwards their content is undefined, and
    /// the old content is lost. The call is not queued but completes before it returns, with every engine, since not
    /// every kernel has an asynchronous call for it. It needs no buffer, and so no lane. Engines that touch no file do
    /// nothing.
    ///
    /// # Errors
    /// The kernel's error number: `ENOTTY` for anything but a block device, `EOPNOTSUPP` for a device that cannot
    /// discard, `EINVAL` for a range that is not made of whole blocks, `EBADF` if the device is not open for writing.
    ///
    /// # Panics
    /// If there is no such file, or the range extends beyond the opened part of the file.
    pub fn discard(&mut self, file: u16, offset: u64, len: u64) -> Result<(), i32> {
        if self.fileless {
            return Ok(());
        }
        let place = &self.files[usize::from(file)];
        let end = offset.saturating_add(len);
        assert!(end <= place.limit, "bytes {offset} to {end} lie outside file {file}");
        let range = [offset + place.base, len];
        let descriptor = place.file.as_fd().as_raw_fd();
        let submits = &mut self.counters.submits;
        let outcome = crate::blocking::retried(|| {
            *submits += 1;
            // SAFETY: the call reads two words through the pointer, which lives as long as the call, and no other memory; the
            // descriptor is open as long as `place`.
            let outcome = unsafe { libc::ioctl(descriptor, BLKDISCARD, range.as_ptr()) };
            outcome as isize
        });
        match outcome {
            0.. => Ok(()),
            error => Err(-error),
        }
    }

    #[inline]
    fn queue(&mut self, kind: LaneKind, lane: u32, file: u16, offset: u64, len: u32, skip: usize) {
        let address = self.idle(lane, skip + len as usize).wrapping_add(skip);
        let mut counted_as = Kind::Nop;
        let mut base = 0;
        if !self.fileless {
            let place = &self.files[usize::from(file)];
            assert!(
                offset.saturating_add(u64::from(len)) <= place.limit,
                "bytes {offset} to {} lie outside file {file}",
                offset.saturating_add(u64::from(len))
            );
            base = place.base;
            counted_as = kind.counted_as();
        }
        self.lanes[lane as usize] = Lane { kind: Some(counted_as), len };
        let len = if self.shorten == 0 { len } else { self.cut(len) };
        let request = Request { kind, lane, file, offset: offset + base, address, len };
        match &mut self.engine {
            Engine::Uring(uring) => uring.queue(&request),
            Engine::Aio(aio) => aio.queue(&request),
            Engine::Psync(psync) => psync.queue(&request),
            Engine::Null(done) => done.push(LaneDone { lane, result: len as i32 }),
        }
        self.queued += 1;
    }

    /// Submits everything queued to the kernel without waiting and returns how many requests it took. The rest stays
    /// queued because the kernel has no room until something has been reaped. Blocking calls are performed here. Ready
    /// completions become visible to [`Lanes::reap`].
    ///
    /// # Errors
    /// [`BlockError::Ring`] if the kernel does not take the requests; they stay queued.
    #[inline]
    pub fn submit(&mut self) -> Result<u32, BlockError> {
        let submits = &mut self.counters.submits;
        let taken = match &mut self.engine {
            Engine::Uring(uring) => uring.submit(self.queued, submits)?,
            Engine::Aio(aio) => aio.submit(self.in_flight, submits)?,
            Engine::Psync(psync) => psync.submit(submits),
            Engine::Null(_) => self.queued,
        };
        self.queued -= taken;
        self.in_flight += taken;
        Ok(taken)
    }

    /// Waits until `at_least` completions can be reaped, capped at the number in flight, and no longer than `timeout`
    /// (`None`: no limit). It may return early, for instance after a signal: reap and call again. Queued requests stay
    /// queued. With `at_least` 0 it makes ready completions visible.
    ///
    /// # Errors
    /// [`BlockError::Ring`].
    #[inline]
    pub fn wait(&mut self, at_least: u32, timeout: Option<Duration>) -> Result<(), BlockError> {
        self.wait_batch(at_least, None, timeout)
    }

    /// As [`Lanes::wait`], but after `patience` one completion is enough. This saves system calls under load without
    /// delaying a request for long. Kernels before 6.12 need two calls for it.
    ///
    /// # Errors
    /// [`BlockError::Ring`].
    #[inline]
    pub fn wait_batch(
        &mut self,
        at_least: u32,
        patience: Option<Duration>,
        timeout: Option<Duration>,
    ) -> Result<(), BlockError> {
        let at_least = at_least.min(self.in_flight);
        let submits = &mut self.counters.submits;
        match &mut self.engine {
            Engine::Uring(uring) => uring.wait(at_least, patience, timeout, submits),
            Engine::Aio(aio) => aio.wait(at_least, patience, timeout, submits),
            // Everything submitted has already completed.
            Engine::Psync(_) | Engine::Null(_) => Ok(()),
        }
    }

    /// [`Lanes::submit`] and [`Lanes::wait`] in one; with io_uring, in one system call.
    ///
    /// # Errors
    /// As both.
    #[inline]
    pub fn submit_and_wait(&mut self, at_least: u32, timeout: Option<Duration>) -> Result<u32, BlockError> {
        self.submit_and_wait_batch(at_least, None, timeout)
    }

    /// [`Lanes::submit`] and [`Lanes::wait_batch`] in one; with io_uring, in one system call.
    ///
    /// # Errors
    /// As both.
    #[inline]
    pub fn submit_and_wait_batch(
        &mut self,
        at_least: u32,
        patience: Option<Duration>,
        timeout: Option<Duration>,
    ) -> Result<u32, BlockError> {
        if let Engine::Uring(uring) = &mut self.engine {
            let at_least = at_least.min(self.in_flight + self.queued);
            let submits = &mut self.counters.submits;
            let taken = uring.submit_and_wait(self.queued, at_least, patience, timeout, submits)?;
            self.queued -= taken;
            self.in_flight += taken;
            return Ok(taken);
        }
        let taken = self.submit()?;
        self.wait_batch(at_least, patience, timeout)?;
        Ok(taken)
    }

    /// Appends up to `at_most` completions to `out`, oldest first, and returns how many. It takes only those visible
    /// without entering the kernel. Their lanes are free again.
    #[inline]
    pub fn reap(&mut self, out: &mut Vec<LaneDone>, at_most: u32) -> u32 {
        let before = out.len();
        let at_most = at_most.min(self.in_flight);
        match &mut self.engine {
            Engine::Uring(uring) => uring.reap(out, at_most),
            Engine::Aio(aio) => aio.reap(out, at_most),
            Engine::Psync(psync) => psync.reap(out, at_most),
            Engine::Null(done) => take_first(done, out, at_most as usize),
        }
        for done in &mut out[before..] {
            let lane = &mut self.lanes[done.lane as usize];
            let kind = lane.kind.take().expect("only busy lanes complete");
            if kind == Kind::Nop && done.result >= 0 {
                done.result = lane.len as i32;
            }
            self.counters.count(kind, u32::try_from(done.result).ok());
        }
        let reaped = (out.len() - before) as u32;
        self.in_flight -= reaped;
        reaped
    }

    /// Counters since the lanes were opened. `submits` counts calls into the kernel. Requests of the engines nop and
    /// null, which move nothing, count as `nops`.
    #[inline]
    pub fn counters(&self) -> RingCounters {
        self.counters
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        let finished = match &mut self.engine {
            Engine::Uring(uring) => uring.drain(self.in_flight),
            Engine::Aio(aio) => aio.drain(),
            Engine::Psync(_) | Engine::Null(_) => true,
        };
        if !finished {
            // The kernel may still write into this memory, and nothing can tell when it stops. The only safe choice is
            // to leak the memory.
            std::mem::forget(self.memory.take());
        }
    }
}

/// Moves the first `count` elements, or all if there are fewer, to the end of `out`.
#[inline]
fn take_first(done: &mut Vec<LaneDone>, out: &mut Vec<LaneDone>, count: usize) {
    if count >= done.len() {
        out.append(done);
    } else {
        out.extend(done.drain(..count));
    }
}

/// The buffers of the lanes. In a huge page a request is one piece of physical memory rather than one per page, so the
/// device gets one descriptor: 8 to 15 % more IOPS on a virtual disk that its host limited.
struct Memory {
    mapping: Mapping,
    _stretch: Stretch,
}

/// Minimum size in bytes at which buffers use huge pages.
const HUGE_FROM: usize = 64 << 10;

impl Memory {
    fn new(bytes: usize, features: &mut Features) -> Result<Self, BlockError> {
        let stretch = Stretch::to_huge_pages(bytes);
        let huge = bytes >= HUGE_FROM && stretch.fits();
        let mapping = Mapping::new(bytes, huge, "the buffers of lanes")?;
        if huge {
            match mapping.huge_pages_bytes() {
                Some(huge) if huge >= bytes as u64 => features.obtain("huge_pages"),
                Some(_) => features.refuse(
                    "huge_pages",
                    "the kernel has none free or does not grant any (/sys/kernel/mm/transparent_hugepage/enabled)",
                ),
                None => features.refuse("huge_pages", "/proc/self/smaps cannot be read"),
            }
        } else if bytes >= HUGE_FROM {
            features.refuse("huge_pages", "so many threads with few requests each would need too much memory");
        }
        Ok(Self { mapping, _stretch: stretch })
    }
}

/// Bytes added by rounding up to huge pages, counted process-wide while this value lives.
struct Stretch {
    own: usize,
    all: usize,
}

/// Maximum total that rounding up to huge pages may add, in bytes: many threads with few requests would otherwise take
/// 2 MiB each.
const MAX_STRETCH: usize = 256 << 20;

static STRETCH: AtomicUsize = AtomicUsize::new(0);

impl Stretch {
    fn to_huge_pages(bytes: usize) -> Self {
        let own = if bytes >= HUGE_FROM { bytes.next_multiple_of(HUGE_PAGE) - bytes } else { 0 };
        let all = STRETCH.fetch_add(own, Ordering::Relaxed) + own;
        Self { own, all }
    }

    fn fits(&self) -> bool {
        self.all <= MAX_STRETCH
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        STRETCH.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// What the engines need for their setup.
struct Setup<'a> {
    lanes: u32,
    lane_bytes: usize,
    base: *mut u8,
    files: &'a [Arc<DirectFile>],
}

/// Refuses options that cannot work; returns the size of a lane's buffer in bytes.
fn check(options: &LanesOptions) -> Result<usize, BlockError> {
    let LanesOptions { lanes, lane_bytes, files, .. } = options;
    if *lanes == 0 || *lanes > MAX_ENTRIES {
        return Err(BlockError::Invalid { what: format!("1 to {MAX_ENTRIES} requests can be in flight, not {lanes}") });
    }
    if *lane_bytes == 0 || *lane_bytes > MAX_LANE_BYTES {
        return Err(BlockError::Invalid { what: format!("one request moves 1 byte to 1 GiB, not {lane_bytes} bytes") });
    }
    if u16::try_from(files.len()).is_err() {
        return Err(BlockError::Invalid { what: format!("one thread serves up to 65535 files, not {}", files.len()) });
    }
    if files.iter().any(|file| file.backed().is_some()) {
        return Err(BlockError::Invalid { what: "lanes serve real files, not those of a backend".to_owned() });
    }
    if let LaneEngine::Uring(mode) = options.engine
        && mode.polled
    {
        for file in files {
            uring::check_polling(file)?;
        }
    }
    Ok(lane_bytes.next_multiple_of(ALIGNMENT))
}

fn no_uring(why: String) -> BlockError {
    BlockError::NoUring { why: format!("{why}; libaio (ioengine=libaio) works without it") }
}

#[cfg(test)]
mod tests;
