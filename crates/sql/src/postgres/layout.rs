//! Names and structure of a data set in a PostgreSQL database.
//!
//! Defines names and the statements that create objects; uses no connection. Everything is in one PostgreSQL schema
//! (PG_SCHEMA), so that our names cannot conflict with others. `docs/design/postgres-layout.md` explains the row
//! layout.

use assay_measure::config::Settings;
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS};
use assay_run::engine::EngineError;
use assay_run::plan::RedoStress;
use std::fmt::Write;

/// Most bytes of an identifier (`NAMEDATALEN` - 1); the server silently cuts longer ones.
const IDENTIFIER_BYTES_MAX: usize = 63;

/// Percent of a page filled by a load: a second row never fits.
pub(super) const FILLFACTOR: u32 = 10;

/// Names of the filler columns.
pub(super) fn column_names() -> impl Iterator<Item = String> {
    (2..2 + COLUMNS).map(|column| format!("c{column}"))
}

/// Numbers of the columns an update changes: the last two, or all. LITE changes neighbours, since PostgreSQL logs
/// everything between the first and the last changed byte: c2 and c20 would cost as much as all columns.
pub(super) fn changed_columns(redo: RedoStress) -> std::ops::RangeInclusive<u32> {
    match redo {
        RedoStress::Lite => 19..=20,
        RedoStress::Heavy => 2..=20,
    }
}

/// Types of all columns of a data set and its marker, all built into PostgreSQL.
pub(super) const COLUMN_TYPES: &[&str] = &["int4", "int8", "text", "bool", "timestamptz"];

/// Names in the database, quoted when used in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    schema: String,
}

impl Names {
    /// Names from the settings.
    ///
    /// # Errors
    /// `Usage` for a name that a user's PostgreSQL schema cannot have.
    pub(super) fn new(settings: &Settings) -> Result<Self, EngineError> {
        Self::of_schema(settings.text("PG_SCHEMA"))
    }

    /// Names in the PostgreSQL schema of this name.
    pub(super) fn of_schema(schema: &str) -> Result<Self, EngineError> {
        let refuse = |why: &str| {
            Err(EngineError::Usage(format!(
                "PG_SCHEMA={schema}: {why}; give the name of a schema that assay may create"
            )))
        };
        if schema.is_empty() {
            return refuse("a schema needs a name");
        }
        if schema.len() > IDENTIFIER_BYTES_MAX {
            return refuse("PostgreSQL's names end after 63 bytes");
        }
        if schema.contains('\0') {
            return refuse("a name cannot contain a zero byte");
        }
        if schema.starts_with("pg_") || schema == "information_schema" {
            return refuse("this schema belongs to PostgreSQL itself");
        }
        if schema == "public" {
            return refuse("this schema is shared by all users");
        }
        Ok(Self { schema: schema.to_owned() })
    }

    /// The PostgreSQL schema, unquoted, for messages and as a value.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// The PostgreSQL schema, for SQL.
    pub(super) fn schema_sql(&self) -> String {
        quote(&self.schema)
    }

    /// `cf1` of SLOB schema `n`, for SQL: one row per page, in random order.
    pub(super) fn rows_table(&self, n: u32) -> String {
        self.relation(&rows_name(n))
    }

    /// `cf2` of SLOB schema `n`, for SQL: the scan table.
    pub(super) fn scan_table(&self, n: u32) -> String {
        self.relation(&scan_name(n))
    }

    /// A relation of this PostgreSQL schema, for SQL.
    pub(super) fn relation(&self, name: &str) -> String {
        format!("{}.{}", self.schema_sql(), quote(name))
    }

    /// Creates `cf1` of SLOB schema `n`, without its index.
    pub(super) fn create_rows(&self, n: u32, storage: &Storage) -> String {
        create_table(&self.rows_table(n), storage)
    }

    /// Creates `cf2` of SLOB schema `n`. It has no index; its key is the row number.
    pub(super) fn create_scan(&self, n: u32, storage: &Storage) -> String {
        create_table(&self.scan_table(n), storage)
    }

    /// Creates the index of SLOB schema `n`.
    pub(super) fn create_index(&self, n: u32, unique: bool, storage: &Storage) -> String {
        format!(
            "create {}index {} on {} (custid){}",
            if unique { "unique " } else { "" },
            quote(&index_name(n)),
            self.rows_table(n),
            storage.tablespace_clause()
        )
    }
}

/// `cf1_<n>`
pub(super) fn rows_name(n: u32) -> String {
    format!("cf1_{n}")
}

/// `cf2_<n>`
pub(super) fn scan_name(n: u32) -> String {
    format!("cf2_{n}")
}

/// `i_cf1_<n>`
pub(super) fn index_name(n: u32) -> String {
    format!("i_cf1_{n}")
}

/// How tables are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Storage {
    /// Tablespace; empty means the database's default.
    pub(super) tablespace: String,
    /// Autovacuum stays on.
    pub(super) autovacuum: bool,
}

impl Storage {
    fn tablespace_clause(&self) -> String {
        if self.tablespace.is_empty() { String::new() } else { format!(" tablespace {}", quote(&self.tablespace)) }
    }
}

/// Creates a table with one row per page. Its columns are never compressed or moved out of line: an update must change
/// this page and no page of another relation. They have no statistics, since no query filters on them.
fn create_table(table: &str, storage: &Storage) -> String {
    let columns: String = column_names().map(|name| format!(", {name} text")).collect();
    let autovacuum = if storage.autovacuum { "" } else { ", autovacuum_enabled = off, toast.autovacuum_enabled = off" };
    let mut sql = format!(
        "create table {table} (custid bigint not null{columns}) with (fillfactor = {FILLFACTOR}{autovacuum}){};\nalter table {table} alter column custid set statistics 10",
        storage.tablespace_clause()
    );
    for name in column_names() {
        let _ = write!(sql, ", alter column {name} set storage plain, alter column {name} set statistics 0");
    }
    sql
}

/// Bytes of a heap tuple: header, key, and the columns with the four-byte length of uncompressed values.
pub(super) const TUPLE_BYTES: u64 = 24 + 8 + (COLUMNS * (COLUMN_BYTES + 4)) as u64;

/// Pages of a B-tree over `rows` keys: leaves of 20-byte entries filled to 90 %, and the levels above.
pub(super) fn index_pages(rows: u64, block_bytes: u64) -> u64 {
    // Header 24, special space 16, one high key; an entry takes 16 bytes and a line pointer 4.
    let fit = |percent: u64| ((block_bytes - 24 - 16) * percent / 100 / 20).max(2);
    let mut level = rows.div_ceil(fit(90)).max(1);
    let mut pages = 1 + level;
    while level > 1 {
        level = level.div_ceil(fit(70));
        pages += level;
    }
    pages
}

/// Quotes an identifier for SQL.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text value for SQL, independent of `standard_conforming_strings`.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!(" E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_quoted() {
        let names = Names::of_schema("a\"b").unwrap();
        assert_eq!(names.rows_table(7), "\"a\"\"b\".\"cf1_7\"");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), " E'a\\\\''b'");
    }

    #[test]
    fn names_that_are_not_ours_to_make_are_refused() {
        for name in ["", "public", "pg_catalog", "pg_x", "information_schema", &"x".repeat(64)] {
            assert!(Names::of_schema(name).is_err(), "{name}");
        }
        assert!(Names::of_schema(&"x".repeat(63)).is_ok());
    }

    #[test]
    fn slob_33_two_rows_never_fit_the_share_of_a_page_that_a_load_fills() {
        for block_bytes in [4096, 8192, 16_384, 32_768_u64] {
            let kept_free = block_bytes * u64::from(100 - FILLFACTOR) / 100;
            let room = block_bytes - 24;
            assert!(2 * (TUPLE_BYTES + 4) + kept_free > room, "{block_bytes}");
            assert!(TUPLE_BYTES + 4 <= room, "{block_bytes}");
        }
        assert_eq!(TUPLE_BYTES, 2540);
    }

    #[test]
    fn an_index_has_a_leaf_for_each_366_keys() {
        // A fresh server's own figures: 30 pages for 10,000 rows, 92 for 32,768.
        assert_eq!(index_pages(10_000, 8192), 30);
        assert_eq!(index_pages(32_768, 8192), 92);
        assert_eq!(index_pages(0, 8192), 2);
    }
}
