//! PostgreSQL 13 to 18 as a target: `postgres://user@host:port/db`, `temp:postgres[:VERSION]`.
//!
//! [`wire`] implements the protocol, [`conninfo`] resolves connection parameters, and `temp` starts a throw-away
//! server. `prepare`, `check` and `destroy` manage the data set, `claim` decides who may work on it at the same time,
//! and `site` verifies that it executes no foreign code. `engine` runs sessions, `stats` reads the server's views by
//! version, and `reads` finds where blocks really came from. `README.md` beside this file lists privileges, versions
//! and what is written.

mod attached;
mod check;
mod claim;
pub mod conninfo;
mod destroy;
mod engine;
mod errors;
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

use crate::claim::Purpose;
use crate::place::{Place, Temporary};
use crate::slob::{Dialect, Jobs, SlobOn};
use crate::watched::Live;
use assay_measure::config::{ParamDef, Settings};
use assay_run::engine::{Engine, EngineError, Line, Progress, Started, Target, Watched};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use conninfo::ConnectOptions;
use layout::Names;
use marker::Found;
use own::told;
use prepare::{AS_OURSELVES, LoadPlan};
use server::Server;
use stats::{ServerStats, Timing};
use wire::Connection;

/// The parameter that limits the time of an answer.
const PATIENCE: &str = "PG_ANSWER_TIMEOUT";

/// `postgres://user@host:port/db`.
#[derive(Clone, Copy, Debug)]
pub struct Postgres;

impl Postgres {
    /// PostgreSQL as a SLOB target.
    pub const TARGET: &dyn Target = &Self::SLOB;
    pub(crate) const SLOB: SlobOn<Self> = SlobOn(Self);
}

/// Where a data set is or will be, and how to connect.
#[derive(Clone)]
pub(crate) struct At {
    place: Place,
    options: ConnectOptions,
    names: Names,
    /// Number of keys in a range that a check reads.
    work_unit: u64,
}

impl Jobs for Postgres {
    type At = At;
    type Session = Connection;
    type Worker = Connection;
    type Id = i32;

    fn id(worker: &Connection) -> i32 {
        worker.backend_pid()
    }

    fn interrupt(_: &At, keeper: &mut Connection, working: &[i32], _again: bool) {
        for pid in working {
            // If this fails, the session ends by itself a little later.
            let _ = keeper.query(&format!("{AS_OURSELVES}; select pg_cancel_backend({pid})"));
        }
    }

    fn close(worker: Connection) {
        worker.close();
    }
}

impl Dialect for Postgres {
    const NAME: &'static str = "postgres";
    const FORM: &'static str = "postgres://USER@HOST:PORT/DB";
    const PARAMS: &'static [ParamDef] = params::PARAMS;
    const ANSWER_TIMEOUT: &'static str = PATIENCE;
    const TEMPORARY: &'static [&'static str] = &[temp::BRAND.temp];
    const SERVER_PARAMS: &'static [&'static str] = &["PG_SET", "PG_BIN", "PG_DIR"];

    const THROW_AWAY_ONLY: &'static [(&'static str, &'static str)] = &[("PG_SET", "")];

    type Own = marker::Own;
    type Found = marker::Ours;
    type Held = Connection;
    type LoadPlan = LoadPlan;

    fn start(
        (_, version): Temporary<'_>,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Started, EngineError> {
        temp::start(version, settings, stop, progress)
    }

    fn imagine((_, version): Temporary<'_>, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
        let mut lines = temp::plan(version, settings)?;
        lines.extend(prepare::imagined(version, settings, schemas)?);
        Ok(lines)
    }

    fn at(&self, place: &Place, settings: &Settings) -> Result<At, EngineError> {
        Ok(At {
            options: own::options(place)?,
            place: place.clone(),
            names: Names::new(settings)?,
            work_unit: settings.int("WORK_UNIT"),
        })
    }

    fn open(at: &At) -> Result<Connection, EngineError> {
        own::connect(&at.options).map_err(told("connecting"))
    }

    fn claim(at: &At, purpose: Purpose) -> Result<Option<Connection>, EngineError> {
        claim::take(&at.options, &at.names, purpose).map(Some)
    }

    fn session(held: &mut Connection) -> &mut Connection {
        held
    }

    fn leave(session: Connection) {
        session.close();
    }

    fn end(held: Connection) {
        held.close();
    }

    fn find(session: &mut Connection, at: &At) -> Result<Option<marker::Ours>, EngineError> {
        Server::ask(session)?;
        Ok(match marker::find(session, &at.names)? {
            Found::Ours(ours) => Some(*ours),
            Found::Nothing | Found::Empty(_) => None,
        })
    }

    fn nothing(at: &At) -> EngineError {
        check::nothing_here(&at.names)
    }

    fn plan(session: &mut Connection, at: &At, settings: &Settings, schemas: u32) -> Result<LoadPlan, EngineError> {
        LoadPlan::new(session, &at.names, settings, schemas)
    }

    fn plan_lines(plan: &LoadPlan) -> Vec<Line> {
        plan.lines()
    }

    fn load(
        at: &At,
        plan: LoadPlan,
        keeper: &mut Connection,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        prepare::run(at, &plan, keeper, stop, progress)
    }

    fn check(
        at: &At,
        found: &marker::Ours,
        keeper: &mut Connection,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        check::check(at, found, keeper, settings, stop, progress)
    }

    fn going(session: &mut Connection, at: &At, found: &marker::Ours) -> Result<Vec<Line>, EngineError> {
        destroy::going(session, &at.names, found)
    }

    fn remove(at: &At, held: Connection, found: &marker::Ours) -> Result<(), EngineError> {
        destroy::remove(at, held, found)
    }

    fn watch(at: &At) -> Result<Box<dyn Watched>, EngineError> {
        let server = Server::ask(&mut Self::open(at)?)?;
        let stats = ServerStats::open(&at.options, at.names.schema(), Timing::AsItIs)?;
        let blocks = (server.block_bytes, server.shared_buffers_bytes);
        Ok(Live::boxed(&format!("PostgreSQL {}", server.version), blocks, stats.facts(), move || stats.sample()))
    }

    fn run(
        at: At,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        engine::open(&at, plan, settings, stop)
    }
}
