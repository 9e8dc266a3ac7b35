//! SQLite as a target: `sqlite:FILE`, in WAL mode, by the library in this program.
//!
//! `file` opens the database, `claim` decides who may work on it at the same time, and `marker` describes a data set;
//! `load` and `check` create and verify it. `counted` is what a session counts, `attached` holds a run's sessions, and
//! `engine` runs SLOB on them. `README.md` beside this file says what is written and what the figures are.

mod attached;
mod check;
mod claim;
mod counted;
mod engine;
mod file;
mod load;
mod marker;
pub mod orders;
mod params;
#[cfg(test)]
mod tests;

use crate::claim::Purpose;
use crate::marked::Marked;
use crate::place::Place;
use crate::slob::{Dialect, Job, Jobs, SlobOn};
use assay_measure::config::{Concern, ParamDef, Settings};
use assay_run::dataset::lines::text;
use assay_run::engine::{Engine, EngineError, Hosts, Line, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_slob::params::SQL;
use file::{Db, File, io};
use std::fs;

/// `sqlite:FILE`.
#[derive(Clone, Copy, Debug)]
pub struct Sqlite;

impl Sqlite {
    /// SQLite as a SLOB target.
    pub const TARGET: &dyn Target = &Self::SLOB;
    pub(crate) const SLOB: SlobOn<Self> = SlobOn(Self);
}

/// A claim, and the connection that works under it.
pub(crate) struct Held {
    /// Closes before the claim ends.
    keeper: Db,
    claim: claim::Claim,
}

impl Jobs for Sqlite {
    type At = File;
    type Session = Db;
    type Worker = Db;
    type Id = ();

    fn id(_: &Db) {}

    /// A statement ends by itself when the user asks to stop.
    fn interrupt(_: &File, _: &mut Db, _: &[()], _: bool) {}
}

impl Dialect for Sqlite {
    const NAME: &'static str = "sqlite";
    const FORM: &'static str = file::FORM;
    const PARAMS: &'static [ParamDef] = params::PARAMS;
    const CONCERNS: &'static [Concern] = &[SQL];
    const ANSWER_TIMEOUT: &'static str = "SQLITE_BUSY_TIMEOUT";
    const HOSTS: Hosts = Hosts::Never("a database in a file is of the processes of one host");

    type Own = ();
    type Found = Marked;
    type Held = Held;
    type LoadPlan = load::LoadPlan;

    fn at(&self, place: &Place, settings: &Settings) -> Result<File, EngineError> {
        let (url, patience) = place.server()?;
        File::new(url, settings, patience.stop())
    }

    fn open(at: &File) -> Result<Db, EngineError> {
        at.look()
    }

    fn claim(at: &File, purpose: Purpose) -> Result<Option<Held>, EngineError> {
        let Some(claim) = claim::take(at, purpose)? else {
            return Ok(None);
        };
        let keeper = match purpose {
            Purpose::Series => at.look(),
            Purpose::Run => at.work_until(Stop::abandoned),
            Purpose::Prepare | Purpose::Check | Purpose::Destroy => at.work(),
        };
        Ok(Some(Held { keeper: keeper?, claim }))
    }

    fn session(held: &mut Held) -> &mut Db {
        &mut held.keeper
    }

    fn series(held: Held) -> Box<dyn Send> {
        Box::new(held.claim)
    }

    fn find(db: &mut Db, at: &File) -> Result<Option<Marked>, EngineError> {
        marker::find(db, at)
    }

    fn nothing(at: &File) -> EngineError {
        EngineError::Unusable(format!("there is no data set in {}; run `assay prepare` first", at.shown()))
    }

    fn plan(db: &mut Db, at: &File, settings: &Settings, schemas: u32) -> Result<load::LoadPlan, EngineError> {
        load::LoadPlan::new(db, at, settings, schemas)
    }

    fn plan_lines(plan: &load::LoadPlan) -> Vec<Line> {
        plan.lines()
    }

    fn load(
        at: &File,
        plan: load::LoadPlan,
        keeper: &mut Db,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        load::run(at, plan, keeper, stop, progress)
    }

    fn check(
        at: &File,
        found: &Marked,
        keeper: &mut Db,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let job = Job::<Self, _>::check(at, found, settings, ());
        Ok(job.run(1, (|job| job.at.work(), check::each), keeper, stop, progress)?.lines())
    }

    fn going(_: &mut Db, at: &File, found: &Marked) -> Result<Vec<Line>, EngineError> {
        let stays = if found.foreign.is_empty() { "nothing" } else { "the file" };
        Ok(found.going(text("file", "File", at.shown()), stays))
    }

    fn remove(at: &File, held: Held, found: &Marked) -> Result<(), EngineError> {
        let doing = at.told("removing the data set");
        for n in found.loaded.union(&found.loading) {
            marker::remove(&held.keeper, *n).map_err(&doing)?;
        }
        marker::remove_all(&held.keeper).map_err(&doing)?;
        gone(at, held)
    }

    fn run(
        at: File,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let held = Self::claim(&at, Purpose::Run)?.ok_or_else(|| Self::nothing(&at))?;
        engine::open(at, held, plan, settings, stop)
    }
}

/// Removes the file if nothing is left in it and no other program uses it. Leaving WAL mode removes the log, and SQLite
/// does so only for the last connection; the lock then keeps others from beginning.
fn gone(at: &File, held: Held) -> Result<(), EngineError> {
    let Held { claim, keeper } = held;
    let doing = at.told("looking at what is left");
    let left = || keeper.number(&format!("select count(*) {}", marker::MADE)).map_err(&doing);
    if left()? == 0 {
        let alone = keeper.journal_mode("= delete").is_ok_and(|mode| mode == "delete");
        if !alone || keeper.0.execute_batch("begin exclusive").is_err() {
            return Err(EngineError::Unusable(format!(
                "the data set was removed, but {} stays, an empty database: another program has it open. Remove the file \
                 when that program has ended",
                at.shown()
            )));
        }
        if left()? == 0 {
            let path = at.beside("");
            fs::remove_file(&path).map_err(io("removing", &path))?;
        }
    }
    drop(keeper);
    drop(claim);
    Ok(())
}
