//! Our own text report, imported, gives back the record's figures within the printed rounding.

use super::{read, source};
use assay_awr::record::build;
use assay_measure::record::Record;
use assay_testkit::fixtures;
use serde_json::Value;

/// Steps a pointer with the rows of `from` found again in `to` by what they are of.
fn again<'a>(from: &Value, to: &'a Value, pointer: &str) -> Option<&'a Value> {
    let (mut here, mut there) = (from, to);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        match here {
            Value::Array(rows) => {
                let i: usize = step.parse().ok()?;
                let row = rows.get(i)?;
                there = match row {
                    Value::Object(_) => there.as_array()?.iter().find(|other| {
                        ["name", "class", "actor", "function"]
                            .iter()
                            .all(|key| row[key] == other[key] || row.get("name").is_some() && *key == "class")
                    })?,
                    _ => there.as_array()?.get(i)?,
                };
                here = row;
            }
            _ => (here, there) = (here.get(&step)?, there.get(&step)?),
        }
    }
    Some(there)
}

fn comes_back(record: &Record) {
    assay_report::kinds::install(crate::kinds());
    let text = assay_report::text::render(record);
    let back = read(&[source("report.txt", &text)]);
    assert_eq!(back.import.as_ref().expect("an import").tool, "assay");
    assert_eq!(back.run.engine, record.run.engine);
    let (ours, theirs) = (serde_json::to_value(record).expect("JSON"), serde_json::to_value(&back).expect("JSON"));
    let info = back.import.as_ref().expect("an import");
    let mut compared = 0;
    for value in info.values.iter().filter(|value| !value.at.is_empty()) {
        // Rows of a function are sums over its file types.
        if value.at.starts_with("/instance/io_functions")
            || value.at.starts_with("/instance/wait_classes") && value.scope.is_empty()
        {
            continue;
        }
        let original = again(&theirs, &ours, &value.at).unwrap_or_else(|| panic!("{} {}", value.at, value.printed));
        match (original.as_f64(), value.value.value()) {
            (Some(original), Some(found)) => {
                let slack = value.rounding * (1.0 + 1e-6) + 1e-9 * original.abs();
                assert!(
                    (original - found).abs() <= slack,
                    "{} {}: {original} came back as {found} +/- {}",
                    value.at,
                    value.printed,
                    value.rounding
                );
                compared += 1;
            }
            (None, None) => {}
            (original, found) => panic!("{}: {original:?} came back as {found:?}", value.at),
        }
    }
    assert!(compared > 200, "{compared}");
    complete(record, &back);
}

/// Everything that is printed came back.
fn complete(record: &Record, back: &Record) {
    for row in &record.instance.load_profile {
        let found = back.instance.load_profile.iter().find(|other| other.name == row.name);
        let found = found.unwrap_or_else(|| panic!("{}", row.name));
        assert_eq!(found.per_s.value().is_some(), row.per_s.value().is_some(), "{}", row.name);
    }
    for row in &record.instance.events {
        let mut others = back.instance.events.iter();
        let found = others.find(|other| (&other.name, &other.actor) == (&row.name, &row.actor));
        let found = found.unwrap_or_else(|| panic!("{}", row.name));
        assert_eq!(found.total_us.value().is_some(), row.total_us.value().is_some(), "{}", row.name);
        if row.is_timed_singly() {
            assert_eq!(found.hist_us, row.hist_us, "{}", row.name);
        }
    }
    for (key, row) in &record.instance.stats {
        let found = back.instance.stats.get(key).unwrap_or_else(|| panic!("{key}"));
        assert_eq!(found.total.value().is_some(), row.total.value().is_some(), "{key}");
    }
    assert_eq!(back.instance.io_profile.len(), record.instance.io_profile.len());
    assert_eq!(back.instance.efficiency.len(), record.instance.efficiency.len());
    assert_eq!(back.instance.wait_classes.len(), record.instance.wait_classes.len());
    for share in ["user", "system", "iowait", "steal", "idle", "busy", "idle_awr"] {
        assert_eq!(back.os.cpu_pct.contains_key(share), record.os.cpu_pct.contains_key(share), "{share}");
    }
    for row in &record.instance.io_functions {
        assert!(back.instance.io_functions.iter().any(|other| other.function == row.function), "{}", row.function);
    }
}

#[test]
fn the_frozen_run_comes_back() {
    comes_back(&build(&fixtures::run()));
}

#[test]
fn the_frozen_runs_of_servers_come_back() {
    for version in [15, 18] {
        comes_back(&build(&fixtures::postgres(version)));
    }
}

#[test]
fn the_records_of_real_servers_come_back() {
    for text in [
        include_str!("../../../../../testdata/records/postgres-15.json"),
        include_str!("../../../../../testdata/records/postgres-18.json"),
    ] {
        comes_back(&assay_report::json::read(text).expect("a record"));
    }
}
