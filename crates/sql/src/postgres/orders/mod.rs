//! Order entry on PostgreSQL: the data set's life, and what a run performs on it.
//!
//! `ddl` and `functions` are its words, `marker` says whose a schema is, `load` makes it, `session` and `engine` run it,
//! What is not PostgreSQL's is in `assay_orders` and in `crate::orders`.

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
use super::{PATIENCE, Postgres, params};
use crate::orders::marker::{Marker, relations};
use crate::orders::{all, already, books, checked_lines, nothing, removed};
use crate::place::Place;
use assay_measure::config::{ParamDef, Settings};
use assay_orders::params::{PARAMS, heeds, partitions};
use assay_orders::workload::{NAME, OPERATIONS, OrderEntry};
use assay_run::engine::{DataSet, Engine, EngineError, Line, Presence, Progress, Started, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use ddl::Named;
use std::sync::LazyLock;

static ALL_PARAMS: LazyLock<Vec<ParamDef>> = LazyLock::new(|| [params::PARAMS, PARAMS].concat());

/// Memory for the sorts and hashes of the checks.
const CHECK_MEMORY: &str = "set work_mem = '256MB'; set jit = off";

/// Order entry on a PostgreSQL server.
#[derive(Clone, Copy, Debug)]
pub struct PostgresOrders;

fn named(settings: &Settings) -> Result<Named, EngineError> {
    partitions(settings)?;
    let schema = settings.text("ORDERS_SCHEMA");
    Names::of_schema(schema).map_err(|_| {
        EngineError::Usage(format!(
            "ORDERS_SCHEMA={schema}: give the name of a schema that assay may create, of at most 63 bytes"
        ))
    })?;
    Ok(Named {
        schema: schema.to_owned(),
    })
}

/// The data set of a place, or `None`.
fn find(place: &Place, names: &Named) -> Result<Option<Marker>, EngineError> {
    let mut connection = connect(&own::options(place)?).map_err(told("connecting"))?;
    Server::ask(&mut connection)?;
    let found = marker::find(&mut connection, names);
    connection.close();
    found
}

impl Target for PostgresOrders {
    fn name(&self) -> &'static str {
        Postgres.name()
    }

    fn about(&self) -> &'static str {
        "order entry on a PostgreSQL server, 13 to 18"
    }

    fn form(&self) -> &'static str {
        Postgres.form()
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
        heeds(name, params::PARAMS)
    }

    fn shape(&self, settings: &Settings, plan: &mut Plan) -> Result<(), EngineError> {
        OrderEntry::shape(settings, plan)
    }

    fn temporary(&self) -> &'static [&'static str] {
        Postgres.temporary()
    }

    fn server_params(&self) -> &'static [&'static str] {
        Postgres.server_params()
    }

    fn start(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Option<Started>, EngineError> {
        Postgres.start(location, settings, stop, progress)
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::new());
        let absent = Presence::Absent {
            harmless: place.is_throw_away(),
        };
        if let Place::Temporary { .. } = place {
            return Ok(Presence::Absent { harmless: true });
        }
        let found = find(&place, &named(settings)?)?.filter(|found| found.complete);
        Ok(found.map_or(absent, |found| {
            Presence::Present(DataSet {
                schemas: 1,
                scale_blocks: found.generator().counts().customers,
                scan_blocks: 0,
                block_bytes: 8192,
                state: format!("order entry, scale {}, seed {}", found.scale(), found.seed),
                unfinished: None,
            })
        }))
    }

    fn refuse_again(&self, location: &str, settings: &Settings) -> Option<EngineError> {
        let place = Place::new(location)
            .ok()?
            .patient(settings, PATIENCE, &Stop::new());
        let names = named(settings).ok()?;
        let found = find(&place, &names).ok()??;
        Some(already(&names.place(), &found))
    }

    fn plan_prepare(
        &self,
        location: &str,
        settings: &Settings,
        _schemas: u32,
    ) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::new());
        let names = named(settings)?;
        let found = match &place {
            Place::Temporary { .. } => None,
            Place::Server { .. } => find(&place, &names)?,
        };
        crate::orders::load::plan(found, &names.schema, settings)
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        _schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, stop);
        let names = named(settings)?;
        own::options(&place)
            .and_then(|options| load::prepare(&options, &names, settings, stop, progress))
            .map_err(|error| place.failed(error))
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, stop);
        check(&place, settings).map_err(|error| place.failed(error))
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::new());
        let names = named(settings)?;
        let found = find(&place, &names)?.ok_or_else(|| nothing(&names.place()))?;
        Ok(removed(&names.schema, &found))
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let place = Place::new(location)?.patient(settings, PATIENCE, &Stop::new());
        destroy(&place, settings).map_err(|error| place.failed(error))
    }

    fn share(
        &self,
        location: &str,
        settings: &Settings,
    ) -> Result<Option<Box<dyn Send>>, EngineError> {
        let options = own::options(&Place::new(location)?)?;
        let names = named(settings)?;
        let claim = Names::of_schema(&names.schema)?;
        let mut claimed = claim::take(&options, &claim, Purpose::Series)?;
        let place = format!("schema {}", names.schema);
        Marker::complete(marker::find(&mut claimed, &names)?, &place, settings)?;
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
        let place = Place::new(location)?.patient(settings, PATIENCE, stop);
        let opened =
            engine::open(&place, plan, settings, stop).map_err(|error| place.failed(error))?;
        Ok(Box::new(opened))
    }
}

/// The consistency of the data set, and of tables that nothing changes the very content.
fn check(place: &Place, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    let names = named(settings)?;
    let options = own::options(place)?;
    let mut control = claim::take(&options, &Names::of_schema(&names.schema)?, Purpose::Check)?;
    let found = marker::find(&mut control, &names)?.ok_or_else(|| nothing(&names.place()))?;
    control.query(CHECK_MEMORY).map_err(told("checking"))?;
    let checked = books::check(&mut control, &names)?;
    control.close();
    checked_lines(&names.place(), &found, checked)
}

/// Removes what a data set is made of, by name, and its schema.
fn destroy(place: &Place, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    let names = named(settings)?;
    let options = own::options(place)?;
    let mut control = claim::take(
        &options,
        &Names::of_schema(&names.schema)?,
        Purpose::Destroy,
    )?;
    let found = marker::find(&mut control, &names)?.ok_or_else(|| nothing(&names.place()))?;
    let mut sql = vec!["begin".to_owned()];
    sql.extend(
        marker::functions()
            .iter()
            .map(|name| format!("drop routine if exists {}", names.relation(name))),
    );
    sql.extend(
        assay_orders::model::VIEWS
            .iter()
            .map(|name| format!("drop view if exists {}", names.relation(name))),
    );
    let sequences: Vec<&str> = assay_orders::model::SEQUENCES
        .iter()
        .map(|(name, ..)| *name)
        .collect();
    sql.extend(
        sequences
            .iter()
            .map(|name| format!("drop sequence if exists {}", names.relation(name))),
    );
    let tables: Vec<String> = relations()
        .into_iter()
        .filter(|name| !sequences.contains(name) && !assay_orders::model::VIEWS.contains(name))
        .map(|name| names.relation(name))
        .collect();
    // Together: they refer to each other.
    sql.push(format!("drop table if exists {}", tables.join(", ")));
    sql.push(format!("drop schema {}", quote(&names.schema)));
    sql.push("commit".to_owned());
    all(&mut control, &sql, "removing the data set")?;
    control.close();
    Ok(removed(&names.schema, &found))
}
