//! Whether the numbers describe one state of one thing: each rule fires and is silent.

use super::*;

#[test]
fn advice_r15_fires_on_variation_and_on_a_fall() {
    let mut record = record();
    record.checks.steadiness.variation_ratio = Figure::Decimal(0.35);
    assert_eq!(fires(&record, "R15").severity, "note");
    record.checks.steadiness.variation_ratio = Figure::Decimal(0.1);
    record.checks.steadiness.last_over_first_ratio = Figure::Decimal(0.3);
    assert_eq!(fires(&record, "R15").severity, "high");
}

#[test]
fn advice_r15_is_silent_on_a_level_run() {
    is_silent(&record(), "R15");
}

#[test]
fn advice_r25_fires_on_idle_sessions_with_the_corrected_rate_and_on_a_slow_start() {
    let mut idle = record();
    idle.interval.worker_active_fraction = Figure::Decimal(0.8);
    let said = fires(&idle, "R25");
    assert_eq!(said.severity, "high");
    assert_eq!(said.evidence["corrected_ops_per_s"], Figure::Decimal(125.0));
    let mut slow = record();
    let inside = slow.series.in_window.iter().position(|inside| *inside).unwrap();
    slow.series.metrics.get_mut("ops_count_per_s").unwrap()[inside] = Figure::Decimal(70.0);
    let said = fires(&slow, "R25");
    assert!(said.text.ends_with("Lengthen WARMUP."), "{}", said.text);
    assert!(!said.text.contains("corrected"), "every session was active: {}", said.text);
}

#[test]
fn advice_r25_is_silent_on_a_run_that_is_busy_from_end_to_end() {
    is_silent(&record(), "R25");
}

#[test]
fn advice_r26_fires_on_a_starved_session() {
    let mut record = record();
    record.driver.session_spread.min_count = Figure::Count(380);
    assert_eq!(fires(&record, "R26").severity, "note");
    record.driver.session_spread.min_count = Figure::Count(100);
    assert_eq!(fires(&record, "R26").severity, "high");
}

#[test]
fn advice_r26_is_silent_on_equals() {
    is_silent(&record(), "R26");
}

#[test]
fn advice_r30_fires_on_a_violated_exact_identity() {
    let mut record = record();
    record.integrity.push(Identity {
        id: "I1".to_owned(),
        exact: true,
        ok: Truth::Violated,
        lhs: Figure::Count(5),
        rhs: Figure::Count(7),
        sentence: "5 against 7".to_owned(),
        ..Identity::default()
    });
    let said = fires(&record, "R30");
    assert_eq!(said.severity, "high");
    assert!(said.text.contains("I1: 5 against 7"), "{}", said.text);
}

#[test]
fn advice_r30_is_silent_when_the_numbers_agree() {
    is_silent(&record(), "R30");
}

#[test]
fn advice_r30_names_what_an_import_contradicts_itself_in() {
    let mut record = imported(&[]);
    let identity = |id: &str| Identity {
        id: id.to_owned(),
        ok: Truth::Violated,
        lhs: 75.1.into(),
        rhs: 100.0.into(),
        sentence: "75.1 is not 100".to_owned(),
        ..Identity::default()
    };
    record.integrity = vec![identity("I15")];
    assert_eq!(says(&record, "R30"), None);
    record.integrity.push(identity("I31"));
    let said = fires(&record, "R30");
    assert!(said.text.contains("an identity of printed figures is violated (I31)"), "{}", said.text);
}
