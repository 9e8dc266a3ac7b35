//! Data sets and sessions on real servers: the suites every target must pass, the items of slob-method 3.4, and what is
//! refused. Servers are Debian's; with `ASSAY_REQUIRE_MARIADB` set a missing one fails the test.

pub(super) mod mysql;
mod protected;
mod refused;
mod threads;
mod waits;

use super::address::Host;
use super::conn::Connection;
use super::*;
use crate::testing::settings_of;
use assay_measure::clock::Clock;
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::snapshot::{Reading, RunData, StatSet, Verdict};
use assay_run::engine::{Assignment, Completion, Driver, LineValue, Op, Running, Submit, Target};
use assay_run::plan::RedoStress;
use assay_run::trace::Row;
use assay_run::{Options as RunOptions, Unobserved, execute};
use assay_testkit::conformance::life::{self, Unwatched};
use assay_testkit::conformance::{self, Ground, Subject, claims_suite};
use assay_testkit::trace::Memory;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Settings as the command line would give them.
fn settings(said: &[(&str, &str)]) -> Settings {
    settings_of("mysql", Mariadb::SLOB.params(), said)
}

/// Past what the harness holds back.
fn said_aloud(skipped: &str) {
    let stderr = std::fs::File::options().append(true).open("/proc/self/fd/2");
    if let Ok(mut stderr) = stderr {
        let line = format!("!! SKIPPED: {skipped}\n");
        let _ = std::io::Write::write_all(&mut stderr, line.as_bytes());
    }
}

/// A running server.
pub(super) struct Server {
    location: String,
    lines: Vec<Line>,
    /// Stops it when dropped.
    _running: Mutex<Box<dyn Running>>,
}

impl Server {
    /// One of one's own with these settings; `None`, said aloud, where there are no programs.
    fn own(page_bytes: &str, set: &str) -> Option<Self> {
        let settings = settings(&[("MYSQL_SET", set), ("SCALE", "1000"), ("BLOCK_SZ", page_bytes)]);
        match Mariadb::SLOB.start("temp:mariadb", &settings, &Stop::new(), &Unwatched) {
            Ok(started) => {
                let started = started.expect("a temporary place is started");
                Some(Self { location: started.location, lines: started.lines, _running: Mutex::new(started.keep) })
            }
            Err(error) if error.to_string().contains("no programs of") => {
                let required = std::env::var_os("ASSAY_REQUIRE_MARIADB");
                assert!(required.is_none_or(|word| word.is_empty()), "{error}");
                said_aloud(&format!("a test on MariaDB: {error}"));
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The one of all tests of this process, with pages of 8 KiB.
    pub(super) fn shared() -> Option<&'static Self> {
        static SHARED: LazyLock<Mutex<Option<Option<&'static Server>>>> = LazyLock::new(Mutex::default);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        // Never dropped: its keeper takes it away when this process ends.
        *shared.get_or_insert_with(|| {
            Server::own("8192", "innodb_flush_log_at_trx_commit=0; max_connections=300")
                .map(|server| &*Box::leak(Box::new(server)))
        })
    }

    /// As a user would write it, of a new database of this name.
    pub(super) fn database(&self, name: &str) -> String {
        self.run(&format!("drop database if exists {name}"));
        self.run(&format!("create database {name}"));
        self.url(name)
    }

    fn url(&self, database: &str) -> String {
        let url = self.location.strip_prefix("started:").expect("it was started");
        url.replacen("/assay?", &format!("/{database}?"), 1)
    }

    fn connect(&self) -> Connection {
        Connection::open(&address(&self.url("mysql"))).expect("the server answers")
    }

    fn run(&self, sql: &str) {
        let done = self.connect().run(sql);
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn address(url: &str) -> Address {
    let url = url.strip_prefix("started:").unwrap_or(url);
    Address::parse(url, Options::default()).expect("the URL of a server of ours")
}

const SMALL: &[(&str, &str)] =
    &[("SCALE", "1000"), ("SCAN_TABLE_SZ", "16"), ("WORK_UNIT", "32"), ("SEED", "7"), ("CONNECT_RATE", "1000")];

fn load(url: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    life::load(&Mariadb::SLOB, url, settings, schemas, &Stop::new(), &Unwatched)
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
    for (run_loop, threads) in [("client", "1"), ("client", "64"), ("server", "0")] {
        // The suite writes what it wrote before, and a row that stays as it is does not count as changed.
        let url = server.database(&format!("contract_{run_loop}_{threads}"));
        load(&url, &settings(SMALL), 2).unwrap();
        let mut said = SMALL.to_vec();
        said.extend([("LOOP", run_loop), ("DRIVER_THREADS", threads)]);
        let settings = settings(&said);
        let violations = conformance::suite(&mut |plan| Subject {
            engine: Mariadb::SLOB
                .open(&url, plan, &settings, &Stop::new(), &Unwatched)
                .unwrap_or_else(|error| panic!("{error}")),
            clock: Clock::real(),
        });
        assert_eq!(violations, Vec::<String>::new(), "LOOP={run_loop} {threads}");
        // Rows, sizes and places are as they were loaded (slob_21).
        life::check(&Mariadb::SLOB, &url, &settings).unwrap();
    }
}

/// Operations of a run in the order of their sessions, as the trace tells them.
fn traced(url: &str, plan: &Plan, run_loop: &str) -> (RunData, Vec<String>) {
    let trace = Memory::new();
    let options = RunOptions { calibrate: false, trace: Some(Box::new(trace.clone())), ..RunOptions::default() };
    let data = run_with(url, plan, &[("LOOP", run_loop)], options);
    let mut rows = trace.rows();
    rows.sort_by_key(|row| (row.session, row.i));
    // All of an operation but its stamp, which no two runs share.
    let op = |op: &Op| match *op {
        Op::Update { schema, first_key, width, .. } => format!("update {schema} {first_key} {width}"),
        ref other => format!("{other:?}"),
    };
    let told = |row: &Row| format!("{} {} {} {:?}", row.session, row.i, op(&row.op), row.rows);
    (data, rows.iter().map(told).collect())
}

#[test]
fn a_loop_in_the_server_does_the_same_operations_and_commits_each() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("loops");
    load(&url, &settings(SMALL), 2).unwrap();
    a_loop_in_the_server_does_the_same(&url);
    let refused = Mariadb::SLOB.open(
        &url,
        &Plan { commit_every: 10, ..plan(8192, 1, 1000, 1) },
        &settings(&[("LOOP", "server")]),
        &Stop::new(),
        &Unwatched,
    );
    assert!(told_by(refused).contains("COMMIT_EVERY"));
}

/// On a data set of two schemas.
fn a_loop_in_the_server_does_the_same(url: &str) {
    for (obfuscate, redo_stress) in [(false, RedoStress::Lite), (true, RedoStress::Heavy)] {
        let plan = Plan {
            schemas: 2,
            threads_per_schema: 2,
            update_pct: 30,
            scan_pct: 10,
            hot_schema_frequency: 4,
            // Ranges that go past the last key.
            edge: assay_run::plan::Edge::Wrap,
            obfuscate,
            redo_stress,
            seed: 11,
            ..plan(8192, 2, 1000, 300)
        };
        let (client, asked) = traced(url, &plan, "client");
        let again = Plan { run_stamp: plan.run_stamp + 1, ..plan.clone() };
        let (data, in_server) = traced(url, &again, "server");
        assert_eq!(asked.len(), 1200);
        assert_eq!(asked, in_server);
        for stat in [counter_catalog::USER_COMMITS, counter_catalog::ROWS_CHANGED, counter_catalog::ROWS_VISITED] {
            assert_eq!(counted(&data, stat), counted(&client, stat), "{stat:?}");
        }
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 360);
        // Each row was changed, with other bytes than it had; other tests work on this server too.
        let changed = counted(&data, counter_catalog::ROWS_CHANGED);
        assert!(counted(&data, counter_catalog::TUPLES_UPDATED) >= changed);
    }
    life::check(&Mariadb::SLOB, url, &settings(SMALL)).unwrap();
}

/// The server's plan of a range of one row has another name.
#[test]
fn a_range_may_be_a_single_row() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("single_rows");
    load(&url, &settings(SMALL), 1).unwrap();
    for (run_stamp, run_loop) in [(1, "client"), (2, "server")] {
        let plan = Plan { update_pct: 50, work_unit: 1, update_work_unit: 1, run_stamp, ..plan(8192, 1, 1000, 100) };
        let data = run(&url, &plan, &[("LOOP", run_loop)]);
        assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 50);
        assert_eq!(counted(&data, counter_catalog::ROWS_VISITED), 100);
    }
}

#[test]
fn a_data_set_lives_from_nothing_to_nothing() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("life");
    let violations = life::life_suite(&Mariadb::SLOB, &url, &settings(SMALL));
    assert_eq!(violations, Vec::<String>::new());
}

#[test]
fn every_pair_of_commands_shares_a_data_set_or_is_refused() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("claims");
    let violations =
        claims_suite(Ground { target: &Mariadb::SLOB, location: &url, settings: &settings(SMALL), runs_share: true });
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Runs so many operations of each session to their end.
fn run(url: &str, plan: &Plan, given: &[(&str, &str)]) -> RunData {
    let options = RunOptions { calibrate: false, ..RunOptions::default() };
    run_with(url, plan, given, options)
}

fn run_with(url: &str, plan: &Plan, given: &[(&str, &str)], options: RunOptions) -> RunData {
    let mut said = SMALL.to_vec();
    said.retain(|(name, _)| given.iter().all(|(other, _)| other != name));
    said.extend(given);
    let engine = Mariadb::SLOB
        .open(url, plan, &settings(&said), &Stop::new(), &Unwatched)
        .unwrap_or_else(|error| panic!("{error}"));
    let (clock, stop) = (Clock::real(), Stop::new());
    let data =
        execute(plan, &*engine, &clock, &stop, &mut Unobserved, options).unwrap_or_else(|error| panic!("{error}"));
    let verdict = &data.verdict;
    assert_eq!(*verdict, Verdict::Complete, "{:?}", data.warnings);
    data
}

/// So many operations of each session on `scale` keys in pages of so many bytes.
fn plan(block_bytes: u64, threads: u32, scale: u64, operations: u64) -> Plan {
    Plan { block_bytes, work_loop: operations, run_time_ns: 0, scan_blocks: 16, ..Plan::plain(1, threads, scale) }
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
    // 8000 pages of 16 KiB are 125 MiB; the pool holds a seventh of them. The server frees that many pages ahead of who needs them
    // for as long as it finds time to: 1536 by itself, which are more than this pool has.
    let Some(server) = Server::own("16384", "innodb_buffer_pool_size=18M; innodb_lru_scan_depth=100") else {
        return;
    };
    a_range_reads_a_page_for_each_key(&server.database("pages"));
}

/// On a server whose pool holds a seventh of the data.
fn a_range_reads_a_page_for_each_key(url: &str) {
    let loaded = load(url, &settings(&[("SCALE", "8000"), ("SCAN_TABLE_SZ", "16")]), 1).unwrap();
    let pages = line(&loaded, "verified_pages");
    assert!((8016..=8097).contains(&pages), "{pages}");
    let plan = plan(16384, 2, 8000, 200);
    // Who reads the last page of an extent that the load left in the pool in order has the next extent read ahead: none is left.
    run(url, &Plan { work_loop: 40, ..plan.clone() }, &[]);
    let data = run(url, &plan, &[]);
    let selects = 400;
    let reads = counted(&data, counter_catalog::PHYSICAL_READS);
    let per_select = reads as f64 / f64::from(selects);
    // All but what the pool holds, and a few of the index.
    assert!((48.0..=64.0).contains(&per_select), "{per_select}");
    let ahead = counted(&data, counter_catalog::PHYSICAL_READS_CACHE_PREFETCH);
    assert!(ahead * 100 <= reads, "{ahead} of {reads}");
    assert_eq!(counted(&data, counter_catalog::STATEMENT_CALLS), 400);
    assert_eq!(counted(&data, counter_catalog::ROWS_VISITED), 400 * 64);
    // A get for each row's page, the way to it, and the way to the keys.
    let gets = counted(&data, counter_catalog::SESSION_LOGICAL_READS);
    assert!(gets >= 400 * 64 && counted(&data, counter_catalog::CACHE_DEMAND_MISSES) <= gets, "{gets}");
    the_kernel_and_the_server_tell_the_same(&data, reads);
}

/// What the kernel charged the server's threads with, and what `performance_schema` timed, fits what was read.
fn the_kernel_and_the_server_tell_the_same(data: &RunData, reads: u64) {
    let fact = |name: &str| {
        let fact = data.engine_facts.iter().find(|fact| fact.name == name);
        fact.map(|fact| fact.value.clone()).unwrap_or_default()
    };
    let place = fact("server_host");
    // Its start time is no proof where the host kept the server from a CPU between its start and its own clock's.
    assert!(place.contains("SO_PEERCRED"), "{place}");
    assert!(fact("io_timing_achieved").starts_with("on"));
    assert!(!fact("device_fs_type").starts_with("n/a"));
    // All of it came by direct reads of the server's process, and by nothing else. What was read ahead is asked for by no read call.
    let page = 16384;
    let device = counted(data, counter_catalog::SERVER_DEVICE_READ_BYTES);
    let called = counted(data, counter_catalog::SERVER_READ_CALL_BYTES);
    let demanded = reads - counted(data, counter_catalog::PHYSICAL_READS_CACHE_PREFETCH);
    assert!(called >= demanded * page, "{called} of {}", demanded * page);
    let memory = fact("device_is_tmpfs") == "yes";
    assert!(memory || device >= reads * page * 99 / 100, "{device} of {}", reads * page);
    for stat in [counter_catalog::DB_CPU, counter_catalog::BACKGROUND_CPU] {
        assert!(counted(data, stat) > 0, "{stat:?}");
    }
    let number = |reading: &Reading| match reading {
        Reading::Count(value) => *value,
        Reading::Na(why) => panic!("{why}"),
    };
    let event = |set: &StatSet| {
        let mut timed = set.timed.iter();
        let event = timed.find(|event| event.name == "db file sequential read");
        let event = event.expect("a line of reads").clone();
        (number(&event.waits), number(&event.wait_ns))
    };
    let (before, after) = (event(&data.gate.stats), event(&data.drained.stats));
    let (waits, wait_ns) = (after.0 - before.0, after.1 - before.1);
    assert!(waits.abs_diff(reads) <= reads / 100 + 5, "{waits} of {reads}");
    assert!(wait_ns > waits, "{wait_ns}");
    let gauges = &data.drained.stats.gauges;
    for name in ["checkpoint_age_bytes", "pending_reads_count", "read_views_count"] {
        assert!(gauges.contains_key(name), "{name}: {gauges:?}");
    }
}

#[test]
fn slob_34_a_row_is_a_page_on_large_pages_too_and_a_small_one_is_refused() {
    for page in [32768_u64, 65536] {
        let Some(server) = Server::own(&page.to_string(), "innodb_flush_log_at_trx_commit=0") else {
            return;
        };
        let url = server.database("large");
        let small = settings(&[("SCALE", "1000"), ("SCAN_TABLE_SZ", "16")]);
        let loaded = load(&url, &small, 1).unwrap();
        let pages = line(&loaded, "verified_pages");
        assert!((1016..=1040).contains(&pages), "{page}: {pages}");
        let plan = Plan { update_pct: 50, ..plan(page, 1, 1000, 40) };
        let data = run(&url, &plan, &[]);
        assert_eq!(counted(&data, counter_catalog::ROWS_VISITED), 40 * 64);
        life::check(&Mariadb::SLOB, &url, &small).unwrap();
    }
    let small = settings(&[("BLOCK_SZ", "4096"), ("SCALE", "1000")]);
    let refused = Mariadb::SLOB.start("temp:mariadb", &small, &Stop::new(), &Unwatched);
    let text = told_by(refused.map(|_| ()));
    assert!(text.contains("4096") || text.contains("no programs"), "{text}");
}

#[test]
fn slob_18_heavy_updates_log_more_than_five_times_what_light_ones_do() {
    let Some(server) = Server::own("16384", "innodb_flush_log_at_trx_commit=0") else {
        return;
    };
    let url = server.database("redo");
    load(&url, &settings(&[("SCALE", "2000"), ("SCAN_TABLE_SZ", "16")]), 1).unwrap();
    let redo = |redo_stress| {
        let plan = Plan { update_pct: 100, redo_stress, ..plan(16384, 1, 2000, 100) };
        let data = run(&url, &plan, &[]);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 100);
        assert_eq!(counted(&data, counter_catalog::TUPLES_UPDATED), 6400);
        // The server keeps statistics of the tables too.
        let wrote = counted(&data, counter_catalog::SERVER_WRITE_TRANSACTIONS);
        assert!((100..=110).contains(&wrote), "{wrote} transactions");
        counted(&data, counter_catalog::REDO_SIZE) / 6400
    };
    // Somebody else watches.
    let watched = Mariadb::SLOB.watch(&url, &settings(&[])).expect("statistics");
    let wrote = || watched.sample().get(counter_catalog::SERVER_WRITE_TRANSACTIONS).expect("a count");
    let before = wrote();
    let (lite, heavy) = (redo(RedoStress::Lite), redo(RedoStress::Heavy));
    assert!((200..=220).contains(&(wrote() - before)));
    let block = watched.facts().into_iter().find(|fact| fact.name == "block_bytes").expect("a fact");
    assert_eq!(block.value, "16384");
    assert!(heavy > 5 * lite, "{lite} and {heavy} bytes a row");
    life::check(&Mariadb::SLOB, &url, &settings(SMALL_16)).unwrap();
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
    let mut connection = Connection::open(&address).unwrap();
    let different = connection.number("select count(distinct c7, left(filler, 50)) from cf1_1 where custid > 0");
    assert_eq!(different.unwrap(), 1000);
    let plan = Plan { scan_pct: 50, ..plan(8192, 1, 1000, 100) };
    let data = run(&url, &plan, &[("READ_MODE", "batched")]);
    let scans = counted(&data, counter_catalog::TABLE_SCANS);
    assert_eq!(scans, 50);
    assert_eq!(counted(&data, counter_catalog::ROWS_VISITED), 50 * 64 + scans * 16);
}

#[test]
fn what_is_not_as_it_was_loaded_is_named() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("damaged");
    let settings = settings(SMALL);
    load(&url, &settings, 1).unwrap();
    let check = || told_by(life::check(&Mariadb::SLOB, &url, &settings));
    for (harm, wanted, mend) in [
        (
            "update cf1_1 set c3 = 'short' where custid = 5",
            "wrong size",
            "update cf1_1 set c3 = repeat('X', 128) where custid = 5",
        ),
        ("alter table cf1_1 modify c3 char(129)", "columns were changed", "alter table cf1_1 modify c3 char(128)"),
        ("create index more on cf1_1 (c3)", "indexes were changed", "drop index more on cf1_1"),
        (
            "update cf1_1 set custid = 2000 where custid = 7",
            "different keys",
            "update cf1_1 set custid = 7 where custid = 2000",
        ),
        ("create trigger spy before update on cf1_1 for each row set @seen = 1", "spy on cf1_1", "drop trigger spy"),
        ("update assay_data_set set seed = '8'", "checksum", "update assay_data_set set seed = '7'"),
    ] {
        let mut connection = Connection::open(&Address::parse(&url, Options::default()).unwrap()).unwrap();
        connection.run(harm).unwrap_or_else(|error| panic!("{harm}: {error}"));
        let text = check();
        assert!(text.contains(wanted), "{harm}: {text}");
        connection.run(mend).unwrap_or_else(|error| panic!("{mend}: {error}"));
        life::check(&Mariadb::SLOB, &url, &settings).unwrap_or_else(|error| panic!("{mend}: {error}"));
    }
}

#[test]
fn a_newer_version_is_loaded_run_and_checked() {
    let bins = std::env::var("MARIADB_BINS").unwrap_or_default();
    if bins.is_empty() {
        let required = std::env::var("ASSAY_REQUIRE_MARIADB").unwrap_or_default();
        assert!(!required.contains("11.4"), "MARIADB_BINS is not set");
        return said_aloud("MariaDB 11.4: MARIADB_BINS names no directories of its programs");
    }
    let mut said = SMALL.to_vec();
    said.extend([("MYSQL_BIN", bins.as_str()), ("COMMIT_MODE", "write"), ("BLOCK_SZ", "16384")]);
    let started = Mariadb::SLOB.start("temp:mariadb:11.4", &settings(&said), &Stop::new(), &Unwatched);
    let started = started.unwrap().expect("a temporary place is started");
    let server = Server { location: started.location, lines: started.lines, _running: Mutex::new(started.keep) };
    let mut connection = server.connect();
    let version = connection.value("select version()").unwrap();
    assert!(version.starts_with("11.4"), "{version}");
    let flush = "select @@innodb_flush_log_at_trx_commit";
    assert_eq!(connection.number(flush).unwrap(), 2);
    let url = server.database("newer");
    load(&url, &settings(SMALL), 1).unwrap();
    for (run_stamp, run_loop, width) in [(1, "client", 64), (2, "server", 64), (3, "client", 1)] {
        let plan = Plan {
            update_pct: 30,
            scan_pct: 10,
            run_stamp,
            work_unit: width,
            update_work_unit: width,
            ..plan(16384, 2, 1000, 100)
        };
        let data = run(&url, &plan, &[("LOOP", run_loop)]);
        let width = u64::from(width);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 60);
        assert_eq!(counted(&data, counter_catalog::TUPLES_UPDATED), 60 * width);
        assert!(counted(&data, counter_catalog::REDO_SIZE) > 60 * width * 256);
    }
    life::check(&Mariadb::SLOB, &url, &settings(SMALL)).unwrap();
}

#[test]
fn a_server_of_ones_own_goes_when_it_is_dropped() {
    let Some(server) = Server::own("8192", "") else {
        return;
    };
    let directory = server.lines.iter().find(|line| line.key == "server_directory");
    let Some(LineValue::Text(directory)) = directory.map(|line| line.value.clone()) else {
        panic!("no directory: {:?}", server.lines);
    };
    let directory = PathBuf::from(directory);
    assert!(directory.is_dir());
    let mut connection = server.connect();
    let pid = std::fs::read_to_string(directory.join("data/server.pid")).unwrap();
    assert_eq!(connection.number("select @@innodb_page_size").unwrap(), 8192);
    drop((connection, server));
    assert!(!directory.exists());
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
    let wrong = settings(&[("MYSQL_SET", "no_such_setting=1"), ("SCALE", "1000")]);
    let text = told_by(Mariadb::SLOB.start("temp:mariadb", &wrong, &Stop::new(), &Unwatched));
    assert!(text.contains("no_such_setting") || text.contains("no-such-setting"), "{text}");
}
