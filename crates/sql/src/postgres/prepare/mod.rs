//! Making a data set: plan, load, marker.
//!
//! [`mod@plan`] decides and refuses before anything is created, [`load`] creates and loads with one connection a SLOB
//! schema at a time, [`batch`] makes the rows. The caller is the target's `prepare`.

mod batch;
mod load;
mod plan;
#[cfg(test)]
mod tests;

use super::claim::{self, Purpose};
use super::layout::Names;
use super::marker::{self, Found};
use super::own::{self, told};
use super::server::Server;
use super::wire::Connection;
use crate::place::Place;
use assay_measure::config::Settings;
use assay_run::engine::{DataSet, EngineError, Line, Progress};
use assay_run::stop::Stop;
pub(super) use load::{drop_schemas, in_transaction};
use plan::LoadPlan;

/// The data set that is there, if any.
///
/// # Errors
/// No server, or one of no use; a PostgreSQL schema that is not ours.
pub(super) fn find(place: &Place, settings: &Settings) -> Result<Option<DataSet>, EngineError> {
    let names = Names::new(settings)?;
    let mut connection = connect(place)?;
    Server::ask(&mut connection)?;
    let found = marker::find(&mut connection, &names);
    connection.close();
    Ok(match found? {
        Found::Ours(ours) => ours.marked.data_set(),
        Found::Nothing | Found::Empty(_) => None,
    })
}

/// What [`prepare`] would do.
///
/// # Errors
/// Everything that would keep [`prepare`] from doing it, as far as it can be known before.
pub(super) fn plan(place: &Place, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    if let Place::Temporary { version, .. } = place {
        return plan::imagined(version.as_deref(), settings, schemas);
    }
    let mut connection = connect(place)?;
    let plan = LoadPlan::new(&mut connection, settings, schemas);
    connection.close();
    Ok(plan?.lines())
}

/// Loads and verifies.
///
/// # Errors
/// As [`plan()`]; the server's; `Interrupted`. What was loaded to the end stays, what was not is rolled back.
pub(super) fn prepare(
    place: &Place,
    settings: &Settings,
    schemas: u32,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let options = own::options(place)?;
    let mut keeper = claim::take(&options, &Names::new(settings)?, Purpose::Prepare)?;
    let plan = LoadPlan::new(&mut keeper, settings, schemas)?;
    let lines = load::run(&plan, &options, &mut keeper, stop, progress);
    keeper.close();
    lines
}

/// A connection of our own, besides those of the work.
pub(super) fn connect(place: &Place) -> Result<Connection, EngineError> {
    let options = own::options(place)?;
    own::connect(&options).map_err(told("connecting"))
}
