//! Whose a schema is: order entry's data set, or somebody else's that is never touched.
//!
//! The marker is the comment on the schema, as JSON. A schema without it, of another role, or with something in it that a
//! data set does not have, is refused by name.

use super::ddl::{LOADED, Named};
use super::functions;
use crate::postgres::layout::literal;
use crate::postgres::own::told;
use crate::postgres::wire::Connection;
use assay_orders::ledger::{BASELINE, LEDGER};
use assay_orders::mix;
use assay_orders::model::{METADATA, SEQUENCES, TABLES, VIEWS};
use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};

/// What the marker calls a data set.
const WHAT: &str = "assay order entry data set";

/// What is known of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    what: String,
    /// Version of the rows' rules.
    pub version: u32,
    pub seed: u64,
    pub scale_milli: u64,
    pub legacy: bool,
    pub indexes: String,
    /// Everything is loaded, indexed and verified.
    pub complete: bool,
}

impl Marker {
    /// Of a data set that is to be.
    pub(super) fn new(seed: u64, scale_milli: u64, legacy: bool, indexes: &str) -> Self {
        Self {
            what: WHAT.to_owned(),
            version: assay_orders::generate::VERSION,
            seed,
            scale_milli,
            legacy,
            indexes: indexes.to_owned(),
            complete: false,
        }
    }

    /// The statement that writes it on the schema.
    pub(super) fn sql(&self, names: &Named) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        format!(
            "comment on schema {} is {}",
            crate::postgres::layout::quote(&names.schema),
            literal(&json)
        )
    }

    /// The scale as it is written.
    pub(super) fn scale(&self) -> String {
        assay_measure::units::six(self.scale_milli as f64 / 1000.0)
    }
}

/// The data set of a schema; `None` where there is no such schema.
///
/// # Errors
/// `Unusable`: the schema is not ours to touch.
pub(super) fn find(
    connection: &mut Connection,
    names: &Named,
) -> Result<Option<Marker>, EngineError> {
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
    let [comment, owner, mine] =
        [0, 1, 2].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
    let marker: Option<Marker> = serde_json::from_str(&comment).ok();
    let Some(marker) = marker.filter(|marker| marker.what == WHAT) else {
        return Err(EngineError::Unusable(format!(
            "schema {} exists and assay did not make it for order entry (it has no mark of assay's): name another with \
             --set ORDERS_SCHEMA=NAME",
            names.schema
        )));
    };
    if mine != "t" {
        return Err(EngineError::Unusable(format!(
            "the data set in schema {} belongs to role {owner}: connect as that role, or name another schema with --set \
             ORDERS_SCHEMA=NAME",
            names.schema
        )));
    }
    if marker.version != assay_orders::generate::VERSION {
        return Err(EngineError::Unusable(format!(
            "the data set in schema {} was made by rules of version {}, this assay has version {}: remove it with `assay \
             orders destroy` and prepare it again",
            names.schema,
            marker.version,
            assay_orders::generate::VERSION
        )));
    }
    refuse_strangers(connection, names)?;
    Ok(Some(marker))
}

/// Relations of a data set, views included.
pub(super) fn relations() -> Vec<&'static str> {
    let tables = TABLES.into_iter().map(|table| table.name());
    let sequences = SEQUENCES.into_iter().map(|(name, ..)| name);
    tables
        .chain([METADATA, BASELINE, LEDGER, LOADED])
        .chain(sequences)
        .chain(VIEWS)
        .collect()
}

/// Functions of a data set.
pub(super) fn functions() -> Vec<String> {
    let helpers = [functions::PAUSE_NAME, functions::LOGON_NAME].map(str::to_owned);
    mix::ALL
        .map(functions::name)
        .into_iter()
        .chain(helpers)
        .collect()
}

/// Refuses a schema with something in it that a data set does not have: executing or removing it is not ours.
fn refuse_strangers(connection: &mut Connection, names: &Named) -> Result<(), EngineError> {
    let list = |names: &[String]| {
        names
            .iter()
            .map(|name| literal(name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let relations: Vec<String> = relations().into_iter().map(str::to_owned).collect();
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
    let strange: Vec<String> = rows
        .rows
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
        .collect();
    match strange.is_empty() {
        true => Ok(()),
        false => Err(EngineError::Unusable(format!(
            "schema {} holds what assay did not make there: {}; move it elsewhere, since assay neither executes nor \
             removes it",
            names.schema,
            strange.join(", ")
        ))),
    }
}
