//! Prepares the data set: sends pieces as arrays of rows. Each piece is a transaction that includes its entry in the
//! list of loaded pieces. The order is that of `crate::orders::load`.

use super::super::Visit;
use super::super::address::Address;
use super::super::server::Server;
use super::super::session::{Bind, OraError, Session, Way, told};
use super::OracleOrders;
use super::ddl::{self, Named};
use super::{marker, package};
use crate::claim::Purpose;
use crate::orders::ddl::{create_tables, indexes, keys, metadata, references, rules};
use crate::orders::load::{Copies, Load, Source, Sums};
use crate::orders::marker::Marker;
use crate::orders::target::{Life, Loads};
use crate::orders::{Rows, Talk, all};
use assay_measure::config::Settings;
use assay_orders::lines::Lines;
use assay_orders::model::{TABLES, Table, Type};
use assay_orders::params::Indexes;
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::time::Instant;

/// Rows in an array.
const ROWS: usize = 1000;
/// Errors for an existing name, primary key, constraint or foreign key, which an interrupted load has created.
const THERE: [u32; 4] = [955, 2260, 2264, 2275];
/// Days and hours are in UTC, whatever the time zones of client and server.
pub(super) const SETUP: &str = "alter session set time_zone = '+00:00'";

/// A session that lives as long as a command. Each statement is a transaction.
pub(super) struct Link(pub(super) Box<dyn Session>);

impl Talk for Link {
    fn tell(&mut self, sql: &str, doing: &str) -> Result<(), EngineError> {
        match self.0.run(sql, &[]) {
            Err(error) if sql.starts_with("create") || sql.starts_with("alter table") => {
                if error.code.is_some_and(|code| THERE.contains(&code)) { Ok(()) } else { Err(told(doing)(error)) }
            }
            Err(error) => Err(told(doing)(error)),
            Ok(_) => self.0.commit().map_err(told(doing)),
        }
    }

    fn ask(&mut self, sql: &str, doing: &str) -> Result<Rows, EngineError> {
        self.0.rows(sql, &[]).map_err(told(doing))
    }

    fn together(&mut self, sql: &[String], doing: &str) -> Result<(), EngineError> {
        let session = &mut self.0;
        let mut work = || {
            for statement in sql {
                session.run(statement, &[])?;
            }
            session.commit()
        };
        work().map_err(told(doing))
    }
}

/// Connects for statements without a short time limit.
pub(super) fn patient(way: &dyn Way, address: &Address) -> Result<Link, EngineError> {
    let mut session = way.open(&address.data, address.answer)?;
    let doing = told("preparing a session");
    session.run(SETUP, &[]).map_err(&doing)?;
    session.patience(address.long).map_err(&doing)?;
    Ok(Link(session))
}

impl Loads for OracleOrders {
    fn prepare(
        visit: &Visit,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let began = Instant::now();
        let mut control = patient(&*visit.way, &visit.address)?;
        let (server, names) = super::asked(&mut *control.0, visit)?;
        server.refuse_read_only()?;
        // Check before anything is created.
        marker::find(&mut *control.0, &names)?;
        let _claim =
            super::super::claim::take(&*visit.way, &visit.address, Purpose::Prepare, names.tablespace.as_deref())?;
        let found = marker::find(&mut *control.0, &names)?;
        let (marker, again) = Marker::unfinished(found, &names.place(), settings)?;
        let connected = began.elapsed();
        control.tell(&marker::create_sql(&names), "creating the tables")?;
        if !again {
            marker::write(&mut *control.0, &marker).map_err(told("writing the marker"))?;
        }
        all(&mut control, &create_tables(&names, marker.which(), marker.partitions), "creating the tables")?;
        let copies = Copying { visit, names: &names, server: &server };
        let load = Load::new(&copies, &names, &marker, Self::load_threads(settings), (stop, progress));
        load.run(&mut control, marker, (began, connected))
    }
}

/// Loads rows into Oracle.
struct Copying<'a> {
    visit: &'a Visit,
    names: &'a Named,
    server: &'a Server,
}

impl Copies for Copying<'_> {
    type Connection = Link;

    fn connect(&self) -> Result<Link, EngineError> {
        patient(&*self.visit.way, &self.visit.address)
    }

    fn lines(&self) -> Lines {
        Lines::new("", "+00:00")
    }

    fn copy_piece(&self, connection: &mut Link, source: &mut Source<'_>) -> Result<u64, EngineError> {
        let session = &mut *connection.0;
        let table = source.piece.table;
        let insert = ddl::insert(table);
        let mut copy = || -> Result<u64, OraError> {
            let (bytes, note) = source.write(|part| send(session, (&insert, table), part))?;
            session.run(&note, &[])?;
            session.commit()?;
            Ok(bytes)
        };
        copy().map_err(told(table.name()))
    }

    fn finish(
        &self,
        load: &Load<'_, Self>,
        control: &mut Link,
        indexes: Indexes,
        sums: &Sums,
    ) -> Result<(), EngineError> {
        let names = self.names;
        load.several(&keys(names, indexes), "keys")?;
        load.several(&self::indexes(names, indexes), "indexes")?;
        all(control, &rules(names), "constraints")?;
        all(control, &references(names, indexes, |_| true), "constraints")?;
        let counts = load.generator.counts();
        all(control, &ddl::sequences_and_views(names, counts), "sequences and views")?;
        all(control, &package::create(self.server.major), "the package")?;
        refuse_invalid(control)?;
        load.note_baseline(control, sums)?;
        load.several(&TABLES.map(ddl::gather), "statistics")
    }

    fn complete(&self, marker: &Marker, metadata: &[(&str, String)]) -> Vec<String> {
        let mut sql = self::metadata(self.names, metadata);
        sql.push(marker::change_sql(marker));
        sql
    }
}

/// Query for the package's compilation errors: creating it succeeds even if it does not compile.
pub(super) const INVALID: &str = "select type||' '||name||' line '||line||': '||text from user_errors where name = \
     'ORDERENTRY' and attribute = 'ERROR' order by sequence";

fn refuse_invalid(control: &mut Link) -> Result<(), EngineError> {
    let wrong = control.ask(INVALID, "looking at the package")?;
    match wrong.into_iter().flatten().flatten().next() {
        None => Ok(()),
        Some(why) => Err(EngineError::Unusable(format!("the server cannot compile the transactions' package: {why}"))),
    }
}

/// Sends lines as arrays of rows.
fn send(session: &mut dyn Session, (insert, table): (&str, Table), part: &[u8]) -> Result<(), OraError> {
    let text = String::from_utf8_lossy(part);
    let rows: Vec<Vec<Bind<'_>>> = text
        .lines()
        .map(|line| {
            let values = line.split('\t').zip(table.columns());
            values.map(|(text, column)| bind(text, column.kind)).collect()
        })
        .collect();
    for rows in rows.chunks(ROWS) {
        session.batch(insert, rows)?;
    }
    Ok(())
}

/// A value of a line. Empty text is NULL here.
fn bind(text: &str, kind: Type) -> Bind<'_> {
    let number = matches!(kind, Type::Big | Type::Int | Type::Small | Type::Money(_) | Type::Months);
    match (text, number) {
        ("\\N", true) => Bind::Null,
        ("\\N", false) => Bind::Text(""),
        (text, true) => text.parse().map_or(Bind::Null, Bind::Int),
        (text, false) => Bind::Text(text),
    }
}
