//! A run of order entry on a server: one thread per session, the books, and the checks of what the run left.

use super::super::Visit;
use super::super::attached::{Attached, Site};
use super::super::server::{Server, TOLD};
use super::OracleOrders;
use super::ddl::Named;
use super::load::{self, Link};
use super::session;
use crate::claim::Purpose;
use crate::orders::engine::OrdersEngine;
use crate::orders::marker::Marker;
use crate::orders::session::{Base, Common};
use crate::orders::target::{Life, Opens};
use crate::orders::{Talk, books};
use crate::running::OnServer;
use assay_measure::config::Settings;
use assay_measure::facts::{ENGINE, SERVER_TOLD};
use assay_measure::snapshot::Fact;
use assay_orders::checks::Words;
use assay_orders::ledger::opening_sql;
use assay_orders::params::Asked;
use assay_orders::part::FromEngine;
use assay_run::engine::{Engine, EngineError};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// Base of a run.
pub(super) struct Run {
    names: Named,
    on: Attached,
}

/// Opens the data set for a run.
impl Opens for OracleOrders {
    fn open(visit: &Visit, plan: &Plan, settings: &Settings, stop: &Stop) -> Result<Box<dyn Engine>, EngineError> {
        let (claim, there) = OracleOrders::claim(visit, Purpose::Run)?;
        let found = Marker::complete(there.found, &there.place, settings)?;
        let asked = Asked::new(settings)?;
        let mut session = visit.open()?;
        let (server, names) = super::asked(&mut *session, visit)?;
        server.refuse_read_only()?;
        let site = Site { way: visit.way.clone(), address: visit.address.clone(), claim: claim.0 };
        let on = Attached::open(site, &server, plan, settings, stop)?;
        // From here on the books are open and must be closed again.
        let opening = opening_sql(|name| names.relation(name));
        Link(session).tell(&opening, "opening the books")?;
        let (facts, durability) = (facts(&on, &server), durability(&on));
        let run = Run { names, on };
        let engine = OrdersEngine::new((asked, plan), &found, facts, durability, run);
        Ok(Box::new(engine))
    }
}

/// Facts about the server.
fn facts(on: &Attached, server: &Server) -> Vec<Fact> {
    let mut facts = vec![
        ENGINE.fact("Oracle Database"),
        SERVER_TOLD.fact(TOLD),
        Fact::new("server_version", server.version.clone()),
        Fact::new("session_user", server.user.clone()),
        Fact::new("database", server.database.clone()),
        Fact::new("instance", server.instance.clone()),
        Fact::new("container", server.container.clone()),
        Fact::new("services", on.address.services()),
        Fact::new("tablespace", server.tablespace.name.clone()),
    ];
    facts.extend(on.instance.facts());
    facts
}

/// What makes a commit durable.
fn durability(on: &Attached) -> String {
    let set = |name: &str| match on.instance.text(name) {
        "" => format!("{name} not known"),
        value => format!("{name}={value}"),
    };
    format!("commits wait for the log; {}, {}, {}", set("commit_wait"), set("commit_logging"), set("log mode"))
}

impl OnServer for Run {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.on
    }
}

impl Base for Run {
    type Wire = session::Link;

    fn connect(&self, common: &Common, number: u32) -> Result<session::Link, EngineError> {
        session::open(&self.on, common, number)
    }

    fn conclude(&self, part: &mut FromEngine, verify: bool) {
        let Some(claim) = self.on.release() else {
            return;
        };
        // The claim is kept meanwhile.
        match load::patient(&*self.on.way, &self.on.address) {
            Ok(mut control) => books::close(&mut control, &self.names, part, verify),
            Err(error) => part.unchecked = error.to_string(),
        }
        drop(claim);
    }
}
