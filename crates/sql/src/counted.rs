//! Counters of a session.

use assay_measure::counter_catalog;
use assay_measure::snapshot::StatSet;
use assay_run::dataset::rows::COLUMN_BYTES;
use assay_run::engine::Op;

/// Cumulative.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Rows touched by operations.
    pub(crate) visited: u64,
    /// Rows changed by updates.
    pub(crate) changed: u64,
    pub(crate) scans: u64,
    pub(crate) commits: u64,
    pub(crate) rollbacks: u64,
}

impl Counted {
    /// Counts a completed operation.
    #[inline]
    pub(crate) fn done(&mut self, op: &Op, rows: u64) {
        self.visited += rows;
        match *op {
            Op::Update { commit, .. } => {
                self.changed += rows;
                self.commits += u64::from(commit);
            }
            Op::Scan { .. } => self.scans += 1,
            Op::Select { .. } | Op::Call { .. } => {}
        }
    }

    /// Adds these counts to those of the driver's other sessions; `columns` is the number of columns an update changes in each row.
    pub(crate) fn add_to(&self, into: &mut StatSet, columns: usize) {
        into.add(counter_catalog::ROWS_VISITED, self.visited);
        into.add(counter_catalog::ROWS_CHANGED, self.changed);
        let bytes = self.changed * (columns * COLUMN_BYTES) as u64;
        into.add(counter_catalog::CHANGED_BYTES, bytes);
        into.add(counter_catalog::TABLE_SCANS, self.scans);
        into.add(counter_catalog::USER_COMMITS, self.commits);
        into.add(counter_catalog::USER_ROLLBACKS, self.rollbacks);
    }
}
