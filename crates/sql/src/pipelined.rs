//! The driver of one thread: each of its sessions performs one operation at a time.
//!
//! A thread with one session waits for the answer in the socket. A thread with several ([`Many`]) sends the requests of
//! all and takes answers as they arrive: a thread switch for each answer would cost the client more than everything
//! else it does.

use crate::counted::Counted;
use crate::lost::lost;
use crate::many::{Many, Talks};
use crate::patience::Patience;
use crate::slices::Pace;
use crate::watch::{Backends, Cancel};
use assay_measure::clock::Clock;
use assay_measure::snapshot::StatSet;
use assay_run::engine::{
    Assignment, Completion, Driver, EngineError, Op, OpError, Outcome, Slice, SliceDone, Submit, Tag,
};
use std::time::Duration;

/// What the sessions of a run share.
pub(crate) trait Base: Sized {
    type Session: Pipelined<Self>;
    /// State of a session under LOOP=server.
    type Sliced;
    type Token: Cancel;

    fn clock(&self) -> &Clock;

    fn patience(&self) -> &Patience;

    fn backends(&self) -> &Backends<Self::Token>;

    /// Number of columns an update changes.
    fn columns(&self) -> usize;

    /// Reads the kernel's counters of this session while its server process still exists.
    fn last_look(&self, number: u32);

    fn open(&self, number: u32, home: u32) -> Result<Self::Session, EngineError>;

    /// `None` without LOOP=server.
    fn slices(&self, session: &mut Self::Session, home: u32) -> Result<Option<Self::Sliced>, EngineError>;

    fn pace(sliced: &Self::Sliced) -> &Pace;

    fn slice(
        &self,
        session: &mut Self::Session,
        sliced: &mut Self::Sliced,
        slice: Slice<'_>,
    ) -> Result<SliceDone, EngineError>;

    /// Has the server publish the session's counters, on servers that do so on request.
    fn publish(&self, _session: &mut Self::Session) {}
}

/// A session that sends a request and takes its answer in two steps.
pub(crate) trait Pipelined<B>: Talks {
    fn number(&self) -> u32;

    /// Why the session cannot continue.
    fn lost(&self) -> Option<&str>;

    fn counted(&mut self) -> &mut Counted;

    /// Sends the first request of an operation.
    fn ask(&mut self, base: &B, op: &Op) -> Result<Self::Asked, OpError>;

    /// Performs one operation, from request to answer, and returns the number of rows it touched.
    #[inline]
    fn perform(&mut self, base: &B, op: &Op) -> Result<u64, OpError> {
        let asked = self.ask(base, op)?;
        loop {
            if let Some(rows) = self.answer(asked)? {
                return Ok(rows);
            }
        }
    }

    /// Commits the updates that COMMIT_EVERY left uncommitted.
    fn end_transaction(&mut self);

    /// Asks the server to cancel the current statement; returns whether the server can be reached.
    fn cancel(&self, base: &B) -> bool;

    /// Logs off.
    fn close(&mut self);
}

pub(crate) struct Pipeline<'a, B: Base> {
    base: &'a B,
    sessions: Vec<B::Session>,
    /// With LOOP=server: the state of each session.
    sliced: Vec<B::Sliced>,
    /// Waits for several sessions at once.
    many: Option<Many<B::Session>>,
}

impl<'a, B: Base> Pipeline<'a, B> {
    pub(crate) fn open(base: &'a B, assignment: &Assignment) -> Result<Self, EngineError> {
        // If opening fails below, the drop logs off the sessions opened so far.
        let mut driver = Self { base, sessions: Vec::new(), sliced: Vec::new(), many: None };
        for (number, home) in &assignment.sessions {
            let mut session = base.open(*number, *home)?;
            driver.sliced.extend(base.slices(&mut session, *home)?);
            driver.sessions.push(session);
        }
        if driver.sessions.len() > 1 && driver.sliced.is_empty() {
            driver.many = Some(Many::open(&driver.sessions)?);
        }
        Ok(driver)
    }

    /// Why the thread cannot go on.
    fn lost(&self) -> Result<(), EngineError> {
        lost(&self.sessions, |one| (one.number(), one.lost()))
    }

    /// Logs off. First cancels a statement still under way after an abandoned run: nobody waits for it, and the server
    /// would notice the closed connection only after it.
    fn log_off(&mut self) {
        let mut answers = !self.base.patience().is_over();
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            let is_busy = self.many.as_ref().is_some_and(|many| many.waits(tag));
            if is_busy && answers {
                // A lost server has nothing to cancel, and a frozen one is asked only once.
                answers = session.cancel(self.base);
            }
            session.close();
            self.base.backends().closed(session.number());
        }
    }
}

impl<B: Base> Driver for Pipeline<'_, B> {
    #[inline]
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let session = &mut self.sessions[tag as usize];
        let result = match &mut self.many {
            Some(many) => match session.ask(self.base, op).and_then(|asked| many.asked(tag, session, asked)) {
                Ok(None) => return Submit::Queued,
                Ok(Some(rows)) => Ok(rows),
                Err(error) => Err(error),
            },
            None => session.perform(self.base, op),
        };
        Submit::Done(Outcome { end_ns: self.base.clock().now_ns(), result })
    }

    /// A single session never queues anything: this only reports whether the thread can continue.
    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.lost()?;
        match &mut self.many {
            Some(many) => many.reap(&mut self.sessions, self.base.clock(), timeout, out),
            None => Ok(()),
        }
    }

    /// The server publishes a session's counters between two operations.
    fn settles(&self) -> bool {
        self.many.is_some()
    }

    fn slice_ops(&self) -> usize {
        self.sliced.iter().map(|sliced| B::pace(sliced).ops).max().unwrap_or(0)
    }

    fn perform(&mut self, slice: Slice<'_>) -> Result<SliceDone, EngineError> {
        let (tag, ops) = (slice.tag as usize, slice.ops);
        let session = &mut self.sessions[tag];
        let done = self.base.slice(session, &mut self.sliced[tag], slice)?;
        for (op, outcome) in ops.iter().zip(&done.outcomes) {
            let rows = outcome.result.as_ref().ok().copied();
            session.counted().sliced(op, rows);
        }
        Ok(done)
    }

    fn stats(&mut self, into: &mut StatSet) {
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            // Publish the session's counters before the reading that follows this mark.
            if !self.many.as_ref().is_some_and(|many| many.waits(tag)) {
                self.base.publish(session);
            }
            session.counted().add_to(into, self.base.columns());
        }
    }

    fn leave(&mut self, tag: Tag) {
        self.sessions[tag as usize].end_transaction();
        self.base.backends().leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.lost()?;
        for session in &self.sessions {
            self.base.last_look(session.number());
        }
        self.log_off();
        Ok(())
    }
}

/// Sessions log off however the thread ends.
impl<B: Base> Drop for Pipeline<'_, B> {
    fn drop(&mut self) {
        self.log_off();
    }
}
