//! The driver of one thread: its sessions, one as a rule.

use super::super::layout::changed_columns;
use super::MariaEngine;
use super::session::Session;
use super::slices::Sliced;
use assay_measure::snapshot::StatSet;
use assay_measure::stats;
use assay_run::dataset::rows::COLUMN_BYTES;
use assay_run::engine::{
    Assignment, Completion, Driver, EngineError, Op, Outcome, Slice, SliceDone, Submit, Tag,
};
use std::time::Duration;

/// See the module.
pub(super) struct MariaDriver<'a> {
    engine: &'a MariaEngine,
    sessions: Vec<Session>,
    /// With LOOP=server, the slices of each session.
    sliced: Vec<Sliced>,
}

impl<'a> MariaDriver<'a> {
    pub(super) fn open(
        engine: &'a MariaEngine,
        assignment: &Assignment,
    ) -> Result<Self, EngineError> {
        let mut driver = Self {
            engine,
            sessions: Vec::new(),
            sliced: Vec::new(),
        };
        for (number, home) in &assignment.sessions {
            let mut session = Session::open(engine, *number, *home)?;
            if engine.in_server
                && let Some(connection) = &mut session.connection
            {
                let sliced = Sliced::open(connection, &engine.plan, *home, engine.packet_bytes)?;
                driver.sliced.push(sliced);
            }
            driver.sessions.push(session);
        }
        Ok(driver)
    }
}

impl Driver for MariaDriver<'_> {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let result = self.sessions[tag as usize].perform(&self.engine.plan, op);
        Submit::Done(Outcome {
            end_ns: self.engine.on.clock.now_ns(),
            result,
        })
    }

    /// Nothing is ever queued: this only tells whether the thread can go on.
    fn reap(&mut self, _timeout: Duration, _out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let lost = |session: &Session| {
            let why = session.lost.as_ref()?;
            Some(EngineError::SessionLost(format!(
                "session {} lost its connection: {why}",
                session.number
            )))
        };
        self.sessions.iter().find_map(lost).map_or(Ok(()), Err)
    }

    fn slice_ops(&self) -> usize {
        let asked = self.sliced.iter().map(|sliced| sliced.pace.ops);
        asked.max().unwrap_or(0)
    }

    fn perform(&mut self, slice: Slice<'_>) -> Result<SliceDone, EngineError> {
        let tag = slice.tag as usize;
        let (engine, ops) = (self.engine, slice.ops);
        let session = &mut self.sessions[tag];
        let done = self.sliced[tag].perform(session, &engine.plan, &engine.on.clock, slice)?;
        for (op, outcome) in ops.iter().zip(&done.outcomes) {
            session.count(op, outcome.result.as_ref().ok().copied());
        }
        Ok(done)
    }

    fn stats(&mut self, into: &mut StatSet) {
        let columns = changed_columns(self.engine.plan.redo_stress).len();
        for session in &self.sessions {
            let counted = session.counted;
            into.add(stats::ROWS_VISITED, counted.visited);
            into.add(stats::ROWS_CHANGED, counted.changed);
            let bytes = counted.changed * (columns * COLUMN_BYTES) as u64;
            into.add(stats::CHANGED_BYTES, bytes);
            into.add(stats::TABLE_SCANS, counted.scans);
            into.add(stats::USER_COMMITS, counted.commits);
            into.add(stats::USER_ROLLBACKS, counted.rollbacks);
        }
    }

    fn leave(&mut self, tag: Tag) {
        self.sessions[tag as usize].end_transaction();
        self.engine.on.backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        let going = self.reap(Duration::ZERO, &mut Vec::new());
        for session in &mut self.sessions {
            self.engine.on.closes(session.number);
            session.connection = None;
            self.engine.on.backends.closed(session.number);
        }
        going
    }
}

/// However the thread ends, nobody is asked to cancel what its sessions do.
impl Drop for MariaDriver<'_> {
    fn drop(&mut self) {
        for session in &self.sessions {
            self.engine.on.backends.closed(session.number);
        }
    }
}
