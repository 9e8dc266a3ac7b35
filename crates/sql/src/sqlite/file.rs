//! The database file, and connections to it.

use crate::orders::{Rows, Talk};
use assay_measure::config::Settings;
use assay_run::engine::{EngineError, OpError};
use assay_run::stop::Stop;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How the URL is written.
pub(super) const FORM: &str = "sqlite:FILE";
/// The value of SQLITE_SYNCHRONOUS with which loads do not wait for the device either.
const OFF: &str = "off";
/// The journal mode of a data set.
pub(super) const WAL: &str = "wal";
/// Instructions between two looks at a request to stop.
const LOOK_EVERY: i32 = 100_000;
/// Page cache of a session that loads or checks, KiB.
const OWN_CACHE_KIB: u64 = 64 << 10;

/// A command's database file and settings.
#[derive(Clone, Debug)]
pub(crate) struct File {
    path: PathBuf,
    pub(super) synchronous: String,
    pub(super) cache_bytes: u64,
    pub(super) mmap_bytes: u64,
    pub(super) checkpoint_pages: u64,
    pub(super) busy: Duration,
    pub(super) stop: Stop,
}

impl File {
    pub(super) fn new(place: &str, settings: &Settings, stop: &Stop) -> Result<Self, EngineError> {
        // `sqlite:///path` is written too.
        let path = place.strip_prefix("//").filter(|path| path.starts_with('/')).unwrap_or(place);
        if path.is_empty() || path.ends_with('/') || Path::new(path).is_dir() {
            return Err(EngineError::Usage(format!("TARGET=sqlite:{path} names no file; write {FORM}")));
        }
        Ok(Self {
            path: canonical(Path::new(path))?,
            synchronous: settings.text("SQLITE_SYNCHRONOUS").to_owned(),
            cache_bytes: settings.bytes("SQLITE_CACHE_MB"),
            mmap_bytes: settings.bytes("SQLITE_MMAP_MB"),
            checkpoint_pages: settings.int("SQLITE_CHECKPOINT_PAGES"),
            busy: Duration::from_nanos(settings.ns("SQLITE_BUSY_TIMEOUT")),
            stop: stop.clone(),
        })
    }

    /// The directory that holds it.
    pub(super) fn directory(&self) -> &Path {
        directory_of(&self.path)
    }

    /// Its name in messages.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// A file beside it, whose name only has this suffix more.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// The size of its pages.
    pub(super) fn page(&self, db: &Db) -> Result<u64, EngineError> {
        db.number("pragma page_size").map_err(self.told("reading the page size"))
    }

    /// Whether each commit waits for the device.
    pub(super) fn waits_for_log(&self) -> bool {
        self.synchronous == "full"
    }

    /// Pages of this size in a session's cache.
    pub(super) fn cache_pages(&self, page: u64) -> u64 {
        (self.cache_bytes / page).max(1)
    }

    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// A connection that only looks, and leaves the log as it is. A file that does not exist is an empty database.
    pub(super) fn look(&self) -> Result<Db, EngineError> {
        if !self.exists() {
            let db = Connection::open_in_memory().map_err(self.told("opening a database in memory"))?;
            return Ok(Db(db, false));
        }
        self.open(OpenFlags::empty(), Stop::requested)
    }

    /// A connection that creates, loads, checks and removes.
    pub(super) fn work(&self) -> Result<Db, EngineError> {
        self.work_until(Stop::requested)
    }

    /// As [`Self::work`], until the user asks for so much: a run concludes its work after a request to stop.
    pub(super) fn work_until(&self, asked: fn(&Stop) -> bool) -> Result<Db, EngineError> {
        let mut db = self.open(OpenFlags::SQLITE_OPEN_CREATE, asked)?;
        db.1 = true;
        let stop = self.stop.clone();
        let set = format!(
            "pragma synchronous = {}; pragma cache_size = -{OWN_CACHE_KIB}; pragma temp_store = memory; \
             pragma foreign_keys = off",
            if self.synchronous == OFF { OFF } else { "normal" }
        );
        db.0.execute_batch(&set)
            .and_then(|()| db.0.progress_handler(LOOK_EVERY, Some(move || asked(&stop))))
            .map_err(self.told("opening"))?;
        Ok(db)
    }

    /// Writes out what a load left in the log.
    pub(super) fn write_out(&self, db: &Db) -> rusqlite::Result<()> {
        let synchronous = if self.synchronous == OFF { OFF } else { "full" };
        db.0.execute_batch(&format!("pragma synchronous = {synchronous}; pragma wal_checkpoint(truncate)"))
    }

    /// Opens a connection that leaves what it finds as it is: a log that is there stays one, and none is left behind.
    /// A wait for a lock ends once the user has asked for so much.
    pub(super) fn open(&self, more: OpenFlags, asked: fn(&Stop) -> bool) -> Result<Db, EngineError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let has_log = self.beside("-wal").exists();
        let mut db = Connection::open_with_flags(&self.path, flags).map_err(self.told("opening"))?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_log).map_err(self.told("opening"))?;
        // Nothing is read before the first statement.
        db.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0)).map_err(self.told("opening"))?;
        let (stop, longest) = (self.stop.clone(), self.busy);
        let mut since = Instant::now();
        let busy = move |attempt| {
            if attempt == 0 {
                since = Instant::now();
            }
            wait(attempt, since, longest, asked(&stop))
        };
        db.busy_handler(Some(busy)).map_err(self.told("opening"))?;
        db.set_prepared_statement_cache_capacity(64);
        Ok(Db(db, false))
    }

    /// Adds to an error the file, and what was being done.
    pub(super) fn told<'a>(&'a self, doing: &'a str) -> impl Fn(rusqlite::Error) -> EngineError + 'a {
        move |error| {
            let code = error.sqlite_error_code();
            let text = match code {
                Some(ErrorCode::NotADatabase) => {
                    return EngineError::Unusable(format!(
                        "{} is not a database of SQLite; nothing was touched: name another file",
                        self.shown()
                    ));
                }
                Some(ErrorCode::OperationInterrupted) => return EngineError::Interrupted,
                Some(ErrorCode::DatabaseCorrupt) => {
                    return EngineError::Damaged(format!("{doing}, {}: {error}", self.shown()));
                }
                Some(ErrorCode::DiskFull) => "; free some room, or use fewer schemas or a smaller scale",
                Some(ErrorCode::CannotOpen) => "; its directory must exist and be writable",
                Some(ErrorCode::DatabaseBusy) => "; another program holds its lock (see SQLITE_BUSY_TIMEOUT)",
                _ => "",
            };
            EngineError::Unusable(format!("{doing}, {}: {error}{text}", self.shown()))
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The one absolute name of a file, which SQLite cannot take for a URI. A file that does not exist has its directory's.
fn canonical(path: &Path) -> Result<PathBuf, EngineError> {
    if let Ok(found) = path.canonicalize() {
        return Ok(found);
    }
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(EngineError::Unusable(format!("{} is a link to nothing: name the file itself", path.display())));
    }
    let directory = directory_of(path).canonicalize().map_err(io("finding the directory of", path))?;
    Ok(path.file_name().map_or_else(|| directory.clone(), |name| directory.join(name)))
}

/// Waits for a lock as SQLite's own handler does; false gives up.
pub(super) fn wait(attempt: i32, since: Instant, longest: Duration, ends: bool) -> bool {
    const DELAYS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
    if ends || since.elapsed() >= longest {
        return false;
    }
    let delay = DELAYS_MS.get(attempt as usize).copied().unwrap_or(100);
    std::thread::sleep(Duration::from_millis(delay));
    true
}

/// The error of a call of the operating system.
pub(super) fn io<'a>(doing: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> EngineError + 'a {
    move |source| EngineError::Io { what: format!("{doing} {}", path.display()), source }
}

/// An error as the failure of an operation; the session can go on.
pub(super) fn failure(error: &rusqlite::Error) -> OpError {
    let class = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "lock timeout",
        Some(ErrorCode::OperationInterrupted) => "cancelled",
        Some(ErrorCode::DiskFull) => "disk full",
        Some(ErrorCode::SystemIoFailure) => "io",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "corrupt",
        Some(ErrorCode::ReadOnly) => "read only",
        Some(ErrorCode::ConstraintViolation) => "constraint",
        _ => "server",
    };
    OpError { class, text: error.to_string(), retryable: false }
}

/// A connection, and whether it writes out the log when it closes, once the database is known to be assay's.
#[derive(Debug)]
pub(crate) struct Db(pub(super) Connection, pub(super) bool);

impl Db {
    /// Notes that nothing in the database is somebody else's.
    pub(super) fn ours(&self) -> rusqlite::Result<()> {
        if self.1 {
            self.0.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        }
        Ok(())
    }

    /// All rows, as text.
    pub(super) fn rows(&self, sql: &str, params: impl Params) -> rusqlite::Result<Rows> {
        let mut statement = self.0.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut found = statement.query(params)?;
        let mut rows = Rows::new();
        while let Some(row) = found.next()? {
            let value = |at| row.get_ref(at).map(text_of);
            rows.push((0..columns).map(value).collect::<rusqlite::Result<_>>()?);
        }
        Ok(rows)
    }

    /// The number that a query returns.
    pub(super) fn number(&self, sql: &str) -> rusqlite::Result<u64> {
        self.0.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|n| n.max(0) as u64)
    }

    /// The journal mode that SQLite answers; `set` is empty, or asks for one.
    pub(super) fn journal_mode(&self, set: &str) -> rusqlite::Result<String> {
        self.0.query_row(&format!("pragma journal_mode {set}"), [], |row| row.get(0))
    }

    /// The bytes of the file that a connection maps if it asks for so many; this one maps none.
    pub(super) fn mmap(&self, bytes: u64) -> rusqlite::Result<u64> {
        let granted = self.number(&format!("pragma mmap_size = {bytes}"))?;
        self.number("pragma mmap_size = 0")?;
        Ok(granted)
    }

    /// Executes statements in one transaction.
    pub(super) fn atomic(&self, sql: &str) -> rusqlite::Result<()> {
        let done = self.0.execute_batch(&format!("begin immediate; {sql}; commit"));
        if done.is_err() && !self.0.is_autocommit() {
            self.0.execute_batch("rollback")?;
        }
        done
    }
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(n) => Some(n.to_string()),
        ValueRef::Real(n) => Some(n.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

impl Talk for Db {
    fn tell(&mut self, sql: &str, doing: &str) -> Result<(), EngineError> {
        self.0.execute_batch(sql).map_err(told(doing))
    }

    fn ask(&mut self, sql: &str, doing: &str) -> Result<Rows, EngineError> {
        self.rows(sql, []).map_err(told(doing))
    }
}

fn told(doing: &str) -> impl Fn(rusqlite::Error) -> EngineError + '_ {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => EngineError::Interrupted,
        _ => EngineError::Unusable(format!("{doing}: {error}")),
    }
}
