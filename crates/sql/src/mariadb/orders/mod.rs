//! Order entry on MariaDB and MySQL: the data set's life, and what a run performs on it.
//!
//! `ddl`, `statements` and `procedures` are its words, `marker` says whose a database is, `load` makes the data set, `session` and `engine`
//! run it. What is not theirs is in `assay_orders` and in `crate::orders`.

mod ddl;
mod engine;
mod load;
mod marker;
mod procedures;
mod session;
mod statements;
#[cfg(test)]
mod tests;

use super::address::Address;
use super::conn::{Connection, told};
use super::load::connect;
use super::server::Server;
use super::{Mariadb, PAGE_BYTES, address_of, claim, params};
use crate::claim::Purpose;
use crate::orders::marker::{Marker, relations};
use crate::orders::{all, already, books, checked_lines, nothing, removed, text_line};
use crate::place::Place;
use assay_measure::config::{ParamDef, Settings};
use assay_orders::checks::Words;
use assay_orders::mix::ALL;
use assay_orders::model::{METADATA, SEQUENCES, VIEWS};
use assay_orders::params::{PARAMS, heeds, partitions};
use assay_orders::workload::{NAME, OPERATIONS, OrderEntry};
use assay_run::engine::{DataSet, Engine, EngineError, Line, Presence, Progress, Started, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use ddl::{Named, quote};
use load::within;
use std::sync::LazyLock;

static ALL_PARAMS: LazyLock<Vec<ParamDef>> = LazyLock::new(|| [params::PARAMS, PARAMS].concat());
/// What partitions cost here.
const NO_REFERENCES: &str = "none on tables with partitions or to them: this server has no such";
/// Characters of a database's name at most.
const NAME_CHARS: usize = 64;

/// Order entry on a server of MariaDB or MySQL.
#[derive(Clone, Copy, Debug)]
pub struct MariadbOrders;

fn named(settings: &Settings) -> Result<Named, EngineError> {
    partitions(settings)?;
    let database = settings.text("ORDERS_SCHEMA");
    let servers = ["mysql", "information_schema", "performance_schema", "sys"];
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if database.is_empty()
        || database.len() > NAME_CHARS
        || !database.chars().all(plain)
        || servers.contains(&database.to_ascii_lowercase().as_str())
    {
        return Err(EngineError::Usage(format!(
            "ORDERS_SCHEMA={database}: give the name of a database that assay may create, of letters, digits, _ and $, at \
             most {NAME_CHARS}"
        )));
    }
    Ok(Named {
        database: database.to_owned(),
    })
}

/// The address of a place, and the names there.
fn at(location: &str, settings: &Settings) -> Result<(Address, Named), EngineError> {
    let place = Place::new(location)?;
    Ok((address_of(&place, settings)?, named(settings)?))
}

/// The server, if order entry knows it.
fn server_of(connection: &mut Connection) -> Result<Server, EngineError> {
    let server = Server::ask(connection)?;
    server.refuse_without_checks()?;
    Ok(server)
}

/// The data set of a place, or `None`.
fn find(address: &Address, names: &Named) -> Result<Option<Marker>, EngineError> {
    let mut connection = connect(address)?;
    server_of(&mut connection)?;
    marker::find(&mut connection, names)
}

/// Claims the data set of a place.
fn claimed(
    address: &Address,
    names: &Named,
    purpose: Purpose,
) -> Result<(Connection, Marker), EngineError> {
    find(address, names)?.ok_or_else(|| nothing(&names.place()))?;
    let mut control = claim::take(&within(address, names), purpose)?;
    let found = marker::find(&mut control, names)?;
    Ok((control, found.ok_or_else(|| nothing(&names.place()))?))
}

impl Target for MariadbOrders {
    fn name(&self) -> &'static str {
        Mariadb.name()
    }

    fn about(&self) -> &'static str {
        "order entry on a server of MariaDB (10.6 to 11.8) or MySQL (8.0 to 9.7)"
    }

    fn form(&self) -> &'static str {
        Mariadb.form()
    }

    fn params(&self) -> &'static [ParamDef] {
        &ALL_PARAMS
    }

    fn workload(&self) -> &'static str {
        NAME
    }

    fn operations(&self) -> &'static str {
        OPERATIONS
    }

    fn heeds(&self, name: &str) -> bool {
        // Each session waits for its answers in a thread of its own.
        name != "DRIVER_THREADS" && heeds(name, params::PARAMS)
    }

    fn shape(&self, settings: &Settings, plan: &mut Plan) -> Result<(), EngineError> {
        OrderEntry::shape(settings, plan)
    }

    fn temporary(&self) -> &'static [&'static str] {
        Mariadb.temporary()
    }

    fn server_params(&self) -> &'static [&'static str] {
        Mariadb.server_params()
    }

    fn start(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Option<Started>, EngineError> {
        Mariadb.start(location, settings, stop, progress)
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let place = Place::new(location)?;
        if let Place::Temporary { .. } = place {
            return Ok(Presence::Absent { harmless: true });
        }
        let (address, names) = at(location, settings)?;
        let found = find(&address, &names)?.filter(|found| found.complete);
        Ok(match found {
            None => Presence::Absent {
                harmless: place.is_throw_away(),
            },
            Some(found) => Presence::Present(DataSet {
                schemas: 1,
                scale_blocks: found.generator().counts().customers,
                scan_blocks: 0,
                block_bytes: PAGE_BYTES,
                state: format!("order entry, scale {}, seed {}", found.scale(), found.seed),
                unfinished: None,
            }),
        })
    }

    fn refuse_again(&self, location: &str, settings: &Settings) -> Option<EngineError> {
        let (address, names) = at(location, settings).ok()?;
        let found = find(&address, &names).ok()??;
        Some(already(&names.place(), &found))
    }

    fn plan_prepare(
        &self,
        location: &str,
        settings: &Settings,
        _schemas: u32,
    ) -> Result<Vec<Line>, EngineError> {
        let names = named(settings)?;
        let found = match Place::new(location)? {
            Place::Temporary { .. } => None,
            Place::Server { .. } => find(&at(location, settings)?.0, &names)?,
        };
        let mut lines = crate::orders::load::plan(found, &names.database, settings)?;
        if partitions(settings)? > 0 {
            lines.push(text_line(
                "references",
                "references",
                NO_REFERENCES.to_owned(),
            ));
        }
        Ok(lines)
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        _schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let (address, names) = at(location, settings)?;
        load::prepare(&address, &names, settings, stop, progress)
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        _stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let (address, names) = at(location, settings)?;
        let (_claim, found) = claimed(&address, &names, Purpose::Check)?;
        // It takes as long as it takes.
        let mut reader = Connection::open(&within(&address, &names), None)?;
        checked_lines(&names.place(), &found, books::check(&mut reader, &names)?)
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let (address, names) = at(location, settings)?;
        let found = find(&address, &names)?.ok_or_else(|| nothing(&names.place()))?;
        Ok(removed(&names.database, &found))
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let (address, names) = at(location, settings)?;
        let (mut control, found) = claimed(&address, &names, Purpose::Destroy)?;
        destroy(&mut control, &names)?;
        Ok(removed(&names.database, &found))
    }

    fn share(
        &self,
        location: &str,
        settings: &Settings,
    ) -> Result<Option<Box<dyn Send>>, EngineError> {
        let (address, names) = at(location, settings)?;
        let (claim, found) = claimed(&address, &names, Purpose::Series)?;
        Marker::complete(Some(found), &names.place(), settings)?;
        Ok(Some(Box::new(claim)))
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let (address, names) = at(location, settings)?;
        Ok(Box::new(engine::open(
            &address, names, plan, settings, stop,
        )?))
    }
}

/// Removes what a data set is made of, by name, and its database where nothing else is in it.
fn destroy(control: &mut Connection, names: &Named) -> Result<(), EngineError> {
    let mut sequences = SEQUENCES.map(|(name, ..)| name).to_vec();
    if !control.product.has_sequences() {
        sequences.clear();
    }
    let named = |all: &[&str]| {
        let all: Vec<String> = all.iter().map(|name| names.relation(name)).collect();
        all.join(", ")
    };
    // The marker may be the comment on METADATA, which goes with the database.
    let tables: Vec<&str> = relations()
        .into_iter()
        .filter(|name| !sequences.contains(name) && !VIEWS.contains(name) && *name != METADATA)
        .collect();
    let mut sql = vec![
        "set foreign_key_checks = 0".to_owned(),
        format!("drop view if exists {}", named(&VIEWS)),
        format!("drop table if exists {}", named(&tables)),
    ];
    if !sequences.is_empty() {
        sql.push(format!("drop sequence if exists {}", named(&sequences)));
    }
    sql.extend(ALL.map(|tx| {
        let procedure = names.relation(&procedures::name(tx));
        format!("drop procedure if exists {procedure}")
    }));
    all(control, &sql, "removing the data set")?;
    // Somebody may have put something there meanwhile.
    marker::find(control, names)?;
    let sql = format!("drop database {}", quote(&names.database));
    control.run(&sql).map_err(told("removing the database"))
}
