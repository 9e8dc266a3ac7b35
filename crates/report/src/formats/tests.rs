mod price;

use super::*;
use assay_measure::record::Figure;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn records() -> Vec<Record> {
    let probe = crate::storage_readings::readings();
    vec![
        assay_awr::record::build(&assay_testkit::fixtures::run()),
        assay_awr::record::build(&assay_testkit::fixtures::postgres(15)),
        assay_storage::record::build(&assay_testkit::fixtures::run(), &probe),
        Record::default(),
    ]
}

fn summary(record: &Record) -> String {
    openmetrics::OPENMETRICS.text(&Input::of(&[record])).unwrap()
}

fn metrics(record: &Record) -> String {
    metrics_csv::METRICS_CSV.text(&Input::of(&[record])).unwrap()
}

/// Name, labels and rest of a sample.
fn parts(line: &str) -> (&str, &str, Vec<&str>) {
    let (name, rest) = line.split_once('{').unwrap();
    let (labels, rest) = rest.rsplit_once("} ").unwrap();
    (name, labels, rest.split(' ').collect())
}

/// The rules of the format that its readers refuse a text for.
fn check(text: &str) {
    let (body, end) = text.split_at(text.len() - "# EOF\n".len());
    assert_eq!(end, "# EOF\n");
    let (mut family, mut kind) = ("", "");
    let mut families = BTreeSet::new();
    let mut samples = BTreeSet::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            match words[0] {
                "TYPE" => {
                    (family, kind) = (words[1], words[2]);
                    assert!(families.insert(family), "{family} stands twice");
                }
                "UNIT" => assert!(family.ends_with(&format!("_{}", words[2])), "{line}"),
                word => assert_eq!(word, "HELP", "{line}"),
            }
            assert_eq!(words[1], family);
            continue;
        }
        let (name, labels, rest) = parts(line);
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        let suffix = name.strip_prefix(family).unwrap_or("?");
        assert!(suffixes.contains(&suffix), "{kind} {family}: {line}");
        assert!(rest[0].parse::<f64>().unwrap().is_finite(), "{line}");
        let at = rest.get(1).copied().unwrap_or_default();
        assert!(samples.insert((name.to_owned(), labels.to_owned(), at.to_owned())), "{line}");
    }
}

#[test]
fn no_name_stands_for_two_formats() {
    let names: Vec<&str> = FORMATS.iter().flat_map(|format| [&[format.name], format.also].concat()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    assert_eq!(find("text").map(|format| format.name), Some("full"));
}

#[test]
fn every_record_keeps_the_rules_of_the_format() {
    for record in records() {
        check(&summary(&record));
    }
}

/// node_exporter's textfile collector refuses a file with a kind that it does not know, or with a time.
#[test]
fn the_text_of_prometheus_has_the_same_samples_without_kinds_and_times_of_openmetrics() {
    for record in records() {
        let text = openmetrics::PROMETHEUS.text(&Input::of(&[&record])).unwrap();
        let mut samples = Vec::new();
        let mut kinds = BTreeMap::new();
        for line in text.lines() {
            match line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                Some((name, kind)) => assert_eq!(kinds.insert(name, kind), None, "{name} stands twice"),
                None if line.starts_with("# HELP ") => {}
                None => {
                    let (name, labels, rest) = parts(line);
                    assert_eq!(rest.len(), 1, "a time: {line}");
                    let of = ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
                    let kind = of.and_then(|of| kinds.get(of)).or_else(|| kinds.get(name));
                    assert!(kind.is_some_and(|kind| ["counter", "gauge", "histogram"].contains(kind)), "{line}");
                    samples.push(format!("{name}{{{labels}}} {}", rest[0]));
                }
            }
        }
        samples.retain(|sample| !sample.starts_with("assay_run_end_timestamp_seconds{"));
        let other = summary(&record);
        let other = other.lines().filter(|line| !line.starts_with('#')).map(parts);
        let other: Vec<String> = other.map(|(name, labels, rest)| format!("{name}{{{labels}}} {}", rest[0])).collect();
        samples.sort_unstable();
        let mut wanted = other;
        wanted.sort_unstable();
        assert_eq!(samples, wanted);
    }
}

#[test]
fn counts_times_and_distributions_are_those_of_the_record_in_base_units() {
    let record = assay_awr::record::build(&assay_testkit::fixtures::run());
    let text = summary(&record);
    let value = |start: &str, holding: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(start) && line.contains(holding));
        let line = line.unwrap_or_else(|| panic!("{start} {holding}\n{text}"));
        parts(line).2[0].parse().unwrap()
    };
    assert_eq!(value("assay_ops_per_second{", ""), 100.0);
    assert_eq!(value("assay_read_seconds{", "stat=\"avg\""), 500e-6);
    let event = record.instance.events.iter().find(|event| event.name == "db file sequential read").unwrap();
    let of_event = "event=\"db file sequential read\"";
    let count = event.count.value().unwrap();
    assert_eq!(value("assay_event_wait_seconds_count{", of_event), count);
    let sum_s = event.total_us.value().unwrap() / 1e6;
    assert!((value("assay_event_wait_seconds_sum{", of_event) - sum_s).abs() < 1e-9);
    // Buckets rise to the count, and the bound of 1 ms has all that were shorter.
    let bounded = |bound: &str| {
        value(
            "assay_event_wait_seconds_bucket{",
            &format!("{of_event},class=\"User I/O\",actor=\"foreground\",source=\"sysstat\",le=\"{bound}\""),
        )
    };
    let below: u64 = event.hist_us[..=10].iter().sum();
    assert_eq!(bounded("0.001024"), below as f64);
    assert_eq!(bounded("+Inf"), count);
    let reads = record.instance.stats["physical_read_io_requests_count"].total.value().unwrap();
    assert_eq!(value("assay_physical_read_io_requests_total{", ""), reads);
}

#[test]
fn what_is_not_known_is_named_with_its_reason_and_never_a_number() {
    let mut record = assay_awr::record::build(&assay_testkit::fixtures::run());
    let row = record.instance.stats.get_mut("redo_size_bytes").unwrap();
    row.total = Figure::na("not \"counted\"\\");
    let text = summary(&record);
    assert!(!text.contains("assay_redo_size_bytes_total"), "{text}");
    let said = "metric=\"assay_redo_size_bytes\",source=\"sysstat\",reason=\"not \\\"counted\\\"\\\\\"} 1";
    assert!(text.contains(said), "{text}");
    record.instance.stats.get_mut("redo_wastage_bytes").unwrap().per_s = Figure::na("not, counted");
    crate::kinds::attach_metrics(&mut record);
    let line = "redo_wastage_bytes_per_s,,redo wastage,,bytes/s,,engine,0,\"not, counted\"\n";
    let table = metrics(&record);
    assert!(table.contains(line), "{table}");
}

#[test]
fn the_summary_table_has_every_metric_with_its_unit() {
    for record in records() {
        let table = metrics(&record);
        assert_eq!(table.lines().count(), record.metrics.len() + 1);
    }
    let table = metrics(&records()[0]);
    assert!(table.contains("\nops_per_s,,Operations,100,1/s,higher,client,1,\n"), "{table}");
}

proptest! {
    #[test]
    fn any_text_in_a_label_is_one_label(label in "\\PC{0,20}|[\\\\\"\n{},= ]{0,12}", name in "\\PC{0,20}") {
        let mut record = assay_awr::record::build(&assay_testkit::fixtures::run());
        record.run.label = Some(label);
        record.instance.events[0].name = name;
        crate::kinds::attach_metrics(&mut record);
        check(&summary(&record));
    }
}
