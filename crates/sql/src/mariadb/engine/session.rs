//! One session: its connection, its statements, its transaction.

use super::super::conn::{Connection, MyError, op_error, told};
use super::super::layout::changed_columns;
use super::MariaEngine;
use super::calls::Calls;
use assay_run::dataset::rows::{COLUMN_BYTES, fill_columns};
use assay_run::engine::{EngineError, Op, OpError};
use assay_run::plan::Plan;
use mysql::prelude::Queryable;
use mysql::{Params, Value};

/// What a session has done, cumulative.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) visited: u64,
    pub(super) changed: u64,
    pub(super) scans: u64,
    pub(super) commits: u64,
    pub(super) rollbacks: u64,
}

/// One session: its connection, its statements, its transaction.
pub(super) struct Session {
    /// From 1.
    pub(super) number: u32,
    pub(super) connection: Option<Connection>,
    /// Of each schema used so far: its own, perhaps the hot one.
    calls: Vec<Calls>,
    in_transaction: bool,
    pub(super) counted: Counted,
    content: Vec<u8>,
    /// Why it cannot go on.
    pub(super) lost: Option<String>,
}

impl Session {
    /// Connects, prepares and checks, and performs one select that is not measured.
    pub(super) fn open(engine: &MariaEngine, number: u32, home: u32) -> Result<Self, EngineError> {
        let mut connection = engine.on.session(number)?;
        let mrr = connection.product.batches(engine.batched);
        connection
            .run(&format!(
                "set autocommit = 1, optimizer_switch = '{mrr}', wait_timeout = 31536000"
            ))
            .map_err(told("preparing a session"))?;
        let calls = Calls::prepare(&mut connection, &engine.plan, home)?;
        let mut session = Self {
            number,
            connection: Some(connection),
            calls: vec![calls],
            in_transaction: false,
            counted: Counted::default(),
            content: Vec::new(),
            lost: None,
        };
        session.probe(&engine.plan, home)?;
        Ok(session)
    }

    /// One untimed operation: it must touch as many rows as it asks for.
    fn probe(&mut self, plan: &Plan, home: u32) -> Result<(), EngineError> {
        let op = Op::Select {
            schema: home,
            first_key: 1,
            width: plan.work_unit,
        };
        let rows = self
            .perform(plan, &op)
            .map_err(|error| EngineError::Unusable(error.text))?;
        self.counted = Counted::default();
        if rows == u64::from(plan.work_unit) {
            return Ok(());
        }
        Err(EngineError::Damaged(format!(
            "a select of keys 1 to {} of schema {home} touched {rows} rows: the data set is not as it was loaded \
             (`assay check` shows the details)",
            plan.work_unit
        )))
    }

    /// One operation, from request to answer; the rows it touched.
    pub(super) fn perform(&mut self, plan: &Plan, op: &Op) -> Result<u64, OpError> {
        let done = match *op {
            Op::Select {
                schema,
                first_key,
                width,
            } => self.select(plan, schema, first_key, width),
            Op::Update {
                schema,
                first_key,
                width,
                stamp,
                commit,
            } => self.update(plan, schema, (first_key, width), stamp, commit),
            Op::Scan { schema } => self.scan(plan, schema),
            Op::Call { .. } => return Err(OpError::not_ours()),
        };
        done.map_err(|failure| self.failed(failure))
    }

    /// The connection and a schema's statements, which are prepared when it is first used.
    fn calls(&mut self, plan: &Plan, schema: u32) -> Result<(&mut Connection, &Calls), Failure> {
        let connection = self.connection.as_mut().ok_or(Failure::Closed)?;
        let at = match self.calls.iter().position(|calls| calls.schema == schema) {
            Some(at) => at,
            None => {
                let calls = Calls::prepare(connection, plan, schema)
                    .map_err(|error| Failure::Statement(error.to_string()))?;
                self.calls.push(calls);
                self.calls.len() - 1
            }
        };
        Ok((connection, &self.calls[at]))
    }

    fn select(&mut self, plan: &Plan, schema: u32, first: u64, width: u32) -> Result<u64, Failure> {
        let (connection, calls) = self.calls(plan, schema)?;
        let mut rows = 0;
        for range in ranges(first, width, plan.scale).into_iter().flatten() {
            let counted: Option<u64> = connection
                .conn
                .exec_first(&calls.select, range)
                .map_err(MyError::from)?;
            rows += counted.unwrap_or(0);
        }
        self.counted.visited += rows;
        Ok(rows)
    }

    fn update(
        &mut self,
        plan: &Plan,
        schema: u32,
        (first, width): (u64, u32),
        stamp: u64,
        commit: bool,
    ) -> Result<u64, Failure> {
        let ranges = ranges(first, width, plan.scale);
        // Alone, an update commits by itself.
        let begins = !self.in_transaction && (!commit || ranges[1].is_some());
        let columns = changed_columns(plan.redo_stress).len();
        let mut content = std::mem::take(&mut self.content);
        fill_columns(&mut content, columns, stamp, first, plan.obfuscate);
        let in_transaction = self.in_transaction || begins;
        let (connection, calls) = self.calls(plan, schema)?;
        let statement = calls.update.as_ref();
        let statement =
            statement.ok_or_else(|| Failure::Statement("the plan has no updates".to_owned()))?;
        if begins {
            connection.run("begin")?;
        }
        let mut rows = 0;
        for range in ranges.into_iter().flatten() {
            let mut values: Vec<Value> = content
                .chunks_exact(COLUMN_BYTES)
                .map(|column| Value::Bytes(column.to_vec()))
                .collect();
            values.extend([Value::UInt(range.0), Value::UInt(range.1)]);
            connection
                .conn
                .exec_drop(statement, Params::Positional(values))
                .map_err(MyError::from)?;
            rows += connection.conn.affected_rows();
        }
        if in_transaction && commit {
            connection.run("commit")?;
        }
        self.in_transaction = in_transaction && !commit;
        self.content = content;
        self.counted.visited += rows;
        self.counted.changed += rows;
        self.counted.commits += u64::from(commit);
        Ok(rows)
    }

    fn scan(&mut self, plan: &Plan, schema: u32) -> Result<u64, Failure> {
        let (connection, calls) = self.calls(plan, schema)?;
        let statement = calls.scan.as_ref();
        let statement =
            statement.ok_or_else(|| Failure::Statement("the plan has no scans".to_owned()))?;
        let counted: Option<u64> = connection
            .conn
            .exec_first(statement, ())
            .map_err(MyError::from)?;
        let rows = counted.unwrap_or(0);
        self.counted.visited += rows;
        self.counted.scans += 1;
        Ok(rows)
    }

    /// Notes what an operation of a slice did.
    pub(super) fn count(&mut self, op: &Op, rows: Option<u64>) {
        let counted = &mut self.counted;
        let Some(rows) = rows else {
            counted.rollbacks += 1;
            return;
        };
        counted.visited += rows;
        match op {
            Op::Update { .. } => {
                counted.changed += rows;
                counted.commits += 1;
            }
            Op::Scan { .. } => counted.scans += 1,
            Op::Select { .. } | Op::Call { .. } => {}
        }
    }

    /// Commits what COMMIT_EVERY left open.
    pub(super) fn end_transaction(&mut self) {
        let Some(connection) = self.connection.as_mut().filter(|_| self.in_transaction) else {
            return;
        };
        self.in_transaction = false;
        match connection.run("commit") {
            Ok(()) => self.counted.commits += 1,
            Err(error) => {
                self.failed(error.into());
            }
        }
    }

    /// Leaves no failed transaction behind; a connection that is gone is noted.
    pub(super) fn failed(&mut self, failure: Failure) -> OpError {
        let error = match failure {
            Failure::Server(error) => error,
            Failure::Statement(text) => {
                return OpError {
                    class: "statement",
                    text,
                    retryable: false,
                };
            }
            Failure::Closed => {
                return OpError {
                    class: "connection lost",
                    text: format!("session {} is closed", self.number),
                    retryable: false,
                };
            }
        };
        let mut lost = error.is_fatal().then(|| error.to_string());
        self.counted.rollbacks += 1;
        if let Some(connection) = self.connection.as_mut().filter(|_| lost.is_none()) {
            self.in_transaction = false;
            lost = connection.run("rollback").err().map(|e| e.to_string());
        }
        if lost.is_some() {
            self.connection = None;
            self.lost = lost;
        }
        op_error(&error)
    }
}

/// A range of keys, or the two parts of one that goes past the last key.
fn ranges(first: u64, width: u32, scale: u64) -> [Option<(u64, u64)>; 2] {
    let last = first + u64::from(width) - 1;
    [
        Some((first, last.min(scale))),
        (last > scale).then(|| (1, last - scale)),
    ]
}

/// Why an operation came to nothing.
pub(super) enum Failure {
    Server(MyError),
    /// Could not be prepared, or has the wrong plan.
    Statement(String),
    Closed,
}

impl From<MyError> for Failure {
    fn from(error: MyError) -> Self {
        Self::Server(error)
    }
}
