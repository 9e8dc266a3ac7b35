//! Prepares the data set: sends pieces by LOAD DATA from memory, or by multi-row INSERT if the server accepts no files.
//! The order is that of `crate::orders::load`.

use super::MariadbOrders;
use super::ddl::{self, Named};
use super::marker;
use super::procedures;
use crate::claim::Purpose;
use crate::mariadb::address::Address;
use crate::mariadb::claim;
use crate::mariadb::conn::{Connection, MyError, told};
use crate::mariadb::plan::{Way, way};
use crate::mariadb::product::Product;
use crate::orders::ddl::{create_tables, metadata};
use crate::orders::load::{Copies, Load, Source, Sums, threads};
use crate::orders::marker::Marker;
use crate::orders::target::{Life, Loads};
use crate::orders::{Rows, Talk, all};
use assay_measure::config::Settings;
use assay_orders::checks::Words;
use assay_orders::lines::Lines;
use assay_orders::model::{TABLES, Table};
use assay_orders::params::Indexes;
use assay_run::engine::{EngineError, Line, Progress};
use assay_run::stop::Stop;
use std::time::Instant;

impl Talk for Connection {
    fn tell(&mut self, sql: &str, doing: &str) -> Result<(), EngineError> {
        self.run(sql).map_err(told(doing))
    }

    fn ask(&mut self, sql: &str, doing: &str) -> Result<Rows, EngineError> {
        self.rows(sql).map_err(told(doing))
    }
}

/// An address with the data set's database as the current one.
pub(super) fn within(address: &Address, names: &Named) -> Address {
    Address { database: names.database.clone(), ..address.clone() }
}

impl Loads for MariadbOrders {
    fn prepare(
        (address, names): &Self::At,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let began = Instant::now();
        let mut first = Connection::open(address)?;
        let server = super::server_of(&mut first)?;
        server.refuse_read_only()?;
        let way = way(settings, &server)?;
        server.refuse_too_few_connections(threads(settings) as u64 + 1, "LOAD_PARALLEL_DEGREE")?;
        if marker::find(&mut first, names)?.is_none() {
            let asked = Marker::asked(settings)?;
            let sql = marker::create_sql(&asked, names, first.product);
            all(&mut first, &sql, "creating the database")?;
        }
        let inside = within(address, names);
        let mut control = claim::take(&inside, Purpose::Prepare)?;
        let found = marker::find(&mut control, names)?;
        let (marker, _) = Marker::unfinished(found, &names.place(), settings)?;
        let connected = began.elapsed();
        all(&mut control, &create_tables(names, marker.which(), marker.partitions), "creating the tables")?;
        let copies = Copying {
            address: &inside,
            names,
            product: server.product,
            way,
            partitions: marker.partitions,
            packet_bytes: usize::try_from(server.packet_bytes).unwrap_or(usize::MAX),
        };
        let load = Load::new(&copies, names, &marker, Self::load_threads(settings), (stop, progress));
        load.run(&mut control, marker, (began, connected))
    }
}

/// Loads rows into these servers.
struct Copying<'a> {
    address: &'a Address,
    names: &'a Named,
    product: Product,
    way: Way,
    partitions: u32,
    /// Longest statement, bytes.
    packet_bytes: usize,
}

impl Copies for Copying<'_> {
    type Connection = Connection;

    fn connect(&self) -> Result<Connection, EngineError> {
        let mut connection = Connection::open(self.address)?;
        connection.tell("set unique_checks = 0, foreign_key_checks = 0", "preparing to load")?;
        Ok(connection)
    }

    fn lines(&self) -> Lines {
        Lines::new("", "")
    }

    fn copy_piece(&self, connection: &mut Connection, source: &mut Source<'_>) -> Result<u64, EngineError> {
        let mut text = Vec::new();
        let (bytes, note) = source.write(|part| {
            text.extend_from_slice(part);
            Ok::<_, EngineError>(())
        })?;
        let copied = self.copy_text(connection, source.piece.table, &text, &note);
        copied.map_err(told(source.piece.table.name()))?;
        Ok(bytes)
    }

    fn finish(
        &self,
        load: &Load<'_, Self>,
        control: &mut Connection,
        indexes: Indexes,
        sums: &Sums,
    ) -> Result<(), EngineError> {
        let names = self.names;
        let product = self.product;
        let there = control.ask(&ddl::finished(names), "looking for indexes")?;
        let there = there.into_iter().flatten().flatten().collect();
        load.several(&ddl::indexes(names, indexes, &there), "indexes")?;
        let mut patient = self.connect()?;
        let references = ddl::references(names, indexes, self.partitions, &there);
        all(&mut patient, &references, "references")?;
        let counts = load.generator.counts();
        all(control, &ddl::sequences_and_views(names, product, counts), "sequences and views")?;
        all(control, &procedures::create(names, product), "procedures")?;
        load.note_baseline(&mut patient, sums)?;
        let analyze = |table: Table| format!("analyze table {}", names.relation(table.name()));
        load.several(&TABLES.map(analyze), "statistics")
    }

    fn complete(&self, marker: &Marker, metadata: &[(&str, String)]) -> Vec<String> {
        let mut sql = self::metadata(self.names, metadata);
        sql.push(marker::write_sql(marker, self.names, self.product));
        sql
    }
}

impl Copying<'_> {
    /// Copies and records a piece in one transaction, and retries while another thread's piece is in its way: INSERT
    /// into an empty InnoDB table takes locks on the whole table.
    fn copy_text(&self, connection: &mut Connection, table: Table, text: &[u8], note: &str) -> Result<(), MyError> {
        let mut attempt = || -> Result<(), MyError> {
            connection.run("begin")?;
            let copied = match self.way {
                Way::Local => self.local(connection, table, text),
                Way::Insert => self.insert(connection, table, text),
            };
            let noted = copied.and_then(|()| connection.run(note));
            let done = noted.and_then(|()| connection.run("commit"));
            if done.is_err() {
                // A lost connection cannot roll back; the original error says more.
                let _ = connection.run("rollback");
            }
            done
        };
        for _ in 1..ATTEMPTS {
            match attempt() {
                Err(error) if error.is_clash() => {}
                done => return done,
            }
        }
        attempt()
    }

    /// `table (columns)`: a table may have computed columns.
    fn into(&self, table: Table) -> String {
        let columns: Vec<String> = table.columns().iter().map(|column| ddl::quote(column.name)).collect();
        format!("{} ({})", self.names.relation(table.name()), columns.join(", "))
    }

    /// Sends lines as the file that the server requests.
    fn local(&self, connection: &mut Connection, table: Table, text: &[u8]) -> Result<(), MyError> {
        let into = self.into(table).replacen(" (", " character set latin1 (", 1);
        connection.load(&format!("load data local infile 'assay' into table {into}"), text)
    }

    /// Sends lines as INSERT statements with as many rows as fit.
    fn insert(&self, connection: &mut Connection, table: Table, text: &[u8]) -> Result<(), MyError> {
        let head = format!("insert into {} values ", self.into(table));
        let most = self.packet_bytes / 2;
        let mut sql = head.clone();
        for line in String::from_utf8_lossy(text).lines() {
            let values: Vec<String> = line.split('\t').map(value).collect();
            let comma = if sql.len() > head.len() { "," } else { "" };
            sql.push_str(&format!("{comma}({})", values.join(",")));
            if sql.len() > most.min(INSERT_BYTES) {
                connection.run(&sql)?;
                sql.truncate(head.len());
            }
        }
        if sql.len() > head.len() { connection.run(&sql) } else { Ok(()) }
    }
}

/// Attempts for a piece; each failure means that another thread's piece came first.
const ATTEMPTS: u32 = 10;

/// Approximate bytes of an INSERT.
const INSERT_BYTES: usize = 256 * 1024;

/// A value of a line as SQL.
fn value(text: &str) -> String {
    match text {
        "\\N" => "null".to_owned(),
        text => format!("'{}'", text.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mariadb::Mariadb;
    use crate::mariadb::tests::Server;
    use crate::orders::marker::LOADED;
    use crate::orders::target::Life;
    use assay_orders::work::{Piece, pieces};

    #[test]
    fn a_piece_with_others_in_its_way_is_copied_once_all_the_same() {
        let Some(server) = Server::shared() else {
            return;
        };
        let place = server.database("orders_clash");
        let settings = super::super::tests::settings(&[("ORDERS_SCHEMA", "assay_orders_clash")]);
        let (address, names) = MariadbOrders::at(&Mariadb::SLOB, &place, &settings, &Stop::new()).unwrap();
        let marker = Marker::asked(&settings).unwrap();
        let mut first = Connection::open(&address).unwrap();
        let sql = marker::create_sql(&marker, &names, first.product);
        all(&mut first, &sql, "creating the database").unwrap();
        let inside = within(&address, &names);
        let mut copying = Copying {
            address: &inside,
            names: &names,
            product: Product::MariaDb,
            way: Way::Local,
            partitions: 0,
            packet_bytes: 1 << 20,
        };
        let mut connection = copying.connect().unwrap();
        let tables = create_tables(&names, marker.which(), marker.partitions);
        all(&mut connection, &tables, "creating the tables").unwrap();
        // A sequence rolls back with nobody: the first attempts fail at their third row.
        for sql in [
            "create sequence orders_clash.tries",
            "create trigger clash before insert on orders for each row begin \
             declare n bigint default nextval(orders_clash.tries); \
             if n = 3 then signal sqlstate '40001' set mysql_errno = 1213, message_text = 'clash'; end if; \
             if n = 6 then signal sqlstate 'HY000' set mysql_errno = 1205, message_text = 'wait'; end if; end",
        ] {
            connection.run(sql).unwrap();
        }
        let generator = marker.generator();
        let loaded = names.relation(LOADED);
        for way in [Way::Local, Way::Insert] {
            copying.way = way;
            for sql in [
                "alter sequence orders_clash.tries restart 1".to_owned(),
                "delete from orders".to_owned(),
                format!("delete from {loaded}"),
            ] {
                connection.run(&sql).unwrap();
            }
            let orders = |piece: &Piece| piece.table.name() == "orders";
            let piece = pieces(&generator).into_iter().find(orders).unwrap();
            let mut lines = copying.lines();
            let mut source = Source { words: &names, generator: &generator, piece: &piece, lines: &mut lines };
            copying.copy_piece(&mut connection, &mut source).unwrap();
            let there = connection.number("select count(*) from orders").unwrap();
            let noted = format!("select count(*) from {loaded} where row_count = {there}");
            assert_eq!(there, lines.rows());
            assert_eq!(connection.number(&noted).unwrap(), 1);
            let tries = connection.number("select next_not_cached_value from orders_clash.tries").unwrap();
            assert!(tries > lines.rows() + 6, "{tries}");
        }
    }
}
