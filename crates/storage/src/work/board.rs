//! State shared by the clones of a wave and the monitor: counters with one writer each, orders, copies of readings on
//! request, and the gate at which all start together.

use crate::readings::{CloneReading, DIRECTIONS};
use assay_measure::clock::Ns;
use assay_measure::histogram::Histogram;
use assay_measure::locked::locked;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The work of one clone in one second of its group.
#[derive(Clone, Debug, Default)]
pub(super) struct SecondPart {
    /// Number of the second, from 0, since the group's first measured time.
    pub(super) second: u64,
    pub(super) ios: [u64; DIRECTIONS],
    pub(super) bytes: [u64; DIRECTIONS],
    pub(super) lat: [Histogram; DIRECTIONS],
    pub(super) response: Option<Histogram>,
    pub(super) syncs: u64,
}

/// The counters that a clone publishes; only that clone writes them, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Card {
    /// I/Os completed since its first measured time, by direction.
    pub(super) ios: [AtomicU64; DIRECTIONS],
    /// Bytes they moved.
    pub(super) bytes: [AtomicU64; DIRECTIONS],
    /// Completed syncs.
    pub(super) syncs: AtomicU64,
    /// Sum of `lat` over all of them, ns.
    pub(super) lat_sum_ns: AtomicU64,
    /// Bytes queued since its start, including the ramp; only for the progress line.
    pub(super) moved: AtomicU64,
    /// fio's letter for its state.
    pub(super) state: AtomicU8,
    /// Its start, including the ramp; 0 before.
    pub(super) started_ns: AtomicU64,
    /// Its first measured time; 0 before.
    pub(super) first_ns: AtomicU64,
    /// Its end; 0 while it runs.
    pub(super) ended_ns: AtomicU64,
    /// Whether it ended with an error.
    pub(super) failed: AtomicBool,
    /// The last copy of its reading, with the number of the request it answers.
    copy: Mutex<(u32, Option<Box<CloneReading>>)>,
    /// Seconds handed over and not collected yet.
    seconds: Mutex<Vec<SecondPart>>,
}

impl Card {
    pub(super) fn set_state(&self, letter: u8) {
        self.state.store(letter, Ordering::Relaxed);
    }

    /// Answers request `number` with a reading.
    pub(super) fn hand_copy(&self, number: u32, reading: CloneReading) {
        *locked(&self.copy) = (number, Some(Box::new(reading)));
    }

    /// The last copy, and the request it answered.
    pub(super) fn copy(&self) -> (u32, Option<CloneReading>) {
        let copy = locked(&self.copy);
        (copy.0, copy.1.as_deref().cloned())
    }

    pub(super) fn hand_second(&self, part: SecondPart) {
        locked(&self.seconds).push(part);
    }

    pub(super) fn take_seconds(&self) -> Vec<SecondPart> {
        std::mem::take(&mut locked(&self.seconds))
    }

    /// Whether it ended, with or without an error.
    pub(super) fn has_ended(&self) -> bool {
        self.ended_ns.load(Ordering::Acquire) != 0
    }
}

/// Orders to a clone; rarely written by others.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Orders {
    /// Incremented with every order: the only word that a clone checks each turn.
    pub(super) news: AtomicU32,
    /// Whether to end as if the time were over.
    pub(super) end: AtomicBool,
    /// Number of the last request for a copy of the reading.
    pub(super) copy: AtomicU32,
}

impl Orders {
    pub(super) fn end(&self) {
        self.end.store(true, Ordering::Relaxed);
        self.news.fetch_add(1, Ordering::Release);
    }

    pub(super) fn ask_copy(&self, number: u32) {
        self.copy.store(number, Ordering::Relaxed);
        self.news.fetch_add(1, Ordering::Release);
    }
}

/// All shared state of one wave. Clones and their cards have the same order.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) cards: Vec<Card>,
    pub(super) orders: Vec<Orders>,
    /// First measured time of each report group of the wave; 0 before.
    pub(super) groups: Vec<AtomicU64>,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    /// Number of clones that are set up, or failed to be.
    ready: usize,
    /// Number of clones that ended.
    ended: usize,
    open: Option<bool>,
}

impl Board {
    pub(super) fn new(clones: usize, groups: usize) -> Self {
        Self {
            cards: (0..clones).map(|_| Card::default()).collect(),
            orders: (0..clones).map(|_| Orders::default()).collect(),
            groups: (0..groups).map(|_| AtomicU64::new(0)).collect(),
            gate: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// Each clone calls this once when it is set up (or cannot be). Waits for the gate and returns whether to start.
    pub(super) fn ready(&self) -> bool {
        let mut gate = locked(&self.gate);
        gate.ready += 1;
        self.moved.notify_all();
        while gate.open.is_none() {
            gate = self.moved.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        gate.open == Some(true)
    }

    /// Waits until `clones` are ready.
    pub(super) fn wait_ready(&self, clones: usize) {
        let mut gate = locked(&self.gate);
        while gate.ready < clones {
            gate = self.moved.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the clones start, or cancels them.
    pub(super) fn open(&self, go: bool) {
        locked(&self.gate).open = Some(go);
        self.moved.notify_all();
    }

    /// Whether any clone could not be set up.
    pub(super) fn any_refused(&self) -> bool {
        self.cards.iter().any(|card| card.failed.load(Ordering::Acquire))
    }

    /// Records the end of a clone.
    pub(super) fn end(&self, clone: usize, now: Ns) {
        self.cards[clone].ended_ns.store(now.max(1), Ordering::Release);
        locked(&self.gate).ended += 1;
        self.moved.notify_all();
    }

    /// Waits up to the given time for all of `clones` to end; returns whether they have.
    pub(super) fn wait_ended(&self, clones: usize, at_most: Duration) -> bool {
        let gate = locked(&self.gate);
        if gate.ended >= clones {
            return true;
        }
        let (gate, _) = self
            .moved
            .wait_timeout_while(gate, at_most, |gate| gate.ended < clones)
            .unwrap_or_else(PoisonError::into_inner);
        gate.ended >= clones
    }

    /// Tells every clone to end.
    pub(super) fn end_all(&self) {
        self.orders.iter().for_each(Orders::end);
    }

    /// The group's first measured time: `now` for the first caller.
    pub(super) fn group_first(&self, group: usize, now: Ns) -> Ns {
        let first = &self.groups[group];
        match first.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => now,
            Err(first) => first,
        }
    }
}
