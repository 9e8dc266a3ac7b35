//! A run of order entry on a server: one thread per session, the books, and the checks of what the run left.

use super::MariadbOrders;
use super::ddl::Named;
use super::load::within;
use super::marker;
use super::session::{self, Link};
use crate::claim::Purpose;
use crate::mariadb::attached::{Attached, OWN_CONNECTIONS};
use crate::mariadb::claim;
use crate::mariadb::conn::Connection;
use crate::mariadb::engine::facts;
use crate::mariadb::server::Server;
use crate::orders::engine::OrdersEngine;
use crate::orders::marker::Marker;
use crate::orders::session::{Base, Common};
use crate::orders::target::Opens;
use crate::orders::{Talk, books, nothing};
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
impl Opens for MariadbOrders {
    fn open(
        (address, names): &Self::At,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let asked = Asked::new(settings)?;
        // The database may not exist, so connect without one.
        let there = marker::find(&mut Connection::open(address)?, names)?;
        there.ok_or_else(|| nothing(&names.place()))?;
        let inside = within(address, names);
        let mut control = claim::take(&inside, Purpose::Run)?;
        let server = super::server_of(&mut control)?;
        server.refuse_read_only()?;
        let wanted = plan.sessions() as u64 + OWN_CONNECTIONS - 1;
        server.refuse_too_few_connections(wanted, "the run")?;
        let found = Marker::complete(marker::find(&mut control, names)?, &names.place(), settings)?;
        let mut facts = facts_of(&mut control, &server, names)?;
        if found.partitions > 0 {
            facts.push(Fact::new("references", super::NO_REFERENCES));
        }
        let durability = durability(&mut control)?;
        let on = Attached::open(inside, (control, &server), plan, settings, (!asked.client_side, stop))?;
        // From here on the books are open and must be closed again.
        let opening = opening_sql(|name| names.relation(name));
        on.control(|control| control.tell(&opening, "opening the books")).transpose()?;
        let names = names.clone();
        let run = Run { names, on };
        let engine = OrdersEngine::new((asked, plan), &found, facts, durability, run);
        Ok(Box::new(engine))
    }
}

/// Facts about the server.
fn facts_of(control: &mut Connection, server: &Server, names: &Named) -> Result<Vec<Fact>, EngineError> {
    let mut facts = vec![
        ENGINE.fact(server.product.name()),
        SERVER_TOLD.fact(facts::TOLD),
        Fact::new("server_version", server.version.clone()),
        Fact::new("session_user", server.user.clone()),
        Fact::new("database", names.database.clone()),
        Fact::new("connection_encrypted", facts::encrypted(control)),
        Fact::new("cache_parameter", "innodb_buffer_pool_size"),
    ];
    facts.extend(facts::settings(control)?);
    Ok(facts)
}

/// What makes a commit durable.
fn durability(control: &mut Connection) -> Result<String, EngineError> {
    let names = ["innodb_flush_log_at_trx_commit", "innodb_doublewrite", "log_bin", "sync_binlog"];
    let of = |name: &str| {
        let rows = control.ask(&format!("select @@global.{name}"), "asking for its durability")?;
        let value = rows.into_iter().flatten().flatten().next().unwrap_or_default();
        Ok(format!("{name}={value}"))
    };
    let all: Result<Vec<String>, EngineError> = names.into_iter().map(of).collect();
    Ok(all?.join(", "))
}

impl OnServer for Run {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.on
    }
}

impl Base for Run {
    type Wire = Link;

    fn connect(&self, common: &Common, number: u32) -> Result<Link, EngineError> {
        session::open(&self.on, common, number)
    }

    fn conclude(&self, part: &mut FromEngine, verify: bool) {
        let Some(claim) = self.on.release() else {
            return;
        };
        // A check may take long; the claim is kept meanwhile.
        match Connection::open(&self.on.address) {
            Ok(mut control) => books::close(&mut control, &self.names, part, verify),
            Err(error) => part.unchecked = error.to_string(),
        }
        drop(claim);
    }
}
