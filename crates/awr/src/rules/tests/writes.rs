//! Writers, checkpoints and what they write: each rule fires and is silent.

use super::*;

#[test]
fn advice_r04_fires_and_names_blocked_submission_and_starved_writers() {
    let mut record = waiting("free buffer waits", WaitClass::Configuration, 10_000, 1600);
    assert_eq!(fires(&record, "R4").severity, "high");
    cpu(&mut record, "busy", 96.0);
    record.instance.events.push(EventRow {
        name: "db file async I/O submit".to_owned(),
        actor: "background".to_owned(),
        total_us: record.instance.time_model.bg_elapsed_us.scaled(0.6),
        ..EventRow::default()
    });
    let said = fires(&record, "R4");
    assert!(said.text.contains("lack CPU") && said.text.contains("submission blocks"), "{}", said.text);
}

#[test]
fn advice_r04_is_silent_below_a_tenth_of_db_time() {
    is_silent(&waiting("free buffer waits", WaitClass::Configuration, 10_000, 100), "R4");
}

#[test]
fn advice_r05_fires_on_the_timer_s_bucket() {
    fires(&waiting("free buffer waits", WaitClass::Configuration, 10_000, 1600), "R5");
}

#[test]
fn advice_r05_is_silent_on_other_durations() {
    is_silent(&waiting("free buffer waits", WaitClass::Configuration, 3_000, 4000), "R5");
}

#[test]
fn advice_r19_fires_when_checkpoints_drive_the_writes() {
    let mut run = fixtures::run();
    let name = counter_catalog::PHYSICAL_WRITES_NON_CHECKPOINT.name.to_owned();
    run.end.stats.counters.insert(name, Reading::Count(3000));
    fires(&build(&run), "R19");
}

#[test]
fn no_advice_on_logs_and_checkpoints_where_sessions_only_read() {
    let mut run = fixtures::run();
    let name = counter_catalog::PHYSICAL_WRITES_NON_CHECKPOINT.name.to_owned();
    run.end.stats.counters.insert(name, Reading::Count(3000));
    let mut record = build(&run);
    for row in &mut record.instance.layers {
        row.is_batched = row.request != "log write";
        row.device.latency.us_avg = Figure::decimal(1.0);
        row.engine.count = Figure::Count(1000);
    }
    for id in ["R19", "R22"] {
        assert!(says(&record, id).is_some(), "{id}");
    }
    record.driver.ops.retain(|op| op.kind != "update");
    for id in ["R7", "R19", "R22"] {
        assert_eq!(says(&record, id), None, "{id}");
    }
}

#[test]
fn advice_r19_is_silent_when_they_do_not() {
    is_silent(&record(), "R19");
}

#[test]
fn advice_r27_fires_from_twenty_bytes_for_one() {
    let mut record = record();
    // 12,800 rows of two columns of 128 bytes.
    record.checks.engine_write_bytes = Figure::Count(12_800 * 256 * 30);
    record.checks.device_write_bytes = Figure::Count(12_800 * 256 * 50);
    let said = fires(&record, "R27");
    assert_eq!(said.evidence["engine_bytes_per_changed_byte"], Figure::Decimal(30.0));
    assert!(said.text.contains("the engine wrote 30.0 bytes"), "{}", said.text);
    assert_eq!(said.severity, "note");
}

#[test]
fn advice_r27_does_not_blame_the_run_for_what_others_wrote() {
    let mut record = record();
    record.checks.engine_write_bytes = Figure::Count(12_800 * 256 * 10);
    record.checks.device_write_bytes = Figure::Count(12_800 * 256 * 90);
    is_silent(&record, "R27");
    record.checks.engine_write_bytes = Figure::na("not counted");
    assert!(fires(&record, "R27").text.contains("the devices wrote 90.0 bytes"));
}

#[test]
fn advice_r27_is_silent_on_large_changes_and_without_any() {
    let mut heavy = record();
    heavy.checks.engine_write_bytes = Figure::Count(12_800 * 256 * 30);
    set(&mut heavy, "REDO_STRESS", "HEAVY");
    is_silent(&heavy, "R27");
    let mut none = record();
    total(&mut none, "table_rows_changed_count", 0.0);
    is_silent(&none, "R27");
}
