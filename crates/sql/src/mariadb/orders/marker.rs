//! Whether a database holds order entry's data set or belongs to somebody else; assay never touches the latter. The
//! marker is the comment on the database, or, where databases have none, on the table of what the data set says of
//! itself.

use super::ddl::{self, Named, quote};
use super::procedures;
use crate::mariadb::conn::{Connection, told};
use crate::mariadb::layout::literal;
use crate::mariadb::product::Product;
use crate::orders::marker::{ANOTHER, Marker, relations};
use crate::orders::refuse_strangers;
use assay_orders::checks::Words;
use assay_orders::mix::ALL;
use assay_orders::model::METADATA;
use assay_run::engine::EngineError;

/// The comment of a marker, as text that the server parses: no hexadecimal literal may stand there.
fn comment(marker: &Marker) -> String {
    format!("'{}'", marker.json().replace('\\', "\\\\").replace('\'', "''"))
}

/// Creates the database with its marker: nobody's that is there is taken, unless it is empty and could not be told from
/// what a prepare that was killed left.
pub(super) fn create_sql(marker: &Marker, names: &Named, product: Product) -> Vec<String> {
    let (database, comment) = (quote(&names.database), comment(marker));
    if product.comments_databases() {
        vec![format!("create database {database} character set latin1 comment = {comment}")]
    } else {
        vec![
            format!("create database if not exists {database} character set latin1"),
            format!("{} comment = {comment}", ddl::create_metadata(names)),
        ]
    }
}

/// Changes the marker.
pub(super) fn write_sql(marker: &Marker, names: &Named, product: Product) -> String {
    let of = if product.comments_databases() {
        format!("database {}", quote(&names.database))
    } else {
        format!("table {}", names.relation(METADATA))
    };
    format!("alter {of} comment = {}", comment(marker))
}

/// The query for the comment of a marker: no row where there is no database, or none that holds anything.
fn comment_sql(database: &str, product: Product) -> String {
    if product.comments_databases() {
        format!("select schema_comment from information_schema.schemata where schema_name = {database}")
    } else {
        format!(
            "select max(if(name = '{METADATA}', said, '')) from (select table_name as name, table_comment as said from \
             information_schema.tables where table_schema = {database} union all select '', '' from \
             information_schema.routines where routine_schema = {database} union all select '', '' from \
             information_schema.events where event_schema = {database}) as content having count(*) > 0"
        )
    }
}

/// The data set of a database; `None` where there is no such database, or an empty one that may be a killed prepare's.
///
/// # Errors
/// `Unusable`: the database is not ours to touch.
pub(super) fn find(connection: &mut Connection, names: &Named) -> Result<Option<Marker>, EngineError> {
    let name = literal(&names.database);
    let rows = connection.rows(&comment_sql(&name, connection.product)).map_err(told("looking for the data set"))?;
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
