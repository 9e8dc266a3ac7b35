//! Real servers for this crate's tests, one a version and test process, gone with the process.
//!
//! ```text
//! let Some(server) = testing::server(15) else { return };          // shared; skipped loudly if not installed
//! let url = server.database("mine");                               // a database of one's own in it
//! let own = testing::own(18, "fsync=off; max_connections=20");     // alone, stopped when dropped
//! ```
//!
//! Servers are looked for where `temp:postgres` looks, in the directories of `ASSAY_PG_BIN`, and in
//! `target/postgres/VERSION/bin`, where `test.sh` puts them. With `ASSAY_REQUIRE_POSTGRES` set (a list of versions,
//! or any other word for "whatever is asked for") a missing one fails the test.

use super::Postgres;
use super::conninfo::ConnectOptions;
use super::own;
use super::wire::{Connection, Rows};
use crate::place::Place;
use crate::testing::settings_of;
use assay_measure::config::Settings;
use assay_run::engine::{Line, LineValue, Progress, Running, Target};
use assay_run::stop::Stop;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

/// Where `test.sh` unpacks versions that the system has no package of.
fn unpacked() -> Vec<String> {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/postgres");
    let Ok(entries) = std::fs::read_dir(place) else {
        return Vec::new();
    };
    let bins = entries.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    bins.filter(|bin| bin.is_dir()).map(|bin| bin.display().to_string()).collect()
}

/// Settings as the command line would give them.
pub(crate) fn settings(said: &[(&str, &str)]) -> Settings {
    settings_of("postgres", Postgres::SLOB.params(), said)
}

/// Nobody looks.
pub(crate) struct Unseen;

impl Progress for Unseen {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

/// A running server.
pub(crate) struct Server {
    location: String,
    lines: Vec<Line>,
    /// Stops it when dropped.
    _running: Mutex<Box<dyn Running>>,
    /// 15
    pub(crate) version: u32,
}

impl Server {
    /// What follows `postgres:` of its database `postgres`, as a target's location.
    pub(crate) fn location(&self) -> String {
        self.location.clone()
    }

    /// As a user would write it, of a new database of this name (an old one of it is dropped):
    /// `//postgres@/mine?host=...`
    pub(crate) fn database(&self, name: &str) -> String {
        self.copy("template1", name)
    }

    /// The same of a new database with the content of another one, in which nobody may be.
    pub(crate) fn copy(&self, of: &str, name: &str) -> String {
        let mut connection = self.connect();
        let sql = format!("CREATE DATABASE \"{name}\" TEMPLATE \"{of}\"");
        for sql in [format!("DROP DATABASE IF EXISTS \"{name}\""), sql] {
            connection.query(&sql).expect("a database is made");
        }
        connection.close();
        self.url().replacen("/postgres?", &format!("/{name}?"), 1)
    }

    /// `//postgres@/postgres?host=...`
    pub(crate) fn url(&self) -> String {
        let location = self.location();
        location.strip_prefix("started:").unwrap_or(&location).to_owned()
    }

    /// How to connect to its database `postgres`.
    pub(crate) fn options(&self) -> ConnectOptions {
        let place = Place::new(&self.location()).expect("its own location");
        own::options(&place).expect("its own URL")
    }

    /// A session as superuser in its database `postgres`.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(&self.options()).expect("the server answers")
    }

    /// One statement there.
    pub(crate) fn query(&self, sql: &str) -> Rows {
        let mut connection = self.connect();
        let rows = connection.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        connection.close();
        rows
    }

    /// Its private directory; the data is in `data`, what it says in `server.log`.
    pub(crate) fn directory(&self) -> PathBuf {
        let line = self.lines.iter().find(|line| line.key == "server_directory");
        match line {
            Some(Line { value: LineValue::Text(place), .. }) => PathBuf::from(place),
            other => panic!("no directory: {other:?}"),
        }
    }

    /// Its first process.
    pub(crate) fn pid(&self) -> u32 {
        let path = self.directory().join("data/postmaster.pid");
        let text = std::fs::read_to_string(&path).expect("it runs");
        let first = text.lines().next().expect("a line");
        first.trim().parse().expect("a process number")
    }
}

/// A server of one's own with these settings (as `PG_SET` takes them); `None`, said aloud, where the version is not
/// installed. It is stopped and removed when dropped, or when the test process ends in any way.
pub(crate) fn own(version: u32, set: &str) -> Option<Server> {
    let mut bins = unpacked();
    bins.extend(std::env::var("ASSAY_PG_BIN").ok().filter(|bins| !bins.is_empty()));
    let settings = settings(&[("PG_SET", set), ("PG_BIN", &bins.join(":")), ("SCALE", "1000")]);
    let location = format!("temp:postgres:{version}");
    match Postgres::SLOB.start(&location, &settings, &Stop::new(), &Unseen) {
        Ok(started) => {
            let started = started.expect("a temporary place is started");
            Some(Server {
                location: started.location,
                lines: started.lines,
                _running: Mutex::new(started.keep),
                version,
            })
        }
        Err(error) if error.to_string().contains("no programs of") => {
            let required = std::env::var("ASSAY_REQUIRE_POSTGRES").unwrap_or_default();
            let listed: Vec<u32> = required.split([' ', ',']).filter_map(|v| v.parse().ok()).collect();
            let is_required = !required.is_empty() && (listed.is_empty() || listed.contains(&version));
            assert!(!is_required, "ASSAY_REQUIRE_POSTGRES={required}: {error}");
            announce(&format!("!! SKIPPED: a test on PostgreSQL {version}: {error}"));
            None
        }
        Err(error) => panic!("PostgreSQL {version}: {error}"),
    }
}

/// Past the harness, which keeps what a passing test prints to itself.
fn announce(line: &str) {
    let tty = std::fs::File::options().append(true).open("/proc/self/fd/2");
    if let Ok(mut stderr) = tty {
        let _ = std::io::Write::write_all(&mut stderr, format!("{line}\n").as_bytes());
    }
}

/// The servers of this test process.
static SHARED: LazyLock<Mutex<BTreeMap<u32, Option<&'static Server>>>> = LazyLock::new(Mutex::default);

/// The server of a version that all tests of this process share, with stock settings but for `fsync`, which is off, and for
/// `autovacuum_naptime`: every minute each of its hundreds of databases would get a worker. Use a database of your own in it.
pub(crate) fn server(version: u32) -> Option<&'static Server> {
    let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *shared.entry(version).or_insert_with(|| {
        // Never dropped: its keeper takes it away when this process ends.
        own(version, "fsync=off; max_connections=200; autovacuum_naptime=1d")
            .map(|server| &*Box::leak(Box::new(server)))
    })
}

/// Every version 13 to 18 that is there, started; at least one, or a panic where one is required.
pub(crate) fn servers() -> Vec<&'static Server> {
    (13..=18).filter_map(server_if_installed).collect()
}

/// As [`server`], and nothing is said where a version is missing.
fn server_if_installed(version: u32) -> Option<&'static Server> {
    let bin = |bin: &str| PathBuf::from(bin).join("postgres").is_file();
    let known = std::env::var("ASSAY_PG_BIN").unwrap_or_default();
    let there = bin(&format!("/usr/lib/postgresql/{version}/bin"))
        || bin(&format!("/usr/pgsql-{version}/bin"))
        || unpacked().iter().any(|bin| bin.contains(&format!("/{version}/bin")))
        || known.split(':').any(|bin| bin.contains(&format!("/{version}/bin")));
    if there { server(version) } else { None }
}

#[test]
fn a_server_runs_and_its_databases_are_apart() {
    let Some(server) = server(15) else { return };
    let asked = server.query("SHOW server_version_num").rows;
    let number: u32 = asked[0][0].as_deref().expect("a value").parse().expect("a number");
    assert_eq!(number / 10_000, server.version);
    let place = Place::new(&server.database("apart")).expect("a URL");
    let options = own::options(&place).expect("a URL");
    assert_eq!(options.dbname, "apart");
    Connection::open(&options).expect("it is there").close();
}

#[test]
fn every_installed_version_runs_with_its_stock_settings_but_those_asked_for() {
    for server in servers() {
        let value = |name: &str| {
            let rows = server.query(&format!("SHOW {name}")).rows;
            rows[0][0].clone().expect("a value")
        };
        assert_eq!(value("fsync"), "off");
        assert_eq!(value("listen_addresses"), "");
        assert_eq!(value("shared_buffers"), "128MB");
        assert_eq!(value("lc_messages"), "C");
        let number: u32 = value("server_version_num").parse().expect("a number");
        assert_eq!(number / 10_000, server.version);
        assert!(std::path::Path::new(&format!("/proc/{}", server.pid())).exists());
        // Nobody else gets in: neither past the directory nor to the socket.
        let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(server.directory()) & 0o007, 0);
        assert_eq!(mode(server.directory().join("data")), 0o700);
        assert!(server.directory().join("data/.s.PGSQL.5432").exists());
    }
}

#[test]
fn a_server_of_ones_own_goes_when_it_is_dropped() {
    let Some(server) = own(15, "data_checksums=on; work_mem='5MB'") else {
        return;
    };
    assert_eq!(server.query("SHOW data_checksums").rows[0][0].as_deref(), Some("on"));
    assert_eq!(server.query("SHOW work_mem").rows[0][0].as_deref(), Some("5MB"));
    let (directory, pid) = (server.directory(), server.pid());
    assert_ne!(directory, self::server(15).expect("another beside it").directory());
    assert!(directory.is_dir());
    drop(server);
    assert!(!directory.exists());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}
