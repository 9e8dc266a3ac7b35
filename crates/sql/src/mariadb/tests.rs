//! Data sets and sessions on real servers: the suites every target must pass, the items of slob-method 3.4, and what is
//! refused. Servers are Debian's; with `ASSAY_REQUIRE_MARIADB` set a missing one fails the test.

use super::conn::Connection;
use super::*;
use assay_measure::clock::Clock;
use assay_measure::config::{self, Tables};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::stats::{self, Stat};
use assay_run::conformance::life::{self, Unwatched};
use assay_run::conformance::{self, Ground, Subject, claims_suite};
use assay_run::engine::{LineValue, Running};
use assay_run::plan::RedoStress;
use assay_run::{Options as RunOptions, Unobserved, execute};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Settings as the command line would give them.
fn settings(said: &[(&str, &str)]) -> Settings {
    let tables = Tables {
        target: "mysql",
        params: Mariadb.params(),
        others: &[],
    };
    let said: Vec<(String, String, String)> = said
        .iter()
        .map(|(name, value)| {
            (
                format!("--set {name}"),
                (*name).to_owned(),
                (*value).to_owned(),
            )
        })
        .collect();
    let resolved = config::resolve(&tables, &[config::command_line(said)]);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    resolved.settings
}

/// A running server.
struct Server {
    location: String,
    lines: Vec<Line>,
    /// Stops it when dropped.
    _running: Mutex<Box<dyn Running>>,
}

impl Server {
    /// One of one's own with these settings; `None`, said aloud, where there are no programs.
    fn own(page_bytes: &str, set: &str) -> Option<Self> {
        let settings = settings(&[
            ("MYSQL_SET", set),
            ("SCALE", "1000"),
            ("BLOCK_SZ", page_bytes),
        ]);
        match Mariadb.start("temp", &settings, &Stop::new(), &Unwatched) {
            Ok(started) => {
                let started = started.expect("a temporary place is started");
                Some(Self {
                    location: started.location,
                    lines: started.lines,
                    _running: Mutex::new(started.keep),
                })
            }
            Err(error) if error.to_string().contains("no programs of") => {
                let required = std::env::var_os("ASSAY_REQUIRE_MARIADB");
                assert!(required.is_none_or(|word| word.is_empty()), "{error}");
                let tty = std::fs::File::options()
                    .append(true)
                    .open("/proc/self/fd/2");
                if let Ok(mut stderr) = tty {
                    let line = format!("!! SKIPPED: a test on MariaDB: {error}\n");
                    let _ = std::io::Write::write_all(&mut stderr, line.as_bytes());
                }
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The one of all tests of this process, with pages of 8 KiB.
    fn shared() -> Option<&'static Self> {
        static SHARED: LazyLock<Mutex<Option<Option<&'static Server>>>> =
            LazyLock::new(Mutex::default);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        // Never dropped: its keeper takes it away when this process ends.
        *shared.get_or_insert_with(|| {
            Server::own(
                "8192",
                "innodb_flush_log_at_trx_commit=0; max_connections=300",
            )
            .map(|server| &*Box::leak(Box::new(server)))
        })
    }

    /// As a user would write it, of a new database of this name.
    fn database(&self, name: &str) -> String {
        self.run(&format!("drop database if exists {name}"));
        self.run(&format!("create database {name}"));
        self.url(name)
    }

    fn url(&self, database: &str) -> String {
        let url = self
            .location
            .strip_prefix("started:")
            .expect("it was started");
        url.replacen("/assay?", &format!("/{database}?"), 1)
    }

    fn connect(&self) -> Connection {
        let address = Address::parse(&self.url("mysql"), Options::default()).expect("its own URL");
        load::connect(&address).expect("the server answers")
    }

    fn run(&self, sql: &str) {
        let done = self.connect().run(sql);
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

const SMALL: &[(&str, &str)] = &[
    ("SCALE", "1000"),
    ("SCAN_TABLE_SZ", "16"),
    ("WORK_UNIT", "32"),
    ("SEED", "7"),
    ("CONNECT_RATE", "1000"),
];

fn load(url: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    life::load(&Mariadb, url, settings, schemas, &Stop::new(), &Unwatched)
}

fn told_by<T>(result: Result<T, EngineError>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_engine_keeps_the_contract() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("contract");
    let settings = settings(SMALL);
    load(&url, &settings, 2).unwrap();
    let violations = conformance::suite(&mut |plan| Subject {
        engine: Mariadb
            .open(&url, plan, &settings, &Stop::new(), &Unwatched)
            .unwrap_or_else(|error| panic!("{error}")),
        clock: Clock::real(),
    });
    assert_eq!(violations, Vec::<String>::new());
    // Rows, sizes and places are as they were loaded (slob_21).
    life::check(&Mariadb, &url, &settings).unwrap();
}

#[test]
fn a_data_set_lives_from_nothing_to_nothing() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("life");
    let violations = life::life_suite(&Mariadb, &url, &settings(SMALL));
    assert_eq!(violations, Vec::<String>::new());
}

#[test]
fn every_pair_of_commands_shares_a_data_set_or_is_refused() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("claims");
    let violations = claims_suite(Ground {
        target: &Mariadb,
        location: &url,
        settings: &settings(SMALL),
        runs_share: true,
    });
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Runs so many operations of each session to their end.
fn run(url: &str, plan: &Plan, given: &[(&str, &str)]) -> RunData {
    let mut said = SMALL.to_vec();
    said.retain(|(name, _)| given.iter().all(|(other, _)| other != name));
    said.extend(given);
    let engine = Mariadb
        .open(url, plan, &settings(&said), &Stop::new(), &Unwatched)
        .unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions {
        calibrate: false,
        ..RunOptions::default()
    };
    let (clock, stop) = (Clock::real(), Stop::new());
    let data = execute(plan, &*engine, &clock, &stop, &mut Unobserved, options)
        .unwrap_or_else(|error| panic!("{error}"));
    let verdict = &data.verdict;
    assert_eq!(*verdict, Verdict::Complete, "{:?}", data.warnings);
    data
}

/// So many operations of each session on `scale` keys in pages of so many bytes.
fn plan(block_bytes: u64, threads: u32, scale: u64, operations: u64) -> Plan {
    Plan {
        block_bytes,
        work_loop: operations,
        run_time_ns: 0,
        scan_blocks: 16,
        ..Plan::plain(1, threads, scale)
    }
}

fn counted(data: &RunData, stat: Stat) -> u64 {
    data.drained.stats.get(stat).unwrap_or(0) - data.gate.stats.get(stat).unwrap_or(0)
}

fn line(lines: &[Line], key: &str) -> u64 {
    let line = lines.iter().find(|line| line.key == key);
    match line.map(|line| &line.value) {
        Some(LineValue::Count(value)) => *value,
        other => panic!("{key}: {other:?}"),
    }
}

#[test]
fn slob_34_a_row_is_a_page_and_a_range_reads_one_for_each_key() {
    // 8000 pages of 16 KiB are 125 MiB; the pool holds a seventh of them.
    let Some(server) = Server::own("16384", "innodb_buffer_pool_size=18M") else {
        return;
    };
    let url = server.database("pages");
    let loaded = load(
        &url,
        &settings(&[("SCALE", "8000"), ("SCAN_TABLE_SZ", "16")]),
        1,
    )
    .unwrap();
    let pages = line(&loaded, "verified_pages");
    assert!((8016..=8097).contains(&pages), "{pages}");
    let plan = plan(16384, 2, 8000, 200);
    let data = run(&url, &plan, &[]);
    let selects = 400;
    let reads = counted(&data, stats::PHYSICAL_READS);
    let per_select = reads as f64 / f64::from(selects);
    // All but what the pool holds, and a few of the index.
    assert!((48.0..=66.0).contains(&per_select), "{per_select}");
    assert_eq!(counted(&data, stats::PHYSICAL_READS_CACHE_PREFETCH), 0);
    assert_eq!(counted(&data, stats::STATEMENT_CALLS), 400);
    assert_eq!(counted(&data, stats::ROWS_VISITED), 400 * 64);
    // A get for each row's page, the way to it, and the way to the keys.
    let gets = counted(&data, stats::SESSION_LOGICAL_READS);
    assert!(
        gets >= 400 * 64 && counted(&data, stats::CACHE_DEMAND_MISSES) <= gets,
        "{gets}"
    );
}

#[test]
fn slob_18_heavy_updates_log_more_than_five_times_what_light_ones_do() {
    let Some(server) = Server::own("16384", "innodb_flush_log_at_trx_commit=0") else {
        return;
    };
    let url = server.database("redo");
    load(
        &url,
        &settings(&[("SCALE", "2000"), ("SCAN_TABLE_SZ", "16")]),
        1,
    )
    .unwrap();
    let redo = |redo_stress| {
        let plan = Plan {
            update_pct: 100,
            redo_stress,
            ..plan(16384, 1, 2000, 100)
        };
        let data = run(&url, &plan, &[]);
        assert_eq!(counted(&data, stats::USER_COMMITS), 100);
        assert_eq!(counted(&data, stats::TUPLES_UPDATED), 6400);
        counted(&data, stats::REDO_SIZE) / 6400
    };
    let (lite, heavy) = (redo(RedoStress::Lite), redo(RedoStress::Heavy));
    assert!(heavy > 5 * lite, "{lite} and {heavy} bytes a row");
    life::check(&Mariadb, &url, &settings(SMALL_16)).unwrap();
}

const SMALL_16: &[(&str, &str)] = &[("SCALE", "2000"), ("SCAN_TABLE_SZ", "16")];

#[test]
fn obfuscated_rows_differ_and_batched_ranges_touch_the_same_rows() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("shapes");
    let mut said = SMALL.to_vec();
    said.extend([("OBFUSCATE_COLUMNS", "TRUE"), ("UNIQUE_INDEX", "TRUE")]);
    load(&url, &settings(&said), 1).unwrap();
    let address = Address::parse(&url, Options::default()).unwrap();
    let mut connection = load::connect(&address).unwrap();
    let different = connection
        .number("select count(distinct c7, left(filler, 50)) from cf1_1 where custid > 0");
    assert_eq!(different.unwrap(), 1000);
    let plan = Plan {
        scan_pct: 50,
        ..plan(8192, 1, 1000, 100)
    };
    let data = run(&url, &plan, &[("READ_MODE", "batched")]);
    let scans = counted(&data, stats::TABLE_SCANS);
    assert_eq!(scans, 50);
    assert_eq!(counted(&data, stats::ROWS_VISITED), 50 * 64 + scans * 16);
}

#[test]
fn what_is_not_as_it_was_loaded_is_named() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("damaged");
    let settings = settings(SMALL);
    load(&url, &settings, 1).unwrap();
    let check = || told_by(life::check(&Mariadb, &url, &settings));
    for (harm, wanted, mend) in [
        (
            "update cf1_1 set c3 = 'short' where custid = 5",
            "wrong size",
            "update cf1_1 set c3 = repeat('X', 128) where custid = 5",
        ),
        (
            "alter table cf1_1 modify c3 char(129)",
            "columns were changed",
            "alter table cf1_1 modify c3 char(128)",
        ),
        (
            "create index more on cf1_1 (c3)",
            "indexes were changed",
            "drop index more on cf1_1",
        ),
        (
            "update cf1_1 set custid = 2000 where custid = 7",
            "different keys",
            "update cf1_1 set custid = 7 where custid = 2000",
        ),
        (
            "create trigger spy before update on cf1_1 for each row set @seen = 1",
            "spy on cf1_1",
            "drop trigger spy",
        ),
        (
            "update assay_data_set set seed = '8'",
            "checksum",
            "update assay_data_set set seed = '7'",
        ),
    ] {
        let mut connection =
            load::connect(&Address::parse(&url, Options::default()).unwrap()).unwrap();
        connection
            .run(harm)
            .unwrap_or_else(|error| panic!("{harm}: {error}"));
        let text = check();
        assert!(text.contains(wanted), "{harm}: {text}");
        connection
            .run(mend)
            .unwrap_or_else(|error| panic!("{mend}: {error}"));
        life::check(&Mariadb, &url, &settings).unwrap_or_else(|error| panic!("{mend}: {error}"));
    }
}

#[test]
fn a_foreign_database_is_refused_and_not_touched() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("theirs");
    let settings = settings(SMALL);
    let mut connection = load::connect(&Address::parse(&url, Options::default()).unwrap()).unwrap();
    connection.run("create table customers (id int)").unwrap();
    let text = told_by(load(&url, &settings, 1));
    assert!(
        text.contains("does not belong to assay") && text.contains("customers"),
        "{text}"
    );
    let text = told_by(life::destroy(&Mariadb, &url, &settings));
    assert!(text.contains("does not belong to assay"), "{text}");
    let tables = "select count(*) from information_schema.tables where table_schema = 'theirs'";
    assert_eq!(connection.number(tables).unwrap(), 1);
    // What comes beside a data set later stays when that goes.
    connection.run("drop table customers").unwrap();
    load(&url, &settings, 1).unwrap();
    connection.run("create table later (id int)").unwrap();
    let text = told_by(load(&url, &settings, 2));
    assert!(text.contains("later"), "{text}");
    life::destroy(&Mariadb, &url, &settings).unwrap();
    assert_eq!(connection.number(tables).unwrap(), 1);
}

#[test]
fn who_is_not_let_in_or_may_not_write_is_told_why_and_what_to_do() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("doors");
    let settings = settings(SMALL);
    server.run("create or replace user reader@localhost identified by 'Kq9'");
    server.run("grant select on doors.* to reader@localhost");
    let with = |user: &str| url.replacen("root@", &format!("{user}@"), 1);
    let inspect = |url: &str| told_by(Mariadb.inspect(url, &settings));
    for (url, wanted) in [
        (with("reader:wrong"), "check user and password"),
        (
            url.replacen("/doors?", "/nothing?", 1),
            "no database nothing",
        ),
        (
            "//me@127.0.0.1:1/d".to_owned(),
            "cannot connect to the server at 127.0.0.1:1",
        ),
        ("//me@/d?socket=/no/such".to_owned(), "socket /no/such"),
        ("//me:Kq9@h".to_owned(), "write mysql://"),
    ] {
        let text = inspect(&url);
        assert!(
            text.contains(wanted) && !text.contains("Kq9"),
            "{url}: {text}"
        );
    }
    let text = told_by(load(&with("reader:Kq9"), &settings, 1));
    assert!(
        text.contains("ALL PRIVILEGES") && !text.contains("Kq9"),
        "{text}"
    );
    assert!(matches!(
        Mariadb.inspect(&url, &settings),
        Ok(Presence::Absent { .. })
    ));
}

#[test]
fn a_read_only_server_and_a_loop_of_the_server_are_refused() {
    let Some(server) = Server::own("8192", "read_only=1") else {
        return;
    };
    let url = server.database("replica");
    let text = told_by(load(&url, &settings(SMALL), 1));
    assert!(text.contains("read-only"), "{text}");
    let plan = plan(8192, 1, 1000, 1);
    let asked = settings(&[("LOOP", "server")]);
    let opened = Mariadb.open(&url, &plan, &asked, &Stop::new(), &Unwatched);
    assert!(matches!(opened, Err(EngineError::Usage(_))));
}

#[test]
fn a_server_of_ones_own_goes_when_it_is_dropped() {
    let Some(server) = Server::own("8192", "") else {
        return;
    };
    let directory = server
        .lines
        .iter()
        .find(|line| line.key == "server_directory");
    let Some(LineValue::Text(directory)) = directory.map(|line| line.value.clone()) else {
        panic!("no directory: {:?}", server.lines);
    };
    let directory = PathBuf::from(directory);
    assert!(directory.is_dir());
    let mut connection = server.connect();
    let pid = std::fs::read_to_string(directory.join("data/server.pid")).unwrap();
    assert_eq!(
        connection.number("select @@innodb_page_size").unwrap(),
        8192
    );
    drop((connection, server));
    assert!(!directory.exists());
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
    let wrong = settings(&[("MYSQL_SET", "no_such_setting=1"), ("SCALE", "1000")]);
    let text = told_by(Mariadb.start("temp", &wrong, &Stop::new(), &Unwatched));
    assert!(
        text.contains("no_such_setting") || text.contains("no-such-setting"),
        "{text}"
    );
}
