//! Carrying out a load plan: one connection loads one SLOB schema at a time, several do so side by side.
//!
//! Making a table ends a transaction here, so a schema is noted as being loaded before its tables exist and as loaded
//! once it is verified; what was begun and not ended goes when the next prepare begins.

use super::address::Address;
use super::batch::Batch;
use super::check;
use super::conn::{Connection, told};
use super::guard::{Guard, Waiting};
use super::layout::{create_index, create_table, rows_table, scan_table};
use super::marker;
use super::plan::LoadPlan;
use crate::checked::{Findings, Level};
use crate::threads::side_by_side;
use crate::wanted::Start;
use assay_measure::permutation::Permutation;
use assay_run::dataset::lines::{decimal, text};
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Statements of a transaction: a sync of the log for each would be most of the load.
const STATEMENTS: u64 = 32;
/// Added to the number of a schema for the rows of its scan table: they are unlike all others.
const SCAN: u32 = 1 << 20;

/// Loads, verifies and sums up.
///
/// # Errors
/// The server's; `Interrupted`; `Damaged` if what was loaded is not what it must be.
pub(super) fn run(
    plan: &LoadPlan,
    address: &Address,
    keeper: &mut Connection,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let begun = Instant::now();
    open_site(plan, keeper)?;
    let job = Job::new(plan, address, stop);
    let findings = job.run(keeper, progress)?;
    let load_s = begun.elapsed().as_secs_f64();
    progress.update("writing out", 0, 0);
    let written = write_out(plan, keeper);
    let mut lines = plan.summary(load_s);
    lines.push(written);
    lines.extend(findings.lines());
    lines.push(decimal("total_s", "Time in all, s", begun.elapsed().as_secs_f64()));
    Ok(lines)
}

/// Removes what an earlier prepare left, makes the marker, notes what will be loaded.
fn open_site(plan: &LoadPlan, keeper: &mut Connection) -> Result<(), EngineError> {
    let left: Vec<u32> = match &plan.start {
        Start::Fresh => Vec::new(),
        Start::Over(marked) | Start::Add(marked) => marked.loading.iter().copied().collect(),
    };
    marker::drop_left_loops(keeper)?;
    for n in left {
        for sql in marker::drop_schema(n) {
            keeper.run(&sql).map_err(told("removing tables"))?;
        }
    }
    if !matches!(plan.start, Start::Add(_)) {
        for sql in plan.marker.create() {
            keeper.run(&sql).map_err(told("creating the marker of the data set"))?;
        }
    }
    match plan.load.as_slice() {
        [] => Ok(()),
        load => keeper.run(&marker::note_loading(load)).map_err(told("writing the marker of the data set")),
    }
}

/// Has the server write what the load left in memory, so that the first run does not.
fn write_out(plan: &LoadPlan, keeper: &mut Connection) -> Line {
    let begun = Instant::now();
    let mut done = Ok(());
    for n in &plan.load {
        let tables = match plan.marker.scan_blocks {
            0 => rows_table(*n),
            _ => format!("{}, {}", rows_table(*n), scan_table(*n)),
        };
        done = keeper.run(&format!("flush tables {tables} for export")).and_then(|()| keeper.run("unlock tables"));
        if done.is_err() {
            break;
        }
    }
    let label = "Time to write out the tables, s";
    match done {
        Ok(()) => decimal("checkpoint_s", label, begun.elapsed().as_secs_f64()),
        Err(error) => text(
            "checkpoint_s",
            label,
            format!(
                "n/a ({error}; it needs RELOAD and LOCK TABLES: the first run may write pages that the load left dirty)"
            ),
        ),
    }
}

/// What the connections of a load share.
struct Job<'a> {
    plan: &'a LoadPlan,
    address: &'a Address,
    stop: &'a Stop,
    done_bytes: AtomicU64,
    next: AtomicUsize,
    /// A thread failed, or the user wants to stop: start nothing more.
    ended: AtomicBool,
    waiting: Waiting,
}

impl<'a> Job<'a> {
    fn new(plan: &'a LoadPlan, address: &'a Address, stop: &'a Stop) -> Self {
        Self {
            plan,
            address,
            stop,
            done_bytes: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            waiting: Waiting::default(),
        }
    }

    /// Works through the schemas with as many connections as the plan says; the first failure ends all.
    fn run(&self, keeper: &mut Connection, progress: &dyn Progress) -> Result<Findings, EngineError> {
        let threads = self.plan.degree.min(self.plan.load.len());
        let mut guard = Guard::new(keeper);
        let total = self.plan.data_bytes();
        let watch = || {
            progress.update("load", self.done_bytes.load(Ordering::Relaxed), total);
            if self.stop.requested() {
                self.ended.store(true, Ordering::Release);
            }
            if self.ended.load(Ordering::Acquire) {
                guard.end(&self.waiting);
            }
            Ok(())
        };
        let done = side_by_side(threads, &self.ended, |_| self.thread(), Findings::merge, watch);
        done.map_err(|error| if self.stop.requested() { EngineError::Interrupted } else { error })
    }

    fn thread(&self) -> Result<Findings, EngineError> {
        let mut findings = Findings::default();
        let mut connection = Connection::open(self.address)?;
        self.waiting.add(&connection);
        while !self.ended.load(Ordering::Acquire) {
            let Some(n) = self.plan.load.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                return Ok(findings);
            };
            self.load(&mut connection, *n)?;
            let found = check::schema(&mut connection, &self.plan.marker, *n, Level::Loaded)?;
            connection.run(&marker::note_loaded(*n)).map_err(told("noting a schema as loaded"))?;
            findings.merge(&found);
        }
        Err(EngineError::Interrupted)
    }

    fn load(&self, connection: &mut Connection, n: u32) -> Result<(), EngineError> {
        let doing = format!("loading SLOB schema {n}");
        let doing = told(&doing);
        let (plan, marker) = (self.plan, &self.plan.marker);
        connection.run(&create_table(plan.server.product, &rows_table(n), plan.sizes)).map_err(&doing)?;
        let keys = Permutation::new(marker.seed, n, marker.scale);
        self.fill(connection, &rows_table(n), n, marker.scale, &|slot| keys.key_of_slot(slot))?;
        connection.run(&create_index(n, marker.unique)).map_err(&doing)?;
        let mut tables = rows_table(n);
        if marker.scan_blocks > 0 {
            let scan = scan_table(n);
            connection.run(&create_table(plan.server.product, &scan, plan.sizes)).map_err(&doing)?;
            self.fill(connection, &scan, SCAN + n, marker.scan_blocks, &|slot| slot + 1)?;
            tables = format!("{tables}, {scan}");
        }
        // Its own statistics are not to be made in the midst of a run.
        connection.run(&format!("analyze table {tables}")).map_err(&doing)
    }

    fn fill(
        &self,
        connection: &mut Connection,
        table: &str,
        schema: u32,
        rows: u64,
        key_of_slot: &dyn Fn(u64) -> u64,
    ) -> Result<(), EngineError> {
        let doing = format!("loading {table}");
        let doing = told(&doing);
        let mut batch = Batch::new(self.plan, schema);
        let step = batch.rows();
        connection.run("begin").map_err(&doing)?;
        let mut first = 0;
        while first < rows {
            if self.ended.load(Ordering::Acquire) {
                return Err(EngineError::Interrupted);
            }
            let last = (first + step).min(rows);
            let done = batch.put(connection, table, first..last, key_of_slot);
            done.map_err(&doing)?;
            if (last / step).is_multiple_of(STATEMENTS) {
                connection.run("commit").map_err(&doing)?;
                connection.run("begin").map_err(&doing)?;
            }
            let done = (last - first) * self.plan.marker.block_bytes;
            self.done_bytes.fetch_add(done, Ordering::Relaxed);
            first = last;
        }
        connection.run("commit").map_err(&doing)
    }
}
