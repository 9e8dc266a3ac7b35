//! Prepares the data set. Several connections copy pieces and record each in the list of loaded pieces, so that an
//! interrupted load can continue. Then the load creates keys, indexes and functions, and finally verifies everything.

use super::marker::{LOADED, Marker};
use super::{Talk, all, line, text_line};
use crate::threads::side_by_side;
use assay_measure::config::{Origin, Settings};
use assay_measure::units;
use assay_orders::checks::{self, STATIC, Words};
use assay_orders::generate::Generator;
use assay_orders::lines::Lines;
use assay_orders::model::{TABLES, Table};
use assay_orders::params::Indexes;
use assay_orders::work::{Piece, pieces};
use assay_run::engine::{EngineError, Line, LineValue, Progress};
use assay_run::stop::Stop;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of a scale unit: rows, keys and indexes, and the log written by loading them.
const UNIT_BYTES: u64 = 2_300_000_000;
const UNIT_LOG_BYTES: u64 = 900_000_000;
/// Bytes of products and inventories, which have the same size at every scale.
const FIXED_BYTES: u64 = 120_000_000;

/// Number of threads that load.
pub(crate) fn threads(settings: &Settings) -> usize {
    match settings.get("LOAD_PARALLEL_DEGREE").origin {
        Origin::Default => std::thread::available_parallelism().map_or(2, usize::from),
        _ => settings.int("LOAD_PARALLEL_DEGREE") as usize,
    }
}

/// The lines of a plan.
pub(crate) fn plan(
    found: Option<Marker>,
    schema: &str,
    (settings, threads): (&Settings, usize),
) -> Result<Vec<Line>, EngineError> {
    let (marker, again) = Marker::resumed(found, settings)?;
    let generator = marker.generator();
    let text = text_line;
    let bytes = |unit: u64| FIXED_BYTES + unit / 1000 * marker.scale_milli;
    let mut lines = vec![
        text("schema", "schema", schema.to_owned()),
        text("scale", "scale", marker.scale()),
        line("planned_rows", "rows", LineValue::Count(generator.rows_in_all())),
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
        text("partitions", "partitions", marker.cut()),
        line("load_threads", "threads that load", LineValue::Count(threads as u64)),
        line("seed", "seed", LineValue::Count(marker.seed)),
    ];
    if again {
        lines.push(text("continues", "continues", "a load that did not finish".to_owned()));
    }
    Ok(lines)
}

fn seconds(s: f64) -> LineValue {
    LineValue::Decimal((s * 1000.0).round() / 1000.0)
}

/// Rows and checksum of what was loaded of each table.
pub(crate) type Sums = BTreeMap<Table, (u64, i128)>;

/// What each server does in its own way.
pub(crate) trait Copies: Sync {
    type Connection: Talk;

    /// Opens another connection, set up to load and to create indexes.
    fn connect(&self) -> Result<Self::Connection, EngineError>;

    /// An empty buffer of rows in the server's text format.
    fn lines(&self) -> Lines;

    /// Copies a piece and records it in the list of loaded pieces, in one transaction; returns its bytes.
    fn copy_piece(&self, connection: &mut Self::Connection, source: &mut Source<'_>) -> Result<u64, EngineError>;

    /// Creates keys, indexes, foreign keys, sequences, functions and statistics, and records what was loaded.
    fn finish(
        &self,
        load: &Load<'_, Self>,
        control: &mut Self::Connection,
        indexes: Indexes,
        sums: &Sums,
    ) -> Result<(), EngineError>
    where
        Self: Sized;

    /// The statements that write the metadata and then mark the data set as usable.
    fn complete(&self, marker: &Marker, metadata: &[(&str, String)]) -> Vec<String>;
}

/// A piece to copy.
pub(crate) struct Source<'a> {
    pub(crate) words: &'a dyn Words,
    pub(crate) generator: &'a Generator,
    pub(crate) piece: &'a Piece,
    pub(crate) lines: &'a mut Lines,
}

impl Source<'_> {
    /// Writes the rows part by part; returns their bytes, and the statement that records the piece as loaded.
    pub(crate) fn write<E>(&mut self, mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(u64, String), E> {
        let Self { words, generator, piece, lines } = self;
        let (rows_before, sum_before) = (lines.rows(), lines.sum());
        let mut bytes = 0;
        piece.write(generator, lines, |part| {
            bytes += part.len() as u64;
            put(part)
        })?;
        Ok((bytes, note_sql(*words, piece, lines.rows() - rows_before, lines.sum() - sum_before)))
    }
}

/// The first unit of each loaded piece, and the rows and checksum of each table.
type Loaded = (BTreeSet<(Table, u64)>, Sums);

/// Parses the rows of the list of loaded pieces.
///
/// # Errors
/// An unreadable row: guessing which piece it stands for could leave rows out.
fn loaded_of(rows: &[Vec<Option<String>>]) -> Result<Loaded, String> {
    let (mut there, mut sums) = (BTreeSet::new(), Sums::new());
    for row in rows {
        let text = |at: usize| row.get(at)?.as_deref();
        let read =
            || Some((Table::named(text(0)?)?, text(1)?.parse().ok()?, text(2)?.parse().ok()?, text(3)?.parse().ok()?));
        let shown = || row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(", ");
        let (table, first, rows, sum): (Table, u64, u64, i128) = read().ok_or_else(shown)?;
        there.insert((table, first));
        let of_table = sums.entry(table).or_default();
        of_table.0 += rows;
        of_table.1 += sum;
    }
    Ok((there, sums))
}

/// A load.
pub(crate) struct Load<'a, C> {
    copies: &'a C,
    words: &'a (dyn Words + Sync),
    pub(crate) generator: Generator,
    threads: usize,
    stop: &'a Stop,
    progress: &'a dyn Progress,
}

/// The statement that records a piece as loaded.
pub(crate) fn note_sql(words: &dyn Words, piece: &Piece, rows: u64, sum: i128) -> String {
    format!(
        "insert into {} values ('{}', {}, {rows}, {sum})",
        words.relation(LOADED),
        piece.table.name(),
        piece.units.start
    )
}

/// Adds to an error how to continue an interrupted load.
fn kept(error: EngineError) -> EngineError {
    match error {
        EngineError::Unusable(text) => EngineError::Unusable(format!(
            "loading order entry: {text}; loaded rows stay: once fixed, `assay orders prepare` finishes the load"
        )),
        other => other,
    }
}

/// State shared by the copying threads.
#[derive(Default)]
struct Tally {
    next: AtomicUsize,
    rows: AtomicU64,
    bytes: AtomicU64,
    commits: AtomicU64,
}

/// Tells parallel connections whether to go on.
struct Going<'a> {
    ended: &'a AtomicBool,
    stop: &'a Stop,
}

impl Going<'_> {
    /// # Errors
    /// `Interrupted`: another one has failed, or the user wants to stop.
    fn on(&self) -> Result<(), EngineError> {
        let ends = self.ended.load(Relaxed) || self.stop.requested();
        if ends { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}

impl<'a, C: Copies> Load<'a, C> {
    pub(crate) fn new(
        copies: &'a C,
        words: &'a (dyn Words + Sync),
        marker: &Marker,
        threads: usize,
        (stop, progress): (&'a Stop, &'a dyn Progress),
    ) -> Self {
        Self { copies, words, generator: marker.generator(), threads, stop, progress }
    }

    /// Copies the missing pieces, verifies and finishes; returns the time it took, including the connection and everything before it.
    pub(crate) fn run(
        &self,
        control: &mut C::Connection,
        mut marker: Marker,
        (start, connected): (Instant, Duration),
    ) -> Result<Vec<Line>, EngineError> {
        let (there, before) = self.loaded(control)?;
        let before: u64 = before.values().map(|(rows, _)| rows).sum();
        let left: Vec<Piece> = pieces(&self.generator)
            .into_iter()
            .filter(|piece| !there.contains(&(piece.table, piece.units.start)))
            .collect();
        let began = Instant::now();
        let tally = Tally::default();
        self.copy(&left, &tally).map_err(kept)?;
        let copied = began.elapsed().as_secs_f64();
        let (_, sums) = self.loaded(control)?;
        let verified = self.verify(&sums)?;
        let indexed = Instant::now();
        let finished = self.copies.finish(self, control, marker.which(), &sums);
        finished.map_err(kept)?;
        marker.complete = true;
        self.complete(control, &marker)?;
        let finished = indexed.elapsed().as_secs_f64();
        let rows = tally.rows.load(Relaxed);
        let bytes = tally.bytes.load(Relaxed);
        let per_s = |n: f64| seconds(n / copied.max(1e-3));
        let mut lines = vec![
            line("connect_s", "connection time", seconds(connected.as_secs_f64())),
            line("generate_s", "data generation time", seconds(copied)),
            line("verify_s", "verification time", seconds(verified)),
            line("ddl_s", "DDL creation time", seconds(finished)),
            line("rows_per_s", "rows inserted per sec", per_s(rows as f64)),
            line("mb_per_s", "data generated (MB, 10^6) per sec", per_s(bytes as f64 / 1e6)),
            line("load_bytes", "data generated", LineValue::Count(bytes)),
            line("loaded_rows", "actual rows generated", LineValue::Count(rows)),
            line("commits", "commits completed", LineValue::Count(tally.commits.load(Relaxed))),
        ];
        if before > 0 {
            lines.push(line("resumed_rows", "rows loaded before", LineValue::Count(before)));
        }
        lines.extend(TABLES.into_iter().map(|table| {
            let rows = sums.get(&table).map_or(0, |(rows, _)| *rows);
            line("table_rows", table.name(), LineValue::Count(rows))
        }));
        let total = start.elapsed().as_secs_f64();
        lines.push(line("total_s", "total run time", seconds(total)));
        Ok(lines)
    }

    /// Rows and checksum loaded into each table, and the first unit of each piece.
    fn loaded(&self, control: &mut C::Connection) -> Result<Loaded, EngineError> {
        let list = self.words.relation(LOADED);
        let rows = control.ask(&format!("select * from {list}"), "reading what is loaded")?;
        loaded_of(&rows).map_err(|row| {
            EngineError::Damaged(format!(
                "the list of what is loaded, {list}, has a row that no assay wrote: {row}; run `assay orders destroy`, then \
                 `assay orders prepare`"
            ))
        })
    }

    /// Copies all pieces over several connections.
    fn copy(&self, left: &[Piece], tally: &Tally) -> Result<(), EngineError> {
        let all: u64 = left.iter().map(|piece| piece.rows).sum();
        self.together(|connection, going| {
            let mut lines = self.copies.lines();
            while let Some(piece) = left.get(tally.next.fetch_add(1, Relaxed)) {
                going.on()?;
                let (words, generator, lines) = (self.words, &self.generator, &mut lines);
                let mut source = Source { words, generator, piece, lines };
                let bytes = self.copies.copy_piece(connection, &mut source)?;
                tally.bytes.fetch_add(bytes, Relaxed);
                tally.commits.fetch_add(1, Relaxed);
                let rows = tally.rows.fetch_add(piece.rows, Relaxed) + piece.rows;
                let done = tally.bytes.load(Relaxed);
                // All rows have about the same length.
                let expected = u128::from(done) * u128::from(all) / u128::from(rows.max(1));
                self.progress.update("rows", done, u64::try_from(expected).unwrap_or(u64::MAX));
            }
            Ok(())
        })
    }

    /// Runs the same work on several connections; the first failure ends all of them.
    fn together(
        &self,
        work: impl Fn(&mut C::Connection, &Going<'_>) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        let ended = AtomicBool::new(false);
        let one = |_| work(&mut self.copies.connect()?, &Going { ended: &ended, stop: self.stop });
        side_by_side(self.threads, &ended, one, |(), ()| (), || Ok(()))
    }

    /// Executes independent statements, several at a time.
    pub(crate) fn several(&self, sql: &[String], phase: &str) -> Result<(), EngineError> {
        let next = AtomicUsize::new(0);
        self.together(|connection, going| {
            loop {
                let at = next.fetch_add(1, Relaxed);
                let Some(statement) = sql.get(at) else {
                    return Ok(());
                };
                going.on()?;
                connection.tell(statement, phase)?;
                self.progress.update(phase, 0, 0);
            }
        })
    }

    /// Records the baseline for the checks.
    pub(crate) fn note_baseline(&self, connection: &mut dyn Talk, sums: &Sums) -> Result<(), EngineError> {
        let sum = |table| (table, sums.get(&table).map_or(0, |(_, sum)| *sum));
        let sql = checks::baseline_sql(self.words, &STATIC.map(sum));
        all(connection, &sql, "noting what is loaded")
    }

    /// Verifies by count and checksum that every table has exactly the generated rows; returns the seconds it took.
    fn verify(&self, sums: &Sums) -> Result<f64, EngineError> {
        let began = Instant::now();
        for table in TABLES {
            let (rows, _) = sums.get(&table).copied().unwrap_or_default();
            let planned = self.generator.rows(table);
            if rows != planned {
                return Err(EngineError::Damaged(format!(
                    "table {} has {rows} loaded rows, but {planned} were generated",
                    table.name()
                )));
            }
        }
        let next = AtomicUsize::new(0);
        self.together(|connection, going| {
            while let Some(table) = TABLES.get(next.fetch_add(1, Relaxed)) {
                going.on()?;
                let wanted = sums.get(table).copied().unwrap_or_default();
                compare(connection, self.words, *table, wanted)?;
            }
            Ok(())
        })?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Marks the data set as usable.
    fn complete(&self, control: &mut C::Connection, marker: &Marker) -> Result<(), EngineError> {
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
        let sql = self.copies.complete(marker, &entries);
        all(control, &sql, "writing the metadata")
    }
}

/// Compares the rows and checksum of a table with what was generated.
pub(crate) fn compare(
    connection: &mut dyn Talk,
    words: &dyn Words,
    table: Table,
    wanted: (u64, i128),
) -> Result<(), EngineError> {
    let rows = connection.ask(&checks::checksum_sql(words, table), "verifying")?;
    let row = rows.first().cloned().unwrap_or_default();
    let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
    let found = (text(0).parse::<u64>().ok(), text(1).parse::<i128>().ok());
    if found == (Some(wanted.0), Some(wanted.1)) {
        return Ok(());
    }
    Err(EngineError::Damaged(format!(
        "table {}: {} rows with checksum {}, but {} rows with checksum {} were generated",
        table.name(),
        text(0),
        text(1),
        wanted.0,
        wanted.1
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_orders::model::Column;
    use assay_testkit::conformance::life::Unwatched;
    use std::time::Duration;

    /// A server whose connections fail at this statement and take a while for any other.
    struct Fails(&'static str, AtomicUsize);

    struct Telling<'a>(&'a Fails);

    impl Talk for Telling<'_> {
        fn tell(&mut self, sql: &str, _doing: &str) -> Result<(), EngineError> {
            if sql == self.0.0 {
                return Err(EngineError::Unusable("no room".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(1));
            self.0.1.fetch_add(1, Relaxed);
            Ok(())
        }

        fn ask(&mut self, sql: &str, _doing: &str) -> Result<super::super::Rows, EngineError> {
            unreachable!("{sql}")
        }
    }

    impl Words for Fails {
        fn relation(&self, name: &str) -> String {
            name.to_owned()
        }

        fn name(&self, column: &str) -> String {
            column.to_owned()
        }

        fn counted(&self, column: &Column) -> String {
            unreachable!("{column:?}")
        }

        fn last_of(&self, sequence: &str) -> String {
            unreachable!("{sequence}")
        }
    }

    impl<'a> Copies for &'a Fails {
        type Connection = Telling<'a>;

        fn connect(&self) -> Result<Telling<'a>, EngineError> {
            Ok(Telling(self))
        }

        fn lines(&self) -> Lines {
            unreachable!("nothing is copied")
        }

        fn copy_piece(&self, _: &mut Telling<'a>, _: &mut Source<'_>) -> Result<u64, EngineError> {
            unreachable!("nothing is copied")
        }

        fn finish(&self, _: &Load<'_, Self>, _: &mut Telling<'a>, _: Indexes, _: &Sums) -> Result<(), EngineError> {
            Ok(())
        }

        fn complete(&self, _: &Marker, _: &[(&str, String)]) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn the_first_failure_ends_what_the_other_connections_do() {
        let server = Fails("2", AtomicUsize::new(0));
        let stop = Stop::new();
        let load = Load {
            copies: &&server,
            words: &server,
            generator: Generator::new(1, 1, false),
            threads: 2,
            stop: &stop,
            progress: &Unwatched,
        };
        let sql: Vec<String> = (0..5000).map(|n: u32| n.to_string()).collect();
        let error = load.several(&sql, "indexes").unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
        assert!(server.1.load(Relaxed) < sql.len() - 1, "all of them");
    }

    fn row(values: [Option<&str>; 4]) -> Vec<Option<String>> {
        values.map(|value| value.map(str::to_owned)).into()
    }

    #[test]
    fn pieces_that_are_loaded_are_read_with_their_sums() {
        let name = TABLES[0].name();
        let rows =
            [row([Some(name), Some("0"), Some("5"), Some("-7")]), row([Some(name), Some("9"), Some("6"), Some("2")])];
        let (there, sums) = loaded_of(&rows).unwrap();
        assert_eq!(there.into_iter().collect::<Vec<_>>(), [(TABLES[0], 0), (TABLES[0], 9)]);
        assert_eq!(sums[&TABLES[0]], (11, -5));
    }

    /// As piece 0 it would leave that one's rows out.
    #[test]
    fn a_row_that_cannot_be_read_is_no_piece() {
        let name = TABLES[0].name();
        for wrong in [
            [Some(name), None, Some("5"), Some("7")],
            [Some(name), Some("x"), Some("5"), Some("7")],
            [Some(name), Some("1"), None, Some("7")],
            [Some(name), Some("1"), Some("5"), Some("7.5")],
            [Some("elsewhere"), Some("1"), Some("5"), Some("7")],
        ] {
            assert!(loaded_of(&[row(wrong)]).is_err(), "{wrong:?}");
        }
        assert_eq!(
            loaded_of(&[row([Some(name), None, Some("5"), Some("7")])]).unwrap_err(),
            format!("{name}, NULL, 5, 7")
        );
    }
}
