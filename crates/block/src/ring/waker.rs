//! Wakers: other threads end the wait of the ring thread.
//!
//! The state is a token, like a thread's park token: a wake-up between the ring thread's last look at its work and its
//! wait is not lost but makes the next `submit` return at once. The caller needs a system call only if the thread is
//! really parked.

use rustix::event::EventfdFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The ring thread is running; no wake-up is pending.
const AWAKE: u32 = 0;
/// A wake-up is pending; the ring thread has not seen it yet.
const NOTIFIED: u32 = 1;
/// The ring thread is waiting and must be signalled.
const PARKED: u32 = 2;

/// Wakes the thread of one [`Ring`](crate::Ring). Can be cloned and used from any thread.
#[derive(Clone)]
pub struct Waker {
    wake: Arc<Wake>,
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Waker").field("state", &self.wake.state.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

impl Waker {
    /// Ends the ring's wait, or makes its next `submit` return without waiting. After that `submit` the ring thread
    /// sees everything that the caller wrote before. Several wake-ups count as one.
    #[inline]
    pub fn wake(&self) {
        self.wake.wake();
    }
}

/// The state shared by one ring and its wakers, on a cache line of its own.
#[repr(align(128))]
pub(super) struct Wake {
    state: AtomicU32,
    signal: Box<dyn Fn() + Send + Sync>,
}

impl Wake {
    /// Calls `signal` to wake the ring thread when it is parked.
    pub(super) fn new(signal: Box<dyn Fn() + Send + Sync>) -> Arc<Self> {
        Arc::new(Self { state: AtomicU32::new(AWAKE), signal })
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Waker { wake: Arc::clone(self) }
    }

    #[inline]
    fn wake(&self) {
        // Pairs with the fence in `resume`: if this load sees a pending wake-up that the ring thread has not taken yet,
        // the ring thread sees what the caller wrote before once it has taken it.
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == NOTIFIED {
            return;
        }
        if self.state.swap(NOTIFIED, Ordering::SeqCst) == PARKED {
            (self.signal)();
        }
    }

    /// Ring thread: announces a wait. Must not wait if this returns false: a wake-up is pending.
    #[inline]
    pub(super) fn park(&self) -> bool {
        self.state.compare_exchange(AWAKE, PARKED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ring thread: takes the pending wake-up, if any, and is awake. True if there was one.
    #[inline]
    pub(super) fn resume(&self) -> bool {
        if self.state.load(Ordering::Relaxed) == AWAKE {
            return false;
        }
        let woken = self.state.swap(AWAKE, Ordering::SeqCst) == NOTIFIED;
        fence(Ordering::SeqCst);
        woken
    }

    /// Whether a wake-up is pending.
    #[inline]
    pub(super) fn is_notified(&self) -> bool {
        self.state.load(Ordering::Acquire) == NOTIFIED
    }
}

/// An eventfd that a ring reads and its wakers write.
#[derive(Clone)]
pub(super) struct EventCounter {
    descriptor: Arc<OwnedFd>,
}

impl EventCounter {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Self { descriptor: Arc::new(descriptor) })
    }

    /// Adds one. Cannot fail in practice: the counter would have to be at 2^64 - 2.
    pub(super) fn add(&self) {
        loop {
            match rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes()) {
                Err(rustix::io::Errno::INTR) => {}
                outcome => {
                    debug_assert!(outcome.is_ok(), "write to an eventfd: {outcome:?}");
                    return;
                }
            }
        }
    }
}

impl AsFd for EventCounter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
