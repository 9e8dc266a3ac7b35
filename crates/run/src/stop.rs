//! One stop request for the whole program, checked once per batch of work.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};

/// A shared request to stop: none, after the operations in flight, or at once.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Nothing requested.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The request of the signals to this process: code without its own request checks this one.
    #[must_use]
    pub fn of_process() -> Self {
        static OF_PROCESS: LazyLock<Stop> = LazyLock::new(Stop::new);
        OF_PROCESS.clone()
    }

    /// Escalates: the first call requests stop and save, the second abandons operations in flight. Safe to call from a
    /// signal-watching thread.
    pub fn request(&self) {
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| Some(n.saturating_add(1)));
    }

    /// Whether to stop at the next boundary.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Acquire) >= 1
    }

    /// Whether to abandon operations in flight.
    #[must_use]
    pub fn abandoned(&self) -> bool {
        self.0.load(Ordering::Acquire) >= 2
    }
}
