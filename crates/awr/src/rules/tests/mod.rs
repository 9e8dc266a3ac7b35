//! Every rule fires on a record that shows its case and is silent on others; the cases lie beside each other as the
//! rules do.

mod cases;
mod host;
mod log;
mod network;
mod reads;
mod steady;
mod time;
mod writes;

use super::*;
use crate::record::build;
use assay_measure::counter_catalog;
use assay_measure::histogram::Histogram;
use assay_measure::record::{Identity, Instance, LayerRow, OpRow, RequestLayers, Truth};
use assay_measure::snapshot::{Actor, EventReading, Fact, Reading, RunData, SettingLine, WaitClass, merge_rows};
use assay_testkit::fixtures;

fn ids(record: &Record) -> Vec<String> {
    advise(record).into_iter().map(|advice| advice.id).collect()
}

fn found(run: &RunData) -> Vec<String> {
    ids(&build(run))
}

/// The finding of a rule.
fn says(record: &Record, id: &str) -> Option<Advice> {
    advise(record).into_iter().find(|advice| advice.id == id)
}

fn fires(record: &Record, id: &str) -> Advice {
    let said = says(record, id);
    let said = said.unwrap_or_else(|| panic!("{id} is silent; {:?}", ids(record)));
    assert!(!said.evidence.is_empty(), "{id} has no evidence");
    let known = said.evidence.values().all(|figure| figure.value().is_some());
    assert!(known, "{id}: {:?}", said.evidence);
    said
}

fn is_silent(record: &Record, id: &str) {
    assert_eq!(says(record, id), None);
    let lacking = unjudged(record);
    let prefix = format!("{id} ");
    assert!(!lacking.iter().any(|text| text.starts_with(&prefix)), "{lacking:?}");
}

fn lacks(record: &Record, id: &str) -> bool {
    let prefix = format!("{id} ");
    says(record, id).is_none() && unjudged(record).iter().any(|text| text.starts_with(&prefix))
}

/// The record of the frozen run.
fn record() -> Record {
    build(&fixtures::run())
}

/// Adds waits that fall into the window.
fn wait(run: &mut RunData, name: &str, class: WaitClass, us: u64, n: u64) {
    let mut waits = Histogram::new();
    waits.record_n(us * 1000, n);
    let event = EventReading { name: name.to_owned(), class, actor: Actor::Foreground, timeouts: 0, waits };
    merge_rows(&mut run.end.stats.events, &[event]);
}

/// The record of the frozen run with more waits.
fn waiting(name: &str, class: WaitClass, us: u64, n: u64) -> Record {
    let mut run = fixtures::run();
    wait(&mut run, name, class, us, n);
    build(&run)
}

fn add(run: &mut RunData, stat: assay_measure::counter_catalog::Stat, n: u64) {
    run.end.stats.add(stat, n);
}

fn cpu(record: &mut Record, name: &str, pct: f64) {
    record.os.cpu_pct.insert(name.to_owned(), pct.into());
}

fn total(record: &mut Record, key: &str, total: f64) {
    record.instance.stats.get_mut(key).expect("a known key").total = total.into();
}

fn set(record: &mut Record, name: &str, value: &str) {
    record.plan.settings.push(SettingLine { name: name.to_owned(), value: value.to_owned(), origin: "cli".to_owned() });
}

#[test]
fn the_frozen_run_is_storage_bound_with_two_populations_of_reads() {
    let advice = advise(&record());
    let ids: Vec<&str> = advice.iter().map(|advice| advice.id.as_str()).collect();
    assert_eq!(ids, ["R3", "R8", "R27"]);
    let text = &advice[0].text;
    assert!(text.contains("75.0 % of DB time"), "{text}");
    assert!(text.contains("average 500 us"), "{text}");
    assert!(text.contains("Little's law accounts for"), "{text}");
}

#[test]
fn every_rule_of_one_run_is_here_once_and_in_order() {
    let numbers: Vec<u32> = RULES.iter().map(|(rule, _)| rule.id[1..].parse().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    let elsewhere = [9, 10, 11, 24, 28, 29, 42];
    assert!(numbers.iter().all(|number| !elsewhere.contains(number)), "{numbers:?}");
    assert_eq!(numbers.len() + elsewhere.len(), *numbers.last().unwrap() as usize);
}

fn layers(engine_us: f64, device_us: Option<f64>) -> Record {
    let mut record = record();
    let row = |us: Option<f64>| {
        let mut row = LayerRow { count: Figure::Count(1000), ..LayerRow::default() };
        row.latency.us_avg = us.map_or_else(|| Figure::na("no device known"), Figure::Decimal);
        row
    };
    record.instance.layers = vec![RequestLayers {
        request: "single-block read".to_owned(),
        engine: row(Some(engine_us)),
        syscall: row(Some(engine_us * 0.9)),
        device: row(device_us),
        ..RequestLayers::default()
    }];
    record
}

#[test]
fn nothing_fires_on_what_is_not_known() {
    for record in [Record::default(), build(&RunData::default())] {
        assert_eq!(advise(&record), []);
        let lacking = unjudged(&record);
        assert!(lacking.iter().any(|text| text.starts_with("R1 (DB time")), "{lacking:?}");
    }
    assert!(found(&fixtures::run()).contains(&"R3".to_owned()));
}

#[test]
fn what_could_not_be_judged_is_said_once_below_the_advice() {
    let mut record = layers(1000.0, None);
    record.advice_unjudged = unjudged(&record);
    let text = crate::testing::text(&record);
    let lines = text.lines().filter(|line| line.contains("Not judged"));
    assert_eq!(lines.count(), 1);
    assert!(text.contains("R22 (device latency: no device known)"), "{text}");
}

fn imported(values: &[(&str, f64)]) -> Record {
    use assay_measure::record::{ImportInfo, ImportedValue};
    let value = |(key, value): &(&str, f64)| ImportedValue {
        key: (*key).to_owned(),
        value: (*value).into(),
        ..ImportedValue::default()
    };
    Record {
        import: Some(ImportInfo { values: values.iter().map(value).collect(), ..ImportInfo::default() }),
        ..Record::default()
    }
}
