//! MariaDB 10.6 to 11.8 and MySQL 8.0 to 9.7 as a target: `mysql://user[:password]@host[:port]/db`, `temp:mariadb[:VERSION]`,
//! `temp:mysql[:VERSION]`.
//!
//! `address` says where and who, `dial` and `login` lead there, `conn` speaks the protocol of `wire`, `temp` starts a throw-away server; `layout`
//! says what a data set is made of, `marker` what is there, `claim` who may work on it at once; `plan`, `load` and
//! `check` make and verify it, while `guard` looks after them; `engine` runs sessions on it, `attached` is what every run has beside
//! its sessions, `stats` reads the server's counters; `orders` is order entry. `README.md` beside
//! this file lists privileges, versions, what is written, and what is not there yet.

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
mod guard;
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

use crate::checked::{Findings, Level};
use crate::claim::Purpose;
use crate::place::{LOOK, Place};
use address::Address;
use assay_measure::config::{ParamDef, Settings};
use assay_measure::plain::is_unprintable;
use assay_run::dataset::lines::text;
use assay_run::engine::{Engine, EngineError, Line, Presence, Progress, Started, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use conn::told;
use files::Options;
use guard::{Guard, TICK, Waiting};
use marker::{Found, Marked};
use product::Product;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The parameter that says how long an answer may take.
const PATIENCE: &str = "MYSQL_ANSWER_TIMEOUT";
/// The parameter that names a file of options.
const FILES: &str = "MYSQL_DEFAULTS_FILE";
/// The page of a stock server.
const PAGE_BYTES: u64 = 16384;

/// `mysql://user@host:port/db`.
#[derive(Clone, Copy, Debug)]
pub struct Mariadb;

/// What others wrote, on one line that does nothing to a terminal.
fn on_one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control() || is_unprintable(c), " ")
}

/// Where a location leads, with an ear for this request to stop.
fn place_of(location: &str, settings: &Settings, stop: &Stop) -> Result<Place, EngineError> {
    Ok(Place::new(location)?.patient(settings, PATIENCE, stop))
}

fn address_of(place: &Place, settings: &Settings) -> Result<Address, EngineError> {
    let (url, patience) = place.server()?;
    let usage = |why| EngineError::Usage(format!("target mysql: {why}"));
    // A server of one's own is reached as it was started.
    let files =
        if place.is_throw_away() { Options::default() } else { Options::read(settings.text(FILES)).map_err(usage)? };
    let address = Address::parse(url, files).map_err(usage)?;
    Ok(Address { patience: patience.clone(), ..address })
}

fn nothing_here(database: &str) -> EngineError {
    EngineError::Unusable(format!("there is no data set in database {database}; run `assay prepare` first"))
}

/// The data set of a database; an error where there is none.
fn ours(connection: &mut conn::Connection, database: &str) -> Result<Marked, EngineError> {
    match marker::find(connection, database)? {
        Found::Ours(marked) => Ok(*marked),
        Found::Nothing => Err(nothing_here(database)),
    }
}

/// What is read of a data set that this command has not claimed.
fn settled<T>(address: &Address, find: impl FnMut() -> Result<T, EngineError>) -> Result<T, EngineError> {
    crate::claim::settled(find, || claim::take(address, Purpose::Series).map(Some))
}

impl Target for Mariadb {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn form(&self) -> &'static str {
        "mysql://USER@HOST:PORT/DB"
    }

    fn params(&self) -> &'static [ParamDef] {
        params::PARAMS
    }

    fn temporary(&self) -> &'static [&'static str] {
        &[temp::MARIADB.temp, temp::MYSQL.temp]
    }

    fn server_params(&self) -> &'static [&'static str] {
        &["MYSQL_SET", "MYSQL_BIN", "MYSQL_DIR"]
    }

    fn start(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Option<Started>, EngineError> {
        match Place::new(location)? {
            Place::Temporary { name, version } => {
                let product = Product::named(&name);
                temp::start(product, version.as_deref(), settings, stop, progress).map(Some)
            }
            Place::Server { .. } => {
                for (name, unsaid) in [("MYSQL_SET", ""), ("COMMIT_MODE", "default")] {
                    let given = settings.text(name);
                    if given != unsaid {
                        return Err(EngineError::Usage(format!(
                            "{name}={given}: applies only to a throw-away server (temp:mariadb, temp:mysql); this server already has its settings"
                        )));
                    }
                }
                Ok(None)
            }
        }
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let place = place_of(location, settings, &Stop::of_process())?;
        if let Place::Temporary { .. } = place {
            return Ok(Presence::Absent { harmless: true });
        }
        let address = address_of(place.brief(LOOK), settings)?;
        let mut connection = conn::Connection::open(&address)?;
        server::Server::ask(&mut connection)?;
        let found = settled(&address, || marker::find(&mut connection, &address.database))?;
        let found = match found {
            Found::Ours(marked) => marked.data_set(),
            Found::Nothing => None,
        };
        Ok(place.presence(found))
    }

    fn plan_prepare(&self, location: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
        let place = place_of(location, settings, &Stop::of_process())?;
        if let Place::Temporary { name, version } = &place {
            let mut lines = temp::plan(Product::named(name), version.as_deref(), settings)?;
            lines.extend(plan::imagined(settings, schemas)?);
            return Ok(lines);
        }
        let address = address_of(place.brief(LOOK), settings)?;
        let mut connection = conn::Connection::open(&address)?;
        let plan = settled(&address, || plan::LoadPlan::new(&mut connection, &address.database, settings, schemas))?;
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
        let place = place_of(location, settings, stop)?;
        let address = address_of(&place, settings)?;
        let prepare = || {
            let mut keeper = claim::take(&address, Purpose::Prepare)?;
            let plan = plan::LoadPlan::new(&mut keeper, &address.database, settings, schemas)?;
            load::run(&plan, &address, &mut keeper, stop, progress)
        };
        prepare().map_err(|error| place.failed(error))
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let place = place_of(location, settings, stop)?;
        let address = address_of(&place, settings)?;
        let level = Level::asked(settings);
        let check = || {
            let mut keeper = claim::take(&address, Purpose::Check)?;
            server::Server::ask(&mut keeper)?;
            let marked = ours(&mut keeper, &address.database)?;
            verify(&address, &mut keeper, &marked, level, stop, progress).map(|findings| (findings, marked))
        };
        let (findings, marked) = check().map_err(|error| place.failed(error))?;
        let mut lines = check::lines(&findings);
        if !marked.foreign.is_empty() {
            let others = marked.foreign.join(", ");
            lines.push(text("foreign", "Not of this data set", others));
        }
        Ok(lines)
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let address = address_of(place_of(location, settings, &Stop::of_process())?.brief(LOOK), settings)?;
        let mut connection = conn::Connection::open(&address)?;
        let marked = settled(&address, || ours(&mut connection, &address.database))?;
        Ok(going(&address, &marked))
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let address = address_of(&place_of(location, settings, &Stop::of_process())?, settings)?;
        let mut keeper = claim::take(&address, Purpose::Destroy)?;
        let marked = ours(&mut keeper, &address.database)?;
        marker::drop_left_loops(&mut keeper)?;
        let mut run = |sql: &str| keeper.run(sql).map_err(told("removing the data set"));
        for n in marked.loaded.union(&marked.loading) {
            // Whoever is killed now leaves what the next destroy or prepare knows as unfinished.
            run(&marker::note_going(*n))?;
            for sql in marker::drop_schema(*n) {
                run(&sql)?;
            }
        }
        for sql in marker::drop_marker() {
            run(&sql)?;
        }
        Ok(going(&address, &marked))
    }

    fn share(&self, location: &str, settings: &Settings) -> Result<Option<Box<dyn Send>>, EngineError> {
        let address = address_of(place_of(location, settings, &Stop::of_process())?.brief(LOOK), settings)?;
        let claimed = claim::take(&address, Purpose::Series)?;
        // It lasts as long as the series.
        address.patience.phase(LOOK, None);
        Ok(Some(Box::new(claimed)))
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let place = place_of(location, settings, stop)?;
        let address = address_of(place.brief("the set-up of the run"), settings)?;
        engine::open(address, plan, settings, stop).map_err(|error| place.failed(error))
    }
}

/// Verifies every loaded schema; reading a large table takes as long as it takes.
fn verify(
    address: &Address,
    keeper: &mut conn::Connection,
    marked: &Marked,
    level: Level,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Findings, EngineError> {
    let mut reader = conn::Connection::open(address)?;
    let waiting = Waiting::default();
    waiting.add(&reader);
    let marker = &marked.marker;
    let each = (marker.scale + marker.scan_blocks) * marker.block_bytes;
    let total = each * marked.loaded.len() as u64;
    let (done, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut read = || {
        let mut findings = Findings::default();
        for n in &marked.loaded {
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
            findings.merge(&check::schema(&mut reader, marker, *n, level)?);
            done.fetch_add(each, Ordering::Relaxed);
        }
        Ok(findings)
    };
    progress.update("check", 0, total);
    let verified = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let read = read();
            ended.store(true, Ordering::Release);
            read
        });
        let mut guard = Guard::new(keeper);
        while !ended.load(Ordering::Acquire) && !reading.is_finished() {
            progress.update("check", done.load(Ordering::Relaxed), total);
            std::thread::sleep(TICK / 10);
            if stop.requested() {
                guard.end(&waiting);
            }
        }
        reading.join()
    });
    match verified {
        Ok(Err(_)) if stop.requested() => Err(EngineError::Interrupted),
        Ok(verified) => verified,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// What goes with a data set, and what stays.
fn going(address: &Address, marked: &Marked) -> Vec<Line> {
    let place = text("database", "Database", address.database.clone());
    marked.going(place, "the database itself")
}
