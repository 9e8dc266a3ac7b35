//! One session: its connection, its statements, its transaction.

use super::super::conn::{Connection, MyError, op_error, told};
use super::super::layout::changed_columns;
use super::super::wire::Call;
use super::MariaEngine;
use super::calls::Calls;
use crate::counted::Counted;
use crate::lost::{closed, probed};
use crate::many::Talks;
use crate::patience::Wait;
use crate::pipelined::Pipelined;
use crate::watch::Cancel;
use assay_run::dataset::rows::fill_columns;
use assay_run::engine::{EngineError, Op, OpError};
use assay_run::plan::Plan;
use std::os::fd::BorrowedFd;

/// First and last key.
type Keys = (u64, u64);

/// One request to the server.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Select(Keys),
    Update(Keys),
    Scan,
    Commit,
}

/// An operation under way.
#[derive(Clone, Copy, Debug, Default)]
struct Doing {
    /// Steps in order; after an error the rest is skipped.
    steps: [Option<Step>; 4],
    /// Index of the last requested step.
    at: usize,
    /// Index of the schema's statements.
    calls: usize,
    rows: u64,
    /// `None` for an operation that only reads; else whether it ends its transaction.
    commit: Option<bool>,
}

/// One session: its connection, its statements, its transaction.
pub(in crate::mariadb) struct Session {
    /// Counted from 1.
    pub(super) number: u32,
    pub(super) connection: Option<Connection>,
    /// Statements of each schema used so far: the session's own, and possibly the hot one.
    calls: Vec<Calls>,
    begin: Call,
    commit: Call,
    doing: Doing,
    in_transaction: bool,
    pub(super) counted: Counted,
    content: Vec<u8>,
    /// Why the session cannot continue.
    pub(super) lost: Option<String>,
}

impl Session {
    /// Connects, prepares, checks the plans, and performs one unmeasured select.
    pub(super) fn open(engine: &MariaEngine, number: u32, home: u32) -> Result<Self, EngineError> {
        let mut connection = engine.on.session(number)?;
        let mrr = connection.product.batches(engine.batched);
        connection
            .run(&format!("set autocommit = 1, optimizer_switch = '{mrr}', wait_timeout = 31536000"))
            .map_err(told("preparing a session"))?;
        let calls = Calls::prepare(&mut connection, &engine.plan, home)?;
        let mut session = Self {
            number,
            connection: Some(connection),
            calls: vec![calls],
            begin: Call::query("begin"),
            commit: Call::query("commit"),
            doing: Doing::default(),
            in_transaction: false,
            counted: Counted::default(),
            content: Vec::new(),
            lost: None,
        };
        session.probe(engine, home)?;
        Ok(session)
    }

    /// Performs one untimed operation, which must touch as many rows as it requests.
    fn probe(&mut self, engine: &MariaEngine, home: u32) -> Result<(), EngineError> {
        let width = engine.plan.work_unit;
        let op = Op::Select { schema: home, first_key: 1, width };
        let rows = self.perform(engine, &op).map_err(|error| {
            EngineError::Unusable(match &self.lost {
                Some(why) => format!("session {} lost its connection: {why}", self.number),
                None => error.text,
            })
        })?;
        self.counted = Counted::default();
        probed(home, width, rows)
    }

    /// Index of a schema's statements, which are prepared on first use.
    fn calls(&mut self, plan: &Plan, schema: u32) -> Result<usize, Failure> {
        let connection = self.connection.as_mut().ok_or(Failure::Closed)?;
        if let Some(at) = self.calls.iter().position(|calls| calls.schema == schema) {
            return Ok(at);
        }
        let calls = Calls::prepare(connection, plan, schema).map_err(|error| Failure::Statement(error.to_string()))?;
        self.calls.push(calls);
        Ok(self.calls.len() - 1)
    }

    fn decide_update(&mut self, plan: &Plan, calls: usize, op: &Op) -> Result<Doing, Failure> {
        let Op::Update { first_key, width, stamp, commit, .. } = *op else {
            return Err(Failure::Statement("the operation is not an update".to_owned()));
        };
        let [first, second] = ranges(first_key, width, plan.scale);
        // A single update in autocommit mode commits by itself.
        let begins = !self.in_transaction && (!commit || second.is_some());
        let columns = changed_columns(plan.redo_stress).len();
        fill_columns(&mut self.content, columns, stamp, first_key, plan.obfuscate);
        if let Some(update) = &mut self.calls[calls].update {
            update.set_texts(&self.content);
        }
        let steps = [
            begins.then_some(Step::Begin),
            first.map(Step::Update),
            second.map(Step::Update),
            ((self.in_transaction || begins) && commit).then_some(Step::Commit),
        ];
        Ok(Doing { steps, at: usize::from(!begins), calls, commit: Some(commit), ..Doing::default() })
    }

    /// The next step to request; skips empty entries.
    fn step(&mut self) -> Option<Step> {
        let steps = &self.doing.steps;
        let next = (self.doing.at..steps.len()).find(|at| steps[*at].is_some())?;
        self.doing.at = next;
        steps[next]
    }

    /// Sends the current step.
    fn send(&mut self) -> Result<(), Failure> {
        let step = self.step();
        let connection = self.connection.as_mut().ok_or(Failure::Closed)?;
        let Some(step) = step else {
            return Ok(());
        };
        let calls = &mut self.calls[self.doing.calls];
        let call = match step {
            Step::Begin => &self.begin,
            Step::Commit => &self.commit,
            Step::Select(keys) => ranged(&mut calls.select, keys),
            Step::Update(keys) => ranged(there(&mut calls.update)?, keys),
            Step::Scan => there(&mut calls.scan)?,
        };
        Ok(connection.ask_call(call)?)
    }

    /// Waits for the answer to a step; returns the rows it touched.
    fn receive(&mut self) -> Result<u64, Failure> {
        let connection = self.connection.as_mut().ok_or(Failure::Closed)?;
        Ok(connection.answer()?)
    }

    /// Counts the completed operation; returns the rows it touched.
    fn conclude(&mut self) -> u64 {
        let Doing { rows, commit, .. } = self.doing;
        self.counted.visited += rows;
        if let Some(commit) = commit {
            let began = self.doing.steps[0].is_some();
            self.in_transaction = (self.in_transaction || began) && !commit;
            self.counted.changed += rows;
            self.counted.commits += u64::from(commit);
        } else if matches!(self.doing.steps[0], Some(Step::Scan)) {
            self.counted.scans += 1;
        }
        rows
    }

    /// Commits the updates that COMMIT_EVERY left uncommitted.
    fn commit_open(&mut self) {
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

    /// Rolls back a failed transaction; notes a lost connection.
    pub(super) fn failed(&mut self, failure: Failure) -> OpError {
        let error = match failure {
            Failure::Server(error) => error,
            Failure::Statement(text) => {
                return OpError { class: "statement", text, retryable: false };
            }
            Failure::Closed => return closed(self.number),
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

impl Talks for Session {
    type Asked = ();

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(Connection::socket)
    }

    /// Also sends the next step; after the last one, returns the number of rows touched.
    fn answer(&mut self, (): ()) -> Result<Option<u64>, OpError> {
        let done = self.receive().and_then(|rows| {
            self.doing.rows += rows;
            self.doing.at += 1;
            match self.step() {
                Some(_) => self.send().map(|()| None),
                None => Ok(Some(self.conclude())),
            }
        });
        done.map_err(|failure| self.failed(failure))
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), OpError> {
        let connection = self.connection.as_mut().ok_or_else(|| closed(self.number))?;
        connection.may_wait(wait).map_err(|error| self.failed(error.into()))
    }
}

impl Pipelined<MariaEngine> for Session {
    fn number(&self) -> u32 {
        self.number
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn counted(&mut self) -> &mut Counted {
        &mut self.counted
    }

    fn ask(&mut self, engine: &MariaEngine, op: &Op) -> Result<(), OpError> {
        let decided = match *op {
            Op::Select { schema, first_key, width } => self.calls(&engine.plan, schema).map(|calls| {
                let keys = ranges(first_key, width, engine.plan.scale);
                let [first, second] = keys.map(|keys| keys.map(Step::Select));
                Doing { steps: [first, second, None, None], calls, ..Doing::default() }
            }),
            Op::Update { schema, .. } => {
                self.calls(&engine.plan, schema).and_then(|calls| self.decide_update(&engine.plan, calls, op))
            }
            Op::Scan { schema } => self.calls(&engine.plan, schema).map(|calls| Doing {
                steps: [Some(Step::Scan), None, None, None],
                calls,
                ..Doing::default()
            }),
            Op::Call { .. } => return Err(OpError::not_ours()),
        };
        let sent = decided.and_then(|doing| {
            self.doing = doing;
            self.send()
        });
        sent.map_err(|failure| self.failed(failure))
    }

    fn end_transaction(&mut self) {
        self.commit_open();
    }

    fn cancel(&self, engine: &MariaEngine) -> bool {
        self.connection.as_ref().is_none_or(|connection| engine.on.token(connection).cancel().is_ok())
    }

    fn close(&mut self) {
        self.connection = None;
    }
}

fn there(statement: &mut Option<Call>) -> Result<&mut Call, Failure> {
    let none = || Failure::Statement("the plan has no such operation".to_owned());
    statement.as_mut().ok_or_else(none)
}

/// The call of a statement whose only numbers are these keys.
fn ranged(call: &mut Call, keys: Keys) -> &Call {
    call.set_number(0, keys.0);
    call.set_number(1, keys.1);
    call
}

/// Splits a range of keys that wraps past the last key into its two parts.
fn ranges(first: u64, width: u32, scale: u64) -> [Option<Keys>; 2] {
    let last = first + u64::from(width) - 1;
    [Some((first, last.min(scale))), (last > scale).then(|| (1, last - scale))]
}

/// Why an operation failed.
pub(super) enum Failure {
    Server(MyError),
    /// The statement could not be prepared, or has the wrong plan.
    Statement(String),
    Closed,
}

impl From<MyError> for Failure {
    fn from(error: MyError) -> Self {
        Self::Server(error)
    }
}
