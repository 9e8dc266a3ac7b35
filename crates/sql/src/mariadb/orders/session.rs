//! One session of order entry: its connection, its statements, its books.

use super::statements::statement;
use crate::mariadb::attached::Attached;
use crate::mariadb::conn::{Connection, MyError, op_error, told};
use assay_orders::inputs::{Bounds, Inputs};
use assay_orders::ledger::Ledger;
use assay_orders::mix::Tx;
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

/// See the module.
pub(super) struct Session {
    pub(super) number: u32,
    connection: Option<Connection>,
    statements: Vec<Prepared>,
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
    pub(super) fn open(on: &Attached, number: u32) -> Result<Self, EngineError> {
        let mut connection = on.session(number)?;
        for sql in SETUP.split("; ") {
            connection.run(sql).map_err(told("preparing a session"))?;
        }
        let mut prepare = |one: Statement| {
            let (sql, values) = statement(one);
            let prepared = connection.conn.prep(sql).map_err(MyError::from);
            prepared.map(|prepared| (prepared, values))
        };
        let statements: Result<Vec<_>, _> = STATEMENTS.into_iter().map(&mut prepare).collect();
        Ok(Self {
            number,
            statements: statements.map_err(told("preparing a statement"))?,
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
        let mut by_one = ByOne {
            connection,
            statements: &self.statements,
            pause: common.asked.intra,
            word: number,
        };
        match by_one.whole(&inputs) {
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
    let number = |at: usize| match row.as_ref(at) {
        Some(mysql::Value::Int(n)) => Some(*n),
        Some(mysql::Value::UInt(n)) => i64::try_from(*n).ok(),
        Some(mysql::Value::Bytes(text)) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    };
    Row {
        numbers: [0, 1, 2].map(number),
        text: match row.as_ref(3) {
            Some(mysql::Value::Bytes(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        },
    }
}
