//! Data sets and sessions on real servers: the suites every target must pass, the items of slob-method 3.4, and what is
//! refused. Servers are Debian's; with `ASSAY_REQUIRE_MARIADB` set a missing one fails the test.

mod mysql;

use super::address::Host;
use super::conn::Connection;
use super::*;
use assay_measure::clock::Clock;
use assay_measure::config::{self, Tables};
use assay_measure::snapshot::{Reading, RunData, StatSet, Verdict};
use assay_measure::stats::{self, Stat};
use assay_run::conformance::life::{self, Unwatched};
use assay_run::conformance::{self, Ground, Subject, claims_suite};
use assay_run::engine::{LineValue, Op, Running};
use assay_run::plan::RedoStress;
use assay_run::trace::{Memory, Row};
use assay_run::{Options as RunOptions, Unobserved, execute};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Settings as the command line would give them.
fn settings(said: &[(&str, &str)]) -> Settings {
    settings_of(Mariadb.params(), said)
}

/// The same of a workload with parameters of its own.
pub(super) fn settings_of(params: &'static [ParamDef], said: &[(&str, &str)]) -> Settings {
    let tables = Tables {
        target: "mysql",
        params,
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

/// Past what the harness holds back.
fn said_aloud(skipped: &str) {
    let stderr = std::fs::File::options()
        .append(true)
        .open("/proc/self/fd/2");
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
                said_aloud(&format!("a test on MariaDB: {error}"));
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The one of all tests of this process, with pages of 8 KiB.
    pub(super) fn shared() -> Option<&'static Self> {
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
    pub(super) fn database(&self, name: &str) -> String {
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
    for run_loop in ["client", "server"] {
        // The suite writes what it wrote before, and a row that stays as it is does not count as changed.
        let url = server.database(&format!("contract_{run_loop}"));
        load(&url, &settings(SMALL), 2).unwrap();
        let mut said = SMALL.to_vec();
        said.push(("LOOP", run_loop));
        let settings = settings(&said);
        let violations = conformance::suite(&mut |plan| Subject {
            engine: Mariadb
                .open(&url, plan, &settings, &Stop::new(), &Unwatched)
                .unwrap_or_else(|error| panic!("{error}")),
            clock: Clock::real(),
        });
        assert_eq!(violations, Vec::<String>::new(), "LOOP={run_loop}");
        // Rows, sizes and places are as they were loaded (slob_21).
        life::check(&Mariadb, &url, &settings).unwrap();
    }
}

/// Operations of a run in the order of their sessions, as the trace tells them.
fn traced(url: &str, plan: &Plan, run_loop: &str) -> (RunData, Vec<String>) {
    let trace = Memory::new();
    let options = RunOptions {
        calibrate: false,
        trace: Some(Box::new(trace.clone())),
        ..RunOptions::default()
    };
    let data = run_with(url, plan, &[("LOOP", run_loop)], options);
    let mut rows = trace.rows();
    rows.sort_by_key(|row| (row.session, row.i));
    // All of an operation but its stamp, which no two runs share.
    let op = |op: &Op| match *op {
        Op::Update {
            schema,
            first_key,
            width,
            ..
        } => format!("update {schema} {first_key} {width}"),
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
        let (client, asked) = traced(&url, &plan, "client");
        let again = Plan {
            run_stamp: plan.run_stamp + 1,
            ..plan.clone()
        };
        let (data, in_server) = traced(&url, &again, "server");
        assert_eq!(asked.len(), 1200);
        assert_eq!(asked, in_server);
        for stat in [
            stats::USER_COMMITS,
            stats::ROWS_CHANGED,
            stats::ROWS_VISITED,
        ] {
            assert_eq!(counted(&data, stat), counted(&client, stat), "{stat:?}");
        }
        assert_eq!(counted(&data, stats::USER_COMMITS), 360);
        // Each row was changed, with other bytes than it had; other tests work on this server too.
        let changed = counted(&data, stats::ROWS_CHANGED);
        assert!(counted(&data, stats::TUPLES_UPDATED) >= changed);
    }
    life::check(&Mariadb, &url, &settings(SMALL)).unwrap();
    let refused = Mariadb.open(
        &url,
        &Plan {
            commit_every: 10,
            ..plan(8192, 1, 1000, 1)
        },
        &settings(&[("LOOP", "server")]),
        &Stop::new(),
        &Unwatched,
    );
    assert!(told_by(refused).contains("COMMIT_EVERY"));
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
        let plan = Plan {
            update_pct: 50,
            work_unit: 1,
            update_work_unit: 1,
            run_stamp,
            ..plan(8192, 1, 1000, 100)
        };
        let data = run(&url, &plan, &[("LOOP", run_loop)]);
        assert_eq!(counted(&data, stats::ROWS_CHANGED), 50);
        assert_eq!(counted(&data, stats::ROWS_VISITED), 100);
    }
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
    let options = RunOptions {
        calibrate: false,
        ..RunOptions::default()
    };
    run_with(url, plan, given, options)
}

fn run_with(url: &str, plan: &Plan, given: &[(&str, &str)], options: RunOptions) -> RunData {
    let mut said = SMALL.to_vec();
    said.retain(|(name, _)| given.iter().all(|(other, _)| other != name));
    said.extend(given);
    let engine = Mariadb
        .open(url, plan, &settings(&said), &Stop::new(), &Unwatched)
        .unwrap_or_else(|error| panic!("{error}"));
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
    a_range_reads_a_page_for_each_key(&server.database("pages"));
}

/// On a server whose pool holds a seventh of the data.
fn a_range_reads_a_page_for_each_key(url: &str) {
    let loaded = load(
        url,
        &settings(&[("SCALE", "8000"), ("SCAN_TABLE_SZ", "16")]),
        1,
    )
    .unwrap();
    let pages = line(&loaded, "verified_pages");
    assert!((8016..=8097).contains(&pages), "{pages}");
    let plan = plan(16384, 2, 8000, 200);
    let data = run(url, &plan, &[]);
    let selects = 400;
    let reads = counted(&data, stats::PHYSICAL_READS);
    let per_select = reads as f64 / f64::from(selects);
    // All but what the pool holds, and a few of the index.
    assert!((48.0..=68.0).contains(&per_select), "{per_select}");
    assert_eq!(counted(&data, stats::PHYSICAL_READS_CACHE_PREFETCH), 0);
    assert_eq!(counted(&data, stats::STATEMENT_CALLS), 400);
    assert_eq!(counted(&data, stats::ROWS_VISITED), 400 * 64);
    // A get for each row's page, the way to it, and the way to the keys.
    let gets = counted(&data, stats::SESSION_LOGICAL_READS);
    assert!(
        gets >= 400 * 64 && counted(&data, stats::CACHE_DEMAND_MISSES) <= gets,
        "{gets}"
    );
    the_kernel_and_the_server_tell_the_same(&data, reads);
}

/// What the kernel charged the server's threads with, and what `performance_schema` timed, fits what was read.
fn the_kernel_and_the_server_tell_the_same(data: &RunData, reads: u64) {
    let fact = |name: &str| {
        let fact = data.engine_facts.iter().find(|fact| fact.name == name);
        fact.map(|fact| fact.value.clone()).unwrap_or_default()
    };
    let place = fact("server_host");
    assert!(
        place.contains("SO_PEERCRED") && place.contains("it started when"),
        "{place}"
    );
    assert!(fact("io_timing_achieved").starts_with("on"));
    assert!(!fact("device_fs_type").starts_with("n/a"));
    // All of it came by direct reads of the server's process, and by nothing else.
    let page = 16384;
    let device = counted(data, stats::SERVER_DEVICE_READ_BYTES);
    let called = counted(data, stats::SERVER_READ_CALL_BYTES);
    assert!(called >= reads * page, "{called} of {}", reads * page);
    let memory = fact("device_is_tmpfs") == "yes";
    assert!(
        memory || device >= reads * page * 99 / 100,
        "{device} of {}",
        reads * page
    );
    for stat in [stats::DB_CPU, stats::BACKGROUND_CPU] {
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
    assert!(
        waits.abs_diff(reads) <= reads / 100 + 5,
        "{waits} of {reads}"
    );
    assert!(wait_ns > waits, "{wait_ns}");
    let gauges = &data.drained.stats.gauges;
    for name in [
        "checkpoint_age_bytes",
        "pending_reads_count",
        "read_views_count",
    ] {
        assert!(gauges.contains_key(name), "{name}: {gauges:?}");
    }
}

#[test]
fn slob_34_a_row_is_a_page_on_large_pages_too_and_a_small_one_is_refused() {
    for page in [32768_u64, 65536] {
        let Some(server) = Server::own(&page.to_string(), "innodb_flush_log_at_trx_commit=0")
        else {
            return;
        };
        let url = server.database("large");
        let small = settings(&[("SCALE", "1000"), ("SCAN_TABLE_SZ", "16")]);
        let loaded = load(&url, &small, 1).unwrap();
        let pages = line(&loaded, "verified_pages");
        assert!((1016..=1040).contains(&pages), "{page}: {pages}");
        let plan = Plan {
            update_pct: 50,
            ..plan(page, 1, 1000, 40)
        };
        let data = run(&url, &plan, &[]);
        assert_eq!(counted(&data, stats::ROWS_VISITED), 40 * 64);
        life::check(&Mariadb, &url, &small).unwrap();
    }
    let small = settings(&[("BLOCK_SZ", "4096"), ("SCALE", "1000")]);
    let refused = Mariadb.start("temp", &small, &Stop::new(), &Unwatched);
    let text = told_by(refused.map(|_| ()));
    assert!(
        text.contains("4096") || text.contains("no programs"),
        "{text}"
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

/// An authority `ca`, another one, and a certificate of the first for `db.example`.
fn certificates() -> tempfile::TempDir {
    let dir = tempfile::Builder::new()
        .prefix("assay-test-")
        .tempdir_in("/var/tmp")
        .unwrap();
    let script = r#"
set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
for ca in ca other; do openssl req -x509 $new -keyout $ca.key -out $ca.crt -days 30 -subj /CN=$ca; done
openssl req $new -keyout server.key -out server.csr -subj /CN=db.example
echo "subjectAltName=DNS:db.example,DNS:localhost" >ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 30 -extfile ext
chmod 644 ./*; chmod 755 .
"#;
    let made = std::process::Command::new("bash")
        .args(["-c", script, "certificates"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    dir
}

/// Passes what comes to a port of this host on to the server's socket: TLS is for TCP alone.
fn port_of(server: &Server) -> u16 {
    let Host::Socket(socket) = Address::parse(&server.url("x"), Options::default())
        .unwrap()
        .host
    else {
        panic!("a socket of its own");
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = std::os::unix::net::UnixStream::connect(&socket).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            let (mut from, mut to) = (server, client);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    port
}

/// Debian has it in the package of the service; `test.sh` takes it out of there.
fn plugins() -> Option<String> {
    let there = std::env::var("MARIADB_PLUGINS")
        .ok()
        .filter(|path| !path.is_empty());
    if there.is_none() {
        said_aloud("a login by ed25519: MARIADB_PLUGINS names no directory of plugins");
    }
    there
}

#[test]
fn a_read_only_server_is_refused_and_a_connection_is_protected_as_asked() {
    let made = certificates();
    let file = |name: &str| made.path().join(name).display().to_string();
    let (cert, key) = (file("server.crt"), file("server.key"));
    let plugins = plugins();
    let more = plugins
        .as_ref()
        .map_or(String::new(), |path| format!("; plugin_dir={path}"));
    let set = format!("read_only=1; ssl_cert={cert}; ssl_key={key}{more}");
    let Some(server) = Server::own("8192", &set) else {
        return;
    };
    let url = server.database("replica");
    let text = told_by(load(&url, &settings(SMALL), 1));
    assert!(text.contains("read-only"), "{text}");
    let port = port_of(&server);
    let open = |user: &str, host: &str, query: &str| {
        let url = format!("//{user}@{host}:{port}/mysql?{query}");
        let address = Address::parse(&url, Options::default()).map_err(EngineError::Usage)?;
        load::connect(&address)
    };
    let version = |query: &str| {
        let mut connection =
            open("root", "localhost", query).unwrap_or_else(|why| panic!("{query}: {why}"));
        let rows = connection
            .rows("show session status like 'Ssl_version'")
            .unwrap();
        rows[0][1].clone().unwrap_or_default()
    };
    let (ca, other) = (
        format!("ssl-ca={}", file("ca.crt")),
        format!("ssl-ca={}", file("other.crt")),
    );
    assert_eq!(version("ssl-mode=disabled"), "");
    for query in [
        "",
        "ssl-mode=required",
        &ca,
        &format!("ssl-mode=verify-ca&{ca}"),
        &format!("ssl-mode=verify-identity&{ca}"),
    ] {
        assert_eq!(version(query), "TLSv1.3", "{query}");
    }
    for (host, query) in [
        ("localhost", other.clone()),
        ("localhost", "ssl-mode=verify-identity".to_owned()),
        ("127.0.0.1", format!("ssl-mode=verify-identity&{ca}")),
    ] {
        let text = told_by(open("root", host, &query).map(|_| ()));
        assert!(text.contains("certificate"), "{query}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    if plugins.is_some() {
        server.run("install soname 'auth_ed25519'");
        server.run("create user ed@localhost identified via ed25519 using password('Kq9')");
        server.run("grant select on mysql.* to ed@localhost");
        open("ed:Kq9", "localhost", "").unwrap();
        let text = told_by(open("ed:no", "localhost", "").map(|_| ()));
        assert!(text.contains("check user and password"), "{text}");
    }
    let Some(plain) = Server::shared() else {
        return;
    };
    let port = port_of(plain);
    let open = |query: &str| {
        let url = format!("//root@localhost:{port}/mysql?{query}");
        load::connect(&Address::parse(&url, Options::default()).unwrap())
    };
    open("").unwrap();
    let text = told_by(open("ssl-mode=required").map(|_| ()));
    assert!(text.contains("has no TLS"), "{text}");
}

#[test]
fn a_server_without_room_and_a_hidden_index_are_told_with_the_way_out() {
    // One file for all tables, which may not grow.
    let set = "innodb_file_per_table=0; innodb_data_file_path=ibdata1:12M";
    let Some(server) = Server::own("8192", set) else {
        return;
    };
    let url = server.database("full");
    for way in ["local", "insert"] {
        let large = settings(&[("SCALE", "4000"), ("MYSQL_LOAD", way)]);
        let text = told_by(load(&url, &large, 1));
        assert!(text.contains("make room"), "{way}: {text}");
        life::destroy(&Mariadb, &url, &large).unwrap();
    }
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("hidden");
    load(&url, &settings(SMALL), 1).unwrap();
    let engine = |url: &str, update_pct| {
        let plan = Plan {
            update_pct,
            ..plan(8192, 1, 1000, 1)
        };
        let engine = Mariadb
            .open(url, &plan, &settings(SMALL), &Stop::new(), &Unwatched)
            .unwrap_or_else(|error| panic!("{error}"));
        let assignment = assay_run::engine::Assignment {
            thread: 0,
            threads: 1,
            sessions: vec![(1, 1)],
        };
        let opened = engine.driver(&assignment).map(|_| ());
        engine.close().unwrap();
        opened
    };
    server.run("create or replace user looker@localhost identified by 'Kq9'");
    server.run("grant select on hidden.* to looker@localhost");
    let looker = url.replacen("root@", "looker:Kq9@", 1);
    engine(&looker, 0).unwrap();
    let text = told_by(engine(&looker, 50));
    assert!(
        text.contains("ALL PRIVILEGES") && !text.contains("Kq9"),
        "{text}"
    );
    server.run("alter table hidden.cf1_1 alter index i_custid ignored");
    let text = told_by(engine(&url, 0));
    assert!(text.contains("assay check"), "{text}");
    server.run("alter table hidden.cf1_1 alter index i_custid not ignored");
    engine(&url, 50).unwrap();
}

#[test]
fn a_session_that_is_cut_off_makes_the_run_invalid_and_the_data_set_stays_whole() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("cut");
    load(&url, &settings(SMALL), 1).unwrap();
    for run_loop in ["client", "server"] {
        let ended = std::sync::atomic::AtomicBool::new(false);
        let plan = Plan {
            update_pct: 50,
            run_stamp: run_loop.len() as u32,
            ..plan(8192, 2, 1000, 1_000_000)
        };
        let mut said = SMALL.to_vec();
        said.push(("LOOP", run_loop));
        let engine = Mariadb
            .open(&url, &plan, &settings(&said), &Stop::new(), &Unwatched)
            .unwrap_or_else(|error| panic!("{error}"));
        let cutter = || {
            let mut connection = server.connect();
            let busy = "select max(id) from information_schema.processlist where db = 'cut' and state <> '' \
                        and command in ('Execute', 'Query') and time_ms >= 0 and info like '%cf1_1%'";
            while !ended.load(std::sync::atomic::Ordering::Acquire) {
                match connection.number(busy).unwrap() {
                    0 => std::thread::sleep(std::time::Duration::from_millis(5)),
                    // It may have ended its statement, not its session.
                    id => drop(connection.run(&format!("kill {id}"))),
                }
            }
        };
        let (clock, stop) = (Clock::real(), Stop::new());
        let options = RunOptions {
            calibrate: false,
            ..RunOptions::default()
        };
        let ran = std::thread::scope(|scope| {
            scope.spawn(cutter);
            let ran = execute(&plan, &*engine, &clock, &stop, &mut Unobserved, options);
            ended.store(true, std::sync::atomic::Ordering::Release);
            ran
        });
        match ran {
            Ok(data) => match data.verdict {
                Verdict::Invalid(why) => {
                    assert!(why.iter().any(|why| why.contains("connection")), "{why:?}");
                }
                other => panic!("{run_loop}: {other:?}"),
            },
            Err(error) => assert!(error.to_string().contains("connection"), "{error}"),
        }
    }
    life::check(&Mariadb, &url, &settings(SMALL)).unwrap();
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
    said.extend([
        ("MYSQL_BIN", bins.as_str()),
        ("COMMIT_MODE", "write"),
        ("BLOCK_SZ", "16384"),
    ]);
    let started = Mariadb.start("temp:11.4", &settings(&said), &Stop::new(), &Unwatched);
    let started = started.unwrap().expect("a temporary place is started");
    let server = Server {
        location: started.location,
        lines: started.lines,
        _running: Mutex::new(started.keep),
    };
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
        assert_eq!(counted(&data, stats::USER_COMMITS), 60);
        assert_eq!(counted(&data, stats::TUPLES_UPDATED), 60 * width);
        assert!(counted(&data, stats::REDO_SIZE) > 60 * width * 256);
    }
    life::check(&Mariadb, &url, &settings(SMALL)).unwrap();
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
