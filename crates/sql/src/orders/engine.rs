//! A run of order entry on any server: the workload, the books, and the checks of what the run left. Each server
//! provides the connections.

use super::marker::Marker;
use super::session::{Base, Common, Run, Session, Wire};
use crate::pipelined::Pipeline;
use crate::running::{Attachment, OnServer};
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_orders::inputs::Bounds;
use assay_orders::names::Lists;
use assay_orders::params::Asked;
use assay_orders::part::FromEngine;
use assay_orders::workload::OrderEntry;
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::workload::Workload;
use std::sync::Mutex;
use std::time::Duration;

/// An opened data set.
pub(crate) struct OrdersEngine<B: Base> {
    workload: OrderEntry,
    facts: Vec<Fact>,
    run: Run<B>,
    /// What is known about the data set.
    about: FromEngine,
}

impl<B: Base> OrdersEngine<B> {
    /// For a data set whose books are open; `facts` describe the server, and `durability` says what makes a commit durable there.
    pub(crate) fn new(
        (mut asked, plan): (Asked, &Plan),
        found: &Marker,
        mut facts: Vec<Fact>,
        durability: String,
        base: B,
    ) -> Self {
        let told = format!("order entry, scale {}, seed {}", found.scale(), found.seed);
        facts.push(Fact::new("data_set", told));
        asked.client_side |= !B::Wire::PROCEDURES;
        Self {
            run: Run {
                common: Common {
                    bounds: Bounds { customers: (1, found.generator().counts().customers) },
                    lists: Lists::default(),
                    asked: asked.clone(),
                },
                base,
                ledger: Mutex::default(),
            },
            about: FromEngine {
                scale: found.scale_milli as f64 / 1000.0,
                data_seed: found.seed,
                data_version: found.version,
                partitions: found.partitions,
                isolation: B::ISOLATION.to_owned(),
                durability,
                asked: Some(asked.clone()),
                rate_per_s: plan.rate_per_s,
                hosts: plan.other_hosts() + 1,
                ..FromEngine::default()
            },
            workload: OrderEntry(asked),
            facts,
        }
    }

    /// Closes the books of the run, once, and returns the result.
    fn conclude(&self, verify: bool) -> FromEngine {
        let mut part = self.about.clone();
        part.ledger = locked(&self.run.ledger).clone();
        self.run.base.conclude(&mut part, verify);
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
        serde_json::to_value(self.conclude(self.run.common.asked.verify)).ok()
    }

    fn facts(&self) -> Vec<Fact> {
        [self.facts.clone(), self.run.on().facts()].concat()
    }

    fn remarks(&self) -> Remarks {
        self.run.on().remarks()
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        self.run.base.driver_threads(sessions, cpus)
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let sessions = assignment.sessions.iter().map(|(number, _)| Session::open(&self.run, *number));
        Ok(Box::new(Pipeline::open(&self.run, sessions)?))
    }

    fn server(&self) -> Option<String> {
        self.run.on().server()
    }

    fn sample(&self) -> StatSet {
        self.run.on().sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.run.on().look(sessions)
    }

    fn works_in_driver_threads(&self) -> bool {
        B::On::IN_DRIVER_THREADS
    }

    fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.run.on().phase(name, within);
    }

    fn overdue(&self, late: Duration) {
        self.run.on().overdue(late);
    }

    fn watched_disks(&self) -> Vec<String> {
        self.run.on().watched_disks()
    }

    fn close(&self) -> Result<(), EngineError> {
        self.run.base.close()
    }
}
