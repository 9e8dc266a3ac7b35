//! What an engine that stores nothing counts of the operations it is given: the null and the simulated one.

use crate::engine::Op;
use assay_measure::snapshot::StatSet;
use assay_measure::stats;

/// Counts of one driver.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    rows_visited: u64,
    rows_changed: u64,
    commits: u64,
    scans: u64,
}

impl Counted {
    /// Counts an operation as done, a scan with so many rows; returns the rows it touched.
    #[inline]
    pub(crate) fn count(&mut self, op: &Op, scan_blocks: u64) -> u64 {
        match *op {
            Op::Select { .. } => {}
            Op::Update { width, commit, .. } => {
                self.rows_changed += u64::from(width);
                self.commits += u64::from(commit);
            }
            Op::Scan { .. } => self.scans += 1,
            Op::Call { .. } => {}
        }
        let rows = rows_of(op, scan_blocks);
        self.rows_visited += rows;
        rows
    }

    /// Adds everything to a set.
    pub(crate) fn export(&self, into: &mut StatSet) {
        into.add(stats::ROWS_VISITED, self.rows_visited);
        into.add(stats::ROWS_CHANGED, self.rows_changed);
        into.add(stats::USER_COMMITS, self.commits);
        into.add(stats::TABLE_SCANS, self.scans);
    }
}

/// Rows an operation touches.
#[inline]
pub(crate) fn rows_of(op: &Op, scan_blocks: u64) -> u64 {
    match *op {
        Op::Select { width, .. } | Op::Update { width, .. } => u64::from(width),
        Op::Scan { .. } => scan_blocks,
        Op::Call { .. } => 0,
    }
}
