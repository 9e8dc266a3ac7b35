//! Ending another thread's wait.
//!
//! The state is a token, as a thread's park token is: a wake-up between the ring thread's last look at its work and
//! its wait is not lost, it makes the next `submit` return at once. Only a thread that is really parked costs the caller
//! a system call.

use rustix::event::EventfdFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The ring thread works; no wake-up is pending.
const AWAKE: u32 = 0;
/// A wake-up is pending; the ring thread has not seen it yet.
const NOTIFIED: u32 = 1;
/// The ring thread waits and must be signalled.
const PARKED: u32 = 2;

/// Wakes the thread of one [`Ring`](crate::Ring). Any number of clones, from any thread.
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
    /// Ends the ring's wait, or makes its next `submit` return without waiting. Everything that the caller wrote before
    /// is visible to the ring thread after that `submit`. Several wake-ups count as one.
    #[inline]
    pub fn wake(&self) {
        self.wake.wake();
    }
}

/// The meeting point of one ring and its wakers, on a cache line of its own.
#[repr(align(128))]
pub(super) struct Wake {
    state: AtomicU32,
    signal: Box<dyn Fn() + Send + Sync>,
}

impl Wake {
    /// `signal` is called when the ring thread is parked and must be brought back.
    pub(super) fn new(signal: Box<dyn Fn() + Send + Sync>) -> Arc<Self> {
        Arc::new(Self { state: AtomicU32::new(AWAKE), signal })
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Waker { wake: Arc::clone(self) }
    }

    #[inline]
    fn wake(&self) {
        // Pairs with the fence in `resume`: where this load sees a pending wake-up that the ring thread has yet
        // to take, what the caller wrote before is visible to the ring thread after it has taken it.
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == NOTIFIED {
            return;
        }
        if self.state.swap(NOTIFIED, Ordering::SeqCst) == PARKED {
            (self.signal)();
        }
    }

    /// Ring thread: announces a wait. False where a wake-up is pending: then do not wait.
    #[inline]
    pub(super) fn park(&self) -> bool {
        self.state.compare_exchange(AWAKE, PARKED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ring thread: takes the pending wake-up, if any, and is awake. True where there was one.
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

/// An eventfd, shared by a ring that reads it and the wakers that write it.
#[derive(Clone)]
pub(super) struct EventCounter {
    descriptor: Arc<OwnedFd>,
}

impl EventCounter {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Self { descriptor: Arc::new(descriptor) })
    }

    /// Adds one. Cannot fail in practice: the counter would have to stand at 2^64 - 2.
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
