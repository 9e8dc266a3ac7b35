//! The marker of a data set: two small tables in its PostgreSQL schema that say what assay made there.
//!
//! `assay_data_set` has one row: what the data set is. `assay_schemas` has a row for each SLOB schema, `loading` from
//! before its tables exist until it is loaded and verified. Both change in the transactions that change the tables, so
//! that a prepare that is killed leaves nothing a later one cannot tell from foreign tables.

use super::layout::{Names, index_name, literal, rows_name, scan_name};
use super::own::told;
use super::site::{self, Owner};
use super::wire::{Connection, PgError, Rows};
use assay_run::engine::{DataSet, EngineError};
use std::collections::BTreeSet;

/// Version of the marker and of everything it stands for.
pub(super) const FORMAT: u32 = 1;

const DATA_SET: &str = "assay_data_set";
const SCHEMAS: &str = "assay_schemas";
const SCHEMAS_KEY: &str = "assay_schemas_pkey";

/// What a data set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// Drawn when it was made.
    pub(super) data_set: u64,
    /// Of the key order.
    pub(super) seed: u64,
    /// The server's page.
    pub(super) block_bytes: u64,
    /// Rows of each `cf1`.
    pub(super) scale: u64,
    /// Rows of each `cf2`.
    pub(super) scan_blocks: u64,
    /// Columns hold random text, another for each row.
    pub(super) obfuscate: bool,
    /// Percent of each column that stays constant then.
    pub(super) compress_pct: u32,
    /// The index is unique.
    pub(super) unique: bool,
    /// Tablespace; empty is the database's own.
    pub(super) tablespace: String,
    /// Autovacuum was left on.
    pub(super) autovacuum: bool,
    /// The PostgreSQL schema was created with it, so that it goes with it.
    pub(super) made_schema: bool,
}

/// A marker as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    /// What the data set is.
    pub(super) marker: Marker,
    /// When it was made, by the server's clock, UTC.
    pub(super) created: String,
    /// SLOB schemas loaded and verified.
    pub(super) loaded: BTreeSet<u32>,
    /// SLOB schemas whose load has begun and not ended.
    pub(super) loading: BTreeSet<u32>,
}

/// What is in the PostgreSQL schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No such schema.
    Nothing,
    /// The schema, and nothing in it; whose it is.
    Empty(Owner),
    /// A data set of ours.
    Ours(Box<Ours>),
}

/// A data set and what else is in its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ours {
    /// Its marker.
    pub(super) marked: Marked,
    /// Relations and functions that are not of it.
    pub(super) foreign: Vec<String>,
    /// Those of its relations that exist.
    pub(super) present: BTreeSet<String>,
    /// Whose it is.
    pub(super) owner: Owner,
}

impl Marked {
    /// Its tables `cf1` and `cf2`, for SQL, of the SLOB schemas that `wanted` picks.
    pub(super) fn tables(&self, names: &Names, wanted: impl Fn(u32) -> bool) -> Vec<String> {
        let loaded = self.loaded.iter().filter(|n| wanted(**n));
        loaded
            .flat_map(|n| {
                let scan = (self.marker.scan_blocks > 0).then(|| names.scan_table(*n));
                std::iter::once(names.rows_table(*n)).chain(scan)
            })
            .collect()
    }

    /// SLOB schemas 1 to this one are loaded.
    pub(super) fn usable(&self) -> u32 {
        (1..)
            .take_while(|n| self.loaded.contains(n))
            .last()
            .unwrap_or(0)
    }

    /// SLOB schemas that a prepare which did not finish was to come to.
    fn unfinished(&self) -> Option<u32> {
        let last = self.loaded.union(&self.loading).last().copied();
        last.filter(|_| !self.loading.is_empty())
    }

    /// For those who run on it; `None` while there is nothing to run on.
    pub(super) fn data_set(&self) -> Option<DataSet> {
        let usable = self.usable();
        let marker = &self.marker;
        (usable > 0).then(|| DataSet {
            schemas: usable,
            scale_blocks: marker.scale,
            scan_blocks: marker.scan_blocks,
            block_bytes: marker.block_bytes,
            state: format!(
                "format {FORMAT}, created {}, seed {}, data set {:016x}",
                self.created, marker.seed, marker.data_set
            ),
            unfinished: self.unfinished(),
        })
    }

    /// Names of all relations it may consist of, the marker's too.
    pub(super) fn relations(&self) -> BTreeSet<String> {
        let schemas = self.loaded.union(&self.loading);
        schemas
            .flat_map(|n| [rows_name(*n), scan_name(*n), index_name(*n)])
            .chain([DATA_SET, SCHEMAS, SCHEMAS_KEY].map(str::to_owned))
            .collect()
    }
}

/// Looks at the PostgreSQL schema without touching anything. The connection is in no transaction.
///
/// # Errors
/// `Unusable` for a schema that has content and no marker of ours, one that is not as assay lays it
/// ([`site::examine`]), a newer format, no privilege; `Damaged` for a marker that says something no assay wrote.
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
    // Nothing of it is read before the catalog says that reading it executes nobody's code, and it stays so meanwhile.
    site::lock_marker(connection, names).map_err(told(&doing))?;
    let seen = site::examine(connection, names, oid)
        .and_then(|owner| Ok((read(connection, names)?, owner)));
    let ended = connection.query("rollback").map_err(told(&doing));
    let (marked, owner) = seen?;
    ended?;
    let relations = marked.relations();
    Ok(Found::Ours(Box::new(Ours {
        foreign: content.difference(&relations).cloned().collect(),
        present: content.intersection(&relations).cloned().collect(),
        marked,
        owner,
    })))
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
    rows.rows
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
        .collect()
}

fn foreign_schema(names: &Names, content: &BTreeSet<String>) -> EngineError {
    let some: Vec<&str> = content.iter().take(3).map(String::as_str).collect();
    let more = if content.len() > some.len() {
        ", ..."
    } else {
        ""
    };
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
    let format = connection
        .query(&format!("select format from {table}"))
        .map_err(told(&doing))?;
    let format = match format.rows.as_slice() {
        [row] => row.first().cloned().flatten().unwrap_or_default(),
        rows => {
            return Err(damaged(
                names,
                &format!("has {} rows instead of one", rows.len()),
            ));
        }
    };
    match format.parse::<u32>() {
        Ok(FORMAT) => {}
        Ok(newer) if newer > FORMAT => {
            return Err(EngineError::Unusable(format!(
                "the data set in schema {} has format {newer}, but this version of assay knows formats up to \
                 {FORMAT}: use the version that made it",
                names.schema()
            )));
        }
        _ => return Err(damaged(names, &format!("says format {format}"))),
    }
    let row = connection
        .query(&format!(
            "select data_set, seed, block_bytes, scale_blocks, scan_blocks, obfuscate, compress_pct, unique_index, \
             tablespace, autovacuum, made_schema, checksum, \
             to_char(created at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"') from {table}"
        ))
        .map_err(told(&doing))?;
    let values: Vec<String> = row
        .rows
        .into_iter()
        .flatten()
        .map(Option::unwrap_or_default)
        .collect();
    let (marker, created) = Marker::parse(&values).map_err(|what| damaged(names, &what))?;
    let states = connection
        .query(&format!("select n, state from {}", names.relation(SCHEMAS)))
        .map_err(told(&doing))?;
    let mut marked = Marked {
        marker,
        created,
        loaded: BTreeSet::new(),
        loading: BTreeSet::new(),
    };
    for row in states.rows {
        let value = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        match (value(0).parse::<u32>(), value(1).as_str()) {
            (Ok(n), "loaded") if n > 0 => marked.loaded.insert(n),
            (Ok(n), "loading") if n > 0 => marked.loading.insert(n),
            (_, state) => {
                return Err(damaged(
                    names,
                    &format!("says schema {} is {state}", value(0)),
                ));
            }
        };
    }
    Ok(marked)
}

fn damaged(names: &Names, what: &str) -> EngineError {
    EngineError::Damaged(format!(
        "the marker in schema {} {what}, which no version of assay writes: compare it with the tables, or drop the \
         schema by hand",
        names.schema()
    ))
}

impl Marker {
    /// Creates the marker's tables and its one row: part of the transaction that creates the schema.
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

    /// Replaces the one row; the tables stay.
    pub(super) fn replace(&self, names: &Names) -> String {
        format!(
            "delete from {}; {}",
            names.relation(DATA_SET),
            self.insert(names)
        )
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

    /// As the table has them, in its order, without format, checksum and time.
    fn values(&self) -> [String; 11] {
        let bool = |value: bool| if value { "t" } else { "f" }.to_owned();
        [
            format!("{:016x}", self.data_set),
            self.seed.to_string(),
            self.block_bytes.to_string(),
            self.scale.to_string(),
            self.scan_blocks.to_string(),
            bool(self.obfuscate),
            self.compress_pct.to_string(),
            bool(self.unique),
            self.tablespace.clone(),
            bool(self.autovacuum),
            bool(self.made_schema),
        ]
    }

    /// CRC-32C of the values: what was edited by hand is not what was loaded.
    fn checksum(&self) -> String {
        let text = format!("{FORMAT}|{}", self.values().join("|"));
        format!("{:08x}", crc32c::crc32c(text.as_bytes()))
    }

    /// From the values of [`read`]; also the time it was made.
    fn parse(values: &[String]) -> Result<(Self, String), String> {
        let [
            data_set,
            seed,
            block_bytes,
            scale,
            scan_blocks,
            obfuscate,
            compress_pct,
            unique,
            tablespace,
            autovacuum,
            made_schema,
            checksum,
            created,
        ] = values
        else {
            return Err(format!("has {} values", values.len()));
        };
        let number = |name: &str, text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("says {name} is {text}"))
        };
        let marker = Self {
            data_set: u64::from_str_radix(data_set, 16)
                .map_err(|_| format!("says data_set is {data_set}"))?,
            seed: number("seed", seed)?,
            block_bytes: number("block_bytes", block_bytes)?,
            scale: number("scale_blocks", scale)?,
            scan_blocks: number("scan_blocks", scan_blocks)?,
            obfuscate: obfuscate == "t",
            compress_pct: number("compress_pct", compress_pct)? as u32,
            unique: unique == "t",
            tablespace: tablespace.clone(),
            autovacuum: autovacuum == "t",
            made_schema: made_schema == "t",
        };
        let wanted = marker.checksum();
        if *checksum != wanted {
            return Err(format!(
                "has checksum {checksum}, but its values give {wanted}"
            ));
        }
        if marker.scale == 0 {
            return Err("says the scale is 0".to_owned());
        }
        Ok((marker, created.clone()))
    }
}

/// Notes that SLOB schemas are being loaded: before any table of theirs exists.
pub(super) fn note_loading(names: &Names, schemas: &[u32]) -> String {
    let values: Vec<String> = schemas
        .iter()
        .map(|n| format!("({n}, 'loading')"))
        .collect();
    format!(
        "insert into {} (n, state) values {} on conflict (n) do update set state = 'loading', changed = now()",
        names.relation(SCHEMAS),
        values.join(", ")
    )
}

/// Notes that a SLOB schema is loaded and verified.
pub(super) fn note_loaded(names: &Names, n: u32) -> String {
    format!(
        "update {} set state = 'loaded', changed = now() where n = {n} and state = 'loading'",
        names.relation(SCHEMAS)
    )
}

/// Forgets SLOB schemas whose tables are gone.
pub(super) fn forget(names: &Names, schemas: &[u32]) -> String {
    let list: Vec<String> = schemas.iter().map(u32::to_string).collect();
    format!(
        "delete from {} where n in ({})",
        names.relation(SCHEMAS),
        list.join(", ")
    )
}

/// Drops the marker's tables: the last of a data set.
pub(super) fn drop_tables(names: &Names) -> String {
    format!(
        "drop table if exists {}, {}",
        names.relation(SCHEMAS),
        names.relation(DATA_SET)
    )
}

/// Who we are to the server.
pub(super) fn role(connection: &mut Connection) -> String {
    let asked = connection.query("select current_user");
    let name = asked
        .ok()
        .and_then(|rows| rows.rows.into_iter().flatten().flatten().next());
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
            tablespace: "fast 'one'".to_owned(),
            autovacuum: false,
            made_schema: true,
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
        };
        assert_eq!(marked(&[], &[1, 2]).data_set(), None);
        assert_eq!(marked(&[2, 3], &[1]).data_set(), None);
        assert_eq!(marked(&[1, 2, 4], &[3]).usable(), 2);
        let data = marked(&[1, 2, 3], &[]).data_set().unwrap();
        assert_eq!((data.schemas, data.scale_blocks), (3, 1000));
    }
}
