//! The target over a stand-in for a server (`fake`): the suites every target must pass, both loops, what is refused, statistics and
//! the whole report. `golden` holds the dialect as text and has independent parsers read it; `peer` is a scripted listener for the
//! failures of the real driver.

pub(super) mod fake;
pub(super) mod golden;
#[cfg(feature = "oracle")]
mod peer;

use super::session::OraError;
use super::*;
use assay_measure::clock::Clock;
use assay_measure::config::{self, Tables};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::snapshot::{Reading, RunData, SCAN, SELECT, UPDATE, Verdict};
use assay_run::engine::{Op, Target};
use assay_run::plan::RedoStress;
use assay_run::{Options as RunOptions, Unobserved, execute};
use assay_testkit::conformance::life::{self, Unwatched};
use assay_testkit::conformance::{self, Ground, Subject, claims_suite};
use fake::{Fake, PASSWORD, database};

/// The target, over the stand-in.
static FAKE: SlobOn<Oracle> = SlobOn(Oracle { way: || Ok(Arc::new(Fake)) });

/// Settings as a file of settings would give them: passwords may stand there.
pub(super) fn settings(said: &[(&str, &str)]) -> Settings {
    settings_of(Oracle::SLOB.params(), said)
}

/// The same of a target with these parameters.
pub(super) fn settings_of(params: &'static [ParamDef], said: &[(&str, &str)]) -> Settings {
    let tables = Tables { target: "oracle", params, workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
    let lines: Vec<String> = said.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
    let resolved = config::resolve(&tables, &[config::parse("slob.conf", lines.concat().as_bytes())]);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    resolved.settings
}

const SMALL: &[(&str, &str)] =
    &[("SCALE", "1000"), ("SCAN_TABLE_SZ", "16"), ("WORK_UNIT", "32"), ("SEED", "7"), ("CONNECT_RATE", "1000")];

fn small(more: &[(&str, &str)]) -> Settings {
    settings(&[SMALL, more].concat())
}

fn url(name: &str) -> String {
    format!("//slob:{PASSWORD}@//fake/{name}")
}

fn load(url: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    life::load(&FAKE, url, settings, schemas, &Stop::new(), &Unwatched)
}

fn told_by<T, E: std::fmt::Display>(result: Result<T, E>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

fn open(url: &str, plan: &Plan, settings: &Settings) -> Box<dyn Engine> {
    FAKE.open(url, plan, settings, &Stop::new(), &Unwatched).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_engine_keeps_the_contract_in_both_loops() {
    let url = url("contract");
    load(&url, &small(&[]), 2).unwrap();
    for place in ["client", "server"] {
        let settings = small(&[("LOOP", place)]);
        let violations =
            conformance::suite(&mut |plan| Subject { engine: open(&url, plan, &settings), clock: Clock::real() });
        assert_eq!(violations, Vec::<String>::new(), "LOOP={place}");
    }
    // Rows, sizes and places are as they were loaded (slob_21).
    life::check(&FAKE, &url, &small(&[])).unwrap();
}

#[test]
fn a_data_set_lives_from_nothing_to_nothing() {
    let url = url("life");
    let violations = life::life_suite(&FAKE, &url, &small(&[("LOAD_PARALLEL_DEGREE", "3")]));
    assert_eq!(violations, Vec::<String>::new());
    assert!(database("life").db().is_empty());
}

#[test]
fn every_pair_of_commands_shares_a_data_set_or_is_refused() {
    let violations =
        claims_suite(Ground { target: &FAKE, location: &url("claims"), settings: &small(&[]), runs_share: true });
    assert!(violations.is_empty(), "{violations:#?}");
}

/// So many operations of each session on 1000 keys.
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

/// Runs a plan to its end.
fn run(url: &str, plan: &Plan, settings: &Settings) -> RunData {
    let engine = open(url, plan, settings);
    let options = RunOptions { calibrate: false, ..RunOptions::default() };
    let (clock, stop) = (Clock::real(), Stop::new());
    let data = execute(plan, &*engine, &clock, &stop, &mut Unobserved, options);
    data.unwrap_or_else(|error| panic!("{error}"))
}

fn counted(data: &RunData, stat: Stat) -> u64 {
    data.drained.stats.get(stat).unwrap_or(0) - data.gate.stats.get(stat).unwrap_or(0)
}

fn fact<'a>(data: &'a RunData, name: &str) -> &'a str {
    let fact = data.engine_facts.iter().find(|fact| fact.name == name);
    fact.map_or("", |fact| &fact.value)
}

#[test]
fn both_loops_do_the_same_work_and_the_server_counts_what_the_sessions_did() {
    let url = url("loops");
    load(&url, &small(&[]), 2).unwrap();
    let mixed = Plan { update_pct: 20, scan_pct: 25, hot_schema_frequency: 4, ..plan(2, 100) };
    for place in ["client", "server"] {
        let data = run(&url, &mixed, &small(&[("LOOP", place)]));
        assert_eq!(data.verdict, Verdict::Complete, "{:?}", data.warnings);
        let ops = |kind: &str| {
            let ops = data.drained.driver.ops.iter().find(|ops| ops.kind == kind);
            ops.map_or(0, |ops| ops.service.count())
        };
        let (updates, scans) = (ops(UPDATE), ops(SCAN));
        // slob_5: of 4 sessions with 100 operations each.
        assert_eq!((updates, ops(SELECT) + updates + scans), (80, 400), "{place}");
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), updates, "{place}");
        assert_eq!(counted(&data, counter_catalog::TABLE_SCANS), scans, "{place}");
        assert_eq!(counted(&data, counter_catalog::ROWS_VISITED), (400 - scans) * 32 + scans * 16, "{place}");
        assert_eq!(counted(&data, counter_catalog::CHANGED_BYTES), updates * 32 * 256, "{place}");
        // slob_20: the server's own count.
        assert_eq!(counted(&data, counter_catalog::SERVER_COMMITS), updates, "{place}");
        assert_eq!(counted(&data, counter_catalog::SCAN_BLOCKS), scans * 16, "{place}");
        assert_eq!(fact(&data, "loop"), place);
    }
    // slob_19: a stamp led the row.
    let shared = database("loops");
    let stamped = (1..=1000).any(|key| !shared.db().content("cf1_1", key).starts_with('X'));
    assert!(stamped);
}

#[test]
fn an_open_transaction_of_commit_every_is_committed_at_the_end() {
    let url = url("commits");
    load(&url, &small(&[]), 2).unwrap();
    for place in ["client", "server"] {
        let plan = Plan { update_pct: 100, commit_every: 10, redo_stress: RedoStress::Heavy, ..plan(1, 25) };
        let data = run(&url, &plan, &small(&[("LOOP", place)]));
        assert_eq!(data.verdict, Verdict::Complete, "{:?}", data.warnings);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 6, "{place}");
        assert_eq!(counted(&data, counter_catalog::CHANGED_BYTES), 50 * 32 * 2432, "{place}");
    }
}

#[test]
fn failed_operations_are_counted_by_class_and_a_lost_session_makes_the_run_invalid() {
    let url = url("failures");
    load(&url, &small(&[]), 2).unwrap();
    let updates = Plan { update_pct: 100, ..plan(1, 20) };
    let deadlock = OraError::said(60, "ORA-00060: deadlock detected while waiting for resource");
    for (place, part) in [("client", "begin update"), ("server", "when 'u'")] {
        database("failures").db().fail.push((part, deadlock.clone()));
        let data = run(&url, &updates, &small(&[("LOOP", place)]));
        // slob_20: rolled back, counted, retried once.
        assert_eq!(data.drained.driver.retried.get("deadlock"), Some(&1), "{place}");
        assert_eq!(data.verdict, Verdict::Complete, "{place}: {:?}", data.warnings);
    }
    let lost = OraError::said(3113, "ORA-03113: end-of-file on communication channel");
    database("failures").db().fail.push(("select /*+ index", lost));
    let data = FAKE.open(&url, &plan(1, 20), &small(&[]), &Stop::new(), &Unwatched);
    let error =
        execute(&plan(1, 20), &*data.unwrap(), &Clock::real(), &Stop::new(), &mut Unobserved, RunOptions::default());
    // The first select of a session is its probe: nothing was measured yet.
    assert!(told_by(error).contains("ORA-03113"));
}

#[test]
fn a_session_that_dies_in_the_run_is_named_and_the_data_set_stays_in_order() {
    let url = url("dies");
    load(&url, &small(&[]), 2).unwrap();
    let plan = Plan { update_pct: 100, ..plan(1, 50) };
    let lost = OraError::said(28, "ORA-00028: your session has been killed");
    database("dies").db().fail.push(("begin update", lost));
    let data = run(&url, &plan, &small(&[]));
    let Verdict::Invalid { .. } = &data.verdict else {
        panic!("{:?}", data.verdict);
    };
    assert!(format!("{:?}", data.verdict).contains("ORA-00028"), "{:?}", data.verdict);
    life::check(&FAKE, &url, &small(&[])).unwrap();
}

#[test]
fn what_is_not_ours_is_refused_and_nothing_is_touched() {
    let url = url("foreign");
    database("foreign").db().foreign.push("payroll");
    let refused = told_by(load(&url, &small(&[]), 1));
    assert!(refused.contains("payroll") && refused.contains("nothing was touched"), "{refused}");
    assert!(database("foreign").db().is_empty());
    let url = self::url("strange");
    load(&url, &small(&[]), 1).unwrap();
    database("strange").db().triggers.push("trigger EVE.LOGGER on CF1_1");
    let refused = told_by(life::check(&FAKE, &url, &small(&[])));
    assert!(refused.contains("EVE.LOGGER"), "{refused}");
}

#[test]
fn what_is_not_as_it_was_loaded_is_named() {
    let url = url("damaged");
    load(&url, &small(&[]), 1).unwrap();
    let check = || told_by(life::check(&FAKE, &url, &small(&[])));
    database("damaged").db().harm("cf1_1", 17);
    assert!(check().contains("rows of a wrong size"), "{}", check());
    let sampled = small(&[("CHECK", "sampled")]);
    life::check(&FAKE, &url, &sampled).unwrap();
    database("damaged").db().drop_index("cf1_1");
    assert!(check().contains("its indexes are []"), "{}", check());
    let engine = open(&url, &Plan { schemas: 1, ..plan(1, 1) }, &small(&[]));
    let stop = Stop::new();
    let ran = execute(
        &Plan { schemas: 1, ..plan(1, 1) },
        &*engine,
        &Clock::real(),
        &stop,
        &mut Unobserved,
        RunOptions::default(),
    );
    let refused = told_by(ran);
    assert!(refused.contains("TABLE ACCESS FULL CF1_1") && refused.contains("assay check"), "{refused}");
}

#[test]
fn a_load_that_fails_is_taken_up_and_its_error_says_the_way_out() {
    let url = url("full");
    let full = OraError::said(1653, "ORA-01653: unable to extend table SLOB.CF1_2 by 128 in tablespace USERS");
    database("full").db().fail.push(("insert into cf1_2", full));
    let refused = told_by(load(&url, &small(&[]), 3));
    assert!(refused.contains("ORA-01653") && refused.contains("smaller SCALE"), "{refused}");
    let lines = load(&url, &small(&[]), 3).unwrap();
    let rows = lines.iter().find(|line| line.key == "verified_rows");
    assert!(rows.is_some(), "{lines:?}");
    life::check(&FAKE, &url, &small(&[])).unwrap();
}

/// An index that nobody may cancel is built for as long as this test lives.
#[test]
fn a_load_that_is_to_stop_ends_the_building_of_an_index_or_waits_no_longer_for_it() {
    for may_cancel in [true, false] {
        let name = format!("slow_index_{may_cancel}");
        let (url, shared) = (url(&name), database(&name));
        shared.db().slow_index = true;
        if !may_cancel {
            let denied = OraError::said(1031, "ORA-01031: insufficient privileges");
            shared.db().fail.push(("alter system cancel", denied));
        }
        let stop = Stop::new();
        let stopped = stop.clone();
        let server = Arc::clone(&shared);
        let stopping = std::thread::spawn(move || {
            drop(server.wait(server.db(), |db| !db.building));
            stopped.request();
        });
        let loaded = life::load(&FAKE, &url, &small(&[]), 1, &stop, &Unwatched);
        stopping.join().unwrap();
        assert!(matches!(loaded, Err(EngineError::Interrupted)), "{loaded:?}");
        assert_eq!(shared.db().building, !may_cancel);
        if !may_cancel {
            continue;
        }
        // The next prepare takes up what is there.
        shared.db().slow_index = false;
        load(&url, &small(&[]), 1).unwrap();
        life::check(&FAKE, &url, &small(&[])).unwrap();
    }
}

#[test]
fn a_password_a_standby_a_tablespace_and_a_block_size_are_refused_before_anything_is_made() {
    let wrong = told_by(load("//slob:Kq9wrong@//fake/refused", &small(&[]), 1));
    assert!(wrong.contains("ORA-01017") && !wrong.contains("Kq9"), "{wrong}");
    let url = url("refused");
    database("refused").db().role = Some("PHYSICAL STANDBY");
    let standby = told_by(load(&url, &small(&[]), 1));
    assert!(standby.contains("physical standby"), "{standby}");
    database("refused").db().role = None;
    let missing = told_by(load(&url, &small(&[("ORACLE_TABLESPACE", "IOPS")]), 1));
    assert!(missing.contains("no tablespace IOPS"), "{missing}");
    let name = told_by(load(&url, &small(&[("ORACLE_TABLESPACE", "X; drop user")]), 1));
    assert!(name.contains("is not a name"), "{name}");
    let block = told_by(load(&url, &small(&[("BLOCK_SZ", "16384")]), 1));
    assert!(block.contains("blocks of 8192 bytes"), "{block}");
    assert!(database("refused").db().is_empty());
}

#[test]
fn repositories_are_used_only_where_asked_licensed_and_there() {
    let url = url("licensed");
    load(&url, &small(&[]), 2).unwrap();
    let refused = |more: &[(&str, &str)]| told_by(FAKE.open(&url, &plan(1, 5), &small(more), &Stop::new(), &Unwatched));
    let awr = ("DATABASE_STATISTICS_TYPE", "awr");
    let licence = ("LICENSED_DIAGNOSTICS", "TRUE");
    assert!(refused(&[awr]).contains("needs a licence"));
    database("licensed").db().management = Some("NONE");
    assert!(refused(&[awr, licence]).contains("control_management_pack_access is NONE"));
    database("licensed").db().management = None;
    assert!(refused(&[awr, licence, ("AWR_SRC", "AWR_ROOT")]).contains("container ORCLPDB1"));
    let statspack = ("DATABASE_STATISTICS_TYPE", "statspack");
    assert!(refused(&[statspack]).contains("spcreate.sql"));
    assert!(refused(&[("DATABASE_STATISTICS_TYPE", "pgstat")]).contains("not a repository of Oracle"));
    let licensed = |db: &fake::Shared| {
        let db = db.db();
        let words = ["dbms_workload_repository", "active_session_history", "perfstat.statspack.snap"];
        words.map(|word| db.seen.keys().any(|sql| sql.contains(word)))
    };
    assert_eq!(licensed(&database("licensed")), [false; 3]);
    database("licensed").db().statspack = true;
    let data = run(&url, &plan(1, 5), &small(&[statspack]));
    assert!(fact(&data, "repository").starts_with("Statspack snapshots 41 to 42"), "{}", fact(&data, "repository"));
    assert_eq!(licensed(&database("licensed")), [false, false, true]);
    let data = run(&url, &plan(1, 5), &small(&[awr, licence]));
    assert!(fact(&data, "repository").starts_with("AWR snapshots 43 to 44"), "{}", fact(&data, "repository"));
    assert!(fact(&data, "ash_samples").contains("db file sequential read 812"));
}

#[test]
fn a_user_who_may_not_look_is_told_what_to_grant_and_the_words_of_slob_name_one_who_may() {
    let url = url("denied");
    load(&url, &small(&[]), 2).unwrap();
    database("denied").db().denied = true;
    let refused = told_by(FAKE.open(&url, &plan(1, 5), &small(&[]), &Stop::new(), &Unwatched));
    assert!(refused.contains("GRANT SELECT_CATALOG_ROLE"), "{refused}");
    database("denied").db().denied = false;
    let slob = [
        ("DBA_PRIV_USER", "system"),
        ("SYSDBA_PASSWD", PASSWORD),
        ("ADMIN_SQLNET_SERVICE", "//fake/denied"),
        ("SQLNET_SERVICE_BASE", "//fake/denied"),
        ("SQLNET_SERVICE_MAX", "2"),
    ];
    // The URL names the user alone: the words say where.
    let data = run(&format!("//slob:{PASSWORD}@"), &plan(2, 10), &small(&slob));
    assert_eq!(data.verdict, Verdict::Complete, "{:?}", data.warnings);
    assert_eq!(fact(&data, "services"), "//fake/denied1 to //fake/denied2, in rotation");
    let three = [&slob[..4], &[("SQLNET_SERVICE_MAX", "3")]].concat();
    let data = run(&format!("//slob:{PASSWORD}@"), &plan(2, 10), &small(&three));
    assert!(data.warnings.iter().any(|text| text.contains("3 services")), "{:?}", data.warnings);
    let printed = format!("{data:?}");
    assert!(!printed.contains(PASSWORD), "a password is in the record");
}

#[test]
fn what_only_the_client_decides_is_refused_with_the_loop_in_the_server() {
    let url = url("unfit");
    load(&url, &small(&[]), 2).unwrap();
    let server = small(&[("LOOP", "server")]);
    let refused = |plan: Plan| told_by(FAKE.open(&url, &plan, &server, &Stop::new(), &Unwatched));
    let rate = Plan { rate_per_s: 5, ..plan(1, 5) };
    assert!(refused(rate).starts_with("RATE needs LOOP=client"));
    let random = Plan { obfuscate: true, update_pct: 5, ..plan(1, 5) };
    assert!(refused(random).starts_with("OBFUSCATE_COLUMNS needs LOOP=client"));
}

#[test]
fn a_pool_of_its_own_is_the_cache_under_test_and_the_report_says_so() {
    let url = url("keep");
    load(&url, &small(&[]), 2).unwrap();
    database("keep").db().keep_bytes = 64 << 20;
    let data = run(&url, &plan(1, 5), &small(&[]));
    assert_eq!(fact(&data, "cache_blocks"), "8192");
    assert_eq!(fact(&data, "cache_parameter"), "db_keep_cache_size");
    assert!(data.warnings.iter().any(|text| text.contains("KEEP pool")), "{:?}", data.warnings);
}

#[test]
fn statistics_survive_a_server_that_is_gone() {
    let url = url("gone");
    load(&url, &small(&[]), 2).unwrap();
    let engine = open(&url, &plan(1, 5), &small(&[]));
    database("gone").db().down = true;
    let set = engine.sample();
    let reading = &set.counters[counter_catalog::PHYSICAL_READS.name];
    assert!(matches!(reading, Reading::Na(why) if why.contains("ORA-03113")), "{reading:?}");
    engine.close().unwrap();
    assert!(engine.remarks().invalid.iter().any(|text| text.contains("claim on the data set was lost")));
    database("gone").db().down = false;
}

/// The report of a run, without what no two runs have alike.
#[test]
fn the_report_of_a_run_reads_like_one_of_a_database() {
    assay_report::kinds::install(vec![&assay_slob::SLOB]);
    let url = url("report");
    load(&url, &small(&[]), 2).unwrap();
    database("report").db().latency = std::time::Duration::from_micros(800);
    let plan = Plan { update_pct: 25, scan_pct: 10, ..plan(2, 400) };
    let data = run(&url, &plan, &small(&[]));
    let mut record = assay_awr::record::build(&data);
    assay_report::kinds::attach_metrics(&mut record);
    let text = assay_report::text::render(&record);
    for wanted in [
        "Database Server",
        "19.0.0.0.0",
        "Load Profile",
        "Redo size (bytes)",
        "db file sequential read",
        "log file sync",
        "IOStat by Function",
        "Buffer Cache Reads",
        "server host cpu busy time",
        "v$sysstat",
        "v$system_event",
        "all sessions to //fake/report",
        "512 microseconds",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    // A session of this server shows its wait for as long as its call lasts, also while the host keeps its thread from a CPU:
    // on a busy host its samples are more than its waits, which are a constant.
    let violated = |identity: &&assay_measure::record::Identity| {
        identity.ok == assay_measure::record::Truth::Violated && identity.id != "I28b"
    };
    let violated: Vec<_> = record.integrity.iter().filter(violated).map(|identity| &identity.sentence).collect();
    assert!(violated.is_empty(), "{violated:#?}\n{text}");
    if let Some(place) = std::env::var_os("ASSAY_SHOW_REPORT") {
        std::fs::write(place, text).unwrap();
    }
}

#[test]
fn an_update_outside_its_plan_is_an_error_of_the_operation() {
    let url = url("outside");
    load(&url, &small(&[]), 2).unwrap();
    let engine = open(&url, &plan(1, 5), &small(&[]));
    let mut assignments = plan(1, 5).assignments(1);
    let mut driver = engine.driver(&assignments.remove(0)).unwrap();
    let op = Op::Select { schema: 9, first_key: 1, width: 4 };
    let assay_run::engine::Submit::Done(outcome) = driver.submit(0, &op, 0) else {
        panic!("it is not queued");
    };
    let error = outcome.result.unwrap_err();
    assert_eq!(error.class, "missing");
    driver.finish().unwrap();
    drop(driver);
    engine.close().unwrap();
}
