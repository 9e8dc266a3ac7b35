//! A stand-in for a server: it keeps tables, locks and counters in memory and answers the statements of `sql`, and no others. Its
//! V$ views have the shapes that AWR reports of the field publish (names, units, classes), and move as operations are done.
//!
//! No server can run where these tests do. What this proves is everything above the driver: order, claims, marker, resume, counts,
//! statistics, reports; that a server takes the statements is the parsers' and a server's to say.

mod views;

use super::super::address::Door;
use super::super::session::{Bind, Id, OraError, Rows, Session, Way};
use super::super::sql;
use assay_run::engine::EngineError;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use views::{dictionary, instance, keys, plan, verify, views};

/// The one password of the one user.
pub(in super::super) const PASSWORD: &str = "Kq9right";
const BLOCK: u64 = 8192;

/// A row: where it lies, and what an update wrote to its first column.
#[derive(Clone, Debug)]
struct Row {
    block: u64,
    c2: String,
    /// Bytes of a column that is not as long as the others.
    odd: bool,
}

#[derive(Clone, Debug, Default)]
struct Table {
    ddl: String,
    rows: BTreeMap<i64, Row>,
    /// How many rows a block takes: without the freeze two fit, as PCTFREE 99 alone cannot promise one in larger blocks.
    frozen: bool,
    inserted: u64,
    index: Option<(String, bool)>,
}

/// A database.
#[derive(Debug, Default)]
pub(in super::super) struct Db {
    tables: BTreeMap<String, Table>,
    marker: Vec<Vec<Option<String>>>,
    states: BTreeMap<i64, String>,
    /// Who locks the table of claims, and whether alone.
    claims: HashMap<u32, bool>,
    /// Added to V$ views: by name.
    pub(in super::super) moved: BTreeMap<&'static str, u64>,
    /// Fails the next statement that contains the first with the second.
    pub(in super::super) fail: Vec<(&'static str, OraError)>,
    /// What `user_objects` has besides.
    pub(in super::super) foreign: Vec<&'static str>,
    pub(in super::super) triggers: Vec<&'static str>,
    pub(in super::super) statspack: bool,
    pub(in super::super) role: Option<&'static str>,
    pub(in super::super) management: Option<&'static str>,
    pub(in super::super) keep_bytes: u64,
    /// Reading V$ views is denied.
    pub(in super::super) denied: bool,
    /// An index is built until this is taken back, or the statement is cancelled; whether one is being built.
    pub(in super::super) slow_index: bool,
    pub(in super::super) building: bool,
    /// Ends every session at its next call.
    pub(in super::super) down: bool,
    /// Every statement text that came, once.
    pub(in super::super) seen: BTreeMap<String, u64>,
    /// What each operation takes, and what the views say that it took.
    pub(in super::super) latency: Duration,
    /// Sessions that said who they are.
    named: Vec<u32>,
    snapshots: u64,
    /// The statement that each session explained: its plan table is its own.
    plan_of: BTreeMap<u32, String>,
}

#[derive(Default)]
pub(in super::super) struct Shared {
    db: Mutex<Db>,
    changed: Condvar,
}

impl Shared {
    pub(in super::super) fn db(&self) -> MutexGuard<'_, Db> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while this is so.
    pub(in super::super) fn wait<'a>(&'a self, db: MutexGuard<'a, Db>, so: impl Fn(&Db) -> bool) -> MutexGuard<'a, Db> {
        self.changed.notify_all();
        let waited = self.changed.wait_while(db, |db| so(db));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

static DATABASES: LazyLock<Mutex<HashMap<String, Arc<Shared>>>> = LazyLock::new(Mutex::default);
static SESSIONS: AtomicU32 = AtomicU32::new(100);

/// The database of this name; it is made when it is first asked for.
pub(in super::super) fn database(name: &str) -> Arc<Shared> {
    let mut all = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry(name.to_owned()).or_default())
}

/// The way of tests: `//fake/NAME` leads to the database of that name.
pub(in super::super) struct Fake;

impl Way for Fake {
    fn open(&self, door: &Door, _answer: Duration) -> Result<Box<dyn Session>, EngineError> {
        let name = door.connect.rsplit('/').next().unwrap_or_default();
        // Numbered services are ways to one database.
        let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        if door.password.reveal() != PASSWORD {
            return Err(EngineError::Unusable(format!(
                "cannot connect to {} as {}: ORA-01017: invalid credential or not authorized; logon denied",
                door.connect, door.user
            )));
        }
        let shared = database(name);
        shared.db().add("logons cumulative", 1);
        Ok(Box::new(FakeSession {
            shared,
            sid: SESSIONS.fetch_add(1, Ordering::Relaxed),
            user: door.user.to_ascii_uppercase(),
            waiting: 0,
        }))
    }
}

struct FakeSession {
    shared: Arc<Shared>,
    sid: u32,
    user: String,
    /// Rows of an open transaction.
    waiting: u64,
}

impl Drop for FakeSession {
    fn drop(&mut self) {
        self.shared.db().claims.remove(&self.sid);
        self.shared.changed.notify_all();
    }
}

impl Db {
    pub(in super::super) fn add(&mut self, name: &'static str, n: u64) {
        *self.moved.entry(name).or_default() += n;
    }

    fn at(&self, name: &str) -> u64 {
        self.moved.get(name).copied().unwrap_or(0)
    }

    /// Rows read through the index: each a get and, for most, a read.
    fn fetched(&mut self, rows: u64) {
        self.add("execute count", 1);
        self.add("consistent gets", rows + 3);
        self.add("consistent gets from cache", rows + 3);
        self.add("table fetch by rowid", rows);
        let reads = rows * 9 / 10;
        for name in ["physical reads", "physical reads cache", "physical read IO requests", "free buffer requested"] {
            self.add(name, reads);
        }
        self.add("physical read total IO requests", reads);
        self.add("session logical reads", rows + 3);
        let us = self.latency.as_micros() as u64;
        self.add("busy us", us * 9 / 10);
        self.add("cpu us", us / 10);
        self.add("read us", us / 2);
        self.add("physical read bytes", reads * BLOCK);
        self.add("physical read total bytes", reads * BLOCK);
        self.add("waits", reads);
    }

    fn changed(&mut self, rows: u64) {
        self.add("execute count", 1);
        self.add("db block gets", rows * 2);
        self.add("session logical reads", rows * 2);
        self.add("db block gets from cache", rows * 2);
        self.add("db block changes", rows * 2 + 5);
        self.add("redo size", rows * 800);
        self.add("redo entries", rows);
        self.add("undo change vector size", rows * 300);
    }

    fn committed(&mut self) {
        self.add("user commits", 1);
        self.add("redo synch writes", 1);
        self.add("redo writes", 1);
        self.add("physical write total IO requests", 1);
        self.add("physical write total bytes", 2048);
        let us = self.latency.as_micros() as u64;
        self.add("sync us", us / 5);
        self.add("redo write time", us / 6 / 10_000);
        self.add("redo synch time (usec)", us / 5);
        self.add("redo blocks written", 4);
        self.add("redo wastage", 200);
        self.add("commits waited", 1);
    }

    fn table(&mut self, name: &str) -> Result<&mut Table, OraError> {
        let missing = || OraError::said(942, format!("ORA-00942: table or view \"SLOB\".\"{name}\" does not exist"));
        self.tables.get_mut(&name.to_ascii_lowercase()).ok_or_else(missing)
    }

    fn insert(&mut self, name: &str, key: i64) -> Result<(), OraError> {
        let table = self.table(name)?;
        let each = if table.frozen { 1 } else { 2 };
        let block = 128 + table.inserted / each;
        table.inserted += 1;
        let c2 = "X".repeat(128);
        table.rows.insert(key, Row { block, c2, odd: false });
        Ok(())
    }

    fn update(&mut self, name: &str, (first, last): (i64, i64), c2: &str) -> Result<u64, OraError> {
        let table = self.table(name)?;
        let mut rows = 0;
        for (_, row) in table.rows.range_mut(first..=last) {
            c2.clone_into(&mut row.c2);
            rows += 1;
        }
        self.fetched(rows);
        self.changed(rows);
        Ok(rows)
    }

    fn select(&mut self, name: &str, (first, last): (i64, i64)) -> Result<u64, OraError> {
        let rows = self.table(name)?.rows.range(first..=last).count() as u64;
        self.fetched(rows);
        Ok(rows)
    }

    fn scan(&mut self, name: &str) -> Result<u64, OraError> {
        let rows = self.table(name)?.rows.len() as u64;
        self.add("execute count", 1);
        self.add("table scan blocks gotten", rows);
        self.add("session logical reads", rows);
        let us = self.latency.as_micros() as u64;
        self.add("busy us", us * 9 / 10);
        self.add("cpu us", us / 2);
        self.add("consistent gets", rows);
        self.add("consistent gets from cache", rows);
        Ok(rows)
    }

    /// Makes a column of a row shorter, as somebody's hand might.
    pub(in super::super) fn harm(&mut self, table: &str, key: i64) {
        let row = self.tables.get_mut(table).and_then(|table| table.rows.get_mut(&key));
        row.expect("it was loaded").odd = true;
    }

    /// What an update left in the first column of a row.
    pub(in super::super) fn content(&self, table: &str, key: i64) -> &str {
        &self.tables[table].rows[&key].c2
    }

    pub(in super::super) fn drop_index(&mut self, table: &str) {
        self.tables.get_mut(table).expect("it was loaded").index = None;
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

fn row(values: &[&str]) -> Vec<Option<String>> {
    let value = |text: &&str| (!text.is_empty()).then(|| (*text).to_owned());
    values.iter().map(value).collect()
}

/// The word after another one.
fn word_after<'a>(sql: &'a str, before: &str) -> &'a str {
    let at = sql.find(before).unwrap_or_else(|| panic!("no {before:?} in {sql}"));
    let rest = &sql[at + before.len()..];
    rest.split([' ', ';', ',', ')']).next().unwrap_or_default()
}

fn ints(binds: &[Bind<'_>]) -> Vec<i64> {
    let int = |bind: &Bind<'_>| match bind {
        Bind::Int(value) => Some(*value),
        Bind::Text(_) | Bind::Null => None,
    };
    binds.iter().filter_map(int).collect()
}

fn texts<'a>(binds: &[Bind<'a>]) -> Vec<&'a str> {
    let text = |bind: &Bind<'a>| match bind {
        Bind::Text(text) => Some(*text),
        Bind::Int(_) | Bind::Null => None,
    };
    binds.iter().filter_map(text).collect()
}

fn range(binds: &[Bind<'_>]) -> (i64, i64) {
    let keys = ints(binds);
    (keys[keys.len() - 2], keys[keys.len() - 1])
}

impl FakeSession {
    /// What a disk would take.
    fn work(&self) {
        let latency = self.shared.db().latency;
        if !latency.is_zero() {
            std::thread::sleep(latency);
        }
    }

    /// The state, unless the statement is to fail.
    fn begin(&self, sql: &str) -> Result<MutexGuard<'_, Db>, OraError> {
        let mut db = self.shared.db();
        if db.down {
            return Err(OraError::said(3113, "ORA-03113: end-of-file on communication channel"));
        }
        *db.seen.entry(sql.to_owned()).or_default() += 1;
        if db.denied && sql.contains("v$") {
            return Err(OraError::said(942, "ORA-00942: table or view \"SYS\".\"V_$PARAMETER\" does not exist"));
        }
        if let Some(at) = db.fail.iter().position(|(part, _)| sql.contains(part)) {
            return Err(db.fail.remove(at).1);
        }
        Ok(db)
    }

    fn lock(&self, alone: bool) -> Result<u64, OraError> {
        let begun = Instant::now();
        let mut db = self.shared.db();
        db.table(sql::CLAIM)?;
        loop {
            let others = db.claims.iter().filter(|(sid, _)| **sid != self.sid);
            if others.clone().all(|(_, theirs)| !alone && !*theirs) {
                db.claims.insert(self.sid, alone);
                return Ok(0);
            }
            let left = Duration::from_secs(2).saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(OraError::said(30_006, "ORA-30006: resource busy; acquire with WAIT timeout expired"));
            }
            let waited = self.shared.changed.wait_timeout(db, left);
            db = waited.unwrap_or_else(PoisonError::into_inner).0;
            db.table(sql::CLAIM)?;
        }
    }

    fn ddl(&self, db: &mut Db, statement: &str) -> Result<u64, OraError> {
        // Every DDL statement ends a transaction.
        db.claims.remove(&self.sid);
        self.shared.changed.notify_all();
        if let Some(rest) = statement.strip_prefix("create table ") {
            let name = rest.split(' ').next().unwrap_or_default().to_owned();
            if db.tables.contains_key(&name) {
                return Err(OraError::said(955, "ORA-00955: name is already used by an existing object"));
            }
            let ddl = statement.to_owned();
            db.tables.insert(name, Table { ddl, ..Table::default() });
        } else if statement.starts_with("drop table ") {
            let name = word_after(statement, "drop table ").to_owned();
            if name == sql::CLAIM && !db.claims.is_empty() {
                return Err(OraError::said(
                    54,
                    "ORA-00054: resource busy and acquire with NOWAIT specified or timeout expired",
                ));
            }
            db.table(&name)?;
            db.tables.remove(&name);
            if name == sql::SCHEMAS {
                db.states.clear();
            }
        } else if statement.starts_with("truncate table ") {
            let table = db.table(word_after(statement, "truncate table "))?;
            table.rows.clear();
            table.inserted = 0;
        } else if statement.contains("minimize records_per_block") {
            let table = db.table(word_after(statement, "alter table "))?;
            assert!(table.rows.len() == 1 && table.ddl.contains("pctfree 99"), "{}", table.ddl);
            table.frozen = true;
        } else if statement.starts_with("alter system cancel sql") {
            db.building = false;
        } else if statement.starts_with("create") && statement.contains("index ") {
            let unique = statement.starts_with("create unique");
            let table = db.table(word_after(statement, " on "))?;
            table.index = Some((word_after(statement, "index ").to_owned(), unique));
        } else {
            assert!(statement.starts_with("alter system"), "{statement}");
        }
        Ok(0)
    }

    /// Statements on the marker's tables.
    fn marker(&self, db: &mut Db, statement: &str, binds: &[Bind<'_>]) -> Option<u64> {
        let n = ints(binds).first().copied().unwrap_or(0);
        match statement {
            sql::WRITE_MARKER => {
                let mut values = vec![Some(n.to_string())];
                values.extend(texts(binds).into_iter().map(|text| Some(text.to_owned())));
                values.push(Some("2026-11-25 08:00:00Z".to_owned()));
                db.marker = vec![values];
            }
            sql::FORGET_ALL => db.marker.clear(),
            sql::NOTE_LOADING => drop(db.states.insert(n, "loading".to_owned())),
            sql::NOTE_LOADED | sql::NOTE_GOING => {
                let state = if statement == sql::NOTE_LOADED { "loaded" } else { "loading" };
                db.states.get_mut(&n)?.replace_range(.., state);
            }
            sql::FORGET => drop(db.states.remove(&n)),
            _ => return None,
        }
        Some(1)
    }

    /// The block of LOOP=server.
    fn slice(&mut self, block: &str, binds: &[Bind<'_>]) -> Result<Vec<String>, OraError> {
        let texts = texts(binds);
        let width = |what: &str| -> i64 { word_after(block, what).parse().expect("a width") };
        let (ops, mut stamps, limit_us) = (texts[0], texts[1], texts[2].parse::<u64>().expect("a number"));
        let widths: Vec<i64> = block
            .match_indices("b := a + ")
            .map(|(at, _)| word_after(&block[at..], "b := a + ").parse().expect("a width"))
            .collect();
        let scale = width("if b > ");
        let begun = Instant::now();
        let (mut counts, mut ends, mut failed) = (String::new(), String::new(), String::new());
        for op in ops.as_bytes().chunks(sql::OP_CHARS) {
            if begun.elapsed().as_micros() as u64 >= limit_us && !counts.is_empty() || limit_us == 0 {
                break;
            }
            let letter = char::from(op[0]);
            let first: i64 = std::str::from_utf8(&op[1..]).expect("digits").parse().expect("a key");
            // A capital means the hot schema, which has statements of its own in the block.
            let arm = format!("when '{letter}' then ");
            let at = block.find(&arm).unwrap_or_else(|| panic!("no {arm:?} in {block}"));
            let table = match letter.to_ascii_lowercase() {
                'u' | 'v' => word_after(&block[at..], "*/ ").to_owned(),
                _ => word_after(&block[at..], " from ").to_owned(),
            };
            self.work();
            let done = (|| {
                let mut db = self.begin(&arm)?;
                let both = |width: i64| [(first, (first + width - 1).min(scale)), (1, first + width - 1 - scale)];
                let mut rows = 0;
                match letter.to_ascii_lowercase() {
                    's' => {
                        for keys in both(widths[0]).into_iter().filter(|(a, b)| a <= b) {
                            rows += db.select(&table, keys)?;
                        }
                    }
                    'c' => rows = db.scan(&table)?,
                    _ => {
                        let (stamp, rest) = stamps.split_at(16);
                        stamps = rest;
                        let content = format!("{stamp}{}", "X".repeat(112));
                        for keys in both(widths[1]).into_iter().filter(|(a, b)| a <= b) {
                            rows += db.update(&table, keys, &content)?;
                        }
                        if letter.eq_ignore_ascii_case(&'u') {
                            db.committed();
                        }
                    }
                }
                Ok::<u64, OraError>(rows)
            })();
            let rows = match done {
                Ok(rows) => rows,
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => {
                    failed = error.text;
                    0
                }
            };
            counts.push_str(&format!("{rows:010}"));
            ends.push_str(&format!("{:010}", begun.elapsed().as_micros()));
            if !failed.is_empty() {
                break;
            }
        }
        Ok(vec![counts, ends, failed])
    }
}

impl Session for FakeSession {
    fn id(&self) -> Id {
        Id { sid: self.sid, serial: 1 }
    }

    fn patience(&mut self, _answer: Duration) -> Result<(), OraError> {
        Ok(())
    }

    fn run(&mut self, statement: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        let mut db = self.begin(statement)?;
        if let Some(rows) = self.marker(&mut db, statement, binds) {
            return Ok(rows);
        }
        if statement.starts_with("lock table ") {
            drop(db);
            return self.lock(statement.contains("exclusive"));
        }
        if statement.starts_with("insert into ") {
            let table = word_after(statement, "insert into ").to_owned();
            db.insert(&table, ints(binds)[0])?;
            return Ok(1);
        }
        if statement.starts_with("update ") {
            let table = word_after(statement, "*/ ").to_owned();
            let rows = db.update(&table, range(binds), texts(binds)[0])?;
            drop(db);
            self.waiting += rows;
            return Ok(rows);
        }
        if let Some(explained) = statement.strip_prefix("explain plan set statement_id = 'assay' for ") {
            db.plan_of.insert(self.sid, explained.to_owned());
            return Ok(0);
        }
        if statement == sql::NAME_SESSION {
            db.named.push(self.sid);
        }
        if statement == sql::GATHER || statement == sql::NAME_SESSION || statement == sql::FORGET_PLAN {
            return Ok(0);
        }
        if db.slow_index && statement.starts_with("create index ") {
            db.building = true;
            db = self.shared.wait(db, |db| db.slow_index && db.building);
            if db.slow_index {
                return Err(OraError::said(1013, "ORA-01013: user requested cancel of current operation"));
            }
        }
        self.ddl(&mut db, statement)
    }

    fn batch(&mut self, statement: &str, rows: &[Vec<Bind<'_>>]) -> Result<u64, OraError> {
        let mut db = self.begin(statement)?;
        let table = word_after(statement, "insert into ").to_owned();
        for row in rows {
            assert_eq!(row.len(), statement.matches(':').count(), "{statement}");
            db.insert(&table, ints(row)[0])?;
        }
        Ok(rows.len() as u64)
    }

    fn rows(&mut self, statement: &str, binds: &[Bind<'_>]) -> Result<Rows, OraError> {
        let mut db = self.begin(statement)?;
        let table = texts(binds).first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
        match statement {
            sql::WHO => Ok(vec![row(&[
                &self.user,
                "orcl",
                "orcl1",
                "ORCLPDB1",
                "orclpdb1",
                db.role.unwrap_or("PRIMARY"),
                "19.0.0.0.0",
                "USERS",
                "dbhost1",
            ])]),
            sql::TABLESPACE => Ok(match table.as_str() {
                "users" => vec![row(&["8192", "ONLINE", "NOLOGGING", "AUTO", "9663676416", "unlimited"])],
                _ => Vec::new(),
            }),
            sql::CONTENT => {
                let mut names: Vec<&str> = db.tables.keys().map(String::as_str).collect();
                names.extend(&db.foreign);
                Ok(names.into_iter().map(|name| row(&[name, "TABLE"])).collect())
            }
            sql::STRANGE => Ok(db.triggers.iter().map(|name| row(&[name])).collect()),
            sql::READ_FORMAT => Ok(db.marker.iter().map(|row| vec![row[0].clone()]).collect()),
            sql::READ_MARKER => Ok(db.marker.iter().map(|row| row[1..].to_vec()).collect()),
            sql::READ_STATES => Ok(db.states.iter().map(|(n, state)| row(&[&n.to_string(), state])).collect()),
            sql::HOLDERS => {
                let holder = |(sid, alone): (&u32, &bool)| {
                    let mode = if *alone { "6" } else { "4" };
                    row(&[&sid.to_string(), mode, "SLOB from testbox"])
                };
                Ok(db.claims.iter().map(holder).collect())
            }
            sql::PARAMETERS | sql::CACHES => Ok(instance(&db, statement)),
            sql::PLAN => Ok(plan(&db, self.sid)),
            sql::COLUMNS_OF | sql::TABLE_IS | sql::INDEXES_OF | sql::SEGMENT => Ok(dictionary(&db, statement, &table)),
            sql::ACTIVITY => {
                let waits = |sid: &u32| row(&[&sid.to_string(), "WAITING", "db file sequential read", "User I/O"]);
                Ok(db.named.iter().map(waits).collect())
            }
            sql::ASH => Ok(vec![row(&["db file sequential read", "812"]), row(&["ON CPU", "31"])]),
            _ if statement.contains("index_ffs") => keys(&mut db, statement),
            _ if statement.contains("dbms_rowid") => verify(&mut db, statement),
            _ => Ok(views(&db, statement)),
        }
    }

    fn leading(&mut self, statement: &str, binds: &[Bind<'_>], _columns: usize) -> Result<Rows, OraError> {
        self.rows(statement, binds)
    }

    fn number(&mut self, statement: &str, binds: &[Bind<'_>]) -> Result<u64, OraError> {
        if statement.starts_with("select /*+") {
            self.work();
        }
        let mut db = self.begin(statement)?;
        match statement {
            sql::LIFE => Ok(1),
            sql::STATSPACK_IS => Ok(u64::from(db.statspack)),
            "select count(*) from assay_data_set" => Ok(db.marker.len() as u64),
            _ if statement.contains("between") => {
                let table = word_after(statement, " from ").to_owned();
                db.select(&table, range(binds))
            }
            _ => {
                let table = word_after(statement, " from ").to_owned();
                db.scan(&table)
            }
        }
    }

    fn call(&mut self, statement: &str, binds: &[Bind<'_>], _outs: usize) -> Result<Vec<String>, OraError> {
        if statement.starts_with("declare") {
            return self.slice(statement, binds);
        }
        self.work();
        let mut db = self.begin(statement)?;
        if statement == sql::AWR_SNAPSHOT || statement == sql::STATSPACK_SNAPSHOT {
            db.snapshots += 1;
            return Ok(vec![(40 + db.snapshots).to_string()]);
        }
        let table = word_after(statement, "*/ ").to_owned();
        let rows = db.update(&table, range(binds), texts(binds)[0])?;
        db.committed();
        Ok(vec![rows.to_string()])
    }

    fn commit(&mut self) -> Result<(), OraError> {
        let mut db = self.begin("commit")?;
        db.claims.remove(&self.sid);
        db.committed();
        drop(db);
        self.waiting = 0;
        self.shared.changed.notify_all();
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        drop(self.begin("rollback")?);
        self.waiting = 0;
        Ok(())
    }
}
