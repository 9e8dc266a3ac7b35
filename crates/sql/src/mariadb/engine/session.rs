//! The connection of a session.

use super::super::conn::{Connection, MyError, op_error};
use super::super::layout::changed_columns;
use super::super::wire::Call;
use super::calls::Calls;
use super::slices::Sliced;
use crate::patience::Wait;
use crate::session::{self, Failed, Keys, Step, there};
use assay_measure::clock::Clock;
use assay_run::dataset::rows::fill_columns;
use assay_run::engine::{Slice, SliceDone};
use assay_run::plan::Plan;
use std::os::fd::BorrowedFd;

/// Connection of a session.
pub(super) struct Link {
    pub(super) connection: Connection,
    begin: Call,
    commit: Call,
    /// With LOOP=server.
    sliced: Option<Sliced>,
}

impl Link {
    pub(super) fn new(connection: Connection, sliced: Option<Sliced>) -> Self {
        Self { connection, begin: Call::query("begin"), commit: Call::query("commit"), sliced }
    }
}

impl From<MyError> for Failed {
    fn from(error: MyError) -> Self {
        Self { fatal: error.is_fatal(), error: op_error(&error) }
    }
}

impl session::Link for Link {
    type Calls = Calls;

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connection.socket())
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), Failed> {
        Ok(self.connection.may_wait(wait)?)
    }

    fn stamp(calls: &mut Calls, plan: &Plan, stamp: u64, first_key: u64) {
        let Calls { update: Some(update), content, .. } = calls else {
            return;
        };
        fill_columns(content, changed_columns(plan.redo_stress).len(), stamp, first_key, plan.obfuscate);
        update.set_texts(content);
    }

    fn ask(&mut self, calls: &mut Calls, step: Step) -> Result<(), Failed> {
        let call = match step {
            Step::Begin => &self.begin,
            Step::Commit => &self.commit,
            Step::Select(keys) => ranged(&mut calls.select, keys),
            Step::Update { keys, .. } => ranged(there(&mut calls.update)?, keys),
            Step::Scan => there(&mut calls.scan)?,
        };
        Ok(self.connection.ask_call(call)?)
    }

    fn answer(&mut self) -> Result<u64, Failed> {
        Ok(self.connection.answer()?)
    }

    fn commit(&mut self) -> Result<(), Failed> {
        Ok(self.connection.run("commit")?)
    }

    fn rollback(&mut self) -> Result<(), Failed> {
        Ok(self.connection.run("rollback")?)
    }

    fn slice_ops(&self) -> usize {
        self.sliced.as_ref().map_or(0, |sliced| sliced.pace.ops)
    }

    fn slice(&mut self, plan: &Plan, clock: &Clock, slice: Slice<'_>) -> Result<SliceDone, Failed> {
        there(&mut self.sliced)?.perform(&mut self.connection, plan, clock, &slice)
    }
}

/// The call of a statement whose only numbers are these keys.
fn ranged(call: &mut Call, keys: Keys) -> &Call {
    call.set_number(0, keys.0);
    call.set_number(1, keys.1);
    call
}
