//! The driver of one thread: its sessions, each one operation at a time.
//!
//! A thread that has one session waits for its answer in the socket, one that has several takes answers as they come.

use super::super::layout::changed_columns;
use super::MariaEngine;
use super::session::Session;
use super::slices::Sliced;
use crate::lost::lost;
use crate::many::Many;
use crate::watch::Cancel;
use assay_measure::snapshot::StatSet;
use assay_run::engine::{Assignment, Completion, Driver, EngineError, Op, Outcome, Slice, SliceDone, Submit, Tag};
use std::time::Duration;

/// See the module.
pub(super) struct MariaDriver<'a> {
    engine: &'a MariaEngine,
    sessions: Vec<Session>,
    /// With LOOP=server, the slices of each session.
    sliced: Vec<Sliced>,
    /// Waits for several sessions at once.
    many: Option<Many<Session>>,
}

impl<'a> MariaDriver<'a> {
    pub(super) fn open(engine: &'a MariaEngine, assignment: &Assignment) -> Result<Self, EngineError> {
        let mut driver = Self { engine, sessions: Vec::new(), sliced: Vec::new(), many: None };
        for (number, home) in &assignment.sessions {
            let mut session = Session::open(engine, *number, *home)?;
            if engine.in_server
                && let Some(connection) = &mut session.connection
            {
                let run = (engine.packet_bytes, engine.claim);
                let sliced = Sliced::open(connection, &engine.plan, *home, run)?;
                driver.sliced.push(sliced);
            }
            driver.sessions.push(session);
        }
        if driver.sessions.len() > 1 && !engine.in_server {
            driver.many = Some(Many::open(&driver.sessions)?);
        }
        Ok(driver)
    }

    /// Why the thread cannot go on.
    fn lost(&self) -> Result<(), EngineError> {
        lost(&self.sessions, |one| (one.number, one.lost.as_deref()))
    }

    /// Logs off. A statement that is still under way (the run was abandoned) is cancelled first, for nobody waits for
    /// it and its server thread would hear of our end only after it.
    fn log_off(&mut self) {
        let mut answers = !self.engine.on.address.patience.is_over();
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            let busy = self.many.as_ref().is_some_and(|many| many.waits(tag));
            if let Some(connection) = &session.connection
                && busy
                && answers
            {
                // One that is frozen is asked once.
                answers = self.engine.on.token(connection).cancel().is_ok();
            }
            session.close();
            self.engine.on.backends.closed(session.number);
        }
    }
}

impl Driver for MariaDriver<'_> {
    #[inline]
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let plan = &self.engine.plan;
        let session = &mut self.sessions[tag as usize];
        let result = match &mut self.many {
            Some(many) => match session.ask(plan, op).and_then(|()| many.asked(tag, session, ())) {
                Ok(None) => return Submit::Queued,
                Ok(Some(rows)) => Ok(rows),
                Err(error) => Err(error),
            },
            None => session.perform(plan, op),
        };
        Submit::Done(Outcome { end_ns: self.engine.on.clock.now_ns(), result })
    }

    /// With a session alone nothing is ever queued: this only tells whether the thread can go on.
    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.lost()?;
        match &mut self.many {
            Some(many) => many.reap(&mut self.sessions, &self.engine.on.clock, timeout, out),
            None => Ok(()),
        }
    }

    /// What sessions did is published on the server between two operations.
    fn settles(&self) -> bool {
        self.many.is_some()
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
            let rows = outcome.result.as_ref().ok().copied();
            session.counted.sliced(op, rows);
        }
        Ok(done)
    }

    fn stats(&mut self, into: &mut StatSet) {
        let columns = changed_columns(self.engine.plan.redo_stress).len();
        for session in &self.sessions {
            session.counted.add_to(into, columns);
        }
    }

    fn leave(&mut self, tag: Tag) {
        self.sessions[tag as usize].end_transaction();
        self.engine.on.backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.lost()?;
        for session in &self.sessions {
            self.engine.on.closes(session.number);
        }
        self.log_off();
        Ok(())
    }
}

/// However the thread ends, its sessions log off.
impl Drop for MariaDriver<'_> {
    fn drop(&mut self) {
        self.log_off();
    }
}
