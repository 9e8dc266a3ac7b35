//! The numbered conformance items on real files. Item 36 aside there is no cache, so
//! that every block access is a physical read, and no index block is read.

use super::*;
use crate::block_format::{column_range, row_range};
use crate::control::data_name;
use crate::control_file::ControlFile;
use assay_measure::snapshot::{SCAN, SELECT, StatSet, UPDATE, WaitClass};
use assay_run::engine::Op;
use assay_run::plan::RedoStress;
use assay_run::trace::Row;
use assay_testkit::trace::Memory;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt as _;

const BLOCK_BYTES: u64 = 8192;

/// A data set of 2,000 blocks a schema.
fn prepared(schemas: u32) -> TempDir {
    let dir = directory();
    prepare(dir.path(), &settings(&[("SCALE", "2000")]), schemas);
    dir
}

fn uncached(more: &[(&str, &str)]) -> Settings {
    let mut given = vec![("SCALE", "2000"), ("CACHE_MB", "0"), ("INDEX", "computed")];
    given.extend(more);
    settings(&given)
}

/// So many operations of each session.
fn plan(schemas: u32, threads: u32, operations: u64) -> Plan {
    Plan { work_loop: operations, run_time_ns: 0, scan_blocks: 16, ..Plan::plain(schemas, threads, 2000) }
}

fn ops(data: &RunData, kind: &str) -> u64 {
    let mut found = data.drained.driver.ops.iter();
    found.find(|op| op.kind == kind).map_or(0, |op| op.service.count())
}

/// Blocks of data files read into the cache or written by the writers.
fn data_blocks(data: &RunData, function: &str) -> u64 {
    let rows = data.drained.stats.io.iter();
    rows.filter(|row| row.function == function && row.file_type == "Data File")
        .map(|row| (row.read_bytes + row.write_bytes) / BLOCK_BYTES)
        .sum()
}

fn waits(stats: &StatSet, name: &str) -> u64 {
    let events = stats.events.iter().filter(|event| event.name == name);
    events.map(|event| event.waits.count()).sum()
}

fn traced(dir: &Path, settings: &Settings, plan: &Plan) -> (RunData, Vec<Row>) {
    let engine = open(dir, plan, settings).unwrap();
    let trace = Memory::new();
    let options = Options { calibrate: false, trace: Some(Box::new(trace.clone())), ..Options::default() };
    let (clock, stop) = (Clock::real(), Stop::new());
    let data =
        execute(plan, &*engine, &clock, &stop, &mut Unobserved, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(data.verdict, Verdict::Complete);
    (data, trace.rows())
}

#[test]
fn slob_01_selects_read_work_unit_blocks_and_write_nothing() {
    let dir = prepared(2);
    let data = run(dir.path(), &uncached(&[]), &plan(2, 1, 50));
    assert_eq!(ops(&data, SELECT), 100);
    assert_eq!(counted(&data, counter_catalog::PHYSICAL_READS), 100 * 64);
    for stat in [
        counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES,
        counter_catalog::REDO_SIZE,
        counter_catalog::REDO_BYTES_WRITTEN,
        counter_catalog::USER_COMMITS,
        counter_catalog::DB_BLOCK_CHANGES,
    ] {
        assert_eq!(counted(&data, stat), 0, "{}", stat.name);
    }
}

#[test]
fn slob_02_updates_read_their_blocks_commit_each_and_dirty_no_others() {
    let dir = prepared(2);
    let plan = Plan { update_pct: 100, ..plan(2, 1, 50) };
    let data = run(dir.path(), &uncached(&[]), &plan);
    assert_eq!(ops(&data, UPDATE), 100);
    assert_eq!(ops(&data, SELECT), 0);
    assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 100);
    assert_eq!(data_blocks(&data, "Buffer Cache Reads"), 100 * 64);
    let written = data_blocks(&data, "DBWR");
    assert!(written > 0 && written <= 100 * 64, "{written}");
    check(dir.path(), &uncached(&[]));
}

#[test]
fn slob_06_blocks_per_select_are_work_unit() {
    let dir = prepared(1);
    for work_unit in [1, 3, 64, 255, 1024] {
        let plan = Plan { work_unit, ..plan(1, 1, 20) };
        let (data, rows) = traced(dir.path(), &uncached(&[]), &plan);
        let blocks = 20 * u64::from(work_unit);
        assert_eq!(counted(&data, counter_catalog::PHYSICAL_READS), blocks);
        assert_eq!(counted(&data, counter_catalog::CONSISTENT_GETS), blocks);
        assert_eq!(rows.len(), 20);
        for row in rows {
            let Op::Select { first_key, width, .. } = row.op else { panic!("{row:?}") };
            assert_eq!(width, work_unit);
            assert!(first_key >= 1 && first_key + u64::from(width) <= 2001);
            assert_eq!(row.rows, Some(u64::from(width)));
        }
    }
}

#[test]
fn slob_08_updates_have_their_own_work_unit() {
    let dir = prepared(1);
    let plan = Plan { update_pct: 50, work_unit: 255, update_work_unit: 8, ..plan(1, 1, 100) };
    let data = run(dir.path(), &uncached(&[]), &plan);
    assert_eq!(ops(&data, UPDATE), 50);
    assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 50 * 8);
    assert_eq!(data_blocks(&data, "Buffer Cache Reads"), 50 * 8 + 50 * 255);
}

#[test]
fn slob_14_the_hot_schema_gets_its_share_of_real_operations() {
    let dir = prepared(4);
    let plan = Plan { hot_schema_frequency: 4, work_unit: 4, ..plan(4, 1, 200) };
    let (data, rows) = traced(dir.path(), &uncached(&[]), &plan);
    for session in 1..=4 {
        let own = rows.iter().filter(|row| row.session == session);
        let hot = own.filter(|row| matches!(row.op, Op::Select { schema: 1, .. }));
        let expected = if session == 1 { 200 } else { 50 };
        assert_eq!(hot.count(), expected, "session {session}");
    }
    assert_eq!(counted(&data, counter_catalog::ROWS_VISITED), 800 * 4);
}

#[test]
fn slob_18_heavy_changes_2432_bytes_a_row_and_lite_256() {
    let dir = prepared(1);
    let redo = |redo_stress, bytes: u64| {
        let plan = Plan { update_pct: 100, redo_stress, ..plan(1, 1, 20) };
        let data = run(dir.path(), &uncached(&[]), &plan);
        let rows = counted(&data, counter_catalog::ROWS_CHANGED);
        assert_eq!(rows, 20 * 64);
        assert_eq!(counted(&data, counter_catalog::CHANGED_BYTES), rows * bytes);
        counted(&data, counter_catalog::REDO_SIZE)
    };
    let (lite, heavy) = (redo(RedoStress::Lite, 256), redo(RedoStress::Heavy, 2432));
    assert!(heavy > 5 * lite, "{heavy} against {lite}");
}

/// Column 2 of every block of schema 1, from the files.
fn second_columns(dir: &Path) -> Vec<Vec<u8>> {
    let control = ControlFile::read(dir).unwrap().unwrap();
    let map = control.geometry.map();
    (0..control.geometry.scale)
        .map(|slot| {
            let (file, offset) = map.locate(map.data_page(1, slot));
            let bytes = std::fs::read(dir.join(data_name(file))).unwrap();
            let block = &bytes[offset as usize..][..BLOCK_BYTES as usize];
            block[column_range(2)].to_vec()
        })
        .collect()
}

#[test]
fn slob_19_an_update_of_the_same_row_always_changes_it() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "0"), ("INDEX", "computed")]);
    prepare(dir.path(), &settings, 1);
    let mut seen = vec![second_columns(dir.path())];
    let mut redo = BTreeSet::new();
    for run_stamp in 1..=3 {
        let plan = Plan {
            update_pct: 100,
            scale: 1000,
            update_keys: 1000,
            work_unit: 1000,
            update_work_unit: 1000,
            run_stamp,
            ..plan(1, 1, 2)
        };
        let data = run(dir.path(), &settings, &plan);
        assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 2000);
        redo.insert(counted(&data, counter_catalog::REDO_SIZE));
        let now = second_columns(dir.path());
        for before in &seen {
            let same = before.iter().zip(&now).filter(|(a, b)| a == b).count();
            assert_eq!(same, 0, "blocks that did not change");
        }
        seen.push(now);
    }
    let (least, most) = (redo.first().unwrap(), redo.last().unwrap());
    assert!(most - least <= least / 20, "{redo:?}");
}

#[test]
fn slob_20_commits_are_updates_or_a_tenth_of_them() {
    let dir = prepared(2);
    for (commit_every, commits) in [(1, 200), (10, 20)] {
        let plan = Plan { update_pct: 100, update_work_unit: 4, commit_every, ..plan(2, 1, 100) };
        let data = run(dir.path(), &uncached(&[]), &plan);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), commits);
        assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 800);
        check(dir.path(), &uncached(&[]));
    }
}

/// Every block of schema 1: its rows, then its index.
fn blocks(dir: &Path) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let control = ControlFile::read(dir).unwrap().unwrap();
    let map = control.geometry.map();
    let block = |page| {
        let (file, offset) = map.locate(page);
        let file = std::fs::File::open(dir.join(data_name(file))).unwrap();
        let mut bytes = vec![0; BLOCK_BYTES as usize];
        file.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    };
    let rows = (0..control.geometry.scale).map(|slot| block(map.data_page(1, slot)));
    let nodes = (0..map.index.total_nodes).map(|node| block(map.index_page(1, node)));
    (rows.collect(), nodes.collect())
}

/// Names and sizes of the files, and of the control file only the name.
fn sizes(dir: &Path) -> BTreeSet<(String, u64)> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, entry.metadata().unwrap().len())
        })
        .collect()
}

#[test]
fn slob_21_rows_blocks_and_leaves_stay_as_they_are_through_ten_times_as_many_updates() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "16")]);
    prepare(dir.path(), &settings, 1);
    let (rows, index) = blocks(dir.path());
    let files = sizes(dir.path());
    let plan = Plan {
        update_pct: 100,
        scale: 1000,
        update_keys: 1000,
        work_unit: 1000,
        update_work_unit: 1000,
        redo_stress: RedoStress::Heavy,
        ..plan(1, 1, 10)
    };
    let data = run(dir.path(), &settings, &plan);
    assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 10_000);
    assert_eq!(sizes(dir.path()), files, "no file grew, shrank or came");
    let (rows_now, index_now) = blocks(dir.path());
    assert!(index_now == index, "the index is the same to the byte");
    for (slot, (before, now)) in rows.iter().zip(&rows_now).enumerate() {
        assert_ne!(before[row_range()], now[row_range()], "slot {slot} was updated");
        // The row fills exactly its columns: what lies behind them was never touched.
        let behind = row_range().end..;
        assert_eq!(before[behind.clone()], now[behind], "slot {slot}");
        for column in 2..=20 {
            let bytes = &now[column_range(column)];
            assert!(bytes.iter().all(u8::is_ascii_graphic), "slot {slot}: c{column} is not full");
        }
    }
    check(dir.path(), &settings);
}

#[test]
fn slob_43_updates_keep_obfuscated_payloads_apart() {
    let dir = directory();
    let given = [("SCALE", "1000"), ("CACHE_MB", "16"), ("OBFUSCATE_COLUMNS", "TRUE")];
    let settings = settings(&given);
    prepare(dir.path(), &settings, 1);
    let plan = Plan {
        update_pct: 100,
        scale: 1000,
        update_keys: 1000,
        work_unit: 1000,
        update_work_unit: 1000,
        obfuscate: true,
        redo_stress: RedoStress::Heavy,
        ..plan(1, 1, 1)
    };
    run(dir.path(), &settings, &plan);
    let (rows, _) = blocks(dir.path());
    let payload = |block: &Vec<u8>| {
        let columns = (2..=20).map(column_range);
        // The stamp that leads each column is the operation's, the same in all its rows.
        columns.flat_map(|c| block[c.start + 16..c.end].to_vec()).collect::<Vec<u8>>()
    };
    let different: BTreeSet<Vec<u8>> = rows.iter().map(payload).collect();
    assert_eq!(different.len(), 1000);
}

#[test]
fn slob_22_scans_read_the_scan_table_and_nothing_else() {
    let dir = prepared(2);
    let plan = Plan { scan_pct: 100, ..plan(2, 1, 50) };
    let data = run(dir.path(), &uncached(&[]), &plan);
    assert_eq!(ops(&data, SCAN), 100);
    assert_eq!(counted(&data, counter_catalog::PHYSICAL_READS), 1600);
    assert_eq!(counted(&data, counter_catalog::SCAN_BLOCKS), 1600);
    assert_eq!(counted(&data, counter_catalog::CONSISTENT_GETS), 1600);
}

#[test]
fn slob_28_sessions_with_a_schema_each_never_meet() {
    let dir = prepared(4);
    let plan = Plan { update_pct: 25, ..plan(4, 1, 100) };
    let settings = settings(&[("SCALE", "2000"), ("CACHE_MB", "64")]);
    let stats = run(dir.path(), &settings, &plan).drained.stats;
    for name in ["read by other session", "enq: TX - row lock contention"] {
        assert_eq!(waits(&stats, name), 0, "{name}");
    }
}

#[test]
fn slob_29_waits_for_shared_blocks_are_contention_and_no_io() {
    let dir = prepared(1);
    let plan = Plan { update_pct: 50, ..plan(1, 16, 100) };
    let settings = settings(&[("SCALE", "2000"), ("CACHE_MB", "64")]);
    let data = run(dir.path(), &settings, &plan);
    let events = &data.drained.stats.events;
    let contended: u64 = events
        .iter()
        .filter(|e| matches!(e.class, WaitClass::Application | WaitClass::Concurrency))
        .map(|event| event.waits.count())
        .sum();
    assert!(contended > 0);
    assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 800);
    // Not as I/O: the waits of I/O are its requests, and no block is read twice for being shared.
    let single = waits(&data.drained.stats, "db file sequential read");
    assert_eq!(single, counted(&data, counter_catalog::PHYSICAL_READ_REQUESTS));
    let rows = data.drained.stats.io.iter();
    let waited: u64 = rows.filter(|row| row.function == "Buffer Cache Reads").map(|row| row.waits).sum();
    assert_eq!(waited, single);
    let control = ControlFile::read(dir.path()).unwrap().unwrap();
    let blocks = control.geometry.scale + control.geometry.map().index.total_nodes;
    let undo = data.drained.stats.io.iter();
    let undo: u64 = undo
        .filter(|row| row.function == "Buffer Cache Reads" && row.file_type == "Undo File")
        .map(|row| row.read_bytes / BLOCK_BYTES)
        .sum();
    assert!(counted(&data, counter_catalog::PHYSICAL_READS_CACHE) - undo <= blocks);
    // A block another session is reading is waited for and read once.
    let shared = waits(&data.drained.stats, "read by other session");
    let found = counted(&data, counter_catalog::CACHE_SHARED_MISSES);
    assert!(found <= shared, "{found} of {shared}");
    check(dir.path(), &settings);
}

#[test]
fn slob_31_a_smaller_scale_touches_only_its_keys() {
    let dir = prepared(1);
    let plan = Plan { scale: 1000, update_keys: 1000, update_pct: 20, ..plan(1, 2, 100) };
    let (_, rows) = traced(dir.path(), &uncached(&[]), &plan);
    assert_eq!(rows.len(), 200);
    for row in rows {
        let (Op::Select { first_key, width, .. } | Op::Update { first_key, width, .. }) = row.op else {
            panic!("{row:?}")
        };
        assert!(first_key >= 1 && first_key + u64::from(width) <= 1001);
        assert_eq!(row.rows, Some(64));
    }
}

#[test]
fn slob_35_single_reads_one_block_at_a_time_and_batched_the_same_blocks_together() {
    let dir = prepared(1);
    let plan = plan(1, 1, 50);
    let single = run(dir.path(), &uncached(&[]), &plan);
    let given = [("READ_MODE", "batched"), ("IO_DEPTH", "16")];
    let batched = run(dir.path(), &uncached(&given), &plan);
    for data in [&single, &batched] {
        assert_eq!(counted(data, counter_catalog::PHYSICAL_READS), 50 * 64);
        assert_eq!(counted(data, counter_catalog::PHYSICAL_READ_REQUESTS), 50 * 64);
    }
    let waits_of = |data: &RunData, name| waits(&data.drained.stats, name);
    assert_eq!(waits_of(&single, "db file sequential read"), 50 * 64);
    assert_eq!(waits_of(&single, "db file parallel read"), 0);
    assert_eq!(waits_of(&batched, "db file parallel read"), 50 * 4);
    assert_eq!(waits_of(&batched, "db file sequential read"), 0);
}

#[test]
fn slob_36_hits_follow_the_size_of_the_cache() {
    let dir = prepared(1);
    let whole = settings(&[("SCALE", "2000"), ("CACHE_MB", "20"), ("INDEX", "computed")]);
    let passes = Plan { work_unit: 2000, ..plan(1, 1, 5) };
    let data = run(dir.path(), &whole, &passes);
    assert_eq!(counted(&data, counter_catalog::CONSISTENT_GETS), 5 * 2000);
    assert_eq!(counted(&data, counter_catalog::PHYSICAL_READS), 2000, "the first pass");
    // 1.5625 MiB are 200 blocks.
    let tenth = settings(&[("SCALE", "2000"), ("CACHE_MB", "1.5625"), ("INDEX", "computed")]);
    let uniform = Plan { work_unit: 8, ..plan(1, 2, 2500) };
    let data = run(dir.path(), &tenth, &uniform);
    let hits = counted(&data, counter_catalog::CACHE_HITS) as f64;
    let ratio = 100.0 * hits / counted(&data, counter_catalog::GETS_FROM_CACHE) as f64;
    assert!((8.5..=11.5).contains(&ratio), "{ratio} %");
}

#[test]
fn slob_37_logical_reads_are_physical_reads_and_hits() {
    let dir = prepared(1);
    let half = settings(&[("SCALE", "2000"), ("CACHE_MB", "8"), ("INDEX", "computed")]);
    let data = run(dir.path(), &half, &plan(1, 1, 200));
    let reads = counted(&data, counter_catalog::PHYSICAL_READS);
    let hits = counted(&data, counter_catalog::CACHE_HITS);
    assert!(reads > 0 && hits > 0);
    assert_eq!(counted(&data, counter_catalog::SESSION_LOGICAL_READS), reads + hits);
    assert_eq!(counted(&data, counter_catalog::SESSION_LOGICAL_READS), 200 * 64);
    assert_eq!(counted(&data, counter_catalog::EXECUTE_COUNT), 200);
    assert_eq!(counted(&data, counter_catalog::PHYSICAL_READ_BYTES), reads * BLOCK_BYTES);
}
