//! The marker of a data set: two small tables in its PostgreSQL schema that describe what assay created there.
//!
//! `assay_data_set` has one row that describes the data set. `assay_schemas` has one row for each SLOB schema:
//! `loading` from before its tables exist until it is loaded and verified. Both change in the same transactions as the
//! tables, so a killed prepare leaves nothing that a later one could mistake for foreign tables.

use super::layout::{Names, index_name, literal, rows_name, scan_name};
use super::own::told;
use super::site::{self, Owner};
use super::wire::{Connection, PgError, Rows};
use crate::marked::{At, FORMAT, flag};
use assay_measure::config::Settings;
use assay_run::engine::EngineError;
use std::collections::BTreeSet;

const DATA_SET: &str = "assay_data_set";
const SCHEMAS: &str = "assay_schemas";
const SCHEMAS_KEY: &str = "assay_schemas_pkey";

/// Marker values that only PostgreSQL data sets have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// Tablespace; empty means the database's default.
    pub(super) tablespace: String,
    /// Autovacuum stays on.
    pub(super) autovacuum: bool,
    /// prepare created the PostgreSQL schema, so destroy drops it.
    pub(super) made_schema: bool,
}

pub(super) type Marker = crate::marked::Marker<Own>;
pub(super) type Marked = crate::marked::Marked<Own>;

impl crate::marked::Own for Own {
    fn values(&self) -> Vec<String> {
        vec![self.tablespace.clone(), flag(self.autovacuum), flag(self.made_schema)]
    }

    fn parse(values: &[String]) -> Option<Self> {
        let [tablespace, autovacuum, made_schema] = values else {
            return None;
        };
        Some(Self { tablespace: tablespace.clone(), autovacuum: autovacuum == "t", made_schema: made_schema == "t" })
    }

    fn asked(&self, settings: &Settings) -> Vec<(&'static str, String, String)> {
        let tablespace = settings.text("TABLESPACE").to_owned();
        let autovacuum = settings.bool("AUTOVACUUM").to_string();
        vec![
            ("TABLESPACE", tablespace, self.tablespace.clone()),
            ("AUTOVACUUM", autovacuum, self.autovacuum.to_string()),
        ]
    }
}

/// What the PostgreSQL schema contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The schema does not exist.
    Nothing,
    /// An empty schema with its owner.
    Empty(Owner),
    /// A data set of assay.
    Ours(Box<Ours>),
}

/// A data set and what else is in its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ours {
    /// Its marker.
    pub(super) marked: Marked,
    /// Its relations that exist.
    pub(super) present: BTreeSet<String>,
    /// Who owns it.
    pub(super) owner: Owner,
}

impl AsRef<Marked> for Ours {
    fn as_ref(&self) -> &Marked {
        &self.marked
    }
}

impl Marked {
    /// Its tables `cf1` and `cf2`, for SQL, in the SLOB schemas that `wanted` accepts.
    pub(super) fn tables(&self, names: &Names, wanted: impl Fn(u32) -> bool) -> Vec<String> {
        let loaded = self.loaded.iter().filter(|n| wanted(**n));
        loaded
            .flat_map(|n| {
                let scan = (self.marker.scan_blocks > 0).then(|| names.scan_table(*n));
                std::iter::once(names.rows_table(*n)).chain(scan)
            })
            .collect()
    }

    /// Names of all relations it may contain, including the marker's.
    pub(super) fn relations(&self) -> BTreeSet<String> {
        let schemas = self.loaded.union(&self.loading);
        schemas
            .flat_map(|n| [rows_name(*n), scan_name(*n), index_name(*n)])
            .chain([DATA_SET, SCHEMAS, SCHEMAS_KEY].map(str::to_owned))
            .collect()
    }
}

/// Examines the PostgreSQL schema without changing anything. The connection must not be in a transaction.
///
/// # Errors
/// `Unusable` for a schema with content but no marker of assay, one that differs from assay's layout
/// ([`site::examine`]), a newer format, or a missing privilege; `Damaged` for a marker with values that no assay wrote.
pub(super) fn find(connection: &mut Connection, names: &Names) -> Result<Found, EngineError> {
    let doing = format!("reading schema {} of the database", names.schema());
    let there = connection
        .query(&format!(
            "select oid, has_schema_privilege(oid, 'usage') from pg_catalog.pg_namespace where nspname = {}",
            literal(names.schema())
        ))
        .map_err(told(&doing))?;
    let Some([Some(oid), Some(usage)]) = there.rows.first().map(Vec::as_slice) else {
        return Ok(Found::Nothing);
    };
    if usage != "t" {
        return Err(EngineError::Unusable(format!(
            "{1} may not use schema {0} of the database: have its owner run GRANT USAGE ON SCHEMA {2} TO that role, \
             or name another schema with PG_SCHEMA",
            names.schema(),
            role(connection),
            names.schema_sql()
        )));
    }
    let content = content(connection, oid).map_err(told(&doing))?;
    if content.is_empty() {
        return site::owner_of_schema(connection, names, oid).map(Found::Empty);
    }
    if !content.contains(DATA_SET) || !content.contains(SCHEMAS) {
        return Err(foreign_schema(names, &content));
    }
    // Read nothing before the catalog shows that reading executes no foreign code; the lock keeps it so.
    site::lock_marker(connection, names).map_err(told(&doing))?;
    let seen = site::examine(connection, names, oid).and_then(|owner| Ok((read(connection, names)?, owner)));
    let ended = connection.query("rollback").map_err(told(&doing));
    let (mut marked, owner) = seen?;
    ended?;
    let relations = marked.relations();
    marked.foreign = content.difference(&relations).cloned().collect();
    Ok(Found::Ours(Box::new(Ours { present: content.intersection(&relations).cloned().collect(), marked, owner })))
}

/// Names of all relations and functions of a PostgreSQL schema.
fn content(connection: &mut Connection, oid: &str) -> Result<BTreeSet<String>, PgError> {
    let rows = connection.query(&format!(
        "select relname from pg_catalog.pg_class where relnamespace = {oid} \
         union all select proname || '()' from pg_catalog.pg_proc where pronamespace = {oid} \
         union all select typname from pg_catalog.pg_type \
         where typnamespace = {oid} and typtype in ('d', 'e', 'r')"
    ))?;
    Ok(first_column(rows))
}

fn first_column(rows: Rows) -> BTreeSet<String> {
    rows.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
}

fn foreign_schema(names: &Names, content: &BTreeSet<String>) -> EngineError {
    let some: Vec<&str> = content.iter().take(3).map(String::as_str).collect();
    let more = if content.len() > some.len() { ", ..." } else { "" };
    EngineError::Unusable(format!(
        "schema {} of the database does not belong to assay: it contains {}{more} and no {DATA_SET}; nothing was \
         touched. Name another schema with --set PG_SCHEMA=NAME",
        names.schema(),
        some.join(", ")
    ))
}

/// Reads the marker's tables.
fn read(connection: &mut Connection, names: &Names) -> Result<Marked, EngineError> {
    let doing = format!("reading {}.{DATA_SET}", names.schema());
    let table = names.relation(DATA_SET);
    let format = connection.query(&format!("select format from {table}")).map_err(told(&doing))?;
    let place = format!("schema {}", names.schema());
    let at = At { place: &place, way_out: "drop the schema by hand" };
    Marked::known_format(&at, &format.rows)?;
    let row = connection
        .query(&format!(
            "select data_set, seed, block_bytes, scale_blocks, scan_blocks, obfuscate, compress_pct, unique_index, \
             tablespace, autovacuum, made_schema, checksum, \
             to_char(created at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"') from {table}"
        ))
        .map_err(told(&doing))?;
    let states =
        connection.query(&format!("select n, state from {}", names.relation(SCHEMAS))).map_err(told(&doing))?;
    Marked::read(&at, row.rows, &states.rows)
}

impl Marker {
    /// Creates the marker's tables and row, within the transaction that creates the schema.
    pub(super) fn create(&self, names: &Names) -> String {
        let (data_set, schemas) = (names.relation(DATA_SET), names.relation(SCHEMAS));
        format!(
            "create table {data_set} (format int not null, data_set text not null, seed text not null, \
             block_bytes int not null, scale_blocks bigint not null, scan_blocks bigint not null, \
             obfuscate boolean not null, compress_pct int not null, unique_index boolean not null, \
             tablespace text not null, autovacuum boolean not null, made_schema boolean not null, \
             checksum text not null, created timestamptz not null default now()); \
             create table {schemas} (n int primary key, state text not null, changed timestamptz not null default now()); \
             comment on table {data_set} is 'data set of assay: made by assay prepare, removed by assay destroy'; \
             {}",
            self.insert(names)
        )
    }

    /// Replaces the row and keeps the tables.
    pub(super) fn replace(&self, names: &Names) -> String {
        format!("delete from {}; {}", names.relation(DATA_SET), self.insert(names))
    }

    fn insert(&self, names: &Names) -> String {
        let values: Vec<String> = self.values().iter().map(|value| literal(value)).collect();
        format!(
            "insert into {} (format, data_set, seed, block_bytes, scale_blocks, scan_blocks, obfuscate, compress_pct, \
             unique_index, tablespace, autovacuum, made_schema, checksum) values ({FORMAT}, {}, {})",
            names.relation(DATA_SET),
            values.join(", "),
            literal(&self.checksum())
        )
    }
}

/// Records SLOB schemas as loading, before their tables exist.
pub(super) fn note_loading(names: &Names, schemas: &[u32]) -> String {
    let values: Vec<String> = schemas.iter().map(|n| format!("({n}, 'loading')")).collect();
    format!(
        "insert into {} (n, state) values {} on conflict (n) do update set state = 'loading', changed = now()",
        names.relation(SCHEMAS),
        values.join(", ")
    )
}

/// Records a SLOB schema as loaded and verified.
pub(super) fn note_loaded(names: &Names, n: u32) -> String {
    format!(
        "update {} set state = 'loaded', changed = now() where n = {n} and state = 'loading'",
        names.relation(SCHEMAS)
    )
}

/// Removes SLOB schemas whose tables were dropped.
pub(super) fn forget(names: &Names, schemas: &[u32]) -> String {
    let list: Vec<String> = schemas.iter().map(u32::to_string).collect();
    format!("delete from {} where n in ({})", names.relation(SCHEMAS), list.join(", "))
}

/// Drops the marker's tables, the last step of a removal.
pub(super) fn drop_tables(names: &Names) -> String {
    format!("drop table if exists {}, {}", names.relation(SCHEMAS), names.relation(DATA_SET))
}

/// Our role on the server.
pub(super) fn role(connection: &mut Connection) -> String {
    let asked = connection.query("select current_user");
    let name = asked.ok().and_then(|rows| rows.rows.into_iter().flatten().flatten().next());
    name.unwrap_or_else(|| "this role".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Marker {
        Marker {
            data_set: 0x1234,
            seed: u64::MAX,
            block_bytes: 8192,
            scale: 1000,
            scan_blocks: 128,
            obfuscate: true,
            compress_pct: 50,
            unique: false,
            own: Own { tablespace: "fast 'one'".to_owned(), autovacuum: false, made_schema: true },
        }
    }

    fn row(marker: &Marker) -> Vec<String> {
        let mut values = marker.values().to_vec();
        values.push(marker.checksum());
        values.push("2026-01-02 03:04:05Z".to_owned());
        values
    }

    #[test]
    fn a_marker_reads_back_and_an_edited_one_is_found() {
        let (read, created) = Marker::parse(&row(&sample())).unwrap();
        assert_eq!(read, sample());
        assert_eq!(created, "2026-01-02 03:04:05Z");
        for at in 0..11 {
            let mut values = row(&sample());
            values[at] = match values[at].as_str() {
                "t" => "f".to_owned(),
                "f" => "t".to_owned(),
                other => format!("1{other}"),
            };
            assert!(Marker::parse(&values).is_err(), "value {at}");
        }
    }

    #[test]
    fn only_an_unbroken_row_of_schemas_is_usable() {
        let marked = |loaded: &[u32], loading: &[u32]| Marked {
            marker: sample(),
            created: String::new(),
            loaded: loaded.iter().copied().collect(),
            loading: loading.iter().copied().collect(),
            foreign: Vec::new(),
        };
        assert_eq!(marked(&[], &[1, 2]).data_set(), None);
        assert_eq!(marked(&[2, 3], &[1]).data_set(), None);
        assert_eq!(marked(&[1, 2, 4], &[3]).usable(), 2);
        let data = marked(&[1, 2, 3], &[]).data_set().unwrap();
        assert_eq!((data.schemas, data.scale_blocks), (3, 1000));
    }
}
