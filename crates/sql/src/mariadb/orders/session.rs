//! How one session of order entry is spoken to: its connection, and its prepared statements.

use super::ddl::SEQUENCE_CACHE;
use super::procedures;
use super::statements::{DRAWN, statement};
use crate::mariadb::attached::Attached;
use crate::mariadb::conn::{Connection, MyError, op_error, told};
use crate::orders::session::{Argument, Common, Session, Wire, arguments};
use assay_orders::inputs::Inputs;
use assay_orders::mix::{ALL, Tx};
use assay_orders::model::SEQUENCES;
use assay_orders::params::Pause;
use assay_orders::program::{Effects, Row, STATEMENTS, Statement, Value};
use assay_run::engine::{EngineError, OpError};
use mysql::Params;
use mysql::prelude::Queryable;
use std::ops::Range;

/// A prepared statement, and which value each of its marks stands for.
type Prepared = (mysql::Statement, Vec<usize>);

/// The procedure of a transaction, and the sequences from which it is given numbers.
type Called = (mysql::Statement, Vec<usize>);

/// See the module.
pub(super) struct Link {
    connection: Connection,
    /// Of each transaction; none where statements are sent.
    procedures: Vec<Called>,
    statements: Vec<Prepared>,
    /// What this session has reserved of each of [`SEQUENCES`] and not used, where the server has none.
    reserved: [Range<i64>; SEQUENCES.len()],
}

/// What a procedure answers of itself.
const ANSWERED: usize = 6;

/// Sessions see what is committed, and days and hours are those of UTC.
const SETUP: &str = "set session transaction isolation level read committed; set autocommit = 1, time_zone = '+00:00', \
                     wait_timeout = 31536000";

/// Connects and prepares.
pub(super) fn open(on: &Attached, common: &Common, number: u32) -> Result<Session<Link>, EngineError> {
    let mut connection = on.session(number)?;
    for sql in SETUP.split("; ") {
        connection.run(sql).map_err(told("preparing a session"))?;
    }
    if common.asked.commit_logon {
        let set = connection.run(procedures::COMMIT_LOGON);
        set.map_err(told("preparing a session"))?;
    }
    let product = connection.product;
    let mut prepare = |sql: &str| {
        let prepared = connection.conn.prep(sql).map_err(MyError::from);
        prepared.map_err(told("preparing a statement"))
    };
    let (mut procedures, mut statements) = (Vec::new(), Vec::new());
    match common.asked.client_side {
        true => {
            for one in STATEMENTS {
                let (sql, values) = statement(one, product);
                statements.push((prepare(&sql)?, values));
            }
        }
        false => {
            for tx in ALL {
                let prepared = prepare(&procedures::call(tx, product))?;
                procedures.push((prepared, procedures::drawn(tx, product)));
            }
        }
    }
    let link = Link { connection, procedures, statements, reserved: Default::default() };
    Ok(Session::new(number, link))
}

impl Link {
    /// Reserves numbers where the last are used: a transaction of its own, before one that may need them.
    fn reserve(&mut self) -> Result<(), MyError> {
        if self.connection.product.has_sequences() {
            return Ok(());
        }
        for (left, (name, ..)) in self.reserved.iter_mut().zip(SEQUENCES) {
            if left.is_empty() {
                self.connection.run(&format!(
                    "update {name} set next_not_cached_value = last_insert_id(next_not_cached_value) + {SEQUENCE_CACHE}"
                ))?;
                let first = self.connection.conn.last_insert_id() as i64;
                *left = first..first + SEQUENCE_CACHE;
            }
        }
        Ok(())
    }
}

/// The next number; there is one, since a transaction needs one of each sequence at most.
fn draw(reserved: &mut Range<i64>) -> i64 {
    reserved.next().unwrap_or(0)
}

/// A procedure had no use for a number that it was given in case.
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

    fn call(&mut self, inputs: &Inputs<'_>, pause: Pause) -> Result<Effects, MyError> {
        let value = |argument: Argument<'_>| match argument {
            Argument::Int(n) => mysql::Value::Int(n),
            Argument::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
        };
        let mut binds: Vec<mysql::Value> = arguments(inputs).into_iter().map(value).collect();
        binds.extend([pause.min_ns, pause.max_ns].map(|ns| mysql::Value::Double(ns as f64 / 1e9)));
        self.reserve()?;
        let (call, drawn) = &self.procedures[inputs.tx.index()];
        let given = drawn.iter().map(|at| draw(&mut self.reserved[*at]));
        binds.extend(given.map(mysql::Value::Int));
        let row: Option<mysql::Row> = self.connection.conn.exec_first(call, Params::Positional(binds))?;
        let mut numbers = [0; ANSWERED];
        for (at, into) in numbers.iter_mut().enumerate() {
            *into = row.as_ref().and_then(|row| number(row, at)).unwrap_or(0);
        }
        let effects = Effects::of(numbers);
        for at in drawn {
            let again = unused(*at, inputs.tx, effects);
            self.reserved[*at].start -= i64::from(again);
        }
        Ok(effects)
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
        let (prepared, marks) = &self.statements[statement as usize];
        let mut drawn = Row::default();
        let mut draws = 0;
        let mut binds = Vec::with_capacity(marks.len());
        for at in marks {
            binds.push(match at.checked_sub(DRAWN) {
                None => bind(&values[*at]),
                Some(sequence) => {
                    let number = draw(&mut self.reserved[sequence]);
                    drawn.numbers[draws] = Some(number);
                    draws += 1;
                    mysql::Value::Int(number)
                }
            });
        }
        if draws > 0 && matches!(statement, Statement::NextIds | Statement::NextAddress) {
            return Ok(vec![drawn]);
        }
        let params = match binds.is_empty() {
            true => Params::Empty,
            false => Params::Positional(binds),
        };
        let rows: Vec<mysql::Row> = self.connection.conn.exec(prepared, params)?;
        if statement == Statement::Ship && self.connection.conn.affected_rows() > 0 {
            return Ok(vec![Row::default()]);
        }
        Ok(match draws {
            0 => rows.iter().map(row_of).collect(),
            _ => vec![drawn],
        })
    }
}

fn bind(value: &Value<'_>) -> mysql::Value {
    match value {
        Value::Int(n) => mysql::Value::Int(*n),
        Value::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
        Value::Null => mysql::Value::NULL,
    }
}

fn row_of(row: &mysql::Row) -> Row {
    Row {
        numbers: [0, 1, 2].map(|at| number(row, at)),
        text: match row.as_ref(3) {
            Some(mysql::Value::Bytes(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        },
    }
}

/// A number of a row; none where it is NULL.
fn number(row: &mysql::Row, at: usize) -> Option<i64> {
    match row.as_ref(at)? {
        mysql::Value::Int(n) => Some(*n),
        mysql::Value::UInt(n) => i64::try_from(*n).ok(),
        mysql::Value::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
