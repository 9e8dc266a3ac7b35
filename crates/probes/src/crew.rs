//! Threads that work together: each kept on a CPU, started at once; and the clock that their CPUs run at.

use assay_measure::clock::Clock;
use assay_measure::locked::locked;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A chain of `ops` operations (a multiple of 32), each of which needs the one before: additions and exclusive ors by
/// turns, which no compiler can fold into fewer, each one cycle on every x86-64 and aarch64 core.
#[inline(never)]
pub(crate) fn chain(ops: u64, add: u64, xor: u64) -> u64 {
    macro_rules! pairs {
        ($x:ident: $($n:tt)*) => { $( let _ = $n; $x = $x.wrapping_add(add) ^ xor; )* };
    }
    let mut x = add;
    for _ in 0..ops / 32 {
        pairs!(x: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    }
    x
}

/// How often the clock's chain is timed: the quickest is the one that nobody interrupted.
const CHAINS: usize = 3;
/// Some 20 us: 0.2 % of it is the clock's own time.
const CHAIN_OPS: u64 = 1 << 16;

/// The clock that the calling thread's CPU runs at, MHz: operations of one cycle each over the time they take.
pub(crate) fn effective_mhz(clock: &Clock) -> f64 {
    (0..CHAINS).map(|_| timed_chain(clock, CHAIN_OPS)).fold(0.0, f64::max)
}

/// One chain of so many operations (a multiple of 32), MHz.
pub(crate) fn timed_chain(clock: &Clock, ops: u64) -> f64 {
    let begun = clock.now_ns();
    black_box(chain(black_box(ops), black_box(0x9E37_79B9_7F4A_7C15), black_box(0x5555_AAAA_5A5A_A5A5)));
    let ns = clock.now_ns() - begun;
    ops as f64 * 1e3 / ns.max(1) as f64
}

/// Keeps the calling thread on one CPU; whether the kernel agreed.
pub(crate) fn pin(cpu: u32) -> bool {
    let cpu = cpu as usize;
    if cpu >= CpuSet::MAX_CPU {
        return false;
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// Holds threads until all are there. One that could not be started lets the others go home.
#[derive(Default)]
pub(crate) struct Gate {
    there: AtomicUsize,
    open: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    /// Waits; whether to work.
    pub(crate) fn wait(&self) -> bool {
        self.there.fetch_add(1, Ordering::AcqRel);
        let mut open = locked(&self.open);
        loop {
            if let Some(work) = *open {
                return work;
            }
            open = self.changed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Opens once so many are there; at once if they shall not work.
    pub(crate) fn open(&self, threads: usize, work: bool) {
        while work && self.there.load(Ordering::Acquire) < threads {
            std::thread::sleep(Duration::from_micros(50));
        }
        *locked(&self.open) = Some(work);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;

    /// Operations per us of the thread's own time: what others take from this CPU does not count.
    fn by_cpu_time(ops: u64, times: u64) -> f64 {
        let before = host::thread_times();
        for _ in 0..times {
            black_box(chain(black_box(ops), black_box(3), black_box(5)));
        }
        let spent = host::thread_times().since(&before);
        (ops * times) as f64 * 1e3 / spent.cpu_ns as f64
    }

    #[test]
    fn cpu_08_the_clock_does_not_depend_on_the_length_of_the_chain() {
        pin(host::allowed()[0]);
        let best = |ops, times| (0..5).map(|_| by_cpu_time(ops, times)).fold(0.0, f64::max);
        // The clock itself may move between the two: of many rounds some see it stand.
        let agree = (0..50).any(|_| {
            let (short, long) = (best(100_000, 100), best(10_000_000, 1));
            (short / long - 1.0).abs() < 0.01
        });
        assert!(agree, "{} {}", best(100_000, 100), best(10_000_000, 1));
    }

    #[test]
    fn a_chain_is_timed_by_the_clock_it_is_given() {
        let clock = Clock::simulated();
        // No time passes on it: the least that can be told is a nanosecond.
        assert_eq!(timed_chain(&clock, 320), 320_000.0);
        assert_eq!(effective_mhz(&clock), CHAIN_OPS as f64 * 1e3);
    }
}
