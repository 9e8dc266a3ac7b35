//! A run of order entry on a server: a thread for each session, the books, and the checks of what the run left.

use super::ddl::Named;
use super::load::within;
use super::marker;
use super::session;
use crate::claim::Purpose;
use crate::mariadb::address::Address;
use crate::mariadb::attached::{Attached, OWN_CONNECTIONS, locked};
use crate::mariadb::claim;
use crate::mariadb::conn::Connection;
use crate::mariadb::engine::facts;
use crate::mariadb::load::connect;
use crate::mariadb::server::Server;
use crate::orders::marker::Marker;
use crate::orders::session::{Common, Sessions};
use crate::orders::{Talk, books, nothing};
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_orders::checks::Words;
use assay_orders::inputs::Bounds;
use assay_orders::ledger::{Ledger, opening_sql};
use assay_orders::names::Lists;
use assay_orders::params::Asked;
use assay_orders::part::FromEngine;
use assay_orders::workload::OrderEntry;
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::workload::Workload;
use std::sync::Mutex;
use std::time::Duration;

/// An opened data set.
pub(super) struct OrdersEngine {
    workload: OrderEntry,
    common: Common,
    names: Named,
    facts: Vec<Fact>,
    on: Attached,
    /// Of sessions that have ended.
    ledger: Mutex<Ledger>,
    /// What is known of the data set.
    about: FromEngine,
}

/// Opens the data set for a run.
pub(super) fn open(
    address: &Address,
    names: Named,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<OrdersEngine, EngineError> {
    let asked = Asked::new(settings)?;
    // There may be no such database to connect to.
    let there = marker::find(&mut connect(address)?, &names)?;
    there.ok_or_else(|| nothing(&names.place()))?;
    let inside = within(address, &names);
    let mut control = claim::take(&inside, Purpose::Run)?;
    let server = super::server_of(&mut control)?;
    server.refuse_read_only()?;
    let wanted = plan.sessions() as u64 + OWN_CONNECTIONS - 1;
    server.refuse_too_few_connections(wanted, "the run")?;
    let found = marker::find(&mut control, &names)?.filter(|found| found.complete);
    let found = found.ok_or_else(|| {
        EngineError::Unusable(format!(
            "{} has no completely loaded data set",
            names.place()
        ))
    })?;
    let facts = facts_of(&mut control, &server, &names, &found)?;
    let about = FromEngine {
        scale: found.scale_milli as f64 / 1000.0,
        data_seed: found.seed,
        data_version: found.version,
        isolation: "read committed".to_owned(),
        durability: durability(&mut control)?,
        asked: Some(asked.clone()),
        ..FromEngine::default()
    };
    let on = Attached::open(
        inside,
        (control, &server),
        plan,
        settings,
        (!asked.client_side, stop),
    )?;
    // From here on somebody closes them again.
    let opening = opening_sql(|name| names.relation(name));
    on.control(|control| control.tell(&opening, "opening the books"))
        .transpose()?;
    Ok(OrdersEngine {
        common: Common {
            bounds: Bounds {
                customers: (1, found.generator().counts().customers),
            },
            lists: Lists::default(),
            asked: asked.clone(),
        },
        workload: OrderEntry(asked),
        names,
        facts,
        on,
        ledger: Mutex::default(),
        about,
    })
}

/// What the server and the data set are.
fn facts_of(
    control: &mut Connection,
    server: &Server,
    names: &Named,
    found: &Marker,
) -> Result<Vec<Fact>, EngineError> {
    let mut facts = vec![
        Fact::new("engine", "MariaDB"),
        Fact::new("server_version", server.version.clone()),
        Fact::new("server_user", server.user.clone()),
        Fact::new("database", names.database.clone()),
        Fact::new("connection_encrypted", facts::encrypted(control)),
        Fact::new(
            "data_set",
            format!("order entry, scale {}, seed {}", found.scale(), found.seed),
        ),
    ];
    facts.extend(facts::settings(control)?);
    Ok(facts)
}

/// What keeps a commit safe.
fn durability(control: &mut Connection) -> Result<String, EngineError> {
    let names = [
        "innodb_flush_log_at_trx_commit",
        "innodb_doublewrite",
        "log_bin",
        "sync_binlog",
    ];
    let of = |name: &str| {
        let rows = control.ask(
            &format!("select @@global.{name}"),
            "asking for its durability",
        )?;
        let value = rows
            .into_iter()
            .flatten()
            .flatten()
            .next()
            .unwrap_or_default();
        Ok(format!("{name}={value}"))
    };
    let all: Result<Vec<String>, EngineError> = names.into_iter().map(of).collect();
    Ok(all?.join(", "))
}

impl OrdersEngine {
    /// Closes the books of the run, once, and says what it came to.
    fn conclude(&self, verify: bool) -> FromEngine {
        let mut part = self.about.clone();
        part.ledger = locked(&self.ledger).clone();
        if let Some(claim) = self.on.release() {
            // A check takes as long as it takes; the claim is kept meanwhile.
            match Connection::open(&self.on.address, None) {
                Ok(mut control) => books::close(&mut control, &self.names, &mut part, verify),
                Err(error) => part.unchecked = error.to_string(),
            }
            drop(claim);
        }
        part
    }
}

/// A run that could not start has books to close too.
impl Drop for OrdersEngine {
    fn drop(&mut self) {
        self.conclude(false);
    }
}

impl Engine for OrdersEngine {
    fn workload(&self) -> &dyn Workload {
        &self.workload
    }

    fn part(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.conclude(self.common.asked.verify)).ok()
    }

    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.on.facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        self.on.server.remarks()
    }

    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let mut sessions = Sessions {
            around: &self.on,
            common: &self.common,
            ledger: &self.ledger,
            sessions: Vec::new(),
        };
        for (number, _) in &assignment.sessions {
            let session = session::open(&self.on, &self.common, *number)?;
            sessions.sessions.push(session);
        }
        Ok(Box::new(sessions))
    }

    fn sample(&self) -> StatSet {
        self.on.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.on.look(sessions)
    }

    fn works_in_driver_threads(&self) -> bool {
        false
    }

    fn overdue(&self, late: Duration) {
        self.on.overdue(late);
    }

    fn watched_disks(&self) -> Vec<String> {
        self.on.host.disks()
    }

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}
