//! One session of order entry: its connection, its statements, its books.

use super::procedures;
use super::statements::statement;
use crate::mariadb::attached::Attached;
use crate::mariadb::conn::{Connection, MyError, op_error, told};
use assay_orders::inputs::{Bounds, Inputs};
use assay_orders::ledger::Ledger;
use assay_orders::mix::{ALL, Tx};
use assay_orders::names::Lists;
use assay_orders::params::{Asked, Pause};
use assay_orders::program::{self, Effects, Row, STATEMENTS, Statement, Value};
use assay_orders::workload::tx_of;
use assay_run::engine::{EngineError, Op, OpError};
use mysql::Params;
use mysql::prelude::Queryable;
use std::time::Duration;

/// What all sessions share.
pub(super) struct Common {
    pub(super) asked: Asked,
    pub(super) bounds: Bounds,
    pub(super) lists: Lists,
}

/// A prepared statement, and which value each of its marks stands for.
type Prepared = (mysql::Statement, Vec<usize>);

/// How transactions are performed.
enum Form {
    /// The procedure of each transaction.
    Procedures(Vec<mysql::Statement>),
    /// Each statement.
    Statements(Vec<Prepared>),
}

/// What a procedure answers of itself.
const ANSWERED: usize = 6;

/// See the module.
pub(super) struct Session {
    pub(super) number: u32,
    connection: Option<Connection>,
    form: Form,
    pub(super) ledger: Ledger,
    /// Why it cannot go on.
    pub(super) lost: Option<String>,
}

/// Sessions see what is committed, and days and hours are those of UTC.
const SETUP: &str = "set session transaction isolation level read committed; set autocommit = 1, time_zone = '+00:00', \
                     wait_timeout = 31536000";

/// The server waited long enough for a lock: the transaction is attempted again, as after a deadlock.
const LOCK_WAIT: u16 = 1205;

impl Session {
    /// Connects and prepares.
    pub(super) fn open(on: &Attached, common: &Common, number: u32) -> Result<Self, EngineError> {
        let mut connection = on.session(number)?;
        for sql in SETUP.split("; ") {
            connection.run(sql).map_err(told("preparing a session"))?;
        }
        let mut prepare = |sql: &str| {
            let prepared = connection.conn.prep(sql).map_err(MyError::from);
            prepared.map_err(told("preparing a statement"))
        };
        let form = match common.asked.client_side {
            true => {
                let one = |one: Statement| {
                    let (sql, values) = statement(one);
                    Ok((prepare(&sql)?, values))
                };
                let all: Result<_, EngineError> = STATEMENTS.into_iter().map(one).collect();
                Form::Statements(all?)
            }
            false => {
                let all: Result<_, EngineError> = ALL
                    .into_iter()
                    .map(|tx| prepare(&procedures::call(tx)))
                    .collect();
                Form::Procedures(all?)
            }
        };
        Ok(Self {
            number,
            form,
            connection: Some(connection),
            ledger: Ledger::default(),
            lost: None,
        })
    }

    /// Performs a transaction statement by statement; the rows it wrote, one a statement.
    pub(super) fn perform(&mut self, common: &Common, op: &Op) -> Result<u64, OpError> {
        let (tx, number) = tx_of(op).ok_or_else(OpError::not_ours)?;
        let inputs = Inputs::draw(tx, number, common.bounds, &common.lists);
        let Some(connection) = &mut self.connection else {
            return Err(OpError {
                class: "connection lost",
                text: format!("session {} is closed", self.number),
                retryable: false,
            });
        };
        let done = match &self.form {
            Form::Procedures(calls) => {
                called(connection, &calls[tx.index()], &inputs, common.asked.intra)
            }
            Form::Statements(statements) => ByOne {
                connection,
                statements,
                pause: common.asked.intra,
                word: number,
            }
            .whole(&inputs),
        };
        match done {
            Ok(effects) => {
                self.ledger.done(tx, effects);
                Ok(u64::from(effects.inserts + effects.updates))
            }
            Err((error, committing)) => Err(self.failed(tx, &error, committing)),
        }
    }

    /// A transaction failed; `committing` when nobody knows whether it was committed.
    fn failed(&mut self, tx: Tx, error: &MyError, committing: bool) -> OpError {
        let mut op_error = op_error(error);
        op_error.retryable |= error.code() == Some(LOCK_WAIT);
        if error.is_fatal() {
            if committing {
                self.ledger.doubt(tx);
            }
            self.connection = None;
            self.lost = Some(op_error.text.clone());
        } else {
            self.ledger.rollbacks += 1;
        }
        op_error
    }

    /// Logs off.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }
}

/// Has the server perform a transaction. With an error comes whether it may have been committed.
fn called(
    connection: &mut Connection,
    call: &mysql::Statement,
    inputs: &Inputs<'_>,
    pause: Pause,
) -> Result<Effects, (MyError, bool)> {
    let mut binds = arguments(inputs);
    binds.extend([pause.min_ns, pause.max_ns].map(|ns| mysql::Value::Double(ns as f64 / 1e9)));
    let answer: Result<Option<mysql::Row>, _> =
        connection.conn.exec_first(call, Params::Positional(binds));
    match answer.map_err(MyError::from) {
        Ok(row) => {
            let mut numbers = [0; ANSWERED];
            for (at, into) in numbers.iter_mut().enumerate() {
                *into = row.as_ref().and_then(|row| number(row, at)).unwrap_or(0);
            }
            Ok(Effects::of(numbers))
        }
        Err(error) if error.is_fatal() => Err((error, true)),
        Err(error) => {
            // What cannot be rolled back ends with its connection.
            connection.run("rollback").map_err(|error| (error, false))?;
            Err((error, false))
        }
    }
}

/// Numbers of a list, four digits each.
fn list(numbers: &[i32]) -> mysql::Value {
    let text: String = numbers.iter().map(|n| format!("{n:04}")).collect();
    mysql::Value::Bytes(text.into_bytes())
}

/// The values of a transaction's call, the pause excluded.
fn arguments(i: &Inputs<'_>) -> Vec<mysql::Value> {
    let int = |n: i32| mysql::Value::Int(n.into());
    let text = |text: &str| mysql::Value::Bytes(text.as_bytes().to_vec());
    let [town, county, country] = i.place.map(text);
    let logon = int(i.logon.into());
    match i.tx {
        Tx::CustomerRegistration => vec![
            text(i.first),
            text(i.last),
            text(i.language()),
            text(i.territory),
            town,
            county,
            country,
            int(i.house),
            int(i.credit),
            int(i.manager),
            int(i.age_days),
            mysql::Value::Int(i.card),
            int(i.expires_days),
            int(i.security),
            logon,
        ],
        Tx::UpdateCustomerDetails => {
            vec![
                text(i.first),
                text(i.last),
                town,
                county,
                country,
                int(i.house),
            ]
        }
        Tx::BrowseProducts => vec![list(&i.products[..i.looks]), int(i.looks as i32)],
        Tx::OrderProducts => vec![
            mysql::Value::Int(i.customer),
            logon,
            list(&i.categories[..i.looks]),
            list(&i.warehouses[..i.looks]),
            int(i.looks as i32),
            int(i.warehouse),
            int(i.cost),
            int(i.buys as i32),
            list(&i.stocks),
            int(i.status),
        ],
        Tx::ProcessOrders => vec![int(i.warehouse), int(i.status)],
        Tx::BrowseOrders => vec![
            mysql::Value::Int(i.customer),
            logon,
            mysql::Value::UInt(i.picks[0].into()),
            mysql::Value::UInt(i.picks[1].into()),
        ],
        Tx::SalesRepQuery => vec![int(i.sales_rep)],
        Tx::WarehouseQuery | Tx::WarehouseActivityQuery => vec![int(i.warehouse)],
    }
}

/// A transaction under way, statement by statement.
struct ByOne<'a> {
    connection: &'a mut Connection,
    statements: &'a [Prepared],
    pause: Pause,
    /// Random, for pauses.
    word: u64,
}

impl ByOne<'_> {
    /// Begins, performs, commits. With an error comes whether it was committing.
    fn whole(&mut self, inputs: &Inputs<'_>) -> Result<Effects, (MyError, bool)> {
        let writes = !inputs.tx.reads_only();
        if writes {
            self.connection
                .run("begin")
                .map_err(|error| (error, false))?;
        }
        match program::perform(inputs, self) {
            Ok(effects) if writes => {
                self.connection
                    .run("commit")
                    .map_err(|error| (error, true))?;
                Ok(effects)
            }
            Ok(effects) => Ok(effects),
            Err(error) => {
                // What cannot be rolled back ends with its connection.
                if writes && !error.is_fatal() {
                    self.connection
                        .run("rollback")
                        .map_err(|error| (error, false))?;
                }
                Err((error, false))
            }
        }
    }
}

impl program::Session for ByOne<'_> {
    type Error = MyError;

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, MyError> {
        let (prepared, marks) = &self.statements[statement as usize];
        let binds: Vec<mysql::Value> = marks.iter().map(|at| bind(&values[*at])).collect();
        let params = match binds.is_empty() {
            true => Params::Empty,
            false => Params::Positional(binds),
        };
        let rows: Vec<mysql::Row> = self.connection.conn.exec(prepared, params)?;
        if statement == Statement::Ship && self.connection.conn.affected_rows() > 0 {
            return Ok(vec![Row::default()]);
        }
        Ok(rows.iter().map(row_of).collect())
    }

    fn think(&mut self) {
        if self.pause.is_some() {
            self.word = assay_measure::prng::scramble(
                self.word.wrapping_add(assay_measure::prng::GOLDEN_GAMMA),
            );
            std::thread::sleep(Duration::from_nanos(self.pause.length(self.word)));
        }
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
