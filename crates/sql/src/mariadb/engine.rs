//! Sessions of a run: a thread and a connection each, every operation a prepared statement with its own start and end.

use super::address::Address;
use super::claim;
use super::conn::{Connection, MyError, op_error, told};
use super::layout::{INDEX, changed_columns, rows_table, scan_table};
use super::marker::{self, Found, Marked};
use super::server::Server;
use super::stats::ServerStats;
use crate::claim::Purpose;
use crate::turns::Turns;
use crate::watch::{Backends, Cancel, Watch};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_measure::stats;
use assay_run::dataset::rows::{COLUMN_BYTES, fill_columns};
use assay_run::engine::{
    Assignment, Completion, Doing, Driver, Engine, EngineError, Op, OpError, Outcome, Remarks,
    Submit, Tag,
};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use mysql::prelude::Queryable;
use mysql::{Params, Statement, Value};
use rustix::net::{Shutdown, shutdown};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// No run ends in the midst of what it has just begun.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// How long operations may go on after a request to stop: longer than until they are cancelled.
const GRACE_STOPPED: Duration = Duration::from_secs(15);
/// Asking for a statement's end is no work for a server that is well.
const CANCEL: Duration = Duration::from_secs(5);
/// Claim, statistics, cancelling.
const OWN_CONNECTIONS: u64 = 3;

/// Ends a session's statement, and its wait.
#[derive(Clone)]
struct Token {
    address: Arc<Address>,
    id: u32,
}

impl Cancel for Token {
    fn cancel(&self) -> std::io::Result<()> {
        let mut connection =
            Connection::open(&self.address, Some(CANCEL)).map_err(std::io::Error::other)?;
        // Nobody is left to be told where the session is gone.
        let _ = connection.run(&format!("kill query {}", self.id));
        Ok(())
    }
}

/// An opened data set.
pub(super) struct MariaEngine {
    plan: Plan,
    address: Arc<Address>,
    /// READ_MODE=batched.
    batched: bool,
    clock: Clock,
    stop: Stop,
    facts: Vec<Fact>,
    backends: Arc<Backends<Token>>,
    /// The sockets of the sessions: shut down when nobody waits for the server any more.
    sockets: Mutex<Vec<Arc<OwnedFd>>>,
    watch: Mutex<Option<Watch>>,
    server: ServerStats,
    turns: Turns,
    grace: Duration,
    /// Holds the claim.
    control: Mutex<Option<Connection>>,
}

/// Values behind these locks are replaced whole: a panic elsewhere leaves them usable.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the data set for a run.
pub(super) fn open(
    address: Address,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<Box<dyn Engine>, EngineError> {
    if settings.text("LOOP") == "server" {
        return Err(EngineError::Usage(
            "LOOP=server: the target mysql has LOOP=client alone; leave LOOP out".to_owned(),
        ));
    }
    let mut control = claim::take(&address, Purpose::Run)?;
    let server = Server::ask(&mut control)?;
    if plan.update_pct > 0 {
        server.refuse_read_only()?;
    }
    let wanted = plan.sessions() as u64 + OWN_CONNECTIONS - 1;
    server.refuse_too_few_connections(wanted, "the run")?;
    let marked = claimed(&mut control, &address.database, plan)?;
    let batched = settings.text("READ_MODE") == "batched";
    let facts = facts(&mut control, &address.database, &server, &marked, batched)?;
    let backends = Arc::new(Backends::new(plan.sessions()));
    let seconds = |name: &str| Duration::from_nanos(settings.ns(name));
    let grace = seconds("MYSQL_GRACE").max(GRACE_MIN);
    let stats = ServerStats::open(&address, server.page_bytes, control.id())?;
    Ok(Box::new(MariaEngine {
        watch: Mutex::new(Some(Watch::begin(
            Arc::clone(&backends),
            stop.clone(),
            (plan.work_loop == 0).then(|| grace * 2 / 3),
        )?)),
        plan: plan.clone(),
        address: Arc::new(address),
        batched,
        clock: Clock::real(),
        stop: stop.clone(),
        facts,
        backends,
        sockets: Mutex::default(),
        server: stats,
        turns: Turns::new(settings.int("CONNECT_RATE")),
        grace,
        control: Mutex::new(Some(control)),
    }))
}

/// The data set as it is now that it is claimed: what was seen before may have been another.
fn claimed(
    control: &mut Connection,
    database: &str,
    plan: &Plan,
) -> Result<Box<Marked>, EngineError> {
    let Found::Ours(marked) = marker::find(control, database)? else {
        return Err(super::nothing_here(database));
    };
    let marker = &marked.marker;
    let is = (marked.usable(), marker.scale, marker.scan_blocks);
    let wanted = (plan.schemas, plan.scale, plan.scan_blocks);
    let fits = is.0 >= wanted.0 && is.1 >= wanted.1 && (plan.scan_pct == 0 || is.2 >= wanted.2);
    if fits && marker.block_bytes == plan.block_bytes {
        return Ok(marked);
    }
    Err(EngineError::Unusable(format!(
        "the data set in database {database} has changed since assay checked it: it has {} SLOB schemas of {} rows \
         and {} scan pages of {} bytes, but {} of {} and {} of {} were planned; run again",
        is.0, is.1, is.2, marker.block_bytes, wanted.0, wanted.1, wanted.2, plan.block_bytes
    )))
}

/// Settings of the server that a reader of the report needs (slob-method 3.4), by the names of the facts.
const SETTINGS: [(&str, &str); 12] = [
    ("server_buffer_pool_bytes", "innodb_buffer_pool_size"),
    (
        "server_flush_log_at_commit",
        "innodb_flush_log_at_trx_commit",
    ),
    ("server_flush_method", "innodb_flush_method"),
    ("server_doublewrite", "innodb_doublewrite"),
    ("server_log_file_bytes", "innodb_log_file_size"),
    ("server_adaptive_hash_index", "innodb_adaptive_hash_index"),
    ("server_change_buffering", "innodb_change_buffering"),
    ("server_read_ahead_threshold", "innodb_read_ahead_threshold"),
    ("server_io_capacity", "innodb_io_capacity"),
    ("server_isolation", "tx_isolation"),
    ("server_binary_log", "log_bin"),
    ("server_sync_binlog", "sync_binlog"),
];

fn facts(
    control: &mut Connection,
    database: &str,
    server: &Server,
    marked: &Marked,
    batched: bool,
) -> Result<Vec<Fact>, EngineError> {
    let text = |name: &str, value: String| Fact::new(name, value);
    let mut facts = vec![
        text("engine", "MariaDB".to_owned()),
        text("server_version", server.version.clone()),
        text("server_user", server.user.clone()),
        text("database", database.to_owned()),
        text("block_bytes", server.page_bytes.to_string()),
        text(
            "cache_blocks",
            (server.pool_bytes / server.page_bytes.max(1)).to_string(),
        ),
        text("cache_parameter", "innodb_buffer_pool_size".to_owned()),
        text(
            "read_mode",
            match batched {
                true => "batched, in the order of pages (MRR)".to_owned(),
                false => "single, by the index (MRR off)".to_owned(),
            },
        ),
        text(
            "data_set",
            format!(
                "{:016x}, created {}",
                marked.marker.data_set, marked.created
            ),
        ),
    ];
    for (fact, name) in SETTINGS {
        let asked = control
            .rows(&format!("show global variables like '{name}'"))
            .map_err(told("reading the server's settings"))?;
        let value = asked
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().nth(1));
        let value = value.flatten().unwrap_or_default();
        if name == "innodb_flush_method" {
            let mode = match value.contains("O_DIRECT") {
                true => "direct",
                false => "buffered (through the page cache)",
            };
            let mode = format!("{mode}, by innodb_flush_method={value}");
            facts.push(text("io_mode_achieved", mode));
        }
        facts.push(text(
            fact,
            match value.is_empty() {
                true => "n/a (absent in this version)".to_owned(),
                false => value,
            },
        ));
    }
    Ok(facts)
}

impl Engine for MariaEngine {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.server.facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        self.server.remarks()
    }

    /// The driver waits for each answer in its socket.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let sessions = assignment.sessions.iter();
        Ok(Box::new(MariaDriver {
            engine: self,
            sessions: sessions
                .map(|(number, home)| Session::open(self, *number, *home))
                .collect::<Result<_, _>>()?,
        }))
    }

    fn sample(&self) -> StatSet {
        self.server.sample()
    }

    /// Nobody asks the server what its sessions do.
    fn look(&self, _sessions: &mut [Doing]) -> bool {
        false
    }

    fn overdue(&self, late: Duration) {
        let limit = match self.stop.requested() {
            true => self.grace.min(GRACE_STOPPED),
            false => self.grace,
        };
        if late >= limit {
            for socket in locked(&self.sockets).iter() {
                // One that is closed already waits for nothing.
                let _ = shutdown(socket, Shutdown::Both);
            }
        }
    }

    fn works_in_driver_threads(&self) -> bool {
        false
    }

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> Result<(), EngineError> {
        drop(locked(&self.watch).take());
        self.server.claim_ends();
        drop(locked(&self.control).take());
        Ok(())
    }
}

/// The sessions of one thread: one, as a rule.
struct MariaDriver<'a> {
    engine: &'a MariaEngine,
    sessions: Vec<Session>,
}

impl Driver for MariaDriver<'_> {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let result = self.sessions[tag as usize].perform(&self.engine.plan, op);
        Submit::Done(Outcome {
            end_ns: self.engine.clock.now_ns(),
            result,
        })
    }

    /// Nothing is ever queued: this only tells whether the thread can go on.
    fn reap(&mut self, _timeout: Duration, _out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let lost = |session: &Session| {
            let why = session.lost.as_ref()?;
            Some(EngineError::SessionLost(format!(
                "session {} lost its connection: {why}",
                session.number
            )))
        };
        self.sessions.iter().find_map(lost).map_or(Ok(()), Err)
    }

    fn stats(&mut self, into: &mut StatSet) {
        let columns = changed_columns(self.engine.plan.redo_stress).len();
        for session in &self.sessions {
            let counted = session.counted;
            into.add(stats::ROWS_VISITED, counted.visited);
            into.add(stats::ROWS_CHANGED, counted.changed);
            let bytes = counted.changed * (columns * COLUMN_BYTES) as u64;
            into.add(stats::CHANGED_BYTES, bytes);
            into.add(stats::TABLE_SCANS, counted.scans);
            into.add(stats::USER_COMMITS, counted.commits);
            into.add(stats::USER_ROLLBACKS, counted.rollbacks);
        }
    }

    fn leave(&mut self, tag: Tag) {
        self.sessions[tag as usize].end_transaction();
        self.engine.backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        let going = self.reap(Duration::ZERO, &mut Vec::new());
        for session in &mut self.sessions {
            session.connection = None;
            self.engine.backends.closed(session.number);
        }
        going
    }
}

/// However the thread ends, nobody is asked to cancel what its sessions do.
impl Drop for MariaDriver<'_> {
    fn drop(&mut self) {
        for session in &self.sessions {
            self.engine.backends.closed(session.number);
        }
    }
}

/// What a session has done, cumulative.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    visited: u64,
    changed: u64,
    scans: u64,
    commits: u64,
    rollbacks: u64,
}

/// What a session can do with one schema.
struct Calls {
    schema: u32,
    select: Statement,
    update: Option<Statement>,
    scan: Option<Statement>,
}

/// One session: its connection, its statements, its transaction.
struct Session {
    /// From 1.
    number: u32,
    connection: Option<Connection>,
    /// Of each schema used so far: its own, perhaps the hot one.
    calls: Vec<Calls>,
    in_transaction: bool,
    counted: Counted,
    content: Vec<u8>,
    /// Why it cannot go on.
    lost: Option<String>,
}

impl Session {
    /// Connects, prepares and checks, and performs one select that is not measured.
    fn open(engine: &MariaEngine, number: u32, home: u32) -> Result<Self, EngineError> {
        engine.turns.wait(&engine.stop)?;
        let mut connection = Connection::open(&engine.address, Some(engine.address.answer))?;
        let socket = connection.socket().ok().map(Arc::new);
        locked(&engine.sockets).extend(socket);
        let token = Token {
            address: Arc::clone(&engine.address),
            id: connection.id(),
        };
        let id = i32::try_from(token.id).unwrap_or(i32::MAX);
        engine.backends.connected(number, id, token);
        let mrr = match engine.batched {
            true => "mrr=on,mrr_sort_keys=off,mrr_cost_based=off",
            false => "mrr=off",
        };
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
    fn perform(&mut self, plan: &Plan, op: &Op) -> Result<u64, OpError> {
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

    /// Commits what COMMIT_EVERY left open.
    fn end_transaction(&mut self) {
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
    fn failed(&mut self, failure: Failure) -> OpError {
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

impl Calls {
    /// Prepares what the plan needs and makes sure that the server performs it as it should.
    fn prepare(connection: &mut Connection, plan: &Plan, schema: u32) -> Result<Self, EngineError> {
        let (rows, scan) = (rows_table(schema), scan_table(schema));
        let select = |range: &str| {
            format!(
                "select count(c2) from {rows} force index ({INDEX}) where custid between {range}"
            )
        };
        let update = |value: &str, range: &str| {
            let columns = changed_columns(plan.redo_stress).iter();
            let set: Vec<String> = columns
                .map(|column| format!("c{column} = {value}"))
                .collect();
            format!(
                "update {rows} force index ({INDEX}) set {} where custid between {range}",
                set.join(", ")
            )
        };
        let scan = format!("select count(c2) from {scan}");
        let by_index = format!("range {INDEX}");
        let width = plan.work_unit.max(plan.update_work_unit);
        let sample = format!("1 and {width}");
        plan_is(connection, &select(&sample), &by_index)?;
        let (mut updates, mut scans) = (None, None);
        if plan.update_pct > 0 {
            plan_is(connection, &update("c3", &sample), &by_index)?;
            updates = Some(prepared(connection, &update("?", "? and ?"))?);
        }
        if plan.scan_pct > 0 {
            plan_is(connection, &scan, "ALL ")?;
            scans = Some(prepared(connection, &scan)?);
        }
        Ok(Self {
            schema,
            select: prepared(connection, &select("? and ?"))?,
            update: updates,
            scan: scans,
        })
    }
}

fn prepared(connection: &mut Connection, sql: &str) -> Result<Statement, EngineError> {
    let statement = connection.conn.prep(sql).map_err(MyError::from);
    statement.map_err(told("preparing a statement"))
}

/// The server performs a statement by this way of access and index.
fn plan_is(connection: &mut Connection, sql: &str, wanted: &str) -> Result<(), EngineError> {
    let rows = connection
        .rows(&format!("explain {sql}"))
        .map_err(told("asking for a plan"))?;
    // id, select_type, table, type, possible_keys, key, ...
    let row = rows.into_iter().next().unwrap_or_default();
    let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    let is = format!("{} {}", text(3), text(5));
    if is == wanted {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the server would not perform `{sql}` as the test needs it: its plan is {is}, not {wanted}; check the index \
         with `assay check`"
    )))
}

/// Why an operation came to nothing.
enum Failure {
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
