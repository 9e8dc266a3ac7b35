//! On real servers: a table four times as large as the buffers, read in random order, once out of the page cache and
//! once under each way of eviction.

use super::super::testing::{self, Server};
use super::*;
use crate::testing::until;

const ROWS: u64 = 8192;
const BLOCK: u64 = 8192;
/// What a server may read beside our blocks: catalogs, maps, its own files.
const OTHER_BYTES: u64 = 8 << 20;
const SMALL: &str = "shared_buffers=16MB; max_wal_size=1GB";

/// A server of `version` with one table of one row a block, in no order of its keys.
fn loaded(version: u32, set: &str) -> Option<Server> {
    let server = testing::own(version, &format!("{SMALL}; {set}"))?;
    for sql in [
        "create schema assay",
        "create table assay.cf1_1 (custid bigint not null, c2 text, c3 text, c4 text, c5 text) with (fillfactor = 10)",
        "alter table assay.cf1_1 alter c2 set storage plain, alter c3 set storage plain, alter c4 set storage plain, \
         alter c5 set storage plain",
        &format!(
            "insert into assay.cf1_1 select g, repeat('a', 128), repeat('b', 128), repeat('c', 128), repeat('d', 128) \
             from generate_series(1, {ROWS}) g order by hashint8(g)"
        ),
        "create index i_cf1_1 on assay.cf1_1 (custid)",
        "vacuum (freeze, analyze) assay.cf1_1",
        "checkpoint",
    ] {
        server.query(sql);
    }
    Some(server)
}

fn evicting(modes: &str) -> Settings {
    testing::settings(&[("EVICT", modes)])
}

fn opened(server: &Server, connection: &mut Connection, modes: &str) -> Result<TrueReads, EngineError> {
    let place = Place::new(&server.location()).expect("its own location");
    TrueReads::open(&place, connection, 2, "assay", &evicting(modes))
}

/// Reads the whole table through its index and returns the bytes the engine asked the operating system for.
fn read_all(connection: &mut Connection) -> u64 {
    for sql in ["set enable_seqscan = off", "set enable_bitmapscan = off", "set max_parallel_workers_per_gather = 0"] {
        connection.query(sql).expect("a setting");
    }
    let plan = connection
        .query("explain (analyze, buffers, timing off) select count(c2) from assay.cf1_1 where custid between 1 and 100000000")
        .expect("a plan");
    let lines: Vec<String> = plan.rows.into_iter().filter_map(|mut row| row.remove(0)).collect();
    let scan = lines.iter().position(|line| line.contains("Index Scan")).expect("an index scan");
    let buffers = lines[scan..].iter().find(|line| line.contains("Buffers:")).expect("its buffers");
    let read = buffers.split(' ').find_map(|word| word.strip_prefix("read="));
    read.expect("misses").parse::<u64>().expect("a number") * BLOCK
}

fn counter(reads: &TrueReads, stat: counter_catalog::Stat, ours: &[i32]) -> u64 {
    let mut set = StatSet::default();
    reads.sample(ours, &mut set);
    match set.counters.get(stat.name) {
        Some(Reading::Count(count)) => *count,
        other => panic!("{}: {other:?}", stat.name),
    }
}

/// Bytes the engine read and bytes of those that a device delivered, in one pass over the table.
fn pass(reads: &TrueReads, connection: &mut Connection) -> (u64, u64) {
    let before = counter(reads, counter_catalog::SERVER_DEVICE_READ_BYTES, &[]);
    let engine = read_all(connection);
    (engine, counter(reads, counter_catalog::SERVER_DEVICE_READ_BYTES, &[]) - before)
}

fn fact(reads: &TrueReads, name: &str) -> String {
    let facts = reads.facts();
    let found = facts.iter().find(|fact| fact.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {facts:?}")).value.clone()
}

#[test]
fn a_warm_page_cache_serves_what_the_engine_calls_reads() {
    for version in [15, 18] {
        let Some(server) = loaded(version, "") else {
            continue;
        };
        let mut connection = server.connect();
        let reads = opened(&server, &mut connection, "").expect("nothing requested");
        let calls = counter(&reads, counter_catalog::SERVER_READ_CALL_BYTES, &[]);
        let (engine, device) = pass(&reads, &mut connection);
        assert!(engine > ROWS * BLOCK / 2, "{version}: only {engine} bytes missed the buffers");
        assert!(device < engine / 10, "{version}: {device} of {engine} from devices");
        let calls = counter(&reads, counter_catalog::SERVER_READ_CALL_BYTES, &[]) - calls;
        assert!(calls >= engine && calls < engine + OTHER_BYTES, "{version}: {calls} for {engine}");
        connection.close();
    }
}

#[test]
fn a_server_behind_a_socket_is_found_and_its_data_directory_with_it() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let mut connection = server.connect();
    let claims = Claims::ask(&mut connection).expect("it answers");
    let Whereabouts::Here(here) = host::find(Path::new(PROC), &claims) else {
        panic!("it is here");
    };
    assert_eq!(u32::try_from(here.postmaster), Ok(server.pid()));
    for proof in ["SO_PEERCRED", "both start times"] {
        assert!(here.evidence.contains(proof), "{}", here.evidence);
    }
    let data = server.directory().join("data");
    for told in [Some(data.as_path()), None] {
        let found = files::data_directory(Path::new(PROC), here.postmaster, told).expect("found");
        assert_eq!((found.path.as_path(), found.reach()), (data.as_path(), data.as_path()));
    }
    // A session that the server does not have is nowhere.
    let elsewhere = Claims { backend: i32::MAX, ..claims };
    assert!(matches!(host::find(Path::new(PROC), &elsewhere), Whereabouts::Unknown(_)));
    connection.close();
}

#[test]
fn sums_keep_what_sessions_did_that_have_ended() {
    let Some(server) = loaded(15, "") else { return };
    let mut connection = server.connect();
    let reads = opened(&server, &mut connection, "").expect("nothing requested");
    let mut session = server.connect();
    let pid = session.backend_pid();
    let (calls, cpu) = (
        counter(&reads, counter_catalog::SERVER_READ_CALL_BYTES, &[]),
        counter(&reads, counter_catalog::DB_CPU, &[pid]),
    );
    let engine = read_all(&mut session);
    reads.last_look(pid);
    session.close();
    until("the session to end", || !Path::new(PROC).join(pid.to_string()).exists());
    let after = counter(&reads, counter_catalog::SERVER_READ_CALL_BYTES, &[pid]) - calls;
    assert!(after >= engine && after < engine + OTHER_BYTES, "{after} for {engine}");
    assert!(counter(&reads, counter_catalog::DB_CPU, &[]) > cpu, "its CPU went with it");
    assert!(counter(&reads, counter_catalog::BACKGROUND_CPU, &[]) > 0);
    connection.close();
}

#[test]
fn dropping_the_page_cache_makes_the_next_pass_physical() {
    for version in [15, 18] {
        let Some(server) = loaded(version, "") else {
            continue;
        };
        let mut connection = server.connect();
        let reads = opened(&server, &mut connection, "pagecache").expect("our own server");
        let said = fact(&reads, "evict_pagecache");
        assert!(said.contains("after a checkpoint") && said.contains("before"), "{said}");
        let (engine, device) = pass(&reads, &mut connection);
        assert!(device > engine / 100 * 98, "{version}: {device} of {engine}; {said}");
        assert!(reads.watched_paths().contains(&server.directory().join("data")));
        connection.close();
    }
}

#[test]
fn dropping_it_again_and_again_keeps_the_passes_physical() {
    let Some(server) = loaded(15, "") else { return };
    let mut connection = server.connect();
    let reads = opened(&server, &mut connection, "continuous:5").expect("our own server");
    read_all(&mut connection);
    let (engine, device) = pass(&reads, &mut connection);
    assert!(device > engine / 2, "{device} of {engine}");
    let mut set = StatSet::default();
    reads.sample(&[], &mut set);
    assert!(set.gauges["evict_rounds_count"] > 0);
    reads.close().expect("a thread to stop");
    reads.sample(&[], &mut set);
    read_all(&mut connection);
    let (engine, device) = pass(&reads, &mut connection);
    assert!(device < engine / 10, "{device} of {engine} after it was stopped");
    connection.close();
}

#[test]
fn direct_io_is_the_servers_own_and_refused_where_it_is_off() {
    assert_eq!(server_settings(&evicting("direct")).expect("a way"), [("debug_io_direct", "data".to_owned())]);
    if let Some(server) = testing::server(15) {
        let mut connection = server.connect();
        let error = opened(server, &mut connection, "direct").expect_err("15 has none").to_string();
        assert!(error.contains("PostgreSQL 16"), "{error}");
        connection.close();
    }
    if let Some(server) = testing::server(18) {
        let mut connection = server.connect();
        let error = opened(server, &mut connection, "direct").expect_err("it is off").to_string();
        assert!(error.contains("debug_io_direct = data"), "{error}");
        connection.close();
    }
    for version in [16, 18] {
        let Some(server) = loaded(version, "debug_io_direct=data") else {
            continue;
        };
        let mut connection = server.connect();
        let reads = opened(&server, &mut connection, "direct").expect("it is on");
        read_all(&mut connection);
        let (engine, device) = pass(&reads, &mut connection);
        assert!(device > engine / 10 * 9, "{version}: {device} of {engine}");
        connection.close();
    }
}

#[test]
fn the_servers_buffers_are_emptied_where_it_has_a_way() {
    let Some(server) = loaded(18, "") else { return };
    let mut connection = server.connect();
    read_all(&mut connection);
    let reads = match opened(&server, &mut connection, "buffers") {
        Ok(reads) => reads,
        Err(error) => {
            // The packages of some vendors leave the extensions out.
            assert!(error.to_string().contains("pg_buffercache"), "{error}");
            return;
        }
    };
    let said = fact(&reads, "evict_buffers");
    let evicted: u64 = said.split(' ').next().and_then(|n| n.parse().ok()).expect("a count");
    assert!(evicted > 1000, "{said}");
    connection.close();
}

#[test]
fn a_cgroup_holds_the_server_and_lets_it_go() {
    let Some(server) = loaded(15, "") else { return };
    let mut connection = server.connect();
    let small = opened(&server, &mut connection, "cgroup:1M").expect_err("it would starve");
    assert!(small.to_string().contains("would starve the server"), "{small}");
    let reads = match opened(&server, &mut connection, "cgroup:160M") {
        Ok(reads) => reads,
        Err(error) => {
            // Needs root and a hierarchy that may be written.
            let text = error.to_string();
            assert!(text.contains("cgroup"), "{text}");
            eprintln!("skipped: {text}");
            return;
        }
    };
    let said = fact(&reads, "evict_cgroup");
    let group = PathBuf::from(said.split(' ').next().expect("the group"));
    let members = std::fs::read_to_string(group.join("cgroup.procs")).expect("it is there");
    assert!(members.lines().any(|pid| pid == server.pid().to_string()), "{members}");
    let mut born = server.connect();
    let pid = born.backend_pid().to_string();
    let members = std::fs::read_to_string(group.join("cgroup.procs")).expect("it is there");
    assert!(members.lines().any(|member| member == pid), "a new session is outside");
    let (engine, device) = pass(&reads, &mut born);
    assert!(device > engine / 2, "{device} of {engine}: it begins with nothing cached");
    reads.close().expect("everything moves back");
    assert!(!group.exists(), "{} is left", group.display());
    assert!(read_all(&mut born) > 0, "the server lives on");
    born.close();
    connection.close();
}

#[test]
fn a_server_that_cannot_be_seen_says_so_and_evicts_nothing() {
    let unseen = TrueReads {
        processes: Err("elsewhere".to_owned()),
        facts: facts(&Whereabouts::Unknown("elsewhere".to_owned()), None, &[]),
        watched: Vec::new(),
        held: Mutex::default(),
    };
    let mut set = StatSet::default();
    unseen.sample(&[1], &mut set);
    for stat in here::CHARGED {
        assert_eq!(set.counters.get(stat.name), Some(&Reading::Na("unknowable".to_owned())), "{}", stat.name);
    }
    assert_eq!(fact(&unseen, "server_host"), "n/a (unknowable: elsewhere)");
    let Some(server) = testing::server(15) else {
        return;
    };
    let mut connection = server.connect();
    let refused = evict::evict(
        &[Mode::PageCache],
        Ground {
            connection: &mut connection,
            throw_away: false,
            schema: "assay",
            sessions: 1,
            directory: Err("elsewhere".to_owned()),
            relations: &[],
            processes: &Vec::new,
        },
    );
    let error = refused.expect_err("no files to reach").to_string();
    assert!(error.contains("on this host") && error.contains("elsewhere"), "{error}");
    connection.close();
}

#[test]
fn hundreds_of_sessions_are_read_in_full() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let mut sessions: Vec<Connection> = (0..150).map(|_| server.connect()).collect();
    let pids: Vec<i32> = sessions.iter().map(Connection::backend_pid).collect();
    let reads = opened(server, &mut sessions[0], "").expect("nothing requested");
    let mut set = StatSet::default();
    reads.sample(&pids, &mut set);
    assert!(set.gauges["server_processes_count"] >= 150);
    assert!(counter(&reads, counter_catalog::DB_CPU, &pids) > 0);
    sessions.into_iter().for_each(Connection::close);
}
