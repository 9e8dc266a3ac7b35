//! A run of order entry on a server: its threads and sessions, its books, and the checks of what it left.
//!
//! With functions, one thread calls them for many sessions and takes the answers as they arrive. With single statements
//! each waits for the one before, so every session has a thread of its own.

use super::PostgresOrders;
use super::ddl::Named;
use super::marker;
use super::session::{self, Link};
use crate::orders::books;
use crate::orders::engine::OrdersEngine;
use crate::orders::marker::Marker;
use crate::orders::session::{Base, Common};
use crate::orders::target::Opens;
use crate::pipelined::threads;
use crate::postgres::attached::Attached;
use crate::postgres::claim::{self, Purpose};
use crate::postgres::engine::server::{TOLD, connections, settings as server_settings};
use crate::postgres::layout::Names;
use crate::postgres::own;
use crate::postgres::server::Server;
use crate::postgres::wire::Connection;
use crate::running::OnServer;
use assay_measure::config::Settings;
use assay_measure::facts::{ENGINE, SERVER_TOLD};
use assay_measure::snapshot::Fact;
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
    client_side: bool,
    threads: usize,
    /// synchronous_commit of the sessions; empty keeps the server's.
    commit_mode: String,
}

/// Opens the data set for a run.
impl Opens for PostgresOrders {
    fn open(
        (place, names): &Self::At,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let asked = Asked::new(settings)?;
        let connect = own::options(place)?;
        let mut control = claim::take(&connect, &Names::of_schema(&names.schema)?, Purpose::Run)?;
        let server = Server::ask(&mut control)?;
        server.refuse_read_only()?;
        connections(&mut control, plan)?;
        let found = marker::find(&mut control, names)?;
        let found = Marker::complete(found, &names.place(), settings)?;
        let opened = opening_sql(|name| names.relation(name));
        let mut facts = vec![
            ENGINE.fact("PostgreSQL"),
            SERVER_TOLD.fact(TOLD),
            Fact::new("server_version", server.version.clone()),
        ];
        facts.extend(server_settings(&mut control)?);
        let durability = durability(&mut control, settings)?;
        let on = Attached::open(place, connect, control, &names.schema, plan, settings, stop)?;
        // From here on the books are open and must be closed again.
        on.tell(&opened, "opening the books")?;
        let run = Run {
            names: names.clone(),
            on,
            client_side: asked.client_side,
            threads: settings.int("DRIVER_THREADS") as usize,
            commit_mode: match settings.text("COMMIT_MODE") {
                "default" => String::new(),
                mode => mode.to_owned(),
            },
        };
        let engine = OrdersEngine::new((asked, plan), &found, facts, durability, run);
        Ok(Box::new(engine))
    }
}

impl OnServer for Run {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.on
    }
}

impl Base for Run {
    type Wire = Link;

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        threads((self.client_side, self.threads), sessions, cpus)
    }

    fn connect(&self, common: &Common, number: u32) -> Result<Link, EngineError> {
        session::open(&self.on, common, (&self.names.schema, &self.commit_mode), number)
    }

    /// If the connection fails here, the next transaction fails and reports it.
    fn publish(&self, link: &mut Link) {
        let _ = self.on.server.flush(&mut link.connection);
    }

    fn close(&self) -> Result<(), EngineError> {
        self.on.close()
    }

    fn conclude(&self, part: &mut FromEngine, verify: bool) {
        let Some(mut control) = self.on.release() else {
            return;
        };
        // If this fails, the checks are only slower.
        let _ = control.query(super::CHECK_MEMORY);
        books::close(&mut control, &self.names, part, verify);
        control.close();
    }
}

/// What makes a commit durable, in the sessions' settings.
fn durability(control: &mut Connection, settings: &Settings) -> Result<String, EngineError> {
    let mut told_all = Vec::new();
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        let rows = control
            .query(&format!("select current_setting('{name}')"))
            .map_err(own::told("asking for its durability"))?;
        let value = rows.rows.first().and_then(|row| row.first().cloned().flatten()).unwrap_or_default();
        let value = match (name, settings.text("COMMIT_MODE")) {
            ("synchronous_commit", mode) if mode != "default" => mode.to_owned(),
            _ => value,
        };
        told_all.push(format!("{name}={value}"));
    }
    Ok(told_all.join(", "))
}
