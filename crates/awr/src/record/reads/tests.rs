//! A server that reads 6000 blocks of 8 KiB a second from the operating system, and what lies below it.

use crate::record::build;
use assay_measure::counter_catalog;
use assay_measure::facts;
use assay_measure::record::Record;
use assay_measure::snapshot::{Fact, Reading, RunData, SettingLine, Snapshot};
use assay_testkit::fixtures;

/// The frozen run as if a server had done it, whose processes fetched this share of the engine's bytes from devices,
/// and whose devices read that share, neighbours included.
fn server(process: Option<f64>, device: Option<f64>) -> RunData {
    let mut run = fixtures::run();
    let change = |snapshot: &mut Snapshot| {
        let engine = snapshot.stats.get(counter_catalog::PHYSICAL_READ_BYTES).unwrap_or(0);
        let share = |share: f64| (engine as f64 * share) as u64;
        let processes = match process {
            Some(process) => Reading::Count(share(process)),
            None => Reading::Na("denied: not the server's user".to_owned()),
        };
        snapshot.stats.put(counter_catalog::SERVER_DEVICE_READ_BYTES, processes, "proc");
        snapshot.stats.put(counter_catalog::SERVER_READ_CALL_BYTES, Reading::Count(engine), "proc");
        snapshot.stats.put(counter_catalog::SERVER_READ_CALLS, Reading::Count(engine / 8192), "proc");
        match device {
            Some(device) => snapshot.host.disks[0].read_bytes = share(device),
            None => snapshot.host.disks.clear(),
        }
    };
    [&mut run.gate, &mut run.begin, &mut run.end, &mut run.drained].into_iter().for_each(change);
    run.series.iter_mut().for_each(change);
    run.engine_facts.extend([
        facts::SERVER_HOST.fact("same host: our session is process 7"),
        facts::DEVICE_READS.fact("--evict continuous"),
    ]);
    run
}

fn evicted(mut run: RunData, mode: &str) -> Record {
    run.settings.push(SettingLine { name: "EVICT".to_owned(), value: mode.to_owned(), origin: "cli".to_owned() });
    run.engine_facts.push(Fact {
        name: "evict_pagecache".to_owned(),
        value: "100.0 % were in the page cache before, 0.0 % after".to_owned(),
    });
    build(&run)
}

fn advice<'a>(record: &'a Record, id: &str) -> Option<&'a str> {
    let found = record.advice.iter().find(|advice| advice.id == id);
    found.map(|advice| advice.text.as_str())
}

#[test]
fn an_engine_of_our_own_has_no_such_section() {
    let record = build(&fixtures::run());
    assert_eq!(record.instance.reads, None);
    assert!(!crate::testing::text(&record).contains("Where the Reads Came From"));
}

#[test]
fn the_page_cache_share_is_what_no_device_delivered() {
    // 6000 of 6700 gets a second are asked of the operating system, a quarter of them reach a device.
    let record = build(&server(Some(0.25), Some(0.25)));
    let reads = record.instance.reads.expect("a server");
    let value = |figure: &assay_measure::record::Figure| figure.value().expect("known");
    assert!((value(&reads.page_cache_pct) - 75.0).abs() < 1e-6);
    assert!((value(&reads.engine_blocks_per_s) - 6000.0).abs() < 1e-6);
    assert!((value(&reads.true_blocks_per_s) - 1500.0).abs() < 1e-3);
    assert!((value(&reads.true_hit_pct) - 100.0 * (1.0 - 1500.0 / 6700.0)).abs() < 1e-3);
    assert!(value(&reads.true_hit_pct) > value(&reads.buffer_hit_pct));
}

#[test]
fn advice_r13_counts_a_neighbours_reads_for_nobody_and_names_the_way_out() {
    let record = build(&server(Some(0.1), Some(3.0)));
    let reads = record.instance.reads.as_ref().expect("a server");
    assert_eq!(reads.basis, "server processes");
    assert!((reads.page_cache_pct.value().expect("known") - 90.0).abs() < 1e-6);
    let said = advice(&record, "R13").expect("a tenth is less than half");
    let way = "For a test of storage: --evict continuous, or data several times larger";
    assert!(said.contains(way), "{said}");
    assert!(said.contains("the server's processes") && !said.contains("IO_MODE"), "{said}");
    assert!(record.doubts().any(|(rule, _)| rule == "R13"), "{:?}", record.advice);
}

#[test]
fn advice_r13_says_that_what_was_asked_did_not_help() {
    let record = evicted(server(Some(0.1), None), "pagecache");
    let said = advice(&record, "R13").expect("a tenth is less than half");
    assert!(said.contains("EVICT=pagecache did not keep the page cache out"), "{said}");
    let text = crate::testing::text(&record);
    assert!(text.contains("EVICT requested: pagecache"), "{text}");
    assert!(text.contains("pagecache: 100.0 % were in the page cache before"), "{text}");
    assert!(text.contains("devices: all reads, from all processes: n/a (no device known)"), "{text}");
}

#[test]
fn advice_r13_is_silent_where_the_reads_are_physical() {
    let record = evicted(server(Some(1.02), Some(1.05)), "direct");
    assert_eq!(advice(&record, "R13"), None);
    let reads = record.instance.reads.expect("a server");
    assert_eq!(reads.page_cache_pct.value(), Some(0.0));
    assert_eq!(reads.true_blocks_per_s.value(), reads.engine_blocks_per_s.value());
}

#[test]
fn what_nobody_may_see_is_said_and_not_zero() {
    let record = build(&server(None, None));
    let reads = record.instance.reads.as_ref().expect("a server");
    assert_eq!(reads.page_cache_pct.reason(), Some("denied: not the server's user"));
    assert!(record.advice_unjudged.iter().any(|text| text.starts_with("R13 ")));
    let text = crate::testing::text(&record);
    let line = text.lines().find(|line| line.starts_with("Blocks read/s delivered by a device"));
    assert!(line.is_some_and(|line| line.contains("n/a (denied")), "{line:?}");
}

#[test]
fn the_devices_judge_where_the_processes_cannot_be_seen() {
    let record = build(&server(None, Some(0.4)));
    let reads = record.instance.reads.expect("a server");
    assert_eq!(reads.basis, "devices");
    assert!((reads.page_cache_pct.value().expect("known") - 60.0).abs() < 1e-6);
}
