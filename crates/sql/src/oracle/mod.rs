//! Oracle Database 12.2 to 26 as a target: `oracle://user@//host:1521/service`.
//!
//! `address` says where and who, in SLOB's words too; `session` is what a session must be able to do, `driver` the one that speaks
//! through the crate `oracledb`; `sql` is the dialect, all of it; `server` asks what is there, `marker` what a data set says of
//! itself, `claim` who may work on it at once; `plan`, `load` and `check` make and verify it; `engine` runs sessions on it, `slices`
//! have their loop in the server; `stats` reads V$ views, `licensed` takes snapshots of repositories. `README.md` beside this
//! file lists privileges, versions, what is written, and what was tested how.

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

use crate::checked::{Findings, Level};
use crate::claim::Purpose;
use address::Address;
use assay_measure::config::{ParamDef, Settings};
use assay_run::dataset::lines::text;
use assay_run::engine::{Engine, EngineError, Line, Presence, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use attached::Site;
use marker::{Found, Marked};
use server::Server;
use session::{Session, Way, told};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Between two looks at a check that goes on.
const TICK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 50;

/// `oracle://user@//host:port/service`.
#[derive(Clone, Copy, Debug)]
pub struct Oracle {
    way: fn() -> Result<Arc<dyn Way>, EngineError>,
}

impl Oracle {
    /// The target, by Oracle's own driver.
    pub const DRIVEN: Self = Self { way: driver };
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

/// A command's way and address.
pub(crate) struct Visit {
    way: Arc<dyn Way>,
    address: Address,
    /// Requested; empty: the user's own.
    tablespace: String,
}

impl Oracle {
    fn visit(&self, location: &str, settings: &Settings) -> Result<Visit, EngineError> {
        // Where the driver was not compiled in, no password is asked for first.
        Ok(Visit {
            way: (self.way)()?,
            address: Address::new(location, settings)?,
            tablespace: settings.text("ORACLE_TABLESPACE").to_owned(),
        })
    }
}

impl Visit {
    /// A session of the data set's owner.
    fn open(&self) -> Result<Box<dyn Session>, EngineError> {
        self.way.open(&self.address.data, self.address.answer)
    }

    fn claim(&self, purpose: Purpose, tablespace: Option<&str>) -> Result<claim::Claim, EngineError> {
        claim::take(&*self.way, &self.address, purpose, tablespace)
    }

    fn ours(&self) -> Result<Marked, EngineError> {
        let mut session = self.open()?;
        marker::ours(&mut *session, &self.address.data)
    }

    /// What is read of a data set that this command has not claimed.
    fn settled<T>(&self, find: impl FnMut() -> Result<T, EngineError>) -> Result<T, EngineError> {
        crate::claim::settled(find, || claim::take_if_there(&*self.way, &self.address, Purpose::Series, None))
    }
}

impl Target for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn form(&self) -> &'static str {
        address::FORM
    }

    fn params(&self) -> &'static [ParamDef] {
        params::PARAMS
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let visit = self.visit(location, settings)?;
        let mut session = visit.open()?;
        Server::ask(&mut *session, &visit.tablespace)?;
        let found = visit.settled(|| marker::find(&mut *session, &visit.address.data))?;
        let data = match found {
            Found::Ours(marked) => marked.data_set(),
            Found::Nothing => None,
        };
        Ok(data.map_or(Presence::Absent { harmless: false }, Presence::Present))
    }

    fn plan_prepare(&self, location: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
        let visit = self.visit(location, settings)?;
        let mut session = visit.open()?;
        let plan = visit.settled(|| plan::LoadPlan::new(&mut *session, &visit.address.data, settings, schemas))?;
        Ok(plan.lines())
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let visit = self.visit(location, settings)?;
        let mut keeper = visit.open()?;
        let server = Server::ask(&mut *keeper, &visit.tablespace)?;
        let _claim = visit.claim(Purpose::Prepare, Some(&server.tablespace.name))?;
        let plan = plan::LoadPlan::new(&mut *keeper, &visit.address.data, settings, schemas)?;
        load::run(&plan, &visit.way, &visit.address, &mut *keeper, stop, progress)
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let visit = self.visit(location, settings)?;
        let _claim = visit.claim(Purpose::Check, None)?;
        let marked = visit.ours()?;
        let level = Level::asked(settings);
        let findings = verify(&visit, &marked, level, stop, progress)?;
        let mut lines = check::lines(&findings);
        if !marked.foreign.is_empty() {
            let others = marked.foreign.join(", ");
            lines.push(text("foreign", "Not of this data set", others));
        }
        Ok(lines)
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let visit = self.visit(location, settings)?;
        let mut session = visit.open()?;
        let marked = visit.settled(|| marker::ours(&mut *session, &visit.address.data))?;
        Ok(going(&visit.address, &marked))
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let visit = self.visit(location, settings)?;
        let claim = visit.claim(Purpose::Destroy, None)?;
        let mut session = visit.open()?;
        let marked = marker::ours(&mut *session, &visit.address.data)?;
        let doing = told("removing the data set");
        for n in marked.loaded.union(&marked.loading) {
            marker::remove(&mut *session, *n).map_err(&doing)?;
        }
        marker::remove_all(&mut *session).map_err(&doing)?;
        drop(claim);
        claim::remove(&mut *session).map_err(&doing)?;
        Ok(going(&visit.address, &marked))
    }

    fn share(&self, location: &str, settings: &Settings) -> Result<Option<Box<dyn Send>>, EngineError> {
        let visit = self.visit(location, settings)?;
        Ok(Some(Box::new(visit.claim(Purpose::Series, None)?)))
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let visit = self.visit(location, settings)?;
        let claim = visit.claim(Purpose::Run, None)?;
        let site = Site { way: visit.way, address: visit.address, claim };
        engine::open(site, plan, settings, stop)
    }
}

/// Verifies every loaded schema. Reading a large table takes as long as it takes, on a thread that is left alone when the
/// server shows no life.
fn verify(
    visit: &Visit,
    marked: &Marked,
    level: Level,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Findings, EngineError> {
    let mut keeper = visit.open()?;
    let mut reader = visit.open()?;
    reader.patience(visit.address.long).map_err(told("preparing the check"))?;
    let (marker, loaded) = (marked.marker.clone(), marked.loaded.clone());
    let each = (marker.scale + marker.scan_blocks) * marker.block_bytes;
    let (total, mut done) = (each * loaded.len() as u64, 0);
    let (tell, told) = mpsc::channel();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        for n in loaded {
            let found = if stopped.requested() {
                Err(EngineError::Interrupted)
            } else {
                check::schema(&mut *reader, &marker, n, level)
            };
            let ends = found.is_err();
            // Nobody may wait any more.
            if tell.send(found).is_err() || ends {
                return;
            }
        }
    });
    let (mut findings, mut waits) = (Findings::default(), 0_u32);
    progress.update("check", 0, total);
    loop {
        match told.recv_timeout(TICK) {
            Ok(found) => {
                findings.merge(&found?);
                done += each;
                progress.update("check", done, total);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) if done == total => return Ok(findings),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(EngineError::Unusable("the checking thread ended without a result".to_owned()));
            }
            Err(mpsc::RecvTimeoutError::Timeout) if stop.abandoned() => {
                return Err(EngineError::Interrupted);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                waits += 1;
                if waits.is_multiple_of(LOOKS) {
                    load::alive(&mut *keeper)?;
                }
            }
        }
    }
}

/// What goes with a data set, and what stays.
fn going(address: &Address, marked: &Marked) -> Vec<Line> {
    let place = text("user", "Owner", address.data.user.clone());
    marked.going(place, "the user and the tablespace")
}
