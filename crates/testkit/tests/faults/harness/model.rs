//! The oracle: what must, may and cannot be on the disk after a crash.
//!
//! A row is 19 stamps, one per column, 0 for a column as it was loaded. What was acknowledged must be there. Of
//! what a session had begun and was not told about, all or nothing may be there.

use super::base::{ROWS, SCHEMAS};
use assay_native::block_format::{COLUMN_BYTES, COLUMNS, FILL, HEADER_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// Stamps of the columns of a row.
pub(super) type Row = [u64; COLUMNS];
/// Schema and key, both from 1.
pub(super) type Key = (u32, u64);

/// Every row of the data set.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { rows: vec![[0; COLUMNS]; (ROWS * u64::from(SCHEMAS)) as usize] }
    }

    fn index((schema, key): Key) -> usize {
        ((u64::from(schema) - 1) * ROWS + key - 1) as usize
    }

    pub(super) fn row(&self, key: Key) -> &Row {
        &self.rows[Self::index(key)]
    }

    pub(super) fn row_mut(&mut self, key: Key) -> &mut Row {
        &mut self.rows[Self::index(key)]
    }

    pub(super) fn keys() -> impl Iterator<Item = Key> {
        (1..=SCHEMAS).flat_map(|schema| (1..=ROWS).map(move |key| (schema, key)))
    }

    pub(super) fn apply(&mut self, operation: &Operation) {
        for key in operation.keys() {
            let row = self.row_mut(key);
            if operation.heavy {
                row.fill(operation.stamp);
            } else {
                row[0] = operation.stamp;
                row[COLUMNS - 1] = operation.stamp;
            }
        }
    }
}

/// One update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) schema: u32,
    pub(super) first_key: u64,
    pub(super) width: u32,
    pub(super) stamp: u64,
    pub(super) heavy: bool,
    pub(super) commit: bool,
}

impl Operation {
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        let (schema, first, width) = (self.schema, self.first_key, self.width);
        (0..u64::from(width)).map(move |i| (schema, (first + i - 1) % ROWS + 1))
    }
}

/// A transaction whose commit was acknowledged.
#[derive(Clone, Debug)]
struct Acknowledged {
    operations: Vec<Operation>,
    /// How far the log was durable at that instant.
    durable: u64,
}

/// What may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Nothing that was acknowledged.
    Durable,
    /// Acknowledged transactions, newest first, each as a whole (COMMIT_MODE=none).
    AnySuffix,
    /// Likewise, but only those whose redo was in the last so many log writes, which were under way together: they were
    /// destroyed after they had been acknowledged, and nothing behind them can prove that they had been there.
    LastFlushes(usize),
}

/// The oracle of one run of the engine.
#[derive(Clone)]
pub(super) struct Model {
    /// What was on disk when the run began.
    base: Table,
    acknowledged: Vec<Acknowledged>,
    /// Per session: what it has changed since its last acknowledged commit.
    open: BTreeMap<u64, Vec<Operation>>,
    /// Sessions that may have written a commit record.
    committing: BTreeMap<u64, bool>,
    closed: bool,
}

/// What was found, beside being right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Acknowledged transactions.
    pub(super) acknowledged: u64,
    /// Of these, lost, where that was allowed.
    pub(super) lost: u64,
    /// Transactions in doubt.
    pub(super) in_doubt: u64,
    /// Of these, found whole.
    pub(super) in_doubt_kept: u64,
}

impl Model {
    pub(super) fn new(base: Table) -> Self {
        Self { base, acknowledged: Vec::new(), open: BTreeMap::new(), committing: BTreeMap::new(), closed: false }
    }

    /// A session was given this to do.
    pub(super) fn begin(&mut self, session: u64, operation: Operation) {
        self.committing.insert(session, operation.commit);
        self.open.entry(session).or_default().push(operation);
    }

    /// A session logs off: it commits what is open.
    pub(super) fn log_off(&mut self, session: u64) {
        self.committing.insert(session, true);
    }

    /// The session was told that its commit is done.
    pub(super) fn acknowledge(&mut self, session: u64, durable: u64) {
        let operations = self.open.remove(&session).unwrap_or_default();
        if !operations.is_empty() {
            self.acknowledged.push(Acknowledged { operations, durable });
        }
    }

    /// The engine said that it was closed well: everything acknowledged is on disk whatever the commit mode.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Judges what was found. Rows for which `excused` holds may have any old state.
    ///
    /// # Errors
    /// What is missing, half there or impossible.
    pub(super) fn judge(
        &self,
        found: &Table,
        promise: Promise,
        excused: &dyn Fn(Key) -> bool,
    ) -> Result<Verdict, String> {
        let whole = self.acknowledged.len();
        let fewest = match promise {
            Promise::LastFlushes(writes) => {
                let ends: BTreeSet<u64> = self.acknowledged.iter().map(|a| a.durable).collect();
                let first = ends.iter().rev().take(writes).next_back();
                let earlier = self.acknowledged.iter();
                earlier.filter(|a| first.is_some_and(|first| a.durable < *first)).count()
            }
            _ if self.closed => whole,
            Promise::Durable => whole,
            Promise::AnySuffix => 0,
        };
        let mut first_complaint = None;
        for kept in (fewest..=whole).rev() {
            let mut expected = self.base.clone();
            for transaction in &self.acknowledged[..kept] {
                for operation in &transaction.operations {
                    expected.apply(operation);
                }
            }
            match self.settle_doubts(expected, found, kept == whole, excused) {
                Ok(verdict) => {
                    return Ok(Verdict { acknowledged: whole as u64, lost: (whole - kept) as u64, ..verdict });
                }
                Err(complaint) => {
                    first_complaint.get_or_insert(complaint);
                }
            }
        }
        Err(first_complaint.unwrap_or_default())
    }

    /// Whether the row was ever in this state, acknowledged or not.
    pub(super) fn was_ever(&self, key: Key, row: &Row) -> bool {
        let mut table = self.base.clone();
        let acknowledged = self.acknowledged.iter().flat_map(|a| &a.operations);
        let mut operations = acknowledged.chain(self.open.values().flatten());
        table.row(key) == row
            || operations.any(|operation| {
                table.apply(operation);
                table.row(key) == row
            })
    }

    /// Tries what may have become of the transactions in doubt: any of them committed, in any order.
    fn settle_doubts(
        &self,
        expected: Table,
        found: &Table,
        may_be_there: bool,
        excused: &dyn Fn(Key) -> bool,
    ) -> Result<Verdict, String> {
        let doubts: Vec<(u64, &[Operation])> = self
            .open
            .iter()
            .filter(|(_, operations)| !operations.is_empty())
            .map(|(session, operations)| (*session, operations.as_slice()))
            .collect();
        let mut verdict = Verdict { in_doubt: doubts.len() as u64, ..Verdict::default() };
        let candidates: Vec<&[Operation]> = doubts
            .iter()
            .filter(|(session, _)| self.committing.get(session) == Some(&true))
            .map(|(_, operations)| *operations)
            .collect();
        let is = |table: &Table| Table::keys().all(|key| excused(key) || found.row(key) == table.row(key));
        if is(&expected) {
            return Ok(verdict);
        }
        if may_be_there && let Some(kept) = some_order(&expected, &candidates, &is) {
            verdict.in_doubt_kept = kept;
            return Ok(verdict);
        }
        Err(self.complain(&doubts, &expected, found, excused))
    }

    fn complain(
        &self,
        doubts: &[(u64, &[Operation])],
        expected: &Table,
        found: &Table,
        excused: &dyn Fn(Key) -> bool,
    ) -> String {
        for (session, operations) in doubts {
            let mut with = expected.clone();
            operations.iter().for_each(|operation| with.apply(operation));
            let touched: Vec<Key> = operations.iter().flat_map(Operation::keys).collect();
            let is = |table: &Table| {
                let mut rows = touched.iter().filter(|key| !excused(**key));
                rows.all(|key| found.row(*key) == table.row(*key))
            };
            if is(expected) {
                continue;
            }
            let what = if is(&with) && self.committing.get(session) != Some(&true) {
                "is there although it was never committed"
            } else if is(&with) {
                continue;
            } else {
                "is half there"
            };
            return format!(
                "the unacknowledged transaction of session {session} {what}: {}",
                describe(&touched, expected, found, excused)
            );
        }
        let keys: Vec<Key> = Table::keys().collect();
        format!("rows are not as they were acknowledged: {}", describe(&keys, expected, found, excused))
    }
}

/// Whether some of the transactions, applied in some order, make what was found; how many.
fn some_order(table: &Table, left: &[&[Operation]], is: &dyn Fn(&Table) -> bool) -> Option<u64> {
    for (i, operations) in left.iter().enumerate() {
        let mut with = table.clone();
        operations.iter().for_each(|operation| with.apply(operation));
        if is(&with) {
            return Some(1);
        }
        let rest: Vec<&[Operation]> =
            left.iter().enumerate().filter(|(other, _)| *other != i).map(|(_, operations)| *operations).collect();
        if let Some(more) = some_order(&with, &rest, is) {
            return Some(more + 1);
        }
    }
    None
}

fn describe(keys: &[Key], expected: &Table, found: &Table, excused: &dyn Fn(Key) -> bool) -> String {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let wrong = keys.iter().filter(|key| !excused(**key) && expected.row(**key) != found.row(**key));
    let texts: Vec<String> = wrong
        .take(4)
        .map(|key| {
            let (e, f) = (expected.row(*key), found.row(*key));
            format!(
                "schema {} key {}: c2 and c20 carry stamps {} and {}, expected {} and {}",
                key.0,
                key.1,
                f[0],
                f[COLUMNS - 1],
                e[0],
                e[COLUMNS - 1]
            )
        })
        .collect();
    texts.join("; ")
}

/// The stamps of a data block's columns.
///
/// # Errors
/// A column that no load and no update could have written.
pub(super) fn parse_row(block: &[u8]) -> Result<Row, String> {
    let mut row = [0; COLUMNS];
    let columns = block[HEADER_BYTES..].chunks_exact(COLUMN_BYTES);
    for (i, (column, stamp)) in columns.zip(&mut row).enumerate() {
        let (digits, rest) = column.split_at(16);
        let filled = rest.iter().all(|byte| *byte == FILL);
        let text = std::str::from_utf8(digits).unwrap_or_default();
        *stamp = match u64::from_str_radix(text, 16) {
            Ok(stamp) if filled && stamp > 0 => stamp,
            _ if filled && digits.iter().all(|byte| *byte == FILL) => 0,
            _ => return Err(format!("column c{} is neither loaded nor updated", i + 2)),
        };
    }
    let rest = &block[HEADER_BYTES + COLUMNS * COLUMN_BYTES..];
    if rest.iter().any(|byte| *byte != 0) {
        return Err("bytes behind the row changed".to_owned());
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(first_key: u64, stamp: u64, commit: bool) -> Operation {
        Operation { schema: 1, first_key, width: 2, stamp, heavy: false, commit }
    }

    fn judge(model: &Model, found: &Table, promise: Promise) -> Result<Verdict, String> {
        model.judge(found, promise, &|_| false)
    }

    #[test]
    fn what_was_acknowledged_must_be_there() {
        let mut model = Model::new(Table::new());
        let first = operation(1, 7, true);
        model.begin(1, first.clone());
        let mut found = Table::new();
        assert_eq!(judge(&model, &found, Promise::Durable).unwrap().in_doubt, 1);
        model.acknowledge(1, 100);
        assert!(judge(&model, &found, Promise::Durable).is_err());
        assert_eq!(judge(&model, &found, Promise::AnySuffix).unwrap().lost, 1);
        found.apply(&first);
        let verdict = judge(&model, &found, Promise::Durable).unwrap();
        assert_eq!((verdict.acknowledged, verdict.lost), (1, 0));
    }

    #[test]
    fn nothing_is_half_there_whatever_was_promised() {
        for promise in [Promise::Durable, Promise::AnySuffix, Promise::LastFlushes(1)] {
            let mut model = Model::new(Table::new());
            model.begin(1, operation(3, 9, true));
            let mut found = Table::new();
            found.row_mut((1, 3))[0] = 9;
            let error = judge(&model, &found, promise).unwrap_err();
            assert!(error.contains("half there"), "{error}");
            found.row_mut((1, 3))[COLUMNS - 1] = 9;
            assert!(judge(&model, &found, promise).is_err());
            found.row_mut((1, 4))[0] = 9;
            found.row_mut((1, 4))[COLUMNS - 1] = 9;
            assert_eq!(judge(&model, &found, promise).unwrap().in_doubt_kept, 1);
        }
    }

    #[test]
    fn what_was_never_committed_must_not_be_there() {
        let mut model = Model::new(Table::new());
        let open = operation(3, 9, false);
        model.begin(1, open.clone());
        let mut found = Table::new();
        found.apply(&open);
        let error = judge(&model, &found, Promise::Durable).unwrap_err();
        assert!(error.contains("never committed"), "{error}");
        model.log_off(1);
        assert!(judge(&model, &found, Promise::Durable).is_ok());
    }

    #[test]
    fn a_lost_suffix_ends_at_a_transaction_and_at_the_last_flush() {
        let mut model = Model::new(Table::new());
        for (stamp, durable) in [(1, 10), (2, 20), (3, 20)] {
            model.begin(1, operation(5, stamp, true));
            model.acknowledge(1, durable);
        }
        let mut found = Table::new();
        assert_eq!(judge(&model, &found, Promise::AnySuffix).unwrap().lost, 3);
        assert!(judge(&model, &found, Promise::LastFlushes(1)).is_err());
        found.apply(&operation(5, 1, true));
        assert_eq!(judge(&model, &found, Promise::LastFlushes(1)).unwrap().lost, 2);
        model.close();
        assert!(judge(&model, &found, Promise::AnySuffix).is_err());
    }
}
