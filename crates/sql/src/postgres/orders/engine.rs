//! A run of order entry on a server: its threads and sessions, its books, and the checks of what it left.
//!
//! With functions, one thread calls them for many sessions and takes the answers as they arrive. With single statements
//! each waits for the one before, so every session has a thread of its own.

use super::PostgresOrders;
use super::ddl::Named;
use super::marker;
use super::session::Session;
use crate::lost::lost;
use crate::many::Many;
use crate::orders::books;
use crate::orders::engine::{Base, OrdersEngine};
use crate::orders::marker::Marker;
use crate::orders::session::Common;
use crate::orders::target::Opens;
use crate::postgres::attached::Attached;
use crate::postgres::claim::{self, Purpose};
use crate::postgres::engine::server::{TOLD, connections, settings as server_settings};
use crate::postgres::layout::Names;
use crate::postgres::own;
use crate::postgres::server::Server;
use crate::postgres::wire::Connection;
use assay_measure::config::Settings;
use assay_measure::counter_catalog;
use assay_measure::facts::{ENGINE, SERVER_TOLD};
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_orders::ledger::{Ledger, opening_sql};
use assay_orders::params::Asked;
use assay_orders::part::FromEngine;
use assay_run::engine::{Completion, Doing, Driver, Engine, EngineError, Op, Outcome, Remarks, Submit, Tag};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::sync::Mutex;
use std::time::Duration;

/// Base of a run.
pub(super) struct Run {
    names: Named,
    pub(super) on: Attached,
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
        let engine = OrdersEngine::new((asked, plan.rate_per_s), &found, facts, durability, run);
        Ok(Box::new(engine))
    }
}

impl Base for Run {
    fn facts(&self) -> Vec<Fact> {
        self.on.facts()
    }

    fn remarks(&self) -> Remarks {
        self.on.server.remarks()
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        match (self.client_side, self.threads) {
            (true, _) => sessions,
            (false, 0) => sessions.min(cpus),
            (false, asked) => asked.min(sessions),
        }
    }

    fn driver<'a>(
        &'a self,
        common: &'a Common,
        ledger: &'a Mutex<Ledger>,
        numbers: &mut dyn Iterator<Item = u32>,
    ) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let ways = (self.names.schema.as_str(), self.commit_mode.as_str());
        let sessions: Result<Vec<_>, _> = numbers.map(|number| Session::open(&self.on, common, ways, number)).collect();
        let sessions = sessions?;
        let many = if self.client_side { None } else { Some(Many::open(&sessions)?) };
        Ok(Box::new(OrdersDriver { on: &self.on, common, ledger, sessions, many }))
    }

    fn sample(&self) -> StatSet {
        self.on.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.on.activity.look(sessions)
    }

    fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.on.phase(name, within);
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

/// The sessions of one thread.
struct OrdersDriver<'a> {
    on: &'a Attached,
    common: &'a Common,
    /// Books of the sessions that have ended.
    ledger: &'a Mutex<Ledger>,
    sessions: Vec<Session>,
    /// Waits for several sessions at once.
    many: Option<Many<Session>>,
}

impl OrdersDriver<'_> {
    fn lost(&self) -> Result<(), EngineError> {
        lost(&self.sessions, |one| (one.number, one.lost.as_deref()))
    }

    /// Logs off and hands over the books. First cancels a transaction still under way after an abandoned run, since
    /// nobody will learn whether it committed.
    fn log_off(&mut self) {
        let mut answers = !self.on.connect.patience.is_over();
        let mut books = locked(self.ledger);
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            if let Some(tx) = self.many.as_ref().and_then(|many| many.waits_for(tag)) {
                session.ledger.doubt(tx);
                if answers && let Some(connection) = &session.connection {
                    answers = connection.cancel_token().cancel().is_ok();
                }
            }
            session.close();
            self.on.backends.closed(session.number);
            books.merge(&std::mem::take(&mut session.ledger));
        }
    }
}

impl Driver for OrdersDriver<'_> {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let common = self.common;
        let session = &mut self.sessions[tag as usize];
        let result = match &mut self.many {
            None => session.perform(common, op),
            Some(many) => match session.ask(common, op).and_then(|tx| many.asked(tag, session, tx)) {
                Ok(None) => return Submit::Queued,
                Ok(Some(rows)) => Ok(rows),
                Err(error) => Err(error),
            },
        };
        Submit::Done(Outcome { end_ns: self.on.clock.now_ns(), result })
    }

    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.lost()?;
        match &mut self.many {
            Some(many) => many.reap(&mut self.sessions, &self.on.clock, timeout, out),
            None => Ok(()),
        }
    }

    fn settles(&self) -> bool {
        self.many.is_some()
    }

    fn stats(&mut self, into: &mut StatSet) {
        let mut all = Ledger::default();
        for (tag, session) in self.sessions.iter_mut().enumerate() {
            // Publish the session's counters before the reading that follows this mark.
            if self.many.as_ref().is_none_or(|many| many.waits_for(tag).is_none()) {
                session.publish(self.on);
            }
            all.merge(&session.ledger);
        }
        into.add(counter_catalog::ROWS_CHANGED, all.inserts + all.updates);
        into.add(counter_catalog::USER_COMMITS, all.commits);
        into.add(counter_catalog::USER_ROLLBACKS, all.rollbacks);
    }

    fn leave(&mut self, _tag: Tag) {
        self.on.backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.lost()?;
        for session in &self.sessions {
            // Read what the session's process used while it still exists.
            if let Some(pid) = self.on.backends.pid(session.number) {
                self.on.reads.last_look(pid);
            }
        }
        for session in &mut self.sessions {
            session.close();
            self.on.backends.closed(session.number);
        }
        Ok(())
    }
}

/// Sessions log off however the thread ends.
impl Drop for OrdersDriver<'_> {
    fn drop(&mut self) {
        self.log_off();
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
