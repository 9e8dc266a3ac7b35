//! Oracle Database 12.2 to 26 as a target: `oracle://user@//host:1521/service`.
//!
//! `address` resolves where the database is and who logs in, also from SLOB's parameters. `session` defines what a
//! session can do, and `driver` implements that with the crate `oracledb`; `sql` contains the whole dialect. `server`
//! queries facts, `marker` describes a data set, and `claim` decides who may work on it at the same time; `plan`,
//! `load` and `check` create and verify it. `engine` runs sessions, and `slices` runs their loop in the server; `stats`
//! reads V$ views, `licensed` takes snapshots of repositories. `README.md` beside this file lists privileges, versions,
//! what is written, and what was tested how.

mod address;
mod attached;
mod check;
mod claim;
#[cfg(feature = "oracle")]
mod driver;
mod engine;
mod licensed;
mod load;
mod marker;
pub mod orders;
mod params;
mod plan;
mod server;
mod services;
mod session;
mod slices;
mod sql;
mod stats;
#[cfg(test)]
mod tests;

use crate::claim::Purpose;
use crate::marked::Marked;
use crate::place::Place;
use crate::slob::{Dialect, Job, Jobs, SlobOn};
use address::Address;
use assay_measure::config::{Concern, ParamDef, SERVERS, Settings};
use assay_run::dataset::lines::text;
use assay_run::engine::{Engine, EngineError, Line, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_slob::params::{ORACLE, SQL};
use attached::{Site, Token};
use server::Server;
use session::{Id, Session, Way, told};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// `oracle://user@//host:port/service`.
#[derive(Clone, Copy, Debug)]
pub struct Oracle {
    way: fn() -> Result<Arc<dyn Way>, EngineError>,
}

impl Oracle {
    /// Oracle as a SLOB target, through Oracle's own driver.
    pub const TARGET: &dyn Target = &Self::SLOB;
    pub(crate) const SLOB: SlobOn<Self> = SlobOn(Self { way: driver });
}

/// A command's driver and address.
#[derive(Clone)]
pub(crate) struct Visit {
    way: Arc<dyn Way>,
    address: Address,
    /// Requested tablespace; empty means the user's default.
    tablespace: String,
    /// The server's version, once it is known.
    major: Arc<OnceLock<u32>>,
}

impl Visit {
    /// A session of the data set's owner.
    fn open(&self) -> Result<Box<dyn Session>, EngineError> {
        self.way.open(&self.address.data, self.address.answer)
    }

    /// A session that reads or writes whole tables.
    fn reader(&self) -> Result<Box<dyn Session>, EngineError> {
        let mut reader = self.open()?;
        reader.patience(self.address.long).map_err(told("preparing the check"))?;
        Ok(reader)
    }
}

/// A claim, whose session does nothing else, and the session that works under it.
pub(crate) struct Held {
    claim: claim::Claim,
    keeper: Box<dyn Session>,
}

impl Jobs for Oracle {
    type At = Visit;
    type Session = Box<dyn Session>;
    type Worker = Box<dyn Session>;
    type Id = Id;

    /// Sessions end their statements by then, or are cancelled.
    const LEFT_AFTER: Option<Duration> = Some(Duration::from_secs(5));

    fn id(worker: &Box<dyn Session>) -> Id {
        worker.id()
    }

    fn interrupt(at: &Visit, _keeper: &mut Box<dyn Session>, working: &[Id], again: bool) {
        if again {
            return;
        }
        // The keeper may be the one that does not answer.
        let Some(major) = at.major.get() else {
            return;
        };
        for id in working {
            let token = Token::new(&at.way, &at.address, *id, *major);
            // Nothing waits for this thread.
            std::thread::spawn(move || crate::watch::Cancel::cancel(&token));
        }
    }

    fn alive(keeper: &mut Box<dyn Session>) -> Result<(), EngineError> {
        match keeper.number(sql::LIFE, &[]) {
            Err(error) if error.is_fatal() => {
                Err(EngineError::Unusable(format!("the server stopped answering, on another connection too ({error})")))
            }
            _ => Ok(()),
        }
    }
}

impl Dialect for Oracle {
    const NAME: &'static str = "oracle";
    const FORM: &'static str = address::FORM;
    const PARAMS: &'static [ParamDef] = params::PARAMS;
    const CONCERNS: &'static [Concern] = &[SQL, SERVERS, ORACLE];
    const ANSWER_TIMEOUT: &'static str = "ORACLE_ANSWER_TIMEOUT";

    type Own = ();
    type Found = Marked;
    type Held = Held;
    type LoadPlan = plan::LoadPlan;

    fn at(&self, place: &Place, settings: &Settings) -> Result<Visit, EngineError> {
        // If the driver was not compiled in, fail before asking for a password.
        Ok(Visit {
            way: (self.way)()?,
            address: Address::new(place.server()?.0, settings)?,
            tablespace: settings.text("ORACLE_TABLESPACE").to_owned(),
            major: Arc::default(),
        })
    }

    fn open(at: &Visit) -> Result<Box<dyn Session>, EngineError> {
        at.open()
    }

    fn claim(at: &Visit, purpose: Purpose) -> Result<Option<Held>, EngineError> {
        let mut keeper = at.open()?;
        let tablespace = match purpose {
            Purpose::Prepare => Some(Server::ask(&mut *keeper, &at.tablespace)?.tablespace.name),
            _ => None,
        };
        let claim = claim::take_if_there(&*at.way, &at.address, purpose, tablespace.as_deref())?;
        Ok(claim.map(|claim| Held { claim, keeper }))
    }

    fn session(held: &mut Held) -> &mut Box<dyn Session> {
        &mut held.keeper
    }

    fn series(held: Held) -> Box<dyn Send> {
        Box::new(held.claim)
    }

    fn find(session: &mut Box<dyn Session>, at: &Visit) -> Result<Option<Marked>, EngineError> {
        let (_, major) = server::who(&mut **session)?;
        at.major.get_or_init(|| major);
        marker::find(&mut **session, &at.address.data)
    }

    fn nothing(at: &Visit) -> EngineError {
        claim::nothing_here(&at.address.data)
    }

    fn plan(
        session: &mut Box<dyn Session>,
        at: &Visit,
        settings: &Settings,
        schemas: u32,
    ) -> Result<plan::LoadPlan, EngineError> {
        let plan = plan::LoadPlan::new(&mut **session, &at.address.data, settings, schemas)?;
        at.major.get_or_init(|| plan.server.major);
        Ok(plan)
    }

    fn plan_lines(plan: &plan::LoadPlan) -> Vec<Line> {
        plan.lines()
    }

    fn load(
        at: &Visit,
        plan: plan::LoadPlan,
        keeper: &mut Box<dyn Session>,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        load::run(at, plan, keeper, stop, progress)
    }

    fn check(
        at: &Visit,
        found: &Marked,
        keeper: &mut Box<dyn Session>,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let job = Job::<Self, _>::check(at, found, settings, ());
        Ok(job.run(1, (|job| job.at.reader(), check::each), keeper, stop, progress)?.lines())
    }

    fn going(_: &mut Box<dyn Session>, at: &Visit, found: &Marked) -> Result<Vec<Line>, EngineError> {
        Ok(found.going(text("user", "Owner", at.address.data.user.clone()), "the user and the tablespace"))
    }

    fn remove(_: &Visit, held: Held, found: &Marked) -> Result<(), EngineError> {
        let Held { claim, keeper: mut session } = held;
        let doing = told("removing the data set");
        for n in found.loaded.union(&found.loading) {
            marker::remove(&mut *session, *n).map_err(&doing)?;
        }
        marker::remove_all(&mut *session).map_err(&doing)?;
        drop(claim);
        claim::remove(&mut *session).map_err(&doing)
    }

    fn run(
        at: Visit,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let claim = claim::take(&*at.way, &at.address, Purpose::Run, None)?;
        engine::open(Site { way: at.way, address: at.address, claim }, plan, settings, stop)
    }
}

#[cfg(feature = "oracle")]
fn driver() -> Result<Arc<dyn Way>, EngineError> {
    Ok(Arc::new(driver::Thin))
}

#[cfg(not(feature = "oracle"))]
fn driver() -> Result<Arc<dyn Way>, EngineError> {
    Err(EngineError::Unusable(
        "this assay was built without the driver of Oracle; build it with `cargo build --release --features full`"
            .to_owned(),
    ))
}
