//! The io_uring backend.
//!
//! Every set-up flag and registration is asked for, dropped when the kernel refuses it, and noted either way. Kernels
//! from 5.11 on will do (timed waits, `IORING_FEAT_EXT_ARG`); what newer ones add is used where present.

use super::waker::{EventCounter, Wake, Waker};
use super::{Features, Kind, Place, Request, Setup};
use crate::BlockError;
use crate::pool::Pool;
use io_uring::{IoUring, Submitter, opcode, squeue, types};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// The user data of the read that a wake-up completes; all others are slot numbers.
const WAKE: u64 = u64::MAX;

/// Largest piece of memory that can be registered as one buffer (`io_uring_register`, 1 GiB).
const PIECE_BYTES: usize = 1 << 30;

/// How often an entry is tried again while the kernel is short of memory for it, a millisecond apart.
const PATIENCE: u32 = 1000;

/// Set-up flags in the order in which they are given up: the youngest first.
const FLAGS: [(&str, &str); 5] = [
    ("no_sqarray", "6.6"),
    ("defer_taskrun", "6.1"),
    ("single_issuer", "6.0"),
    ("coop_taskrun", "5.19"),
    ("submit_all", "5.18"),
];

pub(super) struct Uring {
    /// Borrows what `ring` owns; dropped before it.
    submitter: ManuallyDrop<Submitter<'static>>,
    ring: NonNull<IoUring>,
    ring_fd_registered: bool,
    files: Vec<RawFd>,
    files_registered: bool,
    pool_table: Option<Table>,
    slab_table: Option<Table>,
    scatter_registered: bool,
    wake: Arc<Wake>,
    /// Set once a waker has been handed out: only then a wait must be prepared for one.
    wakers: Cell<bool>,
    events: EventCounter,
    /// Whether the read of the event counter is queued or in the kernel, and where it puts what it reads.
    armed: bool,
    event_word: Box<u64>,
    /// Keeps the files open while requests may name them.
    _files: Vec<Arc<crate::DirectFile>>,
}

/// How items of equal size are spread over registered pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Table {
    first: u16,
    items_per_piece: u32,
}

impl Table {
    fn index_of(self, item: u32) -> u16 {
        let piece = if self.items_per_piece.is_power_of_two() {
            item >> self.items_per_piece.trailing_zeros()
        } else {
            item / self.items_per_piece
        };
        self.first + piece as u16
    }
}

impl Uring {
    /// Sets the ring up; the error is the reason in words.
    pub(super) fn open(setup: &Setup, features: &mut Features) -> Result<Self, String> {
        features.backend = "io_uring";
        // One entry more than requests: the wake-up read.
        let ring = build(setup.entries + 1, features)?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err("the kernel is older than 5.11, which timed waits need".to_owned());
        }
        let events = EventCounter::new().map_err(|error| format!("no event counter: {error}"))?;
        let counter = events.clone();
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        // SAFETY: `ring` was just leaked, so it stays where it is until `drop` takes it back; the reference is
        // shared, as all later ones are.
        let submitter = unsafe { ring.as_ref() }.submitter();
        let mut uring = Self {
            submitter: ManuallyDrop::new(submitter),
            ring,
            ring_fd_registered: false,
            files: setup
                .files
                .iter()
                .map(|file| file.as_fd().as_raw_fd())
                .collect(),
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
        let outcome = self.submitter.register_ring_fd();
        self.ring_fd_registered = note(features, "registered_ring_fd", outcome);
        if !self.files.is_empty() {
            let outcome = self.submitter.register_files(&self.files);
            self.files_registered = note(features, "registered_files", outcome);
        }
        let pool = setup.pool.as_deref();
        let slab = (setup.slab.buffers() > 0).then_some(&*setup.slab);
        let slab_area = slab.map(|slab| (slab.base(), slab.buffers(), slab.buffer_bytes()));
        let pool_area =
            pool.map(|pool| (Pool::address(pool, 0), pool.frames(), pool.frame_bytes()));
        // The buffers first, so that their index is the same whether or not the pool fits the limit too.
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
            let mut probe = io_uring::Probe::new();
            let known = self.submitter.register_probe(&mut probe).is_ok()
                && probe.is_supported(opcode::ReadvFixed::CODE);
            if known {
                features.obtain("registered_scatter");
            } else {
                features.refuse("registered_scatter", "the kernel is older than 6.15");
            }
            self.scatter_registered = known;
        }
    }

    fn register_memory(&self, pieces: &[libc::iovec]) -> io::Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        let bytes: usize = pieces.iter().map(|piece| piece.iov_len).sum();
        if locked_share().is_some_and(|share| bytes as u64 > share) {
            return Err(Errno::NOMEM.into());
        }
        // SAFETY: the pieces are mapped memory of the pool and the slab. `Ring` keeps both alive until this backend
        // is dropped, and dropping it ends the registration with the ring.
        unsafe { self.submitter.register_buffers(pieces) }
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
            (
                self.files[usize::from(request.file)],
                squeue::Flags::empty(),
            )
        };
        let entry = self.entry(request, types::Fd(file)).flags(flags);
        self.push(&entry.user_data(u64::from(request.slot)));
    }

    #[inline]
    fn entry(&self, request: &Request, file: types::Fd) -> squeue::Entry {
        let Request {
            kind,
            offset,
            address,
            len,
            place,
            ..
        } = *request;
        let list = address.cast::<libc::iovec>().cast_const();
        let fixed = self.registered_index(place);
        match (kind, fixed) {
            (Kind::Read, Some(index)) => opcode::ReadFixed::new(file, address, len, index)
                .offset(offset)
                .build(),
            (Kind::Read, None) => opcode::Read::new(file, address, len).offset(offset).build(),
            (Kind::ReadScattered, Some(index)) if self.scatter_registered => {
                opcode::ReadvFixed::new(file, list, len, index)
                    .offset(offset)
                    .build()
            }
            (Kind::ReadScattered, _) => opcode::Readv::new(file, list, len).offset(offset).build(),
            (Kind::Write | Kind::WriteDurable, fixed) => {
                let flags = if kind == Kind::WriteDurable {
                    libc::RWF_DSYNC
                } else {
                    0
                };
                match fixed {
                    Some(index) => opcode::WriteFixed::new(file, address, len, index)
                        .offset(offset)
                        .rw_flags(flags)
                        .build(),
                    None => opcode::Write::new(file, address, len)
                        .offset(offset)
                        .rw_flags(flags)
                        .build(),
                }
            }
            (Kind::Sync, _) => opcode::Fsync::new(file)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
            (Kind::Nop, _) => opcode::Nop::new().build(),
        }
    }

    /// The registered buffer that holds all of a request's memory, if one does.
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
        // SAFETY: the ring is alive, and this is the only submission queue: `self` is borrowed exclusively and
        // the queue is gone at the end of the statement.
        let mut queue = unsafe { self.ring.as_ref().submission_shared() };
        // SAFETY: memory named by the entry is kept alive by the slot of the request (see `Ring`), or is the event
        // word of this backend, until its completion.
        let outcome = unsafe { queue.push(entry) };
        assert!(
            outcome.is_ok(),
            "the ring has an entry for every slot and one for wake-ups"
        );
    }

    /// Takes all completions that are visible without entering the kernel.
    #[inline]
    pub(super) fn reap(&mut self, done: &mut VecDeque<(u32, i32)>) {
        // SAFETY: the ring is alive, and this is the only completion queue, as `self` is borrowed exclusively.
        let queue = unsafe { self.ring.as_ref().completion_shared() };
        for entry in queue {
            if entry.user_data() == WAKE {
                self.armed = false;
            } else {
                done.push_back((entry.user_data() as u32, entry.result()));
            }
        }
    }

    /// What waits in the submission queue, and whether the kernel asks to be entered.
    #[inline]
    fn pending(&self) -> (usize, bool) {
        // SAFETY: the ring is alive, and no other submission queue exists during this call.
        let queue = unsafe { self.ring.as_ref().submission_shared() };
        (queue.len(), queue.taskrun() || queue.cq_overflow())
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
            let (queued, asked) = self.pending();
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

    /// Waits one completion at a time, since a wake-up is only one completion to the kernel.
    fn wait_wakeable(
        &mut self,
        done: &mut VecDeque<(u32, i32)>,
        wait_for: u32,
        timeout: Duration,
        submits: &mut u64,
    ) -> Result<(), BlockError> {
        // The clock is read only where one wait may not be the last.
        let deadline = (wait_for > 1)
            .then(|| std::time::Instant::now().checked_add(timeout))
            .flatten();
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
        let entry = opcode::Read::new(descriptor, word.cast(), 8)
            .build()
            .user_data(WAKE);
        self.push(&entry);
        self.armed = true;
    }

    /// One `io_uring_enter`; more only where the kernel took part of the queue or was short of memory.
    #[inline]
    fn enter(
        &mut self,
        wait_for: u32,
        timeout: Option<Duration>,
        submits: &mut u64,
    ) -> Result<(), BlockError> {
        let mut tries = 0;
        loop {
            *submits += 1;
            let outcome = match timeout {
                Some(timeout) if wait_for > 0 => {
                    // The kernel counts in signed nanoseconds; more than thirty years is for ever.
                    let time = types::Timespec::from(timeout.min(Duration::from_secs(1 << 30)));
                    let arguments = types::SubmitArgs::new().timespec(&time);
                    self.submitter
                        .submit_with_args(wait_for as usize, &arguments)
                }
                _ => self.submitter.submit(),
            };
            let error = match outcome {
                Ok(_) if self.pending().0 == 0 => return Ok(()),
                // Part of the queue was taken: an entry the kernel could not even start. Give it the rest.
                Ok(taken) if taken > 0 || tries < PATIENCE => {
                    tries += u32::from(taken == 0);
                    continue;
                }
                Ok(_) => Errno::AGAIN.into(),
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::TIME | Errno::INTR) => return Ok(()),
                // Short of memory, or completions overflowed: what is there has to be taken first.
                Some(Errno::AGAIN | Errno::BUSY | Errno::NOMEM) if tries < PATIENCE => {
                    if self.has_completions() {
                        return Ok(());
                    }
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => {
                    return Err(BlockError::Ring {
                        what: "submit to io_uring",
                        source: error,
                    });
                }
            }
        }
    }

    fn has_completions(&self) -> bool {
        // SAFETY: the ring is alive, and no other completion queue exists during this call.
        !unsafe { self.ring.as_ref().completion_shared() }.is_empty()
    }

    /// Waits until nothing is in flight: `remaining` completions and the wake-up read. False where the kernel would not.
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
            if self
                .enter(1, Some(Duration::from_secs(1)), &mut submits)
                .is_err()
            {
                return false;
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if self.ring_fd_registered {
            // The thread's own reference would keep the ring, and the memory it pins, until the thread ends.
            let _ = self.submitter.unregister_ring_fd();
        }
        // SAFETY: the submitter is not used again.
        unsafe { ManuallyDrop::drop(&mut self.submitter) };
        // SAFETY: it came from `Box::leak`, the one borrower is gone, and this runs once.
        drop(unsafe { Box::from_raw(self.ring.as_ptr()) });
    }
}

/// Sets up the bare ring with as many flags as the kernel takes.
fn build(entries: u32, features: &mut Features) -> Result<IoUring, String> {
    let mut dropped = 0;
    loop {
        let wanted = |name: &str| FLAGS[dropped..].iter().any(|(flag, _)| *flag == name);
        let mut builder = IoUring::builder();
        builder
            .setup_clamp()
            .setup_cqsize(entries.next_power_of_two() * 2);
        if wanted("no_sqarray") {
            builder.setup_no_sqarray();
        }
        if wanted("defer_taskrun") {
            builder.setup_defer_taskrun();
        }
        if wanted("single_issuer") {
            builder.setup_single_issuer();
        }
        if wanted("coop_taskrun") {
            builder.setup_coop_taskrun().setup_taskrun_flag();
        }
        if wanted("submit_all") {
            builder.setup_submit_all();
        }
        match builder.build(entries) {
            Ok(ring) => {
                for (name, _) in FLAGS[dropped..].iter().rev() {
                    features.obtain(name);
                }
                return Ok(ring);
            }
            Err(error)
                if Errno::from_io_error(&error) == Some(Errno::INVAL) && dropped < FLAGS.len() =>
            {
                let (name, since) = FLAGS[dropped];
                features.refuse(name, format!("the kernel is older than {since}"));
                dropped += 1;
            }
            Err(error) => return Err(why_refused(&error)),
        }
    }
}

/// The likely cause of a refused set-up, in words.
fn why_refused(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NOSYS) => "the kernel has no io_uring (older than 5.1, or built without it, or hidden by a container's \
                               seccomp profile)"
            .to_owned(),
        Some(Errno::PERM | Errno::ACCESS) => {
            match std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").as_deref().map(str::trim) {
                Ok("2") => "kernel.io_uring_disabled is 2: forbidden for everyone".to_owned(),
                Ok("1") => "kernel.io_uring_disabled is 1: allowed only for members of kernel.io_uring_group and for root"
                    .to_owned(),
                Ok(value) => format!(
                    "not permitted, although kernel.io_uring_disabled is {value}: a seccomp profile (containers have one) or a security module forbids it"
                ),
                Err(_) => "not permitted: a seccomp profile (containers have one) or a security module forbids it".to_owned(),
            }
        }
        Some(Errno::NOMEM) => {
            format!(
                "not enough memory for the ring; on some kernels it counts against the locked-memory limit{} (raise it with \
                 ulimit -l, or LimitMEMLOCK= of the service)",
                locked_memory_limit()
            )
        }
        _ => error.to_string(),
    }
}

/// Notes the outcome of a registration under its name.
fn note(features: &mut Features, name: &str, outcome: io::Result<()>) -> bool {
    match outcome {
        Ok(()) => {
            features.obtain(name);
            true
        }
        Err(error) => {
            let why = match Errno::from_io_error(&error) {
                Some(Errno::NOMEM) => format!(
                    "the locked-memory limit is too low for it{} (raise it with ulimit -l, or LimitMEMLOCK= of the service)",
                    locked_memory_limit()
                ),
                Some(Errno::INVAL) => {
                    format!("the kernel does not know it or not this size of it ({error})")
                }
                _ => error.to_string(),
            };
            features.refuse(name, why);
            false
        }
    }
}

/// Bytes that one ring may register, or `None` where nothing limits it. The limit is the user's, not the ring's, and on
/// some kernels the rings themselves count as well: a ring that took all of it would keep the next one from being made.
/// So half the limit is left to the rings, and the other half shared by as many of them as there are processors.
fn locked_share() -> Option<u64> {
    use rustix::thread::{CapabilitySet, capabilities};
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK)) {
        return None;
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some(limit / 2 / processors as u64)
}

fn locked_memory_limit() -> String {
    match rustix::process::getrlimit(rustix::process::Resource::Memlock).current {
        Some(bytes) => format!(", {} KiB", bytes / 1024),
        None => String::new(),
    }
}

/// The same outcome once more; `io::Error` cannot be cloned, its number can.
fn copy_of(outcome: &io::Result<()>) -> io::Result<()> {
    outcome.as_ref().copied().map_err(|error| {
        error.raw_os_error().map_or_else(
            || io::Error::from(error.kind()),
            io::Error::from_raw_os_error,
        )
    })
}

/// Cuts an area of `count` items into pieces that can be registered, each of whole items.
fn cut(pieces: &mut Vec<libc::iovec>, base: *mut u8, count: usize, bytes: usize) -> Table {
    let items_per_piece = (PIECE_BYTES / bytes).clamp(1, count.next_power_of_two());
    let first = pieces.len() as u16;
    for start in (0..count).step_by(items_per_piece) {
        let items = items_per_piece.min(count - start);
        pieces.push(libc::iovec {
            iov_base: base.wrapping_add(start * bytes).cast(),
            iov_len: items * bytes,
        });
    }
    Table {
        first,
        items_per_piece: items_per_piece as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_cut_into_pieces_of_whole_items() {
        let base = std::ptr::without_provenance_mut(0x10_0000);
        for (count, bytes, expected) in [
            (1, 8192, 1),
            (131_072, 8192, 1),
            (131_073, 8192, 2),
            (200_000, 12_288, 3),
        ] {
            let mut pieces = vec![
                libc::iovec {
                    iov_base: std::ptr::null_mut(),
                    iov_len: 0
                };
                2
            ];
            let table = cut(&mut pieces, base, count, bytes);
            assert_eq!(table.first, 2);
            assert_eq!(pieces.len(), 2 + expected);
            let mut next = 0;
            for (index, piece) in pieces.iter().enumerate().skip(2) {
                assert_eq!(piece.iov_base as usize, 0x10_0000 + next);
                assert!(piece.iov_len <= PIECE_BYTES && piece.iov_len.is_multiple_of(bytes));
                for item in [next / bytes, (next + piece.iov_len) / bytes - 1] {
                    assert_eq!(usize::from(table.index_of(item as u32)), index);
                }
                next += piece.iov_len;
            }
            assert_eq!(next, count * bytes);
        }
    }

    #[test]
    fn a_refusal_is_explained() {
        let said = |error: Errno| why_refused(&io::Error::from(error));
        assert!(said(Errno::NOSYS).contains("no io_uring"));
        assert!(
            said(Errno::PERM).contains("not permitted")
                || said(Errno::PERM).contains("io_uring_disabled")
        );
        assert!(said(Errno::NOMEM).contains("ulimit -l"));
        assert!(!said(Errno::MFILE).is_empty());
    }
}
