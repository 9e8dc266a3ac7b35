//! When operations are meant to start.
//!
//! Under a rate, response time counts from the intended start, so that a stall
//! is charged to every operation it held up. The instants are computed from the
//! operation's number, never by adding up rounded intervals: they do not drift.

use crate::clock::{NS_PER_S, Ns};

/// The intended starts of one session's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The next operation starts when the one before has ended.
    Closed,
    /// The sessions together start `per_s` operations a second, taking turns.
    Rate {
        /// Operations per second of all sessions, not 0.
        per_s: u64,
        /// Sessions that share the rate, not 0.
        sessions: u32,
        /// Which of them this is, from 0.
        phase: u32,
    },
}

impl Schedule {
    /// A closed loop.
    #[must_use]
    pub fn closed() -> Self {
        Self::Closed
    }

    /// A fixed rate of `per_s` operations a second over `sessions` sessions, for
    /// session number `session` (from 1). A rate of 0 is a closed loop.
    ///
    /// # Panics
    /// If `session` is not one of 1..=`sessions`.
    #[must_use]
    pub fn rate(per_s: u64, sessions: u32, session: u32) -> Self {
        assert!(
            (1..=sessions).contains(&session),
            "session {session} is not one of 1..={sessions}"
        );
        if per_s == 0 {
            return Self::Closed;
        }
        let phase = session - 1;
        Self::Rate {
            per_s,
            sessions,
            phase,
        }
    }

    /// Intended start of the session's operation `i` (from 0), ns after the gate;
    /// `None` in a closed loop. All sessions' operations together are evenly spaced:
    /// operation n of all starts at floor(n x 1 s / rate).
    #[must_use]
    pub fn next_start(&self, i: u64) -> Option<Ns> {
        let Self::Rate {
            per_s,
            sessions,
            phase,
        } = *self
        else {
            return None;
        };
        // At most 2^96 operations of 2^30 ns each: 128 bits hold the product.
        let of_all = u128::from(i) * u128::from(sessions) + u128::from(phase);
        let start = of_all * u128::from(NS_PER_S) / u128::from(per_s);
        Some(Ns::try_from(start).unwrap_or(Ns::MAX))
    }
}
