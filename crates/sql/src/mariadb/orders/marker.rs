//! Whether a database contains an order-entry data set or belongs to others; assay never touches the latter. The marker
//! is the comment on the database or, if databases have no comments, on the table of the data set's metadata.

use super::ddl::{Named, quote};
use super::procedures;
use crate::mariadb::conn::{Connection, told};
use crate::mariadb::layout::literal;
use crate::mariadb::product::Product;
use crate::orders::ddl::own_tables;
use crate::orders::marker::{ANOTHER, Marker, relations};
use crate::orders::refuse_strangers;
use assay_orders::checks::Words;
use assay_orders::mix::ALL;
use assay_orders::model::METADATA;
use assay_run::engine::EngineError;

/// A marker as a comment, in text that the server parses: hexadecimal literals are not allowed there.
fn comment(marker: &Marker) -> String {
    format!("'{}'", marker.json().replace('\\', "\\\\").replace('\'', "''"))
}

/// Creates the database with its marker. Never takes over an existing database unless it is empty, which a killed
/// prepare could have left.
pub(super) fn create_sql(marker: &Marker, names: &Named, product: Product) -> Vec<String> {
    let (database, comment) = (quote(&names.database), comment(marker));
    if product.comments_databases() {
        vec![format!("create database {database} character set latin1 comment = {comment}")]
    } else {
        vec![
            format!("create database if not exists {database} character set latin1"),
            format!("{} comment = {comment}", own_tables(names)[0]),
        ]
    }
}

/// Replaces the marker.
pub(super) fn write_sql(marker: &Marker, names: &Named, product: Product) -> String {
    let of = if product.comments_databases() {
        format!("database {}", quote(&names.database))
    } else {
        format!("table {}", names.relation(METADATA))
    };
    format!("alter {of} comment = {}", comment(marker))
}

/// Query for a marker's comment; returns no row if the database does not exist or is empty.
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

/// The data set in a database; `None` if the database does not exist, or is empty as a killed prepare may have left it.
///
/// # Errors
/// `Unusable`: assay must not touch the database.
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
