//! The bare io_uring of one thread: setup, registrations, entries and the call into the kernel.
//!
//! The common part of [`Ring`](crate::Ring) and [`Lanes`](crate::Lanes). It requests every setup flag and registration,
//! does without those the kernel refuses, and records the result either way. It needs kernel 5.11 or later (timed
//! waits, `IORING_FEAT_EXT_ARG`) and uses newer features where present. It knows neither the purpose of a request nor
//! the owner of its memory: the code that pushes an entry keeps that memory alive until its completion.

use crate::BlockError;
use crate::features::Features;
use io_uring::{EnterFlags, IoUring, Probe, Submitter, cqueue, squeue, types};
use rustix::io::Errno;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Largest piece of memory that can be registered as one buffer (`io_uring_register`, 1 GiB).
const PIECE_BYTES: usize = 1 << 30;

/// How often to retry an entry while the kernel is short of memory, a millisecond apart.
const PATIENCE: u32 = 1000;

/// How long the kernel's submission thread polls for work before it sleeps, in milliseconds.
const SQ_THREAD_IDLE_MS: u32 = 1000;

/// Setup flags in the order in which they are given up: the newest first.
const FLAGS: [(&str, &str); 5] = [
    ("no_sqarray", "6.6"),
    ("defer_taskrun", "6.1"),
    ("single_issuer", "6.0"),
    ("coop_taskrun", "5.19"),
    ("submit_all", "5.18"),
];

/// Flags that have no meaning with a kernel submission thread and are refused there.
const NOT_WITH_SQ_THREAD: [&str; 2] = ["defer_taskrun", "coop_taskrun"];

/// The configuration of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Room for this many entries at once.
    pub(crate) entries: u32,
    /// Polls for completions instead of taking interrupts (`IORING_SETUP_IOPOLL`).
    pub(crate) polled: bool,
    /// A kernel thread submits (`IORING_SETUP_SQPOLL`), bound to the given processor, if any.
    pub(crate) sq_thread: Option<Option<u32>>,
}

/// What a call into the kernel waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Minimum of visible completions, including those already visible; 0 does not wait.
    pub(crate) at_least: u32,
    /// Longest time to wait; `None` for no limit.
    pub(crate) timeout: Option<Duration>,
    /// After this time one completion is enough.
    pub(crate) patience: Option<Duration>,
}

impl Wait {
    /// Does not wait.
    pub(crate) const NOT: Wait = Wait { at_least: 0, timeout: None, patience: None };
}

/// One io_uring. Not `Send`: the ring is set up for a single submitting thread.
pub(crate) struct KernelRing {
    /// Borrows what `ring` owns; dropped before it.
    submitter: ManuallyDrop<Submitter<'static>>,
    ring: NonNull<IoUring>,
    ring_fd_registered: bool,
    polled: bool,
    sq_thread: bool,
}

impl KernelRing {
    /// Sets up the ring; the error is the reason in words.
    pub(crate) fn open(shape: Shape, features: &mut Features) -> Result<Self, String> {
        let ring = build(shape, features)?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err("the kernel is older than 5.11, which timed waits need".to_owned());
        }
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        // SAFETY: `ring` was just leaked, so it stays where it is until `drop` takes it back; the reference is
        // shared, as all later ones are.
        let submitter = unsafe { ring.as_ref() }.submitter();
        let mut kernel = Self {
            submitter: ManuallyDrop::new(submitter),
            ring,
            ring_fd_registered: false,
            polled: shape.polled,
            sq_thread: shape.sq_thread.is_some(),
        };
        let outcome = kernel.submitter.register_ring_fd();
        kernel.ring_fd_registered = note(features, "registered_ring_fd", outcome);
        Ok(kernel)
    }

    /// Registers files, so that an entry may name them by index, and records whether the kernel granted it.
    pub(crate) fn register_files(&self, files: &[RawFd], features: &mut Features) -> bool {
        if files.is_empty() {
            return false;
        }
        let outcome = self.submitter.register_files(files);
        note(features, "registered_files", outcome)
    }

    /// Registers memory, unless it exceeds one ring's share of the locked-memory limit.
    ///
    /// # Safety
    /// The pieces are mapped memory that stays mapped until this ring is dropped.
    pub(crate) unsafe fn register_memory(&self, pieces: &[libc::iovec]) -> io::Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        let bytes: usize = pieces.iter().map(|piece| piece.iov_len).sum();
        if locked_share().is_some_and(|share| bytes as u64 > share) {
            return Err(Errno::NOMEM.into());
        }
        // SAFETY: the caller upholds the contract of this function.
        unsafe { self.submitter.register_buffers(pieces) }
    }

    /// Whether the kernel supports an operation.
    pub(crate) fn knows(&self, code: u8) -> bool {
        let mut probe = Probe::new();
        self.submitter.register_probe(&mut probe).is_ok() && probe.is_supported(code)
    }

    /// Whether the kernel can wait for several completions but settle for one after a set time (6.12).
    pub(crate) fn has_patience(&self) -> bool {
        // SAFETY: the ring is alive; the reference is shared, as all are.
        unsafe { self.ring.as_ref() }.params().is_feature_min_timeout()
    }

    /// Writes one submission entry. A kernel submission thread may start it at once.
    ///
    /// # Safety
    /// What the entry names stays valid, and lent to the kernel alone, until its completion has been taken.
    ///
    /// # Panics
    /// If the queue is full; callers never have more requests than the ring has entries.
    #[inline]
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the ring is alive, and this is the only submission queue: `self` is borrowed exclusively and
        // the queue is gone at the end of the function.
        let mut queue = unsafe { self.ring.as_ref().submission_shared() };
        // SAFETY: the caller upholds the contract of this function.
        let outcome = unsafe { queue.push(entry) };
        assert!(outcome.is_ok(), "a ring has an entry for every request");
    }

    /// Passes each visible completion to `take` until it returns false.
    #[inline]
    pub(crate) fn take_completions(&mut self, mut take: impl FnMut(&cqueue::Entry) -> bool) {
        // SAFETY: the ring is alive, and this is the only completion queue, as `self` is borrowed exclusively.
        let queue = unsafe { self.ring.as_ref().completion_shared() };
        for entry in queue {
            if !take(&entry) {
                break;
            }
        }
    }

    /// Number of completions visible without entering the kernel.
    #[inline]
    pub(crate) fn visible(&self) -> usize {
        // SAFETY: the ring is alive, and no other completion queue exists during this call.
        unsafe { self.ring.as_ref().completion_shared() }.len()
    }

    /// Length of the submission queue, and whether the kernel asks to be entered.
    #[inline]
    pub(crate) fn pending(&self) -> (usize, bool) {
        // SAFETY: the ring is alive, and no other submission queue exists during this call.
        let queue = unsafe { self.ring.as_ref().submission_shared() };
        (queue.len(), queue.taskrun() || queue.cq_overflow())
    }

    /// Whether completions only become visible by entering the kernel, even without a waiter.
    #[inline]
    pub(crate) fn must_enter(&self) -> bool {
        self.polled || self.pending().1
    }

    /// One `io_uring_enter`: submits everything queued and waits. Repeats the call only if the kernel took part of the
    /// queue or was short of memory; then it may leave the rest queued if completions can be taken first. `entries`
    /// counts the calls. A signal or a timeout ends the wait without an error.
    #[inline]
    pub(crate) fn enter(&mut self, wait: Wait, entries: &mut u64) -> Result<(), BlockError> {
        let mut tries = 0;
        loop {
            let queued = self.pending().0;
            let error = match self.call(queued, wait, entries) {
                Ok(_) if self.sq_thread || self.pending().0 == 0 => return Ok(()),
                // The kernel took part of the queue and stopped at an entry it could not even start. Submit the rest.
                Ok(taken) if taken > 0 || tries < PATIENCE => {
                    tries += u32::from(taken == 0);
                    continue;
                }
                Ok(_) => Errno::AGAIN.into(),
                Err(error) => error,
            };
            if self.is_over(error, tries)? {
                return Ok(());
            }
            tries += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits without submitting anything.
    #[inline]
    pub(crate) fn wait(&mut self, wait: Wait, entries: &mut u64) -> Result<(), BlockError> {
        let mut tries = 0;
        loop {
            let Err(error) = self.call(0, wait, entries) else {
                return Ok(());
            };
            if self.is_over(error, tries)? {
                return Ok(());
            }
            tries += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Decides after an error whether the call is over; false asks for a retry after a pause.
    #[cold]
    fn is_over(&self, error: io::Error, tries: u32) -> Result<bool, BlockError> {
        match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR) => Ok(true),
            // Short of memory, or completions overflowed: the caller must take the existing completions first.
            Some(Errno::AGAIN | Errno::BUSY | Errno::NOMEM) if tries < PATIENCE => Ok(self.visible() > 0),
            _ => Err(BlockError::Ring { what: "submit to io_uring", source: error }),
        }
    }

    /// The system call itself, with the flags it needs. Makes no call if a kernel submission thread is awake and there
    /// is nothing to wait for.
    #[inline]
    fn call(&mut self, queued: usize, wait: Wait, entries: &mut u64) -> io::Result<usize> {
        let (_, asked) = self.pending();
        let mut flags = EnterFlags::empty();
        // The kernel runs deferred work only in a call that takes events.
        if wait.at_least > 0 || asked || self.polled {
            flags.insert(EnterFlags::GETEVENTS);
        }
        if self.sq_thread {
            // The tail of the queue must be visible to the kernel thread before its flag is read here, so that at least
            // one of the two sees the other's update (io_uring_enter(2), IORING_SQ_NEED_WAKEUP).
            fence(Ordering::SeqCst);
            // SAFETY: the ring is alive, and no other submission queue exists during this call.
            let asleep = unsafe { self.ring.as_ref().submission_shared() }.need_wakeup_after_intermittent_seqcst();
            if asleep {
                flags.insert(EnterFlags::SQ_WAKEUP);
            } else if flags.is_empty() {
                return Ok(queued);
            }
        }
        *entries += 1;
        let (queued, at_least) = (queued as u32, wait.at_least);
        if at_least == 0 || (wait.timeout.is_none() && wait.patience.is_none()) {
            // SAFETY: without an argument the call takes no memory of ours; the code that pushes entries answers for
            // theirs.
            return unsafe { self.submitter.enter::<libc::sigset_t>(queued, at_least, flags.bits(), None) };
        }
        flags.insert(EnterFlags::EXT_ARG);
        let mut arguments = types::SubmitArgs::new();
        if let Some(patience) = wait.patience {
            let micros = u32::try_from(patience.as_micros()).unwrap_or(u32::MAX);
            arguments = arguments.min_wait_usec(micros.max(1));
        }
        // The kernel counts in signed nanoseconds; treat more than thirty years as no limit.
        let longest = Duration::from_secs(1 << 30);
        let time = types::Timespec::from(wait.timeout.unwrap_or(longest).min(longest));
        let arguments = match wait.timeout {
            Some(_) => arguments.timespec(&time),
            None => arguments,
        };
        // SAFETY: the argument and what it points to outlive the call.
        unsafe { self.submitter.enter(queued, at_least, flags.bits(), Some(&arguments)) }
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        // The kernel tears down a closed ring asynchronously. Release first what it must not hold meanwhile: files
        // (their locks would persist and their file system could not be unmounted) and locked memory.
        let _ = self.submitter.unregister_files();
        let _ = self.submitter.unregister_buffers();
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

/// Sets up the bare ring with as many flags as the kernel accepts.
fn build(shape: Shape, features: &mut Features) -> Result<IoUring, String> {
    let mut dropped = 0;
    // A kernel thread takes all available entries, submits them, and only then marks their places as free. By that time
    // each of these requests may have completed and its successor may have been written.
    let entries = match shape.sq_thread {
        Some(_) => shape.entries.next_power_of_two() * 2,
        None => shape.entries,
    };
    let flags: Vec<_> =
        FLAGS.iter().filter(|(name, _)| shape.sq_thread.is_none() || !NOT_WITH_SQ_THREAD.contains(name)).collect();
    loop {
        let wanted = |name: &str| flags[dropped..].iter().any(|(flag, _)| *flag == name);
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize(shape.entries.next_power_of_two() * 2);
        if shape.polled {
            builder.setup_iopoll();
        }
        if let Some(processor) = shape.sq_thread {
            builder.setup_sqpoll(SQ_THREAD_IDLE_MS);
            if let Some(processor) = processor {
                builder.setup_sqpoll_cpu(processor);
            }
        }
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
                for (name, _) in flags[dropped..].iter().rev() {
                    features.obtain(name);
                }
                return Ok(ring);
            }
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) && dropped < flags.len() => {
                let (name, since) = flags[dropped];
                features.refuse(name, format!("the kernel is older than {since}"));
                dropped += 1;
            }
            Err(error) => return Err(why_refused(&error)),
        }
    }
}

/// How items of equal size are distributed over registered pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    first: u16,
    items_per_piece: u32,
}

impl Table {
    /// The registered piece that holds an item.
    pub(crate) fn index_of(self, item: u32) -> u16 {
        let piece = if self.items_per_piece.is_power_of_two() {
            item >> self.items_per_piece.trailing_zeros()
        } else {
            item / self.items_per_piece
        };
        self.first + piece as u16
    }
}

/// The likely cause of a failed setup, in words.
fn why_refused(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NOSYS) => {
            "the kernel has no io_uring (older than 5.1, or built without it, or hidden by a container's \
                               seccomp profile)"
                .to_owned()
        }
        Some(Errno::PERM | Errno::ACCESS) => {
            match std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").as_deref().map(str::trim) {
                Ok("2") => "kernel.io_uring_disabled is 2: forbidden for everyone".to_owned(),
                Ok("1") => {
                    "kernel.io_uring_disabled is 1: allowed only for members of kernel.io_uring_group and for root"
                        .to_owned()
                }
                Ok(value) => format!(
                    "not permitted, although kernel.io_uring_disabled is {value}: a seccomp profile (containers have one) or a security module forbids it"
                ),
                Err(_) => {
                    "not permitted: a seccomp profile (containers have one) or a security module forbids it".to_owned()
                }
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

/// Records the outcome of a registration under its name.
pub(crate) fn note(features: &mut Features, name: &str, outcome: io::Result<()>) -> bool {
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
                    format!("the kernel does not support it, or not with this size ({error})")
                }
                _ => error.to_string(),
            };
            features.refuse(name, why);
            false
        }
    }
}

/// Bytes that one ring may register, or `None` if there is no limit. The limit applies to the user, not to the ring,
/// and on some kernels the rings themselves count against it. A ring that took all of it would prevent the next one
/// from being created. So half the limit is reserved for the rings themselves, and as many rings as there are
/// processors share the other half.
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

/// Copies an outcome; `io::Error` cannot be cloned, but its number can.
pub(crate) fn copy_of(outcome: &io::Result<()>) -> io::Result<()> {
    outcome.as_ref().copied().map_err(|error| {
        error.raw_os_error().map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error)
    })
}

/// Cuts an area of `count` items into pieces small enough to register, each of whole items.
pub(crate) fn cut(pieces: &mut Vec<libc::iovec>, base: *mut u8, count: usize, bytes: usize) -> Table {
    let items_per_piece = (PIECE_BYTES / bytes).clamp(1, count.next_power_of_two());
    let first = pieces.len() as u16;
    for start in (0..count).step_by(items_per_piece) {
        let items = items_per_piece.min(count - start);
        pieces.push(libc::iovec { iov_base: base.wrapping_add(start * bytes).cast(), iov_len: items * bytes });
    }
    Table { first, items_per_piece: items_per_piece as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_cut_into_pieces_of_whole_items() {
        let base = std::ptr::without_provenance_mut(0x10_0000);
        for (count, bytes, expected) in [(1, 8192, 1), (131_072, 8192, 1), (131_073, 8192, 2), (200_000, 12_288, 3)] {
            let mut pieces = vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2];
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
        assert!(said(Errno::PERM).contains("not permitted") || said(Errno::PERM).contains("io_uring_disabled"));
        assert!(said(Errno::NOMEM).contains("ulimit -l"));
        assert!(!said(Errno::MFILE).is_empty());
    }
}
