//! The marker of a data set: two small tables in its database that say what assay made there.
//!
//! `assay_data_set` has one row: what the data set is. `assay_schemas` has a row for each SLOB schema, `loading` from
//! before its tables exist until it is loaded and verified. Making a table ends a transaction here, so the order
//! tells: `assay_schemas` is made first and the row of `assay_data_set` is written last. Both tables without that row
//! are what a killed prepare left, and the next one begins anew.

use super::conn::{Connection, told};
use super::layout::{literal, rows_table, scan_table};
use assay_run::engine::{DataSet, EngineError};
use std::collections::BTreeSet;

/// Version of the marker and of everything it stands for.
pub(super) const FORMAT: u32 = 1;

const DATA_SET: &str = "assay_data_set";
const SCHEMAS: &str = "assay_schemas";

/// What a data set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// Drawn when it was made.
    pub(super) data_set: u64,
    /// Of the key order.
    pub(super) seed: u64,
    /// The server's page.
    pub(super) block_bytes: u64,
    /// Live rows of each `cf1`.
    pub(super) scale: u64,
    /// Live rows of each `cf2`.
    pub(super) scan_blocks: u64,
    /// Columns hold random text, another for each row.
    pub(super) obfuscate: bool,
    /// Percent of each column that stays constant then.
    pub(super) compress_pct: u64,
    /// The index is unique.
    pub(super) unique: bool,
}

/// A marker as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) marker: Marker,
    /// When it was made, by the server's clock, UTC.
    pub(super) created: String,
    /// SLOB schemas loaded and verified.
    pub(super) loaded: BTreeSet<u32>,
    /// SLOB schemas whose load has begun and not ended.
    pub(super) loading: BTreeSet<u32>,
    /// Tables, routines and events that are not of it.
    pub(super) foreign: Vec<String>,
}

/// What is in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing, or what a killed prepare left before it had made anything.
    Nothing,
    /// A data set of ours.
    Ours(Box<Marked>),
}

impl Marked {
    /// SLOB schemas 1 to this one are loaded.
    pub(super) fn usable(&self) -> u32 {
        (1..)
            .take_while(|n| self.loaded.contains(n))
            .last()
            .unwrap_or(0)
    }

    /// For those who run on it; `None` while there is nothing to run on.
    pub(super) fn data_set(&self) -> Option<DataSet> {
        let usable = self.usable();
        let last = self.loaded.union(&self.loading).last().copied();
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
            unfinished: last.filter(|_| !self.loading.is_empty()),
        })
    }

    /// Tables of all its SLOB schemas.
    pub(super) fn tables(&self) -> BTreeSet<String> {
        let schemas = self.loaded.union(&self.loading);
        schemas
            .flat_map(|n| [rows_table(*n), scan_table(*n)])
            .collect()
    }
}

/// Looks at the database without touching anything.
///
/// # Errors
/// `Unusable` for a database that has content and no marker of ours, a newer format, triggers on its tables, no
/// privilege; `Damaged` for a marker that says something no assay wrote.
pub(super) fn find(connection: &mut Connection, database: &str) -> Result<Found, EngineError> {
    let doing = format!("reading database {database}");
    let doing = told(&doing);
    let content = content(connection).map_err(&doing)?;
    let marks = [DATA_SET, SCHEMAS].map(str::to_owned);
    if content.iter().all(|name| marks.contains(name)) && !has_row(connection, &content) {
        return Ok(Found::Nothing);
    }
    if !marks.iter().all(|mark| content.contains(mark)) {
        let some: Vec<&str> = content.iter().take(3).map(String::as_str).collect();
        let more = if content.len() > some.len() {
            ", ..."
        } else {
            ""
        };
        return Err(EngineError::Unusable(format!(
            "database {database} does not belong to assay: it contains {}{more} and no {DATA_SET}; nothing was \
             touched. Name another database in the URL",
            some.join(", ")
        )));
    }
    let strange = connection
        .rows(
            "select concat(trigger_name, ' on ', event_object_table) from information_schema.triggers \
             where event_object_schema = database() and (event_object_table like 'cf%' or event_object_table like \
             'assay%') union all select table_name from information_schema.tables where table_schema = database() \
             and table_type <> 'BASE TABLE' and (table_name like 'cf%' or table_name like 'assay%')",
        )
        .map_err(&doing)?;
    if let Some(name) = strange.into_iter().flatten().flatten().next() {
        return Err(EngineError::Unusable(format!(
            "database {database} has {name}, which assay did not make and which would execute somebody's code in \
             assay's statements: remove it, or name another database"
        )));
    }
    let mut marked = read(connection, database)?;
    let mut ours = marked.tables();
    ours.extend(marks);
    marked.foreign = content.difference(&ours).cloned().collect();
    Ok(Found::Ours(Box::new(marked)))
}

/// Names of all tables, routines and events of the database.
fn content(connection: &mut Connection) -> Result<BTreeSet<String>, super::conn::MyError> {
    let rows = connection.rows(
        "select table_name from information_schema.tables where table_schema = database() union all \
         select concat(routine_name, '()') from information_schema.routines where routine_schema = database() \
         union all select concat('event ', event_name) from information_schema.events where event_schema = database()",
    )?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

fn has_row(connection: &mut Connection, content: &BTreeSet<String>) -> bool {
    content.contains(DATA_SET)
        && connection
            .number(&format!("select count(*) from {DATA_SET}"))
            .is_ok_and(|rows| rows > 0)
}

/// Reads the marker's tables.
fn read(connection: &mut Connection, database: &str) -> Result<Marked, EngineError> {
    let doing = format!("reading {DATA_SET}");
    let doing = told(&doing);
    let damaged = |what: &str| {
        EngineError::Damaged(format!(
            "the marker in database {database} {what}, which no version of assay writes: compare it with the tables, \
             or drop the database by hand"
        ))
    };
    let formats = connection
        .rows(&format!("select format from {DATA_SET}"))
        .map_err(&doing)?;
    let [format] = formats.as_slice() else {
        let what = format!("has {} rows instead of one", formats.len());
        return Err(damaged(&what));
    };
    let format = format.first().cloned().flatten().unwrap_or_default();
    match format.parse::<u32>() {
        Ok(FORMAT) => {}
        Ok(newer) if newer > FORMAT => {
            return Err(EngineError::Unusable(format!(
                "the data set in database {database} has format {newer}, but this version of assay knows formats up \
                 to {FORMAT}: use the version that made it"
            )));
        }
        _ => return Err(damaged(&format!("says format {format}"))),
    }
    let values: Vec<String> = connection
        .rows(&format!(
            "select data_set, seed, block_bytes, scale_blocks, scan_blocks, obfuscate, compress_pct, unique_index, \
             checksum, date_format(created, '%Y-%m-%d %H:%i:%sZ') from {DATA_SET}"
        ))
        .map_err(&doing)?
        .into_iter()
        .flatten()
        .map(Option::unwrap_or_default)
        .collect();
    let (marker, created) = Marker::parse(&values).map_err(|what| damaged(&what))?;
    let states = connection
        .rows(&format!("select n, state from {SCHEMAS}"))
        .map_err(&doing)?;
    let (mut loaded, mut loading) = (BTreeSet::new(), BTreeSet::new());
    for row in states {
        let value = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        match (value(0).parse::<u32>(), value(1).as_str()) {
            (Ok(n), "loaded") if n > 0 => loaded.insert(n),
            (Ok(n), "loading") if n > 0 => loading.insert(n),
            (_, state) => return Err(damaged(&format!("says schema {} is {state}", value(0)))),
        };
    }
    Ok(Marked {
        marker,
        created,
        loaded,
        loading,
        foreign: Vec::new(),
    })
}

impl Marker {
    /// The statements that make it, in their order; what a killed prepare left of it goes first.
    pub(super) fn create(&self) -> Vec<String> {
        let values: Vec<String> = self.values().iter().map(|value| literal(value)).collect();
        let table = "engine=InnoDB character set latin1 comment='data set of assay'";
        vec![
            format!("drop table if exists {DATA_SET}, {SCHEMAS}"),
            format!(
                "create table {SCHEMAS} (n int primary key, state varchar(16) not null) {table}"
            ),
            format!(
                "create table {DATA_SET} (format int not null primary key, data_set varchar(16) not null, \
                 seed varchar(20) not null, block_bytes varchar(20) not null, scale_blocks varchar(20) not null, \
                 scan_blocks varchar(20) not null, obfuscate varchar(1) not null, compress_pct varchar(3) not null, \
                 unique_index varchar(1) not null, checksum varchar(8) not null, created datetime not null) {table}"
            ),
            format!(
                "insert into {DATA_SET} values ({FORMAT}, {}, {}, utc_timestamp())",
                values.join(", "),
                literal(&self.checksum())
            ),
        ]
    }

    /// As the table has them, in its order, without format, checksum and time.
    fn values(&self) -> [String; 8] {
        let flag = |value: bool| if value { "t" } else { "f" }.to_owned();
        [
            format!("{:016x}", self.data_set),
            self.seed.to_string(),
            self.block_bytes.to_string(),
            self.scale.to_string(),
            self.scan_blocks.to_string(),
            flag(self.obfuscate),
            self.compress_pct.to_string(),
            flag(self.unique),
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
            compress_pct: number("compress_pct", compress_pct)?,
            unique: unique == "t",
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
pub(super) fn note_loading(schemas: &[u32]) -> String {
    let values: Vec<String> = schemas
        .iter()
        .map(|n| format!("({n}, 'loading')"))
        .collect();
    format!("replace into {SCHEMAS} values {}", values.join(", "))
}

/// Notes that a SLOB schema is loaded and verified.
pub(super) fn note_loaded(n: u32) -> String {
    format!("update {SCHEMAS} set state = 'loaded' where n = {n} and state = 'loading'")
}

/// Notes that a SLOB schema is about to go.
pub(super) fn note_going(n: u32) -> String {
    format!("update {SCHEMAS} set state = 'loading' where n = {n}")
}

/// Drops the tables of a SLOB schema, then forgets it.
pub(super) fn drop_schema(n: u32) -> [String; 2] {
    [
        format!("drop table if exists {}, {}", rows_table(n), scan_table(n)),
        format!("delete from {SCHEMAS} where n = {n}"),
    ]
}

/// Drops the marker's tables, the last of a data set: its row first, which says that there is one.
pub(super) fn drop_marker() -> [String; 2] {
    [
        format!("delete from {DATA_SET}"),
        format!("drop table if exists {DATA_SET}, {SCHEMAS}"),
    ]
}
