//! Whose a database is: order entry's data set, or somebody else's that is never touched. The marker is the comment on the
//! database.

use super::ddl::{Named, quote};
use super::procedures;
use crate::mariadb::conn::{Connection, told};
use crate::mariadb::layout::literal;
use crate::orders::marker::{ANOTHER, Marker, relations};
use crate::orders::refuse_strangers;
use assay_orders::mix::ALL;
use assay_run::engine::EngineError;

/// The comment of a marker, as text that the server parses: no hexadecimal literal may stand there.
fn comment(marker: &Marker) -> String {
    format!(
        "'{}'",
        marker.json().replace('\\', "\\\\").replace('\'', "''")
    )
}

/// Creates the database with its marker: nobody's that is there is taken.
pub(super) fn create_sql(marker: &Marker, names: &Named) -> String {
    format!(
        "create database {} character set latin1 comment = {}",
        quote(&names.database),
        comment(marker)
    )
}

/// Changes the marker.
pub(super) fn write_sql(marker: &Marker, names: &Named) -> String {
    format!(
        "alter database {} comment = {}",
        quote(&names.database),
        comment(marker)
    )
}

/// The data set of a database; `None` where there is no such database.
///
/// # Errors
/// `Unusable`: the database is not ours to touch.
pub(super) fn find(
    connection: &mut Connection,
    names: &Named,
) -> Result<Option<Marker>, EngineError> {
    let name = literal(&names.database);
    let rows = connection
        .rows(&format!(
            "select schema_comment from information_schema.schemata where schema_name = {name}"
        ))
        .map_err(told("looking for the data set"))?;
    let Some(row) = rows.into_iter().next() else {
        return Ok(None);
    };
    let comment = row.into_iter().next().flatten().unwrap_or_default();
    let marker = Marker::read(&comment, &names.place(), ANOTHER)?;
    let ours: Vec<String> = relations().into_iter().map(literal).collect();
    let procedures = ALL.map(|tx| literal(&procedures::name(tx))).join(", ");
    let strange = connection
        .rows(&format!(
            "select table_name from information_schema.tables where table_schema = {name} and table_name not in ({}) \
             union all select concat(routine_name, '()') from information_schema.routines where routine_schema = {name} and routine_name not in ({procedures}) \
             union all select concat(trigger_name, ' (trigger)') from information_schema.triggers where trigger_schema = {name} \
             union all select concat(event_name, ' (event)') from information_schema.events where event_schema = {name}",
            ours.join(", ")
        ))
        .map_err(told("looking at the data set"))?;
    refuse_strangers(&names.place(), strange)?;
    Ok(Some(marker))
}
