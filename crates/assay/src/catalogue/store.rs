//! The SQLite file: what was read of each directory, and when it was last changed.

use super::entry::{self, Entry, Found, Stamp};
use crate::rundir::CATALOGUE;
use crate::ui;
use assay_measure::record::Figure;
use assay_measure::record::metric::{self, Better};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// "assay" in a file's header, so that nobody else's database is taken for ours.
const APPLICATION: i64 = 0x6173_6179;
/// Version of the tables; another one is read anew from the records.
const VERSION: i64 = 2;
/// How long another process may hold the file.
const PATIENCE: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY, directory TEXT NOT NULL UNIQUE,
        file TEXT NOT NULL, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
        tags_mtime_ns INTEGER NOT NULL, tags_size INTEGER NOT NULL,
        kind TEXT NOT NULL, id TEXT NOT NULL, started TEXT NOT NULL, workload TEXT NOT NULL,
        engine TEXT NOT NULL, label TEXT NOT NULL, host TEXT NOT NULL, verdict TEXT NOT NULL,
        version TEXT NOT NULL, sessions INTEGER, elapsed_s REAL, ops_per_s REAL);
    CREATE TABLE tags (run INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (run, tag)) WITHOUT ROWID;
    CREATE TABLE keys (
        number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
        unit TEXT NOT NULL, better TEXT NOT NULL);
    CREATE TABLE metrics (
        key INTEGER NOT NULL, run INTEGER NOT NULL, value REAL, reason TEXT,
        PRIMARY KEY (key, run)) WITHOUT ROWID;
    CREATE INDEX metrics_of_run ON metrics (run);";

/// What a metric is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyInfo {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) unit: String,
    /// `higher`, `lower` or `neither`.
    pub(crate) better: String,
}

/// A metric of one run, or why there is none.
pub(crate) type Value = Result<f64, String>;

/// What a metric is, and every run's value by the run's number.
pub(crate) type Metric = (KeyInfo, BTreeMap<i64, Value>);

pub(super) struct Store {
    connection: Connection,
}

impl Store {
    /// The file of a directory; in memory where none can be written or none is needed.
    pub(super) fn open(dir: &Path, is_empty: bool) -> Result<Self, Error> {
        let path = dir.join(CATALOGUE);
        if is_empty && !path.exists() {
            return Self::in_memory();
        }
        match Self::on_disk(&path) {
            Err(error) if is_unwritable(&error) => Self::in_memory(),
            opened => opened,
        }
    }

    pub(super) fn in_memory() -> Result<Self, Error> {
        let store = Self { connection: Connection::open_in_memory()? };
        store.connection.execute_batch(TABLES)?;
        Ok(store)
    }

    fn on_disk(path: &Path) -> Result<Self, Error> {
        // A link of that name could lead to anybody's database.
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(without_links(path), flags)?;
        connection.busy_timeout(PATIENCE)?;
        // It can be made again, so it need not survive a power failure.
        connection.pragma_update(None, "synchronous", "OFF")?;
        let number =
            |connection: &Connection, name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let ours = |c: &Connection| Ok::<_, Error>((number(c, "application_id")?, number(c, "user_version")?));
        if ours(&connection)? != (APPLICATION, VERSION) {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have made it while this one waited.
            if ours(&change)? != (APPLICATION, VERSION) {
                begin_anew(&change)?;
            }
            change.commit()?;
        }
        Ok(Self { connection })
    }

    pub(super) fn stamps(&self) -> Result<BTreeMap<String, Stamp>, Error> {
        let mut query =
            self.connection.prepare("SELECT directory, file, mtime_ns, size, tags_mtime_ns, tags_size FROM runs")?;
        let rows = query.query_map([], |row| {
            let stamp = Stamp {
                file: row.get(1)?,
                mtime_ns: row.get(2)?,
                size: row.get(3)?,
                tags_mtime_ns: row.get(4)?,
                tags_size: row.get(5)?,
            };
            Ok((row.get(0)?, stamp))
        })?;
        rows.collect()
    }

    /// Forgets the directories that are gone, or everything.
    pub(super) fn forget(&mut self, all: bool, gone: &[&String]) -> Result<(), Error> {
        if !all && gone.is_empty() {
            return Ok(());
        }
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if all {
            change.execute_batch("DELETE FROM runs; DELETE FROM tags; DELETE FROM metrics; DELETE FROM keys")?;
        }
        for name in gone {
            forget(&change, name)?;
        }
        change.commit()
    }

    /// Reads what changed, all of it or nothing.
    pub(super) fn update(&mut self, changed: &[&Found]) -> Result<(), Error> {
        // Records are read before the file is locked.
        let read: Vec<_> = changed.iter().map(|found| (*found, entry::read(found))).collect();
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut keys = HashMap::new();
        let mut put = change.prepare("INSERT INTO metrics VALUES (?1, ?2, ?3, ?4)")?;
        for (found, (entry, metrics)) in &read {
            forget(&change, &found.name)?;
            let run = insert(&change, found, entry)?;
            for metric in metrics {
                let key = metric.full_key();
                let number = match keys.get(&key) {
                    Some(number) => *number,
                    None => {
                        let number = key_number(&change, &key, metric)?;
                        keys.insert(key, number);
                        number
                    }
                };
                match &metric.value {
                    Figure::Na(reason) => put.execute(params![number, run, None::<f64>, reason])?,
                    figure => put.execute(params![number, run, figure.value(), None::<String>])?,
                };
            }
        }
        drop(put);
        change.commit()
    }

    pub(super) fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut tags: HashMap<i64, Vec<String>> = HashMap::new();
        let mut query = self.connection.prepare("SELECT run, tag FROM tags ORDER BY run, tag")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            tags.entry(row.get(0)?).or_default().push(row.get(1)?);
        }
        let mut query = self.connection.prepare(
            "SELECT number, directory, kind, id, started, workload, engine, label, host, verdict,
                    version, sessions, elapsed_s, ops_per_s
             FROM runs ORDER BY directory",
        )?;
        let entries = query.query_map([], |row| {
            let number = row.get(0)?;
            Ok(Entry {
                number,
                name: row.get(1)?,
                kind: row.get(2)?,
                id: row.get(3)?,
                started: row.get(4)?,
                workload: row.get(5)?,
                engine: row.get(6)?,
                label: row.get(7)?,
                host: row.get(8)?,
                verdict: row.get(9)?,
                version: row.get(10)?,
                sessions: row.get(11)?,
                elapsed_s: row.get(12)?,
                ops_per_s: row.get(13)?,
                tags: tags.remove(&number).unwrap_or_default(),
            })
        })?;
        entries.collect()
    }

    pub(super) fn metric(&self, key: &str) -> Result<Option<Metric>, Error> {
        let found = self
            .connection
            .query_row("SELECT number, key, name, unit, better FROM keys WHERE key = ?1", [key], |row| {
                let info = KeyInfo { key: row.get(1)?, name: row.get(2)?, unit: row.get(3)?, better: row.get(4)? };
                Ok((row.get::<_, i64>(0)?, info))
            })
            .optional()?;
        let Some((number, info)) = found else {
            return Ok(None);
        };
        let mut query = self.connection.prepare("SELECT run, value, reason FROM metrics WHERE key = ?1")?;
        let values = query.query_map([number], |row| {
            let value: Option<f64> = row.get(1)?;
            let reason: Option<String> = row.get(2)?;
            Ok((row.get(0)?, value.ok_or_else(|| reason.unwrap_or_default())))
        })?;
        let values: Result<BTreeMap<i64, Value>, Error> = values.collect();
        Ok(Some((info, values?)))
    }

    pub(super) fn keys(&self) -> Result<Vec<String>, Error> {
        let mut query = self.connection.prepare("SELECT key FROM keys ORDER BY number")?;
        let keys = query.query_map([], |row| row.get(0))?;
        keys.collect()
    }
}

fn begin_anew(connection: &Connection) -> Result<(), Error> {
    let tables: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION && !tables.is_empty() {
        return Err(damaged());
    }
    for table in tables {
        connection.execute_batch(&format!("DROP TABLE \"{}\"", table.replace('"', "\"\"")))?;
    }
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)
}

fn forget(connection: &Connection, name: &str) -> Result<(), Error> {
    let number: Option<i64> = connection
        .prepare("SELECT number FROM runs WHERE directory = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    let Some(number) = number else { return Ok(()) };
    for table in ["metrics WHERE run", "tags WHERE run", "runs WHERE number"] {
        connection.prepare(&format!("DELETE FROM {table} = ?1"))?.execute([number])?;
    }
    Ok(())
}

fn insert(connection: &Connection, found: &Found, entry: &Entry) -> Result<i64, Error> {
    let stamp = &found.stamp;
    connection
        .prepare(
            "INSERT INTO runs (directory, file, mtime_ns, size, tags_mtime_ns, tags_size, kind, id, started,
                               workload, engine, label, host, verdict, version, sessions, elapsed_s, ops_per_s)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        )?
        .execute(params![
            found.name,
            stamp.file,
            stamp.mtime_ns,
            stamp.size,
            stamp.tags_mtime_ns,
            stamp.tags_size,
            entry.kind,
            entry.id,
            entry.started,
            entry.workload,
            entry.engine,
            entry.label,
            entry.host,
            entry.verdict,
            entry.version,
            entry.sessions,
            entry.elapsed_s,
            entry.ops_per_s,
        ])?;
    let run = connection.last_insert_rowid();
    let mut put = connection.prepare("INSERT OR IGNORE INTO tags VALUES (?1, ?2)")?;
    for tag in &entry.tags {
        put.execute(params![run, tag])?;
    }
    Ok(run)
}

fn key_number(connection: &Connection, key: &str, metric: &metric::Metric) -> Result<i64, Error> {
    let better = match metric.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    };
    connection
        .prepare("INSERT OR IGNORE INTO keys (key, name, unit, better) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, metric.name, metric.unit, better])?;
    connection.prepare("SELECT number FROM keys WHERE key = ?1")?.query_row([key], |row| row.get(0))
}

fn damaged() -> Error {
    Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
        Some("it is damaged, or it is not a catalogue of assay".to_owned()),
    )
}

pub(super) fn is_damage(error: &Error) -> bool {
    let code = error.sqlite_error_code();
    [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase].iter().any(|damage| code == Some(*damage))
}

pub(super) fn is_unwritable(error: &Error) -> bool {
    let code = error.sqlite_error_code();
    [ErrorCode::CannotOpen, ErrorCode::ReadOnly, ErrorCode::PermissionDenied].iter().any(|kind| code == Some(*kind))
}

/// The file's path with every link of its directory resolved.
fn without_links(path: &Path) -> PathBuf {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = fs::canonicalize(above.unwrap_or(Path::new(".")));
    above.map_or_else(|_| path.to_path_buf(), |above| above.join(CATALOGUE))
}

/// A file that cannot be read is kept for whoever wants to look into it.
pub(super) fn set_aside(path: &Path, error: &Error) {
    let numbers = std::iter::once(String::new()).chain((2..100).map(|n| format!("-{n}")));
    let mut names = numbers.map(|n| path.with_extension(format!("sqlite.damaged{n}")));
    let free = names.find(|name| !name.exists());
    let moved = free.and_then(|name| fs::rename(path, &name).ok().map(|()| name));
    match moved {
        Some(name) => ui::say(&format!(
            "notice: {}: {error}; assay kept it as {} and makes a new one",
            path.display(),
            name.display()
        )),
        None => ui::say(&format!("notice: {}: {error}", path.display())),
    }
}
