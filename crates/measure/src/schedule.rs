//! When operations are due.
//!
//! Under a rate, response time counts from the intended start, so that a stall counts for every operation it delayed.
//! The instants are computed from the operation's number, never by adding up rounded intervals: they do not drift.

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
        assert!((1..=sessions).contains(&session), "session {session} is not one of 1..={sessions}");
        if per_s == 0 {
            return Self::Closed;
        }
        let phase = session - 1;
        Self::Rate { per_s, sessions, phase }
    }

    /// Intended start of the session's operation `i` (from 0), ns after the gate;
    /// `None` in a closed loop. All sessions' operations together are evenly spaced:
    /// operation n of all starts at floor(n x 1 s / rate).
    #[must_use]
    pub fn next_start(&self, i: u64) -> Option<Ns> {
        let Self::Rate { per_s, sessions, phase } = *self else {
            return None;
        };
        // At most 2^96 operations of 2^30 ns each: 128 bits hold the product.
        let of_all = u128::from(i) * u128::from(sessions) + u128::from(phase);
        let start = of_all * u128::from(NS_PER_S) / u128::from(per_s);
        Some(Ns::try_from(start).unwrap_or(Ns::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_closed_loop_has_no_intended_starts() {
        assert_eq!(Schedule::closed().next_start(0), None);
        assert_eq!(Schedule::rate(0, 4, 1), Schedule::closed());
    }

    #[test]
    fn sessions_take_turns() {
        let start = |session, i| Schedule::rate(1000, 4, session).next_start(i);
        assert_eq!(start(1, 0), Some(0));
        assert_eq!(start(2, 0), Some(1_000_000));
        assert_eq!(start(4, 0), Some(3_000_000));
        assert_eq!(start(1, 1), Some(4_000_000));
        assert_eq!(start(4, 250), Some(1_003_000_000));
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_does_not_drift() {
        // One operation in 333,333,333.3 ns: after a day not one is missing.
        let schedule = Schedule::rate(3, 1, 1);
        assert_eq!(schedule.next_start(1), Some(333_333_333));
        assert_eq!(schedule.next_start(2), Some(666_666_666));
        assert_eq!(schedule.next_start(3 * 86_400), Some(86_400 * NS_PER_S));
    }

    #[test]
    fn instants_beyond_the_clock_stay_at_its_end() {
        assert_eq!(Schedule::rate(1, u32::MAX, 1).next_start(u64::MAX), Some(Ns::MAX));
    }

    #[test]
    #[should_panic(expected = "session 0 is not one of 1..=4")]
    fn sessions_count_from_one() {
        let _ = Schedule::rate(1000, 4, 0);
    }

    proptest! {
        #[test]
        fn the_rate_is_exact_over_any_horizon(
            per_s in 1_u64..2_000_000, sessions in 1_u32..40, seconds in 0_u64..100_000,
        ) {
            // Operations of all sessions that are to start before the horizon.
            let horizon_ns = seconds * NS_PER_S;
            let mut started = 0;
            for session in 1..=sessions {
                let schedule = Schedule::rate(per_s, sessions, session);
                let mut from = 0;
                let mut to = per_s * seconds + 1;
                while from < to {
                    let middle = from + (to - from) / 2;
                    if schedule.next_start(middle).unwrap() < horizon_ns { from = middle + 1 } else { to = middle }
                }
                started += from;
            }
            prop_assert_eq!(started, per_s * seconds);
        }

        #[test]
        fn starts_of_all_sessions_are_evenly_spaced(
            per_s in 1_u64..2_000_000_000, sessions in 1_u32..2000, n in 0_u64..1 << 50,
        ) {
            let start = |n: u64| {
                let session = (n % u64::from(sessions)) as u32 + 1;
                let schedule = Schedule::rate(per_s, sessions, session);
                schedule.next_start(n / u64::from(sessions)).unwrap()
            };
            // Beyond the end of the clock all instants are its end.
            prop_assume!(start(n + 1) < Ns::MAX);
            let gap = start(n + 1) - start(n);
            let interval = NS_PER_S / per_s;
            prop_assert!(gap == interval || gap == interval + 1, "{gap}");
        }
    }
}
