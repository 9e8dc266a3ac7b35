//! Verifies a data set: exact checks before a load counts as complete, and every row on request.
//!
//! All queries run with the rights of the tables' owner and need no extension.

use super::layout::{Names, column_names, index_name, literal, rows_name, scan_name};
use super::marker::{Marker, Ours, Own};
use super::own::{self, told};
use super::site::{Guard, Owner};
use super::wire::{Connection, Rows};
use super::{At, Postgres, growth};
use crate::checked::{Findings, Level, scattered};
use crate::slob::{Checked, Job};
use assay_measure::config::Settings;
use assay_measure::record::Figure;
use assay_run::dataset::lines::{decimal, text};
use assay_run::dataset::rows::{COLUMN_BYTES, COLUMNS};
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use serde_json::Value;
use std::time::Instant;

/// Approximate pages of each table that a sampled check reads: enough to tell a correlation from chance.
const SAMPLES: u64 = 12_000;

/// What is verified.
pub(super) struct Subject<'a> {
    pub(super) at: &'a At,
    pub(super) marker: &'a Marker,
    /// SLOB schema.
    pub(super) n: u32,
    pub(super) level: Level,
}

impl Subject<'_> {
    fn names(&self) -> &Names {
        &self.at.names
    }
}

/// The session of a check acts as the owner.
type Acting = Checked<Own, Owner>;

/// Checks a claimed data set.
///
/// # Errors
/// `Damaged` for the first violation; `Interrupted`; the server's.
pub(super) fn check(
    at: &At,
    ours: &Ours,
    keeper: &mut Connection,
    settings: &Settings,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let begun = Instant::now();
    let (names, marked) = (&at.names, &ours.marked);
    let tables = marked.tables(names, |_| true);
    let mut guard = Guard::stand(&at.options, names, &ours.owner, &tables, false)?;
    ours.owner.act(keeper)?;
    let grown = growth::find(keeper, names, marked)?;
    if growth::too_far(&grown) {
        return Err(EngineError::Damaged(growth::told_of(&grown)));
    }
    let job = Job::<Postgres, _>::check(at, marked, settings, ours.owner.clone());
    let findings = job.run(1, (reader, each), keeper, stop, progress)?;
    guard.end();
    let mut lines = findings.lines();
    if !grown.is_empty() {
        lines.push(text("grown", "Grown since the load", growth::told_of(&grown)));
    }
    lines.push(decimal("check_s", "Check time, s", begun.elapsed().as_secs_f64()));
    Ok(lines)
}

fn reader(job: &Job<Postgres, Acting>) -> Result<Connection, EngineError> {
    let mut connection = own::connect(&job.at.options).map_err(told("connecting"))?;
    job.what.own.act(&mut connection)?;
    Ok(connection)
}

fn each(job: &Job<Postgres, Acting>, connection: &mut Connection, n: u32) -> Result<Findings, EngineError> {
    let subject = Subject { at: &job.at, marker: &job.what.marker, n, level: job.what.level };
    let findings = verify(connection, &subject)?;
    job.checked();
    Ok(findings)
}

/// The error for a database without a data set.
pub(super) fn nothing_here(names: &Names) -> EngineError {
    EngineError::Unusable(format!(
        "the database has no data set in schema {}; run `assay prepare` first, or name another schema with PG_SCHEMA",
        names.schema()
    ))
}

/// Checks one SLOB schema.
///
/// # Errors
/// `Damaged` for the first violation; the server's.
pub(super) fn verify(connection: &mut Connection, subject: &Subject<'_>) -> Result<Findings, EngineError> {
    let doing = format!("verifying SLOB schema {}", subject.n);
    let mut prober = Prober { connection, subject, doing };
    // This session alone reads everything, in page order, with fixed plans.
    prober.sql(
        "set enable_seqscan = on; set synchronize_seqscans = off; set max_parallel_workers_per_gather = 0; set jit = off",
    )?;
    let [table, scan] = prober.shape()?;
    prober.keys()?;
    let sampled = prober.sample()?;
    if subject.marker.scan_blocks > 0 {
        prober.scan_rows()?;
    }
    let probed = prober.probe(table.pages)?;
    let (scale, block) = (subject.marker.scale, subject.marker.block_bytes);
    let mut found = Findings::default();
    found.sum("checked_schemas", "SLOB schemas verified", 1);
    found.sum("checked_rows", "Rows, each key from 1 to SCALE once", scale);
    found.most("max_key", "Largest key of each schema", scale);
    found.least("table_pages_min", "Pages of a table, fewest", table.pages);
    found.most("table_pages_max", "Pages of a table, most", table.pages);
    found.sum("table_bytes", "Tables, bytes", table.pages * block);
    found.sum("scan_table_bytes", "Scan tables, bytes", scan.pages * block);
    found.sum("index_pages", "Index pages of all schemas", table.index_pages);
    found.sum("toast_bytes", "Out-of-line bytes", (table.toast_pages + scan.toast_pages) * block);
    found.sum("sampled_pages", "Pages checked, each with one row", sampled.rows);
    found.most("rank_correlation", "Largest rank correlation of key and position", sampled.correlation);
    found.most("probe_pages", "Table pages that a range of WORK_UNIT keys touches", probed);
    found.sum("dirtied_pages", "Pages that these reads dirtied", sampled.dirtied_pages);
    Ok(found)
}

struct Prober<'a> {
    connection: &'a mut Connection,
    subject: &'a Subject<'a>,
    doing: String,
}

impl Prober<'_> {
    fn sql(&mut self, sql: &str) -> Result<Rows, EngineError> {
        self.connection.query(sql).map_err(told(&self.doing))
    }

    /// The only row of a query.
    fn row(&mut self, sql: &str) -> Result<Vec<Option<String>>, EngineError> {
        let rows = self.sql(sql)?.rows.into_iter().next();
        rows.ok_or_else(|| self.damaged("the catalog has no row about its tables"))
    }

    /// The only row of a query, as numbers.
    fn numbers<const N: usize>(&mut self, sql: &str) -> Result<[u64; N], EngineError> {
        let row = self.row(sql)?;
        self.as_numbers(&row)
    }

    fn as_numbers<const N: usize>(&self, row: &[Option<String>]) -> Result<[u64; N], EngineError> {
        let number = |text: &Option<String>| text.as_deref()?.parse().ok();
        let all: Option<Vec<u64>> = row.iter().map(number).collect();
        let all = all.and_then(|all| all.try_into().ok());
        all.ok_or_else(|| self.damaged(&format!("the server answers {row:?} where numbers are expected")))
    }

    fn damaged(&self, what: &str) -> EngineError {
        EngineError::Damaged(format!("SLOB schema {}: {what}", self.subject.n))
    }

    fn holds(&self, whether: bool, what: impl FnOnce() -> String) -> Result<(), EngineError> {
        if whether { Ok(()) } else { Err(self.damaged(&what())) }
    }

    /// Checks catalog and files: pages, storage of the columns, the index.
    fn shape(&mut self) -> Result<[TableFacts; 2], EngineError> {
        let marker = self.subject.marker;
        let name = rows_name(self.subject.n);
        let table = self.table_facts(&name)?;
        self.holds(table.plain_columns == COLUMNS as u64, || {
            format!("only {} of {COLUMNS} columns of {name} have storage PLAIN", table.plain_columns)
        })?;
        self.holds(table.index_is_good, || {
            format!("index {} is missing, not valid, or not on the key", index_name(self.subject.n))
        })?;
        let scan = match marker.scan_blocks {
            0 => TableFacts::default(),
            _ => self.table_facts(&scan_name(self.subject.n))?,
        };
        self.holds(table.toast_pages + scan.toast_pages == 0, || {
            format!("{} pages are out of line (TOAST)", table.toast_pages + scan.toast_pages)
        })?;
        for (name, pages, rows) in
            [(name, table.pages, marker.scale), (scan_name(self.subject.n), scan.pages, marker.scan_blocks)]
        {
            let most = growth::most(rows);
            self.holds((rows..=most).contains(&pages), || {
                format!("{name} has {pages} pages; {rows} to {most} are expected")
            })?;
        }
        Ok([table, scan])
    }

    fn table_facts(&mut self, name: &str) -> Result<TableFacts, EngineError> {
        let subject = self.subject;
        let columns: Vec<String> = column_names().collect();
        let row = self.connection.query(&format!(
            "select pg_relation_size(c.oid), \
             coalesce((select pg_relation_size(t.oid) from pg_class t where t.oid = c.reltoastrelid), 0), \
             (select count(*) from pg_attribute a where a.attrelid = c.oid and not a.attisdropped \
              and a.attstorage = 'p' and a.attname = any({})), \
             (select pg_relation_size(i.indexrelid) from pg_index i join pg_class x on x.oid = i.indexrelid \
              where i.indrelid = c.oid and x.relname = {}), \
             (select i.indisvalid and i.indisready and i.indkey::text = '1' and i.indpred is null and m.amname = 'btree' \
              from pg_index i join pg_class x on x.oid = i.indexrelid join pg_am m on m.oid = x.relam \
              where i.indrelid = c.oid and x.relname = {}) \
             from pg_class c join pg_namespace s on s.oid = c.relnamespace \
             where c.relkind = 'r' and s.nspname = {} and c.relname = {}",
            literal(&format!("{{{}}}", columns.join(","))),
            literal(&index_name(subject.n)),
            literal(&index_name(subject.n)),
            literal(subject.names().schema()),
            literal(name),
        ));
        let rows = row.map_err(told(&self.doing))?.rows;
        let row = rows.into_iter().next();
        let row = row.ok_or_else(|| self.damaged(&format!("table {name} does not exist")))?;
        let number = |at: usize| -> Result<u64, EngineError> {
            let text = row.get(at).and_then(Option::as_deref);
            let number = text.and_then(|text| text.parse().ok());
            number.ok_or_else(|| self.damaged(&format!("the catalog answers {row:?} about {name}")))
        };
        // This is NULL for a table without an index.
        let index_bytes = if row.get(3).is_some_and(Option::is_some) { number(3)? } else { 0 };
        let block = subject.marker.block_bytes;
        Ok(TableFacts {
            pages: number(0)? / block,
            toast_pages: number(1)? / block,
            plain_columns: number(2)?,
            index_pages: index_bytes / block,
            index_is_good: row.get(4).and_then(Option::as_deref) == Some("t"),
        })
    }

    /// Checks that the index contains every key from 1 to SCALE once.
    fn keys(&mut self) -> Result<(), EngineError> {
        let scale = self.subject.marker.scale;
        self.sql("set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexscan = on; set enable_indexonlyscan = on")?;
        let [rows, least, most, out_of_place] = self.numbers(&format!(
            "select count(*), coalesce(min(custid), 0), coalesce(max(custid), 0), count(*) filter (where custid <> place) \
             from (select custid, row_number() over (order by custid) as place from {}) as keys",
            self.subject.names().rows_table(self.subject.n)
        ))?;
        self.sql("set enable_seqscan = on; set enable_bitmapscan = on")?;
        let name = rows_name(self.subject.n);
        self.holds(rows == scale, || format!("{name} has {rows} rows; {scale} are expected"))?;
        self.holds(most == scale && least == 1, || {
            format!("the keys of {name} are {least} to {most}; 1 to {scale} are expected")
        })?;
        self.holds(out_of_place == 0, || format!("{out_of_place} keys of {name} are duplicate or missing"))
    }

    /// Checks pages: one row on each, of the right length, on a page unrelated to its key.
    fn sample(&mut self) -> Result<Sampled, EngineError> {
        let subject = self.subject;
        let scale = subject.marker.scale;
        let name = rows_name(subject.n);
        let mut table = subject.names().rows_table(subject.n);
        if subject.level != Level::Full && scale > SAMPLES {
            let percent = SAMPLES as f64 * 100.0 / scale as f64;
            table += &format!(" tablesample system ({percent}) repeatable ({})", subject.n);
        }
        let plan = self.explained(&format!("select count(c2), count(c20) from {table}"))?;
        let dirtied_pages = self.counted(&plan, "Shared Dirtied Blocks")?;
        self.holds(subject.level != Level::Loaded || dirtied_pages == 0, || {
            format!("reading {name} dirtied {dirtied_pages} pages: the load left these pages unfrozen")
        })?;
        let lengths: Vec<String> = column_names().map(|c| format!("octet_length({c})")).collect();
        let mut row = self.row(&format!(
            "select count(*), count(*) filter (where page = before), count(*) filter (where bytes is distinct from {}), \
             corr(custid::float8, page::float8) \
             from (select custid, page, bytes, lag(page) over () as before \
                   from (select custid, ((ctid::text::point)[0])::bigint as page, {} as bytes from {table}) as rows) as pages",
            COLUMNS * COLUMN_BYTES,
            lengths.join(" + ")
        ))?;
        let correlation = row.pop().flatten();
        let [rows, shared, odd] = self.as_numbers(&row)?;
        let fewest = scale.min(1000);
        self.holds(rows >= fewest, || {
            format!("the checked pages have only {rows} rows of {name}; {fewest} are expected")
        })?;
        self.holds(shared == 0, || format!("{shared} of {rows} rows of {name} share a page with another"))?;
        self.holds(odd == 0, || {
            format!("{odd} of {rows} rows of {name} have columns that are not {COLUMN_BYTES} bytes long")
        })?;
        // By chance a sample may be up to a third smaller.
        let judged = if rows >= SAMPLES * 2 / 3 { scale } else { rows };
        let correlation = scattered(&name, judged, correlation.as_deref())?;
        Ok(Sampled { rows, correlation, dirtied_pages })
    }

    fn scan_rows(&mut self) -> Result<(), EngineError> {
        let wanted = self.subject.marker.scan_blocks;
        let table = self.subject.names().scan_table(self.subject.n);
        let [rows] = self.numbers(&format!("select count(c2) from {table}"))?;
        self.holds(rows == wanted, || format!("{} has {rows} rows; {wanted} are expected", scan_name(self.subject.n)))
    }

    /// Checks that a range of WORK_UNIT keys touches as many table pages, counted by a bitmap scan. Row versions that
    /// found no room are on added pages, and dead index entries still lead to the old ones.
    fn probe(&mut self, table_pages: u64) -> Result<u64, EngineError> {
        let scale = self.subject.marker.scale;
        let width = self.subject.at.work_unit.min(scale);
        let starts = scale - width + 1;
        let first = u64::from(self.subject.n).wrapping_mul(0x9e37_79b9_7f4a_7c15) % starts + 1;
        self.sql("set enable_seqscan = off; set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = on")?;
        let plan = self.explained(&format!(
            "select count(c2) from {} where custid between {first} and {}",
            self.subject.names().rows_table(self.subject.n),
            first + width - 1
        ))?;
        self.sql("set enable_seqscan = on; set enable_indexscan = on; set enable_indexonlyscan = on")?;
        let node = node(&plan, "Bitmap Heap Scan")
            .ok_or_else(|| self.damaged("the server does not use the index for a range of keys"))?;
        let pages = self.counted(node, "Exact Heap Blocks")? + self.counted(node, "Lossy Heap Blocks")?;
        let rows = self.counted(node, "Actual Rows")?;
        self.holds(pages.abs_diff(width) <= table_pages - scale && rows == width, || {
            format!("a range of {width} keys from {first} touches {pages} pages and {rows} rows")
        })?;
        Ok(pages)
    }

    /// A counter of a plan node. PostgreSQL 18 writes some with decimals.
    fn counted(&self, node: &Value, key: &str) -> Result<u64, EngineError> {
        let count = node[key].as_f64().map(|count| count as u64);
        count.ok_or_else(|| self.damaged(&format!("the server's EXPLAIN output has no {key}")))
    }

    /// The plan of an executed statement, with its buffer counters.
    fn explained(&mut self, sql: &str) -> Result<Value, EngineError> {
        let row = self.row(&format!("explain (analyze, buffers, timing off, format json) {sql}"))?;
        let text = row.into_iter().next().flatten().unwrap_or_default();
        let plans: Value =
            serde_json::from_str(&text).map_err(|_| self.damaged("the server's EXPLAIN output is not JSON"))?;
        Ok(plans[0]["Plan"].clone())
    }
}

/// Result of checking pages.
struct Sampled {
    rows: u64,
    correlation: Figure,
    dirtied_pages: u64,
}

/// What the catalog says about a table.
#[derive(Default)]
struct TableFacts {
    pages: u64,
    toast_pages: u64,
    plain_columns: u64,
    index_pages: u64,
    index_is_good: bool,
}

/// The first plan node of this type.
fn node<'p>(plan: &'p Value, kind: &str) -> Option<&'p Value> {
    if plan["Node Type"].as_str() == Some(kind) {
        return Some(plan);
    }
    let inner = plan["Plans"].as_array()?;
    inner.iter().find_map(|plan| node(plan, kind))
}
