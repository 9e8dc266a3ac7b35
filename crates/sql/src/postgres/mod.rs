//! PostgreSQL 13 to 18 as a target: `postgres://user@host:port/db`, `temp:postgres[:VERSION]`.
//!
//! [`wire`] speaks the protocol, [`conninfo`] says where and who, `temp` starts a throw-away server,
//! `prepare`, `check` and `destroy` are the data set's life, `claim` says who may work on it at once, `site` that it
//! executes nobody's code, `engine` runs sessions on it, `stats` reads
//! the server's views by version, `reads` says where its blocks really came from. `README.md` beside this
//! file lists privileges, versions and what is written.

mod attached;
mod check;
mod claim;
pub mod conninfo;
mod destroy;
mod engine;
mod growth;
mod layout;
mod marker;
pub mod orders;
mod own;
mod params;
mod prepare;
mod reads;
mod server;
mod site;
mod stats;
mod temp;
#[cfg(test)]
mod testing;
pub mod wire;

use crate::place::{LOOK, Place};
use assay_measure::config::{ParamDef, Settings};
use assay_run::engine::{Engine, EngineError, Line, Presence, Progress, Started, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// The parameter that says how long an answer may take.
const PATIENCE: &str = "PG_ANSWER_TIMEOUT";

/// `postgres://user@host:port/db`, with libpq's environment, service and password files.
#[derive(Clone, Copy, Debug)]
pub struct Postgres;

impl Target for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn form(&self) -> &'static str {
        "postgres://USER@HOST:PORT/DB"
    }

    fn params(&self) -> &'static [ParamDef] {
        params::PARAMS
    }

    fn temporary(&self) -> &'static [&'static str] {
        &[temp::BRAND.temp]
    }

    fn server_params(&self) -> &'static [&'static str] {
        &["PG_SET", "PG_BIN", "PG_DIR"]
    }

    fn start(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Option<Started>, EngineError> {
        match Place::new(location)? {
            Place::Temporary { version, .. } => temp::start(version.as_deref(), settings, stop, progress).map(Some),
            Place::Server { .. } => match settings.text("PG_SET") {
                "" => Ok(None),
                given => Err(EngineError::Usage(format!(
                    "--pg-set {given}: applies only to a temp:postgres server; this server already has its settings"
                ))),
            },
        }
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::of_process());
        place.brief(LOOK);
        if let Place::Temporary { .. } = place {
            return Ok(Presence::Absent { harmless: true });
        }
        Ok(place.presence(prepare::find(&place, settings)?))
    }

    fn plan_prepare(&self, location: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::of_process());
        place.brief(LOOK);
        let mut lines = match &place {
            Place::Temporary { version, .. } => temp::plan(version.as_deref(), settings)?,
            Place::Server { .. } => Vec::new(),
        };
        lines.extend(prepare::plan(&place, settings, schemas)?);
        Ok(lines)
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, stop);
        prepare::prepare(&place, settings, schemas, stop, progress).map_err(|error| place.failed(error))
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, stop);
        check::check(&place, settings, stop, progress).map_err(|error| place.failed(error))
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::of_process());
        place.brief(LOOK);
        destroy::plan(&place, settings)
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::of_process());
        destroy::destroy(&place, settings)
    }

    fn share(&self, location: &str, settings: &Settings) -> Result<Option<Box<dyn Send>>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::of_process());
        let options = own::options(place.brief(LOOK))?;
        let names = layout::Names::new(settings)?;
        let claimed = claim::take(&options, &names, claim::Purpose::Series)?;
        Ok(Some(Box::new(claimed)))
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, stop);
        place.brief("the set-up of the run");
        engine::open(&place, plan, settings, stop, progress).map_err(|error| place.failed(error))
    }
}
