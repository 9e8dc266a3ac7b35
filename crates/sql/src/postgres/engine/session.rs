//! The connection of a session, and its transaction.

use super::calls::Calls;
use super::slices::Sliced;
use crate::patience::Wait;
use crate::postgres::errors;
use crate::postgres::wire::{Call, Connection, PgError};
use crate::session::{self, Failed, Keys, Step, there};
use assay_measure::clock::Clock;
use assay_run::engine::{EngineError, Slice, SliceDone};
use assay_run::plan::Plan;
use std::os::fd::BorrowedFd;

/// The transaction state that the server reports outside of any.
const IDLE: u8 = b'I';

/// Connection of a session.
pub(super) struct Link {
    pub(super) connection: Connection,
    begin: Call,
    commit: Call,
    state: u8,
    /// With LOOP=server.
    sliced: Option<Sliced>,
}

impl Link {
    pub(super) fn new(mut connection: Connection, sliced: Option<Sliced>) -> Result<Self, EngineError> {
        let mut utility = |sql| {
            let statement = connection.prepare(sql, &[]).map_err(errors::unusable)?;
            Ok::<_, EngineError>(Call::new(&statement, &[]))
        };
        let (begin, commit) = (utility("begin")?, utility("commit")?);
        Ok(Self { connection, begin, commit, state: IDLE, sliced })
    }
}

impl From<PgError> for Failed {
    fn from(error: PgError) -> Self {
        Self { fatal: error.is_fatal(), error: errors::op_error(&error) }
    }
}

impl session::Link for Link {
    type Calls = Calls;

    const TOGETHER: bool = true;

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connection.socket())
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), Failed> {
        Ok(self.connection.may_wait(wait)?)
    }

    fn stamp(calls: &mut Calls, _plan: &Plan, stamp: u64, _first_key: u64) {
        calls.stamp(stamp);
    }

    #[inline]
    fn ask(&mut self, calls: &mut Calls, step: Step) -> Result<(), Failed> {
        let call = match step {
            Step::Begin => &self.begin,
            Step::Commit => &self.commit,
            Step::Select(keys) => ranged(&mut calls.select, keys),
            Step::Update { keys, .. } => ranged(there(&mut calls.update)?, keys),
            Step::Scan => there(&mut calls.scan)?,
        };
        self.connection.add(call);
        Ok(())
    }

    fn send(&mut self) -> Result<(), Failed> {
        Ok(self.connection.send_calls()?)
    }

    #[inline]
    fn answer(&mut self) -> Result<u64, Failed> {
        let answer = self.connection.answers(&mut self.state)?;
        // Updates return no rows.
        Ok(answer.counted + answer.changed)
    }

    fn commit(&mut self) -> Result<(), Failed> {
        self.connection.add(&self.commit);
        self.connection.round_trip(&mut self.state)?;
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), Failed> {
        if self.state != IDLE {
            self.connection.query("rollback")?;
            self.state = IDLE;
        }
        Ok(())
    }

    fn slice_ops(&self) -> usize {
        self.sliced.as_ref().map_or(0, |sliced| sliced.pace.ops)
    }

    fn slice(&mut self, plan: &Plan, clock: &Clock, slice: Slice<'_>) -> Result<SliceDone, Failed> {
        there(&mut self.sliced)?.perform(&mut self.connection, plan, clock, &slice)
    }

    fn close(self) {
        self.connection.close();
    }
}

/// The call of a statement whose first numbers are these keys.
#[inline]
fn ranged(call: &mut Call, (first, last): Keys) -> &Call {
    call.set_int8(0, first as i64);
    call.set_int8(1, last as i64);
    call
}
