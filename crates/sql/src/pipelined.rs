//! The driver of one thread: each of its sessions performs one operation at a time.
//!
//! A thread with one session waits for the answer in the socket. A thread with several ([`Many`]) sends the requests of
//! all and takes answers as they arrive: a thread switch for each answer would cost the client more than everything
//! else it does.

use crate::lost::lost;
use crate::many::{Many, Talks};
use crate::patience::Patience;
use crate::running::{Attachment, OnServer};
use assay_measure::clock::Clock;
use assay_measure::snapshot::StatSet;
use assay_run::engine::{Completion, Driver, EngineError, Op, OpError, Outcome, Slice, SliceDone, Submit, Tag};
use std::time::Duration;

/// A session that sends a request and takes its answer in two steps.
pub(crate) trait TwoStep: Talks {
    /// What the sessions of a run share.
    type Run: OnServer;

    fn number(&self) -> u32;

    /// Why the session cannot continue.
    fn lost(&self) -> Option<&str>;

    /// Sends the first request of an operation.
    fn ask(&mut self, run: &Self::Run, op: &Op) -> Result<Self::Asked, OpError>;

    /// Performs one operation, from request to answer, and returns the number of rows it touched.
    #[inline]
    fn perform(&mut self, run: &Self::Run, op: &Op) -> Result<u64, OpError> {
        let asked = self.ask(run, op)?;
        loop {
            if let Some(rows) = self.answer(asked)? {
                return Ok(rows);
            }
        }
    }

    /// Operations of a slice that the server performs by itself; 0 if it performs none (LOOP=client).
    fn slice_ops(&self) -> usize {
        0
    }

    /// Has the server perform a slice.
    fn slice(&mut self, _run: &Self::Run, _clock: &Clock, _slice: Slice<'_>) -> Result<SliceDone, OpError> {
        Err(OpError::not_ours())
    }

    /// Has the server publish the session's counters, on servers that do so on request.
    fn publish(&mut self, _run: &Self::Run) {}

    /// Adds the session's counts to those of the others.
    fn count(&self, run: &Self::Run, into: &mut StatSet);

    /// Called after the last operation.
    fn leave(&mut self) {}

    /// Logs off, once; an abandoned run leaves a request unanswered.
    fn close(&mut self, run: &Self::Run, unanswered: Option<Self::Asked>);
}

/// The sessions of one thread.
pub(crate) struct Pipeline<'a, S: TwoStep> {
    run: &'a S::Run,
    sessions: Vec<S>,
    /// Waits for several sessions at once.
    many: Option<Many<S>>,
}

impl<'a, S: TwoStep> Pipeline<'a, S> {
    pub(crate) fn open(
        run: &'a S::Run,
        sessions: impl Iterator<Item = Result<S, EngineError>>,
    ) -> Result<Self, EngineError> {
        // If opening fails below, the drop logs off the sessions opened so far.
        let mut driver = Self { run, sessions: Vec::new(), many: None };
        for session in sessions {
            driver.sessions.push(session?);
        }
        let shared = driver.sessions.len() > 1 && driver.slice_ops() == 0;
        if shared && driver.sessions.iter().all(|session| session.socket().is_some()) {
            driver.many = Some(Many::open(&driver.sessions)?);
        }
        Ok(driver)
    }

    /// Why the thread cannot go on.
    fn lost(&self) -> Result<(), EngineError> {
        lost(&self.sessions, |one| (one.number(), one.lost()))
    }

    fn clock(&self) -> &'a Clock {
        &self.run.on().running().clock
    }

    /// Logs off. First cancels a statement still under way after an abandoned run: nobody waits for it, and the server
    /// would notice the closed connection only after it.
    fn log_off(&mut self) {
        let backends = &self.run.on().running().backends;
        let mut answers = !self.run.on().patience().is_some_and(Patience::is_over);
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            let unanswered = self.many.as_mut().and_then(|many| many.forget(tag));
            if unanswered.is_some() && answers {
                // A lost server has nothing to cancel, and a frozen one is asked only once.
                answers = backends.cancel(session.number());
            }
            session.close(self.run, unanswered);
            backends.closed(session.number());
        }
    }
}

impl<S: TwoStep> Driver for Pipeline<'_, S> {
    #[inline]
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let session = &mut self.sessions[tag as usize];
        let result = match &mut self.many {
            Some(many) => match session.ask(self.run, op).and_then(|asked| many.asked(tag, session, asked)) {
                Ok(None) => return Submit::Queued,
                Ok(Some(rows)) => Ok(rows),
                Err(error) => Err(error),
            },
            None => session.perform(self.run, op),
        };
        Submit::Done(Outcome { end_ns: self.clock().now_ns(), result })
    }

    /// A single session never queues anything: this only reports whether the thread can continue.
    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.lost()?;
        let clock = self.clock();
        match &mut self.many {
            Some(many) => many.reap(&mut self.sessions, clock, timeout, out),
            None => Ok(()),
        }
    }

    /// The server publishes a session's counters between two operations.
    fn settles(&self) -> bool {
        self.many.is_some()
    }

    fn slice_ops(&self) -> usize {
        self.sessions.iter().map(S::slice_ops).max().unwrap_or(0)
    }

    fn perform(&mut self, slice: Slice<'_>) -> Result<SliceDone, EngineError> {
        let clock = self.clock();
        let begin_ns = clock.now_ns();
        let done = self.sessions[slice.tag as usize].slice(self.run, clock, slice);
        Ok(done.unwrap_or_else(|failed| {
            let end_ns = clock.now_ns();
            SliceDone { begin_ns, outcomes: vec![Outcome { end_ns, result: Err(failed) }], end_ns }
        }))
    }

    fn stats(&mut self, into: &mut StatSet) {
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            // Publish the session's counters before the reading that follows this mark.
            if !self.many.as_ref().is_some_and(|many| many.waits(tag)) {
                session.publish(self.run);
            }
            session.count(self.run, into);
        }
    }

    fn leave(&mut self, tag: Tag) {
        self.sessions[tag as usize].leave();
        self.run.on().running().backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        let going = self.lost();
        if going.is_ok() {
            let on = self.run.on();
            let pid = |session: &S| on.running().backends.pid(session.number());
            self.sessions.iter().filter_map(pid).for_each(|pid| on.last_look(pid));
        }
        self.log_off();
        going
    }
}

/// Sessions log off however the thread ends.
impl<S: TwoStep> Drop for Pipeline<'_, S> {
    fn drop(&mut self) {
        self.log_off();
    }
}

/// Number of threads for so many sessions; `asked` is DRIVER_THREADS, 0 lets assay choose.
///
/// If there are fewer CPUs than sessions, one thread serves many: taking the available answers one after the other
/// costs less than a thread switch for each. One thread per CPU keeps all CPUs busy; fewer threads did not (one thread
/// for 8 sessions left 14 % of two CPUs idle). Sessions that block need one thread each.
pub(crate) fn threads((blocks, asked): (bool, usize), sessions: usize, cpus: usize) -> usize {
    match (blocks, asked) {
        (true, _) => sessions,
        (false, 0) => sessions.min(cpus),
        (false, asked) => asked.min(sessions),
    }
}

#[cfg(test)]
mod tests {
    use super::threads;

    #[test]
    fn sessions_share_threads_where_not_each_can_have_a_cpu() {
        assert_eq!(threads((false, 0), 2, 2), 2);
        assert_eq!(threads((false, 0), 3, 2), 2);
        assert_eq!(threads((false, 0), 64, 16), 16);
        assert_eq!(threads((false, 0), 64, 1), 1);
        assert_eq!(threads((false, 4), 64, 2), 4);
        assert_eq!(threads((false, 4), 2, 2), 2);
        assert_eq!(threads((true, 4), 64, 2), 64);
    }
}
