//! The activity history of a run: one word per session, and the sampler that reads them.
//!
//! The loop writes a session's word when it begins, hands over and ends an operation; the engine keeps words of its own
//! for what happens inside a call. All writes are relaxed stores to a cache line that belongs to the session; only the
//! sampler reads them. A tick may see a word that is a few ns old, which does not matter at ten ticks a second.

use crate::engine::{Doing, Engine, Op};
use assay_measure::clock::Ns;
use assay_measure::history::{
    ActivityHistory, ActivityKey, ActivityStep, GAP_INTERVALS_MAX, INTERVAL_NS, SessionState,
};
use assay_measure::snapshot::WaitClass;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the loop has a session that is not idle (thinking, waiting for its schedule, done).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its operation has begun (DB time runs), the engine does not have it yet.
    Ready = 1,
    /// Its operation is with the engine.
    Engine = 2,
}

/// One session's word, alone on its cache line: no two threads' stores meet.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Word(AtomicU32);

/// Every session's word; 0 is idle.
#[derive(Debug)]
pub(crate) struct Board(Box<[Word]>);

/// Bits of the place, and of place and kind, of a word.
const PLACE_BITS: u32 = 2;
const KIND_BITS: u32 = 6;

impl Board {
    pub(crate) fn new(sessions: usize) -> Self {
        Self((0..sessions).map(|_| Word::default()).collect())
    }

    /// Notes where `session` (from 1) stands with `op`. The word: bits of place, of
    /// the operation's kind, the rest its schema.
    #[inline]
    pub(crate) fn set(&self, session: u64, place: Place, op: &Op) {
        let word = place as u32 | (op.kind() as u32) << PLACE_BITS | op.schema() << KIND_BITS;
        self.0[session as usize - 1].0.store(word, Ordering::Relaxed);
    }

    /// The session does nothing that counts.
    #[inline]
    pub(crate) fn idle(&self, session: u64) {
        self.0[session as usize - 1].0.store(0, Ordering::Relaxed);
    }

    /// Place, kind of operation and schema of a session, from 0; `None` when idle.
    fn get(&self, index: usize) -> Option<(Place, usize, u64)> {
        let word = self.0[index].0.load(Ordering::Relaxed);
        let place = match word & 3 {
            word if word == Place::Ready as u32 => Place::Ready,
            word if word == Place::Engine as u32 => Place::Engine,
            _ => return None,
        };
        let kind = (word >> PLACE_BITS) & ((1 << (KIND_BITS - PLACE_BITS)) - 1);
        Some((place, kind as usize, u64::from(word >> KIND_BITS)))
    }
}

/// What is counted together; names are the engine's own, so comparing them is cheap.
type Key = (SessionState, Option<(&'static str, WaitClass)>, usize);

/// Looks at all sessions, one tick at a time.
#[derive(Debug)]
pub(crate) struct Sampler {
    doing: Vec<Doing>,
    keys: Vec<Key>,
    /// Sessions of this tick, by key.
    counts: Vec<u64>,
    last_ns: Ns,
    /// What was seen since the last take.
    part: ActivityHistory,
}

impl Sampler {
    /// For `sessions` sessions; the gate is instant 0.
    pub(crate) fn new(sessions: usize) -> Self {
        Self {
            doing: vec![Doing::OnCpu; sessions],
            keys: Vec::new(),
            counts: Vec::new(),
            last_ns: 0,
            part: Self::empty(),
        }
    }

    fn empty() -> ActivityHistory {
        ActivityHistory { interval_ns: INTERVAL_NS, ..ActivityHistory::default() }
    }

    /// One tick at `at_ns` after the gate.
    pub(crate) fn tick(&mut self, at_ns: Ns, board: &Board, engine: &dyn Engine) {
        self.doing.fill(Doing::OnCpu);
        if !engine.look(&mut self.doing) {
            return;
        }
        self.counts.fill(0);
        let mut active = 0;
        for index in 0..self.doing.len() {
            let Some((place, op, schema)) = board.get(index) else {
                continue;
            };
            let key = match (place, self.doing[index]) {
                (Place::Engine, Doing::OnCpu) => (SessionState::OnCpu, None, op),
                (Place::Engine, Doing::Waiting { event, class }) => (SessionState::Waiting, Some((event, class)), op),
                _ => (SessionState::RunQueue, None, op),
            };
            let at = self.index_of(key, engine.workload().kinds());
            self.counts[at] += 1;
            *self.part.schemas.entry(schema).or_default() += 1;
            active += 1;
        }
        let gap_ns = at_ns.saturating_sub(self.last_ns);
        let span_ns = gap_ns.min(GAP_INTERVALS_MAX * INTERVAL_NS);
        self.last_ns = at_ns;
        let cells = self.counts.iter().enumerate();
        self.part.steps.push(ActivityStep {
            at_ns,
            ticks: 1,
            span_ns,
            hole_ns: gap_ns - span_ns,
            active_max: active,
            cells: cells.filter(|(_, n)| **n > 0).map(|(key, n)| (key as u32, *n, n * span_ns)).collect(),
        });
    }

    fn index_of(&mut self, key: Key, kinds: &[&str]) -> usize {
        if let Some(at) = self.keys.iter().position(|known| *known == key) {
            return at;
        }
        let (state, event, op) = key;
        self.part.keys.push(ActivityKey {
            state,
            event: event.map_or_else(String::new, |(name, _)| name.to_owned()),
            class: event.map(|(_, class)| class),
            op: kinds[op].to_owned(),
        });
        self.keys.push(key);
        self.counts.push(0);
        self.keys.len() - 1
    }

    /// What was seen since this was called last.
    pub(crate) fn take(&mut self) -> ActivityHistory {
        std::mem::replace(&mut self.part, Self::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::NullEngine;
    use crate::plan::Plan;
    use crate::workload::{Steps, Workload};
    use assay_measure::clock::Clock;

    const MS: Ns = 1_000_000;
    const SELECT: Op = Op::Select { schema: 2, first_key: 1, width: 1 };
    const SCAN: Op = Op::Scan { schema: 3 };

    /// Knows its kinds of operations alone.
    #[derive(Debug)]
    struct Named;

    impl Workload for Named {
        fn name(&self) -> &'static str {
            "named"
        }

        fn kinds(&self) -> &'static [&'static str] {
            Op::KINDS
        }

        fn session(&self, _: &Plan, _: u32, _: u32) -> Box<dyn Steps> {
            unreachable!("nobody runs it")
        }

        fn rows_expected(&self, _: &Plan, _: &Op) -> Option<u64> {
            None
        }
    }

    fn null() -> NullEngine<'static> {
        NullEngine::new(&Plan::plain(1, 4, 1000), &Named, &Clock::real())
    }

    #[test]
    fn a_tick_counts_active_sessions_and_leaves_idle_ones_out() {
        let (board, engine) = (Board::new(4), null());
        let mut sampler = Sampler::new(4);
        board.set(1, Place::Engine, &SELECT);
        board.set(2, Place::Ready, &SELECT);
        board.set(3, Place::Engine, &SCAN);
        board.set(4, Place::Engine, &SCAN);
        board.idle(4);
        sampler.tick(50 * MS, &board, &engine);
        let part = sampler.take();
        let seen: Vec<_> = part.keys.iter().map(|key| (key.state, key.op.as_str())).collect();
        assert_eq!(
            seen,
            [(SessionState::OnCpu, "select"), (SessionState::RunQueue, "select"), (SessionState::OnCpu, "scan"),]
        );
        let step = &part.steps[0];
        assert_eq!((step.active_max, step.samples()), (3, 3));
        assert_eq!(step.active_ns(), 150 * MS);
        assert_eq!(part.schemas.into_iter().collect::<Vec<_>>(), [(2, 2), (3, 1)]);
    }

    #[test]
    fn a_gap_counts_for_five_intervals_and_the_rest_is_a_hole() {
        let (board, engine) = (Board::new(4), null());
        let mut sampler = Sampler::new(4);
        board.set(1, Place::Engine, &SELECT);
        sampler.tick(100 * MS, &board, &engine);
        sampler.tick(1000 * MS, &board, &engine);
        let part = sampler.take();
        let last = &part.steps[1];
        assert_eq!((last.span_ns, last.hole_ns), (500 * MS, 400 * MS));
        assert_eq!(last.active_ns(), 500 * MS);
    }

    /// Looks every third time.
    struct Dear(NullEngine<'static>, std::sync::atomic::AtomicU32);

    impl Engine for Dear {
        fn facts(&self) -> Vec<assay_measure::snapshot::Fact> {
            self.0.facts()
        }

        fn workload(&self) -> &dyn Workload {
            &Named
        }

        fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
            self.0.driver_threads(sessions, cpus)
        }

        fn driver<'a>(
            &'a self,
            assignment: &crate::engine::Assignment,
        ) -> Result<Box<dyn crate::engine::Driver + 'a>, crate::engine::EngineError> {
            self.0.driver(assignment)
        }

        fn sample(&self) -> assay_measure::snapshot::StatSet {
            self.0.sample()
        }

        fn look(&self, _sessions: &mut [Doing]) -> bool {
            self.1.fetch_add(1, Ordering::Relaxed) % 3 == 2
        }

        fn watched_disks(&self) -> Vec<String> {
            self.0.watched_disks()
        }

        fn close(&self) -> Result<(), crate::engine::EngineError> {
            self.0.close()
        }
    }

    #[test]
    fn a_tick_nobody_looked_at_is_left_out_and_the_next_one_stands_for_it() {
        let board = Board::new(4);
        let engine = Dear(null(), std::sync::atomic::AtomicU32::new(0));
        let mut sampler = Sampler::new(4);
        board.set(1, Place::Engine, &SELECT);
        for tick in 1..=6 {
            sampler.tick(tick * 100 * MS, &board, &engine);
        }
        let part = sampler.take();
        let seen: Vec<_> = part.steps.iter().map(|step| (step.at_ns, step.span_ns, step.hole_ns)).collect();
        assert_eq!(seen, [(300 * MS, 300 * MS, 0), (600 * MS, 300 * MS, 0)]);
    }

    #[test]
    fn a_later_part_names_only_new_keys() {
        let (board, engine) = (Board::new(4), null());
        let mut sampler = Sampler::new(4);
        board.set(1, Place::Engine, &SELECT);
        sampler.tick(100 * MS, &board, &engine);
        let mut whole = sampler.take();
        board.set(2, Place::Engine, &SCAN);
        sampler.tick(200 * MS, &board, &engine);
        let part = sampler.take();
        assert_eq!(part.keys.len(), 1);
        whole.append(part);
        assert_eq!(whole.keys.len(), 2);
        assert_eq!(whole.steps[1].cells, [(0, 1, 100 * MS), (1, 1, 100 * MS)]);
    }
}
