//! Hosts whose tests are simulated.

use super::info::PlatformsInfo;
use super::{Given, KIND, NAME, Ran, build, data};
use crate::finished::Finished;
use crate::plan::READS;
use crate::record::{Asked, build as build_one};
use crate::tests::{asked, box_of};
use assay_measure::record::{Advice, Figure, Metric, Record};
use assay_measure::snapshot::{RunData, SettingLine};
use assay_testkit::rules::{Case, just_fire};

const S: u64 = 1_000_000_000;

/// What a host keeps for the controller: its tests of ten seconds, one after the other, each begun so late.
fn part(finished: &[Finished], asked: &Asked, late_s: u64) -> serde_json::Value {
    let record = build_one(&RunData::default(), asked, finished, false);
    let ran = finished.iter().zip(0..).map(|(one, at)| Ran {
        test: one.test.to_owned(),
        begin_ns: (10 * at + late_s) * S,
        end_ns: (10 * at + late_s + 10) * S,
    });
    data(&RunData::default(), &record, finished, ran.collect()).part.expect("plain data")
}

fn usual() -> serde_json::Value {
    part(&box_of(250.0, 900.0), &asked(""), 0)
}

/// The record of hosts that are called a, b, ...: what each kept, or why there is nothing.
fn record(parts: &[Result<serde_json::Value, &str>]) -> Record {
    let names = ["a", "b", "c", "d", "e"];
    let given: Vec<Given<'_>> = (names.iter().zip(parts))
        .map(|(name, part)| Given { name, part: part.as_ref().map_err(|why| *why), gate_ns: Some(7 * S) })
        .collect();
    let settings = vec![SettingLine::new("PATH", "/data".to_owned(), "cli")];
    build(&RunData { workload: NAME.to_owned(), settings, ..RunData::default() }, &given)
}

fn info(record: &Record) -> PlatformsInfo {
    record.parts.get().expect("its part")
}

fn find<'a>(record: &'a Record, key: &str) -> &'a Metric {
    record.metrics.iter().find(|metric| metric.full_key() == key).unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn equal_hosts_have_one_class_and_what_they_did_at_the_same_time_is_added() {
    let record = record(&[Ok(usual()), Ok(usual()), Ok(usual())]);
    let headline = KIND.headline(&record);
    assert_eq!(headline.verdict, "3 hosts, R50k C8.4k; none is odd");
    assert_eq!(headline.rerun_command, "assay platform /data");
    assert_eq!(find(&record, "depth_32.sum_reads_per_s").value.value(), Some(3.0 * 50_312.0));
    assert_eq!(find(&record, "read_us_p99").value.value(), Some(250.0), "the median host's");
    assert!(find(&record, "read_us_p99").is_primary && !find(&record, "worst_host.read_us_p99").is_primary);
    assert_eq!(find(&record, "b.reads_per_s").value.value(), Some(50_312.0));
    let info = info(&record);
    let sum = info.sums.iter().find(|row| row.scope == "depth 32").expect("a row");
    assert_eq!((sum.hosts_count, sum.slowest_us_p99.value()), (3, Some(850.0)));
    assert!(info.facts.is_empty() && info.odd_count == 0, "{:?}", info.facts);
}

#[test]
fn the_host_that_is_unlike_the_others_is_named_and_comes_first() {
    let slow = part(&box_of(900.0, 900.0), &asked(""), 0);
    let record = record(&[Ok(usual()), Ok(usual()), Ok(slow), Ok(usual())]);
    let headline = KIND.headline(&record);
    assert_eq!(headline.verdict, "4 hosts, R8k to R50k, C8.4k; odd: c");
    assert!(headline.limit.what.starts_with("c, which is not like the others"), "{:?}", headline.limit);
    let info = info(&record);
    assert_eq!((info.hosts[0].name.as_str(), info.hosts[0].odd_in.as_str()), ("c", "read_us_p99, reads_per_s"));
    let row = info.needs.iter().find(|row| row.need == "read_us_p99").expect("a row");
    assert_eq!((row.odd.as_str(), row.most.value(), row.median.value()), ("c 900", Some(900.0), Some(250.0)));
    assert_eq!(find(&record, "worst_host.reads_per_s").value.value(), Some(8_000.0));
}

#[test]
fn a_host_that_keeps_no_latency_where_the_others_do_is_odd_and_scattered_ones_are_not() {
    let bad = || part(&box_of(1_500.0, 900.0), &asked(""), 0);
    let odd = info(&record(&[Ok(usual()), Ok(bad()), Ok(usual())]));
    assert!(odd.hosts[0].odd_in.contains("reads_per_s") && odd.class == "R- to R50k, C8.4k", "{:?}", odd.hosts[0]);
    assert_eq!(odd.needs_failed_count, 1);
    let scattered = [250.0, 320.0, 400.0, 500.0].map(|us| Ok(part(&box_of(us, 900.0), &asked(""), 0)));
    let row = info(&record(&scattered)).needs.into_iter().find(|row| row.need == "read_us_p99");
    assert_eq!(row.expect("a row").odd, "");
}

#[test]
fn a_host_that_gave_nothing_is_a_row_with_the_reason() {
    let record = record(&[Ok(usual()), Err("nothing heard for 10 s"), Ok(usual())]);
    let info = info(&record);
    assert_eq!((info.hosts_count, info.measured_count), (3, 2));
    assert_eq!((info.hosts[0].name.as_str(), info.hosts[0].verdict.as_str()), ("b", "nothing heard for 10 s"));
    assert_eq!(find(&record, "depth_32.sum_reads_per_s").value.value(), Some(2.0 * 50_312.0));
}

#[test]
fn what_hosts_measured_one_after_the_other_is_not_added() {
    let late = part(&box_of(250.0, 900.0), &asked(""), 2);
    let record = record(&[Ok(usual()), Ok(late)]);
    let reason = find(&record, "depth_32.sum_reads_per_s").value.reason().expect("none").to_owned();
    assert_eq!(reason, "not at the same time: the hosts shared 67 % of the time that they took");
    let info = info(&record);
    let test = info.tests.iter().find(|row| row.test == READS).expect("a row");
    assert_eq!((test.begin_spread_ms.value(), test.together_s.value()), (Some(2000.0), Some(8.0)));
}

#[test]
fn a_finding_is_one_row_with_the_hosts_that_have_it() {
    let found = |id: &str| {
        let mut finished = box_of(250.0, 900.0);
        let advice =
            Advice { id: id.to_owned(), severity: "note".to_owned(), text: format!("{id}."), ..Advice::default() };
        finished[0].record.as_mut().expect("a record").advice.push(advice);
        Ok(part(&finished, &asked(""), 0))
    };
    let info = info(&record(&[found("S1"), found("S1"), found("S4")]));
    let rows: Vec<(&str, &str)> = info.found.iter().map(|row| (row.rule.as_str(), row.hosts.as_str())).collect();
    assert_eq!(rows[..2], [("S4", "c"), ("S1", "a, b")], "what few have comes first");
    assert!(rows.contains(&("B2", "all")), "those of the boxes too: {rows:?}");
}

const CASES: &[Case] = &[
    ("B4", |fires| {
        let here = Asked { busy_before_pct: Some(if fires { 10.5 } else { 10.0 }), ..asked("") };
        record(&[Ok(part(&box_of(250.0, 900.0), &here, 0)), Ok(usual())])
    }),
    ("B9", |fires| {
        // Of 313 us, 250 are less than a fifth less.
        let other = part(&box_of(if fires { 313.0 } else { 312.0 }, 900.0), &asked(""), 0);
        record(&[Ok(usual()), Ok(usual()), Ok(other)])
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}

#[test]
fn what_is_damaged_is_a_row_too() {
    let info = info(&record(&[Ok(usual()), Ok(serde_json::json!({"record": 7}))]));
    assert!(info.hosts[0].name == "b" && !info.hosts[0].verdict.is_empty(), "{:?}", info.hosts[0]);
    assert_eq!(info.hosts[0].read_us_p99, Figure::na("it gave nothing"));
}
