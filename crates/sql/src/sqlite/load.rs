//! What a load would do, decided or refused before anything is created, and the load. SQLite has one writer at a time,
//! so one connection loads. A killed load leaves a schema noted as loading, which the next one removes first.

use super::file::{Db, File};
use super::{Sqlite, check, marker};
use crate::checked::{Findings, Level};
use crate::slob::{Job, summed_up};
use crate::wanted::{Wanted, data_lines, refuse_counts};
use assay_measure::config::Settings;
use assay_measure::permutation::Permutation;
use assay_run::dataset::lines::{bytes, text};
use assay_run::dataset::room::Room;
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS, FILL, Random};
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::ops::{Deref, Range};

/// Approximate index bytes per key.
const INDEX_ROW_BYTES: u64 = 16;
/// Bytes of a transaction, about.
const TRANSACTION_BYTES: u64 = 16 << 20;
/// Added to a schema's number for the rows of its scan table, so that they differ from all others.
const SCAN: u32 = 1 << 20;

/// The full plan of a load.
#[derive(Clone, Debug)]
pub(crate) struct LoadPlan {
    wanted: Wanted,
    place: String,
    room: Room,
    /// The database is empty.
    empty: bool,
}

impl Deref for LoadPlan {
    type Target = Wanted;

    fn deref(&self) -> &Wanted {
        &self.wanted
    }
}

impl LoadPlan {
    pub(super) fn new(db: &Db, at: &File, settings: &Settings, schemas: u32) -> Result<Self, EngineError> {
        refuse_counts(schemas)?;
        let found = marker::find(db, at)?;
        let empty = found.is_none();
        let page = if empty { settings.int("BLOCK_SZ") } else { at.page(db)? };
        if !page.is_power_of_two() {
            return Err(EngineError::Usage(format!("BLOCK_SZ={page}: a page of SQLite is a power of two")));
        }
        let mut wanted = Wanted::new(found, (settings, schemas), (page, "page"), &at.shown(), |_| ())?;
        wanted.degree = 1;
        let plan = Self { wanted, place: at.shown(), room: Room::of(at.directory())?, empty };
        plan.room.fits(
            &plan.place,
            plan.bytes(),
            "free some, name another place, or use fewer schemas or a smaller SCALE",
        )?;
        Ok(plan)
    }

    /// Bytes of tables and indexes, and of the log that a transaction leaves.
    fn bytes(&self) -> u64 {
        self.data_bytes() + self.load.len() as u64 * self.marker.scale * INDEX_ROW_BYTES + 2 * TRANSACTION_BYTES
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = vec![
            text("server_version", "Library", format!("SQLite {}, in this program", rusqlite::version())),
            text("file", "File", self.place.clone()),
            text("action", "Action", self.action(&self.place)),
        ];
        lines.extend(data_lines(&self.marker, self.schemas, "page"));
        lines.extend([
            text("journal", "Journal mode", "wal"),
            bytes("data_bytes", "Tables to be written", self.data_bytes()),
            bytes("needed_bytes", "Room needed at most", self.bytes()),
            bytes("free_bytes", "Free now", self.room.free_bytes),
        ]);
        lines
    }
}

/// Loads, verifies and sums up.
///
/// # Errors
/// SQLite's; `Interrupted`; `Damaged` if the loaded data fail verification.
pub(super) fn run(
    at: &File,
    plan: LoadPlan,
    keeper: &mut Db,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let (load, bytes) = (plan.load.clone(), plan.data_bytes());
    let job = Job::<Sqlite, _>::new(at, plan, ("load", bytes), load);
    let work = |keeper: &mut Db| {
        begin(&job.what, keeper, at)?;
        job.run(1, (|job| job.at.work(), schema), keeper, stop, progress)
    };
    summed_up(&job.what, keeper, work, |keeper| {
        progress.update("writing out", 0, 0);
        at.write_out(keeper).map_err(|error| error.to_string())
    })
}

/// Removes what an earlier prepare left, creates the marker, records what will be loaded.
fn begin(plan: &LoadPlan, keeper: &Db, at: &File) -> Result<(), EngineError> {
    let doing = at.told("beginning the load");
    for n in plan.left() {
        marker::remove(keeper, n).map_err(&doing)?;
    }
    if plan.empty {
        marker::begin(keeper, at, plan.marker.block_bytes)?;
    }
    if plan.is_new() {
        marker::create(keeper, &plan.marker).map_err(&doing)?;
    }
    plan.load.iter().try_for_each(|n| marker::note(keeper, *n, "loading")).map_err(&doing)
}

/// Loads a SLOB schema and verifies it.
fn schema(job: &Job<Sqlite, LoadPlan>, db: &mut Db, n: u32) -> Result<Findings, EngineError> {
    let marker = &job.what.marker;
    let doing = format!("loading SLOB schema {n}");
    let doing = job.at.told(&doing);
    let keys = Permutation::new(marker.seed, n, marker.scale);
    let mut tables = vec![marker::create_table(&marker::rows_table(n))];
    if marker.scan_blocks > 0 {
        tables.push(marker::create_table(&marker::scan_table(n)));
    }
    db.atomic(&tables.join("; ")).map_err(&doing)?;
    job.fill(db, &marker::rows_table(n), (n, marker.scale), &|slot| keys.key_of_slot(slot))?;
    if marker.scan_blocks > 0 {
        job.fill(db, &marker::scan_table(n), (SCAN + n, marker.scan_blocks), &|slot| slot + 1)?;
    }
    job.goes_on()?;
    db.atomic(&marker::create_index(n, marker.unique)).map_err(&doing)?;
    let found = check::schema(&job.at, db, marker, n, Level::Loaded)?;
    marker::note(db, n, "loaded").map_err(&doing)?;
    Ok(found)
}

impl Job<Sqlite, LoadPlan> {
    fn fill(
        &self,
        db: &Db,
        table: &str,
        (schema, rows): (u32, u64),
        key_of_slot: &dyn Fn(u64) -> u64,
    ) -> Result<(), EngineError> {
        let marker = &self.what.marker;
        let step = (TRANSACTION_BYTES / marker.block_bytes).max(1);
        let insert = marker::insert(table, marker.block_bytes, marker.obfuscate);
        let mut first = 0;
        while first < rows {
            self.goes_on()?;
            let slots = first..(first + step).min(rows);
            self.batch(db, &insert, (schema, slots.clone()), key_of_slot).map_err(self.at.told("loading"))?;
            self.done((slots.end - first) * marker.block_bytes);
            first = slots.end;
        }
        Ok(())
    }

    fn batch(
        &self,
        db: &Db,
        insert: &str,
        (schema, slots): (u32, Range<u64>),
        key_of_slot: &dyn Fn(u64) -> u64,
    ) -> rusqlite::Result<()> {
        let marker = &self.what.marker;
        let transaction = db.0.unchecked_transaction()?;
        let mut statement = transaction.prepare_cached(insert)?;
        let mut column = vec![FILL; COLUMN_BYTES];
        for slot in slots {
            statement.raw_bind_parameter(1, slot as i64 + 1)?;
            statement.raw_bind_parameter(2, key_of_slot(slot) as i64)?;
            let mut random = Random::of_row(marker.data_set, (u64::from(schema) << 40) + slot);
            for at in 0..if marker.obfuscate { COLUMNS } else { 1 } {
                if marker.obfuscate {
                    random.fill_column(&mut column, marker.compress_pct);
                }
                // The content consists of letters and digits only.
                statement.raw_bind_parameter(at + 3, String::from_utf8_lossy(&column))?;
            }
            statement.raw_execute()?;
        }
        drop(statement);
        transaction.commit()
    }
}
