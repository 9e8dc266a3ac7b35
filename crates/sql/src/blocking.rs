//! Drives sessions whose driver blocks in the socket until each answer arrives: one thread each. A [`Client`] contains
//! what is specific to a database; key ranges, transactions, counters and lost connections are handled here for all.

use crate::counted::Counted;
use crate::lost::{closed, lost, probed};
use crate::watch::{Backends, Cancel};
use assay_measure::clock::Clock;
use assay_measure::snapshot::StatSet;
use assay_run::dataset::rows::fill_columns;
use assay_run::engine::{Completion, Driver, EngineError, Op, OpError, Outcome, Slice, SliceDone, Submit, Tag};
use assay_run::plan::Plan;
use std::time::Duration;

/// First and last key, both included.
pub(crate) type Keys = (u64, u64);

/// Why an operation failed.
pub(crate) struct Failed {
    pub(crate) error: OpError,
    /// The connection is lost.
    pub(crate) fatal: bool,
}

/// The operations a database implements for a session, on the session's own connection.
pub(crate) trait Client {
    /// Reads the rows of these keys.
    fn select(&mut self, schema: u32, keys: Keys) -> Result<u64, Failed>;

    /// Changes the rows of these keys to `content`, column by column. With `commit`, this update is the whole transaction.
    fn update(&mut self, schema: u32, keys: Keys, content: &[u8], commit: bool) -> Result<u64, Failed>;

    /// Reads every row of the scan table.
    fn scan(&mut self, schema: u32) -> Result<u64, Failed>;

    fn commit(&mut self) -> Result<(), Failed>;

    fn rollback(&mut self) -> Result<(), Failed>;

    /// Operations of a slice that the server performs by itself; 0 if it performs none (LOOP=client).
    fn slice_ops(&self) -> usize {
        0
    }

    /// Has the server perform a slice.
    ///
    /// # Errors
    /// The slice was not performed, or its outcome is unknown.
    fn slice(&mut self, clock: &Clock, slice: Slice<'_>) -> Result<SliceDone, Failed>;
}

/// One session of a run.
pub(crate) struct Session<C> {
    /// Counted from 1.
    number: u32,
    client: Option<C>,
    in_transaction: bool,
    counted: Counted,
    content: Vec<u8>,
    /// Why the session cannot continue.
    lost: Option<String>,
}

impl<C: Client> Session<C> {
    pub(crate) fn new(number: u32, client: C) -> Self {
        Self {
            number,
            client: Some(client),
            in_transaction: false,
            counted: Counted::default(),
            content: Vec::new(),
            lost: None,
        }
    }

    /// Performs one untimed operation, which must touch as many rows as it requests.
    pub(crate) fn probe(&mut self, plan: &Plan, home: u32) -> Result<(), EngineError> {
        let width = plan.select_width();
        let op = Op::Select { schema: home, first_key: 1, width };
        let rows = self.perform(plan, 0, &op).map_err(|error| EngineError::Unusable(error.text))?;
        self.counted = Counted::default();
        probed(home, width, rows)
    }

    fn client(&mut self) -> Result<&mut C, Failed> {
        let number = self.number;
        self.client.as_mut().ok_or_else(|| Failed { error: closed(number), fatal: false })
    }

    /// Performs one operation, from request to answer, and returns the number of rows it touched.
    fn perform(&mut self, plan: &Plan, columns: usize, op: &Op) -> Result<u64, OpError> {
        let done = match *op {
            Op::Select { schema, first_key, width } => self.select(plan, schema, (first_key, width)),
            Op::Update { schema, first_key, width, stamp, commit } => {
                let mut content = std::mem::take(&mut self.content);
                fill_columns(&mut content, columns, stamp, first_key, plan.obfuscate);
                let done = self.update(plan, schema, (first_key, width), &content, commit);
                self.content = content;
                done
            }
            Op::Scan { schema } => self.client().and_then(|client| client.scan(schema)),
            Op::Call { .. } => return Err(OpError::not_ours()),
        };
        match done {
            Ok(rows) => {
                self.count(op, rows);
                Ok(rows)
            }
            Err(failed) => Err(self.failed(failed)),
        }
    }

    fn count(&mut self, op: &Op, rows: u64) {
        let counted = &mut self.counted;
        counted.visited += rows;
        match *op {
            Op::Update { commit, .. } => {
                counted.changed += rows;
                counted.commits += u64::from(commit);
            }
            Op::Scan { .. } => counted.scans += 1,
            Op::Select { .. } | Op::Call { .. } => {}
        }
    }

    fn select(&mut self, plan: &Plan, schema: u32, asked: (u64, u32)) -> Result<u64, Failed> {
        let client = self.client()?;
        let mut rows = 0;
        for keys in ranges(asked, plan.scale).into_iter().flatten() {
            rows += client.select(schema, keys)?;
        }
        Ok(rows)
    }

    fn update(
        &mut self,
        plan: &Plan,
        schema: u32,
        asked: (u64, u32),
        content: &[u8],
        commit: bool,
    ) -> Result<u64, Failed> {
        let ranges = ranges(asked, plan.scale);
        let alone = commit && !self.in_transaction && ranges[1].is_none();
        let client = self.client()?;
        let mut rows = 0;
        for keys in ranges.into_iter().flatten() {
            rows += client.update(schema, keys, content, alone)?;
        }
        if commit && !alone {
            client.commit()?;
        }
        self.in_transaction = !commit;
        Ok(rows)
    }

    /// Commits the updates that COMMIT_EVERY left uncommitted.
    fn end_transaction(&mut self) {
        if !std::mem::take(&mut self.in_transaction) {
            return;
        }
        match self.client().and_then(C::commit) {
            Ok(()) => self.counted.commits += 1,
            Err(failed) => drop(self.failed(failed)),
        }
    }

    /// Rolls back a failed transaction; notes a lost connection.
    fn failed(&mut self, failed: Failed) -> OpError {
        self.counted.rollbacks += 1;
        self.in_transaction = false;
        let mut lost = failed.fatal.then(|| failed.error.text.clone());
        if let Some(client) = self.client.as_mut().filter(|_| lost.is_none()) {
            let undone = client.rollback().err();
            lost = undone.filter(|failed| failed.fatal).map(|failed| failed.error.text);
        }
        if lost.is_some() {
            self.client = None;
            self.lost = lost;
        }
        failed.error
    }
}

/// Splits a range of keys that wraps past the last key into its two parts.
fn ranges((first, width): (u64, u32), scale: u64) -> [Option<Keys>; 2] {
    let last = first + u64::from(width) - 1;
    [Some((first, last.min(scale))), (last > scale).then(|| (1, last - scale))]
}

/// The sessions of one thread, usually one.
pub(crate) struct Sessions<'a, C: Client, T: Cancel> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: &'a Clock,
    pub(crate) backends: &'a Backends<T>,
    /// Number of columns an update changes.
    pub(crate) columns: usize,
    pub(crate) sessions: Vec<Session<C>>,
}

impl<C: Client, T: Cancel> Driver for Sessions<'_, C, T> {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        let result = self.sessions[tag as usize].perform(self.plan, self.columns, op);
        Submit::Done(Outcome { end_ns: self.clock.now_ns(), result })
    }

    /// Nothing is ever queued: this only reports whether the thread can continue.
    fn reap(&mut self, _timeout: Duration, _out: &mut Vec<Completion>) -> Result<(), EngineError> {
        lost(&self.sessions, |one| (one.number, one.lost.as_deref()))
    }

    fn slice_ops(&self) -> usize {
        let client = self.sessions.first().and_then(|session| session.client.as_ref());
        client.map_or(0, C::slice_ops)
    }

    fn perform(&mut self, slice: Slice<'_>) -> Result<SliceDone, EngineError> {
        let session = &mut self.sessions[slice.tag as usize];
        let begin_ns = self.clock.now_ns();
        let done = session.client().and_then(|client| client.slice(self.clock, slice));
        let done = match done {
            Ok(done) => done,
            Err(failed) => {
                let end_ns = self.clock.now_ns();
                let result = Err(session.failed(failed));
                SliceDone { begin_ns, outcomes: vec![Outcome { end_ns, result }], end_ns }
            }
        };
        for (op, outcome) in slice.ops.iter().zip(&done.outcomes) {
            match outcome.result {
                Ok(rows) => {
                    session.count(op, rows);
                    session.in_transaction = matches!(op, Op::Update { commit: false, .. })
                        || session.in_transaction && !matches!(op, Op::Update { .. });
                }
                // The server has already rolled the transaction back.
                Err(_) => session.in_transaction = false,
            }
        }
        self.reap(Duration::ZERO, &mut Vec::new())?;
        Ok(done)
    }

    fn stats(&mut self, into: &mut StatSet) {
        for session in &self.sessions {
            session.counted.add_to(into, self.columns);
        }
    }

    fn leave(&mut self, tag: Tag) {
        self.sessions[tag as usize].end_transaction();
        self.backends.leaves();
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        let going = self.reap(Duration::ZERO, &mut Vec::new());
        for session in &mut self.sessions {
            session.client = None;
            self.backends.closed(session.number);
        }
        going
    }
}

/// However the thread ends, its sessions can no longer be cancelled.
impl<C: Client, T: Cancel> Drop for Sessions<'_, C, T> {
    fn drop(&mut self) {
        for session in &self.sessions {
            self.backends.closed(session.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_past_the_last_key_goes_on_at_the_first() {
        assert_eq!(ranges((5, 3), 1000), [Some((5, 7)), None]);
        assert_eq!(ranges((1000, 2), 1000), [Some((1000, 1000)), Some((1, 1))]);
        assert_eq!(ranges((1, 1000), 1000), [Some((1, 1000)), None]);
    }
}
