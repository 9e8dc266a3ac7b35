//! Preparing the data set: pieces copied by several connections, each with its entry in the list of loaded pieces, so that
//! a load that was cut short goes on where it was; then keys, indexes and functions, and at last everything verified.

use super::ddl::{self, LOADED, Named};
use super::functions;
use super::marker::{self, Marker};
use crate::postgres::claim::{self, Purpose};
use crate::postgres::conninfo::ConnectOptions;
use crate::postgres::layout::{Names, quote};
use crate::postgres::own::{connect, told};
use crate::postgres::server::Server;
use crate::postgres::wire::{Connection, PgError};
use assay_measure::config::{Origin, Settings};
use assay_measure::units;
use assay_orders::checks::{self, STATIC};
use assay_orders::generate::Generator;
use assay_orders::lines::Lines;
use assay_orders::model::{TABLES, Table};
use assay_orders::params::{self, Indexes};
use assay_orders::work::{Piece, pieces};
use assay_run::engine::{EngineError, Line, LineValue, Progress};
use assay_run::stop::Stop;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Bytes of a scale unit: rows, keys and indexes, and the log of loading them.
const UNIT_BYTES: u64 = 2_300_000_000;
const UNIT_LOG_BYTES: u64 = 900_000_000;
/// Products and inventories, which are the same at every scale.
const FIXED_BYTES: u64 = 120_000_000;
/// Memory of each session that makes an index.
const INDEX_MEMORY: &str = "256MB";

/// What a marker's data set holds.
pub(super) fn generator(marker: &Marker) -> Generator {
    Generator::new(marker.seed, marker.scale_milli, marker.legacy)
}

/// What the settings ask for.
pub(super) fn asked(settings: &Settings) -> Result<Marker, EngineError> {
    Ok(Marker::new(
        settings.int("SEED"),
        params::scale_milli(settings)?,
        settings.bool("ORDERS_LEGACY_CORRELATION"),
        settings.text("ORDERS_INDEXES"),
    ))
}

/// What is to be loaded: what was begun goes on as it was.
fn resumed(found: Option<Marker>, settings: &Settings) -> Result<(Marker, bool), EngineError> {
    let asked = asked(settings)?;
    let Some(found) = found else {
        return Ok((asked, false));
    };
    let given = |name: &str| {
        let origin = &settings.get(name).origin;
        !matches!(origin, Origin::Default | Origin::Implied(_))
    };
    let differs = [
        ("ORDERS_SCALE", found.scale_milli != asked.scale_milli),
        ("SEED", found.seed != asked.seed),
        ("ORDERS_LEGACY_CORRELATION", found.legacy != asked.legacy),
        ("ORDERS_INDEXES", found.indexes != asked.indexes),
    ];
    if let Some((name, _)) = differs
        .iter()
        .find(|(name, differs)| *differs && given(name))
    {
        return Err(EngineError::Usage(format!(
            "a load of scale {} with seed {} has begun there and did not finish, and {name} asks for another: leave {name} \
             out to finish it, or remove it with `assay orders destroy`",
            found.scale(),
            found.seed
        )));
    }
    Ok((found, true))
}

/// Threads that load.
fn threads(settings: &Settings) -> usize {
    match settings.get("LOAD_PARALLEL_DEGREE").origin {
        Origin::Default => std::thread::available_parallelism().map_or(2, usize::from),
        _ => settings.int("LOAD_PARALLEL_DEGREE") as usize,
    }
}

fn line(key: &'static str, label: &str, value: LineValue) -> Line {
    Line {
        key,
        label: label.to_owned(),
        value,
    }
}

/// What will be done.
pub(super) fn plan(
    found: Option<Marker>,
    names: &Named,
    settings: &Settings,
) -> Result<Vec<Line>, EngineError> {
    let (marker, again) = resumed(found, settings)?;
    let generator = generator(&marker);
    let text = |key, label, value: String| line(key, label, LineValue::Text(value));
    let bytes = |unit: u64| FIXED_BYTES + unit / 1000 * marker.scale_milli;
    let mut lines = vec![
        text("schema", "schema", names.schema.clone()),
        text("scale", "scale", marker.scale()),
        line(
            "planned_rows",
            "rows",
            LineValue::Count(generator.rows_in_all()),
        ),
        text(
            "planned_bytes",
            "size, about",
            format!(
                "{} of tables and indexes, {} of log",
                units::size(bytes(UNIT_BYTES)),
                units::size(bytes(UNIT_LOG_BYTES))
            ),
        ),
        text("indexes", "indexes", marker.indexes.clone()),
        line(
            "load_threads",
            "threads that load",
            LineValue::Count(threads(settings) as u64),
        ),
        line("seed", "seed", LineValue::Count(marker.seed)),
    ];
    if again {
        lines.push(text(
            "continues",
            "continues",
            "a load that did not finish".to_owned(),
        ));
    }
    Ok(lines)
}

/// See the module.
pub(super) fn prepare(
    options: &ConnectOptions,
    names: &Named,
    settings: &Settings,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let began = Instant::now();
    let claimed = Names::of_schema(&names.schema)?;
    let mut control = claim::take(options, &claimed, Purpose::Prepare)?;
    Server::ask(&mut control)?.refuse_read_only()?;
    let found = marker::find(&mut control, names)?;
    if let Some(found) = found.as_ref().filter(|found| found.complete) {
        return Err(EngineError::Usage(already(names, found)));
    }
    let (marker, again) = resumed(found, settings)?;
    let connected = began.elapsed();
    if !again {
        let mut sql = vec![
            "begin".to_owned(),
            format!("create schema {}", quote(&names.schema)),
            marker.sql(names),
        ];
        sql.extend(ddl::create_tables(names, settings.text("TABLESPACE")));
        sql.push("commit".to_owned());
        all(&mut control, &sql, "creating the tables")?;
    }
    let load = Load {
        options,
        names,
        generator: generator(&marker),
        threads: threads(settings),
        stop,
        progress,
    };
    let mut lines = load.run(&mut control, marker)?;
    lines.insert(
        0,
        line(
            "connect_s",
            "connection time",
            seconds(connected.as_secs_f64()),
        ),
    );
    lines.push(line(
        "total_s",
        "total run time",
        seconds(began.elapsed().as_secs_f64()),
    ));
    control.close();
    Ok(lines)
}

/// The refusal of a data set that is there.
pub(super) fn already(names: &Named, found: &Marker) -> String {
    format!(
        "schema {} already has a data set of scale {} (seed {}): run on it, or remove it with `assay orders destroy` first",
        names.schema,
        found.scale(),
        found.seed
    )
}

fn seconds(s: f64) -> LineValue {
    LineValue::Decimal((s * 1000.0).round() / 1000.0)
}

/// Executes statements one after the other.
pub(super) fn all(
    connection: &mut Connection,
    sql: &[String],
    doing: &str,
) -> Result<(), EngineError> {
    for statement in sql {
        connection.query(statement).map_err(told(doing))?;
    }
    Ok(())
}

/// Rows and checksum of what was loaded of each table.
type Sums = BTreeMap<Table, (u64, i128)>;

struct Load<'a> {
    options: &'a ConnectOptions,
    names: &'a Named,
    generator: Generator,
    threads: usize,
    stop: &'a Stop,
    progress: &'a dyn Progress,
}

/// What the copying threads share.
#[derive(Default)]
struct Tally {
    next: AtomicUsize,
    rows: AtomicU64,
    bytes: AtomicU64,
    commits: AtomicU64,
}

impl Load<'_> {
    fn run(&self, control: &mut Connection, marker: Marker) -> Result<Vec<Line>, EngineError> {
        let indexes = match marker.indexes.as_str() {
            "none" => Indexes::None,
            "keys" => Indexes::Keys,
            _ => Indexes::All,
        };
        let (there, before) = self.loaded(control)?;
        let before: u64 = before.values().map(|(rows, _)| rows).sum();
        let left: Vec<Piece> = pieces(&self.generator)
            .into_iter()
            .filter(|piece| !there.contains(&(piece.table, piece.units.start)))
            .collect();
        let began = Instant::now();
        let tally = Tally::default();
        self.copy(&left, &tally)?;
        let copied = began.elapsed().as_secs_f64();
        let (_, sums) = self.loaded(control)?;
        let verified = self.verify(&sums)?;
        let indexed = Instant::now();
        self.finish(control, indexes, &sums)?;
        self.complete(control, marker)?;
        let finished = indexed.elapsed().as_secs_f64();
        let rows = tally.rows.load(Relaxed);
        let bytes = tally.bytes.load(Relaxed);
        let per_s = |n: f64| seconds(n / copied.max(1e-3));
        let mut lines = vec![
            line("generate_s", "data generation time", seconds(copied)),
            line("verify_s", "verification time", seconds(verified)),
            line("ddl_s", "DDL creation time", seconds(finished)),
            line("rows_per_s", "rows inserted per sec", per_s(rows as f64)),
            line(
                "mb_per_s",
                "data generated (MB, 10^6) per sec",
                per_s(bytes as f64 / 1e6),
            ),
            line(
                "loaded_rows",
                "actual rows generated",
                LineValue::Count(rows),
            ),
            line(
                "commits",
                "commits completed",
                LineValue::Count(tally.commits.load(Relaxed)),
            ),
        ];
        if before > 0 {
            lines.push(line(
                "resumed_rows",
                "rows loaded before",
                LineValue::Count(before),
            ));
        }
        lines.extend(TABLES.into_iter().map(|table| {
            let rows = sums.get(&table).map_or(0, |(rows, _)| *rows);
            line("table_rows", table.name(), LineValue::Count(rows))
        }));
        Ok(lines)
    }

    /// Rows and checksum of what is loaded of each table, and the first unit of each piece.
    fn loaded(
        &self,
        control: &mut Connection,
    ) -> Result<(BTreeSet<(Table, u64)>, Sums), EngineError> {
        let sql = format!(
            "select tbl, first, rows, checksum from {}",
            self.names.relation(LOADED)
        );
        let rows = control
            .query(&sql)
            .map_err(told("reading what is loaded"))?
            .rows;
        let (mut there, mut sums) = (BTreeSet::new(), Sums::new());
        for row in rows {
            let text = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
            let Some(table) = Table::named(text(0)) else {
                continue;
            };
            there.insert((table, text(1).parse().unwrap_or(0)));
            let sum = sums.entry(table).or_default();
            sum.0 += text(2).parse::<u64>().unwrap_or(0);
            sum.1 += text(3).parse::<i128>().unwrap_or(0);
        }
        Ok((there, sums))
    }

    /// Copies all pieces by several connections.
    fn copy(&self, left: &[Piece], tally: &Tally) -> Result<(), EngineError> {
        let all: u64 = left.iter().map(|piece| piece.rows).sum();
        self.together(|connection| {
            let mut lines = Lines::new(" months");
            while let Some(piece) = left.get(tally.next.fetch_add(1, Relaxed)) {
                if self.stop.requested() {
                    return Err(EngineError::Interrupted);
                }
                let bytes = self
                    .copy_piece(connection, piece, &mut lines)
                    .map_err(told(piece.table.name()))?;
                tally.bytes.fetch_add(bytes, Relaxed);
                tally.commits.fetch_add(1, Relaxed);
                let rows = tally.rows.fetch_add(piece.rows, Relaxed) + piece.rows;
                let done = tally.bytes.load(Relaxed);
                // All are about as long.
                let expected = u128::from(done) * u128::from(all) / u128::from(rows.max(1));
                self.progress
                    .update("rows", done, u64::try_from(expected).unwrap_or(u64::MAX));
            }
            Ok(())
        })
    }

    /// A piece and its entry in one transaction; the bytes it had.
    fn copy_piece(
        &self,
        connection: &mut Connection,
        piece: &Piece,
        lines: &mut Lines,
    ) -> Result<u64, PgError> {
        let (rows_before, sum_before) = (lines.rows(), lines.sum());
        connection.query("begin")?;
        let table = self.names.relation(piece.table.name());
        let mut copy = connection.copy_in(&format!("copy {table} from stdin"))?;
        let mut bytes = 0;
        piece.write(&self.generator, lines, |part| {
            bytes += part.len() as u64;
            copy.send(part)
        })?;
        copy.finish()?;
        connection.query(&format!(
            "insert into {} values ('{}', {}, {}, {}); commit",
            self.names.relation(LOADED),
            piece.table.name(),
            piece.units.start,
            lines.rows() - rows_before,
            lines.sum() - sum_before
        ))?;
        Ok(bytes)
    }

    /// Does the same work by several connections; the first failure of one is the answer.
    fn together(
        &self,
        work: impl Fn(&mut Connection) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        let failed = Mutex::new(None);
        let one = || {
            let mut connection = connect(self.options).map_err(told("connecting"))?;
            let setup = format!(
                "set synchronous_commit = off; set maintenance_work_mem = '{INDEX_MEMORY}'; set timezone = 'UTC'"
            );
            connection.query(&setup).map_err(told("connecting"))?;
            work(&mut connection)?;
            connection.close();
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    if let Err(error) = one() {
                        failed
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .get_or_insert(error);
                    }
                });
            }
        });
        let failed = failed
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }

    /// Performs statements that do not meet each other, several at a time.
    fn several(&self, sql: &[String], phase: &str) -> Result<(), EngineError> {
        let next = AtomicUsize::new(0);
        self.together(|connection| {
            loop {
                let at = next.fetch_add(1, Relaxed);
                let Some(statement) = sql.get(at) else {
                    return Ok(());
                };
                if self.stop.requested() {
                    return Err(EngineError::Interrupted);
                }
                connection.query(statement).map_err(told(phase))?;
                self.progress.update(phase, 0, 0);
            }
        })
    }

    /// Every table has exactly the rows that were generated, by count and checksum; seconds it took.
    fn verify(&self, sums: &Sums) -> Result<f64, EngineError> {
        let began = Instant::now();
        for table in TABLES {
            let (rows, _) = sums.get(&table).copied().unwrap_or_default();
            let planned = self.generator.rows(table);
            if rows != planned {
                return Err(EngineError::Damaged(format!(
                    "table {} has {rows} loaded rows where {planned} were generated",
                    table.name()
                )));
            }
        }
        let next = AtomicUsize::new(0);
        self.together(|connection| {
            while let Some(table) = TABLES.get(next.fetch_add(1, Relaxed)) {
                let wanted = sums.get(table).copied().unwrap_or_default();
                compare(connection, self.names, *table, wanted)?;
            }
            Ok(())
        })?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Keys, indexes, references, sequences, functions, statistics, and what was loaded.
    fn finish(
        &self,
        control: &mut Connection,
        indexes: Indexes,
        sums: &Sums,
    ) -> Result<(), EngineError> {
        let names = self.names;
        self.undo(control)?;
        self.several(&ddl::keys(names, indexes), "keys")?;
        self.several(&ddl::indexes(names, indexes), "indexes")?;
        let memory = format!("set maintenance_work_mem = '{INDEX_MEMORY}'");
        all(control, &[memory], "constraints")?;
        all(control, &ddl::constraints(names, indexes), "constraints")?;
        all(
            control,
            &ddl::sequences_and_views(names),
            "sequences and views",
        )?;
        let path = super::session::path_sql(&names.schema);
        all(control, &[path], "functions")?;
        all(control, &functions::create(&names.schema), "functions")?;
        all(
            control,
            &[crate::postgres::own::PINNED.to_owned()],
            "functions",
        )?;
        let fixed: Vec<(Table, i128)> = STATIC
            .into_iter()
            .map(|table| (table, sums.get(&table).map_or(0, |(_, sum)| *sum)))
            .collect();
        all(
            control,
            &checks::baseline_sql(names, &fixed),
            "noting what is loaded",
        )?;
        let vacuum = |table: Table| format!("vacuum (analyze) {}", names.relation(table.name()));
        self.several(&TABLES.map(vacuum), "statistics")?;
        if Server::ask(control)?.may_checkpoint {
            all(control, &["checkpoint".to_owned()], "checkpoint")?;
        }
        Ok(())
    }

    /// A load that was cut short after its rows has some of its keys: they are made anew.
    fn undo(&self, control: &mut Connection) -> Result<(), EngineError> {
        let schema = crate::postgres::layout::literal(&self.names.schema);
        let rows = control.query(&format!(
            "select format('alter table %s drop constraint %I', conrelid::regclass, conname) from pg_constraint \
             where connamespace = (select oid from pg_namespace where nspname = {schema}) and conrelid <> 0 \
             and contype in ('f', 'c') union all \
             select format('alter table %s drop constraint %I', conrelid::regclass, conname) from pg_constraint \
             where connamespace = (select oid from pg_namespace where nspname = {schema}) and contype = 'p' \
             and conname like '%\\_pk' union all \
             select format('drop index %s', indexrelid::regclass) from pg_index i join pg_class c on c.oid = i.indexrelid \
             where c.relnamespace = (select oid from pg_namespace where nspname = {schema}) and not i.indisprimary"
        ));
        let sql: Vec<String> = rows
            .map_err(told("looking for keys"))?
            .rows
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect();
        all(control, &sql, "removing keys of a load that did not finish")
    }

    /// The data set can be used.
    fn complete(&self, control: &mut Connection, mut marker: Marker) -> Result<(), EngineError> {
        let counts = self.generator.counts();
        let entries = [
            ("SOE_MIN_CUSTOMER_ID", "1".to_owned()),
            ("SOE_MAX_CUSTOMER_ID", counts.customers.to_string()),
            ("SOE_MIN_ORDER_ID", "1".to_owned()),
            ("SOE_MAX_ORDER_ID", counts.orders.to_string()),
            ("ASSAY_SEED", marker.seed.to_string()),
            ("ASSAY_SCALE", marker.scale()),
            ("ASSAY_VERSION", marker.version.to_string()),
        ];
        marker.complete = true;
        let mut sql = vec!["begin".to_owned()];
        sql.extend(ddl::metadata(self.names, &entries));
        sql.push(marker.sql(self.names));
        sql.push("commit".to_owned());
        all(control, &sql, "writing the metadata")
    }
}

/// A table has these rows and this checksum.
pub(super) fn compare(
    connection: &mut Connection,
    names: &Named,
    table: Table,
    wanted: (u64, i128),
) -> Result<(), EngineError> {
    let rows = connection
        .query(&checks::checksum_sql(names, table))
        .map_err(told("verifying"))?;
    let row = rows.rows.first().cloned().unwrap_or_default();
    let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    let found = (text(0).parse::<u64>().ok(), text(1).parse::<i128>().ok());
    if found == (Some(wanted.0), Some(wanted.1)) {
        return Ok(());
    }
    Err(EngineError::Damaged(format!(
        "table {}: {} rows with checksum {} where {} rows with checksum {} were generated",
        table.name(),
        text(0),
        text(1),
        wanted.0,
        wanted.1
    )))
}
