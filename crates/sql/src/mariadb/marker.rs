//! The marker of a data set: two small tables in its database that describe what assay created there.
//!
//! `assay_data_set` has one row that describes the data set. `assay_schemas` has one row for each SLOB schema:
//! `loading` from before its tables exist until it is loaded and verified. Creating a table ends a transaction here, so
//! the order matters: `assay_schemas` is created first, and the row of `assay_data_set` is written last. Both tables
//! without that row were left by a killed prepare, and the next prepare starts over.

use super::conn::{Connection, told};
use super::layout::{literal, rows_table, scan_table};
use crate::marked::At;
pub(super) use crate::marked::{FORMAT, Marked, Marker};
use assay_run::engine::EngineError;
use std::collections::BTreeSet;

const DATA_SET: &str = "assay_data_set";
const SCHEMAS: &str = "assay_schemas";
/// Prefix of the procedures of LOOP=server (MySQL), followed by the session that created them and the schema.
const LOOP: &str = "assay_loop_";
/// Comment on the objects that assay creates.
pub(super) const OURS: &str = "data set of assay";
/// Longest wait for a procedure that a session still uses; after that, the next prepare or destroy drops it.
const LOCK_WAIT_S: u32 = 10;

impl Marked {
    /// Tables of all its SLOB schemas.
    pub(super) fn tables(&self) -> BTreeSet<String> {
        let schemas = self.loaded.union(&self.loading);
        schemas.flat_map(|n| [rows_table(*n), scan_table(*n)]).collect()
    }
}

/// Examines the database without changing anything.
///
/// # Errors
/// `Unusable` for a database with content but no marker of assay, a newer format, triggers on its tables, or a missing
/// privilege; `Damaged` for a marker with values that no assay wrote.
pub(super) fn find(connection: &mut Connection, database: &str) -> Result<Option<Marked>, EngineError> {
    let doing = format!("reading database {database}");
    let doing = told(&doing);
    let content = content(connection).map_err(&doing)?;
    let marks = [DATA_SET, SCHEMAS].map(str::to_owned);
    if content.iter().all(|name| marks.contains(name)) && !has_row(connection, &content) {
        return Ok(None);
    }
    if !marks.iter().all(|mark| content.contains(mark)) {
        let some: Vec<&str> = content.iter().take(3).map(String::as_str).collect();
        let more = if content.len() > some.len() { ", ..." } else { "" };
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
            "database {database} has {name}, which assay did not make and which would execute foreign code in assay's \
             statements: remove it, or name another database"
        )));
    }
    let mut marked = read(connection, database)?;
    let mut ours = marked.tables();
    ours.extend(marks);
    marked.foreign = content.difference(&ours).cloned().collect();
    Ok(Some(marked))
}

/// Name of a run's procedure for sessions of `schema`; `claim` is the session that holds the run's claim.
pub(super) fn loop_name(claim: u32, schema: u32) -> String {
    format!("{LOOP}{claim}_{schema}")
}

/// Prefix of the names of a run's procedures.
pub(super) fn loops_of(claim: u32) -> String {
    format!("{LOOP}{claim}_")
}

/// Drops the procedures of LOOP=server with this prefix: those of one run or, if no run is active, all of them.
pub(super) fn drop_loops(connection: &mut Connection, begin: &str) -> Result<(), EngineError> {
    let doing = told("removing procedures of LOOP=server");
    let loops = connection.rows(&format!(
        "select routine_name from information_schema.routines where {} and left(routine_name, {}) = '{begin}'",
        our_loops(),
        begin.len()
    ));
    for name in loops.map_err(&doing)?.into_iter().flatten().flatten() {
        let wait = format!("set lock_wait_timeout = {LOCK_WAIT_S}");
        connection.run(&wait).map_err(&doing)?;
        let drop = format!("drop procedure if exists {name}");
        connection.run(&drop).map_err(&doing)?;
    }
    Ok(())
}

/// Drops what killed runs left; only call it while no run is active.
pub(super) fn drop_left_loops(connection: &mut Connection) -> Result<(), EngineError> {
    drop_loops(connection, LOOP)
}

fn our_loops() -> String {
    format!(
        "(routine_schema = database() and left(routine_name, {}) = '{LOOP}' and routine_comment = '{OURS}')",
        LOOP.len()
    )
}

/// Names of all tables, routines and events of the database except our loop procedures.
fn content(connection: &mut Connection) -> Result<BTreeSet<String>, super::conn::MyError> {
    let rows = connection.rows(&format!(
        "select table_name from information_schema.tables where table_schema = database() union all \
         select concat(routine_name, '()') from information_schema.routines where routine_schema = database() \
         and not {} \
         union all select concat('event ', event_name) from information_schema.events where event_schema = database()",
        our_loops()
    ))?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

fn has_row(connection: &mut Connection, content: &BTreeSet<String>) -> bool {
    content.contains(DATA_SET)
        && connection.number(&format!("select count(*) from {DATA_SET}")).is_ok_and(|rows| rows > 0)
}

/// Reads the marker's tables.
fn read(connection: &mut Connection, database: &str) -> Result<Marked, EngineError> {
    let doing = format!("reading {DATA_SET}");
    let doing = told(&doing);
    let mut rows = |sql: &str| connection.rows(sql).map_err(&doing);
    let place = format!("database {database}");
    let at = At::tables(&place);
    Marked::<()>::known_format(&at, &rows(&format!("select format from {DATA_SET}"))?)?;
    let values = rows(&format!(
        "select data_set, seed, block_bytes, scale_blocks, scan_blocks, obfuscate, compress_pct, unique_index, \
         checksum, date_format(created, '%Y-%m-%d %H:%i:%sZ') from {DATA_SET}"
    ))?;
    Marked::read(&at, values, &rows(&format!("select n, state from {SCHEMAS}"))?)
}

impl Marker {
    /// The statements that create it, in order; they first drop what a killed prepare left of it.
    pub(super) fn create(&self) -> Vec<String> {
        let values: Vec<String> = self.values().iter().map(|value| literal(value)).collect();
        let table = format!("engine=InnoDB character set latin1 comment='{OURS}'");
        vec![
            format!("drop table if exists {DATA_SET}, {SCHEMAS}"),
            format!("create table {SCHEMAS} (n int primary key, state varchar(16) not null) {table}"),
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
}

/// Records SLOB schemas as loading, before their tables exist.
pub(super) fn note_loading(schemas: &[u32]) -> String {
    let values: Vec<String> = schemas.iter().map(|n| format!("({n}, 'loading')")).collect();
    format!("replace into {SCHEMAS} values {}", values.join(", "))
}

/// Records a SLOB schema as loaded and verified.
pub(super) fn note_loaded(n: u32) -> String {
    format!("update {SCHEMAS} set state = 'loaded' where n = {n} and state = 'loading'")
}

/// Records that a SLOB schema is about to be removed.
pub(super) fn note_going(n: u32) -> String {
    format!("update {SCHEMAS} set state = 'loading' where n = {n}")
}

/// Drops the tables of a SLOB schema, then removes it from the marker.
pub(super) fn drop_schema(n: u32) -> [String; 2] {
    [
        format!("drop table if exists {}, {}", rows_table(n), scan_table(n)),
        format!("delete from {SCHEMAS} where n = {n}"),
    ]
}

/// Drops the marker's tables, the last step of a removal; first deletes the row that declares the data set.
pub(super) fn drop_marker() -> [String; 2] {
    [format!("delete from {DATA_SET}"), format!("drop table if exists {DATA_SET}, {SCHEMAS}")]
}
