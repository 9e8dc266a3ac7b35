//! Executes a load plan: each session loads one SLOB schema at a time, and several work side by side.
//!
//! A schema is recorded as loading before its tables exist, and as loaded once it is verified; the next prepare removes
//! unfinished schemas first. Rows are inserted in arrays; if all columns are the same, only the keys are sent.

use super::marker;
use super::plan::LoadPlan;
use super::session::{Bind, OraError, Session, told};
use super::sql;
use super::{Oracle, Visit, check};
use crate::checked::{Findings, Level};
use crate::slob::{Job, summed_up};
use assay_measure::permutation::Permutation;
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS, FILL, Random};
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;

/// Rows in an array, of keys only, and with columns (2.4 KB each).
const KEYS: u64 = 1000;
const ROWS: u64 = 200;
/// Rows in a transaction.
const TRANSACTION: u64 = 10_000;
/// Added to a schema's number for the rows of its scan table, so that they differ from all others.
const SCAN: u32 = 1 << 20;

/// Loads, verifies and sums up. `keeper` creates objects and updates the marker; another session holds the claim.
///
/// # Errors
/// The server's; `Interrupted`; `Damaged` if the loaded data fail verification.
pub(super) fn run(
    at: &Visit,
    plan: LoadPlan,
    keeper: &mut Box<dyn Session>,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let (load, degree, bytes) = (plan.load.clone(), plan.degree, plan.data_bytes());
    let job = Job::<Oracle, _>::new(at, plan, ("load", bytes), load);
    let work = |keeper: &mut Box<dyn Session>| {
        open_site(&job.what, &mut **keeper)?;
        job.run(degree, (|job| job.at.open(), schema), keeper, stop, progress)
    };
    summed_up(&job.what, keeper, work, |_| {
        progress.update("writing out", 0, 0);
        write_out(at).map_err(|why| {
            format!("{why}; it needs ALTER SYSTEM: the first run may write blocks that the load left dirty")
        })
    })
}

/// Tablespace of new tables: the one the user named, or else the server's choice.
fn place(plan: &LoadPlan) -> Option<&str> {
    Some(plan.server.tablespace.name.as_str())
}

/// Removes what an earlier prepare left, creates the marker, records what will be loaded.
fn open_site(plan: &LoadPlan, keeper: &mut dyn Session) -> Result<(), EngineError> {
    for n in plan.left() {
        marker::remove(keeper, n).map_err(told("removing tables"))?;
    }
    let doing = told("writing the marker of the data set");
    if plan.is_new() {
        marker::create(keeper, &plan.marker, place(plan)).map_err(&doing)?;
    }
    for n in &plan.load {
        marker::note(keeper, sql::NOTE_LOADING, *n).map_err(&doing)?;
    }
    Ok(())
}

/// Has the server write what the load left in memory, so that the first run does not have to.
fn write_out(at: &Visit) -> Result<(), EngineError> {
    let doing = told("asking for a checkpoint");
    let mut admin = at.way.open(at.address.admin(), at.address.answer)?;
    admin.patience(at.address.long).map_err(&doing)?;
    admin.run(sql::CHECKPOINT, &[]).map_err(&doing).map(drop)
}

/// Loads a SLOB schema and verifies it.
fn schema(job: &Job<Oracle, LoadPlan>, session: &mut Box<dyn Session>, n: u32) -> Result<Findings, EngineError> {
    let session = &mut **session;
    job.load(session, n)?;
    let found = check::schema(session, &job.what.marker, n, Level::Loaded)?;
    marker::note(session, sql::NOTE_LOADED, n).map_err(told("noting a schema as loaded"))?;
    Ok(found)
}

impl Job<Oracle, LoadPlan> {
    fn load(&self, session: &mut dyn Session, n: u32) -> Result<(), EngineError> {
        let doing = format!("loading SLOB schema {n}");
        let doing = told(&doing);
        let marker = &self.what.marker;
        let rows = sql::rows_table(n);
        session.patience(self.at.address.answer / 2).map_err(&doing)?;
        self.create(session, &rows).map_err(&doing)?;
        let keys = Permutation::new(marker.seed, n, marker.scale);
        self.fill(session, &rows, (n, marker.scale), &|slot| keys.key_of_slot(slot))?;
        if marker.scan_blocks > 0 {
            let scan = sql::scan_table(n);
            self.create(session, &scan).map_err(&doing)?;
            self.fill(session, &scan, (SCAN + n, marker.scan_blocks), &|slot| slot + 1)?;
        }
        // The following statements read or write whole tables.
        session.patience(self.at.address.long).map_err(&doing)?;
        let index = sql::create_index(n, marker.unique, place(&self.what));
        let table = rows.to_ascii_uppercase();
        for (sql, binds) in [(index.as_str(), &[][..]), (sql::GATHER, &[Bind::Text(&table)])] {
            // A cancel request affects only a running statement, so check before each one.
            self.goes_on()?;
            session.run(sql, binds).map_err(&doing)?;
        }
        Ok(())
    }

    fn create(&self, session: &mut dyn Session, table: &str) -> Result<(), OraError> {
        session.run(&sql::create_table(table, place(&self.what)), &[])?;
        let [dummy, freeze, empty] = sql::one_row_a_block(table);
        session.run(&dummy, &[Bind::Int(0)])?;
        session.commit()?;
        session.run(&freeze, &[])?;
        session.run(&empty, &[])?;
        Ok(())
    }

    fn fill(
        &self,
        session: &mut dyn Session,
        table: &str,
        (schema, rows): (u32, u64),
        key_of_slot: &dyn Fn(u64) -> u64,
    ) -> Result<(), EngineError> {
        let doing = format!("loading {table}");
        let doing = told(&doing);
        let marker = &self.what.marker;
        let insert = sql::insert(table, marker.obfuscate);
        let step = if marker.obfuscate { ROWS } else { KEYS };
        let (mut first, mut open) = (0, 0);
        while first < rows {
            self.goes_on()?;
            let slots = first..(first + step).min(rows);
            let contents: Vec<Vec<String>> = if marker.obfuscate {
                slots.clone().map(|slot| self.columns(schema, slot)).collect()
            } else {
                Vec::new()
            };
            let values: Vec<Vec<Bind<'_>>> = slots
                .clone()
                .enumerate()
                .map(|(at, slot)| {
                    let content = contents.get(at).into_iter().flatten();
                    let mut row = vec![Bind::Int(key_of_slot(slot) as i64)];
                    row.extend(content.map(|text| Bind::Text(text)));
                    row
                })
                .collect();
            session.batch(&insert, &values).map_err(&doing)?;
            let done = slots.end - slots.start;
            open += done;
            if open >= TRANSACTION || slots.end == rows {
                session.commit().map_err(&doing)?;
                open = 0;
            }
            self.done(done * marker.block_bytes);
            first = slots.end;
        }
        Ok(())
    }

    /// Columns of a row in an obfuscated data set; two of its rows have nothing in common.
    fn columns(&self, schema: u32, slot: u64) -> Vec<String> {
        let marker = &self.what.marker;
        let mut random = Random::of_row(marker.data_set, (u64::from(schema) << 40) + slot);
        let column = |_| {
            let mut column = vec![FILL; COLUMN_BYTES];
            random.fill_column(&mut column, marker.compress_pct);
            // The content consists of letters and digits only.
            String::from_utf8_lossy(&column).into_owned()
        };
        (0..COLUMNS).map(column).collect()
    }
}
