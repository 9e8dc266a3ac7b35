//! Prepares the data set: each piece is a transaction that includes its entry in the list of loaded pieces. The order is that of `crate::orders::load`.

use super::super::Sqlite;
use super::super::file::{Db, File};
use super::super::marker::begin;
use super::SqliteOrders;
use super::ddl::{self, Named};
use crate::claim::Purpose;
use crate::orders::ddl::{indexes, metadata};
use crate::orders::load::{Copies, Load, Source, Sums};
use crate::orders::marker::Marker;
use crate::orders::target::{Life, Loads};
use crate::orders::{all, nothing};
use crate::slob::Dialect;
use assay_measure::config::Settings;
use assay_orders::lines::Lines;
use assay_orders::model::{Table, Type};
use assay_orders::params::Indexes;
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use rusqlite::types::Null;
use std::time::Instant;

impl Loads for SqliteOrders {
    fn prepare(at: &File, settings: &Settings, stop: &Stop, progress: &dyn Progress) -> Result<Vec<Line>, EngineError> {
        let began = Instant::now();
        // Nothing is created beside a database of others.
        Marker::unfinished(super::there(&at.look()?, at)?.found, &at.shown(), settings)?;
        let mut held = Sqlite::claim(at, Purpose::Prepare)?.ok_or_else(|| nothing(&at.shown()))?;
        let there = super::there(&held.keeper, at)?;
        let empty = there.found.is_none();
        let (marker, again) = Marker::unfinished(there.found, &at.shown(), settings)?;
        let doing = at.told("creating the tables");
        if empty {
            begin(&held.keeper, at, settings.int("BLOCK_SZ"))?;
        }
        if !again {
            held.keeper.atomic(&ddl::create(&marker).join("; ")).map_err(&doing)?;
        }
        let connected = began.elapsed();
        let copies = Copying { at };
        let load = Load::new(&copies, &Named, &marker, Self::load_threads(settings), (stop, progress));
        let lines = load.run(&mut held.keeper, marker, (began, connected))?;
        at.write_out(&held.keeper).map_err(at.told("writing out"))?;
        Ok(lines)
    }
}

/// Loads rows into SQLite.
struct Copying<'a> {
    at: &'a File,
}

impl Copies for Copying<'_> {
    type Connection = Db;

    fn connect(&self) -> Result<Db, EngineError> {
        self.at.work()
    }

    fn lines(&self) -> Lines {
        Lines::new("", "+00:00")
    }

    fn copy_piece(&self, db: &mut Db, source: &mut Source<'_>) -> Result<u64, EngineError> {
        let table = source.piece.table;
        let insert = ddl::insert(table);
        let mut copy = || -> rusqlite::Result<u64> {
            let transaction = db.0.unchecked_transaction()?;
            let (bytes, note) = source.write(|part| send(&transaction, (&insert, table), part))?;
            transaction.execute(&note, [])?;
            transaction.commit()?;
            Ok(bytes)
        };
        copy().map_err(self.at.told(table.name()))
    }

    fn finish(&self, load: &Load<'_, Self>, db: &mut Db, indexes: Indexes, sums: &Sums) -> Result<(), EngineError> {
        load.several(&self::indexes(&Named, indexes), "indexes")?;
        all(db, &ddl::sequences_and_views(load.generator.counts()), "sequences and views")?;
        load.note_baseline(db, sums)?;
        all(db, &["analyze".to_owned()], "statistics")
    }

    fn complete(&self, marker: &Marker, metadata: &[(&str, String)]) -> Vec<String> {
        let mut sql = self::metadata(&Named, metadata);
        sql.push(ddl::change(marker));
        sql
    }
}

/// Inserts lines, row by row.
fn send(db: &rusqlite::Connection, (insert, table): (&str, Table), part: &[u8]) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached(insert)?;
    let text = String::from_utf8_lossy(part);
    for line in text.lines() {
        for (at, (text, column)) in (1..).zip(line.split('\t').zip(table.columns())) {
            let number = !matches!(column.kind, Type::Text(_) | Type::Date | Type::Time | Type::Instant);
            match text.parse::<i64>() {
                _ if text == "\\N" => statement.raw_bind_parameter(at, Null)?,
                Ok(n) if number => statement.raw_bind_parameter(at, n)?,
                _ => statement.raw_bind_parameter(at, text)?,
            }
        }
        statement.raw_execute()?;
    }
    Ok(())
}
