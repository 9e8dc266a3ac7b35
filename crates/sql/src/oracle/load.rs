//! Carrying out a load plan: one session loads one SLOB schema at a time, several do so side by side.
//!
//! A schema is noted as being loaded before its tables exist and as loaded once it is verified; what was begun and not ended
//! goes when the next prepare begins. Rows are inserted in arrays; where all columns are alike only the keys travel.

use super::address::Address;
use super::attached::Token;
use super::check;
use super::marker;
use super::plan::LoadPlan;
use super::session::{Bind, Id, OraError, Session, Way, told};
use super::sql;
use crate::checked::{Findings, Level};
use crate::threads::gather;
use crate::wanted::Start;
use crate::watch::Cancel;
use assay_measure::locked::locked;
use assay_measure::permutation::Permutation;
use assay_run::dataset::lines::{decimal, text};
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS, FILL, Random};
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Rows of an array, of keys alone and with their columns (2.4 KB each).
const KEYS: u64 = 1000;
const ROWS: u64 = 200;
/// Rows of a transaction.
const TRANSACTION: u64 = 10_000;
/// Added to the number of a schema for the rows of its scan table: they are unlike all others.
const SCAN: u32 = 1 << 20;
/// Between two signs of life.
const LIFE: Duration = Duration::from_secs(5);
/// How long a load that is to stop waits for its sessions: they end what they do, or are cancelled.
const STOPPED: Duration = Duration::from_secs(5);

/// Loads, verifies and sums up. `keeper` makes and notes; it is another session than the one that holds the claim.
///
/// # Errors
/// The server's; `Interrupted`; `Damaged` if what was loaded is not what it must be.
pub(super) fn run(
    plan: &LoadPlan,
    way: &Arc<dyn Way>,
    address: &Address,
    keeper: &mut dyn Session,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let begun = Instant::now();
    open_site(plan, keeper)?;
    let job = Arc::new(Job {
        plan: plan.clone(),
        way: Arc::clone(way),
        address: address.clone(),
        done_bytes: AtomicU64::new(0),
        next: AtomicUsize::new(0),
        ended: AtomicBool::new(false),
        working: Mutex::default(),
    });
    let findings = job.run(keeper, stop, progress)?;
    let load_s = begun.elapsed().as_secs_f64();
    let mut lines = plan.summary(load_s);
    progress.update("writing out", 0, 0);
    lines.push(write_out(&**way, address));
    lines.extend(findings.lines());
    lines.push(decimal("total_s", "Time in all, s", begun.elapsed().as_secs_f64()));
    Ok(lines)
}

/// Where new tables come to be: where the user said, or where the server puts them.
fn place(plan: &LoadPlan) -> Option<&str> {
    Some(plan.server.tablespace.name.as_str())
}

/// Removes what an earlier prepare left, makes the marker, notes what will be loaded.
fn open_site(plan: &LoadPlan, keeper: &mut dyn Session) -> Result<(), EngineError> {
    let left: Vec<u32> = match &plan.start {
        Start::Fresh => Vec::new(),
        Start::Over(marked) | Start::Add(marked) => marked.loading.iter().copied().collect(),
    };
    for n in left {
        marker::remove(keeper, n).map_err(told("removing tables"))?;
    }
    let doing = told("writing the marker of the data set");
    if !matches!(plan.start, Start::Add(_)) {
        marker::create(keeper, &plan.marker, place(plan)).map_err(&doing)?;
    }
    for n in &plan.load {
        marker::note(keeper, sql::NOTE_LOADING, *n).map_err(&doing)?;
    }
    Ok(())
}

/// Has the server write what the load left in memory, so that the first run does not.
fn write_out(way: &dyn Way, address: &Address) -> Line {
    let begun = Instant::now();
    let label = "Time to write out the tables, s";
    let done = way.open(address.admin(), address.answer).and_then(|mut admin| {
        admin.patience(address.long).map_err(told("asking for a checkpoint"))?;
        admin.run(sql::CHECKPOINT, &[]).map_err(told("asking for a checkpoint"))
    });
    match done {
        Ok(_) => decimal("checkpoint_s", label, begun.elapsed().as_secs_f64()),
        Err(error) => text(
            "checkpoint_s",
            label,
            format!("n/a ({error}; it needs ALTER SYSTEM: the first run may write blocks that the load left dirty)"),
        ),
    }
}

/// What the sessions of a load share. It outlives a command that gives up a server which is gone.
struct Job {
    plan: LoadPlan,
    way: Arc<dyn Way>,
    address: Address,
    done_bytes: AtomicU64,
    next: AtomicUsize,
    /// A thread failed, or the user wants to stop: start nothing more.
    ended: AtomicBool,
    /// Its sessions.
    working: Mutex<Vec<Id>>,
}

impl Job {
    /// Works through the schemas with as many sessions as the plan says; the first failure ends all.
    fn run(
        self: &Arc<Self>,
        keeper: &mut dyn Session,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Findings, EngineError> {
        let threads = self.plan.degree.min(self.plan.load.len());
        let (tell, told) = mpsc::channel();
        for _ in 0..threads {
            let (job, tell) = (Arc::clone(self), tell.clone());
            std::thread::spawn(move || {
                let done = job.thread();
                if done.is_err() {
                    job.ended.store(true, Ordering::Release);
                }
                // Nobody may wait any more.
                let _ = tell.send(done);
            });
        }
        drop(tell);
        // One that gives no sign of life is not waited for.
        let (mut looked, mut stopped, mut gone) = (Instant::now(), None, false);
        let watch = || {
            let done = self.done_bytes.load(Ordering::Relaxed);
            progress.update("load", done, self.plan.data_bytes());
            if stop.requested() {
                self.ended.store(true, Ordering::Release);
                let since = stopped.get_or_insert_with(|| {
                    self.cancel();
                    Instant::now()
                });
                // A statement that nobody could end goes on in the server without us.
                if since.elapsed() >= STOPPED {
                    return Err(EngineError::Interrupted);
                }
            }
            if looked.elapsed() >= LIFE {
                alive(keeper).inspect_err(|_| gone = true)?;
                looked = Instant::now();
            }
            Ok(())
        };
        gather(threads, &told, Findings::merge, watch)
            .map_err(|error| if stop.requested() && !gone { EngineError::Interrupted } else { error })
    }

    /// Ends what the sessions do; nobody waits for that.
    fn cancel(&self) {
        let major = self.plan.server.major;
        for id in &*locked(&self.working) {
            let token = Token::new(&self.way, &self.address, *id, major);
            std::thread::spawn(move || token.cancel());
        }
    }

    fn thread(&self) -> Result<Findings, EngineError> {
        let mut findings = Findings::default();
        let mut session = self.way.open(&self.address.data, self.address.answer)?;
        locked(&self.working).push(session.id());
        while !self.ended.load(Ordering::Acquire) {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(n) = self.plan.load.get(at).copied() else {
                return Ok(findings);
            };
            self.load(&mut *session, n)?;
            findings.merge(&check::schema(&mut *session, &self.plan.marker, n, Level::Loaded)?);
            marker::note(&mut *session, sql::NOTE_LOADED, n).map_err(told("noting a schema as loaded"))?;
        }
        Err(EngineError::Interrupted)
    }

    fn load(&self, session: &mut dyn Session, n: u32) -> Result<(), EngineError> {
        let doing = format!("loading SLOB schema {n}");
        let doing = told(&doing);
        let marker = &self.plan.marker;
        let rows = sql::rows_table(n);
        session.patience(self.address.answer / 2).map_err(&doing)?;
        self.create(session, &rows).map_err(&doing)?;
        let keys = Permutation::new(marker.seed, n, marker.scale);
        self.fill(session, &rows, (n, marker.scale), &|slot| keys.key_of_slot(slot))?;
        if marker.scan_blocks > 0 {
            let scan = sql::scan_table(n);
            self.create(session, &scan).map_err(&doing)?;
            self.fill(session, &scan, (SCAN + n, marker.scan_blocks), &|slot| slot + 1)?;
        }
        // What follows reads or writes a whole table.
        session.patience(self.address.long).map_err(&doing)?;
        let index = sql::create_index(n, marker.unique, place(&self.plan));
        let table = rows.to_ascii_uppercase();
        for (sql, binds) in [(index.as_str(), &[][..]), (sql::GATHER, &[Bind::Text(&table)])] {
            // Only a statement that runs can be cancelled.
            if self.ended.load(Ordering::Acquire) {
                return Err(EngineError::Interrupted);
            }
            session.run(sql, binds).map_err(&doing)?;
        }
        Ok(())
    }

    fn create(&self, session: &mut dyn Session, table: &str) -> Result<(), OraError> {
        session.run(&sql::create_table(table, place(&self.plan)), &[])?;
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
        let marker = &self.plan.marker;
        let insert = sql::insert(table, marker.obfuscate);
        let step = if marker.obfuscate { ROWS } else { KEYS };
        let (mut first, mut open) = (0, 0);
        while first < rows {
            if self.ended.load(Ordering::Acquire) {
                return Err(EngineError::Interrupted);
            }
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
            self.done_bytes.fetch_add(done * marker.block_bytes, Ordering::Relaxed);
            first = slots.end;
        }
        Ok(())
    }

    /// Columns of a row of an obfuscated data set: two rows of it have nothing in common.
    fn columns(&self, schema: u32, slot: u64) -> Vec<String> {
        let marker = &self.plan.marker;
        let mut random = Random::of_row(marker.data_set, (u64::from(schema) << 40) + slot);
        let column = |_| {
            let mut column = vec![FILL; COLUMN_BYTES];
            random.fill_column(&mut column, marker.compress_pct);
            // Letters and digits alone, by what fills it.
            String::from_utf8_lossy(&column).into_owned()
        };
        (0..COLUMNS).map(column).collect()
    }
}

/// The server answers on another connection.
///
/// # Errors
/// `Unusable`: it does not.
pub(super) fn alive(keeper: &mut dyn Session) -> Result<(), EngineError> {
    match keeper.number(sql::LIFE, &[]) {
        Err(error) if error.is_fatal() => {
            Err(EngineError::Unusable(format!("the server stopped answering, on another connection too ({error})")))
        }
        _ => Ok(()),
    }
}
