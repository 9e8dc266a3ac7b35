//! The driver of one thread: its sessions, one operation at a time.

use super::PgEngine;
use super::options::Loop;
use super::session::{Counted, Session};
use super::slices::Sliced;
use crate::dataset::rows::COLUMN_BYTES;
use crate::postgres::layout::changed_columns;
use assay_measure::snapshot::StatSet;
use assay_measure::stats;
use assay_run::engine::{
    Assignment, Completion, Driver, EngineError, Op, Outcome, Slice, SliceDone, Submit, Tag,
};

use std::time::Duration;

/// See the module.
pub(super) struct PgDriver<'a> {
    engine: &'a PgEngine,
    sessions: Vec<Session>,
    /// With LOOP=server, the procedure of each session.
    sliced: Vec<Sliced>,
    changed_bytes_a_row: u64,
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
                sliced.push(Sliced::open(
                    connection,
                    &engine.options,
                    &engine.plan,
                    home,
                )?);
            }
            sessions.push(session);
        }
        Ok(Self {
            engine,
            sessions,
            sliced,
            changed_bytes_a_row: (changed_columns(engine.plan.redo_stress).count() * COLUMN_BYTES)
                as u64,
        })
    }
}

impl Driver for PgDriver<'_> {
    #[inline]
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let engine = self.engine;
        let result = self.sessions[tag as usize].perform(&engine.options, &engine.plan, op);
        Submit::Done(Outcome {
            end_ns: engine.clock.now_ns(),
            result,
        })
    }

    /// Nothing is ever queued: this only tells whether the thread can go on.
    fn reap(&mut self, _timeout: Duration, _out: &mut Vec<Completion>) -> Result<(), EngineError> {
        for session in &self.sessions {
            if let Some(why) = &session.lost {
                return Err(EngineError::SessionLost(format!(
                    "session {} lost its connection: {why}",
                    session.number
                )));
            }
        }
        Ok(())
    }

    fn slice_ops(&self) -> usize {
        self.sliced
            .iter()
            .map(|sliced| sliced.ops)
            .max()
            .unwrap_or(0)
    }

    fn perform(&mut self, slice: Slice<'_>) -> Result<SliceDone, EngineError> {
        let tag = slice.tag as usize;
        let (engine, ops) = (self.engine, slice.ops);
        let session = &mut self.sessions[tag];
        let done = self.sliced[tag].perform(session, &engine.plan, &engine.clock, slice)?;
        for (op, outcome) in ops.iter().zip(&done.outcomes) {
            session.count(op, outcome.result.as_ref().ok().copied());
        }
        Ok(done)
    }

    fn stats(&mut self, into: &mut StatSet) {
        // What a session did is on the server's books before the reading that follows this mark.
        for session in &mut self.sessions {
            session.publish(&self.engine.server);
        }
        let mut all = Counted::default();
        for session in &self.sessions {
            all.add(session.counted);
        }
        into.add(stats::ROWS_VISITED, all.rows_visited);
        into.add(stats::ROWS_CHANGED, all.rows_changed);
        into.add(
            stats::CHANGED_BYTES,
            all.rows_changed * self.changed_bytes_a_row,
        );
        into.add(stats::TABLE_SCANS, all.scans);
        into.add(stats::USER_COMMITS, all.commits);
        into.add(stats::USER_ROLLBACKS, all.rollbacks);
    }

    fn leave(&mut self, tag: Tag) {
        self.sessions[tag as usize].end_transaction();
        self.engine.backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.reap(Duration::ZERO, &mut Vec::new())?;
        for session in &mut self.sessions {
            // What its process used must be read while the process is there.
            if let Some(pid) = self.engine.backends.pid(session.number) {
                self.engine.reads.last_look(pid);
            }
            session.close();
            self.engine.backends.closed(session.number);
        }
        Ok(())
    }
}

/// However the thread ends, its sessions log off.
impl Drop for PgDriver<'_> {
    fn drop(&mut self) {
        for session in &mut self.sessions {
            session.close();
            self.engine.backends.closed(session.number);
        }
    }
}
