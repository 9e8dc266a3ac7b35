//! Executes a load plan: each connection loads one SLOB schema at a time, and several work side by side.
//!
//! Creating a table ends a transaction here. So a schema is recorded as loading before its tables exist, and as loaded
//! once it is verified; the next prepare removes unfinished schemas first.

use super::address::Address;
use super::batch::Batch;
use super::conn::{Connection, MyError, told};
use super::layout::{create_index, create_table, rows_table, scan_table};
use super::marker;
use super::plan::LoadPlan;
use super::{Mariadb, check};
use crate::checked::{Findings, Level};
use crate::slob::{Dialect, Job, summed_up};
use assay_measure::permutation::Permutation;
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;

/// Statements in a transaction. Syncing the log for each statement would take most of the load's time.
const STATEMENTS: u64 = 32;
/// Added to a schema's number for the rows of its scan table, so that they differ from all others.
const SCAN: u32 = 1 << 20;

/// Loads, verifies and sums up.
///
/// # Errors
/// The server's; `Interrupted`; `Damaged` if the loaded data fail verification.
pub(super) fn run(
    at: &Address,
    plan: LoadPlan,
    keeper: &mut Connection,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let (load, degree, bytes) = (plan.load.clone(), plan.degree, plan.data_bytes());
    let job = Job::<Mariadb, _>::new(at, plan, ("load", bytes), load);
    let work = |keeper: &mut Connection| {
        open_site(&job.what, keeper)?;
        job.run(degree, (|job| Mariadb::open(&job.at), schema), keeper, stop, progress)
    };
    summed_up(&job.what, keeper, work, |keeper| {
        progress.update("writing out", 0, 0);
        write_out(&job.what, keeper).map_err(|why| {
            format!("{why}; it needs RELOAD and LOCK TABLES: the first run may write pages that the load left dirty")
        })
    })
}

/// Removes what an earlier prepare left, creates the marker, records what will be loaded.
fn open_site(plan: &LoadPlan, keeper: &mut Connection) -> Result<(), EngineError> {
    marker::drop_left_loops(keeper)?;
    for n in plan.left() {
        for sql in marker::drop_schema(n) {
            keeper.run(&sql).map_err(told("removing tables"))?;
        }
    }
    if plan.is_new() {
        for sql in plan.marker.create() {
            keeper.run(&sql).map_err(told("creating the marker of the data set"))?;
        }
    }
    match plan.load.as_slice() {
        [] => Ok(()),
        load => keeper.run(&marker::note_loading(load)).map_err(told("writing the marker of the data set")),
    }
}

/// Has the server write what the load left in memory, so that the first run does not have to.
fn write_out(plan: &LoadPlan, keeper: &mut Connection) -> Result<(), MyError> {
    plan.load.iter().try_for_each(|n| {
        let tables = match plan.marker.scan_blocks {
            0 => rows_table(*n),
            _ => format!("{}, {}", rows_table(*n), scan_table(*n)),
        };
        keeper.run(&format!("flush tables {tables} for export"))?;
        keeper.run("unlock tables")
    })
}

/// Loads a SLOB schema and verifies it.
fn schema(job: &Job<Mariadb, LoadPlan>, connection: &mut Connection, n: u32) -> Result<Findings, EngineError> {
    load(job, connection, n)?;
    let found = check::schema(connection, &job.what.marker, n, Level::Loaded)?;
    connection.run(&marker::note_loaded(n)).map_err(told("noting a schema as loaded"))?;
    Ok(found)
}

fn load(job: &Job<Mariadb, LoadPlan>, connection: &mut Connection, n: u32) -> Result<(), EngineError> {
    let doing = format!("loading SLOB schema {n}");
    let doing = told(&doing);
    let (plan, marker) = (&job.what, &job.what.marker);
    connection.run(&create_table(plan.server.product, &rows_table(n), plan.sizes)).map_err(&doing)?;
    let keys = Permutation::new(marker.seed, n, marker.scale);
    fill(job, connection, &rows_table(n), (n, marker.scale), &|slot| keys.key_of_slot(slot))?;
    connection.run(&create_index(n, marker.unique)).map_err(&doing)?;
    let mut tables = rows_table(n);
    if marker.scan_blocks > 0 {
        let scan = scan_table(n);
        connection.run(&create_table(plan.server.product, &scan, plan.sizes)).map_err(&doing)?;
        fill(job, connection, &scan, (SCAN + n, marker.scan_blocks), &|slot| slot + 1)?;
        tables = format!("{tables}, {scan}");
    }
    // Otherwise the server might recalculate statistics during a run.
    connection.run(&format!("analyze table {tables}")).map_err(&doing)
}

fn fill(
    job: &Job<Mariadb, LoadPlan>,
    connection: &mut Connection,
    table: &str,
    (schema, rows): (u32, u64),
    key_of_slot: &dyn Fn(u64) -> u64,
) -> Result<(), EngineError> {
    let doing = format!("loading {table}");
    let doing = told(&doing);
    let mut batch = Batch::new(&job.what, schema);
    let step = batch.rows();
    connection.run("begin").map_err(&doing)?;
    let mut first = 0;
    while first < rows {
        job.goes_on()?;
        let last = (first + step).min(rows);
        let done = batch.put(connection, table, first..last, key_of_slot);
        done.map_err(&doing)?;
        if (last / step).is_multiple_of(STATEMENTS) {
            connection.run("commit").map_err(&doing)?;
            connection.run("begin").map_err(&doing)?;
        }
        job.done((last - first) * job.what.marker.block_bytes);
        first = last;
    }
    connection.run("commit").map_err(&doing)
}
