//! The loops: what a read costs, which steps lie between two of them, and how far the clocks of two CPUs are apart.

use crate::crew::pin;
use crate::host::thread_cpu_ns;
use assay_measure::locked::locked;
use assay_measure::statistics::median;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use assay_run::threads;
use rustix::time::{ClockId, clock_gettime};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// The clocks that databases use: name, identifier, what it is.
pub(super) const CLOCKS: [(&str, ClockId, &str); 6] = [
    ("MONOTONIC", ClockId::Monotonic, "what databases time their steps with"),
    ("REALTIME", ClockId::Realtime, "the time of day"),
    ("MONOTONIC_RAW", ClockId::MonotonicRaw, "without the corrections of NTP"),
    ("MONOTONIC_COARSE", ClockId::MonotonicCoarse, "as of the last tick"),
    ("THREAD_CPUTIME", ClockId::ThreadCPUTime, "CPU time of the thread"),
    ("PROCESS_CPUTIME", ClockId::ProcessCPUTime, "CPU time of the process"),
];

/// Which of them is MONOTONIC_RAW.
pub(super) const RAW: usize = 2;

/// Reads between two looks at the time that is left: what the look costs is less than a hundredth of theirs.
const BATCH: u32 = 256;
/// A slice that nobody interrupts is usual, where a slice of a scheduler's length is not.
const SLICE: Duration = Duration::from_micros(500);
/// Buckets of steps: below 1 us, then by powers of two.
pub(super) const BUCKETS: usize = 32;

/// A clock now, ns.
pub(super) fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// ns of one call, the median of the slices of a window; at least one slice is made, and no other after a stop request.
pub(super) fn round_ns<T>(window: Duration, stop: &Stop, mut call: impl FnMut() -> T) -> Option<f64> {
    let begun = Instant::now();
    let mut slices = Vec::new();
    while slices.is_empty() || begun.elapsed() < window && !stop.requested() {
        let (begun, mut calls, mut spent) = (Instant::now(), 0, Duration::ZERO);
        while spent < SLICE {
            for _ in 0..BATCH {
                black_box(call());
            }
            calls += BATCH;
            spent = begun.elapsed();
        }
        slices.push(spent.as_nanos() as f64 / f64::from(calls));
    }
    median(&slices)
}

/// The steps from each reading to the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Walk {
    /// By whole us: 0, 1, 2 to 3, 4 to 7, ...
    pub(super) buckets: [u64; BUCKETS],
    /// The smallest above 0.
    pub(super) least_ns: u64,
    /// How often time went back, and how far at most.
    pub(super) backwards: u64,
    pub(super) back_ns: u64,
    /// Of all the loops: readings made; time by MONOTONIC, by this clock, and on a CPU.
    pub(super) readings: u64,
    pub(super) elapsed_ns: u64,
    pub(super) own_ns: u64,
    pub(super) cpu_ns: u64,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            least_ns: u64::MAX,
            backwards: 0,
            back_ns: 0,
            readings: 0,
            elapsed_ns: 0,
            own_ns: 0,
            cpu_ns: 0,
        }
    }
}

impl Walk {
    /// So many steps on from a reading; the last one.
    #[inline]
    pub(super) fn on(&mut self, mut last: u64, steps: u32, read: &mut impl FnMut() -> u64) -> u64 {
        for _ in 0..steps {
            let now = read();
            if now < last {
                self.backwards += 1;
                self.back_ns = self.back_ns.max(last - now);
            } else {
                let step = now - last;
                let bucket = (u64::BITS - (step / 1000).leading_zeros()) as usize;
                self.buckets[bucket.min(BUCKETS - 1)] += 1;
                if step > 0 && step < self.least_ns {
                    self.least_ns = step;
                }
            }
            last = now;
        }
        last
    }

    /// Steps of all sizes, backwards too.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum::<u64>() + self.backwards
    }
}

/// What was read of one clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClockReading {
    /// ns of one read, by round.
    pub(super) rounds_ns: Vec<f64>,
    pub(super) walk: Walk,
}

impl ClockReading {
    /// A round of both loops.
    pub(super) fn take(&mut self, window: Duration, stop: &Stop, mut read: impl FnMut() -> u64) {
        self.rounds_ns.extend(round_ns(window, stop, &mut read));
        let (cpu_ns, begun) = (thread_cpu_ns(), Instant::now());
        let first = read();
        let (mut last, mut spent) = (first, Duration::ZERO);
        while spent < SLICE || spent < window && !stop.requested() {
            last = self.walk.on(last, BATCH, &mut read);
            self.walk.readings += u64::from(BATCH);
            spent = begun.elapsed();
        }
        self.walk.elapsed_ns += spent.as_nanos() as u64;
        self.walk.cpu_ns += thread_cpu_ns() - cpu_ns;
        self.walk.own_ns += last.saturating_sub(first);
    }
}

/// How far the clock of one CPU is ahead of that of another: no less than `low_ns`, no more than `high_ns`, if it was the same all
/// the time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offset {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) low_ns: i64,
    pub(super) high_ns: i64,
    /// The quickest way there and back.
    pub(super) trip_ns: u64,
    pub(super) exchanges: u64,
}

/// Neither thread goes on.
const END: u64 = u64::MAX;

impl Offset {
    pub(super) fn between((from, to): (u32, u32)) -> Self {
        Self { from, to, low_ns: i64::MIN, high_ns: i64::MAX, trip_ns: u64::MAX, exchanges: 0 }
    }

    /// An exchange: read here, then there, then here again. The reading there was made at some instant between the two here.
    pub(super) fn add(&mut self, sent: u64, there: u64, back: u64) {
        self.low_ns = self.low_ns.max(there.wrapping_sub(back).cast_signed());
        self.high_ns = self.high_ns.min(there.wrapping_sub(sent).cast_signed());
        self.trip_ns = self.trip_ns.min(back.saturating_sub(sent));
        self.exchanges += 1;
    }

    /// Two threads, each kept on its CPU, exchange readings for a time, their start included; none where the kernel does not keep
    /// them there. A thread that gets no CPU is not waited for: it ends when it next runs.
    pub(super) fn exchange(&mut self, time: Duration, stop: &Stop) -> Result<(), EngineError> {
        self.meet(Meeting::answer, time, stop)
    }

    pub(super) fn meet(&mut self, answer: fn(&Meeting), time: Duration, stop: &Stop) -> Result<(), EngineError> {
        let end = Instant::now() + time;
        let meeting =
            Arc::new(Meeting { turn: AtomicU64::new(0), there: AtomicU64::new(0), found: Mutex::new(self.clone()) });
        let start = |cpu: u32, work: fn(&Meeting)| {
            let (name, meeting) = (format!("clock-{cpu}"), Arc::clone(&meeting));
            let work = move || {
                if pin(cpu) {
                    work(&meeting);
                }
                meeting.turn.store(END, Ordering::Release);
            };
            Builder::new().name(name.clone()).spawn(work).map_err(|source| threads::refused(&name, &source))
        };
        let started = start(self.to, answer).and_then(|_| start(self.from, Meeting::ask));
        while started.is_ok() && meeting.turn.load(Ordering::Acquire) != END && !stop.requested() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            sleep(left.min(LOOK));
        }
        meeting.turn.store(END, Ordering::Release);
        for _ in 0..TRIES {
            if let Ok(found) = meeting.found.try_lock() {
                *self = found.clone();
                break;
            }
            sleep(LOOK / TRIES);
        }
        started.map(drop)
    }
}

/// How often a stop request and the end of an exchange are looked for.
const LOOK: Duration = Duration::from_millis(10);
/// Looks at what was found, once for each exchange that may still hold it: it is held for some ns at a time, by a thread that may lose
/// its CPU meanwhile.
const TRIES: u32 = 100;

/// Where two threads exchange readings.
pub(super) struct Meeting {
    /// Odd turns are those of the other CPU.
    turn: AtomicU64,
    there: AtomicU64,
    found: Mutex<Offset>,
}

impl Meeting {
    /// Waits for an odd or an even turn; `None` after the last one, which whoever began the exchange makes in time.
    fn wait(&self, is_odd: bool) -> Option<u64> {
        loop {
            match self.turn.load(Ordering::Acquire) {
                END => return None,
                now if (now % 2 == 1) == is_odd => return Some(now),
                _ => spin_loop(),
            }
        }
    }

    /// Passes a turn on; `false` after the last one.
    fn pass(&self, now: u64) -> bool {
        self.turn.compare_exchange(now, now + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn answer(&self) {
        while let Some(now) = self.wait(true) {
            self.there.store(now_ns(ClockId::Monotonic), Ordering::Relaxed);
            // After the last turn the wait says so.
            self.pass(now);
        }
    }

    fn ask(&self) {
        while let Some(now) = self.wait(false) {
            let sent = now_ns(ClockId::Monotonic);
            if !self.pass(now) || self.wait(false).is_none() {
                return;
            }
            let back = now_ns(ClockId::Monotonic);
            locked(&self.found).add(sent, self.there.load(Ordering::Relaxed), back);
        }
    }
}
