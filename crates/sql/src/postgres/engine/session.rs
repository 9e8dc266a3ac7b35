//! One session: its connection, its statements, its transaction.

use super::calls::Calls;
use super::{PgEngine, errors};
use crate::counted::Counted;
use crate::lost::{closed, probed};
use crate::many::Talks;
use crate::patience::Wait;
use crate::pipelined::Pipelined;
use crate::postgres::wire::{Call, Connection, PgError};
use assay_run::engine::{EngineError, Op, OpError};
use std::os::fd::BorrowedFd;

/// Transaction state as the server reports it.
const IN_TRANSACTION: u8 = b'T';
const FAILED_TRANSACTION: u8 = b'E';

#[derive(Debug)]
pub(in crate::postgres) struct Session {
    /// Counted from 1.
    pub number: u32,
    pub connection: Option<Connection>,
    /// Statements of each schema used so far: the session's own, and possibly the hot one.
    calls: Vec<Calls>,
    begin: Call,
    commit: Call,
    pub(super) state: u8,
    scale: u64,
    pub counted: Counted,
    /// Why the session cannot continue.
    pub lost: Option<String>,
}

impl Session {
    /// Connects, prepares, checks the plans, and performs one unmeasured select.
    pub(super) fn open(engine: &PgEngine, number: u32, home: u32) -> Result<Self, EngineError> {
        engine.on.turns.wait(&engine.on.stop)?;
        let mut connection = Connection::open(&engine.on.connect)
            .map_err(|error| EngineError::Unusable(format!("session {number} cannot connect: {error}")))?;
        engine.on.backends.connected(number, connection.backend_pid(), connection.cancel_token());
        connection.query(&engine.options.session_settings()).map_err(errors::unusable)?;
        for sql in engine.on.server.session_sql() {
            connection.query(sql).map_err(errors::unusable)?;
        }
        // Nothing after this needs the rights of the role that logged in.
        if let Some(acting) = &engine.acting {
            connection.query(acting).map_err(errors::unusable)?;
        }
        let mut utility = |sql| {
            let statement = connection.prepare(sql, &[]).map_err(errors::unusable)?;
            Ok::<_, EngineError>(Call::new(&statement, &[]))
        };
        let (begin, commit) = (utility("begin")?, utility("commit")?);
        let calls = Calls::prepare(&mut connection, &engine.options, &engine.plan, home)?;
        let mut session = Self {
            number,
            connection: Some(connection),
            calls: vec![calls],
            begin,
            commit,
            state: b'I',
            scale: engine.plan.scale,
            counted: Counted::default(),
            lost: None,
        };
        session.probe(engine, home)?;
        Ok(session)
    }

    /// Performs one untimed operation, which must touch as many rows as it requests.
    fn probe(&mut self, engine: &PgEngine, home: u32) -> Result<(), EngineError> {
        let width = engine.plan.work_unit;
        let op = Op::Select { schema: home, first_key: 1, width };
        let rows = self.perform(engine, &op).map_err(|error| EngineError::Unusable(error.text))?;
        self.counted = Counted::default();
        probed(home, width, rows)
    }

    /// Index of a schema's statements, which are prepared on first use.
    #[inline]
    fn calls_of(&mut self, engine: &PgEngine, schema: u32) -> Result<usize, Failure> {
        if let Some(at) = self.calls.iter().position(|calls| calls.schema == schema) {
            return Ok(at);
        }
        let Some(connection) = &mut self.connection else {
            return Err(Failure::Closed);
        };
        let calls = Calls::prepare(connection, &engine.options, &engine.plan, schema)
            .map_err(|error| Failure::Statement(error.to_string()))?;
        self.calls.push(calls);
        Ok(self.calls.len() - 1)
    }

    fn ask_select(&mut self, at: usize, first_key: u64, width: u64) -> Result<Asked, Failure> {
        let connection = self.connection.as_mut().ok_or(Failure::Closed)?;
        let call = &mut self.calls[at].select;
        add_range(connection, call, first_key, width, self.scale);
        connection.send_calls()?;
        Ok(Asked::Select)
    }

    fn ask_update(&mut self, at: usize, first_key: u64, width: u64, commit: bool) -> Result<Asked, Failure> {
        let connection = self.connection.as_mut().ok_or(Failure::Closed)?;
        let call =
            self.calls[at].update.as_mut().ok_or_else(|| Failure::Statement("the plan has no updates".to_owned()))?;
        // Outside a transaction block, an update commits at its Sync.
        let open = self.state == IN_TRANSACTION;
        if !open && !commit {
            connection.add(&self.begin);
        }
        add_range(connection, call, first_key, width, self.scale);
        if open && commit {
            connection.add(&self.commit);
        }
        connection.send_calls()?;
        Ok(Asked::Update { commit })
    }

    fn ask_scan(&mut self, at: usize) -> Result<Asked, Failure> {
        let connection = self.connection.as_mut().ok_or(Failure::Closed)?;
        let call =
            self.calls[at].scan.as_ref().ok_or_else(|| Failure::Statement("the plan has no scans".to_owned()))?;
        connection.add(call);
        connection.send_calls()?;
        Ok(Asked::Scan)
    }

    /// Rolls back a failed transaction; notes a lost connection.
    fn failed(&mut self, failure: Failure) -> OpError {
        let error = match failure {
            Failure::Server(error) => error,
            Failure::Statement(text) => {
                return OpError { class: "statement", text, retryable: false };
            }
            Failure::Closed => return closed(self.number),
        };
        let op_error = errors::op_error(&error);
        if error.is_fatal() {
            self.lose(&op_error.text);
        } else if self.state == FAILED_TRANSACTION {
            self.roll_back();
        } else {
            self.counted.rollbacks += 1;
        }
        op_error
    }

    /// A whole slice failed.
    pub(super) fn unanswered(&mut self, error: PgError) -> OpError {
        self.failed(Failure::Server(error))
    }

    fn roll_back(&mut self) {
        let Some(connection) = self.connection.as_mut() else {
            return;
        };
        match connection.query("rollback") {
            Ok(_) => {
                self.state = b'I';
                self.counted.rollbacks += 1;
            }
            Err(error) => self.lose(&error.to_string()),
        }
    }

    /// Notes that the connection is no longer usable.
    pub(super) fn lose(&mut self, why: &str) {
        self.connection = None;
        self.lost = Some(why.to_owned());
    }
}

impl Talks for Session {
    type Asked = Asked;

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(Connection::socket)
    }

    fn answer(&mut self, asked: Asked) -> Result<Option<u64>, OpError> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(self.failed(Failure::Closed));
        };
        let answer = match connection.answers(&mut self.state) {
            Ok(answer) => answer,
            Err(error) => return Err(self.failed(Failure::Server(error))),
        };
        let counted = &mut self.counted;
        match asked {
            Asked::Select => counted.visited += answer.counted,
            Asked::Update { commit } => {
                counted.visited += answer.changed;
                counted.changed += answer.changed;
                counted.commits += u64::from(commit);
                return Ok(Some(answer.changed));
            }
            Asked::Scan => {
                counted.visited += answer.counted;
                counted.scans += 1;
            }
        }
        Ok(Some(answer.counted))
    }

    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), OpError> {
        let connection = self.connection.as_mut();
        let may = connection.map_or(Ok(()), |connection| connection.may_wait(wait));
        may.map_err(|error| self.unanswered(error))
    }
}

impl Pipelined<PgEngine> for Session {
    fn number(&self) -> u32 {
        self.number
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn counted(&mut self) -> &mut Counted {
        &mut self.counted
    }

    #[inline]
    fn ask(&mut self, engine: &PgEngine, op: &Op) -> Result<Asked, OpError> {
        let sent = match *op {
            Op::Select { schema, first_key, width } => {
                self.calls_of(engine, schema).and_then(|at| self.ask_select(at, first_key, u64::from(width)))
            }
            Op::Update { schema, first_key, width, stamp, commit } => self.calls_of(engine, schema).and_then(|at| {
                self.calls[at].stamp(stamp);
                self.ask_update(at, first_key, u64::from(width), commit)
            }),
            Op::Scan { schema } => self.calls_of(engine, schema).and_then(|at| self.ask_scan(at)),
            Op::Call { .. } => return Err(OpError::not_ours()),
        };
        sent.map_err(|failure| self.failed(failure))
    }

    fn end_transaction(&mut self) {
        let Some(connection) = self.connection.as_mut() else {
            return;
        };
        if self.state != IN_TRANSACTION {
            return;
        }
        connection.add(&self.commit);
        match connection.round_trip(&mut self.state) {
            Ok(_) => self.counted.commits += 1,
            Err(error) => {
                self.failed(Failure::Server(error));
            }
        }
    }

    fn cancel(&self, _: &PgEngine) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.cancel_token().cancel().is_ok())
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

/// The request a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum Asked {
    Select,
    Update {
        /// The operation ends its transaction.
        commit: bool,
    },
    Scan,
}

/// Why an operation failed.
enum Failure {
    Server(PgError),
    /// The statement could not be prepared, or has the wrong plan.
    Statement(String),
    Closed,
}

impl From<PgError> for Failure {
    fn from(error: PgError) -> Self {
        Self::Server(error)
    }
}

/// Adds a range of keys, split in two where it wraps past the last key.
#[inline]
fn add_range(connection: &mut Connection, call: &mut Call, first_key: u64, width: u64, scale: u64) {
    let last = first_key + width - 1;
    call.set_int8(0, first_key as i64);
    call.set_int8(1, last.min(scale) as i64);
    connection.add(call);
    if last > scale {
        call.set_int8(0, 1);
        call.set_int8(1, (last - scale) as i64);
        connection.add(call);
    }
}
