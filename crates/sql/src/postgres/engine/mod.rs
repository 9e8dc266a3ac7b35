//! Sessions of a run: one connection each; every operation is a prepared statement with its own start and end time.
//!
//! [`server`] checks whether the server can serve the plan, [`crate::session`] implements a session over [`session`]'s
//! connection. Design: `docs/design/postgres-session.md`.

mod calls;
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
use super::errors;
use super::growth;
use super::layout::changed_columns;
use super::marker::{self, Found, Ours};
use super::site::Guard;
use super::wire::Connection;
use crate::pipelined::threads;
use crate::running::{Attachment, OnServer};
use crate::session::{Base, SlobEngine};
use assay_measure::config::Settings;
use assay_measure::locked::locked;
use assay_measure::snapshot::Fact;
use assay_run::engine::{Engine, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use calls::Calls;
use options::Options;
use session::Link;
use slices::Sliced;
use std::sync::Mutex;

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
    Ok(Box::new(SlobEngine(PgEngine::open(at, plan, settings, stop)?)))
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

impl OnServer for PgEngine {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.on
    }
}

impl Base for PgEngine {
    type Link = Link;

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn columns(&self) -> usize {
        changed_columns(self.plan.redo_stress).count()
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = self.on.remarks();
        if !self.grown.is_empty() {
            remarks.warnings.push(format!("The data set had grown before this run: {}.", self.grown));
        }
        remarks
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        threads((self.options.in_server, self.options.threads), sessions, cpus)
    }

    fn connect(&self, number: u32, home: u32) -> Result<Link, EngineError> {
        let mut connection = self.on.session(number, &self.options.session_settings())?;
        // Nothing after this needs the rights of the role that logged in.
        if let Some(acting) = &self.acting {
            connection.query(acting).map_err(errors::unusable)?;
        }
        let sliced = self.options.in_server.then(|| Sliced::open(&mut connection, &self.options, &self.plan, home));
        Link::new(connection, sliced.transpose()?)
    }

    fn calls(&self, link: &mut Link, schema: u32) -> Result<Calls, EngineError> {
        Calls::prepare(&mut link.connection, &self.options, &self.plan, schema)
    }

    /// If the connection fails here, the next operation fails and reports it.
    fn publish(&self, link: &mut Link) {
        let _ = self.on.server.flush(&mut link.connection);
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
