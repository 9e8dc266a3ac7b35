//! SLOB's sessions: one thread and one connection each. [`crate::session`] contains what is the same on every database.

use super::attached::{Attached, Opened};
use super::file::{File, failure};
use super::{Held, Sqlite, marker};
use crate::running::OnServer;
use crate::session::{self, Base, Failed, Keys, SlobEngine, Step};
use crate::slob::Dialect;
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::snapshot::Fact;
use assay_run::dataset::rows::{COLUMN_BYTES, fill_columns};
use assay_run::engine::{Engine, EngineError, Slice, SliceDone};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

struct SqliteEngine {
    plan: Plan,
    facts: [Fact; 1],
    on: Attached,
}

/// Opens the data set for a run.
pub(super) fn open(
    at: File,
    held: Held,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<Box<dyn Engine>, EngineError> {
    let marked = marker::find(&held.keeper, &at)?.ok_or_else(|| Sqlite::nothing(&at))?;
    marked.refuse_changed(plan, &at.shown(), "page")?;
    let data_set = format!("{:016x}, created {}", marked.marker.data_set, marked.created);
    let facts = [Fact::new("data_set", data_set)];
    let on = Attached::open(at, held, true, plan, settings, stop)?;
    Ok(Box::new(SlobEngine(SqliteEngine { plan: plan.clone(), facts, on })))
}

impl OnServer for SqliteEngine {
    type On = Attached;

    fn on(&self) -> &Attached {
        &self.on
    }
}

impl Base for SqliteEngine {
    type Link = Link;

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn columns(&self) -> usize {
        marker::changed_columns(self.plan.redo_stress).len()
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// A session that waits for the write lock keeps its thread.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    fn connect(&self, number: u32, _home: u32) -> Result<Link, EngineError> {
        Ok(Link { on: self.on.session(number)?, rows: 0 })
    }

    fn calls(&self, _link: &mut Link, schema: u32) -> Result<Calls, EngineError> {
        Ok(Calls {
            select: marker::select(schema),
            update: marker::update(schema, self.plan.redo_stress),
            scan: marker::scan(schema),
            content: Vec::new(),
        })
    }

    fn close(&self) -> Result<(), EngineError> {
        drop(self.on.release());
        Ok(())
    }
}

/// Statements for one SLOB schema.
struct Calls {
    select: String,
    update: String,
    scan: String,
    /// Of the next update.
    content: Vec<u8>,
}

/// Connection of a session.
struct Link {
    on: Opened,
    /// Rows of the last step.
    rows: u64,
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self { error: failure(&error), fatal: false }
    }
}

impl Link {
    fn read(&self, sql: &str, keys: &[i64]) -> rusqlite::Result<u64> {
        let mut statement = self.on.db.0.prepare_cached(sql)?;
        let rows: i64 = statement.query_row(rusqlite::params_from_iter(keys), |row| row.get(0))?;
        Ok(self.on.counted.sought(rows as u64))
    }

    fn change(&self, calls: &Calls, (first, last): Keys) -> rusqlite::Result<u64> {
        let mut statement = self.on.db.0.prepare_cached(&calls.update)?;
        let mut at = 1;
        // The content consists of letters and digits only.
        for column in calls.content.chunks_exact(COLUMN_BYTES).filter_map(|column| std::str::from_utf8(column).ok()) {
            statement.raw_bind_parameter(at, column)?;
            at += 1;
        }
        statement.raw_bind_parameter(at, first as i64)?;
        statement.raw_bind_parameter(at + 1, last as i64)?;
        Ok(self.on.counted.sought(statement.raw_execute()? as u64))
    }
}

impl session::Link for Link {
    type Calls = Calls;

    fn stamp(calls: &mut Calls, plan: &Plan, stamp: u64, first_key: u64) {
        let columns = marker::changed_columns(plan.redo_stress).len();
        fill_columns(&mut calls.content, columns, stamp, first_key, plan.obfuscate);
    }

    fn ask(&mut self, calls: &mut Calls, step: Step) -> Result<(), Failed> {
        self.rows = match step {
            Step::Begin => self.on.begin().map(|()| 0)?,
            Step::Select((first, last)) => self.read(&calls.select, &[first as i64, last as i64])?,
            Step::Update { keys, alone: false } => self.change(calls, keys)?,
            Step::Update { keys, alone: true } => {
                self.on.begin()?;
                let rows = self.change(calls, keys)?;
                self.on.commit()?;
                rows
            }
            Step::Scan => self.read(&calls.scan, &[])?,
            Step::Commit => self.on.commit().map(|()| 0)?,
        };
        Ok(())
    }

    fn answer(&mut self) -> Result<u64, Failed> {
        Ok(self.rows)
    }

    fn commit(&mut self) -> Result<(), Failed> {
        Ok(self.on.commit()?)
    }

    fn rollback(&mut self) -> Result<(), Failed> {
        Ok(self.on.rollback()?)
    }

    fn slice_ops(&self) -> usize {
        0
    }

    fn slice(&mut self, _plan: &Plan, _clock: &Clock, _slice: Slice<'_>) -> Result<SliceDone, Failed> {
        Err(Failed::statement("a library performs no slices".to_owned()))
    }
}
