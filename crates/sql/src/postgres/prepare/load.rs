//! Executes a load plan: each connection loads one SLOB schema at a time, and several work side by side.
//!
//! One transaction creates, fills and indexes a SLOB schema, so that it exists completely or not at all. Its rows are
//! frozen from the start (`COPY ... FREEZE` requires that the same transaction created the table), and with
//! `wal_level=minimal` the server logs none of it. Then every schema is vacuumed, verified and recorded as loaded. The
//! caller's connection holds the claim on the data set, and cancels the other sessions' statements on a request to
//! stop.

use super::batch::{Batch, Fill, HEAD, ROWS, TAIL};
use super::plan::LoadPlan;
use crate::checked::{Findings, Level};
use crate::postgres::conninfo::ConnectOptions;
use crate::postgres::layout::{Names, index_pages, literal};
use crate::postgres::own::{connect, told};
use crate::postgres::site::Guard;
use crate::postgres::wire::{Connection, PgError};
use crate::postgres::{At, Postgres, check, marker};
use crate::slob::Job;
use assay_measure::permutation::Permutation;
use assay_run::dataset::lines::{bytes, decimal, text};
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::time::Instant;

/// SLOB schemas dropped in one transaction: each locks a handful of relations, and the lock table has room for a few thousand.
const DROPPED_TOGETHER: usize = 50;

/// Session settings of a load: only the user may interrupt it, and the columns arrive unchanged.
const SESSION: &str = "set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0; \
    set synchronous_commit = off; set vacuum_cost_delay = 0";

/// Returns to the rights of the role that logged in, to write a checkpoint or cancel its other sessions.
pub(in crate::postgres) const AS_OURSELVES: &str = "reset role";

/// Loads, verifies and sums up.
///
/// # Errors
/// The server's; `Interrupted`; `Damaged` if the loaded data fail verification.
pub(in crate::postgres) fn run(
    at: &At,
    plan: &LoadPlan,
    keeper: &mut Connection,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let begun = Instant::now();
    keeper.query(SESSION).map_err(told("preparing the session"))?;
    let mut guard = if plan.is_fresh() { Guard::none() } else { plan.guard(&at.options)? };
    let wal_begin = wal_position(keeper);
    plan.act(keeper)?;
    open_site(plan, keeper)?;
    if plan.is_fresh() {
        guard = plan.guard(&at.options)?;
    }
    let loaded = work(at, plan, keeper, stop, progress);
    guard.end();
    let (load_s, findings) = match loaded {
        Ok(done) => done,
        Err(error) => return Err(leave_site(plan, keeper, error)),
    };
    let checkpoint = checkpoint(plan, keeper, progress)?;
    let mut lines = plan.summary(load_s, "");
    if let Some((begin, end)) = wal_begin.zip(wal_position(keeper)).filter(|_| !plan.load.is_empty()) {
        lines.push(bytes("wal_bytes", "Log written by the server meanwhile", end.saturating_sub(begin)));
    }
    lines.extend(checkpoint);
    lines.extend(findings.lines());
    lines.push(decimal("total_s", "Time in all, s", begun.elapsed().as_secs_f64()));
    Ok(lines)
}

/// Runs both passes over the schemas; returns the time of the first, s. Verification is a separate pass: while another
/// session still loads, the server cannot mark pages all-visible.
fn work(
    at: &At,
    plan: &LoadPlan,
    keeper: &mut Connection,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<(f64, Findings), EngineError> {
    let begun = Instant::now();
    let job = Job::<Postgres, _>::new(at, plan.clone(), ("load", plan.total_bytes()), plan.load.clone());
    job.run(plan.degree, (session, load), keeper, stop, progress)?;
    let load_s = begun.elapsed().as_secs_f64();
    let all: Vec<u32> = plan.verify.iter().chain(&plan.load).copied().collect();
    let total_bytes = all.len() as u64 * plan.marker.schema_bytes();
    let job = Job::<Postgres, _>::new(at, plan.clone(), ("verify", total_bytes), all);
    let findings = job.run(plan.degree, (session, settle), keeper, stop, progress)?;
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

    /// Makes a session act as the data set's owner.
    fn act(&self, connection: &mut Connection) -> Result<(), EngineError> {
        self.owner.as_ref().map_or(Ok(()), |owner| owner.act(connection))
    }
}

/// Creates the PostgreSQL schema and the marker, removes what an earlier prepare left, records what will be loaded.
fn open_site(plan: &LoadPlan, keeper: &mut Connection) -> Result<(), EngineError> {
    let names = &plan.names;
    let over = plan.is_new();
    drop_schemas(names, keeper, &if over { plan.left() } else { plan.drop.clone() })?;
    let mut script = String::from("begin; ");
    if plan.creates_schema() {
        script += &format!("create schema {}; ", names.schema_sql());
    }
    if plan.is_fresh() {
        script += &plan.marker.create(names);
    } else if plan.is_new() {
        script += &plan.marker.replace(names);
    }
    if !plan.load.is_empty() {
        script += "; ";
        script += &marker::note_loading(names, &plan.load);
    }
    script += "; commit";
    in_transaction(keeper, &script, "creating the marker of the data set")
}

/// Runs a script that is one transaction; rolls back after an error.
pub(in crate::postgres) fn in_transaction(
    connection: &mut Connection,
    script: &str,
    doing: &str,
) -> Result<(), EngineError> {
    let done = connection.query(script).map(drop);
    if done.is_err() {
        // If the connection is lost, so is the transaction.
        let _ = connection.query("rollback");
    }
    done.map_err(told(doing))
}

/// Drops the tables of SLOB schemas and removes them from the marker.
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

/// Cleans up after a failed load. Completely loaded schemas stay. A data set without any is removed, unless the user
/// interrupted the load: then the next prepare continues it.
fn leave_site(plan: &LoadPlan, keeper: &mut Connection, error: EngineError) -> EngineError {
    if plan.act(keeper).is_err() || !plan.is_new() || matches!(error, EngineError::Interrupted) {
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

/// Writes what the load left in memory, so that the first run does not have to.
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

/// Bytes of log ever written; `None` if the server does not say.
fn wal_position(connection: &mut Connection) -> Option<u64> {
    let rows = connection.query("select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").ok()?;
    rows.rows.into_iter().flatten().flatten().next()?.parse().ok()
}

/// Opens a connection that loads.
fn session(job: &Job<Postgres, LoadPlan>) -> Result<Connection, EngineError> {
    let mut connection = connect(&job.at.options).map_err(told("connecting"))?;
    let doing = told("preparing the session");
    connection.query(SESSION).map_err(&doing)?;
    job.what.act(&mut connection)?;
    let encoding = literal(&job.what.server.encoding);
    connection.query(&format!("set client_encoding = {encoding}")).map_err(&doing)?;
    Ok(connection)
}

/// Creates, fills and indexes a SLOB schema in one transaction.
fn load(job: &Job<Postgres, LoadPlan>, connection: &mut Connection, n: u32) -> Result<Findings, EngineError> {
    let loaded = job.load_uncommitted(connection, n).and_then(|()| {
        let committed = connection.query("commit");
        committed.map_err(|error| job.failure(n, "committing", error))
    });
    if loaded.is_err() {
        // If the connection is lost, so is the transaction.
        let _ = connection.query("rollback");
    }
    loaded.map(|_| Findings::default())
}

/// Vacuums and verifies a SLOB schema, and records it as loaded.
fn settle(job: &Job<Postgres, LoadPlan>, connection: &mut Connection, n: u32) -> Result<Findings, EngineError> {
    let (plan, names) = (&job.what, &job.what.names);
    let mut tables = vec![names.rows_table(n)];
    if plan.marker.scan_blocks > 0 {
        tables.push(names.scan_table(n));
    }
    let mut guard = plan.guard_tables(&job.at.options, &tables)?;
    for table in tables {
        let vacuumed = connection.query(&format!("vacuum (freeze, analyze) {table}"));
        vacuumed.map_err(|error| job.failure(n, "vacuuming", error))?;
    }
    let subject = check::Subject { at: &job.at, marker: &plan.marker, n, level: Level::Loaded };
    let findings = check::verify(connection, &subject)?;
    let noted = connection.query(&marker::note_loaded(names, n));
    noted.map_err(|error| job.failure(n, "marking as loaded", error))?;
    guard.end();
    job.done(plan.marker.schema_bytes());
    Ok(findings)
}

impl Job<Postgres, LoadPlan> {
    /// Converts the error of a statement: `Interrupted` after a request to stop, else with what was being done.
    fn failure(&self, n: u32, doing: &str, error: PgError) -> EngineError {
        match error.code() {
            Some("57014") if self.goes_on().is_err() => EngineError::Interrupted,
            Some("53100") => EngineError::Unusable(format!(
                "the server's disk is full, {doing} SLOB schema {n}: {error}; the unfinished schema is rolled back. \
                 Make room, or use a smaller SCALE or fewer schemas, and run `assay prepare` again"
            )),
            _ => EngineError::Unusable(format!("{doing} SLOB schema {n}: {error}")),
        }
    }

    fn load_uncommitted(&self, connection: &mut Connection, n: u32) -> Result<(), EngineError> {
        let (plan, names) = (&self.what, &self.what.names);
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
        self.done(index_pages(marker.scale, marker.block_bytes) * marker.block_bytes);
        Ok(())
    }

    /// Copies the rows of a table in slot order.
    fn copy(
        &self,
        connection: &mut Connection,
        n: u32,
        table: Table,
        key: &dyn Fn(u64) -> u64,
    ) -> Result<(), EngineError> {
        let marker = &self.what.marker;
        let fail = |error| self.failure(n, "loading", error);
        let mut batch = Batch::new(if marker.obfuscate {
            Fill::Random { data_set: marker.data_set, compress_pct: marker.compress_pct }
        } else {
            Fill::Constant
        });
        let sql = format!("copy {} from stdin with (format binary, freeze)", table.name);
        let together = self.what.server.rows_a_copy();
        let (mut slot, mut taken) = (0, 0);
        while slot < table.rows {
            let end = slot.saturating_add(together).min(table.rows);
            let mut copy = connection.copy_in(&sql).map_err(fail)?;
            copy.send(HEAD).map_err(fail)?;
            while slot < end {
                if let Err(ended) = self.goes_on() {
                    copy.abort("assay was asked to stop").map_err(fail)?;
                    return Err(ended);
                }
                let rows = (end - slot).min(ROWS as u64);
                // A usize range knows its length.
                let keys = (0..rows as usize).map(|i| key(slot + i as u64));
                let sent = copy.send_framed(batch.rows(table.first_row + slot, keys));
                if let Err(error) = sent {
                    // A server that refuses the rows sends the reason before it closes the connection.
                    return Err(fail(copy.abort("assay lost the connection").err().unwrap_or(error)));
                }
                slot += rows;
                self.done(rows * marker.block_bytes);
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
}

/// A table to fill.
struct Table {
    /// Name for SQL.
    name: String,
    rows: u64,
    /// Number of its first row within the data set.
    first_row: u64,
}
