//! Several runs at once: each rule fires and is silent.

use super::*;
use assay_awr::record::build;
use assay_measure::histogram::Histogram;
use assay_measure::record::{Advice, Part, Record};
use assay_measure::snapshot::SettingLine;
use assay_storage::record::info::{StorageGroup, StorageInfo, StorageWay};
use assay_testkit::fixtures;

/// The record of the frozen run.
fn record() -> Record {
    build(&fixtures::run())
}

/// A run of so many sessions with reads of this rate and latency.
fn loaded(sessions: u64, reads_per_s: f64, read_us: f64, busy_pct: f64, cpus: u64) -> Record {
    let mut record = record();
    record.run.sessions = sessions;
    record.interval.ops_count = (reads_per_s * 20.0).into();
    for op in &mut record.driver.ops {
        op.response.hist_ns = Histogram::new();
        op.response.hist_ns.record_n((read_us * 1000.0) as u64, 10_000);
    }
    let row = record.instance.load_profile.iter_mut().find(|row| row.name == "Read IO requests").unwrap();
    row.per_s = reads_per_s.into();
    record.os.cpu_pct.insert("busy".to_owned(), busy_pct.into());
    record.os.cpus_count = cpus.into();
    let elapsed_s = record.interval.elapsed_s.value().unwrap();
    record.os.process.cpu_s = (busy_pct / 100.0 * elapsed_s * cpus as f64).into();
    record
}

fn over(records: &[Record], id: &str) -> Option<Advice> {
    let records: Vec<&Record> = records.iter().collect();
    several(&records).into_iter().find(|advice| advice.id == id)
}

#[test]
fn advice_r09_over_runs_says_where_throughput_stopped_to_rise() {
    // Published: 256 to 512 sessions, 320,400 to 311,788 reads/s, 16 to 32 ms; here the CPUs have room.
    let runs = |busy| [loaded(256, 320_400.0, 16_000.0, busy, 16), loaded(512, 311_788.0, 32_000.0, busy, 16)];
    let said = over(&runs(60.0), "R9").unwrap();
    assert!(said.text.contains("from 256 sessions to 512 sessions throughput stayed within 5 %"), "{}", said.text);
    assert_eq!(over(&runs(60.0), "R10"), None);
    let gain = [loaded(256, 100_000.0, 2560.0, 60.0, 16), loaded(512, 190_000.0, 2700.0, 60.0, 16)];
    assert_eq!(over(&gain, "R9"), None);
}

#[test]
fn advice_r10_over_runs_leaves_open_what_busy_cpus_leave_open() {
    let runs = [loaded(256, 320_400.0, 16_000.0, 99.7, 16), loaded(512, 311_788.0, 32_000.0, 99.7, 16)];
    let said = over(&runs, "R10").unwrap();
    assert!(said.text.contains("the limit is ambiguous: storage or CPU"), "{}", said.text);
    assert_eq!(over(&runs, "R9"), None);
    // Added CPUs that brought nothing.
    let cpus = [loaded(256, 318_000.0, 800.0, 98.0, 8), loaded(256, 320_400.0, 800.0, 99.0, 16)];
    let said = over(&cpus, "R10").unwrap();
    assert!(said.text.contains("at their best, 8 and 16 CPUs"), "{}", said.text);
    let room = [loaded(256, 318_000.0, 800.0, 50.0, 8), loaded(256, 320_400.0, 800.0, 50.0, 16)];
    assert_eq!(over(&room, "R10"), None);
}

#[test]
fn advice_r09_does_not_compare_runs_of_different_settings() {
    let mut runs = [loaded(256, 320_400.0, 16_000.0, 60.0, 16), loaded(512, 311_788.0, 32_000.0, 60.0, 16)];
    runs[1].plan.settings.iter_mut().find(|line| line.name == "UPDATE_PCT").unwrap().value = "30".to_owned();
    assert_eq!(over(&runs, "R9"), None);
}

fn sized(kib: f64, ios_per_s: f64) -> Record {
    let way = StorageWay {
        way: "read".to_owned(),
        ios_per_s: ios_per_s.into(),
        mb_per_s: (kib * 1024.0 * ios_per_s / 1e6).into(),
        ..StorageWay::default()
    };
    let mut record = Record { kind: StorageInfo::NAME.to_owned(), ..Record::default() };
    record.parts.put(&StorageInfo {
        groups: vec![StorageGroup { ways: vec![way], ..StorageGroup::default() }],
        ..StorageInfo::default()
    });
    record
}

#[test]
fn advice_r11_two_limits_show_over_block_sizes() {
    // Published: 14.5k, 14.5k and 7.2k IOPS; 56, 113 and 113 MiB/s.
    let records = [sized(4.0, 14_500.0), sized(16.0, 7_200.0), sized(8.0, 14_500.0)];
    let said = over(&records, "R11").unwrap();
    assert!(said.text.contains("14,500 per second at both 4 KiB and 8 KiB"), "{}", said.text);
    assert!(said.text.contains("113 MiB/s at both 8 KiB and 16 KiB"), "{}", said.text);
    let device = [sized(4.0, 20_000.0), sized(8.0, 14_500.0), sized(16.0, 8_000.0)];
    assert_eq!(over(&device, "R11"), None);
    let mut one = sized(4.0, 14_500.0);
    let groups = [sized(8.0, 14_500.0), sized(16.0, 7_200.0)];
    let part = |record: &Record| record.parts.get::<StorageInfo>().unwrap();
    let mut all = part(&one);
    all.groups.extend(groups.iter().flat_map(|record| part(record).groups));
    one.parts.put(&all);
    one.advice = several(&[&one]);
    assert_eq!(one.advice[0].id, "R11");
    assert_eq!(over(&[one], "R11"), None, "said once");
}

#[test]
fn advice_r24_forbids_faster_where_settings_differ() {
    let mut runs = [record(), record()];
    assert_eq!(over(&runs, "R24"), None);
    for (run, mode) in runs.iter_mut().zip(["single", "batched"]) {
        run.plan.settings.push(SettingLine {
            name: "READ_MODE".to_owned(),
            value: mode.to_owned(),
            origin: "cli".to_owned(),
        });
    }
    let said = over(&runs, "R24").unwrap();
    assert!(said.text.contains("prefetch (READ_MODE): single, batched"), "{}", said.text);
    assert!(said.text.contains("cannot show that one is faster"));
}

#[test]
fn advice_r24_looks_at_runs_and_imports_of_other_kinds_alike() {
    let mut runs = [record(), record()];
    runs[1].kind = "instance".to_owned();
    for (run, mode) in runs.iter_mut().zip(["single", "batched"]) {
        run.plan.settings.push(SettingLine {
            name: "READ_MODE".to_owned(),
            value: mode.to_owned(),
            origin: "cli".to_owned(),
        });
    }
    let records: Vec<&Record> = runs.iter().collect();
    let said = several(&records);
    let r24 = said.iter().filter(|advice| advice.id == "R24");
    assert_eq!(r24.count(), 1, "{said:?}");
}
