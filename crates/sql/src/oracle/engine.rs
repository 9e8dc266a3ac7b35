//! Sessions of a run: a thread and a connection each. What is the same for every database is in [`crate::blocking`].

use super::address::{Address, Door};
use super::claim::Claim;
use super::licensed::Snapshots;
use super::marker::{self, Marked};
use super::server::{Instance, Server};
use super::session::{Bind, OraError, Session, Way, told};
use super::slices::Sliced;
use super::sql::{self, Views};
use super::stats::ServerStats;
use crate::blocking::{self, Client, Failed, Keys, Sessions};
use crate::turns::Turns;
use crate::watch::{Backends, Cancel, Watch};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::dataset::rows::COLUMN_BYTES;
use assay_run::engine::{
    Assignment, Doing, Driver, Engine, EngineError, Remarks, Slice, SliceDone,
};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// No run ends in the midst of what it has just begun.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// Asking for a statement's end is no work for a server that is well.
const CANCEL: Duration = Duration::from_secs(5);
/// Claim, statistics, activity, cancelling.
const OWN_SESSIONS: u64 = 4;

/// What a command works with.
pub(super) struct Site {
    pub(super) way: Arc<dyn Way>,
    pub(super) address: Address,
    /// Holds the claim.
    pub(super) claim: Claim,
}

/// Ends a session's statement from another one.
#[derive(Clone)]
struct Token {
    way: Arc<dyn Way>,
    door: Door,
    sql: String,
}

impl Cancel for Token {
    fn cancel(&self) -> std::io::Result<()> {
        let mut session = self
            .way
            .open(&self.door, CANCEL)
            .map_err(std::io::Error::other)?;
        // Nobody is left to be told where the session is gone, or where this user may not.
        let _ = session.run(&self.sql, &[]);
        Ok(())
    }
}

/// An opened data set.
struct OracleEngine {
    plan: Plan,
    way: Arc<dyn Way>,
    address: Address,
    /// The way of each session, from the first.
    doors: Vec<Door>,
    major: u32,
    /// READ_MODE=batched, LOOP=server.
    batched: bool,
    in_server: bool,
    clock: Clock,
    stop: Stop,
    facts: Vec<Fact>,
    warnings: Vec<String>,
    backends: Arc<Backends<Token>>,
    /// Places of sessions by their number on the server.
    sids: Mutex<HashMap<u32, usize>>,
    watch: Mutex<Option<Watch>>,
    server: ServerStats,
    snapshots: Mutex<Snapshots>,
    turns: Turns,
    /// Why the claim is gone, if it is.
    claim_lost: Mutex<Option<String>>,
    claim: Mutex<Option<Claim>>,
}

/// Values behind these locks are replaced whole: a panic elsewhere leaves them usable.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the data set for a run.
pub(super) fn open(
    site: Site,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<Box<dyn Engine>, EngineError> {
    let in_server = settings.text("LOOP") == "server";
    if in_server {
        refuse_unfit(plan)?;
    }
    let Site {
        way,
        address,
        claim,
    } = site;
    let mut session = way.open(&address.data, address.answer)?;
    let server = Server::ask(&mut *session, settings.text("ORACLE_TABLESPACE"))?;
    if plan.update_pct > 0 {
        server.refuse_read_only()?;
    }
    let marked = marker::ours(&mut *session, &address.data)?;
    fits(&marked, plan, &address.data)?;
    drop(session);
    let mut admin = way.open(address.admin(), address.answer)?;
    let instance = Instance::ask(&mut *admin);
    let wanted = plan.sessions() as u64 + OWN_SESSIONS - 1;
    instance.refuse_too_few_sessions(wanted, "the run")?;
    let container =
        Server::ask(&mut *admin, "").map_or_else(|_| String::new(), |server| server.container);
    let snapshots = Snapshots::begin(settings, &mut *admin, &instance, &container)?;
    drop(admin);
    let (doors, uneven) = address.sessions(plan);
    let batched = settings.text("READ_MODE") == "batched";
    let views = Views {
        global: instance.number("instances").is_some_and(|count| count > 1),
    };
    let log_block = instance.number("log block bytes");
    let stats = ServerStats::open(&way, &address, views, log_block, claim.id().sid)?;
    let grace = Duration::from_nanos(settings.ns("ORACLE_GRACE")).max(GRACE_MIN);
    let backends = Arc::new(Backends::new(plan.sessions()));
    let mut warnings = instance.warnings();
    warnings.extend(uneven.map(|text| format!("{text}.")));
    Ok(Box::new(OracleEngine {
        watch: Mutex::new(Some(Watch::begin(
            Arc::clone(&backends),
            stop.clone(),
            (plan.work_loop == 0).then(|| grace * 2 / 3),
        )?)),
        facts: facts(&address, &server, &instance, &marked, (batched, in_server)),
        plan: plan.clone(),
        doors,
        major: server.major,
        batched,
        in_server,
        clock: Clock::real(),
        stop: stop.clone(),
        warnings,
        backends,
        sids: Mutex::default(),
        server: stats,
        snapshots: Mutex::new(snapshots),
        turns: Turns::new(settings.int("CONNECT_RATE")),
        claim_lost: Mutex::default(),
        claim: Mutex::new(Some(claim)),
        way,
        address,
    }))
}

/// What only the client decides or makes does not go with a loop in the server.
///
/// # Errors
/// `Usage` names the parameter, and the way out.
fn refuse_unfit(plan: &Plan) -> Result<(), EngineError> {
    let random = plan.obfuscate && plan.update_pct > 0;
    let refused = [
        (
            plan.rate_per_s > 0,
            "RATE",
            "the server itself starts each operation",
        ),
        (
            plan.think.is_some(),
            "THINK_TM_FREQUENCY",
            "the server itself starts each operation",
        ),
        (
            random,
            "OBFUSCATE_COLUMNS",
            "making the random text of an update would cost the server more than the update",
        ),
    ];
    match refused.into_iter().find(|(asked, ..)| *asked) {
        None => Ok(()),
        Some((_, name, why)) => Err(EngineError::Usage(format!(
            "{name} needs LOOP=client: with LOOP=server {why}; use LOOP=client, or leave {name} out"
        ))),
    }
}

/// The data set as it is now that it is claimed: what was seen before may have been another.
fn fits(marked: &Marked, plan: &Plan, door: &Door) -> Result<(), EngineError> {
    let marker = &marked.marker;
    let is = (marked.usable(), marker.scale, marker.scan_blocks);
    let wanted = (plan.schemas, plan.scale, plan.scan_blocks);
    let fits = is.0 >= wanted.0 && is.1 >= wanted.1 && (plan.scan_pct == 0 || is.2 >= wanted.2);
    if fits && marker.block_bytes == plan.block_bytes {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the data set of user {} has changed since assay checked it: it has {} SLOB schemas of {} rows and {} scan blocks of \
         {} bytes, but {} of {} and {} of {} were planned; run again",
        door.user,
        is.0,
        is.1,
        is.2,
        marker.block_bytes,
        wanted.0,
        wanted.1,
        wanted.2,
        plan.block_bytes
    )))
}

fn facts(
    address: &Address,
    server: &Server,
    instance: &Instance,
    marked: &Marked,
    (batched, in_server): (bool, bool),
) -> Vec<Fact> {
    let text = |name: &str, value: String| Fact::new(name, value);
    let block = server.tablespace.block_bytes;
    let mut facts = vec![
        text("engine", "Oracle Database".to_owned()),
        text("server_version", server.version.clone()),
        text("server_user", server.user.clone()),
        text("database", server.database.clone()),
        text("instance", server.instance.clone()),
        text("container", server.container.clone()),
        text("services", address.services()),
        text("block_bytes", block.to_string()),
        text(
            "tablespace",
            format!("{} ({})", server.tablespace.name, server.tablespace.logging),
        ),
        text(
            "read_mode",
            match batched {
                true => "batched (BATCH_TABLE_ACCESS_BY_ROWID)".to_owned(),
                false => "single (NO_BATCH_TABLE_ACCESS_BY_ROWID); the instance may still read ahead: see db file parallel \
                          read, and _db_block_prefetch_limit"
                    .to_owned(),
            },
        ),
        text("loop", if in_server { "server" } else { "client" }.to_owned()),
        text("data_set", format!("{:016x}, created {}", marked.marker.data_set, marked.created)),
    ];
    if let Some((bytes, parameter)) = instance.cache_bytes() {
        facts.push(text("cache_blocks", (bytes / block.max(1)).to_string()));
        facts.push(text("cache_parameter", parameter.to_owned()));
    }
    facts.extend(instance.facts());
    facts
}

impl Engine for OracleEngine {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.server.facts());
        facts.extend(locked(&self.snapshots).facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = self.server.remarks();
        remarks.warnings.extend(self.warnings.iter().cloned());
        if let Some(why) = locked(&self.claim_lost).as_ref() {
            remarks.invalid.push(format!(
                "the claim on the data set was lost ({why}): after that, other commands could change or remove its tables"
            ));
        }
        remarks
    }

    /// The driver waits for each answer in its socket.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let sessions = assignment.sessions.iter();
        let sessions = sessions.map(|(number, home)| self.session(*number, *home));
        Ok(Box::new(Sessions {
            plan: &self.plan,
            clock: &self.clock,
            backends: &self.backends,
            columns: sql::changed_columns(self.plan.redo_stress).len(),
            sessions: sessions.collect::<Result<_, _>>()?,
        }))
    }

    fn sample(&self) -> StatSet {
        self.server.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.server.look(&locked(&self.sids), sessions)
    }

    fn works_in_driver_threads(&self) -> bool {
        false
    }

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> Result<(), EngineError> {
        drop(locked(&self.watch).take());
        let mut snapshots = locked(&self.snapshots);
        if snapshots.is_wanted()
            && let Ok(mut admin) = self.way.open(self.address.admin(), self.address.answer)
        {
            snapshots.end(&mut *admin);
        }
        self.server.claim_ends();
        if let Some(mut claim) = locked(&self.claim).take()
            && let Err(error) = claim.number(sql::LIFE, &[])
        {
            *locked(&self.claim_lost) = Some(error.to_string());
        }
        Ok(())
    }
}

impl OracleEngine {
    /// Connects, checks the plans of its statements, and performs one select that is not measured.
    fn session(
        &self,
        number: u32,
        home: u32,
    ) -> Result<blocking::Session<Caller<'_>>, EngineError> {
        self.turns.wait(&self.stop)?;
        let door = &self.doors[number as usize - 1];
        let mut session = self.way.open(door, self.address.answer)?;
        let id = session.id();
        let token = Token {
            way: Arc::clone(&self.way),
            door: self.address.admin().clone(),
            sql: sql::cancel(id.sid, id.serial, self.major),
        };
        self.backends.connected(number, id.sid as i32, token);
        locked(&self.sids).insert(id.sid, number as usize - 1);
        let action = format!("session {number}");
        session
            .run(
                sql::NAME_SESSION,
                &[Bind::Text("assay"), Bind::Text(&action)],
            )
            .map_err(told("preparing a session"))?;
        let calls = Calls::new(&self.plan, home, self.batched);
        calls.checked(&mut *session, &self.plan)?;
        let longest_ns = self.address.answer.as_nanos() as u64 / 2;
        let sliced = self
            .in_server
            .then(|| Sliced::new(sql::slice(&self.plan, home, self.batched), home, longest_ns));
        let caller = Caller {
            engine: self,
            session,
            calls: vec![calls],
            sliced,
        };
        let mut session = blocking::Session::new(number, caller);
        session.probe(&self.plan, home)?;
        Ok(session)
    }
}

/// Statements on one SLOB schema.
struct Calls {
    schema: u32,
    select: String,
    update: String,
    update_and_commit: String,
    scan: String,
}

impl Calls {
    fn new(plan: &Plan, schema: u32, batched: bool) -> Self {
        let redo = plan.redo_stress;
        Self {
            schema,
            select: sql::select(schema, batched),
            update: sql::update(schema, redo, batched),
            update_and_commit: sql::update_and_commit(schema, redo, batched),
            scan: sql::scan(schema),
        }
    }

    /// Makes sure that the server would perform them as the test needs it.
    fn checked(&self, session: &mut dyn Session, plan: &Plan) -> Result<(), EngineError> {
        let by_index = format!(
            "INDEX RANGE SCAN {}",
            sql::index(self.schema).to_ascii_uppercase()
        );
        plan_has(session, &self.select, &by_index)?;
        if plan.update_pct > 0 {
            plan_has(session, &self.update, &by_index)?;
        }
        if plan.scan_pct > 0 {
            let whole = format!(
                "TABLE ACCESS FULL {}",
                sql::scan_table(self.schema).to_ascii_uppercase()
            );
            plan_has(session, &self.scan, &whole)?;
        }
        Ok(())
    }
}

/// The server performs a statement by this step, as its plan table has it.
fn plan_has(session: &mut dyn Session, statement: &str, wanted: &str) -> Result<(), EngineError> {
    let doing = told("asking for a plan");
    session.run(sql::FORGET_PLAN, &[]).map_err(&doing)?;
    session.run(&sql::explain(statement), &[]).map_err(&doing)?;
    let rows = session.rows(sql::PLAN, &[]).map_err(&doing)?;
    session.rollback().map_err(&doing)?;
    let steps: Vec<String> = rows.into_iter().flatten().flatten().collect();
    if steps.iter().any(|step| step == wanted) {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the server would not perform `{statement}` as the test needs it: its plan is {}, without {wanted}; check the index \
         with `assay check`",
        steps.join(" / ")
    )))
}

/// A session's connection and statements.
struct Caller<'a> {
    engine: &'a OracleEngine,
    session: Box<dyn Session>,
    /// Of each schema used so far: its own, perhaps the hot one.
    calls: Vec<Calls>,
    sliced: Option<Sliced>,
}

impl From<OraError> for Failed {
    fn from(error: OraError) -> Self {
        Self {
            fatal: error.is_fatal(),
            error: error.of_operation(),
        }
    }
}

impl Caller<'_> {
    /// The connection, and the statements of a schema.
    fn on(&mut self, schema: u32) -> (&mut dyn Session, &Calls) {
        let at = match self.calls.iter().position(|calls| calls.schema == schema) {
            Some(at) => at,
            None => {
                self.calls
                    .push(Calls::new(&self.engine.plan, schema, self.engine.batched));
                self.calls.len() - 1
            }
        };
        (&mut *self.session, &self.calls[at])
    }
}

fn keys<'a>((first, last): Keys) -> [Bind<'a>; 2] {
    [Bind::Int(first as i64), Bind::Int(last as i64)]
}

impl Client for Caller<'_> {
    fn select(&mut self, schema: u32, range: Keys) -> Result<u64, Failed> {
        let (session, calls) = self.on(schema);
        Ok(session.number(&calls.select, &keys(range))?)
    }

    fn update(
        &mut self,
        schema: u32,
        range: Keys,
        content: &[u8],
        commit: bool,
    ) -> Result<u64, Failed> {
        let (session, calls) = self.on(schema);
        let columns = content.chunks_exact(COLUMN_BYTES);
        let mut binds = Vec::with_capacity(columns.len() + 2);
        // Letters and digits alone, by what fills them.
        binds.extend(
            columns
                .filter_map(|column| std::str::from_utf8(column).ok())
                .map(Bind::Text),
        );
        binds.extend(keys(range));
        if !commit {
            return Ok(session.run(&calls.update, &binds)?);
        }
        let rows = session.call(&calls.update_and_commit, &binds, 1)?.concat();
        let strange = || {
            OraError::broken(format!(
                "an update told {rows:?}, which is no number of rows"
            ))
        };
        Ok(rows.parse().map_err(|_| strange())?)
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Failed> {
        let (session, calls) = self.on(schema);
        Ok(session.number(&calls.scan, &[])?)
    }

    fn commit(&mut self) -> Result<(), Failed> {
        Ok(self.session.commit()?)
    }

    fn rollback(&mut self) -> Result<(), Failed> {
        Ok(self.session.rollback()?)
    }

    fn slice_ops(&self) -> usize {
        self.sliced.as_ref().map_or(0, |sliced| sliced.pace.ops)
    }

    fn slice(&mut self, clock: &Clock, slice: Slice<'_>) -> Result<SliceDone, Failed> {
        match &mut self.sliced {
            Some(sliced) => Ok(sliced.perform(&mut *self.session, clock, slice)?),
            None => Err(OraError::broken("this session has no loop in the server").into()),
        }
    }
}
