//! For every rule a record on which it just fires, and one beside it on which it just does not.

use super::*;
use assay_measure::record::{LoadRow, ServerInfo};

/// A rule, and its record: `true` for the one it fires on.
type Case = (&'static str, fn(bool) -> Record);

const CASES: &[Case] = &[
    ("R1", |fires| on_cpu(if fires { 0.81 } else { 0.79 })),
    ("R2", |fires| {
        let mut record = with_cpu("busy", 95.0);
        record.instance.time_model.run_queue_us =
            record.instance.time_model.db_time_us.scaled(if fires { 0.051 } else { 0.05 });
        record
    }),
    ("R3", |fires| with_cpu("busy", if fires { 79.9 } else { 80.0 })),
    ("R4", |fires| waiting_pct("free buffer waits", WaitClass::Configuration, if fires { 10.1 } else { 9.9 })),
    ("R5", |fires| {
        let mut record = waiting("free buffer waits", WaitClass::Configuration, 10_000, 80);
        let waits = record.instance.events.iter_mut().find(|event| event.name == "free buffer waits").unwrap();
        waits.count = Figure::Count(if fires { 100 } else { 101 });
        record
    }),
    ("R6", |fires| waiting_pct("log file sync", WaitClass::Commit, if fires { 15.1 } else { 14.9 })),
    ("R7", |fires| {
        let mut record = record();
        record.interval.elapsed_s = 1800.0.into();
        total(&mut record, "redo_log_switches_count", if fires { 3.0 } else { 2.0 });
        record
    }),
    ("R8", |fires| {
        let mut record = record();
        let reads = record.instance.events.iter_mut().find(|event| event.name == "db file sequential read");
        reads.unwrap().hist_us = vec![0, 10_000, 0, if fires { 103 } else { 99 }, 0];
        record
    }),
    // The frozen run reads 6000 a second.
    ("R12", |fires| {
        let mut record = record();
        let cap = if fires { "6180 by blkio" } else { "6190 by blkio" };
        record.host.facts.push(Fact { name: "io_cap_vda_read_iops".to_owned(), value: cap.to_owned() });
        record
    }),
    ("R13", |fires| {
        let mut record = record();
        record.checks.device_read_bytes = record.checks.engine_read_bytes.scaled(if fires { 0.49 } else { 0.51 });
        record
    }),
    ("R14", |fires| waiting("db file sequential read", WaitClass::UserIo, if fires { 60_000 } else { 40_000 }, 1)),
    ("R15", |fires| {
        let mut record = record();
        record.checks.steadiness.variation_ratio = if fires { 0.31 } else { 0.3 }.into();
        record
    }),
    ("R16", |fires| {
        let mut record = waiting("db file parallel read", WaitClass::UserIo, 1000, 4000);
        let reads = record.instance.stats["physical_reads_blocks"].total.value().unwrap();
        total(&mut record, "physical_reads_cache_prefetch_blocks", if fires { 0.21 } else { 0.19 } * reads);
        record
    }),
    ("R17", |fires| waiting_pct("buffer busy waits", WaitClass::Concurrency, if fires { 5.1 } else { 4.9 })),
    ("R18", |fires| {
        let mut record = record();
        record.checks.hit_measured_pct = if fires { 20.1 } else { 20.0 }.into();
        record
    }),
    ("R19", |fires| {
        let mut record = record();
        total(&mut record, "physical_writes_blocks", 2000.0);
        total(&mut record, "physical_writes_non_checkpoint_blocks", if fires { 1199.0 } else { 1200.0 });
        record
    }),
    ("R20", |fires| {
        let mut record = record();
        let rows = record.instance.stats["table_rows_changed_count"].total.value().unwrap();
        total(&mut record, "redo_size_bytes", if fires { 749.0 } else { 750.0 } * rows);
        total(&mut record, "db_block_changes_count", 2.1 * rows);
        record
    }),
    ("R21", |fires| {
        let mut record = with_cpu("steal", if fires { 1.0 } else { 0.9 });
        let idle = record.os.cpu_pct["idle"].value().unwrap();
        cpu(&mut record, "idle", idle - if fires { 1.0 } else { 0.9 });
        record
    }),
    ("R22", |fires| layers(1000.0, Some(if fires { 500.0 } else { 501.0 }))),
    ("R23", |fires| {
        let disk = if fires { 75.0 } else { 75.1 };
        imported(&[("redo_transport_us_avg", 100.0), ("redo_transport_disk_write_us_avg", disk)])
    }),
    ("R25", |fires| {
        let mut record = record();
        record.interval.worker_active_fraction = if fires { 0.989 } else { 0.99 }.into();
        record
    }),
    ("R26", |fires| {
        let mut record = record();
        let median = record.driver.session_spread.median_count.clone();
        record.driver.session_spread.min_count = median.scaled(if fires { 0.69 } else { 0.7 });
        record
    }),
    ("R27", |fires| {
        let mut record = record();
        let rows = record.instance.stats["table_rows_changed_count"].total.value().unwrap();
        record.checks.engine_write_bytes = (rows * 256.0 * if fires { 20.0 } else { 19.9 }).into();
        record
    }),
    ("R30", |fires| {
        let mut record = record();
        let first = record.integrity.iter_mut().find(|identity| identity.exact).unwrap();
        if fires {
            (first.ok, first.lhs, first.rhs) = (Truth::Violated, 5.0.into(), 7.0.into());
        }
        record
    }),
    ("R31", |fires| {
        let mut record = record();
        record.driver.errors_whole_run_count = u64::from(fires);
        record
    }),
    ("R32", |fires| {
        let mut record = record();
        record.checks.hit_expected_pct = 10.0.into();
        record.checks.hit_measured_pct = if fires { 13.1 } else { 13.0 }.into();
        record
    }),
    ("R33", |fires| {
        let mut record = record();
        record.checks.little_expected_sessions = 100.0.into();
        record.checks.little_sessions = if fires { 94.9 } else { 95.0 }.into();
        record
    }),
    ("R34", |fires| {
        let mut record = with_cpu("busy", 90.0);
        let driver_of_host_pct = if fires { 20.0 } else { 19.9 }.into();
        record.instance.server = Some(ServerInfo { driver_of_host_pct, ..ServerInfo::default() });
        record
    }),
    ("R35", |fires| {
        let mut record = with_cpu("busy", 99.0);
        let all = record.driver.threads_count as f64 * record.interval.elapsed_s.value().unwrap();
        record.driver.thread_run_delay_s = (all * if fires { 0.051 } else { 0.049 }).into();
        record
    }),
    ("R36", |fires| {
        let mut record = record();
        record.driver.thread_cpu_pct = if fires { 95.0 } else { 94.9 }.into();
        record
    }),
    ("R37", |fires| {
        let mut record = record();
        record.driver.floor_pct = if fires { 20.0 } else { 19.9 }.into();
        record
    }),
    ("R38", |fires| {
        let mut record = record();
        let process = &record.checks.process_read_bytes;
        record.checks.device_read_bytes = process.scaled(if fires { 1.21 } else { 1.19 });
        record
    }),
    ("R39", |fires| {
        let mut record = record();
        record.os.vmstat_count.insert("pswpin".to_owned(), Figure::Count(u64::from(fires)));
        record
    }),
    ("R40", |fires| {
        let mut record = record();
        record.checks.steadiness.change_points_s = if fires { vec![12.0] } else { Vec::new() };
        record
    }),
    ("R41", |fires| assay_testkit::rules::capped("ops_count_per_s", fires)),
    ("R43", |fires| transactions(50.0, if fires { 50.1 } else { 50.0 })),
];

/// The frozen run with so many thousand commits and rollbacks.
fn transactions(commits: f64, rollbacks: f64) -> Record {
    let mut record = record();
    for (key, count) in [("user_commits_count", commits), ("user_rollbacks_count", rollbacks)] {
        record.instance.stats.entry(key.to_owned()).or_default().total = (count * 1e3).into();
    }
    record
}

#[test]
fn advice_r43_needs_counters_and_some_transactions_and_tells_what_was_undone() {
    assert!(lacks(&Record::default(), "R43"));
    assert!(lacks(&transactions(0.01, 0.08), "R43"), "90 transactions");
    let mut all = transactions(0.05, 0.95);
    all.instance.stats.entry("transaction_rollbacks_count".to_owned()).or_default().total = 12.0.into();
    let said = fires(&all, "R43");
    assert_eq!(said.severity, "high");
    assert!(
        said.text.starts_with("95.0 % of the transactions were rollbacks (950 of 1,000). 12 of them undid"),
        "{}",
        said.text
    );
    // A load profile has no commits, but transactions.
    let mut profile = Record::default();
    for (name, total) in [("Transactions", 1000.0), ("Rollbacks", 600.0)] {
        let row = LoadRow { name: name.to_owned(), total: total.into(), ..LoadRow::default() };
        profile.instance.load_profile.push(row);
    }
    assert_eq!(fires(&profile, "R43").severity, "note");
}

fn with_cpu(name: &str, pct: f64) -> Record {
    let mut record = record();
    cpu(&mut record, name, pct);
    record
}

/// The frozen run with such a part of its DB time on a CPU.
fn on_cpu(part: f64) -> Record {
    let mut record = record();
    let model = &mut record.instance.time_model;
    model.run_queue_us = Figure::Count(0);
    model.on_thread_us = model.db_time_us.scaled(part);
    record
}

/// The frozen run with a wait that takes such a part of its DB time, %.
fn waiting_pct(name: &str, class: WaitClass, pct: f64) -> Record {
    let mut record = waiting(name, class, 10_000, 1600);
    let event = record.instance.events.iter_mut().find(|event| event.name == name);
    event.unwrap().db_time_pct = pct.into();
    record
}

#[test]
fn every_rule_fires_on_its_record_and_not_on_the_one_just_beside_it() {
    let ids: Vec<&str> = RULES.iter().map(|(rule, _)| rule.id).collect();
    let cases: Vec<&str> = CASES.iter().map(|(id, _)| *id).collect();
    assert_eq!(cases, ids, "each rule needs a case here");
    for (id, case) in CASES {
        fires(&case(true), id);
        let silent = case(false);
        assert_eq!(says(&silent, id), None, "{id} fires below its threshold");
    }
}

#[test]
fn every_rule_says_all_its_headings_in_sentences() {
    for rule in rules() {
        for (heading, text) in rule.headings() {
            assert!(text.ends_with('.') && !text.ends_with(".."), "{} {heading}: {text}", rule.id);
            assert!(!text.contains(['{', '}']), "{} {heading}: {text}", rule.id);
        }
    }
}
