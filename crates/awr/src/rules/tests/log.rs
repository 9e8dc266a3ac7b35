//! The log: each rule fires and is silent.

use super::*;

#[test]
fn advice_r06_fires_with_the_log_s_figures() {
    let said = fires(&waiting("log buffer space", WaitClass::Configuration, 20_000, 1000), "R6");
    assert!(said.text.contains("53,248 bytes per write, 1.00 commits per write."), "{}", said.text);
}

#[test]
fn advice_r06_is_silent_while_the_log_keeps_up() {
    is_silent(&record(), "R6");
}

#[test]
fn advice_r07_fires_on_a_rate_and_on_an_incomplete_checkpoint() {
    let mut run = fixtures::run();
    add(&mut run, counter_catalog::REDO_LOG_SWITCHES, 2);
    let mut long = build(&run);
    assert!(lacks(&long, "R7"), "20 s are no rate");
    long.interval.elapsed_s = 900.0.into();
    let said = fires(&long, "R7");
    assert_eq!(said.severity, "high", "8 an hour");
    let name = "log file switch (checkpoint incomplete)";
    let once = waiting(name, WaitClass::Configuration, 1000, 1);
    assert_eq!(fires(&once, "R7").severity, "note");
}

#[test]
fn advice_r07_is_silent_on_a_single_switch() {
    let mut run = fixtures::run();
    add(&mut run, counter_catalog::REDO_LOG_SWITCHES, 1);
    is_silent(&build(&run), "R7");
}

#[test]
fn advice_r20_fires_on_too_little_redo_or_too_many_changes() {
    let mut record = record();
    total(&mut record, "redo_size_bytes", 12_800.0 * 700.0);
    assert_eq!(fires(&record, "R20").severity, "note");
    total(&mut record, "redo_size_bytes", 12_800.0 * 300.0);
    assert_eq!(fires(&record, "R20").severity, "high");
    total(&mut record, "redo_size_bytes", 12_800.0 * 812.0);
    total(&mut record, "db_block_changes_count", 12_800.0 * 2.5);
    fires(&record, "R20");
}

#[test]
fn advice_r20_is_silent_on_a_standard_update_on_heavy_and_on_few_rows() {
    is_silent(&record(), "R20");
    let mut heavy = record();
    total(&mut heavy, "redo_size_bytes", 12_800.0 * 5300.0);
    set(&mut heavy, "REDO_STRESS", "HEAVY");
    is_silent(&heavy, "R20");
    let mut few = record();
    total(&mut few, "redo_size_bytes", 12_800.0 * 2000.0);
    few.driver.ops = vec![OpRow { kind: "update".to_owned(), count: 12_800, rows_count: 12_800, ..OpRow::default() }];
    is_silent(&few, "R20");
}

#[test]
fn advice_r07_rates_per_hour_need_a_quarter_of_an_hour() {
    let mut record = record();
    let mut switches = |seconds: f64, count: f64| {
        record.interval.elapsed_s = seconds.into();
        record.instance.stats.get_mut("redo_log_switches_count").unwrap().total = count.into();
        record.clone()
    };
    assert!(lacks(&switches(899.0, 8.0), "R7"));
    let said = fires(&switches(900.0, 8.0), "R7");
    assert!(said.text.contains("8 switches (32 per hour)"), "{}", said.text);
    is_silent(&switches(3600.0, 4.0), "R7");
}
