//! The tables of a data set, and the two small ones that describe it: `assay_data_set` has one row, `assay_schemas` one
//! for each SLOB schema, `loading` from before its tables exist until it is loaded and verified. A change and its note
//! are one transaction.

use super::file::{Db, File, WAL};
use crate::marked::{At, FORMAT, Marked, Marker};
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS};
use assay_run::engine::EngineError;
use assay_run::plan::RedoStress;

const DATA_SET: &str = "assay_data_set";
const SCHEMAS: &str = "assay_schemas";
/// Bytes of a page that a row leaves beside its filler: its columns, their header, the page's own, and some room.
const BESIDE_FILLER: u64 = (COLUMNS * COLUMN_BYTES) as u64 + 144;

/// The end of a query for everything in the database that somebody made.
pub(super) const MADE: &str = "from sqlite_schema where name not like 'sqlite\\_%' escape '\\' order by name";

pub(super) fn rows_table(n: u32) -> String {
    format!("cf1_{n}")
}

pub(super) fn scan_table(n: u32) -> String {
    format!("cf2_{n}")
}

pub(super) fn index(n: u32) -> String {
    format!("i_cf1_{n}")
}

/// Bytes of the filler, which keep a second row off the page.
pub(super) fn filler_bytes(page: u64) -> u64 {
    page - BESIDE_FILLER
}

fn column_names() -> Vec<String> {
    (2..2 + COLUMNS).map(|n| format!("c{n}")).collect()
}

pub(super) fn create_table(table: &str) -> String {
    let columns: Vec<String> = column_names().iter().map(|name| format!("{name} text not null")).collect();
    format!("CREATE TABLE {table} (custid integer not null, {}, filler blob not null)", columns.join(", "))
}

pub(super) fn create_index(n: u32, unique: bool) -> String {
    let unique = if unique { "UNIQUE " } else { "" };
    format!("CREATE {unique}INDEX {} ON {} (custid)", index(n), rows_table(n))
}

/// Inserts a row: `?1` is its place, `?2` its key, then one text for all columns, or one for each.
pub(super) fn insert(table: &str, page: u64, different: bool) -> String {
    let value = |at: usize| if different { format!("?{}", at + 3) } else { "?3".to_owned() };
    let (names, values): (Vec<String>, Vec<String>) = (column_names(), (0..COLUMNS).map(value).collect());
    format!(
        "insert into {table} (rowid, custid, {}, filler) values (?1, ?2, {}, zeroblob({}))",
        names.join(", "),
        values.join(", "),
        filler_bytes(page)
    )
}

/// Selects rows of keys `?1` to `?2`; `c2` must be read from the table.
pub(super) fn select(n: u32) -> String {
    format!("select count(c2) from {} indexed by {} where custid between ?1 and ?2", rows_table(n), index(n))
}

/// Columns that an update changes.
pub(super) fn changed_columns(redo: RedoStress) -> Vec<String> {
    match redo {
        RedoStress::Lite => vec!["c2".to_owned(), format!("c{}", 1 + COLUMNS)],
        RedoStress::Heavy => column_names(),
    }
}

/// Updates rows: the new columns, then the keys.
pub(super) fn update(n: u32, redo: RedoStress) -> String {
    let columns = changed_columns(redo);
    let set: Vec<String> = (1..).zip(&columns).map(|(at, name)| format!("{name} = ?{at}")).collect();
    let (first, last) = (columns.len() + 1, columns.len() + 2);
    format!(
        "update {} indexed by {} set {} where custid between ?{first} and ?{last}",
        rows_table(n),
        index(n),
        set.join(", ")
    )
}

/// Reads every row of the scan table.
pub(super) fn scan(n: u32) -> String {
    format!("select count(c2) from {}", scan_table(n))
}

/// Rows with a column of a wrong size.
pub(super) fn wrong_sizes(page: u64) -> String {
    let right: Vec<String> = column_names().iter().map(|name| format!("length({name}) = {COLUMN_BYTES}")).collect();
    format!("sum(not ({} and length(filler) = {}))", right.join(" and "), filler_bytes(page))
}

/// Examines the database without changing anything.
///
/// # Errors
/// `Unusable` for a database with tables but no marker of assay, or triggers; `Damaged` for a marker that no assay wrote.
pub(super) fn find(db: &Db, at: &File) -> Result<Option<Marked>, EngineError> {
    let rows = |sql: &str| db.rows(sql, []).map_err(at.told("reading the marker"));
    let content: Vec<[String; 3]> = rows(&format!("select type, name, tbl_name {MADE}"))?
        .into_iter()
        .filter_map(|row| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().try_into().ok())
        .collect();
    if content.is_empty() {
        db.ours().map_err(at.told("reading the marker"))?;
        return Ok(None);
    }
    let there = |table: &str| content.iter().any(|[_, name, _]| name == table);
    if !there(DATA_SET) || !there(SCHEMAS) {
        return Err(foreign(at, content.iter().map(|[_, name, _]| name.as_str()), DATA_SET));
    }
    if let Some([_, name, table]) = content.iter().find(|[kind, ..]| kind == "trigger") {
        return Err(EngineError::Unusable(format!(
            "{} has trigger {name} on {table}, which assay did not make and which would execute foreign code in assay's \
             statements: remove it, or name another file",
            at.shown()
        )));
    }
    let place = at.shown();
    let told = At::tables(&place);
    Marked::<()>::known_format(&told, &rows("select format from assay_data_set")?)?;
    let values = rows(
        "select data_set, seed, block_bytes, scale_blocks, scan_blocks, obfuscate, compress_pct, unique_index, checksum, \
         created from assay_data_set",
    )?;
    let mut marked = Marked::read(&told, values, &rows("select n, state from assay_schemas order by n")?)?;
    let of_schemas = marked.loaded.union(&marked.loading).flat_map(|n| [rows_table(*n), scan_table(*n), index(*n)]);
    let ours: Vec<String> = of_schemas.chain([DATA_SET, SCHEMAS].map(str::to_owned)).collect();
    marked.foreign = content.into_iter().map(|[_, name, _]| name).filter(|name| !ours.contains(name)).collect();
    db.ours().map_err(at.told("reading the marker"))?;
    Ok(Some(marked))
}

/// The error for a database of others.
pub(super) fn foreign<'a>(at: &File, content: impl Iterator<Item = &'a str>, marker: &str) -> EngineError {
    let names: Vec<&str> = content.take(4).collect();
    let more = if names.len() > 3 { ", ..." } else { "" };
    EngineError::Unusable(format!(
        "{} does not belong to this test: it contains {}{more} and no {marker}; nothing was touched. Name a file that does \
         not exist yet",
        at.shown(),
        names[..names.len().min(3)].join(", ")
    ))
}

/// Makes an empty database one with pages of this size, in WAL mode. A file that exists gets another size only by VACUUM
/// outside WAL mode.
///
/// # Errors
/// `Unusable`: SQLite did not do it.
pub(super) fn begin(db: &Db, at: &File, page: u64) -> Result<(), EngineError> {
    let doing = at.told("beginning the load");
    db.0.execute_batch(&format!("pragma journal_mode = delete; pragma page_size = {page}; vacuum")).map_err(&doing)?;
    let (mode, is) = (db.journal_mode("= wal").map_err(&doing)?, at.page(db)?);
    if mode == WAL && is == page {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "{} has pages of {is} bytes and journal mode {mode}, though {page} and {WAL} were asked for; name another file",
        at.shown()
    )))
}

/// Creates the marker.
pub(super) fn create(db: &Db, marker: &Marker) -> rusqlite::Result<()> {
    let mut values = marker.values();
    values.push(marker.checksum());
    let values: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
    db.atomic(&format!(
        "drop table if exists {DATA_SET}; drop table if exists {SCHEMAS}; \
         create table {SCHEMAS} (n integer primary key, state text not null); \
         create table {DATA_SET} (format integer not null, data_set text, seed text, block_bytes text, scale_blocks text, \
         scan_blocks text, obfuscate text, compress_pct text, unique_index text, checksum text, created text); \
         insert into {DATA_SET} values ({FORMAT}, {}, strftime('%Y-%m-%d %H:%M:%SZ', 'now'))",
        values.join(", ")
    ))
}

/// Records a state of a SLOB schema.
pub(super) fn note(db: &Db, n: u32, state: &str) -> rusqlite::Result<()> {
    db.atomic(&format!("insert or replace into {SCHEMAS} values ({n}, '{state}')"))
}

/// Drops the tables of a SLOB schema and its note.
pub(super) fn remove(db: &Db, n: u32) -> rusqlite::Result<()> {
    db.atomic(&format!(
        "drop table if exists {}; drop table if exists {}; delete from {SCHEMAS} where n = {n}",
        rows_table(n),
        scan_table(n)
    ))
}

/// Drops the marker, the last step of a removal.
pub(super) fn remove_all(db: &Db) -> rusqlite::Result<()> {
    db.atomic(&format!("drop table {SCHEMAS}; drop table {DATA_SET}"))
}
