//! The null engine: every operation ends at once, having touched all its rows.
//! What remains is the cost of the loop itself, the harness floor.

use crate::engine::{Assignment, Completion, Driver, Engine, EngineError, Op, Outcome, Submit, Tag};
use crate::plan::Plan;
use crate::workload::Workload;
use assay_measure::clock::{Clock, Ns};
use assay_measure::counter_catalog;
use assay_measure::snapshot::{Fact, StatSet};
use std::time::Duration;

/// See the module.
#[derive(Clone, Debug)]
pub struct NullEngine<'a> {
    workload: &'a dyn Workload,
    clock: Clock,
    scan_blocks: u64,
    block_bytes: u64,
}

impl<'a> NullEngine<'a> {
    /// For `plan` of `workload`, by `clock`.
    #[must_use]
    pub fn new(plan: &Plan, workload: &'a dyn Workload, clock: &Clock) -> Self {
        Self { workload, clock: clock.clone(), scan_blocks: plan.scan_blocks, block_bytes: plan.block_bytes }
    }
}

/// One thread's part: counts, and reads the clock as any engine must.
#[derive(Debug)]
struct NullDriver<'a> {
    engine: &'a NullEngine<'a>,
    rows_visited: u64,
    rows_changed: u64,
    commits: u64,
    scans: u64,
}

impl Engine for NullEngine<'_> {
    fn facts(&self) -> Vec<Fact> {
        vec![
            Fact::new("engine", "null: operations complete at once"),
            Fact::new("io_mode_achieved", "none, no I/O is done"),
            Fact::new("block_bytes", self.block_bytes),
        ]
    }

    fn workload(&self) -> &dyn Workload {
        self.workload
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        sessions.min(cpus).max(1)
    }

    fn driver<'a>(&'a self, _assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        Ok(Box::new(NullDriver { engine: self, rows_visited: 0, rows_changed: 0, commits: 0, scans: 0 }))
    }

    fn sample(&self) -> StatSet {
        StatSet::default()
    }

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

impl Driver for NullDriver<'_> {
    fn submit(&mut self, _tag: Tag, op: &Op, _now_ns: Ns) -> Submit {
        let rows = match *op {
            Op::Select { width, .. } => width.into(),
            Op::Update { width, commit, .. } => {
                self.rows_changed += u64::from(width);
                self.commits += u64::from(commit);
                width.into()
            }
            Op::Scan { .. } => {
                self.scans += 1;
                self.engine.scan_blocks
            }
            Op::Call { .. } => 0,
        };
        self.rows_visited += rows;
        Submit::Done(Outcome { end_ns: self.engine.clock.now_ns(), result: Ok(rows) })
    }

    fn reap(&mut self, _timeout: Duration, _out: &mut Vec<Completion>) -> Result<(), EngineError> {
        Ok(())
    }

    fn stats(&mut self, into: &mut StatSet) {
        into.add(counter_catalog::ROWS_VISITED, self.rows_visited);
        into.add(counter_catalog::ROWS_CHANGED, self.rows_changed);
        into.add(counter_catalog::USER_COMMITS, self.commits);
        into.add(counter_catalog::TABLE_SCANS, self.scans);
    }
}
