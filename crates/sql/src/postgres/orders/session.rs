//! The connection of one order-entry session, with its prepared statements.

use super::functions;
use crate::orders::session::{Argument, Common, Wire, arguments};
use crate::patience::Wait;
use crate::postgres::attached::Attached;
use crate::postgres::errors;
use crate::postgres::layout::quote;
use crate::postgres::wire::{Bind, Connection, PgError, Prepared, Values};
use assay_orders::inputs::Inputs;
use assay_orders::mix::ALL;
use assay_orders::params::Pause;
use assay_orders::program::{Effects, Row, STATEMENTS, Statement, Value};
use assay_run::engine::{EngineError, OpError};
use std::os::fd::BorrowedFd;

/// Number of results of a function.
const RETURNED: usize = 6;
/// Most arguments of a function, and of a statement.
const ARGUMENTS: usize = 17;

/// Resolves names to PostgreSQL's own objects first, then to the data set's.
pub(super) fn path_sql(schema: &str) -> String {
    format!("set search_path = pg_catalog, {}, pg_temp", quote(schema))
}

/// Connection of a session.
pub(super) struct Link {
    pub(super) connection: Connection,
    /// Functions by transaction; empty if statements are sent.
    functions: Vec<Prepared>,
    statements: Vec<Prepared>,
    in_transaction: bool,
}

/// Connects and prepares; `commit_mode` sets synchronous_commit unless empty.
pub(super) fn open(
    on: &Attached,
    common: &Common,
    (schema, commit_mode): (&str, &str),
    number: u32,
) -> Result<Link, EngineError> {
    let mut setup = format!(
        "{}; set default_transaction_isolation = 'read committed'; set jit = off; set plan_cache_mode = force_generic_plan; \
         set max_parallel_workers_per_gather = 0",
        path_sql(schema)
    );
    if !commit_mode.is_empty() {
        setup.push_str(&format!("; set synchronous_commit = {commit_mode}"));
    }
    let mut connection = on.session(number, &setup)?;
    let mut prepare = |sql: &str, types: &[u32]| connection.prepare(sql, types).map_err(errors::unusable);
    let (mut functions, mut statements) = (Vec::new(), Vec::new());
    if common.asked.client_side {
        for statement in STATEMENTS {
            let sql = functions::statement(statement);
            statements.push(prepare(&sql, &functions::statement_types(statement, &sql))?);
        }
    } else {
        for tx in ALL {
            let sql = functions::call(tx, common.asked.commit_logon);
            functions.push(prepare(&sql, &functions::call_types(tx))?);
        }
    }
    Ok(Link { connection, functions, statements, in_transaction: false })
}

impl Link {
    /// Runs a statement that begins or ends a transaction.
    fn run(&mut self, sql: &str, begins: bool) -> Result<(), PgError> {
        self.connection.query(sql)?;
        self.in_transaction = begins;
        Ok(())
    }
}

impl Wire for Link {
    type Error = PgError;

    fn failure(error: &PgError) -> (OpError, bool) {
        (errors::op_error(error), error.is_fatal())
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        (!self.functions.is_empty()).then(|| self.connection.socket())
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), PgError> {
        self.connection.may_wait(wait)
    }

    fn ask(&mut self, inputs: &Inputs<'_>, pause: Pause) -> Result<(), PgError> {
        let mut binds = [Bind::Null; ARGUMENTS];
        let mut places = binds.iter_mut();
        let mut bind = |value| {
            if let Some(into) = places.next() {
                *into = value;
            }
        };
        arguments(inputs, |argument| {
            bind(match argument {
                Argument::Int(n) => Bind::Int4(n),
                Argument::Long(n) => Bind::Int8(n),
                Argument::Flag(is) => Bind::Bool(is),
                Argument::Text(text) => Bind::Text(text),
                Argument::List(numbers) => Bind::Int4s(numbers),
            });
        });
        for ns in [pause.min_ns, pause.max_ns] {
            bind(Bind::Float8(ns as f64 / 1e9));
        }
        let bound = ARGUMENTS - places.len();
        self.connection.ask(&self.functions[inputs.tx.index()], &binds[..bound])
    }

    fn answer(&mut self) -> Result<Effects, PgError> {
        let mut returned = None;
        self.connection.rows(&mut |values| {
            let mut all = [0; RETURNED];
            let mut places = all.iter_mut().zip(values);
            let is_whole = values.len() == RETURNED
                && places.all(|(into, value)| int8(*value).map(|number| *into = number).is_some());
            returned = is_whole.then_some(all);
        })?;
        // What it did is then unknown: the transaction is in doubt, not one without effects.
        let odd = || PgError::Refused("a function of order entry returned no valid answer".to_owned());
        returned.map(Effects::of).ok_or_else(odd)
    }

    fn begin(&mut self) -> Result<(), PgError> {
        self.run("begin", true)
    }

    fn commit(&mut self) -> Result<(), PgError> {
        self.run("commit", false)
    }

    fn commit_logon(&mut self) -> Result<(), PgError> {
        self.run("commit; begin", true)
    }

    fn rollback(&mut self) -> Result<(), PgError> {
        // A function that fails leaves no transaction.
        if self.in_transaction { self.run("rollback", false) } else { Ok(()) }
    }

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, PgError> {
        let mut binds = [Bind::Null; ARGUMENTS];
        for (into, value) in binds.iter_mut().zip(values) {
            *into = match value {
                Value::Int(n) => Bind::Int8(*n),
                Value::Text(text) => Bind::Text(text),
                Value::Null => Bind::Null,
            };
        }
        let mut rows = Vec::new();
        let prepared = &self.statements[statement as usize];
        self.connection.execute(prepared, &binds[..values.len()], &mut |row| rows.push(row_of(row)))?;
        Ok(rows)
    }

    fn close(self) {
        self.connection.close();
    }
}

fn int8(value: Option<&[u8]>) -> Option<i64> {
    value.and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes)
}

fn row_of(values: &Values<'_>) -> Row {
    let value = |at: usize| values.get(at).copied().flatten();
    Row {
        numbers: [0, 1, 2].map(|at| int8(value(at))),
        text: value(3).map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
    }
}
