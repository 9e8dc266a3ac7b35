//! A run of order entry on a server: its sessions on threads, its books, and the checks of what it left.
//!
//! Functions are called by a thread for many sessions, which takes the answers as they come; single statements wait for each
//! other, so such a session has a thread of its own.

use super::ddl::Named;
use super::marker;
use super::session::{Common, Session};
use crate::many::Many;
use crate::orders::books;
use crate::place::Place;
use crate::postgres::attached::{Attached, locked};
use crate::postgres::claim::{self, Purpose};
use crate::postgres::engine::server::{connections, settings as server_settings};
use crate::postgres::layout::Names;
use crate::postgres::own;
use crate::postgres::server::Server;
use crate::postgres::wire::Connection;
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_measure::stats;
use assay_orders::inputs::Bounds;
use assay_orders::ledger::{Ledger, opening_sql};
use assay_orders::names::Lists;
use assay_orders::params::Asked;
use assay_orders::part::FromEngine;
use assay_orders::workload::OrderEntry;
use assay_run::engine::{
    Assignment, Completion, Doing, Driver, Engine, EngineError, Op, Outcome, Remarks, Submit, Tag,
};
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
    threads: usize,
}

/// Opens the data set for a run.
pub(super) fn open(
    place: &Place,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<OrdersEngine, EngineError> {
    let names = Named {
        schema: settings.text("ORDERS_SCHEMA").to_owned(),
    };
    let asked = Asked::new(settings)?;
    let connect = own::options(place)?;
    let mut control = claim::take(&connect, &Names::of_schema(&names.schema)?, Purpose::Run)?;
    let server = Server::ask(&mut control)?;
    server.refuse_read_only()?;
    connections(&mut control, plan)?;
    let found = marker::find(&mut control, &names)?.filter(|found| found.complete);
    let found = found.ok_or_else(|| {
        EngineError::Unusable(format!(
            "schema {} has no completely loaded data set",
            names.schema
        ))
    })?;
    let customers = found.generator().counts().customers;
    let opened = opening_sql(|name| names.relation(name));
    let mut facts = vec![
        Fact::new("engine", "PostgreSQL"),
        Fact::new("server_version", server.version.clone()),
        Fact::new(
            "data_set",
            format!("order entry, scale {}, seed {}", found.scale(), found.seed),
        ),
    ];
    facts.extend(server_settings(&mut control)?);
    let about = FromEngine {
        scale: found.scale_milli as f64 / 1000.0,
        data_seed: found.seed,
        data_version: found.version,
        isolation: "read committed".to_owned(),
        durability: durability(&mut control, settings)?,
        asked: Some(asked.clone()),
        ..FromEngine::default()
    };
    let on = Attached::open(place, connect, control, &names.schema, plan, settings, stop)?;
    // From here on somebody closes them again.
    on.tell(&opened, "opening the books")?;
    Ok(OrdersEngine {
        common: Common {
            bounds: Bounds {
                customers: (1, customers),
            },
            lists: Lists::default(),
            schema: names.schema.clone(),
            commit_mode: match settings.text("COMMIT_MODE") {
                "default" => String::new(),
                mode => mode.to_owned(),
            },
            asked: asked.clone(),
        },
        workload: OrderEntry(asked),
        names,
        facts,
        on,
        ledger: Mutex::default(),
        about,
        threads: settings.int("DRIVER_THREADS") as usize,
    })
}

impl OrdersEngine {
    /// Closes the books of the run, once, and says what it came to.
    fn conclude(&self, verify: bool) -> FromEngine {
        let mut part = self.about.clone();
        part.ledger = locked(&self.ledger).clone();
        if let Some(mut control) = self.on.release() {
            // Without it the checks are slower.
            let _ = control.query(super::CHECK_MEMORY);
            books::close(&mut control, &self.names, &mut part, verify);
            control.close();
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

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        match (self.common.asked.client_side, self.threads) {
            (true, _) => sessions,
            (false, 0) => sessions.min(cpus),
            (false, asked) => asked.min(sessions),
        }
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let numbers = assignment.sessions.iter().map(|(number, _)| *number);
        let sessions: Result<Vec<_>, _> = numbers
            .map(|number| Session::open(&self.on, &self.common, number))
            .collect();
        let sessions = sessions?;
        let many = match self.common.asked.client_side {
            true => None,
            false => Some(Many::open(&sessions)?),
        };
        Ok(Box::new(OrdersDriver {
            engine: self,
            sessions,
            many,
        }))
    }

    fn sample(&self) -> StatSet {
        self.on.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.on.activity.look(sessions)
    }

    fn works_in_driver_threads(&self) -> bool {
        false
    }

    fn overdue(&self, late: Duration) {
        self.on.overdue(late);
    }

    fn watched_disks(&self) -> Vec<String> {
        assay_block::disks_under(&self.on.reads.watched_paths())
    }

    fn close(&self) -> Result<(), EngineError> {
        self.on.close()
    }
}

/// Sessions of one thread.
struct OrdersDriver<'a> {
    engine: &'a OrdersEngine,
    sessions: Vec<Session>,
    /// Waits for several sessions at once.
    many: Option<Many<Session>>,
}

impl OrdersDriver<'_> {
    fn lost(&self) -> Result<(), EngineError> {
        let lost = |session: &Session| {
            let why = session.lost.as_ref()?;
            Some(EngineError::SessionLost(format!(
                "session {} lost its connection: {why}",
                session.number
            )))
        };
        self.sessions.iter().find_map(lost).map_or(Ok(()), Err)
    }

    /// Logs off and hands the books over. A transaction that is still under way (the run was abandoned) is cancelled
    /// first: nobody will hear whether it was committed.
    fn log_off(&mut self) {
        let mut answers = !self.engine.on.connect.patience.is_over();
        let mut books = locked(&self.engine.ledger);
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            if let Some(tx) = self.many.as_ref().and_then(|many| many.waits_for(tag)) {
                session.ledger.doubt(tx);
                if answers && let Some(connection) = &session.connection {
                    answers = connection.cancel_token().cancel().is_ok();
                }
            }
            session.close();
            self.engine.on.backends.closed(session.number);
            books.merge(&std::mem::take(&mut session.ledger));
        }
    }
}

impl Driver for OrdersDriver<'_> {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let common = &self.engine.common;
        let session = &mut self.sessions[tag as usize];
        let result = match &mut self.many {
            None => session.perform(common, op),
            Some(many) => match session
                .ask(common, op)
                .and_then(|tx| many.asked(tag, session, tx))
            {
                Ok(None) => return Submit::Queued,
                Ok(Some(rows)) => Ok(rows),
                Err(error) => Err(error),
            },
        };
        Submit::Done(Outcome {
            end_ns: self.engine.on.clock.now_ns(),
            result,
        })
    }

    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.lost()?;
        match &mut self.many {
            Some(many) => many.reap(&mut self.sessions, &self.engine.on.clock, timeout, out),
            None => Ok(()),
        }
    }

    fn settles(&self) -> bool {
        self.many.is_some()
    }

    fn stats(&mut self, into: &mut StatSet) {
        let mut all = Ledger::default();
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            // What a session did is on the server's books before the reading that follows this mark.
            if self
                .many
                .as_ref()
                .is_none_or(|many| many.waits_for(tag).is_none())
            {
                session.publish(&self.engine.on);
            }
            all.merge(&session.ledger);
        }
        into.add(stats::ROWS_CHANGED, all.inserts + all.updates);
        into.add(stats::USER_COMMITS, all.commits);
        into.add(stats::USER_ROLLBACKS, all.rollbacks);
    }

    fn leave(&mut self, _tag: Tag) {
        self.engine.on.backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.lost()?;
        for session in &self.sessions {
            // What its process used must be read while the process is there.
            if let Some(pid) = self.engine.on.backends.pid(session.number) {
                self.engine.on.reads.last_look(pid);
            }
        }
        for session in &mut self.sessions {
            session.close();
            self.engine.on.backends.closed(session.number);
        }
        Ok(())
    }
}

/// However the thread ends, its sessions log off.
impl Drop for OrdersDriver<'_> {
    fn drop(&mut self) {
        self.log_off();
    }
}

/// What keeps a commit safe, as the sessions have it.
fn durability(control: &mut Connection, settings: &Settings) -> Result<String, EngineError> {
    let mut told_all = Vec::new();
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        let rows = control
            .query(&format!("select current_setting('{name}')"))
            .map_err(own::told("asking for its durability"))?;
        let value = rows
            .rows
            .first()
            .and_then(|row| row.first().cloned().flatten())
            .unwrap_or_default();
        let value = match (name, settings.text("COMMIT_MODE")) {
            ("synchronous_commit", mode) if mode != "default" => mode.to_owned(),
            _ => value,
        };
        told_all.push(format!("{name}={value}"));
    }
    Ok(told_all.join(", "))
}
