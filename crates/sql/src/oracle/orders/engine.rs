//! A run of order entry on a server: a thread for each session, the books, and the checks of what the run left.

use super::super::attached::{Attached, Site, locked};
use super::super::server::Server;
use super::ddl::Named;
use super::load::{self, Link};
use super::session;
use crate::orders::marker::Marker;
use crate::orders::session::{Common, Sessions};
use crate::orders::{Talk, books};
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
    site: Site,
    names: Named,
    found: &Marker,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<OrdersEngine, EngineError> {
    let asked = Asked::new(settings)?;
    let mut session = site.way.open(&site.address.data, site.address.answer)?;
    let (server, _) = super::asked(&mut *session, settings)?;
    server.refuse_read_only()?;
    let on = Attached::open(site, server.major, plan, settings, stop)?;
    let about = FromEngine {
        scale: found.scale_milli as f64 / 1000.0,
        data_seed: found.seed,
        data_version: found.version,
        isolation: "read committed".to_owned(),
        durability: durability(&on),
        asked: Some(asked.clone()),
        ..FromEngine::default()
    };
    // From here on somebody closes them again.
    let opening = opening_sql(|name| names.relation(name));
    Link(session).tell(&opening, "opening the books")?;
    Ok(OrdersEngine {
        common: Common {
            bounds: Bounds {
                customers: (1, found.generator().counts().customers),
            },
            lists: Lists::default(),
            asked: asked.clone(),
        },
        facts: facts(&on, &server, found),
        workload: OrderEntry(asked),
        names,
        on,
        ledger: Mutex::default(),
        about,
    })
}

/// What the server and the data set are.
fn facts(on: &Attached, server: &Server, found: &Marker) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("engine", "Oracle Database"),
        Fact::new("server_version", server.version.clone()),
        Fact::new("server_user", server.user.clone()),
        Fact::new("database", server.database.clone()),
        Fact::new("instance", server.instance.clone()),
        Fact::new("container", server.container.clone()),
        Fact::new("services", on.address.services()),
        Fact::new("tablespace", server.tablespace.name.clone()),
        Fact::new(
            "data_set",
            format!("order entry, scale {}, seed {}", found.scale(), found.seed),
        ),
    ];
    facts.extend(on.instance.facts());
    facts
}

/// What keeps a commit safe.
fn durability(on: &Attached) -> String {
    let set = |name: &str| match on.instance.text(name) {
        "" => format!("{name} not known"),
        value => format!("{name}={value}"),
    };
    format!(
        "commits wait for the log; {}, {}, {}",
        set("commit_wait"),
        set("commit_logging"),
        set("log mode")
    )
}

impl OrdersEngine {
    /// Closes the books of the run, once, and says what it came to.
    fn conclude(&self, verify: bool) -> FromEngine {
        let mut part = self.about.clone();
        part.ledger = locked(&self.ledger).clone();
        if let Some(claim) = self.on.release() {
            // The claim is kept meanwhile.
            match load::patient(&*self.on.way, &self.on.address) {
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
        self.on.remarks()
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
            sessions.sessions.push(session::open(&self.on, *number)?);
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

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}
