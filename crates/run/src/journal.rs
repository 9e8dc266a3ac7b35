//! A journal of commits around any engine: what was begun, what was acknowledged, and when.
//!
//! A killed process loses its memory, but what it wrote to a file stays. So the journal records an update before the
//! engine gets it, and again before its session learns that it ended. Afterwards [`Expected`] says which stamp every
//! row must carry. It needs one schema per session: then the last change of a row is certain.

use crate::bounded;
use crate::engine::{Assignment, Completion, Doing, Driver, Engine, EngineError, Op, Outcome, Remarks, Submit, Tag};
use crate::workload::Workload;
use assay_measure::clock::Ns;
use assay_measure::snapshot::{Fact, StatSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of one entry.
const ENTRY_BYTES: usize = 32;
/// Length of one bucket of [`Commits`], ns.
pub const BUCKET_NS: Ns = 100_000_000;
/// Buckets kept: ten minutes.
const BUCKETS: usize = 6000;
const NOT_YET: u64 = u64::MAX;

/// One update, begun or acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its end was reported to the session; otherwise it was submitted to the engine.
    pub acknowledged: bool,
    /// Session, from 1.
    pub session: u32,
    /// Schema, from 1.
    pub schema: u32,
    /// First key, from 1.
    pub first_key: u64,
    /// Keys.
    pub width: u32,
    /// What its rows carry.
    pub stamp: u64,
}

impl Entry {
    fn of(op: &Op, session: u32, acknowledged: bool) -> Option<Self> {
        match *op {
            Op::Update { schema, first_key, width, stamp, .. } => {
                Some(Self { acknowledged, session, schema, first_key, width, stamp })
            }
            _ => None,
        }
    }

    fn bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = 1 + u8::from(self.acknowledged);
        bytes[4..8].copy_from_slice(&self.session.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first_key.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.schema.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.width.to_le_bytes());
        bytes[24..].copy_from_slice(&self.stamp.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let half = |at: usize| {
            let bytes = bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(bytes)
        };
        let whole = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        Self {
            acknowledged: bytes[0] == 2,
            session: half(4),
            first_key: whole(8),
            schema: half(16),
            width: half(20),
            stamp: whole(24),
        }
    }

    fn keys(self) -> std::ops::Range<u64> {
        self.first_key..self.first_key + u64::from(self.width)
    }
}

/// Reads a journal; an entry cut short by the end of its process was never made.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let bytes = bounded::read(path, bounded::JOURNAL)?;
    Ok(bytes.chunks_exact(ENTRY_BYTES).map(Entry::from_bytes).collect())
}

/// When commits were acknowledged, from the first submit on.
#[derive(Debug)]
pub struct Commits {
    begun_ns: AtomicU64,
    first_ns: AtomicU64,
    buckets: Vec<AtomicU64>,
}

impl Default for Commits {
    fn default() -> Self {
        Self {
            begun_ns: AtomicU64::new(NOT_YET),
            first_ns: AtomicU64::new(NOT_YET),
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Commits {
    fn begin(&self, start_ns: Ns) {
        if self.begun_ns.load(Ordering::Relaxed) == NOT_YET {
            self.begun_ns.fetch_min(start_ns, Ordering::Relaxed);
        }
    }

    fn end(&self, end_ns: Ns) {
        self.first_ns.fetch_min(end_ns, Ordering::Relaxed);
        let begun = self.begun_ns.load(Ordering::Relaxed);
        let bucket = (end_ns.saturating_sub(begun) / BUCKET_NS) as usize;
        if let Some(count) = self.buckets.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// From the first submit to the first commit, ns; `None` before it.
    #[must_use]
    pub fn first_ns(&self) -> Option<Ns> {
        let first = self.first_ns.load(Ordering::Relaxed);
        (first != NOT_YET).then(|| first.saturating_sub(self.begun_ns.load(Ordering::Relaxed)))
    }

    /// Commits of each tenth of a second so far; the last one may still grow.
    #[must_use]
    pub fn buckets(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let used = counts.iter().rposition(|count| *count > 0);
        counts.truncate(used.map_or(0, |last| last + 1));
        counts
    }

    /// End of the first second whose commits reach `per_s`, from the first submit, ns.
    #[must_use]
    pub fn reached(&self, per_s: f64) -> Option<Ns> {
        let buckets = self.buckets();
        let whole = buckets.len().checked_sub(1)?;
        let window = (1_000_000_000 / BUCKET_NS) as usize;
        let mut windows = buckets[..whole].windows(window).enumerate();
        let reached = windows.find(|(_, counts)| counts.iter().sum::<u64>() as f64 >= per_s);
        reached.map(|(first, _)| (first + window) as u64 * BUCKET_NS)
    }
}

/// An engine whose updates are journaled.
pub struct Journaled {
    engine: Box<dyn Engine>,
    journal: Option<PathBuf>,
    commits: Commits,
}

impl Journaled {
    /// Wraps an engine; with a path every driver appends to that file.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>, journal: Option<PathBuf>) -> Self {
        Self { engine, journal, commits: Commits::default() }
    }

    /// When commits were acknowledged.
    #[must_use]
    pub fn commits(&self) -> &Commits {
        &self.commits
    }
}

impl Engine for Journaled {
    fn facts(&self) -> Vec<Fact> {
        self.engine.facts()
    }

    fn workload(&self) -> &dyn Workload {
        self.engine.workload()
    }

    fn remarks(&self) -> Remarks {
        self.engine.remarks()
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        self.engine.driver_threads(sessions, cpus)
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        let open = |path: &PathBuf| {
            let mut options = File::options();
            options.append(true).create(true);
            options.open(path).map_err(|source| failed(path, source))
        };
        let sessions = &assignment.sessions;
        Ok(Box::new(JournaledDriver {
            driver: self.engine.driver(assignment)?,
            file: self.journal.as_ref().map(open).transpose()?,
            journaled: self,
            sessions: sessions.iter().map(|(session, _)| *session).collect(),
            under_way: vec![None; sessions.len()],
            broken: None,
        }))
    }

    fn sample(&self) -> StatSet {
        self.engine.sample()
    }

    fn activity(&self, sessions: &mut [Doing]) {
        self.engine.activity(sessions);
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.engine.look(sessions)
    }

    fn watched_disks(&self) -> Vec<String> {
        self.engine.watched_disks()
    }

    fn close(&self) -> Result<(), EngineError> {
        self.engine.close()
    }
}

fn failed(path: &Path, source: io::Error) -> EngineError {
    EngineError::Io { what: format!("cannot write the journal {}", path.display()), source }
}

struct JournaledDriver<'a> {
    driver: Box<dyn Driver + 'a>,
    file: Option<File>,
    journaled: &'a Journaled,
    sessions: Vec<u32>,
    /// The update that each session has in flight.
    under_way: Vec<Option<Op>>,
    /// The journal failed: reported at the next reap.
    broken: Option<io::Error>,
}

impl JournaledDriver<'_> {
    fn write(&mut self, op: &Op, tag: Tag, acknowledged: bool) {
        let session = self.sessions[tag as usize];
        if let (Some(file), Some(entry)) = (&mut self.file, Entry::of(op, session, acknowledged))
            && let Err(error) = file.write_all(&entry.bytes())
        {
            self.broken.get_or_insert(error);
        }
    }

    fn ended(&mut self, tag: Tag, outcome: &Outcome) {
        let Some(op) = self.under_way[tag as usize].take() else {
            return;
        };
        if outcome.result.is_ok() {
            self.write(&op, tag, true);
            self.journaled.commits.end(outcome.end_ns);
        }
    }
}

impl Driver for JournaledDriver<'_> {
    fn submit(&mut self, tag: Tag, op: &Op, start_ns: Ns) -> Submit {
        if matches!(op, Op::Update { .. }) && self.under_way[tag as usize].is_none() {
            self.journaled.commits.begin(start_ns);
            self.under_way[tag as usize] = Some(*op);
            self.write(op, tag, false);
        }
        let answer = self.driver.submit(tag, op, start_ns);
        if let Submit::Done(outcome) = &answer {
            self.ended(tag, outcome);
        }
        answer
    }

    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let before = out.len();
        self.driver.reap(timeout, out)?;
        for completion in &out[before..] {
            self.ended(completion.tag, &completion.outcome);
        }
        match (self.broken.take(), &self.journaled.journal) {
            (Some(error), Some(path)) => Err(failed(path, error)),
            _ => Ok(()),
        }
    }

    fn stats(&mut self, into: &mut StatSet) {
        self.driver.stats(into);
    }
}

/// Which stamp every row must carry after a crash, by a journal.
#[derive(Debug, Default)]
pub struct Expected {
    /// By (schema, key): the last acknowledged update of that row, by its index in `acknowledged`.
    rows: BTreeMap<(u32, u64), usize>,
    acknowledged: Vec<u64>,
    /// By schema: the update that was begun and not acknowledged, and its rows seen with its stamp.
    pending: BTreeMap<u32, (Entry, u64)>,
    lost: BTreeSet<usize>,
    rows_seen: u64,
}

/// What an audit found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Updates that were acknowledged.
    pub acknowledged: u64,
    /// Acknowledged updates with a row that does not carry them: must be 0.
    pub lost: u64,
    /// Unacknowledged updates that are partly present: must be 0.
    pub half_there: u64,
    /// Unacknowledged updates that are completely present: this is allowed.
    pub unacknowledged_there: u64,
    /// Rows compared.
    pub rows: u64,
}

impl Expected {
    /// From the entries of sessions that have a schema each.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Self {
        let mut expected = Self::default();
        for entry in entries {
            if !entry.acknowledged {
                expected.pending.insert(entry.schema, (*entry, 0));
                continue;
            }
            expected.pending.remove(&entry.schema);
            let index = expected.acknowledged.len();
            expected.acknowledged.push(entry.stamp);
            let rows = entry.keys().map(|key| ((entry.schema, key), index));
            expected.rows.extend(rows);
        }
        expected
    }

    /// A row that was read; `stamp` is `None` for one as it was loaded.
    pub fn see(&mut self, schema: u32, key: u64, stamp: Option<u64>) {
        let wanted = self.rows.get(&(schema, key)).copied();
        let pending = self.pending.get_mut(&schema);
        let pending = pending.filter(|(entry, _)| entry.keys().contains(&key));
        if wanted.is_none() && pending.is_none() {
            return;
        }
        self.rows_seen += 1;
        if let Some((entry, seen)) = pending
            && stamp == Some(entry.stamp)
        {
            *seen += 1;
            return;
        }
        if let Some(index) = wanted
            && stamp != Some(self.acknowledged[index])
        {
            self.lost.insert(index);
        }
    }

    /// The verdict, after every row was seen.
    #[must_use]
    pub fn found(&self) -> Found {
        let pending = |is_it: fn(u64, u64) -> bool| {
            let mut pending = self.pending.values().map(|(entry, seen)| (*entry, *seen));
            pending.by_ref().filter(|(entry, seen)| is_it(*seen, u64::from(entry.width))).count() as u64
        };
        Found {
            acknowledged: self.acknowledged.len() as u64,
            lost: self.lost.len() as u64,
            half_there: pending(|seen, width| seen > 0 && seen < width),
            unacknowledged_there: pending(|seen, width| seen == width),
            rows: self.rows_seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(acknowledged: bool, first_key: u64, stamp: u64) -> Entry {
        Entry { acknowledged, session: 3, schema: 2, first_key, width: 4, stamp }
    }

    #[test]
    fn an_entry_reads_back_and_one_cut_short_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("journal");
        let entries = [entry(false, 1 << 40, u64::MAX), entry(true, 7, 9)];
        let mut bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.bytes()).collect();
        bytes.extend([1, 2, 3]);
        std::fs::write(&path, bytes).expect("written");
        assert_eq!(read(&path).expect("read"), entries);
    }

    /// Keys 1 to 4 by stamp 10, then 3 to 6 by 11, then 5 to 8 by 12 which nobody heard of.
    fn journal() -> Vec<Entry> {
        vec![entry(false, 1, 10), entry(true, 1, 10), entry(false, 3, 11), entry(true, 3, 11), entry(false, 5, 12)]
    }

    fn judged(stamps: [u64; 8]) -> Found {
        let mut expected = Expected::of(&journal());
        for (key, stamp) in (1..).zip(stamps) {
            expected.see(2, key, Some(stamp).filter(|stamp| *stamp > 0));
        }
        expected.see(1, 1, Some(99));
        expected.found()
    }

    #[test]
    fn the_last_acknowledged_update_must_be_there_and_the_next_may_be() {
        let all = Found { acknowledged: 2, rows: 8, ..Found::default() };
        assert_eq!(judged([10, 10, 11, 11, 11, 11, 0, 0]), all);
        let with_next = Found { unacknowledged_there: 1, ..all };
        assert_eq!(judged([10, 10, 11, 11, 12, 12, 12, 12]), with_next);
    }

    #[test]
    fn lost_and_half_there_are_found() {
        // The second update is lost: its rows are those of the first, or as loaded.
        assert_eq!(judged([10, 10, 10, 10, 0, 0, 0, 0]).lost, 1);
        assert_eq!(judged([0, 0, 0, 0, 0, 0, 0, 0]).lost, 2);
        assert_eq!(judged([10, 10, 11, 11, 12, 12, 12, 0]).half_there, 1);
        // A row of the third where the second must be seen is neither lost nor half there.
        assert_eq!(judged([10, 10, 11, 11, 12, 12, 12, 12]).lost, 0);
    }

    #[test]
    fn the_rate_is_reached_by_whole_seconds() {
        let commits = Commits::default();
        commits.begin(5);
        for tenth in 0..40_u64 {
            let count = if tenth < 15 { 1 } else { 10 };
            for _ in 0..count {
                commits.end(5 + tenth * BUCKET_NS);
            }
        }
        assert_eq!(commits.first_ns(), Some(0));
        assert_eq!(commits.buckets().len(), 40);
        // The first second with ten in each tenth begins at 1.5 s.
        assert_eq!(commits.reached(100.0), Some(25 * BUCKET_NS));
        assert_eq!(commits.reached(101.0), None);
    }
}
