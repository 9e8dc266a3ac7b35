//! The io_uring backend: leases, wake-ups and the requests of a [`Ring`](super::Ring) over a
//! [`KernelRing`].

use super::waker::{EventCounter, Wake, Waker};
use super::{Kind, Place, Request, Setup};
use crate::kernel_ring::{KernelRing, Shape, Table, Wait, copy_of, cut, note};
use crate::pool::Pool;
use crate::{BlockError, Features};
use io_uring::{opcode, squeue, types};
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// The user data of the read that a wake-up completes; all others are slot numbers.
const WAKE: u64 = u64::MAX;

pub(super) struct Uring {
    kernel: KernelRing,
    files: Vec<RawFd>,
    files_registered: bool,
    pool_table: Option<Table>,
    slab_table: Option<Table>,
    scatter_registered: bool,
    wake: Arc<Wake>,
    /// Set once a waker has been handed out: only then must a wait be prepared for a wake-up.
    wakers: Cell<bool>,
    events: EventCounter,
    /// Whether the read of the event counter is queued or in the kernel. The field below receives the value.
    armed: bool,
    event_word: Box<u64>,
    /// Keeps the files open while requests may name them.
    _files: Vec<Arc<crate::DirectFile>>,
}

impl Uring {
    /// Sets up the ring; the error is the reason in words.
    pub(super) fn open(setup: &Setup, features: &mut Features) -> Result<Self, String> {
        features.backend = "io_uring";
        let shape = Shape {
            // One entry more than requests, for the wake-up read.
            entries: setup.entries + 1,
            polled: false,
            sq_thread: None,
        };
        let kernel = KernelRing::open(shape, features)?;
        let events = EventCounter::new().map_err(|error| format!("no event counter: {error}"))?;
        let counter = events.clone();
        let mut uring = Self {
            kernel,
            files: setup.files.iter().map(|file| file.as_fd().as_raw_fd()).collect(),
            files_registered: false,
            pool_table: None,
            slab_table: None,
            scatter_registered: false,
            wake: Wake::new(Box::new(move || counter.add())),
            wakers: Cell::new(false),
            events,
            armed: false,
            event_word: Box::new(0),
            _files: setup.files.clone(),
        };
        uring.register(setup, features);
        Ok(uring)
    }

    fn register(&mut self, setup: &Setup, features: &mut Features) {
        self.files_registered = self.kernel.register_files(&self.files, features);
        let pool = setup.pool.as_deref();
        let slab = (setup.slab.buffers() > 0).then_some(&*setup.slab);
        let slab_area = slab.map(|slab| (slab.base(), slab.buffers(), slab.buffer_bytes()));
        let pool_area = pool.map(|pool| (Pool::address(pool, 0), pool.frames(), pool.frame_bytes()));
        // The buffers come first, so that their index does not depend on whether the pool fits the limit too.
        let mut pieces = Vec::new();
        let slab_table = slab_area.map(|(base, count, bytes)| cut(&mut pieces, base, count, bytes));
        let slab_pieces = pieces.len();
        let pool_table = pool_area.map(|(base, count, bytes)| cut(&mut pieces, base, count, bytes));
        let mut outcome = self.register_memory(&pieces);
        if pool_table.is_some() {
            if note(features, "registered_pool", copy_of(&outcome)) {
                self.pool_table = pool_table;
            } else if slab_table.is_some() {
                outcome = self.register_memory(&pieces[..slab_pieces]);
            }
        }
        if slab_table.is_some() && note(features, "registered_buffers", outcome) {
            self.slab_table = slab_table;
        }
        if self.pool_table.is_some() {
            let known = self.kernel.knows(opcode::ReadvFixed::CODE);
            if known {
                features.obtain("registered_scatter");
            } else {
                features.refuse("registered_scatter", "the kernel is older than 6.15");
            }
            self.scatter_registered = known;
        }
    }

    fn register_memory(&self, pieces: &[libc::iovec]) -> std::io::Result<()> {
        // SAFETY: the pieces are mapped memory of the pool and the slab. `Ring` keeps both alive until this backend
        // is dropped, and dropping it ends the registration with the ring.
        unsafe { self.kernel.register_memory(pieces) }
    }

    pub(super) fn waker(&self) -> Waker {
        self.wakers.set(true);
        self.wake.waker()
    }

    /// Writes one submission entry. There is always room: the ring has more entries than there are slots.
    #[inline]
    pub(super) fn queue(&mut self, request: &Request) {
        // With registered files, the index of a file takes the place of its descriptor.
        let (file, flags) = if request.kind == Kind::Nop {
            (-1, squeue::Flags::empty())
        } else if self.files_registered {
            (RawFd::from(request.file), squeue::Flags::FIXED_FILE)
        } else {
            (self.files[usize::from(request.file)], squeue::Flags::empty())
        };
        let entry = self.entry(request, types::Fd(file)).flags(flags);
        self.push(&entry.user_data(u64::from(request.slot)));
    }

    #[inline]
    fn entry(&self, request: &Request, file: types::Fd) -> squeue::Entry {
        let Request { kind, offset, address, len, place, .. } = *request;
        let list = address.cast::<libc::iovec>().cast_const();
        let fixed = self.registered_index(place);
        match (kind, fixed) {
            (Kind::Read, Some(index)) => opcode::ReadFixed::new(file, address, len, index).offset(offset).build(),
            (Kind::Read, None) => opcode::Read::new(file, address, len).offset(offset).build(),
            (Kind::ReadScattered, Some(index)) if self.scatter_registered => {
                opcode::ReadvFixed::new(file, list, len, index).offset(offset).build()
            }
            (Kind::ReadScattered, _) => opcode::Readv::new(file, list, len).offset(offset).build(),
            (Kind::Write | Kind::WriteDurable, fixed) => {
                let flags = if kind == Kind::WriteDurable { libc::RWF_DSYNC } else { 0 };
                match fixed {
                    Some(index) => {
                        opcode::WriteFixed::new(file, address, len, index).offset(offset).rw_flags(flags).build()
                    }
                    None => opcode::Write::new(file, address, len).offset(offset).rw_flags(flags).build(),
                }
            }
            (Kind::Sync, _) => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            (Kind::Nop, _) => opcode::Nop::new().build(),
        }
    }

    /// The registered buffer that holds all of a request's memory, if there is one.
    #[inline]
    fn registered_index(&self, place: Place) -> Option<u16> {
        match place {
            Place::Frame(frame) => self.pool_table.map(|table| table.index_of(frame)),
            Place::Frames(lowest, highest) => {
                let table = self.pool_table?;
                let index = table.index_of(lowest);
                (index == table.index_of(highest)).then_some(index)
            }
            Place::Buffer(buffer) => self.slab_table.map(|table| table.index_of(buffer)),
            Place::Nowhere => None,
        }
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: memory named by the entry is kept alive until its completion, by the slot of the request (see `Ring`)
        // or, for the event word, by this backend.
        unsafe { self.kernel.push(entry) };
    }

    /// Takes all completions visible without entering the kernel.
    #[inline]
    pub(super) fn reap(&mut self, done: &mut VecDeque<(u32, i32)>) {
        let armed = &mut self.armed;
        self.kernel.take_completions(|entry| {
            if entry.user_data() == WAKE {
                *armed = false;
            } else {
                done.push_back((entry.user_data() as u32, entry.result()));
            }
            true
        });
    }

    #[inline]
    pub(super) fn submit(
        &mut self,
        done: &mut VecDeque<(u32, i32)>,
        wait_for: u32,
        timeout: Duration,
        submits: &mut u64,
    ) -> Result<(), BlockError> {
        let woken = self.wake.resume();
        self.reap(done);
        if woken || done.len() >= wait_for as usize {
            let (queued, asked) = self.kernel.pending();
            if queued > 0 || asked {
                self.enter(0, None, submits)?;
                self.reap(done);
            }
            return Ok(());
        }
        if self.wakers.get() {
            self.wait_wakeable(done, wait_for, timeout, submits)
        } else {
            let missing = wait_for - done.len() as u32;
            self.enter(missing, Some(timeout), submits)?;
            self.reap(done);
            Ok(())
        }
    }

    /// Waits for one completion at a time: to the kernel, a wake-up is just one completion.
    fn wait_wakeable(
        &mut self,
        done: &mut VecDeque<(u32, i32)>,
        wait_for: u32,
        timeout: Duration,
        submits: &mut u64,
    ) -> Result<(), BlockError> {
        // Reads the clock only if more than one wait may be needed.
        let deadline = (wait_for > 1).then(|| std::time::Instant::now().checked_add(timeout)).flatten();
        let mut left = timeout;
        while done.len() < wait_for as usize {
            self.arm();
            if !self.wake.park() {
                left = Duration::ZERO;
            }
            let before = done.len();
            let outcome = self.enter(u32::from(!left.is_zero()), Some(left), submits);
            let woken = self.wake.resume();
            outcome?;
            self.reap(done);
            if woken || left.is_zero() || done.len() == before {
                break;
            }
            if let Some(deadline) = deadline {
                left = deadline.saturating_duration_since(std::time::Instant::now());
            }
        }
        Ok(())
    }

    /// Queues the read of the event counter that a wake-up completes.
    fn arm(&mut self) {
        if self.armed {
            return;
        }
        let word: *mut u64 = &raw mut *self.event_word;
        let descriptor = types::Fd(self.events.as_fd().as_raw_fd());
        let entry = opcode::Read::new(descriptor, word.cast(), 8).build().user_data(WAKE);
        self.push(&entry);
        self.armed = true;
    }

    #[inline]
    fn enter(&mut self, wait_for: u32, timeout: Option<Duration>, submits: &mut u64) -> Result<(), BlockError> {
        let wait = Wait { at_least: wait_for, timeout, patience: None };
        self.kernel.enter(wait, submits)
    }

    /// Waits until nothing is in flight: `remaining` completions and the wake-up read. False if the kernel failed to
    /// complete them.
    pub(super) fn drain(&mut self, remaining: usize) -> bool {
        let mut done = VecDeque::with_capacity(remaining);
        let mut submits = 0;
        if self.armed {
            self.events.add();
        }
        loop {
            self.reap(&mut done);
            if done.len() >= remaining && !self.armed {
                return true;
            }
            if self.enter(1, Some(Duration::from_secs(1)), &mut submits).is_err() {
                // The read of the event counter may still store its value there. As with the buffers of requests, the
                // only safe choice is to leak the memory.
                std::mem::forget(std::mem::take(&mut self.event_word));
                return false;
            }
        }
    }
}
