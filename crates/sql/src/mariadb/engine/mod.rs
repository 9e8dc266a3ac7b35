//! Sessions of a run: one connection each. Every operation is a prepared statement with its own start and end time;
//! with LOOP=server, the server performs slices of operations by itself.

mod calls;
pub(super) mod facts;
mod session;
mod slices;

use super::address::Address;
use super::attached::{Attached, OWN_CONNECTIONS};
use super::claim;
use super::conn::{Connection, told};
use super::layout::changed_columns;
use super::marker::{self, Marked};
use super::product::Product;
use super::server::Server;
use crate::claim::Purpose;
use crate::pipelined::threads;
use crate::running::OnServer;
use crate::session::{Base, SlobEngine};
use crate::slices::refuse_unfit;
use assay_measure::config::Settings;
use assay_measure::snapshot::Fact;
use assay_run::engine::{Engine, EngineError};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use calls::Calls;
use session::Link;
use slices::Sliced;

/// An opened data set.
struct MariaEngine {
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
    Ok(Box::new(SlobEngine(engine)))
}

/// Reads the data set again under the claim, since it may have been replaced meanwhile.
fn claimed(control: &mut Connection, database: &str, plan: &Plan) -> Result<Marked, EngineError> {
    let marked = marker::find(control, database)?.ok_or_else(|| super::nothing_here(database))?;
    marked.refuse_changed(plan, &format!("database {database}"), "page")?;
    Ok(marked)
}

impl OnServer for MariaEngine {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.on
    }
}

impl Base for MariaEngine {
    type Link = Link;

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn columns(&self) -> usize {
        changed_columns(self.plan.redo_stress).len()
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        threads((self.in_server, self.threads), sessions, cpus)
    }

    fn connect(&self, number: u32, home: u32) -> Result<Link, EngineError> {
        let mut connection = self.on.session(number)?;
        let mrr = connection.product.batches(self.batched);
        connection
            .run(&format!("set autocommit = 1, optimizer_switch = '{mrr}', wait_timeout = 31536000"))
            .map_err(told("preparing a session"))?;
        let run = (self.packet_bytes, self.claim);
        let sliced = self.in_server.then(|| Sliced::open(&mut connection, &self.plan, home, run));
        Ok(Link::new(connection, sliced.transpose()?))
    }

    fn calls(&self, link: &mut Link, schema: u32) -> Result<Calls, EngineError> {
        Calls::prepare(&mut link.connection, &self.plan, schema)
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
