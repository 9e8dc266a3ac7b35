//! Order entry on MariaDB and MySQL: the life cycle of the data set, and runs on it.
//!
//! `ddl`, `statements` and `procedures` hold the SQL, `marker` checks who owns a database, `load` creates the data set,
//! `session` and `engine` run on it. Parts that are not specific to these servers are in `assay_orders` and
//! `crate::orders`.

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
use super::server::Server;
use super::{Mariadb, PAGE_BYTES, claim, params};
use crate::claim::Purpose;
use crate::orders::marker::tables;
use crate::orders::target::{Life, OrderEntryOn, There};
use crate::orders::{all, books, text_line};
use crate::slob::SlobOn;
use assay_measure::config::{ParamDef, Settings};
use assay_orders::checks::{Checked, Words};
use assay_orders::mix::ALL;
use assay_orders::model::{METADATA, SEQUENCES, VIEWS};
use assay_orders::params::{PARAMS, partitions};
use assay_run::engine::{EngineError, Line, Target};
use assay_run::stop::Stop;
use ddl::{Named, quote};
use load::within;
use std::sync::LazyLock;

static ALL_PARAMS: LazyLock<Vec<ParamDef>> = LazyLock::new(|| [params::PARAMS, PARAMS].concat());
/// Foreign keys of partitioned tables.
const NO_REFERENCES: &str = "none on partitioned tables or to them: this server does not support them";
/// Most characters of a database's name.
const NAME_CHARS: usize = 64;

/// Order entry on a MariaDB or MySQL server.
#[derive(Clone, Copy, Debug)]
pub struct MariadbOrders;

impl MariadbOrders {
    /// The target.
    pub const TARGET: &dyn Target = &OrderEntryOn::<Self>(Mariadb::SLOB);
}

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
    Ok(Named { database: database.to_owned() })
}

/// The server, if order entry supports it.
fn server_of(connection: &mut Connection) -> Result<Server, EngineError> {
    let server = Server::ask(connection)?;
    server.refuse_without_checks()?;
    Ok(server)
}

fn there(control: &mut Connection, names: &Named) -> Result<There<Named>, EngineError> {
    Ok(There {
        found: marker::find(control, names)?,
        names: names.clone(),
        schema: names.database.clone(),
        place: names.place(),
        block_bytes: PAGE_BYTES,
    })
}

impl Life for MariadbOrders {
    /// Each session waits for its answers in a thread of its own.
    const UNHEEDED: &'static [&'static str] = &["DRIVER_THREADS", "READ_MODE", "CHECK"];

    type Slob = SlobOn<Mariadb>;
    type At = (Address, Named);
    type Names = Named;
    type Claim = Connection;

    fn params() -> &'static [ParamDef] {
        &ALL_PARAMS
    }

    fn at(slob: &Self::Slob, location: &str, settings: &Settings, stop: &Stop) -> Result<Self::At, EngineError> {
        let (_, address) = slob.at(location, settings, stop)?;
        Ok((address, named(settings)?))
    }

    fn schema(settings: &Settings) -> Result<String, EngineError> {
        Ok(named(settings)?.database)
    }

    fn brief((address, _): &Self::At, what: &'static str) {
        address.patience.phase(what, Some(address.patience.brief()));
    }

    fn look((address, names): &Self::At) -> Result<There<Named>, EngineError> {
        let mut connection = Connection::open(address)?;
        server_of(&mut connection)?;
        there(&mut connection, names)
    }

    fn claim(at: &Self::At, purpose: Purpose) -> Result<(Connection, There<Named>), EngineError> {
        // The database may not exist, so check before connecting to it.
        Self::look(at)?.some()?;
        let (address, names) = at;
        let mut control = claim::take(&within(address, names), purpose)?;
        let there = there(&mut control, names)?;
        Ok((control, there))
    }

    fn plan_more(settings: &Settings) -> Result<Option<Line>, EngineError> {
        let line = || text_line("references", "references", NO_REFERENCES.to_owned());
        Ok((partitions(settings)? > 0).then(line))
    }

    fn check((address, _): &Self::At, _claim: Connection, names: &Named) -> Result<Vec<Checked>, EngineError> {
        let mut reader = Connection::open(&within(address, names))?;
        books::check(&mut reader, names)
    }

    /// Drops objects by name; drops the database if nothing else is in it.
    fn remove(_: &Self::At, mut control: Connection, there: &There<Named>) -> Result<(), EngineError> {
        let (control, names) = (&mut control, &there.names);
        let named = |all: &[&str]| {
            let all: Vec<String> = all.iter().map(|name| names.relation(name)).collect();
            all.join(", ")
        };
        // METADATA may carry the marker as its comment, so it is dropped with the database.
        let mut tables: Vec<&str> = tables().filter(|name| *name != METADATA).collect();
        let sequences = SEQUENCES.map(|(name, ..)| name);
        let mut sql = vec!["set foreign_key_checks = 0".to_owned(), format!("drop view if exists {}", named(&VIEWS))];
        if control.product.has_sequences() {
            sql.push(format!("drop sequence if exists {}", named(&sequences)));
        } else {
            tables.extend(sequences);
        }
        sql.push(format!("drop table if exists {}", named(&tables)));
        sql.extend(ALL.map(|tx| {
            let procedure = names.relation(&procedures::name(tx));
            format!("drop procedure if exists {procedure}")
        }));
        all(control, &sql, "removing the data set")?;
        // Others may have created objects there meanwhile.
        marker::find(control, names)?;
        let sql = format!("drop database {}", quote(&names.database));
        control.run(&sql).map_err(told("removing the database"))
    }

    fn failed((address, _): &Self::At, error: EngineError) -> EngineError {
        address.patience.failed(error)
    }
}
