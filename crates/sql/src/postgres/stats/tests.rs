use super::super::conninfo::ConnectOptions;
use super::super::testing::{self, Server};
use super::super::wire::{Bind, Connection};
use super::*;
use crate::place::Place;
use crate::postgres::own;
use crate::testing::until;
use assay_measure::counter_catalog::{self as dictionary, Stat};
use assay_measure::locked::locked;
use assay_measure::snapshot::{Reading, WaitClass};
use assay_run::engine::Doing;

const W: u64 = 64;
const ROWS: u64 = 2000;

/// Servers at rest, for one test at a time: what any other session does may make ours read the catalogs again, holds up
/// the end of old row versions, and writes log that is counted late.
fn at_rest() -> MutexGuard<'static, Vec<Server>> {
    static SERVERS: Mutex<Vec<Server>> = Mutex::new(Vec::new());
    let mut servers = locked(&SERVERS);
    if servers.is_empty() {
        let versions = testing::servers().into_iter().map(|server| server.version);
        servers.extend(versions.filter_map(|version| testing::own(version, "fsync=off; autovacuum=off")));
    }
    servers
}

/// A database of one's own with a table as the data set has, one row a page.
fn data_set(server: &Server, name: &str) -> ConnectOptions {
    let place = Place::new(&server.database(name)).unwrap();
    let options = own::options(&place).unwrap();
    let mut connection = Connection::open(&options).unwrap();
    for sql in [
        "create schema assay",
        "create table assay.cf1_1 (custid bigint not null, c2 text, c19 text, c20 text) with (fillfactor = 10, autovacuum_enabled = off)",
        "alter table assay.cf1_1 alter c2 set storage plain, alter c19 set storage plain, alter c20 set storage plain",
        "insert into assay.cf1_1 select n, repeat('x', 900), repeat('y', 128), repeat('z', 128) from generate_series(1, 2000) n",
        "create unique index i_cf1_1 on assay.cf1_1 (custid)",
        "vacuum (freeze, analyze) assay.cf1_1",
        "checkpoint",
    ] {
        connection.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    connection.close();
    options
}

fn session(options: &ConnectOptions, stats: &ServerStats) -> Connection {
    let mut connection = Connection::open(options).unwrap();
    let settings = "set enable_bitmapscan = off; set enable_seqscan = off; set enable_indexonlyscan = off";
    connection.query(settings).unwrap();
    for sql in stats.session_sql() {
        connection.query(sql).unwrap();
    }
    connection
}

fn moved(after: &StatSet, before: &StatSet, stat: Stat) -> u64 {
    after.difference(before).get(stat).unwrap_or_else(|| panic!("{}: {:?}", stat.name, after.counters.get(stat.name)))
}

/// Statistics with the versions that can tell them, as the published mapping has it.
const TOLD: &[(Stat, std::ops::RangeInclusive<u32>)] = &[
    (dictionary::SESSION_LOGICAL_READS, 13..=18),
    (dictionary::CACHE_HITS, 13..=18),
    (dictionary::PHYSICAL_READS, 13..=18),
    (dictionary::PHYSICAL_READ_BYTES, 13..=18),
    (dictionary::PHYSICAL_WRITES, 13..=18),
    (dictionary::PHYSICAL_WRITE_REQUESTS, 13..=18),
    (dictionary::PHYSICAL_WRITES_NON_CHECKPOINT, 13..=18),
    (dictionary::DBWR_CHECKPOINT_BUFFERS, 13..=18),
    (dictionary::REDO_SIZE, 13..=18),
    (dictionary::REDO_ENTRIES, 14..=18),
    (dictionary::REDO_WRITES, 14..=18),
    (dictionary::REDO_ALLOCATION_RETRIES, 14..=18),
    (dictionary::REDO_BYTES_WRITTEN, 18..=18),
    (dictionary::WAL_BYTES, 14..=18),
    (dictionary::WAL_FULL_PAGES, 14..=18),
    (dictionary::WAL_SYNCS, 14..=18),
    (dictionary::SERVER_COMMITS, 13..=18),
    (dictionary::SERVER_ROLLBACKS, 13..=18),
    (dictionary::SERVER_WRITE_TRANSACTIONS, 13..=18),
    (dictionary::SERVER_ACTIVE_TIME, 14..=18),
    (dictionary::SERVER_SESSIONS, 14..=18),
    (dictionary::SERVER_DEADLOCKS, 13..=18),
    (dictionary::TABLE_GETS, 13..=18),
    (dictionary::INDEX_GETS, 13..=18),
    (dictionary::TABLE_UPDATES_HOT, 13..=18),
    (dictionary::TABLE_UPDATES_NEW_PAGE, 16..=18),
    (dictionary::CHECKPOINTS_TIMED, 13..=18),
    (dictionary::CHECKPOINT_WRITE_TIME, 13..=18),
    (dictionary::SLRU_WRITTEN, 18..=18),
    (dictionary::BACKEND_SYNCS, 13..=18),
    (dictionary::BUFFER_EVICTIONS, 16..=18),
    (dictionary::BUFFERS_ALLOCATED, 13..=18),
    (dictionary::PHYSICAL_READ_TOTAL_BYTES, 18..=18),
    (dictionary::PHYSICAL_WRITE_TOTAL_REQUESTS, 18..=18),
];

#[test]
fn every_version_tells_what_the_mapping_says_and_a_reason_for_the_rest() {
    for server in testing::servers() {
        let version = server.version;
        let options = data_set(server, "stats_mapping");
        let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
        let set = stats.sample();
        for (stat, versions) in TOLD {
            let reading = &set.counters[stat.name];
            let told = matches!(reading, Reading::Count(_));
            assert_eq!(told, versions.contains(&version), "{version}: {} is {reading:?}", stat.name);
        }
        let requests = &set.counters[dictionary::PHYSICAL_READ_REQUESTS.name];
        assert_eq!(matches!(requests, Reading::Count(_)), version != 17, "{version}");
        let reasons = ["absent", "disabled", "denied", "unsupported", "unknowable"];
        for (name, reading) in &set.counters {
            if let Reading::Na(reason) = reading {
                assert!(reasons.iter().any(|word| reason.starts_with(word)), "{version}: {name}: {reason}");
            }
            assert!(set.sources.contains_key(name), "{version}: {name} has no source");
        }
        let event = |name: &str| set.timed.iter().find(|event| event.name == name);
        let read = event("db file sequential read").unwrap();
        assert!(matches!((&read.waits, &read.wait_ns), (Reading::Count(_), Reading::Count(_))), "{version}: {read:?}");
        let log = event("log file parallel write").unwrap();
        assert_eq!(matches!(log.waits, Reading::Count(_)), version >= 14, "{version}");
        let switch = if version < 14 { "absent: came with PostgreSQL 14" } else { "disabled: track_wal_io_timing" };
        assert_eq!(log.wait_ns, Reading::Na(switch.to_owned()), "{version}");
        assert!(set.io.iter().any(|row| row.function == "DBWR"), "{version}");
    }
}

#[test]
fn slob_50_the_servers_gets_agree_with_the_clients_and_misses_are_not_more() {
    for server in at_rest().iter() {
        let version = server.version;
        let options = data_set(server, "stats_gets");
        let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
        let mut connection = session(&options, &stats);
        let select =
            connection.prepare("select count(c2) from assay.cf1_1 where custid between $1 and $2", &[20, 20]).unwrap();
        let one = |connection: &mut Connection, first: u64| {
            let values = [Bind::Int8(first as i64), Bind::Int8((first + W - 1) as i64)];
            connection.execute(&select, &values, &mut |_| {}).unwrap();
        };
        // The first executions plan, the sixth for good.
        (0..8).for_each(|_| one(&mut connection, 1));
        settled(&stats, &mut connection, version);
        let ops = 100;
        let before = stats.sample();
        for op in 0..ops {
            one(&mut connection, 1 + op * 17 % (ROWS - W));
        }
        settled(&stats, &mut connection, version);
        let after = stats.sample();
        let of = |stat| moved(&after, &before, stat);
        assert_eq!(of(dictionary::TABLE_GETS), ops * W, "{version}");
        let index = of(dictionary::INDEX_GETS);
        assert!((2 * ops..=4 * ops).contains(&index), "{version}: {index}");
        assert_eq!(of(dictionary::SESSION_LOGICAL_READS), ops * W + index, "{version}");
        assert!(of(dictionary::PHYSICAL_READS) <= of(dictionary::SESSION_LOGICAL_READS));
        assert_eq!(of(dictionary::SESSION_LOGICAL_READS), of(dictionary::CACHE_HITS) + of(dictionary::PHYSICAL_READS));
        // The collector's own transactions are not among them, nor those that publish.
        commits_agree(of(dictionary::SERVER_COMMITS), ops, version);
        assert_eq!(of(dictionary::SERVER_WRITE_TRANSACTIONS), 0, "{version}");
        connection.close();
    }
}

/// Before 15 nobody can say which of the collector's own transactions are on the books yet.
fn commits_agree(server: u64, client: u64, version: u32) {
    let unsure = if version < 15 { 12 } else { 0 };
    assert!(server.abs_diff(client) <= unsure, "{version}: {server} commits, {client} made");
}

/// Has a session's counters on the books: from 15 on at once, before by its end-of-second rule.
fn settled(stats: &ServerStats, connection: &mut Connection, version: u32) {
    if version < 15 {
        std::thread::sleep(Duration::from_millis(1100));
        // Publishing takes a transaction; it is one of ours.
        connection.query("select 1").unwrap();
        stats.own.note();
        std::thread::sleep(Duration::from_millis(700));
    }
    stats.flush(connection).unwrap();
}

#[test]
fn slob_20_the_server_commits_what_the_client_commits_and_logs_what_it_says() {
    for server in at_rest().iter() {
        let version = server.version;
        let options = data_set(server, "stats_commits");
        let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
        let mut connection = session(&options, &stats);
        settled(&stats, &mut connection, version);
        let before = stats.sample();
        let ops = 50;
        for op in 0..ops {
            let sql = format!(
                "update assay.cf1_1 set c19 = '{op:0128}', c20 = '{op:0128}' where custid between {} and {}",
                1 + op,
                op + 8
            );
            connection.query(&sql).unwrap();
        }
        settled(&stats, &mut connection, version);
        let after = stats.sample();
        let of = |stat| moved(&after, &before, stat);
        commits_agree(of(dictionary::SERVER_COMMITS), ops, version);
        assert_eq!(of(dictionary::SERVER_WRITE_TRANSACTIONS), ops, "{version}");
        assert_eq!(of(dictionary::TUPLES_UPDATED), ops * 8, "{version}");
        assert_eq!(of(dictionary::TABLE_UPDATES), ops * 8, "{version}");
        let hot = of(dictionary::TABLE_UPDATES_HOT);
        assert!(hot * 100 >= ops * 8 * 95, "{version}: {hot} of {}", ops * 8);
        let redo = of(dictionary::REDO_SIZE);
        assert!(redo >= ops * 8 * 256, "{version}: {redo} bytes");
        if version >= 14 {
            // The log's position also counts page headers and other processes' records.
            let counted = of(dictionary::WAL_BYTES);
            assert!(counted <= redo && counted * 10 >= redo * 9, "{version}: {counted} of {redo}");
            assert!(of(dictionary::REDO_ENTRIES) >= ops * 8);
        }
        connection.close();
    }
}

#[test]
fn the_collector_leaves_no_trace_in_what_it_counts() {
    for server in at_rest().iter().filter(|server| server.version >= 15) {
        let options = data_set(server, "stats_own");
        let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
        let activity = Activity::open(&options, &stats, Box::new(Vec::new)).unwrap();
        activity.look(&mut []);
        stats.sample();
        let before = stats.sample();
        for _ in 0..5 {
            // On a busy machine looks are dear, and become rarer.
            until("a look", || activity.look(&mut []));
            stats.sample();
        }
        let after = stats.sample();
        for stat in [
            dictionary::SERVER_COMMITS,
            dictionary::SERVER_ROLLBACKS,
            dictionary::SESSION_LOGICAL_READS,
            dictionary::TUPLES_RETURNED,
        ] {
            let moved = moved(&after, &before, stat);
            assert_eq!(moved, 0, "{}: {}", server.version, stat.name);
        }
        assert!(moved(&after, &before, dictionary::COLLECTOR_TRANSACTIONS) >= 11);
    }
}

#[test]
fn what_is_taken_off_for_our_own_never_makes_a_count_fall() {
    for server in testing::servers() {
        let options = data_set(server, "stats_own");
        let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
        let commits = |set: &StatSet| set.get(dictionary::SERVER_COMMITS).unwrap();
        let before = commits(&stats.sample());
        // Noted here before the server has published any of them.
        for _ in 0..100_000 {
            stats.own_work().note();
        }
        let after = commits(&stats.sample());
        assert!(before > 0, "PostgreSQL {}", server.version);
        assert!(after >= before, "PostgreSQL {}: {after}", server.version);
    }
}

#[test]
fn all_of_18s_io_is_in_the_rows_identity_i13() {
    let Some(server) = testing::server(18) else {
        return;
    };
    let options = data_set(server, "stats_i13");
    let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
    let set = stats.sample();
    let sum = |of: fn(&assay_measure::snapshot::IoReading) -> u64| set.io.iter().map(of).sum::<u64>();
    for (stat, rows) in [
        (dictionary::PHYSICAL_READ_TOTAL_REQUESTS, sum(|row| row.small_read_requests)),
        (dictionary::PHYSICAL_READ_TOTAL_BYTES, sum(|row| row.read_bytes)),
        (dictionary::PHYSICAL_WRITE_TOTAL_REQUESTS, sum(|row| row.small_write_requests)),
        (dictionary::PHYSICAL_WRITE_TOTAL_BYTES, sum(|row| row.write_bytes)),
    ] {
        assert_eq!(set.get(stat), Some(rows), "{}", stat.name);
        assert!(rows > 0, "{}", stat.name);
    }
}

#[test]
fn a_role_without_privileges_gets_every_counter_and_is_told_what_is_hidden() {
    for server in testing::servers() {
        let version = server.version;
        let options = data_set(server, "stats_plain");
        let role = "do $$ begin create role assay_plain login; exception when duplicate_object or unique_violation then null; end $$";
        server.query(role);
        let mut plain = options.clone();
        plain.user = "assay_plain".to_owned();
        let stats = ServerStats::open(&plain, "assay", Timing::Auto).unwrap();
        let set = stats.sample();
        for (stat, versions) in TOLD {
            assert_eq!(set.get(*stat).is_some(), versions.contains(&version), "{version}: {}", stat.name);
        }
        let read = set.timed.iter().find(|event| event.name == "db file sequential read").unwrap();
        assert_eq!(read.wait_ns, Reading::Na("disabled: track_io_timing".to_owned()));
        let facts = stats.facts();
        let fact = |name: &str| &facts.iter().find(|fact| fact.name == name).unwrap().value;
        assert!(fact("statistics_privileges").contains("pg_monitor"));
        assert!(fact("io_timing_achieved").starts_with("off: "));
        assert_eq!(fact("track_io_timing"), "off");
        let refused = ServerStats::open(&plain, "assay", Timing::On).unwrap_err();
        assert!(refused.to_string().contains("TRACK_IO_TIMING=auto"), "{refused}");
    }
}

#[test]
fn a_lost_connection_is_opened_again_and_a_reset_is_no_work() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let options = data_set(server, "stats_lost");
    let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
    let first = stats.sample();
    let kill = "select pg_terminate_backend(pid) from pg_stat_activity \
                where datname = 'stats_lost' and application_name = 'assay collector'";
    assert_eq!(server.query(kill).rows.len(), 1);
    let second = stats.sample();
    let gets = dictionary::SESSION_LOGICAL_READS;
    assert!(second.get(gets) >= first.get(gets), "{:?}", second.counters.get(gets.name));
    let mut other = Connection::open(&options).unwrap();
    other.query("select pg_stat_reset()").unwrap();
    other.close();
    let third = stats.sample();
    let reading = &third.counters[gets.name];
    assert!(matches!(reading, Reading::Na(reason) if reason.starts_with("reset")), "{reading:?}");
    assert!(third.get(dictionary::REDO_SIZE).is_some(), "the log's position is no counter to reset");
}

#[test]
fn a_look_tells_a_lock_from_a_sleep_and_from_a_session_that_waits_for_us() {
    for server in testing::servers() {
        let version = server.version;
        let options = data_set(server, "stats_look");
        let stats = ServerStats::open(&options, "assay", Timing::Auto).unwrap();
        let mut holder = session(&options, &stats);
        let mut waiter = session(&options, &stats);
        let pids = vec![(1, holder.backend_pid()), (2, waiter.backend_pid())];
        let activity = Activity::open(&options, &stats, Box::new(move || pids.clone())).unwrap();
        let update = "update assay.cf1_1 set c20 = 'a' where custid = 7";
        holder.query("begin").unwrap();
        holder.query(update).unwrap();
        let waits = std::thread::spawn(move || {
            waiter.query(update).unwrap();
            waiter.close();
        });
        let mut sessions = [Doing::OnCpu; 3];
        let lock = Doing::Waiting { event: "Lock:transactionid", class: WaitClass::Application };
        until("the wait for the lock", || {
            let mut seen = [Doing::OnCpu; 3];
            if activity.look(&mut seen) {
                sessions = seen;
            }
            sessions[1] == lock
        });
        let between = Doing::Waiting { event: "Client:ClientRead", class: WaitClass::Network };
        assert_eq!(sessions[0], between, "{version}");
        assert_eq!(sessions[2], Doing::OnCpu, "no such session: left as it came");
        holder.query("commit").unwrap();
        waits.join().unwrap();
        holder.close();
        assert!(activity.facts()[0].value.contains("queries of pg_stat_activity"));
    }
}
