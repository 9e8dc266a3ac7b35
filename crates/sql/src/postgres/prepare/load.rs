//! Carrying out a load plan: one connection loads one SLOB schema at a time, several do so side by side.
//!
//! A SLOB schema is created, filled and indexed in one transaction: it is there whole or not at all, its rows are born
//! frozen (`COPY ... FREEZE` is only allowed to the transaction that created the table), and with `wal_level=minimal`
//! nothing of it is logged. Then every schema is vacuumed, verified and noted as loaded. The caller's connection holds
//! the claim on the data set and cancels what the others do when somebody wants to stop.

use super::batch::{Batch, Fill, HEAD, ROWS, TAIL};
use super::plan::{LoadPlan, Start};
use crate::checked::{Findings, Level};
use crate::postgres::check;
use crate::postgres::conninfo::ConnectOptions;
use crate::postgres::layout::Names;
use crate::postgres::marker;
use crate::postgres::own::{connect, told};
use crate::postgres::site::Guard;
use crate::postgres::wire::{Connection, PgError};
use crate::threads::side_by_side;
use assay_measure::permutation::Permutation;
use assay_measure::units::many;
use assay_run::dataset::lines::{bytes, count, decimal, text};
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// SLOB schemas dropped in one transaction: each locks a handful of relations, and a server has room for a few thousand.
const DROPPED_TOGETHER: usize = 50;

/// Settings of a connection that loads: nothing may cut a load short but its user, and the columns arrive as they are.
const SESSION: &str = "set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0; \
    set synchronous_commit = off; set vacuum_cost_delay = 0";

/// Rights of the role that logged in: to write a checkpoint, to cancel its other sessions.
const AS_OURSELVES: &str = "reset role";

/// Loads, verifies and sums up.
///
/// # Errors
/// The server's; `Interrupted`; `Damaged` if what was loaded is not what it must be.
pub(super) fn run(
    plan: &LoadPlan,
    options: &ConnectOptions,
    keeper: &mut Connection,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let begun = Instant::now();
    keeper.query(SESSION).map_err(told("preparing the session"))?;
    let mut guard = match plan.start {
        Start::Fresh => Guard::none(),
        _ => plan.guard(options)?,
    };
    let wal_begin = wal_position(keeper);
    plan.act(keeper)?;
    open_site(plan, keeper)?;
    if plan.start == Start::Fresh {
        guard = plan.guard(options)?;
    }
    let loaded = work(plan, options, keeper, stop, progress);
    guard.end();
    let (load_s, findings) = match loaded {
        Ok(done) => done,
        Err(error) => return Err(leave_site(plan, keeper, error)),
    };
    let checkpoint = checkpoint(plan, keeper, progress)?;
    let mut lines = summary(plan, load_s, wal_begin.zip(wal_position(keeper)));
    lines.extend(checkpoint);
    lines.extend(findings.lines());
    lines.push(decimal("total_s", "Time in all, s", begun.elapsed().as_secs_f64()));
    Ok(lines)
}

/// Both passes over the schemas; returns the time of the first, s.
fn work(
    plan: &LoadPlan,
    options: &ConnectOptions,
    keeper: &mut Connection,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<(f64, Findings), EngineError> {
    let begun = Instant::now();
    let job = Job::new(plan, options, stop, "load", plan.total_bytes());
    job.run(&plan.load, keeper, progress, &|job, connection, n| job.load(connection, n).map(|()| Findings::default()))?;
    let load_s = begun.elapsed().as_secs_f64();
    let all: Vec<u32> = plan.verify.iter().chain(&plan.load).copied().collect();
    let pages = all.len() as u64 * (plan.marker.scale + plan.marker.scan_blocks);
    let job = Job::new(plan, options, stop, "verify", pages * plan.marker.block_bytes);
    let findings = job.run(&all, keeper, progress, &|job, connection, n| job.settle(connection, n))?;
    Ok((load_s, findings))
}

impl LoadPlan {
    /// Keeps the marker of another role's data set as it was examined.
    fn guard(&self, options: &ConnectOptions) -> Result<Guard, EngineError> {
        self.guard_tables(options, &[])
    }

    fn guard_tables(&self, options: &ConnectOptions, tables: &[String]) -> Result<Guard, EngineError> {
        match &self.owner {
            Some(owner) => Guard::stand(options, &self.names, owner, tables, true),
            None => Ok(Guard::none()),
        }
    }

    /// Makes a session act as the role the data set belongs to.
    fn act(&self, connection: &mut Connection) -> Result<(), EngineError> {
        self.owner.as_ref().map_or(Ok(()), |owner| owner.act(connection))
    }
}

/// Creates the PostgreSQL schema and the marker, removes what an earlier prepare left, notes what will be loaded.
fn open_site(plan: &LoadPlan, keeper: &mut Connection) -> Result<(), EngineError> {
    let names = &plan.names;
    drop_schemas(names, keeper, &plan.drop)?;
    let mut script = String::from("begin; ");
    match &plan.start {
        Start::Fresh => {
            if plan.creates_schema() {
                script += &format!("create schema {}; ", names.schema_sql());
            }
            script += &plan.marker.create(names);
        }
        Start::Over(_) => script += &plan.marker.replace(names),
        Start::Add(_) | Start::Nothing(_) => {}
    }
    if !plan.load.is_empty() {
        script += "; ";
        script += &marker::note_loading(names, &plan.load);
    }
    script += "; commit";
    in_transaction(keeper, &script, "creating the marker of the data set")
}

/// Runs a script that is one transaction; after an error the transaction is over.
pub(in crate::postgres) fn in_transaction(
    connection: &mut Connection,
    script: &str,
    doing: &str,
) -> Result<(), EngineError> {
    let done = connection.query(script).map(drop);
    if done.is_err() {
        // The connection may be gone; then so is the transaction.
        let _ = connection.query("rollback");
    }
    done.map_err(told(doing))
}

/// Drops the tables of SLOB schemas and forgets them.
pub(in crate::postgres) fn drop_schemas(
    names: &Names,
    connection: &mut Connection,
    schemas: &[u32],
) -> Result<(), EngineError> {
    for some in schemas.chunks(DROPPED_TOGETHER) {
        let tables: Vec<String> = some.iter().flat_map(|n| [names.rows_table(*n), names.scan_table(*n)]).collect();
        let script =
            format!("begin; drop table if exists {}; {}; commit", tables.join(", "), marker::forget(names, some));
        in_transaction(connection, &script, "removing tables")?;
    }
    Ok(())
}

/// After a failed load. What is loaded to the end stays; a data set of which nothing could be used goes, unless the
/// user interrupted it: the next prepare goes on where this one stopped.
fn leave_site(plan: &LoadPlan, keeper: &mut Connection, error: EngineError) -> EngineError {
    let fresh = matches!(plan.start, Start::Fresh | Start::Over(_));
    if plan.act(keeper).is_err() || !fresh || matches!(error, EngineError::Interrupted) {
        return error;
    }
    let Ok(marker::Found::Ours(ours)) = marker::find(keeper, &plan.names) else {
        return error;
    };
    if !ours.marked.loaded.is_empty() {
        return EngineError::Unusable(format!(
            "{error}; {} SLOB schemas are loaded and stay: `assay prepare` loads the others, `assay destroy` removes \
             all of them",
            ours.marked.loaded.len()
        ));
    }
    let loading: Vec<u32> = ours.marked.loading.iter().copied().collect();
    let mut removed = drop_schemas(&plan.names, keeper, &loading);
    if removed.is_ok() {
        let schema = if plan.marker.own.made_schema {
            format!("; drop schema {}", plan.names.schema_sql())
        } else {
            String::new()
        };
        let script = format!("begin; {}{schema}; commit", marker::drop_tables(&plan.names));
        removed = in_transaction(keeper, &script, "removing the marker");
    }
    match removed {
        Ok(()) => error,
        Err(second) => EngineError::Unusable(format!(
            "{error}; and assay could not remove what it had begun ({second}): run `assay destroy`"
        )),
    }
}

/// Writes what the load left in memory, so that the first run does not.
fn checkpoint(plan: &LoadPlan, keeper: &mut Connection, progress: &dyn Progress) -> Result<Vec<Line>, EngineError> {
    if plan.load.is_empty() && plan.verify.is_empty() {
        return Ok(Vec::new());
    }
    progress.update("checkpoint", 0, 0);
    let begun = Instant::now();
    match keeper.query(AS_OURSELVES).and_then(|_| keeper.query("checkpoint")) {
        Ok(_) => Ok(vec![decimal("checkpoint_s", "Checkpoint time, s", begun.elapsed().as_secs_f64())]),
        Err(error) if error.code() == Some("42501") => Ok(vec![text(
            "checkpoint_s",
            "Checkpoint time, s",
            "n/a (needs a superuser, or pg_checkpoint from PostgreSQL 15 on: the first run may write pages that the \
             load left dirty)"
                .to_owned(),
        )]),
        Err(error) => Err(told("writing a checkpoint")(error)),
    }
}

/// Bytes of log ever written; a server that does not tell is asked no further.
fn wal_position(connection: &mut Connection) -> Option<u64> {
    let rows = connection.query("select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").ok()?;
    rows.rows.into_iter().flatten().flatten().next()?.parse().ok()
}

fn summary(plan: &LoadPlan, load_s: f64, wal: Option<(u64, u64)>) -> Vec<Line> {
    let marker = &plan.marker;
    if plan.load.is_empty() {
        let action = format!("nothing loaded: {} already there", many(plan.schemas.into(), "SLOB schema"));
        return vec![text("action", "Action", action)];
    }
    let rows = plan.rows();
    let data = (rows + plan.scan_rows()) * marker.block_bytes;
    let seconds = load_s.max(1e-9);
    let mut lines = vec![
        count("loaded_schemas", "SLOB schemas loaded", plan.load.len() as u64),
        count("loaded_rows", "Rows loaded", rows),
        count("loaded_scan_rows", "Scan table rows loaded", plan.scan_rows()),
        bytes("load_bytes", "Table data written", data),
        decimal("load_s", "Load time with the index, s", load_s),
        decimal("load_rows_per_s", "Load rate in rows", (rows + plan.scan_rows()) as f64 / seconds),
        decimal("load_mb_per_s", "Load rate, MB/s (10^6)", data as f64 / 1e6 / seconds),
        count("load_connections", "Connections that loaded", plan.degree as u64),
    ];
    if let Some((begin, end)) = wal {
        let label = "Log written by the server meanwhile";
        lines.push(bytes("wal_bytes", label, end.saturating_sub(begin)));
    }
    lines
}

/// What the connections of a pass share.
struct Job<'a> {
    plan: &'a LoadPlan,
    options: &'a ConnectOptions,
    stop: &'a Stop,
    phase: &'static str,
    total_bytes: u64,
    done_bytes: AtomicU64,
    next: AtomicUsize,
    /// A thread failed, or the user wants to stop: start nothing more.
    ended: AtomicBool,
    /// Server processes at work; 0 is none.
    pids: Vec<AtomicI32>,
}

/// What a connection does for one SLOB schema.
type Work<'w, 'a> = &'w (dyn Fn(&Job<'a>, &mut Connection, u32) -> Result<Findings, EngineError> + Sync);

impl<'a> Job<'a> {
    fn new(
        plan: &'a LoadPlan,
        options: &'a ConnectOptions,
        stop: &'a Stop,
        phase: &'static str,
        total_bytes: u64,
    ) -> Self {
        Self {
            plan,
            options,
            stop,
            phase,
            total_bytes,
            done_bytes: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            pids: (0..plan.degree).map(|_| AtomicI32::new(0)).collect(),
        }
    }

    /// Works through the schemas with as many connections as the plan says; the first failure ends all.
    fn run(
        &self,
        schemas: &[u32],
        keeper: &mut Connection,
        progress: &dyn Progress,
        work: Work<'_, 'a>,
    ) -> Result<Findings, EngineError> {
        let threads = self.plan.degree.min(schemas.len());
        let one = |thread: usize| {
            let done = self.thread(thread, schemas, work);
            self.pids[thread].store(0, Ordering::Release);
            done
        };
        let watch = || {
            let done = self.done_bytes.load(Ordering::Relaxed);
            progress.update(self.phase, done, self.total_bytes);
            if self.stop.requested() {
                self.ended.store(true, Ordering::Release);
            }
            if self.ended.load(Ordering::Acquire) {
                self.cancel(keeper);
            }
            Ok(())
        };
        side_by_side(threads, &self.ended, one, Findings::merge, watch)
    }

    /// Asks the server to end what the threads wait for.
    fn cancel(&self, keeper: &mut Connection) {
        for pid in self.pids.iter().map(|pid| pid.load(Ordering::Acquire)).filter(|pid| *pid != 0) {
            // If it fails the thread ends a little later by itself.
            let _ = keeper.query(&format!("{AS_OURSELVES}; select pg_cancel_backend({pid})"));
        }
    }

    fn thread(&self, thread: usize, schemas: &[u32], work: Work<'_, 'a>) -> Result<Findings, EngineError> {
        let mut findings = Findings::default();
        let mut connection = connect(self.options).map_err(told("connecting"))?;
        connection.query(SESSION).map_err(told("preparing the session"))?;
        self.plan.act(&mut connection)?;
        let encoding = crate::postgres::layout::literal(&self.plan.server.encoding);
        connection.query(&format!("set client_encoding = {encoding}")).map_err(told("preparing the session"))?;
        self.pids[thread].store(connection.backend_pid(), Ordering::Release);
        while let Some(n) = schemas.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.ended.load(Ordering::Acquire) {
                break;
            }
            findings.merge(&work(self, &mut connection, *n)?);
        }
        self.pids[thread].store(0, Ordering::Release);
        connection.close();
        if self.ended.load(Ordering::Acquire) { Err(EngineError::Interrupted) } else { Ok(findings) }
    }

    /// The error of a statement: on request to stop, that; else with what was being done.
    fn failure(&self, n: u32, doing: &str, error: PgError) -> EngineError {
        match error.code() {
            Some("57014") if self.ended.load(Ordering::Acquire) => EngineError::Interrupted,
            Some("53100") => EngineError::Unusable(format!(
                "the server's disk is full, {doing} SLOB schema {n}: {error}; the unfinished schema is rolled back. \
                 Make room, or use a smaller SCALE or fewer schemas, and run `assay prepare` again"
            )),
            _ => EngineError::Unusable(format!("{doing} SLOB schema {n}: {error}")),
        }
    }

    /// Creates, fills and indexes a SLOB schema in one transaction.
    fn load(&self, connection: &mut Connection, n: u32) -> Result<(), EngineError> {
        let loaded = self.load_uncommitted(connection, n).and_then(|()| {
            let committed = connection.query("commit");
            committed.map(drop).map_err(|error| self.failure(n, "committing", error))
        });
        if loaded.is_err() {
            // The connection may be gone; then so is the transaction.
            let _ = connection.query("rollback");
        }
        loaded
    }

    fn load_uncommitted(&self, connection: &mut Connection, n: u32) -> Result<(), EngineError> {
        let (plan, names) = (self.plan, &self.plan.names);
        let (marker, storage) = (&plan.marker, plan.storage());
        let mut sql = |text: &str, doing: &str| {
            let done = connection.query(text).map(drop);
            done.map_err(|error| self.failure(n, doing, error))
        };
        sql("begin", "beginning")?;
        sql(&names.create_rows(n, &storage), "creating the tables of")?;
        if marker.scan_blocks > 0 {
            sql(&names.create_scan(n, &storage), "creating the tables of")?;
        }
        let permutation = Permutation::new(marker.seed, n, marker.scale);
        let key = |slot| permutation.key_of_slot(slot);
        self.copy(
            connection,
            n,
            Table { name: names.rows_table(n), rows: marker.scale, first_row: u64::from(n) << 40 },
            &key,
        )?;
        if marker.scan_blocks > 0 {
            let first_row = u64::from(n) << 40 | 1 << 39;
            let table = Table { name: names.scan_table(n), rows: marker.scan_blocks, first_row };
            self.copy(connection, n, table, &|slot| slot + 1)?;
        }
        let index = names.create_index(n, marker.unique, &storage);
        let indexed = connection.query(&index).map(drop);
        indexed.map_err(|error| self.failure(n, "indexing", error))?;
        let pages = crate::postgres::layout::index_pages(marker.scale, marker.block_bytes);
        self.done_bytes.fetch_add(pages * marker.block_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Copies the rows of a table in the order of their slots.
    fn copy(
        &self,
        connection: &mut Connection,
        n: u32,
        table: Table,
        key: &dyn Fn(u64) -> u64,
    ) -> Result<(), EngineError> {
        let marker = &self.plan.marker;
        let fail = |error| self.failure(n, "loading", error);
        let mut batch = Batch::new(if marker.obfuscate {
            Fill::Random { data_set: marker.data_set, compress_pct: marker.compress_pct }
        } else {
            Fill::Constant
        });
        let sql = format!("copy {} from stdin with (format binary, freeze)", table.name);
        let together = self.plan.server.rows_a_copy();
        let (mut slot, mut taken) = (0, 0);
        while slot < table.rows {
            let end = slot.saturating_add(together).min(table.rows);
            let mut copy = connection.copy_in(&sql).map_err(fail)?;
            copy.send(HEAD).map_err(fail)?;
            while slot < end {
                if self.ended.load(Ordering::Acquire) {
                    copy.abort("assay was asked to stop").map_err(fail)?;
                    return Err(EngineError::Interrupted);
                }
                let rows = (end - slot).min(ROWS as u64);
                // Cut to a range of usize, which knows its length.
                let keys = (0..rows as usize).map(|i| key(slot + i as u64));
                let sent = copy.send_framed(batch.rows(table.first_row + slot, keys));
                if let Err(error) = sent {
                    // A server that refuses the rows says why before it hangs up.
                    return Err(fail(copy.abort("assay lost the connection").err().unwrap_or(error)));
                }
                slot += rows;
                self.done_bytes.fetch_add(rows * marker.block_bytes, Ordering::Relaxed);
            }
            copy.send(&TAIL).map_err(fail)?;
            taken += copy.finish().map_err(fail)?;
        }
        if taken == table.rows {
            return Ok(());
        }
        Err(EngineError::Damaged(format!(
            "{} accepted {taken} of {} rows: a rule or trigger of the database changes the loaded rows",
            table.name, table.rows
        )))
    }

    /// Vacuums, verifies and notes a SLOB schema as loaded.
    fn settle(&self, connection: &mut Connection, n: u32) -> Result<Findings, EngineError> {
        let (plan, names) = (self.plan, &self.plan.names);
        let marker = &plan.marker;
        let mut tables = vec![names.rows_table(n)];
        if marker.scan_blocks > 0 {
            tables.push(names.scan_table(n));
        }
        let mut guard = plan.guard_tables(self.options, &tables)?;
        for table in tables {
            let vacuumed = connection.query(&format!("vacuum (freeze, analyze) {table}"));
            vacuumed.map_err(|error| self.failure(n, "vacuuming", error))?;
        }
        let subject = check::Subject { names, marker, n, work_unit: plan.work_unit, level: Level::Loaded };
        let findings = check::verify(connection, &subject)
            .map_err(|error| if self.ended.load(Ordering::Acquire) { EngineError::Interrupted } else { error })?;
        let noted = connection.query(&marker::note_loaded(names, n));
        noted.map_err(|error| self.failure(n, "marking as loaded", error))?;
        guard.end();
        let pages = marker.scale + marker.scan_blocks;
        self.done_bytes.fetch_add(pages * marker.block_bytes, Ordering::Relaxed);
        Ok(findings)
    }
}

/// A table to be filled.
struct Table {
    /// For SQL.
    name: String,
    rows: u64,
    /// Number of its first row among all rows of the data set.
    first_row: u64,
}
