//! Sessions of a run: one connection each; every operation is a prepared statement with its own start and end time.
//!
//! [`server`] checks whether the server can serve the plan, [`session`] implements a session, [`crate::watch`] cancels
//! abandoned statements. Design: `docs/design/postgres-session.md`.

mod calls;
pub(super) mod errors;
mod options;
mod plans;
pub(super) mod server;
mod session;
mod slices;
#[cfg(test)]
mod tests;

use super::At;
use super::attached::Attached;
use super::check::nothing_here;
use super::claim::{self, Purpose};
use super::growth;
use super::layout::changed_columns;
use super::marker::{self, Found, Ours};
use super::site::Guard;
use super::wire::{CancelToken, Connection};
use crate::patience::Patience;
use crate::pipelined::{Base, Pipeline};
use crate::slices::Pace;
use crate::watch::Backends;
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Remarks, Slice, SliceDone};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::workload::Workload;
use assay_slob::Slob;
use options::{Loop, Options};
use std::sync::Mutex;
use std::time::Duration;

/// An opened data set.
struct PgEngine {
    plan: Plan,
    options: Options,
    facts: Vec<Fact>,
    /// What a run holds on a server besides its sessions.
    on: Attached,
    /// Keeps another role's tables as they were examined.
    guard: Mutex<Guard>,
    /// Statement that makes a session act as the data set's owner.
    acting: Option<String>,
    /// How the data set had grown before this run; empty if it had not.
    grown: String,
}

/// Opens the data set for a run.
pub(super) fn open(at: &At, plan: &Plan, settings: &Settings, stop: &Stop) -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(PgEngine::open(at, plan, settings, stop)?))
}

impl PgEngine {
    fn open(at: &At, plan: &Plan, settings: &Settings, stop: &Stop) -> Result<Self, EngineError> {
        let options = Options::new(settings, plan)?;
        let mut control = claim::take(&at.options, &options.names, Purpose::Run)?;
        let mut facts = server::examine(&mut control, plan, &options)?;
        let ours = claimed(&mut control, plan, &options)?;
        let tables = ours.marked.tables(&options.names, |n| n <= plan.schemas);
        let writes = plan.update_pct > 0;
        let guard = Guard::stand(&at.options, &options.names, &ours.owner, &tables, writes)?;
        facts.push(Fact::new("data_set_owner", ours.owner.describe()));
        let grown = growth::find(&mut control, &options.names, &ours.marked)?;
        let schema = options.names.schema();
        let on = Attached::open(&at.place, at.options.clone(), control, schema, plan, settings, stop)?;
        Ok(Self {
            plan: plan.clone(),
            options,
            facts,
            on,
            guard: Mutex::new(guard),
            acting: ours.owner.acting(),
            grown: growth::told_of(&grown),
        })
    }
}

/// Reads the data set again under the claim, since it may have been replaced meanwhile.
fn claimed(control: &mut Connection, plan: &Plan, options: &Options) -> Result<Box<Ours>, EngineError> {
    let names = &options.names;
    let Found::Ours(ours) = marker::find(control, names)? else {
        return Err(nothing_here(names));
    };
    let place = format!("schema {}", names.schema());
    ours.marked.refuse_changed(plan, &place, "block")?;
    Ok(ours)
}

impl Base for PgEngine {
    type Session = session::Session;
    type Sliced = slices::Sliced;
    type Token = CancelToken;

    fn clock(&self) -> &Clock {
        &self.on.clock
    }

    fn patience(&self) -> &Patience {
        &self.on.connect.patience
    }

    fn backends(&self) -> &Backends<CancelToken> {
        &self.on.backends
    }

    fn columns(&self) -> usize {
        changed_columns(self.plan.redo_stress).count()
    }

    fn last_look(&self, number: u32) {
        if let Some(pid) = self.on.backends.pid(number) {
            self.on.reads.last_look(pid);
        }
    }

    fn open(&self, number: u32, home: u32) -> Result<session::Session, EngineError> {
        session::Session::open(self, number, home)
    }

    fn slices(&self, session: &mut session::Session, home: u32) -> Result<Option<slices::Sliced>, EngineError> {
        let connection = session.connection.as_mut().filter(|_| self.options.run_loop == Loop::Server);
        connection.map(|connection| slices::Sliced::open(connection, &self.options, &self.plan, home)).transpose()
    }

    fn pace(sliced: &slices::Sliced) -> &Pace {
        &sliced.pace
    }

    fn slice(
        &self,
        session: &mut session::Session,
        sliced: &mut slices::Sliced,
        slice: Slice<'_>,
    ) -> Result<SliceDone, EngineError> {
        sliced.perform(session, &self.plan, &self.on.clock, slice)
    }

    /// Not possible within a transaction. If the connection fails here, the next operation fails and reports it.
    fn publish(&self, session: &mut session::Session) {
        if session.state == b'I'
            && let Some(connection) = &mut session.connection
        {
            let _ = self.on.server.flush(connection);
        }
    }
}

impl Engine for PgEngine {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.on.facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = self.on.server.remarks();
        if !self.grown.is_empty() {
            remarks.warnings.push(format!("The data set had grown before this run: {}.", self.grown));
        }
        remarks
    }

    fn workload(&self) -> &dyn Workload {
        &Slob
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        self.options.driver_threads(sessions, cpus)
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        Ok(Box::new(Pipeline::open(self, assignment)?))
    }

    fn sample(&self) -> StatSet {
        self.on.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.on.activity.look(sessions)
    }

    fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.on.phase(name, within);
    }

    fn overdue(&self, late: Duration) {
        self.on.overdue(late);
    }

    fn works_in_driver_threads(&self) -> bool {
        false
    }

    fn watched_disks(&self) -> Vec<String> {
        assay_block::disks_under(&self.on.reads.watched_paths())
    }

    fn close(&self) -> Result<(), EngineError> {
        let gone = self.on.close();
        if let Some(control) = self.on.release() {
            locked(&self.guard).end();
            control.close();
        }
        gone
    }
}
