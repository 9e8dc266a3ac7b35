//! What the driver threads and the collector share: the gate, the marks, the stop
//! instant and one slot per thread for publications.
//!
//! Nothing here is written per operation. A thread reads three atomics at its turn
//! boundaries; the collector writes them a few times a second.

use crate::arrivals::Queue;
use crate::engine::EngineError;
use crate::history::Board;
use assay_measure::clock::{Clock, Ns};
use assay_measure::locked::locked;
use assay_measure::snapshot::{DriverReading, SessionReading, StatSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// A gate farther away is slept for, up to so much before it: many hosts of a fleet may be one machine, whose CPUs the spinning
/// threads of each would take from the others.
const SPIN_NS_MAX: Ns = 5_000_000;
const SPIN_NS: Ns = 30_000;
/// Texts of failed operations kept for the report.
const ERROR_TEXTS_MAX: usize = 10;

/// What one thread says of itself at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// Instant by the run's clock.
    pub at_ns: Ns,
    /// Engine statistics of this thread plus the loop's own counters.
    pub stats: StatSet,
    /// Counters of the load.
    pub driver: DriverReading,
}

/// How a thread ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Its last counters. After a panic `stats` is the loop's part only.
    pub last: Arc<Published>,
    /// Per session, instants already relative to the gate.
    pub sessions: Vec<SessionReading>,
    /// What went wrong, if anything.
    pub failure: Option<Failure>,
    /// Sessions whose operations were with the engine at that time.
    pub in_flight: usize,
}

/// Why a thread ended before its time.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine could not continue.
    Engine(EngineError),
    /// A panic, with its message.
    Panic(String),
}

/// One thread's publications.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The thread's id for the kernel, once it lives.
    pub tid: Option<i32>,
    /// At READY, before the gate.
    pub ready: Option<Arc<Published>>,
    /// The latest mark answered; stays, so that a panic leaves its engine counters.
    pub mark: Option<(u64, Arc<Published>)>,
    /// At the stop instant, before any session was stopped.
    pub end: Option<Arc<Published>>,
    /// The thread's last word.
    pub finished: Option<Finished>,
}

/// The start gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Shut,
    Open(Ns),
    Cancelled,
}

/// Marks answered by the collector; only simulated time waits for them.
#[derive(Debug, Default)]
struct Answered {
    epoch: u64,
    end: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Control {
    pub clock: Clock,
    epoch: AtomicU64,
    mark_at: AtomicU64,
    stop_at: AtomicU64,
    began: AtomicU64,
    abandon: AtomicBool,
    gate: Mutex<Gate>,
    gate_moved: Condvar,
    answered: Mutex<Answered>,
    answered_more: Condvar,
    errors: AtomicU64,
    errors_fatal: u64,
    error_texts: Mutex<Vec<String>>,
    slots: Vec<Mutex<Slot>>,
    collector: Thread,
    /// What every session does, for the activity history.
    pub board: Board,
    /// Arrivals that all sessions share.
    pub queue: Option<Queue>,
    sessions: usize,
}

impl Control {
    /// For `threads` driver threads and their `sessions`; the calling thread is the collector.
    pub(crate) fn new(clock: &Clock, threads: usize, sessions: usize, errors_fatal: u64) -> Self {
        Self {
            clock: clock.clone(),
            epoch: AtomicU64::new(0),
            mark_at: AtomicU64::new(u64::MAX),
            stop_at: AtomicU64::new(u64::MAX),
            began: AtomicU64::new(0),
            abandon: AtomicBool::new(false),
            gate: Mutex::new(Gate::Shut),
            gate_moved: Condvar::new(),
            answered: Mutex::new(Answered::default()),
            answered_more: Condvar::new(),
            errors: AtomicU64::new(0),
            errors_fatal,
            error_texts: Mutex::new(Vec::new()),
            slots: (0..threads).map(|_| Mutex::default()).collect(),
            collector: std::thread::current(),
            board: Board::new(sessions),
            queue: None,
            sessions,
        }
    }

    // The gate.

    /// Lets everybody start at `at`.
    pub(crate) fn open_gate(&self, at: Ns) {
        *locked(&self.gate) = Gate::Open(at);
        self.gate_moved.notify_all();
    }

    /// Sends everybody home without a single operation.
    pub(crate) fn cancel_gate(&self) {
        *locked(&self.gate) = Gate::Cancelled;
        self.gate_moved.notify_all();
    }

    /// Blocks until the gate's instant; `None` when the start was called off.
    pub(crate) fn wait_gate(&self) -> Option<Ns> {
        let mut gate = locked(&self.gate);
        let at = loop {
            match *gate {
                Gate::Shut => {
                    gate = self.gate_moved.wait(gate).unwrap_or_else(PoisonError::into_inner);
                }
                Gate::Open(at) => break at,
                Gate::Cancelled => return None,
            }
        };
        drop(gate);
        let now = self.clock.now_ns();
        if at.saturating_sub(now) > SPIN_NS_MAX && !self.clock.is_simulated() {
            std::thread::sleep(Duration::from_nanos(at - now - SPIN_NS));
        }
        // Under a millisecond: spinning starts all threads within the clock's resolution.
        while self.clock.now_ns() < at && !self.clock.is_simulated() {
            std::hint::spin_loop();
        }
        self.began.fetch_max(self.clock.now_ns().saturating_sub(at), Ordering::Relaxed);
        Some(at)
    }

    // Marks: the collector asks, threads answer at their next turn boundary.

    /// Asks every thread to publish at its first turn boundary at or after `at`.
    pub(crate) fn ask(&self, epoch: u64, at: Ns) {
        self.mark_at.store(at, Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Release);
    }

    /// The mark asked for: its number and instant.
    #[inline]
    pub(crate) fn mark(&self) -> (u64, Ns) {
        let epoch = self.epoch.load(Ordering::Acquire);
        (epoch, self.mark_at.load(Ordering::Relaxed))
    }

    /// Publishes into this thread's slot and wakes the collector.
    pub(crate) fn publish(&self, thread: usize, put: impl FnOnce(&mut Slot)) {
        put(&mut locked(&self.slots[thread]));
        self.collector.unpark();
    }

    /// One thread's slot.
    pub(crate) fn slot(&self, thread: usize) -> MutexGuard<'_, Slot> {
        locked(&self.slots[thread])
    }

    /// Sessions of all threads.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions
    }

    /// Kernel ids of the driver threads.
    pub(crate) fn thread_ids(&self) -> Vec<i32> {
        (0..self.threads()).filter_map(|thread| self.slot(thread).tid).collect()
    }

    /// Driver threads.
    pub(crate) fn threads(&self) -> usize {
        self.slots.len()
    }

    /// The collector has dealt with mark `epoch` (and with the end mark).
    pub(crate) fn answer(&self, epoch: u64, end: bool) {
        *locked(&self.answered) = Answered { epoch, end };
        self.answered_more.notify_all();
    }

    /// In simulated time a publication waits until the collector has dealt with it,
    /// so that snapshots are exact; in real time nobody waits.
    pub(crate) fn await_answer(&self, epoch: Option<u64>) {
        if !self.clock.is_simulated() {
            return;
        }
        let mut answered = locked(&self.answered);
        while !answered.end && epoch.is_none_or(|epoch| answered.epoch < epoch) {
            answered = self.answered_more.wait(answered).unwrap_or_else(PoisonError::into_inner);
        }
    }

    // Stopping.

    /// How long after the gate's instant the last thread passed it, ns.
    pub(crate) fn began_ns(&self) -> Ns {
        self.began.load(Ordering::Relaxed)
    }

    /// No operation starts at or after `at`; never later than asked before.
    pub(crate) fn stop_at(&self, at: Ns) {
        self.stop_at.fetch_min(at, Ordering::AcqRel);
    }

    /// The stop instant.
    #[inline]
    pub(crate) fn stop_instant(&self) -> Ns {
        self.stop_at.load(Ordering::Relaxed)
    }

    /// Leaves what is in flight.
    pub(crate) fn abandon(&self) {
        self.abandon.store(true, Ordering::Release);
    }

    /// Whether to leave what is in flight.
    #[inline]
    pub(crate) fn abandoned(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    // Errors.

    /// Counts a failed operation; beyond the limit everybody stops.
    pub(crate) fn count_error(&self, text: &dyn Fn() -> String, now_ns: Ns) {
        let before = self.errors.fetch_add(1, Ordering::AcqRel);
        if before < ERROR_TEXTS_MAX as u64 {
            locked(&self.error_texts).push(text());
        }
        if before >= self.errors_fatal {
            self.stop_at(now_ns);
            self.collector.unpark();
        }
    }

    /// Operations failed so far, and whether they ended the run.
    pub(crate) fn errors(&self) -> (u64, bool) {
        let errors = self.errors.load(Ordering::Acquire);
        (errors, errors > self.errors_fatal)
    }

    /// The first failures' texts.
    pub(crate) fn error_texts(&self) -> Vec<String> {
        locked(&self.error_texts).clone()
    }
}
