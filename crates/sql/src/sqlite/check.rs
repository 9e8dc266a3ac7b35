//! Verifies a data set after a load and in `assay check`.

use super::file::{Db, File};
use super::{Sqlite, marker};
use crate::checked::{Findings, Level, damaged, scattered};
use crate::marked::Marker;
use crate::orders::Rows;
use crate::slob::{Checked, Job};
use assay_measure::record::Figure;
use assay_run::engine::EngineError;

/// Verifies one SLOB schema in a check.
pub(super) fn each(job: &Job<Sqlite, Checked>, db: &mut Db, n: u32) -> Result<Findings, EngineError> {
    let found = schema(&job.at, db, &job.what.marker, n, job.what.level)?;
    job.checked();
    Ok(found)
}

/// Verifies one SLOB schema.
///
/// # Errors
/// `Damaged` with table, expected and actual value; SQLite's.
pub(super) fn schema(at: &File, db: &Db, marker: &Marker, n: u32, level: Level) -> Result<Findings, EngineError> {
    let reads = Reads { at, db, page: marker.block_bytes };
    let rows = marker::rows_table(n);
    reads.shape(&rows, &[marker::create_table(&rows), marker::create_index(n, marker.unique)])?;
    reads.keys(n, marker.scale)?;
    let mut correlation = Figure::na("CHECK=sampled");
    let mut pages = correlation.clone();
    if level != Level::Sampled {
        let said = reads.content(&rows, marker.scale)?;
        correlation = scattered(&rows, marker.scale, Some(&said))?;
        pages = marker.scale.into();
    }
    if marker.scan_blocks > 0 {
        let scan = marker::scan_table(n);
        reads.shape(&scan, &[marker::create_table(&scan)])?;
        if level != Level::Sampled {
            reads.content(&scan, marker.scan_blocks)?;
            pages = pages.plus(&marker.scan_blocks.into());
        }
    }
    if level == Level::Full {
        reads.is_sound(&rows)?;
    }
    let mut found = Findings::default();
    found.sum("verified_schemas", "SLOB schemas verified", 1);
    found.sum("verified_rows", "Rows verified", marker.scale + marker.scan_blocks);
    found.sum("verified_pages", "Pages that hold one row each", pages);
    found.most("key_place_correlation", "Largest rank correlation of key and place", correlation);
    Ok(found)
}

struct Reads<'a> {
    at: &'a File,
    db: &'a Db,
    page: u64,
}

impl Reads<'_> {
    /// The values that a query returns, with NULL as empty text.
    fn values(&self, sql: &str, table: &str) -> Result<Vec<String>, EngineError> {
        let doing = format!("checking {table}");
        let rows: Rows = self.db.rows(sql, []).map_err(self.at.told(&doing))?;
        Ok(rows.into_iter().flatten().map(Option::unwrap_or_default).collect())
    }

    fn same(&self, sql: &str, table: &str, what: &str, must: &[String]) -> Result<(), EngineError> {
        let is = self.values(sql, table)?;
        if is == must {
            return Ok(());
        }
        Err(damaged(table, &format!("{what} are {}, not {}", is.join(", "), must.join(", "))))
    }

    /// Checks definitions.
    fn shape(&self, table: &str, must: &[String]) -> Result<(), EngineError> {
        let sql = format!("select sql from sqlite_schema where tbl_name = '{table}' order by type desc");
        self.same(&sql, table, "its definitions", must)
    }

    /// Checks through the index that each key exists once.
    fn keys(&self, n: u32, scale: u64) -> Result<(), EngineError> {
        let (table, index) = (marker::rows_table(n), marker::index(n));
        let sql = format!(
            "select count(custid), count(distinct custid), min(custid), max(custid) from {table} indexed by {index} \
             where custid >= 0"
        );
        let all = scale.to_string();
        let must = [all.clone(), all.clone(), "1".to_owned(), all];
        self.same(&sql, &table, "rows with a key, different keys, first and last key", &must)
    }

    /// Checks that each page has one row of the right size; returns the rank correlation of key and place.
    fn content(&self, table: &str, rows: u64) -> Result<String, EngineError> {
        let sql = format!(
            "select count(*), min(custid), max(custid), min(rowid), max(rowid), {} from {table}",
            marker::wrong_sizes(self.page)
        );
        let (one, all) = ("1".to_owned(), rows.to_string());
        let must = [all.clone(), one.clone(), all.clone(), one, all.clone(), "0".to_owned()];
        let what = "rows, first and last key, first and last place and rows of a wrong size";
        self.same(&sql, table, what, &must)?;
        let sql = format!(
            "select sum(pagetype = 'leaf'), sum(pagetype = 'leaf' and ncell = 1), sum(pagetype = 'overflow') from dbstat \
             where name = '{table}'"
        );
        let must = [all.clone(), all, "0".to_owned()];
        self.same(&sql, table, "pages of rows, those of them with one row and overflow pages", &must)?;
        // Both are the numbers from 1 to n, so their ranks are themselves.
        let sql = format!(
            "select (sum(1.0 * rowid * custid) / count(*) - avg(custid) * avg(custid)) \
             / (sum(1.0 * custid * custid) / count(*) - avg(custid) * avg(custid)) from {table}"
        );
        Ok(self.values(&sql, table)?.concat())
    }

    /// Has SQLite check its structure, and the index against the rows.
    fn is_sound(&self, table: &str) -> Result<(), EngineError> {
        let said = self.values(&format!("pragma integrity_check({table})"), table)?;
        if said == ["ok"] {
            return Ok(());
        }
        Err(damaged(table, &said.join("; ")))
    }
}
