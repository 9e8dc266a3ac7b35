//! A run of order entry: the sessions, the books, and the checks of what the run left.

use super::super::attached::{Attached, Opened};
use super::super::file::{File, failure};
use super::SqliteOrders;
use super::ddl::Named;
use super::statements::statement;
use crate::claim::Purpose;
use crate::orders::engine::OrdersEngine;
use crate::orders::marker::Marker;
use crate::orders::session::{Base, Common, Wire};
use crate::orders::target::{Life, Opens};
use crate::orders::{Talk, books};
use crate::running::OnServer;
use assay_measure::config::Settings;
use assay_measure::snapshot::Fact;
use assay_orders::checks::Words;
use assay_orders::ledger::opening_sql;
use assay_orders::params::Asked;
use assay_orders::part::FromEngine;
use assay_orders::program::{Row, STATEMENTS, Statement, Value};
use assay_run::engine::{Engine, EngineError, OpError};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use rusqlite::types::Null;

/// Base of a run.
struct Run(Attached);

/// Opens the data set for a run.
impl Opens for SqliteOrders {
    fn open(at: &File, plan: &Plan, settings: &Settings, stop: &Stop) -> Result<Box<dyn Engine>, EngineError> {
        let (mut held, there) = SqliteOrders::claim(at, Purpose::Run)?;
        let found = Marker::complete(there.found, &there.place, settings)?;
        let asked = Asked::new(settings)?;
        // From here on the books are open and must be closed again.
        held.keeper.tell(&opening_sql(|name| Named.relation(name)), "opening the books")?;
        let durability = match at.synchronous.as_str() {
            "full" => "commits wait until the device has the log",
            "normal" => "commits do not wait for the device: only checkpoints do",
            _ => "nothing waits for the device",
        };
        let durability = format!("{durability} (SQLITE_SYNCHRONOUS={})", at.synchronous);
        let run = Run(Attached::open(at.clone(), held, false, plan, settings, stop)?);
        let form = "client: SQLite has no procedures; each statement is a call of the library, in BEGIN IMMEDIATE and COMMIT; \
             those that only read are not one transaction";
        let facts = vec![Fact::new("transactions_by", form)];
        Ok(Box::new(OrdersEngine::new((asked, plan), &found, facts, durability, run)))
    }
}

impl OnServer for Run {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.0
    }
}

impl Base for Run {
    type Wire = Link;

    const ISOLATION: &'static str = "serializable: one writer at a time, each reading statement sees a snapshot";

    fn connect(&self, _common: &Common, number: u32) -> Result<Link, EngineError> {
        Ok(Link { on: self.0.session(number)?, statements: STATEMENTS.map(statement).to_vec() })
    }

    fn conclude(&self, part: &mut FromEngine, verify: bool) {
        if let Some(mut held) = self.0.release() {
            books::close(&mut held.keeper, &Named, part, verify);
        }
    }
}

/// Connection of a session.
struct Link {
    on: Opened,
    statements: Vec<Vec<(String, Vec<usize>)>>,
}

impl Wire for Link {
    type Error = rusqlite::Error;

    const PROCEDURES: bool = false;

    fn failure(error: &rusqlite::Error) -> (OpError, bool) {
        let mut told = failure(error);
        // Retry after a lock timeout, as elsewhere after a deadlock.
        told.retryable |= told.class == "lock timeout";
        (told, false)
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        self.on.begin()
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        self.on.commit()
    }

    fn rollback(&mut self) -> rusqlite::Result<()> {
        self.on.rollback()
    }

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> rusqlite::Result<Vec<Row>> {
        let parts = &self.statements[statement as usize];
        let mut numbers = Vec::new();
        let mut rows = Vec::new();
        for (sql, marks) in parts {
            rows = self.rows(sql, marks, values)?;
            numbers.extend(rows.first().and_then(|row| row.numbers[0]));
        }
        if let (Statement::NextIds, [customer, address, card]) = (statement, numbers.as_slice()) {
            rows = vec![Row { numbers: [Some(*customer), Some(*address), Some(*card)], text: None }];
        }
        Ok(rows)
    }
}

impl Link {
    fn rows(&self, sql: &str, marks: &[usize], values: &[Value<'_>]) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.on.db.0.prepare_cached(sql)?;
        for (at, value) in (1..).zip(marks.iter().map(|at| &values[*at])) {
            match value {
                Value::Int(n) => statement.raw_bind_parameter(at, n)?,
                Value::Text(text) => statement.raw_bind_parameter(at, text)?,
                Value::Null => statement.raw_bind_parameter(at, Null)?,
            }
        }
        // What returns nothing has a row for having changed some.
        if statement.column_count() == 0 {
            let changed = statement.raw_execute()?;
            return Ok(if changed > 0 { vec![Row::default()] } else { Vec::new() });
        }
        let mut found = statement.raw_query();
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let number = |at| row.get::<_, Option<i64>>(at);
            rows.push(Row { numbers: [number(0)?, number(1)?, number(2)?], text: row.get(3)? });
        }
        Ok(rows)
    }
}
