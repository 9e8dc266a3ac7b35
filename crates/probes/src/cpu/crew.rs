//! Threads that run one kernel together: pinned, started at once, each stopped by its own clock.

use super::host;
use super::kernels::{Ready, Wrong, chain};
use super::reading::ThreadReading;
use assay_measure::clock::Clock;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use assay_run::threads;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// One kernel, so many threads, so long.
#[derive(Clone, Copy)]
pub(super) struct Shot<'a> {
    pub(super) ready: &'a Ready,
    /// A thread for each.
    pub(super) cpus: &'a [u32],
    pub(super) window: Duration,
    pub(super) clock: &'a Clock,
    pub(super) stop: &'a Stop,
}

/// How often the clock's chain is timed: the quickest is the one that nobody interrupted.
const CHAINS: usize = 3;
/// Some 20 us: 0.2 % of it is the clock's own time.
const CHAIN_OPS: u64 = 1 << 16;

/// The clock that the calling thread's CPU runs at, MHz: operations of one cycle each over the time they take.
pub(super) fn effective_mhz(clock: &Clock) -> f64 {
    (0..CHAINS)
        .map(|_| timed_chain(clock, CHAIN_OPS))
        .fold(0.0, f64::max)
}

/// One chain of so many operations (a multiple of 32), MHz.
pub(super) fn timed_chain(clock: &Clock, ops: u64) -> f64 {
    let begun = clock.now_ns();
    black_box(chain(
        black_box(ops),
        black_box(0x9E37_79B9_7F4A_7C15),
        black_box(0x5555_AAAA_5A5A_A5A5),
    ));
    let ns = clock.now_ns() - begun;
    ops as f64 * 1e3 / ns.max(1) as f64
}

/// Keeps the calling thread on one CPU; whether the kernel agreed.
pub(super) fn pin(cpu: u32) -> bool {
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
pub(super) struct Gate {
    there: AtomicUsize,
    open: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    /// Waits; whether to work.
    pub(super) fn wait(&self) -> bool {
        self.there.fetch_add(1, Ordering::AcqRel);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(work) = *open {
                return work;
            }
            open = self
                .changed
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Opens once so many are there; at once if they shall not work.
    pub(super) fn open(&self, threads: usize, work: bool) {
        while work && self.there.load(Ordering::Acquire) < threads {
            std::thread::sleep(Duration::from_micros(50));
        }
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        self.changed.notify_all();
    }
}

/// Runs it: a reading for each thread, and what was computed wrong.
pub(super) fn shoot(shot: Shot<'_>) -> Result<(Vec<ThreadReading>, Vec<Wrong>), EngineError> {
    let gate = Gate::default();
    let count = shot.cpus.len();
    let ended = std::thread::scope(|scope| {
        let mut crew = Vec::with_capacity(count);
        for index in 0..count {
            let gate = &gate;
            let name = format!("cpu-{}", shot.cpus[index]);
            match threads::spawn(scope, name, move || one(shot, index, gate)) {
                Ok(thread) => crew.push(thread),
                Err(error) => {
                    gate.open(count, false);
                    return Err(error);
                }
            }
        }
        gate.open(count, true);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .expect("a kernel does not panic: its data are its own")
        };
        Ok(crew.into_iter().filter_map(join).collect::<Vec<_>>())
    })?;
    let (readings, wrong): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    Ok((readings, wrong.into_iter().flatten().collect()))
}

/// One thread's part; nothing if the others could not be started.
fn one(shot: Shot<'_>, index: usize, gate: &Gate) -> Option<(ThreadReading, Option<Wrong>)> {
    let Shot { ready, clock, .. } = shot;
    let cpu = shot.cpus[index];
    let is_pinned = pin(cpu);
    let mut scratch = vec![0; ready.work.scratch_bytes()];
    let chunks = ready.chunks();
    // Each begins at its own part of what all read, so that none reads what another just brought into the cache.
    let mut chunk = index * chunks / shot.cpus.len();
    let mut wrong = None;
    let mut turn = |chunk: &mut usize| {
        if let Err(found) = ready.call(*chunk, &mut scratch) {
            wrong = wrong.take().or(Some(found));
        }
        *chunk = (*chunk + 1) % chunks;
    };
    let warm = clock.now_ns() + shot.window.as_nanos() as u64 / 10;
    loop {
        turn(&mut chunk);
        if clock.now_ns() >= warm || shot.stop.requested() {
            break;
        }
    }
    if !gate.wait() {
        return None;
    }
    let before = host::thread_times();
    let begun = clock.now_ns();
    let over = begun + shot.window.as_nanos() as u64;
    let mut calls = 0;
    let ended = loop {
        turn(&mut chunk);
        calls += 1;
        let now = clock.now_ns();
        if now >= over || shot.stop.requested() {
            break now;
        }
    };
    let spent = host::thread_times().since(&before);
    let mhz = effective_mhz(clock);
    let reading = ThreadReading {
        cpu,
        is_pinned,
        calls,
        elapsed_ns: ended - begun,
        cpu_ns: spent.cpu_ns,
        run_delay_ns: spent.run_delay_ns,
        mhz,
    };
    Some((reading, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

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
