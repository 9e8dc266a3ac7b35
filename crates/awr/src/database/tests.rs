mod agreement;

use assay_measure::kind::{Finding, HeadlineLine};
use assay_measure::record::metric::find;
use assay_measure::record::{EventRow, Record, WaitClassRow};
use assay_measure::snapshot::SettingLine;

#[test]
fn a_run_has_its_primary_metrics_under_short_keys() {
    let record = crate::record::build(&assay_testkit::fixtures::run());
    let metrics = &record.metrics;
    let value = |key: &str| find(metrics, key).and_then(|metric| metric.value.value());
    assert_eq!(value("ops_per_s"), Some(100.0));
    assert_eq!(value("reads_per_s"), Some(6000.0));
    assert_eq!(value("read_us_avg"), Some(500.0));
    assert!(value("cpu_us_per_op").is_some());
    let primary: Vec<&str> =
        metrics.iter().filter(|metric| metric.is_primary).map(|metric| metric.key.as_str()).collect();
    assert_eq!(primary.len(), 10, "{primary:?}");
    let by_step = |key: &str| find(metrics, key).and_then(|metric| metric.series.as_deref());
    assert_eq!(by_step("ops_per_s"), Some("ops_count_per_s"));
    assert_eq!(by_step("read_us_p99"), Some("db_file_sequential_read_us_p99"));
    assert_eq!(by_step("redo_bytes_per_s"), None, "its steps are in MiB");
}

#[test]
fn every_key_of_a_record_is_unique() {
    let records = [
        crate::record::build(&assay_testkit::fixtures::run()),
        crate::record::build(&assay_testkit::fixtures::postgres(15)),
        crate::record::build(&assay_testkit::fixtures::postgres(18)),
    ];
    for record in &records {
        let metrics = &record.metrics;
        for metric in metrics {
            let same = metrics.iter().filter(|other| other.full_key() == metric.full_key());
            assert_eq!(same.count(), 1, "{}", metric.full_key());
        }
        assert!(!metrics.is_empty());
    }
}

#[test]
fn after_an_invalid_run_comes_the_check_of_its_data() {
    let mut record = crate::record::build(&assay_testkit::fixtures::run());
    let commands = |record: &Record| {
        let next = super::headline::of(record).next;
        next.into_iter().map(|next| next.command).collect::<Vec<String>>()
    };
    assert!(commands(&record)[0].starts_with("assay sweep"));
    record.run.verdict = "invalid".to_owned();
    assert!(commands(&record)[0].starts_with("assay check"));
    let settings = &mut record.plan.settings;
    settings.retain(|line| line.name != "TARGET");
    settings.push(SettingLine {
        name: "TARGET".to_owned(),
        value: "temp:mariadb".to_owned(),
        ..SettingLine::default()
    });
    assert_eq!(commands(&record), ["assay run --target temp:mariadb"]);
}

fn wait(name: &str, class: &str, db_time_pct: f64) -> EventRow {
    EventRow {
        name: name.to_owned(),
        class: class.to_owned(),
        actor: "foreground".to_owned(),
        db_time_pct: db_time_pct.into(),
        ..EventRow::default()
    }
}

/// Sessions that were on a CPU for so much of their time, %, and waited for the rest.
fn waiting(cpu_pct: f64, events: Vec<EventRow>) -> Record {
    let mut record = Record::default();
    record.interval.elapsed_s = 10.0.into();
    record.instance.time_model.db_time_us = 40e6.into();
    record.instance.time_model.db_cpu_us = (cpu_pct * 0.4e6).into();
    record.instance.events = events;
    record
}

fn told(line: &HeadlineLine) -> Vec<String> {
    line.told.iter().map(|told| format!("{} {}", told.value.value().unwrap(), told.unit)).collect()
}

#[test]
fn the_time_goes_to_the_cpu_and_the_three_dearest_waits() {
    let lock = wait("enq: TM - contention", "Application", 20.0);
    let small = wait("latch free", "Concurrency", 2.0);
    let least = super::time::line(&waiting(99.6, vec![wait("log file sync", "Commit", 0.5)]));
    assert_eq!(told(&least), ["100 % on a CPU or waiting for one"], "what is rounded away is not told as 0");
    let idle = wait("SQL*Net message from client", "Idle", 300.0);
    let log = wait("log file sync", "Commit", 60.0);
    let read = wait("db file sequential read", "User I/O", 5.06);
    let line = super::time::line(&waiting(13.0, vec![lock, idle, small, log.clone(), read]));
    let time = [
        "60 % log file sync",
        "20 % enq: TM - contention",
        "13 % on a CPU or waiting for one",
        "5 % db file sequential read",
    ];
    assert_eq!(told(&line), time, "the CPU has what the waits leave");
    let cached = super::time::line(&waiting(99.9, vec![]));
    assert_eq!(told(&cached), ["100 % on a CPU or waiting for one"]);
    let unnamed = super::time::line(&waiting(10.0, vec![log]));
    assert_eq!(told(&unnamed)[1], "30 % time without a name");
}

/// CPU used inside a wait counts in both, and a lock from before the window counts whole in it.
#[test]
fn no_time_is_spent_twice_and_what_limits_is_the_largest_share() {
    let lock = wait("enq: TX - row lock contention", "Application", 120.0);
    let log = wait("log file sync", "Commit", 30.0);
    let record = waiting(50.0, vec![lock, log.clone()]);
    assert_eq!(told(&super::time::line(&record)), ["100 % enq: TX - row lock contention"]);
    let halves = ["a", "b", "c"].map(|name| wait(name, "Other", 28.5)).to_vec();
    let shares = [29.0, 29.0, 29.0, 13.0];
    assert_eq!(
        super::time::line(&waiting(14.5, halves)).told.iter().map(|told| told.value.value()).collect::<Vec<_>>(),
        shares.map(Some)
    );
    let record = waiting(55.0, vec![wait("db file sequential read", "User I/O", 60.0)]);
    assert_eq!(told(&super::time::line(&record))[1], "40 % on a CPU or waiting for one");
    // Two waits of one sort are more than the CPU: the sum is told where the sort is the limit.
    let record = waiting(38.0, vec![log, wait("log buffer space", "Configuration", 30.0)]);
    let limit = super::limit::of(&record);
    assert!(limit.evidence.starts_with("60 % of the sessions' time is waiting for the log. Of it, log"), "{limit:?}");
}

#[test]
fn the_waits_of_a_class_that_an_import_does_not_print_are_told_as_its_others() {
    let mut record = waiting(20.0, vec![wait("log file sync", "Commit", 10.0)]);
    record.import = Some(Default::default());
    let class = WaitClassRow { class: "Commit".to_owned(), db_time_pct: 60.0.into(), ..WaitClassRow::default() };
    let cpu = WaitClassRow { class: "DB CPU".to_owned(), ..class.clone() };
    record.instance.wait_classes = vec![class, cpu];
    let all = told(&super::time::line(&record));
    assert_eq!(all[..2], ["50 % other waits of the class Commit", "20 % on a CPU"]);
    record.instance.wait_classes.clear();
    record.instance.events.clear();
    assert!(told(&super::time::line(&record)).is_empty(), "an import without a wait");
}

fn reading(engine_bytes: u64, device_bytes: u64) -> Record {
    let mut record = Record::default();
    record.checks.engine_read_bytes = engine_bytes.into();
    record.checks.device_read_bytes = device_bytes.into();
    record.checks.process_read_bytes = (2 * device_bytes).into();
    record
}

#[test]
fn reads_say_what_of_them_came_from_a_device() {
    let source = |engine, device| told(&super::headline::source_of_reads(&reading(engine, device)));
    const GB: u64 = 1_000_000_000;
    assert_eq!(source(GB, 0), ["0 % of the bytes read came from a device, the others from the page cache"]);
    assert_eq!(source(GB, GB / 4), ["25 % of the bytes read came from a device, the others from the page cache"]);
    assert_eq!(source(GB, 2 * GB), ["100 % of the bytes read came from a device"]);
    assert!(source(1000, 0).is_empty(), "next to nothing was read");
    assert!(source(0, 0).is_empty());
    let side = |device| super::headline::from_devices(&reading(GB, GB), &reading(GB, device)).unwrap();
    assert_eq!((side(GB).finding, side(0).finding), (Finding::Same, Finding::Forbids));
    assert_eq!(side(0).candidate, "0 % (the others from the page cache)");
    assert_eq!(super::headline::from_devices(&reading(GB, GB), &Record::default()), None);
}
