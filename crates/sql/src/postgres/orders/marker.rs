//! Whether a schema contains an order-entry data set or belongs to others; assay never touches the latter.
//!
//! The marker is the comment on the schema, as JSON. assay refuses, by name, a schema without it, one of another role,
//! and one that contains objects foreign to a data set.

use super::ddl::{self, Named};
use super::functions;
use crate::orders::marker::{ANOTHER, Marker, relations};
use crate::postgres::layout::literal;
use crate::postgres::own::told;
use crate::postgres::wire::Connection;
use assay_orders::mix;
use assay_run::engine::EngineError;

/// The statement that writes the marker of a schema.
pub(super) fn sql(marker: &Marker, names: &Named) -> String {
    let schema = crate::postgres::layout::quote(&names.schema);
    format!("comment on schema {schema} is {}", literal(&marker.json()))
}

/// The data set in a schema; `None` if the schema does not exist.
///
/// # Errors
/// `Unusable`: assay must not touch the schema.
pub(super) fn find(connection: &mut Connection, names: &Named) -> Result<Option<Marker>, EngineError> {
    let rows = connection
        .query(&format!(
            "select obj_description(oid, 'pg_namespace'), pg_get_userbyid(nspowner), nspowner = \
             (select oid from pg_roles where rolname = current_user) from pg_namespace where nspname = {}",
            literal(&names.schema)
        ))
        .map_err(told("looking for the data set"))?;
    let Some(row) = rows.rows.into_iter().next() else {
        return Ok(None);
    };
    let [comment, owner, mine] = [0, 1, 2].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
    let marker = Marker::read(&comment, &names.place(), ANOTHER)?;
    if mine != "t" {
        return Err(EngineError::Unusable(format!(
            "the data set in schema {} belongs to role {owner}: connect as that role, or name another schema with --set \
             ORDERS_SCHEMA=NAME",
            names.schema
        )));
    }
    refuse_strangers(connection, names, &marker)?;
    Ok(Some(marker))
}

/// Functions of a data set.
pub(super) fn functions() -> Vec<String> {
    let helpers = [functions::PAUSE_NAME, functions::LOGON_NAME].map(str::to_owned);
    let early = mix::ALL.into_iter().filter(|tx| tx.logs_on());
    mix::ALL.map(functions::name).into_iter().chain(early.map(functions::early_name)).chain(helpers).collect()
}

/// Refuses a schema that contains foreign objects, which assay must neither execute nor remove.
fn refuse_strangers(connection: &mut Connection, names: &Named, marker: &Marker) -> Result<(), EngineError> {
    let list = |names: &[String]| names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ");
    let mut relations: Vec<String> = relations().into_iter().map(str::to_owned).collect();
    relations.extend(ddl::partitions(marker.partitions).map(|(_, _, name)| name));
    let rows = connection
        .query(&format!(
            "select relname::text from pg_class where relnamespace = (select oid from pg_namespace where nspname = {schema}) \
             and relkind not in ('i', 'I', 't') and (relname::text not in ({}) or relowner <> (select oid from pg_roles \
             where rolname = current_user)) union all select proname::text || '()' from pg_proc where pronamespace = \
             (select oid from pg_namespace where nspname = {schema}) and (proname::text not in ({}) or proowner <> \
             (select oid from pg_roles where rolname = current_user)) union all \
             select t.tgname::text || ' (trigger)' from pg_trigger t join pg_class c on c.oid = t.tgrelid \
             where not t.tgisinternal and c.relnamespace = (select oid from pg_namespace where nspname = {schema}) order by 1",
            list(&relations),
            list(&functions()),
            schema = literal(&names.schema)
        ))
        .map_err(told("looking at the data set"))?;
    crate::orders::refuse_strangers(&names.place(), rows.rows)
}
