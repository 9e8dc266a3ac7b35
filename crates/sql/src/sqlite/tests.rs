//! The target on real files: the suites every target must pass, what is refused, what is counted.

use super::*;
use crate::testing::settings_of;
use assay_measure::clock::Clock;
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::snapshot::{Reading, RunData, UPDATE, Verdict};
use assay_run::engine::Presence;
use assay_run::plan::RedoStress;
use assay_run::{Options, Unobserved, execute};
use assay_testkit::conformance::life::{self, Unwatched};
use assay_testkit::conformance::{self, Ground, Subject, claims_suite};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;

const SMALL: &[(&str, &str)] = &[
    ("SCALE", "1000"),
    ("SCAN_TABLE_SZ", "16"),
    ("WORK_UNIT", "32"),
    ("SEED", "7"),
    // No test waits for a device.
    ("SQLITE_SYNCHRONOUS", "off"),
];

fn small(more: &[(&str, &str)]) -> Settings {
    settings_of("sqlite", params::PARAMS, &[SMALL, more].concat())
}

pub(super) struct Place(tempfile::TempDir);

impl Place {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn file(&self) -> String {
        self.0.path().join("db.sqlite").display().to_string()
    }

    /// The names of what is there.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub(super) fn told_by<T>(result: Result<T, EngineError>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

fn load(file: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    life::load(Sqlite::TARGET, file, settings, schemas, &Stop::new(), &Unwatched)
}

fn open(file: &str, plan: &Plan, settings: &Settings) -> Box<dyn Engine> {
    let opened = Sqlite::TARGET.open(file, plan, settings, &Stop::new(), &Unwatched);
    opened.unwrap_or_else(|error| panic!("{error}"))
}

fn plan(threads: u32, operations: u64) -> Plan {
    Plan {
        work_loop: operations,
        run_time_ns: 0,
        scan_blocks: 16,
        work_unit: 32,
        update_work_unit: 32,
        ..Plan::plain(2, threads, 1000)
    }
}

fn run(file: &str, plan: &Plan, settings: &Settings) -> RunData {
    let engine = open(file, plan, settings);
    let options = Options { host: false, calibrate: false, ..Options::default() };
    let data = execute(plan, &*engine, &Clock::real(), &Stop::new(), &mut Unobserved, options);
    data.unwrap_or_else(|error| panic!("{error}"))
}

fn counted(data: &RunData, stat: Stat) -> u64 {
    data.drained.stats.get(stat).unwrap_or(0) - data.gate.stats.get(stat).unwrap_or(0)
}

fn waits(data: &RunData, name: &str) -> u64 {
    let event = data.drained.stats.events.iter().find(|event| event.name == name);
    event.map_or(0, |event| event.waits.count())
}

#[test]
fn the_engine_keeps_the_contract() {
    let place = Place::new();
    load(&place.file(), &small(&[]), 2).unwrap();
    let settings = small(&[]);
    let violations =
        conformance::suite(&mut |plan| Subject { engine: open(&place.file(), plan, &settings), clock: Clock::real() });
    assert_eq!(violations, Vec::<String>::new());
    // Rows, sizes and places are as they were loaded (slob_21).
    life::check(Sqlite::TARGET, &place.file(), &settings).unwrap();
    assert_eq!(place.names(), ["db.sqlite"], "a run leaves no log and no lock");
}

#[test]
fn a_data_set_lives_from_nothing_to_nothing() {
    let place = Place::new();
    let violations = life::life_suite(Sqlite::TARGET, &place.file(), &small(&[("OBFUSCATE_COLUMNS", "TRUE")]));
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn every_pair_of_commands_shares_a_data_set_or_is_refused() {
    let (place, settings) = (Place::new(), small(&[]));
    let ground = Ground { target: Sqlite::TARGET, location: &place.file(), settings: &settings, runs_share: true };
    let violations = claims_suite(ground);
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn what_the_sessions_did_is_counted_and_a_page_that_is_not_cached_is_a_read() {
    let place = Place::new();
    load(&place.file(), &small(&[]), 2).unwrap();
    let mixed = Plan { update_pct: 20, scan_pct: 25, hot_schema_frequency: 4, ..plan(1, 100) };
    let data = run(&place.file(), &mixed, &small(&[("SQLITE_CACHE_MB", "1"), ("SQLITE_CHECKPOINT_PAGES", "100")]));
    assert_eq!(data.verdict, Verdict::Complete, "{:?}", data.warnings);
    let updates = data.drained.driver.ops.iter().find(|ops| ops.kind == UPDATE).unwrap().service.count();
    assert_eq!((updates, counted(&data, counter_catalog::USER_COMMITS)), (40, 40));
    assert_eq!(waits(&data, "log file sync"), 0, "no commit waits for the device");
    assert!(data.drained.stats.get(counter_catalog::SERVER_RUN_DELAY).is_some());
    let rows = counted(&data, counter_catalog::ROWS_VISITED);
    // Before the gate each session has sought the rows of one select; what it read more counts against later hits.
    let gets = data.drained.stats.get(counter_catalog::SESSION_LOGICAL_READS).unwrap();
    assert!(gets >= rows + 2 * 32 && gets < 2 * rows, "{gets} of {rows}");
    // 128 pages of cache for 1000 rows: most rows are read, and a row in the log too.
    let reads = counted(&data, counter_catalog::PHYSICAL_READS);
    assert!(reads > rows / 2, "{reads} of {rows}");
    assert_eq!(counted(&data, counter_catalog::PHYSICAL_READ_BYTES) / 8192, reads);
    // Each updated page goes to the log with its frame.
    let log = counted(&data, counter_catalog::REDO_SIZE);
    assert!((40 * 32 * 8192..2 * 40 * 32 * 8216).contains(&log), "{log}");
    let checkpoints = counted(&data, counter_catalog::DBWR_CHECKPOINTS);
    assert!(checkpoints > 0 && waits(&data, "checkpoint by session") == checkpoints);
    assert!(counted(&data, counter_catalog::DBWR_CHECKPOINT_BUFFERS) > 0);
    assert!(counted(&data, counter_catalog::PHYSICAL_WRITES) > 0);
    // With a cache for all of it, the second look at a page is no read.
    let cached = run(&place.file(), &Plan { update_pct: 0, ..plan(1, 200) }, &small(&[("SQLITE_CACHE_MB", "32")]));
    let reads = counted(&cached, counter_catalog::PHYSICAL_READS);
    assert!(reads > 1000 && reads < 2200, "{reads}");
    let unknown = &cached.drained.stats.counters[counter_catalog::INDEX_GETS.name];
    assert!(matches!(unknown, Reading::Na(_)), "{unknown:?}");
}

#[test]
fn a_session_waits_for_the_writer_and_that_is_charged() {
    let place = Place::new();
    load(&place.file(), &small(&[]), 2).unwrap();
    let engine = open(&place.file(), &Plan { update_pct: 100, ..plan(1, 5) }, &small(&[]));
    let other = rusqlite::Connection::open(place.file()).unwrap();
    let (begun, begins) = mpsc::channel();
    let (end, ends) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        other.execute_batch("begin immediate").unwrap();
        begun.send(()).unwrap();
        ends.recv().unwrap();
        other.execute_batch("rollback").unwrap();
    });
    begins.recv().unwrap();
    std::thread::scope(|scope| {
        let plan = Plan { update_pct: 100, ..plan(1, 5) };
        let engine = &*engine;
        let ran = scope.spawn(move || {
            let options = Options { host: false, calibrate: false, ..Options::default() };
            execute(&plan, engine, &Clock::real(), &Stop::new(), &mut Unobserved, options).unwrap()
        });
        let mut doing = [assay_run::engine::Doing::OnCpu; 2];
        crate::testing::until("two sessions that wait", || {
            engine.look(&mut doing);
            doing.iter().all(|one| matches!(one, assay_run::engine::Doing::Waiting { event: "enq: write lock", .. }))
        });
        end.send(()).unwrap();
        let data = ran.join().unwrap();
        assert_eq!(data.verdict, Verdict::Complete);
        assert!(waits(&data, "enq: write lock") >= 2);
    });
    writer.join().unwrap();
}

#[test]
fn what_the_library_was_asked_for_is_told_as_it_answered() {
    let place = Place::new();
    load(&place.file(), &small(&[]), 2).unwrap();
    let asked = small(&[("SQLITE_SYNCHRONOUS", "full"), ("SQLITE_MMAP_MB", "4096"), ("SQLITE_CACHE_MB", "1")]);
    let data = run(&place.file(), &Plan { update_pct: 100, ..plan(2, 1) }, &asked);
    assert_eq!(waits(&data, "log file sync"), 4, "with full, each commit waits");
    assert_eq!(counted(&data, counter_catalog::REDO_SYNCH_WRITES), 4);
    let fact = |name: &str| data.engine_facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str());
    assert_eq!(fact("journal_mode"), Some("wal"));
    assert_eq!(fact("cache_blocks"), Some("256"), "two sessions of a schema cache the same pages");
    assert_eq!(fact("mmap_bytes"), Some("2147418112"), "SQLite maps less than 2 GiB");
}

#[test]
fn a_wait_for_the_write_lock_ends_when_it_is_cancelled_or_the_user_stops() {
    let place = Place::new();
    let settings = small(&[("SQLITE_BUSY_TIMEOUT", "3600")]);
    load(&place.file(), &settings, 1).unwrap();
    let stop = Stop::new();
    let at = File::new(&place.file(), &settings, &stop).unwrap();
    let other = rusqlite::Connection::open(place.file()).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let counted = counted::Counted::of(&at);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let db = counted.open(&at).unwrap();
            counted.begin(&db.0).map_err(|error| file::failure(&error).class)
        });
        crate::testing::until("a session that waits", || {
            matches!(counted.doing(), assay_run::engine::Doing::Waiting { event: "enq: write lock", .. })
        });
        counted.cancel();
        assert_eq!(waits.join().unwrap(), Err("cancelled"));
    });
    let (works, looks) = (at.work().unwrap(), at.look().unwrap());
    stop.request();
    for db in [works, looks] {
        assert_eq!(db.atomic("select 1").map_err(|error| file::failure(&error).class), Err("lock timeout"));
    }
}

#[test]
fn a_request_to_stop_ends_a_check_and_not_what_a_run_does_at_its_end() {
    let place = Place::new();
    load(&place.file(), &small(&[]), 1).unwrap();
    let stop = Stop::new();
    let at = File::new(&place.file(), &small(&[]), &stop).unwrap();
    stop.request();
    let long =
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select count(*) from n";
    for (purpose, counted) in [(Purpose::Run, Some(100_000)), (Purpose::Check, None)] {
        let held = Sqlite::claim(&at, purpose).unwrap().unwrap();
        assert_eq!(held.keeper.number(long).ok(), counted, "{purpose:?}");
    }
}

#[test]
fn an_open_transaction_of_commit_every_is_committed_at_the_end() {
    let place = Place::new();
    load(&place.file(), &small(&[]), 2).unwrap();
    let plan = Plan { update_pct: 100, commit_every: 10, redo_stress: RedoStress::Heavy, ..plan(1, 25) };
    let data = run(&place.file(), &plan, &small(&[]));
    assert_eq!(data.verdict, Verdict::Complete, "{:?}", data.warnings);
    assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 6);
    assert_eq!(counted(&data, counter_catalog::CHANGED_BYTES), 50 * 32 * 2432);
    life::check(Sqlite::TARGET, &place.file(), &small(&[])).unwrap();
}

#[test]
fn what_is_not_ours_is_refused_and_nothing_is_touched() {
    let place = Place::new();
    let file = place.file();
    fs::write(&file, "a text, and no database, however long it is ".repeat(200)).unwrap();
    let before = fs::read(&file).unwrap();
    for error in [
        told_by(load(&file, &small(&[]), 1)),
        told_by(life::check(Sqlite::TARGET, &file, &small(&[]))),
        told_by(life::destroy(Sqlite::TARGET, &file, &small(&[]))),
    ] {
        assert!(error.contains("is not a database of SQLite"), "{error}");
    }
    assert_eq!((fs::read(&file).unwrap(), place.names()), (before, vec!["db.sqlite".to_owned()]));
    for mode in ["delete", "wal"] {
        fs::remove_file(&file).unwrap();
        let others = format!("pragma journal_mode = {mode}; create table payroll (a)");
        rusqlite::Connection::open(&file).unwrap().execute_batch(&others).unwrap();
        let before = fs::read(&file).unwrap();
        let (slob, orders) = (Sqlite::TARGET, orders::SqliteOrders::TARGET);
        for error in [
            told_by(load(&file, &small(&[]), 1)),
            told_by(life::check(slob, &file, &small(&[]))),
            told_by(slob.open(&file, &plan(1, 1), &small(&[]), &Stop::new(), &Unwatched)),
            told_by(life::destroy(slob, &file, &small(&[]))),
            told_by(orders.inspect(&file, &small(&[]))),
            told_by(orders.check(&file, &small(&[]), &Stop::new(), &Unwatched)),
            told_by(orders.destroy(&file, &small(&[]))),
        ] {
            assert!(error.contains("payroll") && error.contains("nothing was touched"), "{error}");
        }
        assert!(fs::read(&file).unwrap() == before, "{mode}");
        assert_eq!(place.names(), ["db.sqlite"], "{mode}");
    }
}

#[test]
fn a_file_of_others_in_the_place_of_the_lock_stays() {
    let place = Place::new();
    let file = place.file();
    load(&file, &small(&[]), 1).unwrap();
    let lock = format!("{file}-assay");
    let elsewhere = format!("{file}-elsewhere");
    let all_are_refused = || {
        for error in [
            told_by(load(&file, &small(&[]), 2)),
            told_by(life::check(Sqlite::TARGET, &file, &small(&[]))),
            told_by(life::destroy(Sqlite::TARGET, &file, &small(&[]))),
        ] {
            assert!(error.contains("db.sqlite-assay") && error.contains("nothing was touched"), "{error}");
        }
    };
    fs::write(&lock, "of others").unwrap();
    all_are_refused();
    assert_eq!(fs::read_to_string(&lock).unwrap(), "of others");
    fs::remove_file(&lock).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    all_are_refused();
    assert!(fs::symlink_metadata(&lock).is_ok() && !Path::new(&elsewhere).exists());
}

#[test]
fn a_file_that_another_program_has_open_stays() {
    let place = Place::new();
    let file = place.file();
    load(&file, &small(&[]), 1).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    let count = "select count(*) from sqlite_schema";
    let tables = |db: &rusqlite::Connection| db.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(tables(&other) > 0);
    let error = told_by(life::destroy(Sqlite::TARGET, &file, &small(&[])));
    assert!(error.contains("the data set was removed") && error.contains("has it open"), "{error}");
    other.execute_batch("create table payroll (a)").unwrap();
    drop(other);
    assert_eq!(tables(&rusqlite::Connection::open(&file).unwrap()), 1);
    assert_eq!(place.names(), ["db.sqlite"]);
}

#[test]
fn a_database_has_one_claim_under_every_name() {
    let place = Place::new();
    let at = |name: &str| File::new(name, &small(&[]), &Stop::new()).map(|at| at.beside("-assay"));
    let directory = place.0.path().canonicalize().unwrap();
    let lock = directory.join("db.sqlite-assay");
    let round = directory.join("..").join(directory.file_name().unwrap()).join("db.sqlite").display().to_string();
    let link = directory.join("link").display().to_string();
    assert_eq!(at(&round).unwrap(), lock, "before the file is there");
    symlink(place.file(), &link).unwrap();
    let refused = told_by(at(&link));
    assert!(refused.contains("link to nothing"), "{refused}");
    fs::write(place.file(), "").unwrap();
    for name in [&place.file(), &round, &link] {
        assert_eq!(at(name).unwrap(), lock);
    }
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    for name in ["file:db?mode=memory", ":memory:"] {
        assert_eq!(at(name).unwrap(), here.join(format!("{name}-assay")), "a name of a file, as any other");
    }
}

#[test]
fn an_empty_database_of_another_page_size_becomes_one_of_ours_and_its_mode_is_read() {
    for mode in ["delete", "wal"] {
        let place = Place::new();
        let file = place.file();
        let before = format!("pragma page_size = 4096; pragma journal_mode = {mode}; create table a (a); drop table a");
        rusqlite::Connection::open(&file).unwrap().execute_batch(&before).unwrap();
        load(&file, &small(&[]), 1).unwrap();
        life::check(Sqlite::TARGET, &file, &small(&[])).unwrap();
        rusqlite::Connection::open(&file).unwrap().execute_batch("pragma journal_mode = delete").unwrap();
        let plan = Plan { schemas: 1, ..plan(1, 1) };
        let refused = told_by(Sqlite::TARGET.open(&file, &plan, &small(&[]), &Stop::new(), &Unwatched));
        assert!(refused.contains("journal mode is delete, not wal"), "{refused}");
    }
}

#[test]
fn a_table_of_others_stays_with_the_file_and_a_trigger_is_refused() {
    let place = Place::new();
    let file = place.file();
    load(&file, &small(&[]), 1).unwrap();
    let others = rusqlite::Connection::open(&file).unwrap();
    others.execute_batch("create trigger eve after update on cf1_1 begin select 1; end").unwrap();
    let refused = told_by(life::check(Sqlite::TARGET, &file, &small(&[])));
    assert!(refused.contains("trigger eve on cf1_1"), "{refused}");
    others.execute_batch("drop trigger eve; create table payroll (a)").unwrap();
    let refused = told_by(load(&file, &small(&[]), 2));
    assert!(refused.contains("objects that assay did not make: payroll"), "{refused}");
    let lines = life::destroy(Sqlite::TARGET, &file, &small(&[])).unwrap();
    assert!(format!("{lines:?}").contains("the file, and payroll"), "{lines:?}");
    let left: i64 = others.query_row("select count(*) from sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 1);
}

#[test]
fn what_is_not_as_it_was_loaded_is_named() {
    let place = Place::new();
    let file = place.file();
    load(&file, &small(&[]), 1).unwrap();
    let check = |level| life::check(Sqlite::TARGET, &file, &small(&[("CHECK", level)]));
    let harm = |sql: &str| rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    harm("update cf1_1 set c7 = 'short' where custid = 17");
    assert!(told_by(check("full")).contains("rows of a wrong size are 1000, 1, 1000, 1, 1000, 1"));
    check("sampled").unwrap();
    harm("update cf1_1 set c7 = c8 where custid = 17");
    check("full").unwrap();
    harm("update cf1_1 set custid = 18 where custid = 17");
    assert!(told_by(check("sampled")).contains("1000, 999, 1, 1000"));
    harm("drop index i_cf1_1");
    assert!(told_by(check("sampled")).contains("its definitions are"));
    let ran = open(&file, &Plan { schemas: 1, ..plan(1, 1) }, &small(&[]));
    let options = Options { host: false, calibrate: false, ..Options::default() };
    let plan = Plan { schemas: 1, ..plan(1, 1) };
    let ran = execute(&plan, &*ran, &Clock::real(), &Stop::new(), &mut Unobserved, options);
    assert!(ran.unwrap_err().to_string().contains("no such index"));
}

/// What a kill leaves at each of these instants.
#[test]
fn a_load_that_was_killed_is_taken_up() {
    let place = Place::new();
    let file = place.file();
    fs::write(&file, "").unwrap();
    assert!(matches!(Sqlite::TARGET.inspect(&file, &small(&[])).unwrap(), Presence::Absent { .. }));
    load(&file, &small(&[]), 2).unwrap();
    let at = File::new(&file, &small(&[]), &Stop::new()).unwrap();
    let db = at.work().unwrap();
    marker::note(&db, 2, "loading").unwrap();
    db.0.execute_batch("drop index i_cf1_2; delete from cf1_2 where rowid > 500").unwrap();
    drop(db);
    load(&file, &small(&[]), 2).unwrap();
    life::check(Sqlite::TARGET, &file, &small(&[])).unwrap();
    let other = told_by(load(&file, &small(&[("SCALE", "2000")]), 3));
    assert!(other.contains("SCALE=2000 but it has 1000"), "{other}");
}

#[test]
fn a_page_size_is_chosen_at_the_beginning_and_each_holds_one_row() {
    for page in ["4096", "65536"] {
        let place = Place::new();
        let settings = small(&[("BLOCK_SZ", page)]);
        load(&place.file(), &settings, 1).unwrap();
        let lines = life::check(Sqlite::TARGET, &place.file(), &settings).unwrap();
        assert!(lines.iter().any(|line| line.key == "verified_pages"), "{lines:?}");
    }
    let place = Place::new();
    let url = format!("//{}", place.file());
    load(&url, &small(&[]), 1).unwrap();
    let refused = told_by(load(&url, &small(&[("BLOCK_SZ", "4096")]), 2));
    assert!(refused.contains("BLOCK_SZ=4096 but it has 8192"), "{refused}");
    assert!(Path::new(&place.file()).exists());
    let none = told_by(load("", &small(&[]), 1));
    assert!(none.contains("sqlite:FILE"), "{none}");
}
