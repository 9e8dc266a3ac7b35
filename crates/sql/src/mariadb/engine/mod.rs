//! Sessions of a run: a thread and a connection each, every operation a prepared statement with its own start and end;
//! or, with LOOP=server, slices of operations that the server performs by itself.

mod calls;
mod driver;
pub(super) mod facts;
mod session;
mod slices;

use super::address::Address;
use super::attached::{Attached, OWN_CONNECTIONS};
use super::claim;
use super::conn::Connection;
use super::marker::{self, Found, Marked};
use super::server::Server;
use crate::claim::Purpose;
use crate::slices::refuse_unfit;
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::time::Duration;

/// An opened data set.
pub(super) struct MariaEngine {
    plan: Plan,
    /// READ_MODE=batched.
    batched: bool,
    /// LOOP=server.
    in_server: bool,
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
    if in_server {
        server.refuse_other_than_mariadb(
            "LOOP=server needs MariaDB's BEGIN NOT ATOMIC, a block that is not stored: use LOOP=client",
        )?;
    }
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
    let claimed = (control, &server);
    let on = Attached::open(address, claimed, plan, settings, (in_server, stop))?;
    Ok(Box::new(MariaEngine {
        plan: plan.clone(),
        batched,
        in_server,
        packet_bytes,
        facts,
        on,
    }))
}

/// The data set as it is now that it is claimed: what was seen before may have been another.
fn claimed(
    control: &mut Connection,
    database: &str,
    plan: &Plan,
) -> Result<Box<Marked>, EngineError> {
    let Found::Ours(marked) = marker::find(control, database)? else {
        return Err(super::nothing_here(database));
    };
    let marker = &marked.marker;
    let is = (marked.usable(), marker.scale, marker.scan_blocks);
    let wanted = (plan.schemas, plan.scale, plan.scan_blocks);
    let fits = is.0 >= wanted.0 && is.1 >= wanted.1 && (plan.scan_pct == 0 || is.2 >= wanted.2);
    if fits && marker.block_bytes == plan.block_bytes {
        return Ok(marked);
    }
    Err(EngineError::Unusable(format!(
        "the data set in database {database} has changed since assay checked it: it has {} SLOB schemas of {} rows \
         and {} scan pages of {} bytes, but {} of {} and {} of {} were planned; run again",
        is.0, is.1, is.2, marker.block_bytes, wanted.0, wanted.1, wanted.2, plan.block_bytes
    )))
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

    /// The driver waits for each answer in its socket.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        Ok(Box::new(driver::MariaDriver::open(self, assignment)?))
    }

    fn sample(&self) -> StatSet {
        self.on.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.on.look(sessions)
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
        drop(self.on.release());
        Ok(())
    }
}
