//! A run of order entry on any server: the workload, the books, and the checks of what the run left. Each server
//! provides the connections and drives its sessions.

use super::marker::Marker;
use super::session::Common;
use assay_measure::snapshot::{Fact, StatSet};
use assay_orders::inputs::Bounds;
use assay_orders::ledger::Ledger;
use assay_orders::names::Lists;
use assay_orders::params::Asked;
use assay_orders::part::FromEngine;
use assay_orders::workload::OrderEntry;
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Remarks};
use assay_run::workload::Workload;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What each server provides for a run.
pub(crate) trait Base: Send + Sync {
    fn facts(&self) -> Vec<Fact>;

    fn remarks(&self) -> Remarks;

    /// Threads that drive the sessions: one for each, since a session blocks until its answer arrives.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    /// Connects the sessions of one thread.
    fn driver<'a>(
        &'a self,
        common: &'a Common,
        ledger: &'a Mutex<Ledger>,
        numbers: &mut dyn Iterator<Item = u32>,
    ) -> Result<Box<dyn Driver + 'a>, EngineError>;

    fn sample(&self) -> StatSet;

    fn look(&self, sessions: &mut [Doing]) -> bool;

    fn phase(&self, _name: &'static str, _within: Option<Duration>) {}

    fn overdue(&self, _late: Duration) {}

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Ends the claim, once; first closes the books of the run and checks what it left.
    fn conclude(&self, part: &mut FromEngine, verify: bool);
}

/// An opened data set.
pub(crate) struct OrdersEngine<B: Base> {
    workload: OrderEntry,
    common: Common,
    facts: Vec<Fact>,
    on: B,
    /// Books of the sessions that have ended.
    ledger: Mutex<Ledger>,
    /// What is known about the data set.
    about: FromEngine,
}

impl<B: Base> OrdersEngine<B> {
    /// For a data set whose books are open; `facts` describe the server, and `durability` says what makes a commit durable there.
    pub(crate) fn new(
        (asked, rate_per_s): (Asked, u64),
        found: &Marker,
        mut facts: Vec<Fact>,
        durability: String,
        on: B,
    ) -> Self {
        let told = format!("order entry, scale {}, seed {}", found.scale(), found.seed);
        facts.push(Fact::new("data_set", told));
        Self {
            common: Common {
                bounds: Bounds { customers: (1, found.generator().counts().customers) },
                lists: Lists::default(),
                asked: asked.clone(),
            },
            about: FromEngine {
                scale: found.scale_milli as f64 / 1000.0,
                data_seed: found.seed,
                data_version: found.version,
                partitions: found.partitions,
                isolation: "read committed".to_owned(),
                durability,
                asked: Some(asked.clone()),
                rate_per_s,
                ..FromEngine::default()
            },
            workload: OrderEntry(asked),
            facts,
            on,
            ledger: Mutex::default(),
        }
    }

    /// Closes the books of the run, once, and returns the result.
    fn conclude(&self, verify: bool) -> FromEngine {
        let mut part = self.about.clone();
        let ledger = self.ledger.lock();
        part.ledger = ledger.unwrap_or_else(PoisonError::into_inner).clone();
        self.on.conclude(&mut part, verify);
        part
    }
}

/// A run that could not start also has books to close.
impl<B: Base> Drop for OrdersEngine<B> {
    fn drop(&mut self) {
        self.conclude(false);
    }
}

impl<B: Base> Engine for OrdersEngine<B> {
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

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        self.on.driver_threads(sessions, cpus)
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let mut numbers = assignment.sessions.iter().map(|(number, _)| *number);
        self.on.driver(&self.common, &self.ledger, &mut numbers)
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

    fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.on.phase(name, within);
    }

    fn overdue(&self, late: Duration) {
        self.on.overdue(late);
    }

    fn watched_disks(&self) -> Vec<String> {
        self.on.watched_disks()
    }

    fn close(&self) -> Result<(), EngineError> {
        self.on.close()
    }
}
