//! Where the time goes: each rule fires and is silent.

use super::*;

#[test]
fn advice_r01_fires_when_execution_and_run_queue_are_most_of_db_time() {
    let mut run = fixtures::run();
    add(&mut run, counter_catalog::RUN_QUEUE_TIME, 60_000_000_000);
    fires(&build(&run), "R1");
}

#[test]
fn advice_r01_is_silent_on_a_run_that_waits() {
    is_silent(&record(), "R1");
}

#[test]
fn advice_r03_fires_with_mean_p99_and_little() {
    let said = fires(&record(), "R3");
    for name in ["read_waits_pct", "busy_pct", "read_us_avg", "read_us_p99", "little_sessions"] {
        assert!(said.evidence.contains_key(name), "{name}");
    }
}

#[test]
fn advice_r03_is_silent_on_a_busy_host() {
    let mut record = record();
    cpu(&mut record, "busy", 85.0);
    is_silent(&record, "R3");
}

/// A pasted load profile has both per second and nothing else.
#[test]
fn advice_r1_reads_a_load_profile_that_stands_alone() {
    let profile = |db_time_s: f64, db_cpu_s: f64| {
        let row = |name: &str, value: f64| assay_measure::record::LoadRow {
            name: name.to_owned(),
            per_s: value.into(),
            ..Default::default()
        };
        Record {
            instance: Instance {
                load_profile: vec![row("DB Time(s)", db_time_s), row("DB CPU(s)", db_cpu_s)],
                ..Instance::default()
            },
            import: Some(assay_measure::record::ImportInfo::default()),
            ..Record::default()
        }
    };
    let said = fires(&profile(30.5, 29.0), "R1");
    assert!(said.text.contains("95.1 %"), "{}", said.text);
    assert!(said.text.contains("used by the sessions"), "{}", said.text);
    is_silent(&profile(42.9, 5.6), "R1");
    is_silent(&profile(0.0, 0.0), "R1");
    // One of the two is wrong.
    assert!(crate::rules::r01_cpu_bound::judge(&profile(10.3, 19.8)).is_err());
}

#[test]
fn advice_r17_fires_on_waits_for_each_other() {
    fires(&waiting("buffer busy waits", WaitClass::Concurrency, 1000, 8000), "R17");
}

#[test]
fn advice_r17_is_silent_below_a_twentieth() {
    is_silent(&record(), "R17");
}

#[test]
fn advice_r22_fires_when_the_device_took_less_than_half() {
    let said = fires(&layers(1000.0, Some(400.0)), "R22");
    assert_eq!(said.severity, "note");
    assert!(said.text.contains("1,000 us") && said.text.contains("900 us in the ring"), "{}", said.text);
    assert_eq!(fires(&layers(7400.0, Some(1080.0)), "R22").severity, "high");
}

/// Sessions beyond what the device's queue takes wait for the device, whoever holds their reads meanwhile.
#[test]
fn advice_r22_names_a_full_queue_of_the_device() {
    let mut record = layers(10_000.0, Some(2000.0));
    let elapsed_s = record.interval.elapsed_s.value().unwrap();
    let row = &mut record.instance.layers[0].syscall;
    row.latency.us_avg = Figure::Decimal(2400.0);
    // 230 in flight on average.
    row.count = Figure::Count((230.0 * elapsed_s / 0.0024) as u64);
    record.driver.threads_count = 1;
    let mut with_room = |room: &str| {
        record
            .plan
            .engine_facts
            .push(Fact { name: "reads_in_flight_per_thread_max".to_owned(), value: room.to_owned() });
        let said = fires(&record, "R22").text;
        record.plan.engine_facts.pop();
        said
    };
    let full = with_room("240");
    assert!(full.contains("accepts 240 reads"), "{full}");
    assert!(!full.contains("above the device"), "{full}");
    assert!(with_room("1000").contains("above the device"));
}

#[test]
fn advice_r22_is_silent_when_the_device_takes_the_time_and_says_when_nobody_knows() {
    is_silent(&layers(1000.0, Some(600.0)), "R22");
    assert!(lacks(&layers(1000.0, None), "R22"));
}
