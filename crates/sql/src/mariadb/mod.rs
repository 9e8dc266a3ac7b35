//! MariaDB 10.6 to 11.8 and MySQL 8.0 to 9.7 as a target: `mysql://user[:password]@host[:port]/db`, `temp:mariadb[:VERSION]`,
//! `temp:mysql[:VERSION]`.
//!
//! `address` resolves where the server is and who logs in, `dial` and `login` connect, `conn` implements sessions over
//! the protocol in `wire`, and `temp` starts a throw-away server. `layout` defines a data set's tables, `marker`
//! describes an existing one, and `claim` decides who may work on it at the same time; `plan`, `load` and `check`
//! create and verify it. `engine` runs sessions, `attached` holds what every run has besides them, `stats` reads the
//! server's counters, and `orders` is order entry. `README.md` beside this file lists privileges, versions, what is
//! written, and what is still missing.

mod activity;
mod address;
mod attached;
mod batch;
mod check;
mod claim;
mod conn;
mod dial;
mod engine;
mod error;
mod files;
mod host;
mod layout;
mod load;
mod login;
mod marker;
pub mod orders;
mod params;
mod plan;
mod product;
mod scramble;
mod server;
mod stats;
mod temp;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

#[doc(hidden)]
pub use {
    files::read_text,
    login::read_login,
    wire::{read_answer, read_rows},
};

use crate::claim::{Company, Purpose};
use crate::marked::Marked;
use crate::place::{Place, Temporary};
use crate::slob::{Dialect, Job, Jobs, SlobOn};
use crate::watched::Live;
use address::Address;
use assay_measure::config::{Concern, ParamDef, SERVERS, Settings};
use assay_measure::plain::is_unprintable;
use assay_run::dataset::lines::text;
use assay_run::engine::{Engine, EngineError, Line, Progress, Started, Target, Watched};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_slob::params::{MYSQL, SQL};
use conn::{Connection, told};
use files::Options;
use product::Product;

/// The parameter that names an option file.
const FILES: &str = "MYSQL_DEFAULTS_FILE";
/// Default page size of a server.
const PAGE_BYTES: u64 = 16384;

/// `mysql://user@host:port/db`.
#[derive(Clone, Copy, Debug)]
pub struct Mariadb;

impl Mariadb {
    /// MariaDB and MySQL as a SLOB target.
    pub const TARGET: &dyn Target = &Self::SLOB;
    pub(crate) const SLOB: SlobOn<Self> = SlobOn(Self);
}

/// Foreign text on one line, made safe for a terminal.
fn on_one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control() || is_unprintable(c), " ")
}

fn nothing_here(database: &str) -> EngineError {
    EngineError::Unusable(format!("there is no data set in database {database}; run `assay prepare` first"))
}

impl Jobs for Mariadb {
    type At = Address;
    type Session = Connection;
    type Worker = Connection;
    type Id = u32;

    fn id(worker: &Connection) -> u32 {
        worker.id()
    }

    fn interrupt(_: &Address, keeper: &mut Connection, working: &[u32], _again: bool) {
        for id in working {
            // If the session has just ended, nothing is left to cancel.
            let _ = keeper.run(&format!("kill query {id}"));
        }
    }
}

impl Dialect for Mariadb {
    const NAME: &'static str = "mysql";
    const FORM: &'static str = "mysql://USER@HOST:PORT/DB";
    const PARAMS: &'static [ParamDef] = params::PARAMS;
    const CONCERNS: &'static [Concern] = &[SQL, SERVERS, MYSQL];
    const ANSWER_TIMEOUT: &'static str = "MYSQL_ANSWER_TIMEOUT";
    const TEMPORARY: &'static [&'static str] = &[temp::MARIADB.temp, temp::MYSQL.temp];
    const SERVER_PARAMS: &'static [&'static str] = &["MYSQL_SET", "MYSQL_BIN", "MYSQL_DIR"];

    const THROW_AWAY_ONLY: &'static [(&'static str, &'static str)] = &[("MYSQL_SET", ""), ("COMMIT_MODE", "default")];

    type Own = ();
    type Found = Marked;
    type Held = Connection;
    type LoadPlan = plan::LoadPlan;

    fn start(
        (name, version): Temporary<'_>,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Started, EngineError> {
        temp::start(Product::named(name), version, settings, stop, progress)
    }

    fn imagine((name, version): Temporary<'_>, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
        let mut lines = temp::plan(Product::named(name), version, settings)?;
        lines.extend(plan::imagined(settings, schemas)?);
        Ok(lines)
    }

    fn at(&self, place: &Place, settings: &Settings) -> Result<Address, EngineError> {
        let (url, patience) = place.server()?;
        let usage = |why| EngineError::Usage(format!("target mysql: {why}"));
        // A throw-away server is reached with its own address only.
        let files = if place.is_throw_away() {
            Options::default()
        } else {
            Options::read(settings.text(FILES)).map_err(usage)?
        };
        let address = Address::parse(url, files).map_err(usage)?;
        Ok(Address { patience: patience.clone(), ..address })
    }

    fn open(at: &Address) -> Result<Connection, EngineError> {
        Connection::open(at)
    }

    fn claim(at: &Address, purpose: Purpose) -> Result<Option<Connection>, EngineError> {
        claim::take(at, purpose).map(Some)
    }

    fn session(held: &mut Connection) -> &mut Connection {
        held
    }

    fn find(session: &mut Connection, at: &Address) -> Result<Option<Marked>, EngineError> {
        server::Server::ask(session)?;
        marker::find(session, &at.database)
    }

    fn nothing(at: &Address) -> EngineError {
        nothing_here(&at.database)
    }

    fn plan(
        session: &mut Connection,
        at: &Address,
        settings: &Settings,
        schemas: u32,
    ) -> Result<plan::LoadPlan, EngineError> {
        plan::LoadPlan::new(session, &at.database, settings, schemas)
    }

    fn plan_lines(plan: &plan::LoadPlan) -> Vec<Line> {
        plan.lines()
    }

    fn load(
        at: &Address,
        plan: plan::LoadPlan,
        keeper: &mut Connection,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        load::run(at, plan, keeper, stop, progress)
    }

    fn check(
        at: &Address,
        found: &Marked,
        keeper: &mut Connection,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let findings = Job::<Self, _>::check(at, found, settings, ()).run(
            1,
            (|job| Self::open(&job.at), check::each),
            keeper,
            stop,
            progress,
        )?;
        Ok(findings.lines())
    }

    fn going(_: &mut Connection, at: &Address, found: &Marked) -> Result<Vec<Line>, EngineError> {
        Ok(found.going(text("database", "Database", at.database.clone()), "the database itself"))
    }

    fn remove(_: &Address, mut held: Connection, found: &Marked) -> Result<(), EngineError> {
        marker::drop_left_loops(&mut held)?;
        let mut run = |sql: &str| held.run(sql).map_err(told("removing the data set"));
        for n in found.loaded.union(&found.loading) {
            // If killed now, the next destroy or prepare finds the schema marked as unfinished.
            run(&marker::note_going(*n))?;
            marker::drop_schema(*n).iter().try_for_each(|sql| run(sql))?;
        }
        marker::drop_marker().iter().try_for_each(|sql| run(sql))
    }

    fn watch(at: &Address) -> Result<Box<dyn Watched>, EngineError> {
        let mut session = Self::open(at)?;
        let server = server::Server::ask(&mut session)?;
        let stats = stats::ServerStats::open(at, &server, Company::of(session.id(), None), false)?;
        // Nothing is claimed.
        stats.claim_ends();
        let version = format!("{} {}", server.product.name(), server.version);
        Ok(Live::boxed(&version, (server.page_bytes, server.pool_bytes), stats.facts(), move || stats.sample().0))
    }

    fn run(
        at: Address,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        engine::open(at, plan, settings, stop)
    }
}
