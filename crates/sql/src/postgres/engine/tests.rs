//! Sessions on real servers: the conformance suite, and the numbered items that concern every engine.

use super::*;
use crate::place::Place;
use crate::postgres::layout::{Names, Storage};
use crate::postgres::marker::Marker;
use crate::postgres::testing::{self, Server};
use crate::postgres::{Postgres, own};
use crate::slob::Dialect;
use crate::testing::until;
use assay_measure::clock::Clock;
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::snapshot::{RunData, SCAN, SELECT, Snapshot, UPDATE, Verdict};
use assay_run::engine::Op;
use assay_run::plan::{Edge, RedoStress};
use assay_run::trace::Row;
use assay_run::{Options as RunOptions, Unobserved, execute};
use assay_testkit::conformance;
use assay_testkit::trace::Memory;

/// Both loops must do the same work.
const LOOPS: [&str; 2] = ["client", "server"];

/// A database with the tables of `schemas` schemas of 1000 rows and 16 scan rows.
fn tables(server: &Server, database: &str, schemas: u32) -> Place {
    let place = Place::new(&server.database(database)).unwrap();
    let mut connection = Connection::open(&own::options(&place).unwrap()).unwrap();
    let names = Names::of_schema("assay").unwrap();
    let storage = Storage { tablespace: String::new(), autovacuum: false };
    let mut sql = vec![format!("create schema {}", names.schema_sql())];
    let fill = vec!["repeat('X', 128)"; 19].join(", ");
    for n in 1..=schemas {
        let rows = names.rows_table(n);
        let scan = names.scan_table(n);
        sql.push(names.create_rows(n, &storage));
        sql.push(names.create_scan(n, &storage));
        sql.push(format!("insert into {rows} select g, {fill} from generate_series(1, 1000) g order by random()"));
        sql.push(format!("insert into {scan} select g, {fill} from generate_series(1, 16) g"));
        sql.push(names.create_index(n, false, &storage));
        sql.push(format!("vacuum (freeze, analyze) {rows}"));
        sql.push(format!("vacuum (freeze, analyze) {scan}"));
    }
    let marker = Marker {
        data_set: 7,
        seed: 7,
        block_bytes: 8192,
        scale: 1000,
        scan_blocks: 16,
        obfuscate: false,
        compress_pct: 0,
        unique: false,
        own: marker::Own { tablespace: String::new(), autovacuum: false, made_schema: true },
    };
    let all: Vec<u32> = (1..=schemas).collect();
    sql.push(marker.create(&names));
    sql.push(marker::note_loading(&names, &all));
    sql.extend(all.iter().map(|n| marker::note_loaded(&names, *n)));
    for sql in sql {
        connection.query(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    connection.close();
    place
}

fn opened(place: &Place, plan: &Plan, given: &[(&str, &str)]) -> Result<SlobEngine<PgEngine>, EngineError> {
    let mut said = vec![("CONNECT_RATE", "1000")];
    said.extend(given);
    let settings = testing::settings(&said);
    PgEngine::open(&Postgres.at(place, &settings)?, plan, &settings, &Stop::new()).map(SlobEngine)
}

/// Runs a plan to its end with a trace.
fn run(place: &Place, plan: &Plan, given: &[(&str, &str)]) -> (RunData, Vec<Row>) {
    let engine = opened(place, plan, given).unwrap_or_else(|error| panic!("{error}"));
    let trace = Memory::new();
    let options = RunOptions { calibrate: false, trace: Some(Box::new(trace.clone())), ..RunOptions::default() };
    let (clock, stop) = (Clock::real(), Stop::new());
    let data =
        execute(plan, &engine, &clock, &stop, &mut Unobserved, options).unwrap_or_else(|error| panic!("{error}"));
    // So few rows grow their tables, which alone voids the reads of an older server.
    let good = match &data.verdict {
        Verdict::Complete => true,
        Verdict::Invalid(why) => why.iter().all(|why| why.contains("that it adds to a table")),
        Verdict::Incomplete(_) => false,
    };
    assert!(good, "{:?}: {:?}", data.verdict, data.warnings);
    let mut rows = trace.rows();
    rows.sort_by_key(|row| (row.session, row.i));
    (data, rows)
}

/// So many operations of each session on 1000 keys.
fn plan(schemas: u32, threads: u32, operations: u64) -> Plan {
    Plan { work_loop: operations, run_time_ns: 0, scan_blocks: 16, ..Plan::plain(schemas, threads, 1000) }
}

fn ops(data: &RunData, kind: &str) -> u64 {
    let mut found = data.drained.driver.ops.iter();
    found.find(|op| op.kind == kind).map_or(0, |op| op.service.count())
}

fn counted(data: &RunData, stat: Stat) -> u64 {
    data.drained.stats.get(stat).unwrap_or(0) - data.gate.stats.get(stat).unwrap_or(0)
}

/// One number of a query in the data set's database.
fn number(place: &Place, sql: &str) -> i64 {
    let mut connection = Connection::open(&own::options(place).unwrap()).unwrap();
    let answer = connection.query(sql).unwrap();
    connection.close();
    answer.rows[0][0].as_deref().unwrap().parse().unwrap()
}

#[test]
fn the_engine_passes_the_conformance_suite_on_every_server() {
    for server in testing::servers() {
        let place = tables(server, "session_suite", 2);
        for given in [
            &[("READ_MODE", "single")][..],
            &[("READ_MODE", "batched"), ("COMMIT_MODE", "off")],
            &[("DRIVER_THREADS", "1")],
            &[("LOOP", "server")],
        ] {
            let violations = conformance::suite(&mut |plan| conformance::Subject {
                engine: Box::new(opened(&place, plan, given).unwrap()),
                clock: Clock::real(),
            });
            assert!(violations.is_empty(), "{} {given:?}: {violations:#?}", server.version);
        }
    }
}

#[test]
fn a_thread_serves_many_sessions_and_a_mark_finds_their_work_published() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_many", 2);
    let mixed = Plan { update_pct: 50, ..plan(2, 8, 20) };
    let (data, rows) = run(&place, &mixed, &[("DRIVER_THREADS", "1")]);
    assert_eq!(data.drained.driver.threads, 1);
    assert_eq!(rows.len(), 16 * 20);
    assert!(rows.iter().all(|row| row.rows == Some(64)), "{rows:?}");
    let committed = counted(&data, counter_catalog::USER_COMMITS);
    assert_eq!(committed, ops(&data, UPDATE));
    assert!(committed > 0);
    // The end is a mark while all 16 are at work: what they did must be on the server's books by then.
    let timed = Plan { run_time_ns: 300_000_000, work_loop: 0, ..mixed };
    // A mark waits 50 ms for what is under way; on a busy machine an operation may take longer, and what its session did
    // before is then published with the next. Were nothing published at a mark, no run would agree.
    let agrees = |_| {
        let (data, _) = run(&place, &timed, &[("DRIVER_THREADS", "1")]);
        let of = |stat: Stat| {
            let at = |snapshot: &Snapshot| snapshot.stats.get(stat).unwrap_or(0);
            at(&data.end) - at(&data.gate)
        };
        let (changed, published) = (of(counter_catalog::ROWS_CHANGED), of(counter_catalog::TABLE_UPDATES));
        assert!(changed > 0);
        published == changed
    };
    assert!((0..8).any(agrees));
}

#[test]
fn slob_01_selects_change_nothing_and_commit_nothing() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_01", 2);
    for run_loop in LOOPS {
        let wal = "select pg_current_wal_insert_lsn() - '0/0'";
        number(&place, wal);
        let (data, rows) = run(&place, &plan(2, 1, 50), &[("LOOP", run_loop)]);
        assert_eq!(ops(&data, SELECT), 100);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 0);
        assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 0);
        assert_eq!(counted(&data, counter_catalog::ROWS_VISITED), 100 * 64);
        assert!(rows.iter().all(|row| row.rows == Some(64)));
    }
}

#[test]
fn slob_02_20_updates_commit_each_and_change_their_rows_and_no_others() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_02", 2);
    for run_loop in LOOPS {
        let plan = Plan { update_pct: 100, update_work_unit: 8, ..plan(2, 1, 50) };
        let changed = "select count(*) from assay.cf1_1 where c20 <> repeat('X', 128)";
        let (data, rows) = run(&place, &plan, &[("LOOP", run_loop)]);
        assert_eq!(ops(&data, UPDATE), 100);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 100);
        assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 800);
        assert_eq!(counted(&data, counter_catalog::CHANGED_BYTES), 800 * 256);
        let mut keys: Vec<u64> = rows
            .iter()
            .filter_map(|row| match row.op {
                Op::Update { schema: 1, first_key, width, .. } => Some(first_key..first_key + u64::from(width)),
                _ => None,
            })
            .flatten()
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let before = number(&place, "select count(*) from assay.cf1_1 where c18 <> repeat('X', 128)");
        assert_eq!(before, 0, "LITE leaves the other columns alone");
        let now = number(&place, changed);
        assert!(now >= keys.len() as i64, "{now} rows, {} keys", keys.len());
        // The last operation's stamp is in the rows.
        let Op::Update { stamp, first_key, schema, .. } = rows.last().unwrap().op else { panic!("{rows:?}") };
        let stamped = number(
            &place,
            &format!(
                "select count(*) from assay.cf1_{schema} where c19 like '{stamp:016X}%' and c19 = c20 and length(c19) = 128 and custid between {first_key} and {}",
                first_key + 7
            ),
        );
        assert_eq!(stamped, 8, "{run_loop}");
    }
}

#[test]
fn slob_05_06_08_every_kind_touches_as_many_rows_as_it_should() {
    let Some(server) = testing::server(18) else {
        return;
    };
    let place = tables(server, "session_05", 1);
    for run_loop in LOOPS {
        for work_unit in [1, 3, 64, 255] {
            let plan = Plan {
                update_pct: 20,
                scan_pct: 50,
                work_unit,
                update_work_unit: 8,
                edge: Edge::Wrap,
                redo_stress: RedoStress::Heavy,
                obfuscate: true,
                // Shares are exact in every hundred: of all operations, and of those that are no updates.
                ..plan(1, 1, 500)
            };
            let (data, rows) = run(&place, &plan, &[("LOOP", run_loop)]);
            assert_eq!(ops(&data, UPDATE), 100);
            assert_eq!(ops(&data, SCAN), 200);
            assert_eq!(ops(&data, SELECT), 200);
            for row in rows {
                let expected = plan.rows_expected(&row.op);
                assert_eq!(row.rows, Some(expected), "{run_loop} {row:?}");
            }
        }
    }
    let columns = "select count(distinct substr(c2, 17)) from assay.cf1_1 where c2 <> repeat('X', 128)";
    assert!(number(&place, columns) > 1, "obfuscated content differs");
}

#[test]
fn slob_14_24_44_the_loops_do_the_same_operations_and_exactly_as_many() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_44", 3);
    let plan = Plan { update_pct: 25, scan_pct: 10, work_unit: 8, hot_schema_frequency: 4, ..plan(3, 2, 200) };
    let keys = |rows: &[Row]| -> Vec<String> {
        rows.iter().map(|row| format!("{} {} {:?} {}", row.session, row.i, row.op, row.hot_schema)).collect()
    };
    let (_, client) = run(&place, &plan, &[("LOOP", "client")]);
    let (data, in_server) = run(&place, &plan, &[("LOOP", "server")]);
    assert_eq!(client.len(), 1200);
    assert_eq!(keys(&client), keys(&in_server));
    assert_eq!(client.iter().filter(|row| row.hot_schema).count(), 300);
    assert_eq!(ops(&data, UPDATE), 300);
}

#[test]
fn commits_of_several_updates_are_one_transaction() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_commits", 1);
    let plan = Plan { update_pct: 100, work_unit: 4, update_work_unit: 4, commit_every: 10, ..plan(1, 1, 105) };
    let (data, _) = run(&place, &plan, &[]);
    assert_eq!(ops(&data, UPDATE), 105);
    assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 11, "ten of ten, and what was left");
    let refused = opened(&place, &plan, &[("LOOP", "server")]).err();
    let text = refused.expect("the server commits each").to_string();
    assert!(text.contains("COMMIT_EVERY"), "{text}");
}

#[test]
fn deadlocks_are_retried_once_and_no_session_is_left() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_deadlock", 1);
    for run_loop in LOOPS {
        // Eight sessions on the same rows; index order makes deadlocks rare, and none may end the run.
        let plan = Plan { update_pct: 50, work_unit: 500, update_work_unit: 500, ..plan(1, 8, 20) };
        let (data, _) = run(&place, &plan, &[("LOOP", run_loop)]);
        assert_eq!(ops(&data, UPDATE), 80);
        // A backend goes a moment after its client has said good-bye; the server's own workers come and go.
        let left = || {
            number(
                &place,
                "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() \
                 and backend_type = 'client backend'",
            )
        };
        until("the backends to go", || left() == 0);
    }
}

#[test]
fn a_missing_index_is_told_before_the_start() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_index", 1);
    let mut connection = Connection::open(&own::options(&place).unwrap()).unwrap();
    connection.query("drop index assay.i_cf1_1").unwrap();
    connection.close();
    let plan = plan(1, 1, 1);
    let engine = opened(&place, &plan, &[]).unwrap();
    let refused = engine.driver(&plan.assignments(1)[0]).err().expect("no index, no run").to_string();
    assert!(refused.contains("Seq Scan on cf1_1"), "{refused}");
    engine.close().unwrap();
}

#[test]
fn more_sessions_than_connections_are_refused_with_the_way_out() {
    let Some(server) = testing::own(15, "max_connections=20") else {
        return;
    };
    let place = tables(&server, "session_many", 1);
    let refused = opened(&place, &plan(1, 12, 1), &[]).err();
    let text = refused.expect("12 and 10 spare do not fit 17").to_string();
    assert!(text.contains("max_connections to 25"), "{text}");
    assert!(opened(&place, &plan(1, 7, 1), &[]).is_ok());
}

#[test]
fn a_session_that_the_administrator_ends_makes_the_run_invalid() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let place = tables(server, "session_lost", 1);
    let plan = Plan { run_time_ns: 20_000_000_000, work_loop: 0, ..plan(1, 2, 0) };
    for run_loop in LOOPS {
        let engine = opened(&place, &plan, &[("LOOP", run_loop)]).unwrap();
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                until("both backends", || engine.0.on.running.backends.pids().len() == 2);
                std::thread::sleep(std::time::Duration::from_millis(300));
                let pid = engine.0.on.running.backends.pid(1).unwrap();
                number(&place, &format!("select count(*) from pg_terminate_backend({pid})"));
            });
            let options = RunOptions::default();
            let (clock, stop) = (Clock::real(), Stop::new());
            execute(&plan, &engine, &clock, &stop, &mut Unobserved, options)
        });
        // The data are kept, and say that they are not to be used.
        let data = done.unwrap_or_else(|error| panic!("{run_loop}: {error}"));
        let Verdict::Invalid(why) = &data.verdict else {
            panic!("{run_loop}: a lost session is told, not {:?}", data.verdict)
        };
        let told = why.iter().any(|why| why.contains("session 1 lost its connection") && why.contains("57P01"));
        assert!(told, "{run_loop}: {why:?}");
        assert_eq!(data.drained.driver.errors.get("connection lost"), Some(&1), "{run_loop}");
    }
}

/// 13 and 14 publish what a session counted some time after it: the reading after the drain waits for that.
#[test]
fn the_last_reading_has_all_that_the_sessions_changed_on_every_server() {
    for server in testing::servers() {
        let place = tables(server, "session_settled", 2);
        let plan = Plan { update_pct: 100, ..plan(2, 2, 40) };
        for _ in 0..3 {
            let (data, _) = run(&place, &plan, &[]);
            let changed = counted(&data, counter_catalog::ROWS_CHANGED);
            let updated = counted(&data, counter_catalog::TABLE_UPDATES);
            assert!(changed > 0, "{}", server.version);
            assert_eq!(updated, changed, "PostgreSQL {}", server.version);
        }
    }
}
