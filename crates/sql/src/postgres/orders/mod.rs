//! Order entry on PostgreSQL: the life cycle of the data set, and runs on it.
//!
//! `ddl` and `functions` hold the SQL, `marker` checks who owns a schema, `load` creates the data set, `session` and
//! `engine` run on it. Parts that are not specific to PostgreSQL are in `assay_orders` and `crate::orders`.

mod ddl;
mod engine;
mod functions;
mod load;
mod marker;
mod session;
#[cfg(test)]
mod tests;

use super::claim::{self, Purpose};
use super::layout::{Names, quote};
use super::own::{self, connect, told};
use super::server::Server;
use super::wire::Connection;
use super::{PATIENCE, Postgres, params};
use crate::orders::marker::tables;
use crate::orders::target::{Life, OrderEntryOn, There};
use crate::orders::{all, books};
use crate::place::Place;
use crate::slob::SlobOn;
use assay_measure::config::{ParamDef, Settings};
use assay_orders::checks::Checked;
use assay_orders::model::{SEQUENCES, VIEWS};
use assay_orders::params::{PARAMS, partitions};
use assay_run::engine::{EngineError, Target};
use assay_run::stop::Stop;
use ddl::Named;
use std::sync::LazyLock;

static ALL_PARAMS: LazyLock<Vec<ParamDef>> = LazyLock::new(|| [params::PARAMS, PARAMS].concat());

/// Memory for the sorts and hashes of the checks.
const CHECK_MEMORY: &str = "set work_mem = '256MB'; set jit = off";

/// Order entry on a PostgreSQL server.
#[derive(Clone, Copy, Debug)]
pub struct PostgresOrders;

impl PostgresOrders {
    /// The target.
    pub const TARGET: &dyn Target = &OrderEntryOn::<Self>(Postgres::SLOB);
}

fn named(settings: &Settings) -> Result<Named, EngineError> {
    partitions(settings)?;
    let schema = settings.text("ORDERS_SCHEMA");
    Names::of_schema(schema).map_err(|_| {
        EngineError::Usage(format!(
            "ORDERS_SCHEMA={schema}: give the name of a schema that assay may create, of at most 63 bytes"
        ))
    })?;
    Ok(Named { schema: schema.to_owned(), tablespace: settings.text("TABLESPACE").to_owned() })
}

fn there(control: &mut Connection, names: &Named) -> Result<There<Named>, EngineError> {
    Ok(There {
        found: marker::find(control, names)?,
        names: names.clone(),
        schema: names.schema.clone(),
        place: names.place(),
        block_bytes: 8192,
    })
}

impl Life for PostgresOrders {
    const UNHEEDED: &'static [&'static str] = &["READ_MODE", "IO_DEPTH", "PG_SCHEMA", "AUTOVACUUM", "CHECK"];

    type Slob = SlobOn<Postgres>;
    type At = (Place, Named);
    type Names = Named;
    type Claim = Connection;

    fn params() -> &'static [ParamDef] {
        &ALL_PARAMS
    }

    fn at(_: &Self::Slob, location: &str, settings: &Settings, stop: &Stop) -> Result<Self::At, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, stop);
        Ok((place, named(settings)?))
    }

    fn schema(settings: &Settings) -> Result<String, EngineError> {
        Ok(named(settings)?.schema)
    }

    fn brief((place, _): &Self::At, what: &'static str) {
        place.brief(what);
    }

    fn look((place, names): &Self::At) -> Result<There<Named>, EngineError> {
        let mut connection = connect(&own::options(place)?).map_err(told("connecting"))?;
        Server::ask(&mut connection)?;
        let there = there(&mut connection, names);
        connection.close();
        there
    }

    fn claim((place, names): &Self::At, purpose: Purpose) -> Result<(Connection, There<Named>), EngineError> {
        let claimed = Names::of_schema(&names.schema)?;
        let mut control = claim::take(&own::options(place)?, &claimed, purpose)?;
        let there = there(&mut control, names)?;
        Ok((control, there))
    }

    fn check(_: &Self::At, mut control: Connection, names: &Named) -> Result<Vec<Checked>, EngineError> {
        control.query(CHECK_MEMORY).map_err(told("checking"))?;
        let checked = books::check(&mut control, names)?;
        control.close();
        Ok(checked)
    }

    fn remove(_: &Self::At, mut control: Connection, there: &There<Named>) -> Result<(), EngineError> {
        let names = &there.names;
        let mut sql = vec!["begin".to_owned()];
        let mut drop = |what: &str, name: &str| sql.push(format!("drop {what} if exists {}", names.relation(name)));
        marker::functions().iter().for_each(|name| drop("routine", name));
        VIEWS.iter().for_each(|name| drop("view", name));
        SEQUENCES.iter().for_each(|(name, ..)| drop("sequence", name));
        // In one statement, since the tables reference each other.
        let tables: Vec<String> = tables().map(|name| names.relation(name)).collect();
        sql.push(format!("drop table if exists {}", tables.join(", ")));
        sql.push(format!("drop schema {}", quote(&names.schema)));
        sql.push("commit".to_owned());
        all(&mut control, &sql, "removing the data set")?;
        control.close();
        Ok(())
    }

    fn failed((place, _): &Self::At, error: EngineError) -> EngineError {
        place.failed(error)
    }
}
