//! Prepares the data set: copies pieces, then creates keys, indexes and functions, in the order of `crate::orders::load`.

use super::PostgresOrders;
use super::ddl::{self, Named};
use super::functions;
use super::marker;
use crate::orders::ddl::{create_tables, indexes, keys, metadata, references, rules};
use crate::orders::load::{Copies, Load, Source, Sums};
use crate::orders::marker::Marker;
use crate::orders::target::{Life, Loads};
use crate::orders::{Rows, Talk, all};
use crate::postgres::claim::{self, Purpose};
use crate::postgres::conninfo::ConnectOptions;
use crate::postgres::layout::{Names, quote};
use crate::postgres::own::{self, connect, told};
use crate::postgres::server::Server;
use crate::postgres::wire::{Connection, PgError};
use assay_measure::config::Settings;
use assay_orders::lines::Lines;
use assay_orders::model::{TABLES, Table};
use assay_orders::params::Indexes;
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::time::Instant;

/// Memory of each session that creates an index.
const INDEX_MEMORY: &str = "256MB";

impl Talk for Connection {
    fn tell(&mut self, sql: &str, doing: &str) -> Result<(), EngineError> {
        self.query(sql).map(drop).map_err(told(doing))
    }

    fn ask(&mut self, sql: &str, doing: &str) -> Result<Rows, EngineError> {
        self.query(sql).map(|rows| rows.rows).map_err(told(doing))
    }
}

impl Loads for PostgresOrders {
    fn prepare(
        (place, names): &Self::At,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let began = Instant::now();
        let options = &own::options(place)?;
        let claimed = Names::of_schema(&names.schema)?;
        let mut control = claim::take(options, &claimed, Purpose::Prepare)?;
        Server::ask(&mut control)?.refuse_read_only()?;
        let found = marker::find(&mut control, names)?;
        let (marker, again) = Marker::unfinished(found, &names.place(), settings)?;
        let connected = began.elapsed();
        if !again {
            let mut sql = vec![
                "begin".to_owned(),
                format!("create schema {}", quote(&names.schema)),
                marker::sql(&marker, names),
            ];
            sql.extend(create_tables(names, marker.which(), marker.partitions));
            sql.extend(ddl::create_partitions(names, marker.partitions));
            sql.push("commit".to_owned());
            all(&mut control, &sql, "creating the tables")?;
        }
        let copies = Copying { options, names };
        let load = Load::new(&copies, names, &marker, Self::load_threads(settings), (stop, progress));
        let lines = load.run(&mut control, marker, (began, connected))?;
        control.close();
        Ok(lines)
    }
}

/// Loads rows into PostgreSQL.
struct Copying<'a> {
    options: &'a ConnectOptions,
    names: &'a Named,
}

impl Copies for Copying<'_> {
    type Connection = Connection;

    fn connect(&self) -> Result<Connection, EngineError> {
        let mut connection = connect(self.options).map_err(told("connecting"))?;
        let setup =
            format!("set synchronous_commit = off; set maintenance_work_mem = '{INDEX_MEMORY}'; set timezone = 'UTC'");
        connection.query(&setup).map_err(told("connecting"))?;
        Ok(connection)
    }

    fn lines(&self) -> Lines {
        Lines::new(" months", "+00")
    }

    fn copy_piece(&self, connection: &mut Connection, source: &mut Source<'_>) -> Result<u64, EngineError> {
        let table = source.piece.table.name();
        let mut copy = || -> Result<u64, PgError> {
            connection.query("begin")?;
            let mut copy = connection.copy_in(&format!("copy {} from stdin", self.names.relation(table)))?;
            let (bytes, note) = source.write(|part| copy.send(part))?;
            copy.finish()?;
            connection.query(&format!("{note}; commit"))?;
            Ok(bytes)
        };
        copy().map_err(told(table))
    }

    fn finish(
        &self,
        load: &Load<'_, Self>,
        control: &mut Connection,
        indexes: Indexes,
        sums: &Sums,
    ) -> Result<(), EngineError> {
        let names = self.names;
        self.undo(control)?;
        load.several(&keys(names, indexes), "keys")?;
        load.several(&self::indexes(names, indexes), "indexes")?;
        let memory = format!("set maintenance_work_mem = '{INDEX_MEMORY}'");
        all(control, &[memory], "constraints")?;
        all(control, &rules(names), "constraints")?;
        all(control, &references(names, indexes, |_| true), "constraints")?;
        all(control, &ddl::sequences_and_views(names), "sequences and views")?;
        let path = super::session::path_sql(&names.schema);
        all(control, &[path], "functions")?;
        all(control, &functions::create(&names.schema), "functions")?;
        all(control, &[crate::postgres::own::PINNED.to_owned()], "functions")?;
        load.note_baseline(control, sums)?;
        let vacuum = |table: Table| format!("vacuum (analyze) {}", names.relation(table.name()));
        load.several(&TABLES.map(vacuum), "statistics")?;
        if Server::ask(control)?.may_checkpoint {
            all(control, &["checkpoint".to_owned()], "checkpoint")?;
        }
        Ok(())
    }

    fn complete(&self, marker: &Marker, metadata: &[(&str, String)]) -> Vec<String> {
        let mut sql = vec!["begin".to_owned()];
        sql.extend(self::metadata(self.names, metadata));
        sql.push(marker::sql(marker, self.names));
        sql.push("commit".to_owned());
        sql
    }
}

impl Copying<'_> {
    /// Drops the keys left by a load that stopped after copying its rows; they are created again.
    fn undo(&self, control: &mut Connection) -> Result<(), EngineError> {
        let schema = crate::postgres::layout::literal(&self.names.schema);
        let rows = control.query(&format!(
            "select format('alter table %s drop constraint %I', conrelid::regclass, conname) from pg_constraint \
             where connamespace = (select oid from pg_namespace where nspname = {schema}) and conrelid <> 0 \
             and contype in ('f', 'c') and coninhcount = 0 and conparentid = 0 union all \
             select format('alter table %s drop constraint %I', conrelid::regclass, conname) from pg_constraint \
             where connamespace = (select oid from pg_namespace where nspname = {schema}) and contype = 'p' \
             and conname like '%\\_pk' and conparentid = 0 union all \
             select format('drop index %s', indexrelid::regclass) from pg_index i join pg_class c on c.oid = i.indexrelid \
             where c.relnamespace = (select oid from pg_namespace where nspname = {schema}) and not i.indisprimary \
             and not c.relispartition"
        ));
        let sql: Vec<String> = rows
            .map_err(told("looking for keys"))?
            .rows
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect();
        all(control, &sql, "removing keys of a load that did not finish")
    }
}
