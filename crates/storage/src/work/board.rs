//! What the clones of a wave and the monitor share: counters with one writer each, orders, copies of readings on
//! request, and the gate at which all start together.

use crate::readings::{CloneReading, DIRECTIONS};
use assay_measure::clock::Ns;
use assay_measure::histogram::Histogram;
use assay_measure::locked::locked;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What one clone did in one second of its group.
#[derive(Clone, Debug, Default)]
pub(super) struct SecondPart {
    /// From 0, since the group's first measured instant.
    pub(super) second: u64,
    pub(super) ios: [u64; DIRECTIONS],
    pub(super) bytes: [u64; DIRECTIONS],
    pub(super) lat: [Histogram; DIRECTIONS],
    pub(super) response: Option<Histogram>,
    pub(super) syncs: u64,
}

/// What a clone publishes; written by that clone alone, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Card {
    /// I/Os that ended since its first measured instant, by direction.
    pub(super) ios: [AtomicU64; DIRECTIONS],
    /// Bytes they moved.
    pub(super) bytes: [AtomicU64; DIRECTIONS],
    /// Syncs that ended.
    pub(super) syncs: AtomicU64,
    /// Sum of the `lat` of all of them, ns.
    pub(super) lat_sum_ns: AtomicU64,
    /// Bytes queued since its start, ramp included: for the progress line alone.
    pub(super) moved: AtomicU64,
    /// fio's letter of its state.
    pub(super) state: AtomicU8,
    /// Its start, ramp included; 0 before.
    pub(super) started_ns: AtomicU64,
    /// Its first measured instant; 0 before.
    pub(super) first_ns: AtomicU64,
    /// Its last instant; 0 while it runs.
    pub(super) ended_ns: AtomicU64,
    /// It ended with an error.
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

    /// It ended, with an error or without.
    pub(super) fn has_ended(&self) -> bool {
        self.ended_ns.load(Ordering::Acquire) != 0
    }
}

/// What a clone is told; written by others, rarely.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Orders {
    /// Grows with every order: the one word that a clone looks at each turn.
    pub(super) news: AtomicU32,
    /// End as if the time were over.
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

/// Everything shared of one wave. Clones and their cards have the same order.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) cards: Vec<Card>,
    pub(super) orders: Vec<Orders>,
    /// First measured instant of each report group of the wave; 0 before.
    pub(super) groups: Vec<AtomicU64>,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    /// Clones that are set up, or have failed to.
    ready: usize,
    /// Clones that ended.
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

    /// Called once by each clone when it is set up (or cannot be); waits for the gate.
    /// Returns whether to go.
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

    /// Lets the clones go, or sends them home.
    pub(super) fn open(&self, go: bool) {
        locked(&self.gate).open = Some(go);
        self.moved.notify_all();
    }

    /// A clone could not be set up.
    pub(super) fn any_refused(&self) -> bool {
        self.cards.iter().any(|card| card.failed.load(Ordering::Acquire))
    }

    /// A clone ended.
    pub(super) fn end(&self, clone: usize, now: Ns) {
        self.cards[clone].ended_ns.store(now.max(1), Ordering::Release);
        locked(&self.gate).ended += 1;
        self.moved.notify_all();
    }

    /// Waits at most so long for all of `clones` to end; whether they have.
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

    /// The group's first measured instant: `now` if this is the first to ask.
    pub(super) fn group_first(&self, group: usize, now: Ns) -> Ns {
        let first = &self.groups[group];
        match first.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => now,
            Err(first) => first,
        }
    }
}
