//! Scans on real files: which blocks are read, by how many requests, and what is said of damage.

use super::*;
use crate::control::data_name;
use crate::control_file::ControlFile;
use assay_measure::snapshot::{Direction, SCAN, StatSet};
use assay_run::engine::Op;
use std::os::unix::fs::FileExt;

const SCAN_BLOCKS: u64 = 300;

/// A data set with scan tables of 300 blocks, read 8 at a time.
fn scan_settings(more: &[(&str, &str)]) -> Settings {
    let mut given =
        vec![("SCALE", "1000"), ("SCAN_TABLE_SZ", "300"), ("CACHE_MB", "16"), ("MULTIBLOCK_READ_COUNT", "8")];
    given.extend(more);
    settings(&given)
}

fn prepared(schemas: u32) -> TempDir {
    let dir = directory();
    prepare(dir.path(), &scan_settings(&[]), schemas);
    dir
}

fn scans(schemas: u32, threads: u32, operations: u64) -> Plan {
    Plan {
        scan_pct: 100,
        scan_blocks: SCAN_BLOCKS,
        work_loop: operations,
        run_time_ns: 0,
        ..Plan::plain(schemas, threads, 1000)
    }
}

fn requests_of(stats: &StatSet, event: &str) -> (u64, u64) {
    let mut rows = stats.requests.iter().filter(|row| row.event == event);
    rows.next().map_or((0, 0), |row| (row.completions.count(), row.bytes))
}

#[test]
fn slob_22_streams_of_a_scan_read_each_block_of_its_table_once() {
    let dir = prepared(2);
    for (streams, depth, threads) in [("1", "1", 1), ("1", "4", 1), ("5", "3", 1), ("64", "32", 20)] {
        let given = [("SCAN_PARALLEL", streams), ("SCAN_DEPTH", depth)];
        let data = run(dir.path(), &scan_settings(&given), &scans(2, threads, 6));
        let operations = 2 * u64::from(threads) * 6;
        let op = &data.drained.driver.ops[0];
        assert_eq!(op.kind, SCAN);
        assert_eq!((op.service.count(), op.rows), (operations, operations * 300));
        let blocks = operations * SCAN_BLOCKS;
        for stat in [
            counter_catalog::SCAN_BLOCKS,
            counter_catalog::PHYSICAL_READS,
            counter_catalog::PHYSICAL_READS_DIRECT,
            counter_catalog::CONSISTENT_GETS,
        ] {
            assert_eq!(counted(&data, stat), blocks, "{}", stat.name);
        }
        // 37 requests of 8 blocks and one of 4; none of cf1, none through the cache.
        assert_eq!(counted(&data, counter_catalog::PHYSICAL_READ_REQUESTS), operations * 38);
        assert_eq!(counted(&data, counter_catalog::PHYSICAL_READS_CACHE), 0);
        assert_eq!(counted(&data, counter_catalog::GETS_FROM_CACHE), 0);
        let stats = &data.drained.stats;
        assert_eq!(requests_of(stats, "direct path read"), (operations * 38, blocks * 8192));
        let waits: u64 =
            stats.events.iter().filter(|event| event.name == "direct path read").map(|event| event.waits.count()).sum();
        assert!(waits > 0);
        if threads == 1 {
            assert!(waits <= operations * 38, "{waits} waits");
        }
    }
}

#[test]
fn a_small_scan_table_is_read_once_through_the_cache() {
    let dir = prepared(1);
    // 300 blocks are below 2 % of 16384.
    let given = [("CACHE_MB", "128"), ("SCAN_PARALLEL", "4")];
    let settings = scan_settings(&given);
    let data = run(dir.path(), &settings, &scans(1, 1, 5));
    assert_eq!(counted(&data, counter_catalog::SCAN_BLOCKS), 5 * SCAN_BLOCKS);
    assert_eq!(counted(&data, counter_catalog::PHYSICAL_READS_CACHE), SCAN_BLOCKS);
    assert_eq!(counted(&data, counter_catalog::PHYSICAL_READS_DIRECT), 0);
    let (requests, bytes) = requests_of(&data.drained.stats, "db file scattered read");
    assert_eq!((requests > 0, bytes % 8192), (true, 0));
    let fact = |name: &str| {
        let facts = &data.engine_facts;
        facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.clone())
    };
    assert!(fact("scan_read").unwrap().starts_with("db file scattered read"));
}

#[test]
fn a_damaged_block_fails_the_scan_and_names_its_page() {
    let dir = prepared(1);
    let settings = scan_settings(&[("SCAN_PARALLEL", "3")]);
    let page = {
        let control = ControlFile::read(dir.path()).unwrap().unwrap();
        let map = control.geometry.map();
        let page = map.scan_page(1, 123);
        let (file, offset) = map.locate(page);
        let file = std::fs::File::options().write(true).open(dir.path().join(data_name(file))).unwrap();
        file.write_all_at(b"rot", offset + 5000).unwrap();
        page
    };
    let plan = scans(1, 1, 1);
    let engine = open(dir.path(), &plan, &settings).unwrap();
    let assignment = assay_run::engine::Assignment { thread: 0, threads: 1, sessions: vec![(1, 1)] };
    let mut driver = engine.driver(&assignment).unwrap();
    let mut perform = |op: Op| {
        let mut ended = Vec::new();
        if let assay_run::engine::Submit::Done(outcome) = driver.submit(0, &op, 0) {
            return outcome.result;
        }
        while ended.is_empty() {
            driver.reap(std::time::Duration::from_secs(1), &mut ended).unwrap();
        }
        ended.remove(0).outcome.result
    };
    for _ in 0..3 {
        let error = perform(Op::Scan { schema: 1 }).unwrap_err();
        assert_eq!(error.class, "corrupt");
        assert!(error.text.contains(&format!("page {}", page.0)), "{}", error.text);
        // Nothing of the failed scan is left under way: the session goes on as if it had not been.
        let select = Op::Select { schema: 1, first_key: 1, width: 100 };
        assert_eq!(perform(select).unwrap(), 100);
    }
}

#[test]
fn waits_and_requests_of_single_reads_are_as_many_at_both_layers() {
    let dir = prepared(2);
    for (mode, event) in [("single", "db file sequential read"), ("batched", "db file parallel read")] {
        let given = [("READ_MODE", mode), ("CACHE_MB", "1")];
        let plan = Plan { scan_pct: 0, update_pct: 30, ..scans(2, 4, 40) };
        let data = run(dir.path(), &scan_settings(&given), &plan);
        let stats = &data.drained.stats;
        let (requests, bytes) = requests_of(stats, event);
        assert!(requests > 0);
        assert_eq!(bytes, requests * 8192);
        let waits: u64 =
            stats.events.iter().filter(|reading| reading.name == event).map(|reading| reading.waits.count()).sum();
        if mode == "single" {
            assert_eq!(requests, waits);
            // The wait of a request holds the request: neither layer can be the longer one.
            let below = stats.requests.iter().find(|row| row.event == event);
            let above = stats.events.iter().find(|reading| reading.name == event);
            let (below, above) = (&below.unwrap().completions, &above.unwrap().waits);
            assert!(below.sum_ns() <= above.sum_ns());
            assert!(below.max_ns() <= above.max_ns() && below.min_ns() <= above.min_ns());
            assert!(below.min_ns() > Some(0));
        } else {
            assert!(requests > waits, "{requests} requests of {waits} waits");
        }
        // Every request of the ring is of some kind: nothing is timed twice or not at all.
        let timed = |direction| -> u64 {
            let rows = stats.requests.iter();
            rows.filter(|row| row.direction == direction).map(|row| row.completions.count()).sum()
        };
        assert_eq!(timed(Direction::Read), stats.get(counter_catalog::RING_READ_REQUESTS).unwrap());
        assert!(timed(Direction::Write) > 0);
    }
}
