//! One clock for the whole program: monotonic nanoseconds, real or simulated.
//!
//! Durations always come from here; wall time is a label, taken once per snapshot.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
    /// Time that moves only on request; shared by its clones.
    Simulated(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's monotonic clock.
    #[must_use]
    pub fn real() -> Self {
        Self::Real(origin())
    }

    /// A clock at 0 ns that moves only on request.
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

    /// Lets the time from `now` to `until` pass: sleeps, or moves a simulated clock.
    pub fn pass(&self, now: Ns, until: Ns) {
        match self {
            Self::Real(_) => std::thread::sleep(Duration::from_nanos(until.saturating_sub(now))),
            Self::Simulated(_) => self.advance_to(until),
        }
    }

    /// Whether time moves only on request.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_real_clock_runs_and_cannot_be_moved() {
        let clock = Clock::real();
        assert!(!clock.is_simulated());
        let before = clock.now_ns();
        clock.advance_to(u64::MAX);
        std::thread::sleep(std::time::Duration::from_millis(2));
        let after = clock.now_ns();
        assert!(after - before >= 2_000_000, "{before} to {after}");
        assert!(after < u64::MAX);
    }

    #[test]
    fn real_clocks_share_their_origin_across_threads() {
        let before = Clock::real().now_ns();
        let elsewhere = std::thread::spawn(|| Clock::real().now_ns());
        let elsewhere = elsewhere.join().unwrap();
        let after = Clock::real().now_ns();
        assert!(before <= elsewhere && elsewhere <= after);
    }

    #[test]
    fn clones_of_a_simulated_clock_share_its_time() {
        let clock = Clock::simulated();
        let other = clock.clone();
        assert!(clock.is_simulated());
        assert_eq!(clock.now_ns(), 0);
        other.advance_to(5 * NS_PER_S);
        assert_eq!(clock.now_ns(), 5 * NS_PER_S);
        assert_eq!(Clock::simulated().now_ns(), 0);
    }

    proptest! {
        #[test]
        fn simulated_time_never_runs_backwards(instants in prop::collection::vec(any::<u64>(), 1..20)) {
            let clock = Clock::simulated();
            for (i, &instant) in instants.iter().enumerate() {
                clock.advance_to(instant);
                prop_assert_eq!(Some(clock.now_ns()), instants[..=i].iter().copied().max());
            }
        }
    }
}
