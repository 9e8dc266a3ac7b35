//! One session of order entry: its connection, its statements, its books.

use super::functions;
use crate::lost::closed;
use crate::many::Talks;
use crate::orders::session::Common;
use crate::patience::Wait;
use crate::postgres::attached::Attached;
use crate::postgres::engine::errors;
use crate::postgres::layout::quote;
use crate::postgres::wire::{Bind, Connection, PgError, Prepared, Values};
use assay_orders::inputs::Inputs;
use assay_orders::ledger::Ledger;
use assay_orders::mix::{ALL, Tx};
use assay_orders::params::Pause;
use assay_orders::program::{self, Effects, Row, STATEMENTS, Statement, Value};
use assay_orders::workload::tx_of;
use assay_run::engine::{EngineError, Op, OpError};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Resolves names to PostgreSQL's own objects first, then to the data set's.
pub(super) fn path_sql(schema: &str) -> String {
    format!("set search_path = pg_catalog, {}, pg_temp", quote(schema))
}

/// How transactions are performed.
enum Form {
    /// One function per transaction.
    Functions(Vec<Prepared>),
    /// Single statements.
    Statements(Vec<Prepared>),
}

pub(super) struct Session {
    pub number: u32,
    pub connection: Option<Connection>,
    form: Form,
    pub ledger: Ledger,
    /// The current transaction commits its logon separately.
    commits_logon: bool,
    /// Why the session cannot continue.
    pub lost: Option<String>,
}

/// Number of results of a function.
const RETURNED: usize = 6;

impl Session {
    /// Connects and prepares; `commit_mode` sets synchronous_commit unless empty.
    pub(super) fn open(
        on: &Attached,
        common: &Common,
        (schema, commit_mode): (&str, &str),
        number: u32,
    ) -> Result<Self, EngineError> {
        on.turns.wait(&on.stop)?;
        let mut connection = Connection::open(&on.connect)
            .map_err(|error| EngineError::Unusable(format!("session {number} cannot connect: {error}")))?;
        on.backends.connected(number, connection.backend_pid(), connection.cancel_token());
        let mut setup = format!(
            "{}; set default_transaction_isolation = 'read committed'; set jit = off; set plan_cache_mode = force_generic_plan; \
             set max_parallel_workers_per_gather = 0",
            path_sql(schema)
        );
        if !commit_mode.is_empty() {
            setup.push_str(&format!("; set synchronous_commit = {commit_mode}"));
        }
        connection.query(&setup).map_err(errors::unusable)?;
        for sql in on.server.session_sql() {
            connection.query(sql).map_err(errors::unusable)?;
        }
        let form = if common.asked.client_side {
            let mut prepare = |statement| {
                let sql = functions::statement(statement);
                connection.prepare(&sql, &functions::statement_types(statement, &sql))
            };
            let all: Result<Vec<_>, _> = STATEMENTS.into_iter().map(&mut prepare).collect();
            Form::Statements(all.map_err(errors::unusable)?)
        } else {
            let early = common.asked.commit_logon;
            let mut prepare = |tx| connection.prepare(&functions::call(tx, early), &functions::call_types(tx));
            let all: Result<Vec<_>, _> = ALL.into_iter().map(&mut prepare).collect();
            Form::Functions(all.map_err(errors::unusable)?)
        };
        Ok(Self {
            number,
            connection: Some(connection),
            form,
            ledger: Ledger::default(),
            commits_logon: false,
            lost: None,
        })
    }

    /// Has the server publish this session's counters. If the connection fails here, the next transaction fails and
    /// reports it.
    pub(super) fn publish(&mut self, on: &Attached) {
        if let Some(connection) = &mut self.connection {
            let _ = on.server.flush(connection);
        }
    }

    /// Sends the call of a transaction's function.
    pub(super) fn ask(&mut self, common: &Common, op: &Op) -> Result<Tx, OpError> {
        let (tx, number) = tx_of(op).ok_or_else(OpError::not_ours)?;
        let inputs = Inputs::draw(tx, number, common.bounds, &common.lists);
        self.commits_logon = common.asked.commit_logon && inputs.logon && tx.logs_on();
        let (Some(connection), Form::Functions(calls)) = (&mut self.connection, &self.form) else {
            return Err(closed(self.number));
        };
        let sent = call(connection, &calls[tx.index()], &inputs, common.asked.intra);
        sent.map(|()| tx).map_err(|error| self.failed(tx, error, false))
    }

    /// Performs a transaction statement by statement.
    pub(super) fn perform(&mut self, common: &Common, op: &Op) -> Result<u64, OpError> {
        let (tx, number) = tx_of(op).ok_or_else(OpError::not_ours)?;
        let inputs = Inputs::draw(tx, number, common.bounds, &common.lists);
        self.commits_logon = common.asked.commit_logon && inputs.logon && tx.logs_on();
        let (Some(connection), Form::Statements(statements)) = (&mut self.connection, &self.form) else {
            return Err(closed(self.number));
        };
        let mut by_one =
            ByOne { connection, statements, pause: common.asked.intra, word: number, commit_logon: self.commits_logon };
        match by_one.whole(&inputs) {
            Ok(effects) => Ok(self.done(tx, effects)),
            Err((error, committing)) => Err(self.failed(tx, error, committing)),
        }
    }

    /// Books the effects of a transaction; returns the number of rows it wrote, one per statement.
    fn done(&mut self, tx: Tx, effects: Effects) -> u64 {
        self.ledger.done(tx, effects);
        u64::from(effects.inserts + effects.updates)
    }

    /// Notes a failed transaction; with `committing`, it may have been committed.
    fn failed(&mut self, tx: Tx, error: PgError, committing: bool) -> OpError {
        let op_error = errors::op_error(&error);
        if self.commits_logon {
            self.ledger.doubt_logon(tx);
        }
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
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

impl Talks for Session {
    type Asked = Tx;

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(Connection::socket)
    }

    fn answer(&mut self, tx: Tx) -> Result<Option<u64>, OpError> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(closed(self.number));
        };
        let mut returned = [0; RETURNED];
        let answer = connection.rows(&mut |values| {
            for (into, value) in returned.iter_mut().zip(values) {
                *into = int8(*value).unwrap_or(0);
            }
        });
        match answer {
            Ok(_) => Ok(Some(self.done(tx, Effects::of(returned)))),
            Err(error) => Err(self.failed(tx, error, true)),
        }
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), OpError> {
        let connection = self.connection.as_mut();
        let may = connection.map_or(Ok(()), |connection| connection.may_wait(wait));
        may.map_err(|error| {
            let op_error = errors::op_error(&error);
            self.connection = None;
            self.lost = Some(op_error.text.clone());
            op_error
        })
    }
}

fn int8(value: Option<&[u8]>) -> Option<i64> {
    value.and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes)
}

/// Sends a call.
fn call(connection: &mut Connection, statement: &Prepared, inputs: &Inputs<'_>, pause: Pause) -> Result<(), PgError> {
    let i = inputs;
    let seconds = |ns: u64| Bind::Float8(ns as f64 / 1e9);
    let (least, most) = (seconds(pause.min_ns), seconds(pause.max_ns));
    let looks = Bind::Int4(i.looks as i32);
    let (customer, logon) = (Bind::Int8(i.customer), Bind::Bool(i.logon));
    let int = Bind::Int4;
    let values: &[Bind<'_>] = match i.tx {
        Tx::CustomerRegistration | Tx::UpdateCustomerDetails => {
            return person(connection, statement, i, [least, most]);
        }
        Tx::BrowseProducts => &[Bind::Int4s(&i.products[..i.looks]), looks, least, most],
        Tx::OrderProducts => &[
            customer,
            logon,
            Bind::Int4s(&i.categories[..i.looks]),
            Bind::Int4s(&i.warehouses[..i.looks]),
            looks,
            int(i.warehouse),
            int(i.cost),
            int(i.buys as i32),
            Bind::Int4s(&i.stocks),
            int(i.status),
            least,
            most,
        ],
        Tx::ProcessOrders => &[int(i.warehouse), int(i.status), least, most],
        Tx::BrowseOrders => {
            &[customer, logon, Bind::Int8(i.picks[0].into()), Bind::Int8(i.picks[1].into()), least, most]
        }
        Tx::SalesRepQuery => &[int(i.sales_rep), least, most],
        Tx::WarehouseQuery | Tx::WarehouseActivityQuery => &[int(i.warehouse), least, most],
    };
    connection.ask(statement, values)
}

/// Sends a call that concerns a customer.
fn person(
    connection: &mut Connection,
    statement: &Prepared,
    i: &Inputs<'_>,
    [least, most]: [Bind<'_>; 2],
) -> Result<(), PgError> {
    let [town, county, country] = i.place.map(Bind::Text);
    let (int, logon) = (Bind::Int4, Bind::Bool(i.logon));
    let values: &[Bind<'_>] = match i.tx {
        Tx::CustomerRegistration => &[
            Bind::Text(i.first),
            Bind::Text(i.last),
            Bind::Text(i.language()),
            Bind::Text(i.territory),
            town,
            county,
            country,
            int(i.house),
            int(i.credit),
            int(i.manager),
            int(i.age_days),
            Bind::Int8(i.card),
            int(i.expires_days),
            int(i.security),
            logon,
            least,
            most,
        ],
        _ => &[Bind::Text(i.first), Bind::Text(i.last), town, county, country, int(i.house), least, most],
    };
    connection.ask(statement, values)
}

/// A transaction performed statement by statement.
struct ByOne<'a> {
    connection: &'a mut Connection,
    statements: &'a [Prepared],
    pause: Pause,
    /// Random bits, for pauses.
    word: u64,
    commit_logon: bool,
}

impl ByOne<'_> {
    /// Begins, performs and commits a transaction. An error says whether it occurred while committing.
    fn whole(&mut self, inputs: &Inputs<'_>) -> Result<Effects, (PgError, bool)> {
        let writes = !inputs.tx.reads_only();
        if writes {
            self.connection.query("begin").map_err(|error| (error, false))?;
        }
        match program::perform(inputs, self) {
            Ok(effects) if writes => {
                self.connection.query("commit").map_err(|error| (error, true))?;
                Ok(effects)
            }
            Ok(effects) => Ok(effects),
            Err(error) => {
                // If the rollback fails, the connection is closed.
                if writes && !error.is_fatal() {
                    self.connection.query("rollback").map_err(|error| (error, false))?;
                }
                Err((error, false))
            }
        }
    }
}

impl program::Session for ByOne<'_> {
    type Error = PgError;

    fn send(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, PgError> {
        let mut binds = [Bind::Null; 10];
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

    fn think(&mut self) {
        if self.pause.is_some() {
            self.word = assay_measure::prng::scramble(self.word.wrapping_add(assay_measure::prng::GOLDEN_GAMMA));
            std::thread::sleep(Duration::from_nanos(self.pause.length(self.word)));
        }
    }

    fn logged_on(&mut self) -> Result<(), PgError> {
        if self.commit_logon { self.connection.query("commit; begin").map(drop) } else { Ok(()) }
    }
}

fn row_of(values: &Values<'_>) -> Row {
    let value = |at: usize| values.get(at).copied().flatten();
    Row {
        numbers: [0, 1, 2].map(|at| int8(value(at))),
        text: value(3).map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
    }
}
