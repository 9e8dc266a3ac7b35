//! One queue of arrivals for all sessions of a run under a rate.
//!
//! The seed alone determines when operations are due. A free session takes the next arrival, waits for it if it is not
//! due yet, and then performs the next operation of its own source: which session gets an arrival depends on timing,
//! but what a session does never does. Since every free session holds a future arrival, the due arrivals that are not
//! taken wait for a session.

use crate::plan::{Arrivals, Plan};
use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::locked::locked;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::schedule::Schedule;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

/// See the module. Its lock is taken once an operation, under a rate with a shared queue alone.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    waiting_max: u64,
}

#[derive(Debug)]
struct State {
    coming: Coming,
    /// The first arrival that is neither taken nor waiting, ns after the gate.
    next_ns: Ns,
    /// Due but not taken, at the last look.
    waiting: VecDeque<Ns>,
    /// Dropped but not yet reported.
    dropped: u64,
}

impl Queue {
    /// The queue that a plan asks for.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let shared = |arrivals: &Arrivals| arrivals.shared && plan.rate_per_s > 0;
        let arrivals = plan.arrivals.filter(shared)?;
        let mut coming = Coming::new(plan, arrivals.at_random);
        Some(Self {
            state: Mutex::new(State { next_ns: coming.next(), coming, waiting: VecDeque::new(), dropped: 0 }),
            waiting_max: arrivals.waiting_max,
        })
    }

    /// The next arrival, for a session that is free at `now_ns`, and how many were dropped since somebody asked; both ns
    /// after the gate.
    pub(crate) fn take(&self, now_ns: Ns) -> (Ns, u64) {
        let mut state = self.state();
        // Where all may wait, whoever is free takes the next one without a look at the others.
        if self.waiting_max > 0 {
            self.until(&mut state, now_ns);
        }
        let taken = state.waiting.pop_front();
        let dropped = std::mem::take(&mut state.dropped);
        (taken.unwrap_or_else(|| state.come()), dropped)
    }

    /// How many were dropped until `now_ns` since somebody asked.
    pub(crate) fn dropped(&self, now_ns: Ns) -> u64 {
        let mut state = self.state();
        if self.waiting_max > 0 {
            self.until(&mut state, now_ns);
        }
        std::mem::take(&mut state.dropped)
    }

    /// How many wait for a session at `now_ns`.
    pub(crate) fn waiting(&self, now_ns: Ns) -> u64 {
        let mut state = self.state();
        self.until(&mut state, now_ns);
        state.waiting.len() as u64
    }

    /// Poison is ignored: each value behind the lock is replaced whole.
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Lets arrivals until an instant wait, as far as there is room.
    fn until(&self, state: &mut State, now_ns: Ns) {
        while state.next_ns <= now_ns {
            let due = state.come();
            if self.waiting_max == 0 || (state.waiting.len() as u64) < self.waiting_max {
                state.waiting.push_back(due)
            } else {
                state.dropped += 1
            }
        }
    }
}

impl State {
    fn come(&mut self) -> Ns {
        let next_ns = self.coming.next();
        std::mem::replace(&mut self.next_ns, next_ns)
    }
}

/// The instants, one after the other.
#[derive(Debug)]
enum Coming {
    Even { schedule: Schedule, number: u64 },
    AtRandom { random: Stream, gap_ns: f64, due_ns: f64 },
}

impl Coming {
    fn new(plan: &Plan, at_random: bool) -> Self {
        if at_random {
            Self::AtRandom {
                random: Stream::new(plan.seed, plan.share.map_or(0, |share| u64::from(share.host)), Purpose::Arrivals),
                gap_ns: NS_PER_S as f64 / plan.rate_here_per_s(),
                due_ns: 0.0,
            }
        } else {
            let (hosts, turn) = plan.share.map_or((1, 1), |share| (share.hosts, share.host + 1));
            Self::Even { schedule: Schedule::rate(plan.rate_per_s, hosts, turn), number: 0 }
        }
    }

    fn next(&mut self) -> Ns {
        match self {
            Self::Even { schedule, number } => {
                *number += 1;
                schedule.next_start(*number - 1).unwrap_or(Ns::MAX)
            }
            Self::AtRandom { random, gap_ns, due_ns } => {
                // Exponential distances: 1 - u is above 0.
                *due_ns -= *gap_ns * (1.0 - random.uniform_f64()).ln();
                *due_ns as Ns
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(rate_per_s: u64, at_random: bool, waiting_max: u64) -> Queue {
        let arrivals = Some(Arrivals { at_random, shared: true, waiting_max });
        let plan = Plan { rate_per_s, arrivals, ..Plan::plain(1, 4, 1000) };
        Queue::of(&plan).expect("it has one")
    }

    #[test]
    fn arrivals_are_those_of_the_rate_and_the_seed() {
        let even = queue(1000, false, 0);
        assert_eq!([0; 3].map(|_| even.take(0).0), [0, 1_000_000, 2_000_000]);
        let due = |late_ns| {
            let queue = queue(1000, true, 0);
            (0..20_000).map(|_| queue.take(late_ns).0).collect::<Vec<_>>()
        };
        let (early, late) = (due(0), due(Ns::MAX));
        assert_eq!(early, late, "when they are taken changes none");
        let mean = early[early.len() - 1] as f64 / early.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.04, "{mean}");
        assert!(early.is_sorted());
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let queue = queue(1000, false, 2);
        assert_eq!(queue.take(0), (0, 0));
        // Due at 1 and 2 ms and waiting; 3, 4 and 5 ms found no room.
        assert_eq!(queue.take(5_000_000), (1_000_000, 3));
        assert_eq!(queue.dropped(5_000_000), 0);
        // 6 ms found the room of 1 ms, 7 ms none.
        assert_eq!(queue.dropped(7_000_000), 1);
        assert_eq!([0; 2].map(|_| queue.take(7_000_000).0), [2_000_000, 6_000_000]);
        assert_eq!(queue.take(7_000_000), (8_000_000, 0), "yet to come");
    }

    #[test]
    fn those_that_wait_are_counted_and_stay_in_their_order() {
        let queue = queue(1000, false, 0);
        assert_eq!(queue.take(0), (0, 0));
        assert_eq!(queue.waiting(900_000), 0);
        assert_eq!(queue.waiting(3_000_000), 3);
        assert_eq!(queue.take(9_000_000), (1_000_000, 0));
        assert_eq!(queue.waiting(9_000_000), 8);
        let taken: Vec<Ns> = (0..9).map(|_| queue.take(9_000_000).0 / 1_000_000).collect();
        assert_eq!(taken, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(queue.waiting(9_000_000), 0);
    }

    proptest! {
        #[test]
        fn each_arrival_is_taken_or_dropped(
            at_random: bool, waiting_max in 1_u64..50, late_ms in prop::collection::vec(0_u64..40, 1..60),
        ) {
            let (limited, whole) = (queue(1000, at_random, waiting_max), queue(1000, at_random, 0));
            let (mut now_ns, mut dropped, mut taken) = (0, 0, Vec::new());
            for late_ms in late_ms {
                now_ns += late_ms * 1_000_000;
                let (due, lost) = limited.take(now_ns);
                dropped += lost;
                taken.push(due);
            }
            let waiting: Vec<Ns> = limited.state().waiting.iter().copied().collect();
            let seen = taken.len() + waiting.len() + dropped as usize;
            let all: Vec<Ns> = (0..seen).map(|_| whole.take(0).0).collect();
            prop_assert!(taken.iter().chain(&waiting).all(|due| all.contains(due)));
            prop_assert!(taken.is_sorted());
            prop_assert_eq!(limited.state().next_ns, whole.take(0).0);
        }
    }
}
