//! One clock for the whole program: monotonic nanoseconds, real or simulated.
//!
//! Durations always come from here; wall time is a label, taken once per snapshot.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Nanoseconds since the process's clock origin (monotonic, never wall time).
pub type Ns = u64;

/// Nanoseconds in one second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// The origin all real clocks of one process share, so that stamps taken by
/// different threads and crates can be subtracted from each other.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// A source of monotonic time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`, about 20 ns a reading.
    Real(Instant),
    /// Time that moves only when told; shared by its clones.
    Simulated(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's monotonic clock.
    #[must_use]
    pub fn real() -> Self {
        Self::Real(origin())
    }

    /// A clock at 0 ns that moves only by [`Clock::advance_to`].
    #[must_use]
    pub fn simulated() -> Self {
        Self::Simulated(Arc::new(AtomicU64::new(0)))
    }

    /// Now, in ns since the origin.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> Ns {
        match self {
            // 2^64 ns are 584 years: the cast cannot lose anything.
            Self::Real(origin) => origin.elapsed().as_nanos() as u64,
            Self::Simulated(now) => now.load(Ordering::Acquire),
        }
    }

    /// Moves a simulated clock forward to `ns`; never backward, and a real clock not at all.
    pub fn advance_to(&self, ns: Ns) {
        if let Self::Simulated(now) = self {
            now.fetch_max(ns, Ordering::AcqRel);
        }
    }

    /// Whether time only moves by [`Clock::advance_to`].
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }
}
