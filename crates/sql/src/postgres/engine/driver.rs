//! The driver of one thread: its sessions, each one operation at a time.
//!
//! A thread that has one session waits for its answer in the socket. A thread that has several ([`Many`]) sends the
//! requests of all, and takes the answers as they come: a switch of threads for each answer would cost the client more
//! than all else it does.

use super::PgEngine;
use super::options::Loop;
use super::session::Session;
use super::slices::Sliced;
use crate::lost::lost;
use crate::many::Many;
use crate::postgres::layout::changed_columns;
use assay_measure::snapshot::StatSet;
use assay_run::engine::{Assignment, Completion, Driver, EngineError, Op, Outcome, Slice, SliceDone, Submit, Tag};

use std::time::Duration;

/// See the module.
pub(super) struct PgDriver<'a> {
    engine: &'a PgEngine,
    sessions: Vec<Session>,
    /// With LOOP=server, the procedure of each session.
    sliced: Vec<Sliced>,
    /// Waits for several sessions at once.
    many: Option<Many<Session>>,
}

impl<'a> PgDriver<'a> {
    pub(super) fn open(engine: &'a PgEngine, assignment: &Assignment) -> Result<Self, EngineError> {
        let mut sessions = Vec::with_capacity(assignment.sessions.len());
        let mut sliced = Vec::new();
        for &(number, home) in &assignment.sessions {
            let mut session = Session::open(engine, number, home)?;
            if engine.options.run_loop == Loop::Server
                && let Some(connection) = &mut session.connection
            {
                sliced.push(Sliced::open(connection, &engine.options, &engine.plan, home)?);
            }
            sessions.push(session);
        }
        let alone = sessions.len() == 1 || engine.options.run_loop == Loop::Server;
        let many = if alone { None } else { Some(Many::open(&sessions)?) };
        Ok(Self { engine, sessions, sliced, many })
    }

    /// Why the thread cannot go on.
    fn lost(&self) -> Result<(), EngineError> {
        lost(&self.sessions, |one| (one.number, one.lost.as_deref()))
    }

    /// Logs off. A statement that is still under way (the run was abandoned) is cancelled first, for nobody waits
    /// for it and its server process would hear of our end only after it.
    fn log_off(&mut self) {
        let mut answers = !self.engine.on.connect.patience.is_over();
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            let busy = self.many.as_ref().is_some_and(|many| many.waits(tag));
            if busy
                && answers
                && let Some(connection) = &session.connection
            {
                // A server that is gone has nothing left to cancel, and one that is frozen is asked once.
                answers = connection.cancel_token().cancel().is_ok();
            }
            session.close();
            self.engine.on.backends.closed(session.number);
        }
    }
}

impl Driver for PgDriver<'_> {
    #[inline]
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let engine = self.engine;
        let session = &mut self.sessions[tag as usize];
        let result = match &mut self.many {
            Some(many) => {
                match session.ask(&engine.options, &engine.plan, op).and_then(|asked| many.asked(tag, session, asked)) {
                    Ok(None) => return Submit::Queued,
                    Ok(Some(rows)) => Ok(rows),
                    Err(error) => Err(error),
                }
            }
            None => session.perform(&engine.options, &engine.plan, op),
        };
        Submit::Done(Outcome { end_ns: engine.on.clock.now_ns(), result })
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
        self.sliced.iter().map(|sliced| sliced.pace.ops).max().unwrap_or(0)
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
        // What a session did is on the server's books before the reading that follows this mark.
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            if !self.many.as_ref().is_some_and(|many| many.waits(tag)) {
                session.publish(&self.engine.on.server);
            }
        }
        let columns = changed_columns(self.engine.plan.redo_stress).count();
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
            // What its process used must be read while the process is there.
            if let Some(pid) = self.engine.on.backends.pid(session.number) {
                self.engine.on.reads.last_look(pid);
            }
        }
        self.log_off();
        Ok(())
    }
}

/// However the thread ends, its sessions log off.
impl Drop for PgDriver<'_> {
    fn drop(&mut self) {
        self.log_off();
    }
}
