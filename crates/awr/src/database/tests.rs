use assay_measure::record::Record;
use assay_measure::record::metric::find;
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
