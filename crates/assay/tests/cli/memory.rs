//! `assay memory` and `assay topology`: every part in a short run, the load in the place of stress-ng's, lscpu's faces.

use crate::common::Place;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

#[test]
fn it_measures_every_part_and_says_that_a_short_run_is_not_enough_for_the_rule() {
    let place = Place::new();
    let done = place.assay(&["memory", "--time", "1s", "-o", "run", "--format", "full"]).code(0);
    for wanted in [
        "Bandwidth, GB/s",
        "Latency Ladder, ns per Step",
        "Latency under Load",
        "First Touch of Fresh Memory",
        "Pages That Became Huge",
        "NUMA",
        "Who Else Used the Host",
    ] {
        assert!(done.out.contains(wanted), "no {wanted}:\n{}", done.out);
    }
    let record = place.record("run");
    assert_eq!((&record["kind"], &record["run"]["verdict"]), (&"memory".into(), &"complete".into()));
    let part = &record["parts"]["memory"];
    assert_eq!((&part["kernel_set"], &part["verification_errors_count"]), (&"mem-v1".into(), &0.into()));
    let keys: Vec<&str> =
        record["metrics"].as_array().expect("metrics").iter().filter_map(|metric| metric["key"].as_str()).collect();
    assert_eq!(keys[..3], ["triad_gb_per_s_p50", "read_gb_per_s_p50", "latency_4k_ns_p50"]);
    let again = place.assay(&["report", "run"]).code(0);
    assert_eq!(again.out, done.out);
    place.assay(&["report", "run", "--format", "tool"]).code(2);
}

#[test]
fn memory_01_the_words_of_stress_ng_are_taken_and_its_row_is_printed() {
    let place = Place::new();
    let words = [
        "memory",
        "--vm",
        "8",
        "--vm-bytes",
        "4M",
        "--timeout",
        "1s",
        "--verbose",
        "--metrics-brief",
        "-o",
        "run",
        "--format",
        "tool",
    ];
    let done = place.assay(&words).code(0);
    let row = done.metrics_row("vm");
    assert!(row[0] > 0.0 && row[1] >= 1.0, "{row:?}");
    assert_eq!(format!("{:.2}", row[0] / row[1]), format!("{:.2}", row[4]));
    assert_eq!(format!("{:.2}", row[0] / (row[2] + row[3])), format!("{:.2}", row[5]));
    let part = &place.record("run")["parts"]["memory"];
    assert_eq!(part["soaked"]["total_bytes"], 32 << 20);
    assert_eq!(part["verification_errors_count"], 0);
}

#[test]
fn memory_15_a_flipped_bit_ends_with_the_code_of_an_invalid_run_and_its_address() {
    let place = Place::new();
    let words = ["memory", "--soak", "1", "--soak-bytes", "1M", "--time", "1s", "-o", "run"];
    let done = place.assay(&[&words[..], &["--flip-bit"]].concat()).code(4);
    assert!(done.err.contains("xor 0x20"), "{}", done.err);
    let reason = &place.record("run")["run"]["verdict_reasons"][0];
    assert!(reason.as_str().expect("a reason").starts_with("address 0x"), "{reason}");
}

#[test]
fn memory_20_an_interrupted_load_prints_the_metrics_of_what_passed() {
    let place = Place::new();
    let running = place.start(&["memory", "--soak", "0", "--soak-bytes", "4M", "--time", "60s", "-o", "run"]);
    let running = running.computed(Duration::from_secs(1));
    running.signal(Signal::INT);
    let done = running.ended().code(130);
    let row = done.metrics_row("vm");
    assert!(row[0] > 0.0 && row[1] < 60.0, "{row:?}");
}

#[test]
fn memory_03_what_the_host_cannot_spare_is_refused_and_a_dry_run_touches_nothing() {
    let place = Place::new();
    let done = place.assay(&["memory", "--soak", "1000", "--soak-bytes", "1T"]).code(3);
    assert!(done.err.contains("can be spared"), "{}", done.err);
    for words in [
        &["memory", "--soak", "x"][..],
        &["memory", "--huge", "4m"],
        &["memory", "--array", "1M"],
        &["memory", "/tmp"],
        &["topology", "--sysroot", "absent"],
        &["topology", "--time", "1s"],
    ] {
        place.assay(words).code(2);
    }
    let plan = place.assay(&["memory", "--dry-run", "--format", "json"]).code(0);
    let plan: Value = serde_json::from_str(&plan.out).expect("JSON");
    assert!(plan["array_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20));
    assert!(place.files().is_empty());
}

#[test]
fn topology_16_its_faces_are_lscpu_s_and_the_page_has_the_picture() {
    let place = Place::new();
    let done = place.assay(&["topology", "-o", "run", "--format", "tool"]).code(0);
    let architecture = format!("Architecture:          {}\n", std::env::consts::ARCH);
    assert!(done.out.starts_with(&architecture), "{}", done.out);
    let again = place.assay(&["report", "run", "--format", "tool"]).code(0);
    assert_eq!(again.out, done.out);
    let json = place.assay(&["report", "run", "--format", "tool-json"]).code(0);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["lscpu"][0]["field"], "Architecture:");
    let page = place.read("run/report.html");
    assert!(page.contains("<svg role=\"img\"") && page.contains(">Socket 0</text>"));
    assert!(place.read("run/report.txt").contains("Picture\n~~~~~~~\nSocket"));
}

#[test]
fn topology_17_an_empty_tree_is_told_as_it_is() {
    let place = Place::new();
    let done = place.assay(&["topology", "--sysroot", ".", "-o", "run", "--format", "full"]).code(0);
    assert!(done.out.contains("not exposed"), "{}", done.out);
    let settings = &place.record("run")["plan"]["settings"];
    assert_eq!(settings.as_array().expect("settings").len(), 1, "{settings}");
}
