//! Verifies a data set after a load and in `assay check`.

use super::Mariadb;
use super::conn::{Connection, told};
use super::layout::{INDEX, Sizes, column_names, rows_table, scan_table};
use super::marker::Marker;
use crate::checked::{Findings, Level, damaged, scattered};
use crate::slob::{Checked, Job};
use assay_measure::record::Figure;
use assay_run::dataset::rows::COLUMN_BYTES;
use assay_run::engine::EngineError;

/// Rows of a table that a sampled check reads.
const SAMPLED_ROWS: u64 = 2000;

/// Pages of a table, besides those of its rows, that the count may include.
const SPARE_PAGES: u64 = 4;

/// Verifies one SLOB schema in a check.
pub(super) fn each(job: &Job<Mariadb, Checked>, reader: &mut Connection, n: u32) -> Result<Findings, EngineError> {
    let found = schema(reader, &job.what.marker, n, job.what.level)?;
    job.checked();
    Ok(found)
}

/// Verifies one SLOB schema.
///
/// # Errors
/// `Damaged` with table, expected and actual value; the server's.
pub(super) fn schema(
    connection: &mut Connection,
    marker: &Marker,
    n: u32,
    level: Level,
) -> Result<Findings, EngineError> {
    let rows = rows_table(n);
    shape(connection, &rows)?;
    index(connection, &rows, marker.unique)?;
    keys(connection, &rows, marker.scale)?;
    let said = content(connection, marker, &rows, marker.scale, level)?;
    let correlation = match level {
        Level::Sampled => Figure::na("CHECK=sampled"),
        _ => scattered(&rows, marker.scale, said.as_deref())?,
    };
    let mut pages = leaf_pages(connection, &rows, marker.scale)?;
    if marker.scan_blocks > 0 {
        let scan = scan_table(n);
        shape(connection, &scan)?;
        content(connection, marker, &scan, marker.scan_blocks, level)?;
        pages = pages.plus(&leaf_pages(connection, &scan, marker.scan_blocks)?);
    }
    let mut found = Findings::default();
    found.sum("verified_schemas", "SLOB schemas verified", 1);
    found.sum("verified_rows", "Rows verified", marker.scale + marker.scan_blocks);
    found.sum("verified_pages", "Pages that hold them", pages);
    found.most("key_place_correlation", "Largest rank correlation of key and place", correlation);
    Ok(found)
}

/// Checks columns, engine and row format.
fn shape(connection: &mut Connection, table: &str) -> Result<(), EngineError> {
    let doing = format!("reading the definition of {table}");
    let doing = told(&doing);
    let rows = connection
        .rows(&format!(
            "select lower(column_name), replace(lower(column_type), 'bigint(20)', 'bigint'), is_nullable from information_schema.columns \
             where table_schema = database() and table_name = '{table}' order by ordinal_position"
        ))
        .map_err(&doing)?;
    let is: Vec<String> = rows.into_iter().map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" ")).collect();
    if is.is_empty() {
        return Err(damaged(table, "the table is missing"));
    }
    let mut must = vec!["pk bigint NO".to_owned(), "custid bigint YES".to_owned()];
    must.extend(column_names().map(|name| format!("{name} char({COLUMN_BYTES}) YES")));
    let (filler, fixed) = is.split_last().expect("it is not empty");
    if fixed != must || !filler.starts_with("filler varchar(") {
        return Err(damaged(table, "its columns were changed"));
    }
    let format = connection
        .value(&format!(
            "select concat(engine, ' ', row_format) from information_schema.tables \
             where table_schema = database() and table_name = '{table}'"
        ))
        .map_err(&doing)?;
    match format.as_str() {
        "InnoDB Dynamic" => Ok(()),
        other => Err(damaged(table, &format!("its row format is {other}, not InnoDB Dynamic"))),
    }
}

fn index(connection: &mut Connection, table: &str, unique: bool) -> Result<(), EngineError> {
    let rows = connection
        .rows(&format!(
            "select index_name, column_name, non_unique from information_schema.statistics \
             where table_schema = database() and table_name = '{table}' order by index_name, seq_in_index"
        ))
        .map_err(told("reading the indexes"))?;
    let is: Vec<String> = rows.into_iter().map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" ")).collect();
    let must = [format!("{INDEX} custid {}", u8::from(!unique)), "PRIMARY pk 0".to_owned()];
    if is.iter().any(|index| !must.contains(index)) || is.len() != must.len() {
        return Err(damaged(table, "its indexes were changed"));
    }
    Ok(())
}

/// Checks through the index that each key exists once.
fn keys(connection: &mut Connection, table: &str, scale: u64) -> Result<(), EngineError> {
    let rows = connection
        .rows(&format!(
            "select count(custid), count(distinct custid), coalesce(min(custid), 0), coalesce(max(custid), 0) \
             from {table} force index ({INDEX}) where custid is not null"
        ))
        .map_err(told("reading the keys"))?;
    let is: Vec<u64> =
        rows.into_iter().flatten().map(|value| value.and_then(|text| text.parse().ok()).unwrap_or(0)).collect();
    if is == [scale, scale, 1, scale] {
        return Ok(());
    }
    Err(damaged(
        table,
        &format!("rows, different keys, first and last key are {is:?}, not [{scale}, {scale}, 1, {scale}]"),
    ))
}

/// Checks live rows, pads and their sizes. Returns the server's rank correlation of key and position if all rows are read.
fn content(
    connection: &mut Connection,
    marker: &Marker,
    table: &str,
    rows: u64,
    level: Level,
) -> Result<Option<String>, EngineError> {
    let sizes = Sizes::of_page(marker.block_bytes)?;
    let each = sizes.rows;
    let groups = match level {
        Level::Sampled => rows.min(SAMPLED_ROWS / each),
        _ => rows,
    };
    let wrong: Vec<String> = column_names().map(|name| format!("char_length({name}) <> {COLUMN_BYTES}")).collect();
    let asked = connection
        .rows(&format!(
            "select count(*), count(custid), \
             coalesce(sum(custid is not null and ({} or length(filler) <> {} or pk % {each} <> 1)), 0), \
             coalesce(sum(custid is null and (c2 is not null or length(filler) <> {} or pk % {each} = 1)), 0), \
             1e0 - 6e0 * sum(if(custid is null, 0e0, pow(custid - (pk - 1) div {each} - 1, 2))) / ({rows}e0 * ({rows}e0 * {rows}e0 - 1)) \
             from {table} force index (primary) where pk <= {}",
            wrong.join(" or "),
            sizes.live,
            sizes.pad,
            each * groups
        ))
        .map_err(told("reading the rows"))?;
    let row = asked.into_iter().next().unwrap_or_default();
    let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    let is: Vec<u64> = (0..4).map(|at| text(at).parse().unwrap_or(u64::MAX)).collect();
    if is != [each * groups, groups, 0, 0] {
        return Err(damaged(
            table,
            &format!(
                "rows, rows with a key, rows and pads of a wrong size are {is:?}, not [{}, {groups}, 0, 0]",
                each * groups
            ),
        ));
    }
    Ok(row.get(4).cloned().flatten())
}

/// Number of pages with rows, from recalculated statistics: one for each row and its pads. n/a if the user may not read
/// the statistics.
fn leaf_pages(connection: &mut Connection, table: &str, rows: u64) -> Result<Figure, EngineError> {
    let denied = || Ok(Figure::na("the user may not read mysql.innodb_index_stats"));
    // This only updates statistics; without the privilege, those of the load are used.
    let _ = connection.run(&format!("analyze table {table}"));
    let asked = connection.rows(&format!(
        "select stat_name, stat_value from mysql.innodb_index_stats where database_name = database() \
         and table_name = '{table}' and index_name = 'PRIMARY' and stat_name in ('n_leaf_pages', 'size')"
    ));
    let asked = match asked {
        Ok(rows) => rows,
        Err(error) if error.is_fatal() => return Err(told("reading the page counts")(error)),
        Err(_) => return denied(),
    };
    let of = |name: &str| {
        let row = asked.iter().find(|row| row[0].as_deref() == Some(name))?;
        row[1].as_ref()?.parse::<u64>().ok()
    };
    let pages = match (of("n_leaf_pages"), of("size")) {
        // So small a table has no separate leaf segment: all its pages except the root are leaf pages.
        (Some(1), Some(size)) => size.saturating_sub(1),
        (Some(pages), _) => pages,
        (None, _) => return denied(),
    };
    let most = rows + rows / 100 + SPARE_PAGES;
    if (rows..=most).contains(&pages) {
        return Ok(pages.into());
    }
    Err(damaged(
        table,
        &format!("{rows} rows are on {pages} pages, not on {rows} to {most}: there is not one row per page"),
    ))
}
