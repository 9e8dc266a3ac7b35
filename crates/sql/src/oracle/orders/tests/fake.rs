//! A stand-in for a server that really keeps the data set: SQLite performs the statements of order entry, each put into its words
//! first, so that loads, checks and transactions mean something. A call of the package is performed as its statements would be. What
//! is not order entry's (claims, V$ views, who is there) is answered by the stand-in of the folder above.
//!
//! One session at a time is in a transaction; others wait for its end. Nobody sees what is not committed. No server ran here: what
//! Oracle itself says to these statements is the parsers' and a server's to say.

use super::super::package::PACKAGE;
use super::super::session::send;
use super::super::statements::statement;
use super::super::{load, marker, sql};
use crate::oracle::address::Door;
use crate::oracle::session::{Bind, Id, OraError, Rows, Session, Way};
use crate::oracle::tests::fake as below;
use assay_orders::inputs::{Bounds, Inputs};
use assay_orders::mix::{ALL, Tx};
use assay_orders::model::{REFERENCES, RULES, TABLES};
use assay_orders::names::Lists;
use assay_orders::params::Pause;
use assay_orders::program::{self, Row, Statement, Value};
use assay_run::engine::EngineError;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Null, Value as Held, ValueRef};
use rusqlite::{Connection, ToSql};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// No transaction of a test takes longer.
const WAIT: Duration = Duration::from_secs(120);

type Sequences = Arc<Mutex<BTreeMap<String, i64>>>;

/// A database.
pub(super) struct Db {
    pub(super) sqlite: Connection,
    sequences: Sequences,
    /// The session whose transaction is open.
    holder: Option<u32>,
    /// Objects and their types.
    pub(super) objects: BTreeSet<(String, &'static str)>,
    constraints: BTreeSet<String>,
    /// Tables with statistics for the optimizer.
    pub(super) gathered: BTreeSet<String>,
    pub(super) triggers: Vec<&'static str>,
    /// Fails the next statement that contains the first with the second.
    pub(super) fail: Vec<(&'static str, OraError)>,
    /// Errors of the package.
    pub(super) invalid: Vec<&'static str>,
}

#[derive(Default)]
pub(super) struct Shared {
    db: Mutex<Db>,
    free: Condvar,
}

impl Shared {
    pub(super) fn db(&self) -> MutexGuard<'_, Db> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static DATABASES: LazyLock<Mutex<HashMap<String, Arc<Shared>>>> = LazyLock::new(Mutex::default);

/// The database of this name.
pub(super) fn database(name: &str) -> Arc<Shared> {
    let mut all = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry(name.to_owned()).or_default())
}

/// The way of tests: `//fake/NAME` leads to the database of that name.
pub(super) struct Fake;

impl Way for Fake {
    fn open(&self, door: &Door, answer: Duration) -> Result<Box<dyn Session>, EngineError> {
        let name = door.connect.rsplit('/').next().unwrap_or_default();
        Ok(Box::new(Over { shared: database(name), below: below::Fake.open(door, answer)? }))
    }
}

impl Default for Db {
    fn default() -> Self {
        let sequences = Sequences::default();
        let sqlite = Connection::open_in_memory().expect("memory");
        functions(&sqlite, &sequences).expect("functions");
        let setup = "create table dual (dummy); insert into dual values ('X'); create table slots (level); with t (n) as \
                     (select 1 union all select n + 1 from t where n < 12) insert into slots select n from t;";
        sqlite.execute_batch(setup).expect("tables of the server");
        Self {
            sqlite,
            sequences,
            holder: None,
            objects: BTreeSet::new(),
            constraints: BTreeSet::new(),
            gathered: BTreeSet::new(),
            triggers: Vec::new(),
            fail: Vec::new(),
            invalid: Vec::new(),
        }
    }
}

/// Days since 1970 of a text as the load writes it: `YYYY-MM-DD[ HH:MM:SS[+00:00]]`.
fn days(text: &str) -> f64 {
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let civil: jiff::civil::Date = date.parse().expect("a date");
    let days = (civil - jiff::civil::date(1970, 1, 1)).get_days();
    let parts: Vec<f64> = time[..8].split(':').map(|part| part.parse().expect("a number")).collect();
    f64::from(days) + (parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]) / 86_400.0
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_secs_f64() / 86_400.0
}

/// What Oracle has and SQLite has not. Points in time are days since 1970.
fn functions(sqlite: &Connection, sequences: &Sequences) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8;
    for name in ["to_date", "to_timestamp", "to_timestamp_tz"] {
        sqlite.create_scalar_function(name, 2, flags, |context| {
            let text: Option<String> = context.get(0)?;
            Ok(text.map(|text| days(&text)))
        })?;
    }
    sqlite.create_scalar_function("trunc", 1, flags, |context| {
        let days: Option<f64> = context.get(0)?;
        Ok(days.map(|days| days.floor() as i64))
    })?;
    for name in ["sys_extract_utc", "months"] {
        sqlite.create_scalar_function(name, 1, flags, |context| context.get::<Held>(0))?;
    }
    sqlite.create_scalar_function("numtoyminterval", 2, flags, |context| context.get::<i64>(0))?;
    sqlite.create_scalar_function("numtodsinterval", 2, flags, |context| Ok(context.get::<f64>(0)? / 1440.0))?;
    sqlite.create_scalar_function("sys_context", 2, flags, |_| Ok("US"))?;
    sqlite.create_scalar_function("to_char", 1, flags, |context| Ok(context.get::<i64>(0)?.to_string()))?;
    sqlite.create_scalar_function("now", 0, flags, |_| Ok(now()))?;
    sqlite.create_scalar_function("today", 0, flags, |_| Ok(now().floor() as i64))?;
    for (name, step) in [("nextval", 1), ("last_number", 0)] {
        let sequences = Arc::clone(sequences);
        sqlite.create_scalar_function(name, 1, flags, move |context| {
            let name: String = context.get::<String>(0)?.to_ascii_lowercase();
            let mut all = sequences.lock().unwrap_or_else(PoisonError::into_inner);
            let next = all.get_mut(&name).expect("a sequence");
            *next += step;
            Ok(*next - step)
        })?;
    }
    Ok(())
}

/// A statement in SQLite's words.
fn translated(statement: &str) -> String {
    let words = [
        ("trunc(current_date)", "today()"),
        ("trunc(localtimestamp, 'MI')", "now()"),
        ("localtimestamp(0)", "now()"),
        ("systimestamp", "now()"),
        ("date '2000-01-01'", "10957"),
        ("group by cube (o.order_mode, o.warehouse_id)", "group by o.order_mode, o.warehouse_id"),
        ("from dual connect by level <= 12", "from slots"),
        ("extract(year from warranty_period) * 12 + extract(month from warranty_period)", "months(warranty_period)"),
        ("nvl(", "ifnull("),
        ("ascii(", "unicode("),
        ("last_number - 1 from user_sequences where sequence_name = ", "last_number(name) - 1 from (select "),
        (" and rownum < 15", " limit 14"),
        (" and rownum < 10", " limit 9"),
        (" where rownum < 2", " limit 1"),
    ];
    let mut text = statement.to_owned();
    for (oracle, sqlite) in words {
        text = text.replace(oracle, sqlite);
    }
    // The name of a sequence stands where the query of it began.
    text = text.replace("_SEQ')", "_SEQ' as name))");
    while let Some(at) = text.find(".nextval") {
        let begins = text[..at].rfind([' ', '(']).map_or(0, |at| at + 1);
        let name = text[begins..at].to_owned();
        text.replace_range(begins..at + ".nextval".len(), &format!("nextval('{name}')"));
    }
    text
}

/// The definition of a table or an index in SQLite's words: without where and how it is stored.
fn plain(statement: &str) -> String {
    let end = statement.rfind(')').map_or(statement.len(), |at| at + 1);
    let types = [
        (" char)", ")"),
        ("timestamp(6) with time zone", "number"),
        ("timestamp(0)", "number"),
        ("interval year(2) to month", "number"),
    ];
    types.iter().fold(statement[..end].to_owned(), |text, (oracle, sqlite)| text.replace(oracle, sqlite))
}

fn said(code: u32, what: &str) -> OraError {
    OraError::said(code, format!("ORA-{code:05}: {what}"))
}

impl From<rusqlite::Error> for OraError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        if text.contains("no such table") {
            said(942, &text)
        } else {
            // Nothing here may pass for a failure that is expected.
            panic!("{text}")
        }
    }
}

fn word(text: &str, at: usize) -> String {
    let word = text.split([' ', '(']).filter(|word| !word.is_empty()).nth(at);
    word.unwrap_or_default().to_owned()
}

impl Db {
    /// Rows that meet a condition, for constraints.
    fn count(&self, sql: &str) -> i64 {
        self.sqlite.query_row(sql, [], |row| row.get(0)).expect("a count")
    }

    fn make(&mut self, name: &str, kind: &'static str, again: bool) -> Result<(), OraError> {
        let new = self.objects.insert((name.to_owned(), kind));
        if new || again { Ok(()) } else { Err(said(955, "name is already used by an existing object")) }
    }

    fn create(&mut self, statement: &str) -> Result<(), OraError> {
        let again = statement.starts_with("create or replace ");
        let what = statement.replace("create or replace ", "create ");
        let name = word(&what, 2);
        match word(&what, 1).as_str() {
            "table" => {
                self.make(&name, "TABLE", again)?;
                self.sqlite.execute_batch(&plain(&what))?;
            }
            "index" => {
                if !self.constraints.insert(name) {
                    return Err(said(955, "name is already used by an existing object"));
                }
                self.sqlite.execute_batch(&plain(&what))?;
            }
            "sequence" => {
                self.make(&name, "SEQUENCE", again)?;
                let next = word(&what, 5).parse().expect("a number");
                let mut all = self.sequences.lock().unwrap_or_else(PoisonError::into_inner);
                all.insert(name, next);
            }
            "view" => {
                self.make(&name, "VIEW", again)?;
                let sql = format!("drop view if exists {name}; {what}");
                self.sqlite.execute_batch(&sql)?;
            }
            "package" if name == "body" => self.make(PACKAGE, "PACKAGE BODY", again)?,
            "package" => self.make(PACKAGE, "PACKAGE", again)?,
            _ => panic!("{statement}"),
        }
        Ok(())
    }

    /// A key, a rule or a reference: the rows meet it, or nobody would have made it.
    fn constrain(&mut self, statement: &str) -> Result<(), OraError> {
        let (table, name) = (word(statement, 2), word(statement, 5));
        if self.constraints.contains(&name) {
            let code = if name.ends_with("_pk") { 2260 } else { 2264 };
            return Err(said(code, "it is there"));
        }
        let primary = TABLES.into_iter().find(|one| name == format!("{}_pk", one.name()));
        if let Some(of) = primary {
            let key = of.key().join(", ");
            assert!(statement.contains(&format!("primary key ({key})")), "{statement}");
            let sql = format!("create unique index {name} on {table} ({key})");
            self.sqlite.execute_batch(&sql)?;
        } else if let Some((_, of, rule)) = RULES.into_iter().find(|(known, ..)| *known == name) {
            assert!(of.name() == table && statement.contains(rule), "{statement}");
            assert_eq!(self.count(&format!("select count(*) from {table} where not ({rule})")), 0);
        } else {
            let one = REFERENCES.iter().find(|one| one.name == name);
            let one = one.unwrap_or_else(|| panic!("{statement}"));
            let (column, parent) = (one.column, one.parent.name());
            let orphans = format!(
                "select count(*) from {table} where {column} is not null and {column} not in (select {column} from {parent})"
            );
            assert_eq!(self.count(&orphans), 0, "{statement}");
        }
        self.constraints.insert(name);
        Ok(())
    }

    fn remove(&mut self, statement: &str) -> Result<(), OraError> {
        let (kind, name) = (word(statement, 1), word(statement, 2));
        let before = self.objects.len();
        self.objects.retain(|(known, _)| *known != name);
        if self.objects.len() == before {
            let code = match kind.as_str() {
                "sequence" => 2289,
                "package" => 4043,
                _ => 942,
            };
            return Err(said(code, "there is none"));
        }
        if ["table", "view"].contains(&kind.as_str()) {
            self.sqlite.execute_batch(&format!("drop {kind} {name}"))?;
        }
        if let Some(table) = assay_orders::model::Table::named(&name) {
            let of = |index: &&assay_orders::model::Index| index.table == table;
            for index in assay_orders::model::INDEXES.iter().filter(of) {
                self.constraints.remove(index.name);
            }
            self.constraints.remove(&format!("{name}_pk"));
            self.constraints.retain(|known| {
                !REFERENCES.iter().any(|one| one.name == known && one.table == table)
                    && !RULES.iter().any(|(rule, of, _)| rule == known && *of == table)
            });
        }
        Ok(())
    }
}

/// What a bind is: text of no length is none.
fn held(bind: &Bind<'_>) -> Box<dyn ToSql> {
    match bind {
        Bind::Int(n) => Box::new(*n),
        Bind::Text("") | Bind::Null => Box::new(Null),
        Bind::Text(text) => Box::new((*text).to_owned()),
    }
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(n) => Some(n.to_string()),
        ValueRef::Real(n) => Some(n.to_string()),
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(_) => panic!("no column is binary"),
    }
}

struct Over {
    shared: Arc<Shared>,
    below: Box<dyn Session>,
}

impl Drop for Over {
    fn drop(&mut self) {
        self.end("rollback");
    }
}

/// What the stand-in of the folder above answers.
fn is_below(statement: &str) -> bool {
    let known = [sql::WHO, sql::TABLESPACE, sql::HOLDERS, sql::LIFE, sql::NAME_SESSION];
    known.contains(&statement) || statement.contains("v$") || statement.contains("assay_claim")
}

impl Over {
    /// The database when no other session's transaction is open.
    fn alone<'a>(shared: &'a Shared, sid: u32, statement: &str) -> Result<MutexGuard<'a, Db>, OraError> {
        let waited =
            shared.free.wait_timeout_while(shared.db(), WAIT, |db| db.holder.is_some_and(|holder| holder != sid));
        let (mut db, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "a transaction did not end: {statement}");
        if let Some(at) = db.fail.iter().position(|(part, _)| statement.contains(part)) {
            return Err(db.fail.remove(at).1);
        }
        Ok(db)
    }

    fn db(&self, statement: &str) -> Result<MutexGuard<'_, Db>, OraError> {
        Self::alone(&self.shared, self.below.id().sid, statement)
    }

    /// The same, in a transaction.
    fn changing(&self, statement: &str) -> Result<MutexGuard<'_, Db>, OraError> {
        let mut db = self.db(statement)?;
        if db.holder.is_none() {
            db.sqlite.execute_batch("begin")?;
            db.holder = Some(self.below.id().sid);
        }
        Ok(db)
    }

    fn end(&mut self, how: &str) {
        let mut db = self.shared.db();
        if db.holder == Some(self.below.id().sid) {
            db.sqlite.execute_batch(how).expect("it ends");
            db.holder = None;
            self.shared.free.notify_all();
        }
    }

    fn define(&mut self, statement: &str) -> Result<u64, OraError> {
        // Every DDL statement ends a transaction.
        self.end("commit");
        let mut db = self.db(statement)?;
        match word(statement, 0).as_str() {
            "create" => db.create(statement)?,
            "drop" => db.remove(statement)?,
            _ => db.constrain(statement)?,
        }
        Ok(0)
    }

    /// Performs what a procedure of the package would.
    fn procedure(&mut self, tx: Tx, binds: &[Bind<'_>]) -> Result<String, OraError> {
        let lists = Lists::default();
        let inputs = inputs(tx, binds, &lists);
        let done = program::perform(&inputs, &mut Inside(self))?;
        self.commit()?;
        let numbers = [done.selects, done.inserts, done.updates, done.logons, done.lines, done.found];
        Ok(numbers.map(|n| n.to_string()).join(","))
    }
}

/// The statements of a procedure under way.
struct Inside<'a>(&'a mut Over);

impl program::Session for Inside<'_> {
    type Error = OraError;

    fn send(&mut self, one: Statement, values: &[Value<'_>]) -> Result<Vec<Row>, OraError> {
        send(self.0, &statement(one), values)
    }

    fn think(&mut self) {}
}

/// Inputs as the arguments of a call say them, in the order of the package's own.
fn inputs<'a>(tx: Tx, binds: &[Bind<'a>], lists: &'a Lists) -> Inputs<'a> {
    let int = |at: usize| match binds[at] {
        Bind::Int(n) => n,
        other => panic!("argument {at} of {tx:?} is {other:?}"),
    };
    let small = |at: usize| i32::try_from(int(at)).expect("it fits");
    let text = |at: usize| match binds[at] {
        Bind::Text(text) => text,
        other => panic!("argument {at} of {tx:?} is {other:?}"),
    };
    let items = |at: usize, into: &mut [i32]| {
        for (one, digits) in into.iter_mut().zip(text(at).as_bytes().chunks(4)) {
            *one = std::str::from_utf8(digits).expect("digits").parse().expect("a number");
        }
    };
    let bounds = Bounds { customers: (1, 2) };
    let mut i = Inputs::draw(tx, 0, bounds, lists);
    match tx {
        Tx::CustomerRegistration => {
            (i.first, i.last, i.territory) = (text(0), text(1), text(3));
            i.language = text(2).as_bytes().try_into().expect("two letters");
            i.place = [text(4), text(5), text(6)];
            (i.house, i.credit, i.manager) = (small(7), small(8), small(9));
            (i.age_days, i.card, i.expires_days) = (small(10), int(11), small(12));
            (i.security, i.logon) = (small(13), int(14) == 1);
        }
        Tx::UpdateCustomerDetails => {
            (i.first, i.last) = (text(0), text(1));
            i.place = [text(2), text(3), text(4)];
            i.house = small(5);
        }
        Tx::BrowseProducts => {
            items(0, &mut i.products);
            i.looks = int(1) as usize;
        }
        Tx::OrderProducts => {
            (i.customer, i.logon) = (int(0), int(1) == 1);
            items(2, &mut i.categories);
            items(3, &mut i.warehouses);
            (i.looks, i.buys) = (int(4) as usize, int(7) as usize);
            (i.warehouse, i.cost, i.status) = (small(5), small(6), small(9));
            items(8, &mut i.stocks);
        }
        Tx::ProcessOrders => (i.warehouse, i.status) = (small(0), small(1)),
        Tx::BrowseOrders => {
            (i.customer, i.logon) = (int(0), int(1) == 1);
            i.picks = [int(2) as u32, int(3) as u32];
        }
        Tx::SalesRepQuery => i.sales_rep = small(0),
        Tx::WarehouseQuery | Tx::WarehouseActivityQuery => i.warehouse = small(0),
    }
    let pause = Pause { min_ns: int(binds.len() - 2) as u64, max_ns: int(binds.len() - 1) as u64 };
    assert!(!pause.is_some(), "no test pauses within a call");
    i
}

impl Session for Over {
    fn id(&self) -> Id {
        self.below.id()
    }

    fn patience(&mut self, answer: Duration) -> Result<(), OraError> {
        self.below.patience(answer)
    }

    fn run(&mut self, statement: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        if is_below(statement) {
            return self.below.run(statement, binds);
        }
        match word(statement, 0).as_str() {
            "create" | "drop" => return self.define(statement),
            "alter" if statement.starts_with("alter table") => return self.define(statement),
            "alter" => {
                assert_eq!(statement, load::SETUP);
                return Ok(0);
            }
            "begin" => {
                let table = statement.split('\'').nth(1).expect("a table");
                let mut db = self.db(statement)?;
                db.gathered.insert(table.to_ascii_lowercase());
                return Ok(0);
            }
            _ => {}
        }
        let db = self.changing(statement)?;
        let mut prepared = db.sqlite.prepare(&translated(statement))?;
        let values: Vec<Box<dyn ToSql>> = binds.iter().map(held).collect();
        Ok(prepared.execute(rusqlite::params_from_iter(values))? as u64)
    }

    fn batch(&mut self, statement: &str, rows: &[Vec<Bind<'_>>]) -> Result<u64, OraError> {
        let db = self.changing(statement)?;
        let mut prepared = db.sqlite.prepare(&translated(statement))?;
        for row in rows {
            for (at, bind) in (1..).zip(row) {
                match bind {
                    Bind::Int(n) => prepared.raw_bind_parameter(at, n)?,
                    Bind::Text("") | Bind::Null => prepared.raw_bind_parameter(at, Null)?,
                    Bind::Text(text) => prepared.raw_bind_parameter(at, text)?,
                }
            }
            prepared.raw_execute()?;
        }
        Ok(rows.len() as u64)
    }

    fn rows(&mut self, statement: &str, binds: &[Bind<'_>]) -> Result<Rows, OraError> {
        if is_below(statement) {
            return self.below.rows(statement, binds);
        }
        if statement == sql::CONTENT {
            let mut rows = self.below.rows(statement, binds)?;
            let db = self.shared.db();
            let row = |(name, kind): &(String, &str)| vec![Some(name.clone()), Some((*kind).to_owned())];
            rows.extend(db.objects.iter().map(row));
            return Ok(rows);
        }
        let db = self.db(statement)?;
        let told = |all: &[&'static str]| -> Rows { all.iter().map(|one| vec![Some((*one).to_owned())]).collect() };
        match statement {
            marker::STRANGE => return Ok(told(&db.triggers)),
            load::INVALID => return Ok(told(&db.invalid)),
            _ => {}
        }
        let mut prepared = db.sqlite.prepare(&translated(statement))?;
        let columns = prepared.column_count();
        let values: Vec<Box<dyn ToSql>> = binds.iter().map(held).collect();
        let mut found = prepared.query(rusqlite::params_from_iter(values))?;
        let mut rows = Rows::new();
        while let Some(row) = found.next()? {
            let value = |at| Ok(text_of(row.get_ref(at)?));
            let row: rusqlite::Result<_> = (0..columns).map(value).collect();
            rows.push(row?);
        }
        Ok(rows)
    }

    fn leading(&mut self, statement: &str, binds: &[Bind<'_>], columns: usize) -> Result<Rows, OraError> {
        let mut rows = self.rows(statement, binds)?;
        rows.iter_mut().for_each(|row| row.truncate(columns));
        Ok(rows)
    }

    fn number(&mut self, statement: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        self.below.number(statement, binds)
    }

    fn call(&mut self, statement: &str, binds: &[Bind<'_>], _outs: usize) -> Result<Vec<String>, OraError> {
        let of = format!("begin {PACKAGE}.");
        if let Some(rest) = statement.strip_prefix(&of) {
            let name = word(rest, 0);
            let tx = ALL.into_iter().find(|tx| tx.key() == name).expect("a procedure");
            drop(self.db(statement)?);
            return Ok(vec![self.procedure(tx, binds)?]);
        }
        // An insert that tells its number.
        let begins = statement.find("insert into").expect("an insert");
        let ends = statement.find(" returning ").expect("what it returns");
        self.run(&statement[begins..ends], binds)?;
        let db = self.db("")?;
        let sql = "select order_id from orders where rowid = last_insert_rowid()";
        let id: i64 = db.sqlite.query_row(sql, [], |row| row.get(0))?;
        Ok(vec![id.to_string()])
    }

    fn commit(&mut self) -> Result<(), OraError> {
        self.end("commit");
        self.below.commit()
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        self.end("rollback");
        self.below.rollback()
    }
}
