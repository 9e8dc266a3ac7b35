//! Sessions of a run: one connection each. Every operation is a prepared statement with its own start and end time;
//! with LOOP=server, the server performs slices of operations by itself.

mod calls;
pub(super) mod facts;
mod session;
mod slices;

use super::address::Address;
use super::attached::{Attached, OWN_CONNECTIONS};
use super::claim;
use super::conn::Connection;
use super::layout::changed_columns;
use super::marker::{self, Marked};
use super::product::Product;
use super::server::Server;
use crate::claim::Purpose;
use crate::patience::Patience;
use crate::pipelined::{Base, Pipeline};
use crate::slices::{Pace, refuse_unfit};
use crate::watch::Backends;
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Remarks, Slice, SliceDone};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::workload::Workload;
use assay_slob::Slob;
use std::time::Duration;

/// An opened data set.
pub(super) struct MariaEngine {
    plan: Plan,
    /// READ_MODE=batched.
    batched: bool,
    /// LOOP=server.
    in_server: bool,
    /// Procedures perform the slices; they are dropped with the run.
    stored: bool,
    /// The session that holds the claim.
    claim: u32,
    /// DRIVER_THREADS.
    threads: usize,
    /// Longest statement, bytes.
    packet_bytes: u64,
    facts: Vec<Fact>,
    on: Attached,
}

/// Opens the data set for a run.
pub(super) fn open(
    address: Address,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<Box<dyn Engine>, EngineError> {
    let in_server = settings.text("LOOP") == "server";
    if in_server {
        refuse_unfit(plan)?;
    }
    let mut control = claim::take(&address, Purpose::Run)?;
    let server = Server::ask(&mut control)?;
    if plan.update_pct > 0 {
        server.refuse_read_only()?;
    }
    let wanted = plan.sessions() as u64 + OWN_CONNECTIONS - 1;
    server.refuse_too_few_connections(wanted, "the run")?;
    let marked = claimed(&mut control, &address.database, plan)?;
    let batched = settings.text("READ_MODE") == "batched";
    let modes = (batched, in_server);
    let facts = facts::facts(&mut control, &address.database, &server, &marked, modes)?;
    let packet_bytes = server.packet_bytes;
    let stored = in_server && control.product == Product::MySql;
    let claim = control.id();
    let claimed = (control, &server);
    let on = Attached::open(address, claimed, plan, settings, (in_server, stop))?;
    let engine = MariaEngine {
        plan: plan.clone(),
        claim,
        stored,
        batched,
        in_server,
        threads: settings.int("DRIVER_THREADS") as usize,
        packet_bytes,
        facts,
        on,
    };
    if stored {
        let make =
            |control: &mut Connection| (1..=plan.schemas).try_for_each(|home| slices::create(control, plan, home));
        engine.on.control(make).transpose()?;
    }
    Ok(Box::new(engine))
}

/// Reads the data set again under the claim, since it may have been replaced meanwhile.
fn claimed(control: &mut Connection, database: &str, plan: &Plan) -> Result<Marked, EngineError> {
    let marked = marker::find(control, database)?.ok_or_else(|| super::nothing_here(database))?;
    marked.refuse_changed(plan, &format!("database {database}"), "page")?;
    Ok(marked)
}

/// Number of threads for so many sessions. If there are fewer CPUs than sessions, one thread serves many, because a
/// thread switch for each answer would cost more than everything else. Slices need one thread per session, since it
/// blocks.
fn threads((shared, asked): (bool, usize), sessions: usize, cpus: usize) -> usize {
    match (shared, asked) {
        (false, _) => sessions,
        (true, 0) => sessions.min(cpus),
        (true, asked) => asked.min(sessions),
    }
}

impl Base for MariaEngine {
    type Session = session::Session;
    type Sliced = slices::Sliced;
    type Token = super::attached::Token;

    fn clock(&self) -> &Clock {
        &self.on.clock
    }

    fn patience(&self) -> &Patience {
        &self.on.address.patience
    }

    fn backends(&self) -> &Backends<Self::Token> {
        &self.on.backends
    }

    fn columns(&self) -> usize {
        changed_columns(self.plan.redo_stress).len()
    }

    fn last_look(&self, number: u32) {
        self.on.closes(number);
    }

    fn open(&self, number: u32, home: u32) -> Result<session::Session, EngineError> {
        session::Session::open(self, number, home)
    }

    fn slices(&self, session: &mut session::Session, home: u32) -> Result<Option<slices::Sliced>, EngineError> {
        let connection = session.connection.as_mut().filter(|_| self.in_server);
        let run = (self.packet_bytes, self.claim);
        connection.map(|connection| slices::Sliced::open(connection, &self.plan, home, run)).transpose()
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
}

impl Engine for MariaEngine {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.on.facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        self.on.server.remarks()
    }

    fn workload(&self) -> &dyn Workload {
        &Slob
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        threads((!self.in_server, self.threads), sessions, cpus)
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        Ok(Box::new(Pipeline::open(self, assignment)?))
    }

    fn sample(&self) -> StatSet {
        self.on.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.on.look(sessions)
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
        self.on.host.disks()
    }

    fn close(&self) -> Result<(), EngineError> {
        let Some(mut control) = self.on.release() else {
            return Ok(());
        };
        if self.stored {
            marker::drop_loops(&mut control, &marker::loops_of(self.claim))?;
        }
        Ok(())
    }
}

/// A run that could not start leaves nothing behind either.
impl Drop for MariaEngine {
    fn drop(&mut self) {
        // Errors are ignored; the next prepare or destroy finds what is left.
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::threads;

    #[test]
    fn sessions_share_threads_where_not_each_can_have_a_cpu() {
        assert_eq!(threads((true, 0), 2, 2), 2);
        assert_eq!(threads((true, 0), 64, 2), 2);
        assert_eq!(threads((true, 4), 64, 2), 4);
        assert_eq!(threads((true, 4), 2, 2), 2);
        assert_eq!(threads((false, 4), 64, 2), 64);
    }
}
