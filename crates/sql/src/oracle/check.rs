//! Verifies a data set after a load and in `assay check`.

use super::Oracle;
use super::marker::Marker;
use super::session::{Bind, OraError, Session, told};
use super::sql;
use crate::checked::{Findings, Level, damaged, scattered};
use crate::slob::{Checked, Job};
use assay_measure::record::Figure;
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS};
use assay_run::engine::EngineError;

/// Verifies one SLOB schema in a check.
pub(super) fn each(job: &Job<Oracle, Checked>, reader: &mut Box<dyn Session>, n: u32) -> Result<Findings, EngineError> {
    let found = schema(&mut **reader, &job.what.marker, n, job.what.level)?;
    job.checked();
    Ok(found)
}

/// Verifies one SLOB schema.
///
/// # Errors
/// `Damaged` with table, expected and actual value; the server's.
pub(super) fn schema(
    session: &mut dyn Session,
    marker: &Marker,
    n: u32,
    level: Level,
) -> Result<Findings, EngineError> {
    let rows = sql::rows_table(n);
    shape(session, &rows)?;
    indexes(session, n, marker.unique)?;
    keys(session, n, marker.scale)?;
    let mut segments = segment(session, &rows)?;
    let unread = || Figure::na("CHECK=sampled");
    let (mut blocks, mut correlation) = (unread(), unread());
    if level != Level::Sampled {
        let said = content(session, &rows, marker.scale)?;
        correlation = scattered(&rows, marker.scale, said.as_deref())?;
        blocks = marker.scale.into();
    }
    if marker.scan_blocks > 0 {
        let scan = sql::scan_table(n);
        shape(session, &scan)?;
        segments = segments.plus(&segment(session, &scan)?);
        if level != Level::Sampled {
            content(session, &scan, marker.scan_blocks)?;
            blocks = blocks.plus(&marker.scan_blocks.into());
        }
    }
    let mut found = Findings::default();
    found.sum("verified_schemas", "SLOB schemas verified", 1);
    found.sum("verified_rows", "Rows verified", marker.scale + marker.scan_blocks);
    found.sum("verified_blocks", "Blocks that hold them", blocks);
    found.sum("segment_blocks", "Blocks of the tables' segments", segments);
    found.most("key_place_correlation", "Largest rank correlation of key and place", correlation);
    Ok(found)
}

/// Values of a row, with NULL as empty text.
fn values(session: &mut dyn Session, sql: &str, table: &str) -> Result<Vec<Vec<String>>, OraError> {
    let name = table.to_ascii_uppercase();
    let rows = session.rows(sql, &[Bind::Text(&name)])?;
    let text = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default).collect();
    Ok(rows.into_iter().map(text).collect())
}

/// Checks columns and storage of a table.
fn shape(session: &mut dyn Session, table: &str) -> Result<(), EngineError> {
    let doing = format!("reading the definition of {table}");
    let doing = told(&doing);
    let is = values(session, sql::COLUMNS_OF, table).map_err(&doing)?.concat();
    if is.is_empty() {
        return Err(damaged(table, "the table is missing"));
    }
    let mut must = vec!["custid number(10)".to_owned()];
    must.extend((2..2 + COLUMNS).map(|column| format!("c{column} varchar2({COLUMN_BYTES})")));
    if is != must {
        return Err(damaged(table, "its columns were changed"));
    }
    let kept = values(session, sql::TABLE_IS, table).map_err(&doing)?.concat();
    let must = ["99", "DISABLED", "NO", "N", "HEAP", "DISABLED"];
    if kept != must {
        return Err(damaged(
            table,
            &format!(
                "PCTFREE, compression, partitions, temporary, kind and row movement are {}, not {}",
                kept.join(", "),
                must.join(", ")
            ),
        ));
    }
    Ok(())
}

fn indexes(session: &mut dyn Session, n: u32, unique: bool) -> Result<(), EngineError> {
    let table = sql::rows_table(n);
    let is = values(session, sql::INDEXES_OF, &table).map_err(told("reading the indexes"))?.concat();
    let unique = if unique { "unique" } else { "nonunique" };
    let must = [format!("{} custid {unique} valid visible", sql::index(n))];
    if is == must {
        return Ok(());
    }
    Err(damaged(&table, &format!("its indexes are [{}], not [{}]", is.join(", "), must[0])))
}

/// Checks through the index that each key exists once.
fn keys(session: &mut dyn Session, n: u32, scale: u64) -> Result<(), EngineError> {
    let rows = session.rows(&sql::verify_keys(n), &[]).map_err(told("reading the keys"))?;
    let is: Vec<String> = rows.into_iter().flatten().map(Option::unwrap_or_default).collect();
    let all = scale.to_string();
    let must = [all.as_str(), &all, "1", &all];
    if is == must {
        return Ok(());
    }
    Err(damaged(
        &sql::rows_table(n),
        &format!("rows with a key, different keys, first and last key are {}, not {}", is.join(", "), must.join(", ")),
    ))
}

/// Checks that each block has one row of the right size; returns the server's rank correlation of key and position.
fn content(session: &mut dyn Session, table: &str, rows: u64) -> Result<Option<String>, EngineError> {
    let asked = session.rows(&sql::verify(table), &[]).map_err(told("reading the rows"))?;
    let mut is: Vec<Option<String>> = asked.into_iter().flatten().collect();
    let correlation = is.pop().flatten();
    let is: Vec<String> = is.into_iter().map(Option::unwrap_or_default).collect();
    let all = rows.to_string();
    let must = [all.as_str(), &all, "1", &all, "0", &all];
    if is == must {
        return Ok(correlation);
    }
    Err(damaged(
        table,
        &format!(
            "rows, different keys, first and last key, rows of a wrong size and blocks that hold rows are {}, not {}",
            is.join(", "),
            must.join(", ")
        ),
    ))
}

/// Blocks of a table's segment, including free and bitmap blocks.
fn segment(session: &mut dyn Session, table: &str) -> Result<Figure, EngineError> {
    let is = values(session, sql::SEGMENT, table).map_err(told("reading the size of a table"))?;
    let blocks: Option<u64> = is.concat().first().and_then(|text| text.parse().ok());
    Ok(Figure::known(blocks, "the server does not report it"))
}
