//! Slices: a target that performs many operations of one session by itself (LOOP=server).
//!
//! The session's source still decides every operation; a slice only transports them. The loop records the target's work
//! operation by operation. The time between the last operation of a slice and the first of the next belongs to no
//! operation: it is recorded as the session waiting for its client.

use super::{Next, State, Worker};
use crate::engine::{Driver, EngineError, Slice, SliceDone, Tag};
use crate::history::Place;
use assay_measure::clock::{NS_PER_S, Ns};

/// Longest slice: bounds how old the counters of a session get, and how late it hears of a stop.
const SLICE_NS_MAX: Ns = NS_PER_S;

impl Worker<'_> {
    /// Has the target perform a session's next operations, up to `limit` (a mark or the stop).
    pub(super) fn perform(&mut self, driver: &mut dyn Driver, tag: Tag, limit: Ns) -> Result<(), EngineError> {
        let more = self.decide_ahead(tag, driver.slice_ops());
        let slot = &mut self.slots[tag as usize];
        self.slice.clear();
        self.slice.push(slot.step.op);
        self.slice.extend(slot.ahead.iter().take(more).map(|step| step.op));
        let (board, session) = (&self.control.board, slot.reading.session);
        board.set(session, Place::Engine, &slot.step.op);
        let done = driver.perform(Slice {
            tag,
            ops: &self.slice,
            until_ns: limit.min(self.now.saturating_add(SLICE_NS_MAX)),
        })?;
        self.now = self.now.max(done.end_ns);
        let next = self.record_slice(tag, done)?;
        self.schedule(tag, next);
        Ok(())
    }

    /// Draws steps until so many operations are known, the present one included; never past WORK_LOOP. Returns how
    /// many follow the present one.
    fn decide_ahead(&mut self, tag: Tag, operations: usize) -> usize {
        let slot = &mut self.slots[tag as usize];
        let left = match self.plan.work_loop {
            0 => usize::MAX,
            all => usize::try_from(all - slot.taken).unwrap_or(usize::MAX),
        };
        let wanted = operations.saturating_sub(1).min(left);
        while slot.ahead.len() < wanted {
            let step = slot.source.next(self.plan);
            slot.ahead.push_back(step);
        }
        wanted
    }

    fn record_slice(&mut self, tag: Tag, done: SliceDone) -> Result<Next, EngineError> {
        if done.outcomes.len() > self.slice.len() {
            return Err(EngineError::Unusable(format!(
                "the target performed {} operations of a slice of {}",
                done.outcomes.len(),
                self.slice.len()
            )));
        }
        let slot = &mut self.slots[tag as usize];
        if !slot.begun && !done.outcomes.is_empty() {
            self.recorder.waited_for_client(done.begin_ns.saturating_sub(slot.start_ns));
            self.recorder.begin(slot, done.begin_ns, self.gate_ns);
        }
        let mut next = Next::At(0);
        for outcome in done.outcomes {
            next = self.complete(tag, outcome);
        }
        let slot = &mut self.slots[tag as usize];
        if slot.attempts == 0 {
            // The next operation begins when the target takes it up.
            slot.begun = false;
            self.control.board.idle(slot.reading.session);
        }
        debug_assert_ne!(slot.state, State::InFlight, "slices end before they return");
        Ok(next)
    }
}
