//! The connection of one order-entry session, with its prepared statements.

use super::ddl::SEQUENCE_CACHE;
use super::procedures;
use super::statements::{DRAWN, statement};
use crate::mariadb::attached::Attached;
use crate::mariadb::conn::{Connection, MyError, Prepared, op_error, told};
use crate::mariadb::wire::{self, Bind};
use crate::orders::session::{Common, Plain, Wire, plain};
use assay_orders::inputs::Inputs;
use assay_orders::mix::{ALL, Tx};
use assay_orders::model::SEQUENCES;
use assay_orders::params::Pause;
use assay_orders::program::{Effects, Row, STATEMENTS, Statement, Value};
use assay_run::engine::{EngineError, OpError};
use std::ops::Range;

/// A prepared statement, and which value each placeholder stands for.
type Marked = (Prepared, Vec<usize>);

/// The procedure of a transaction, and the sequences whose numbers the caller passes.
type Called = (Prepared, Vec<usize>);

/// Connection of a session.
pub(super) struct Link {
    connection: Connection,
    /// Procedures by transaction; empty if statements are sent.
    procedures: Vec<Called>,
    statements: Vec<Marked>,
    /// Numbers of each of [`SEQUENCES`] that this session has reserved and not used, if the server has no sequences.
    reserved: [Range<i64>; SEQUENCES.len()],
    /// Of the last procedure.
    effects: Effects,
}

/// Number of results of a procedure.
const ANSWERED: usize = 6;

/// Sessions read committed data; days and hours are in UTC.
const SETUP: &str = "set session transaction isolation level read committed; set autocommit = 1, time_zone = '+00:00', \
                     wait_timeout = 31536000";

/// Connects and prepares.
pub(super) fn open(on: &Attached, common: &Common, number: u32) -> Result<Link, EngineError> {
    let mut connection = on.session(number)?;
    for sql in SETUP.split("; ") {
        connection.run(sql).map_err(told("preparing a session"))?;
    }
    if common.asked.commit_logon {
        let set = connection.run(procedures::COMMIT_LOGON);
        set.map_err(told("preparing a session"))?;
    }
    let product = connection.product;
    let mut prepare = |sql: &str| connection.prepare(sql).map_err(told("preparing a statement"));
    let (mut procedures, mut statements) = (Vec::new(), Vec::new());
    if common.asked.client_side {
        for one in STATEMENTS {
            let (sql, values) = statement(one, product);
            statements.push((prepare(&sql)?, values));
        }
    } else {
        for tx in ALL {
            let prepared = prepare(&procedures::call(tx, product))?;
            procedures.push((prepared, procedures::drawn(tx, product)));
        }
    }
    let reserved = Default::default();
    Ok(Link { connection, procedures, statements, reserved, effects: Effects::default() })
}

impl Link {
    /// Reserves new numbers once the last are used, in a separate transaction before one that may need them.
    fn reserve(&mut self) -> Result<(), MyError> {
        if self.connection.product.has_sequences() {
            return Ok(());
        }
        for (left, (name, ..)) in self.reserved.iter_mut().zip(SEQUENCES) {
            if left.is_empty() {
                self.connection.run(&format!(
                    "update {name} set next_not_cached_value = last_insert_id(next_not_cached_value) + {SEQUENCE_CACHE}"
                ))?;
                let first = self.connection.done.inserted as i64;
                *left = first..first + SEQUENCE_CACHE;
            }
        }
        Ok(())
    }
}

/// The next number. One is always left, since a transaction needs at most one of each sequence.
fn draw(reserved: &mut Range<i64>) -> i64 {
    reserved.next().unwrap_or(0)
}

/// Whether a procedure did not use a number that was passed to it in advance.
fn unused(sequence: usize, tx: Tx, effects: Effects) -> bool {
    match SEQUENCES[sequence].0 {
        "logon_seq" => effects.logons == 0,
        "address_seq" => tx == Tx::UpdateCustomerDetails && effects.found == 0,
        _ => false,
    }
}

impl Wire for Link {
    type Error = MyError;

    fn failure(error: &MyError) -> (OpError, bool) {
        let mut told = op_error(error);
        told.retryable |= error.is_clash();
        (told, error.is_fatal())
    }

    fn ask(&mut self, inputs: &Inputs<'_>, pause: Pause) -> Result<(), MyError> {
        let arguments = plain(inputs);
        let mut binds: Vec<Bind<'_>> = arguments
            .iter()
            .map(|argument| match argument {
                Plain::Int(n) => Bind::Int(*n),
                Plain::Text(text) => Bind::Text(text.as_bytes()),
            })
            .collect();
        binds.extend([pause.min_ns, pause.max_ns].map(|ns| Bind::Double(ns as f64 / 1e9)));
        self.reserve()?;
        let (call, drawn) = &mut self.procedures[inputs.tx.index()];
        let given = drawn.iter().map(|at| draw(&mut self.reserved[*at]));
        binds.extend(given.map(Bind::Int));
        let mut answered = None;
        self.connection.execute(call, &binds, |row| {
            let mut all = [0; ANSWERED];
            let mut places = all.iter_mut().enumerate();
            let is_whole = places.all(|(at, into)| number(row, at).map(|number| *into = number).is_some());
            answered = is_whole.then_some(all);
        })?;
        // What it did is then unknown: the transaction is in doubt, not one without effects.
        let odd = || MyError::odd("a procedure of order entry returned no valid answer");
        let effects = answered.map(Effects::of).ok_or_else(odd)?;
        for at in drawn {
            let again = unused(*at, inputs.tx, effects);
            self.reserved[*at].start -= i64::from(again);
        }
        self.effects = effects;
        Ok(())
    }

    fn answer(&mut self) -> Result<Effects, MyError> {
        Ok(self.effects)
    }

    fn begin(&mut self) -> Result<(), MyError> {
        self.reserve()?;
        self.connection.run("begin")
    }

    fn commit(&mut self) -> Result<(), MyError> {
        self.connection.run("commit")
    }

    fn rollback(&mut self) -> Result<(), MyError> {
        self.connection.run("rollback")
    }

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, MyError> {
        let (prepared, marks) = &mut self.statements[statement as usize];
        let mut drawn = Row::default();
        let mut draws = 0;
        let mut binds = Vec::with_capacity(marks.len());
        for at in marks.iter() {
            binds.push(match at.checked_sub(DRAWN) {
                None => bind(&values[*at]),
                Some(sequence) => {
                    let number = draw(&mut self.reserved[sequence]);
                    drawn.numbers[draws] = Some(number);
                    draws += 1;
                    Bind::Int(number)
                }
            });
        }
        if draws > 0 && matches!(statement, Statement::NextIds | Statement::NextAddress) {
            return Ok(vec![drawn]);
        }
        let mut rows = Vec::new();
        self.connection.execute(prepared, &binds, |row| rows.push(row_of(row)))?;
        if statement == Statement::Ship && self.connection.done.changed > 0 {
            return Ok(vec![Row::default()]);
        }
        Ok(match draws {
            0 => rows,
            _ => vec![drawn],
        })
    }
}

fn bind<'a>(value: &Value<'a>) -> Bind<'a> {
    match value {
        Value::Int(n) => Bind::Int(*n),
        Value::Text(text) => Bind::Text(text.as_bytes()),
        Value::Null => Bind::Null,
    }
}

fn row_of(row: &[wire::Value<'_>]) -> Row {
    Row {
        numbers: [0, 1, 2].map(|at| number(row, at)),
        text: match row.get(3) {
            Some(wire::Value::Bytes(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        },
    }
}

/// A number in a row; `None` if NULL.
fn number(row: &[wire::Value<'_>], at: usize) -> Option<i64> {
    match row.get(at)? {
        wire::Value::Int(n) => Some(*n),
        wire::Value::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        wire::Value::Other => None,
    }
}
