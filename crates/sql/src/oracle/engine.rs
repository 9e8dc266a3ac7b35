//! Sessions of a run: one thread and one connection each. [`crate::session`] contains what is the same on every server.

use super::attached::{Attached, Site};
use super::marker::{self, Marked};
use super::server::{Server, TOLD};
use super::session::{Bind, OraError, Session, told};
use super::slices::Sliced;
use super::sql;
use crate::running::OnServer;
use crate::session::{self, Base, Failed, Keys, SlobEngine, Step, there};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::facts::{ENGINE, SERVER_TOLD};
use assay_measure::snapshot::Fact;
use assay_run::dataset::rows::{COLUMN_BYTES, fill_columns};
use assay_run::engine::{Engine, EngineError, Slice, SliceDone};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// An opened data set.
struct OracleEngine {
    plan: Plan,
    /// READ_MODE=batched, LOOP=server.
    batched: bool,
    in_server: bool,
    facts: Vec<Fact>,
    on: Attached,
}

/// Opens the data set for a run.
pub(super) fn open(site: Site, plan: &Plan, settings: &Settings, stop: &Stop) -> Result<Box<dyn Engine>, EngineError> {
    let in_server = settings.text("LOOP") == "server";
    if in_server {
        refuse_unfit(plan)?;
    }
    let address = &site.address;
    let mut session = site.way.open(&address.data, address.answer)?;
    let server = Server::ask(&mut *session, settings.text("ORACLE_TABLESPACE"))?;
    if plan.update_pct > 0 {
        server.refuse_read_only()?;
    }
    let marked =
        marker::find(&mut *session, &address.data)?.ok_or_else(|| super::claim::nothing_here(&address.data))?;
    let place = format!("the schema of user {}", address.data.user);
    marked.refuse_changed(plan, &place, "block")?;
    drop(session);
    let batched = settings.text("READ_MODE") == "batched";
    let on = Attached::open(site, &server, plan, settings, stop)?;
    Ok(Box::new(SlobEngine(OracleEngine {
        facts: facts(&on, &server, &marked, (batched, in_server)),
        plan: plan.clone(),
        batched,
        in_server,
        on,
    })))
}

/// Refuses settings that need the client for each operation and so do not fit a loop in the server.
///
/// # Errors
/// `Usage` names the parameter and the remedy.
fn refuse_unfit(plan: &Plan) -> Result<(), EngineError> {
    let random = plan.obfuscate && plan.update_pct > 0;
    let refused = [
        (plan.rate_per_s > 0, "RATE", "the server itself starts each operation"),
        (plan.think.is_some(), "THINK_TM_FREQUENCY", "the server itself starts each operation"),
        (random, "OBFUSCATE_COLUMNS", "making the random text of an update would cost the server more than the update"),
    ];
    match refused.into_iter().find(|(asked, ..)| *asked) {
        None => Ok(()),
        Some((_, name, why)) => Err(EngineError::Usage(format!(
            "{name} needs LOOP=client: with LOOP=server {why}; use LOOP=client, or leave {name} out"
        ))),
    }
}

fn facts(on: &Attached, server: &Server, marked: &Marked, (batched, in_server): (bool, bool)) -> Vec<Fact> {
    let instance = &on.instance;
    let text = |name: &str, value: String| Fact::new(name, value);
    let block = server.tablespace.block_bytes;
    let mut facts = vec![
        ENGINE.fact("Oracle Database"),
        SERVER_TOLD.fact(TOLD),
        text("server_version", server.version.clone()),
        text("session_user", server.user.clone()),
        text("database", server.database.clone()),
        text("instance", server.instance.clone()),
        text("container", server.container.clone()),
        text("services", on.address.services()),
        text("block_bytes", block.to_string()),
        text("tablespace", format!("{} ({})", server.tablespace.name, server.tablespace.logging)),
        text(
            "read_mode",
            if batched {
                "batched (BATCH_TABLE_ACCESS_BY_ROWID)".to_owned()
            } else {
                "single (NO_BATCH_TABLE_ACCESS_BY_ROWID); the instance may still read ahead: see db file parallel \
                          read, and _db_block_prefetch_limit"
                    .to_owned()
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

impl OnServer for OracleEngine {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.on
    }
}

impl Base for OracleEngine {
    type Link = Link;

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn columns(&self) -> usize {
        sql::changed_columns(self.plan.redo_stress).len()
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// The driver blocks in its socket until each answer arrives.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    fn connect(&self, number: u32, home: u32) -> Result<Link, EngineError> {
        let mut session = self.on.session(number)?;
        Calls::new(&self.plan, home, self.batched).checked(&mut *session, &self.plan, home)?;
        let longest_ns = self.on.address.answer.as_nanos() as u64 / 2;
        let sliced = self.in_server.then(|| Sliced::new(sql::slice(&self.plan, home, self.batched), home, longest_ns));
        Ok(Link { session, sliced, rows: 0 })
    }

    fn calls(&self, _link: &mut Link, schema: u32) -> Result<Calls, EngineError> {
        Ok(Calls::new(&self.plan, schema, self.batched))
    }

    fn close(&self) -> Result<(), EngineError> {
        drop(self.on.release());
        Ok(())
    }
}

/// Statements for one SLOB schema.
struct Calls {
    select: String,
    update: String,
    update_and_commit: String,
    scan: String,
    /// Of the next update.
    content: Vec<u8>,
}

impl Calls {
    fn new(plan: &Plan, schema: u32, batched: bool) -> Self {
        let redo = plan.redo_stress;
        Self {
            select: sql::select(schema, batched),
            update: sql::update(schema, redo, batched),
            update_and_commit: sql::update_and_commit(schema, redo, batched),
            scan: sql::scan(schema),
            content: Vec::new(),
        }
    }

    /// Verifies that the server would execute them as the test intends.
    fn checked(&self, session: &mut dyn Session, plan: &Plan, schema: u32) -> Result<(), EngineError> {
        let by_index = format!("INDEX RANGE SCAN {}", sql::index(schema).to_ascii_uppercase());
        plan_has(session, &self.select, &by_index)?;
        if plan.update_pct > 0 {
            plan_has(session, &self.update, &by_index)?;
        }
        if plan.scan_pct > 0 {
            let whole = format!("TABLE ACCESS FULL {}", sql::scan_table(schema).to_ascii_uppercase());
            plan_has(session, &self.scan, &whole)?;
        }
        Ok(())
    }
}

/// Verifies that the server's plan of a statement contains this step.
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
        "the server would not perform `{statement}` as the test requires: its plan is {}, without {wanted}; check the \
         index with `assay check`",
        steps.join(" / ")
    )))
}

/// Connection of a session; its driver blocks until the answer to a step arrives.
struct Link {
    session: Box<dyn Session>,
    sliced: Option<Sliced>,
    /// Rows of the last step.
    rows: u64,
}

impl From<OraError> for Failed {
    fn from(error: OraError) -> Self {
        Self { fatal: error.is_fatal(), error: error.of_operation() }
    }
}

impl Link {
    fn update(&mut self, calls: &Calls, range: Keys, alone: bool) -> Result<u64, OraError> {
        let columns = calls.content.chunks_exact(COLUMN_BYTES);
        let mut binds = Vec::with_capacity(columns.len() + 2);
        // The content consists of letters and digits only.
        binds.extend(columns.filter_map(|column| std::str::from_utf8(column).ok()).map(Bind::Text));
        binds.extend(keys(range));
        if !alone {
            return self.session.run(&calls.update, &binds);
        }
        let rows = self.session.call(&calls.update_and_commit, &binds, 1)?.concat();
        let strange = || OraError::broken(format!("an update returned {rows:?}, which is not a number of rows"));
        rows.parse().map_err(|_| strange())
    }
}

fn keys<'a>((first, last): Keys) -> [Bind<'a>; 2] {
    [Bind::Int(first as i64), Bind::Int(last as i64)]
}

impl session::Link for Link {
    type Calls = Calls;

    fn stamp(calls: &mut Calls, plan: &Plan, stamp: u64, first_key: u64) {
        let columns = sql::changed_columns(plan.redo_stress).len();
        fill_columns(&mut calls.content, columns, stamp, first_key, plan.obfuscate);
    }

    fn ask(&mut self, calls: &mut Calls, step: Step) -> Result<(), Failed> {
        self.rows = match step {
            // The first change begins a transaction.
            Step::Begin => 0,
            Step::Select(range) => self.session.number(&calls.select, &keys(range))?,
            Step::Update { keys, alone } => self.update(calls, keys, alone)?,
            Step::Scan => self.session.number(&calls.scan, &[])?,
            Step::Commit => self.session.commit().map(|()| 0)?,
        };
        Ok(())
    }

    fn answer(&mut self) -> Result<u64, Failed> {
        Ok(self.rows)
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

    fn slice(&mut self, _plan: &Plan, clock: &Clock, slice: Slice<'_>) -> Result<SliceDone, Failed> {
        there(&mut self.sliced)?.perform(&mut *self.session, clock, &slice)
    }
}
