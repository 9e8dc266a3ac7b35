//! `assay sync`: the durable-write curve, and that nothing of it stays.

use crate::common::{Place, Ran, with};
use rustix::process::Signal;
use serde_json::Value;

const SHORT: &[&str] = &["--time", "1s"];

/// A probe of the directory `disk` whose F0 is a number, and its record. A median takes twenty writes, for which the first
/// step of a short probe has no time where others keep the disk busy.
fn measured(place: &Place) -> (Ran, Value) {
    for time in ["1s", "8s", "64s"] {
        let args = ["sync", "disk", "-o", "run", "--format", "full", "--time", time];
        let done = place.assay(&args).code(0);
        let record: Value = serde_json::from_str(&place.read("run/record.json")).expect("JSON");
        let f0 = &record["parts"]["sync"]["durable_write_us_p50"];
        if f0.is_number() {
            return (done, record);
        }
        assert_eq!(f0["na"], "too few samples", "{time}");
        std::fs::remove_dir_all(place.path("run")).expect("a run's directory");
    }
    panic!("a disk that does not make twenty durable writes in eight seconds");
}

#[test]
fn it_measures_reports_and_leaves_only_its_record() {
    let place = Place::new();
    std::fs::create_dir(place.path("disk")).expect("created");
    let (done, record) = measured(&place);
    assert!(done.out.contains("What Each Level of Safety Costs"), "{}", done.out);
    assert_eq!(place.files(), ["run/record.json", "run/report.html", "run/report.txt"]);
    assert_eq!(place.read("run/report.txt"), done.out);
    assert_eq!(record["schema"], "assay/2");
    assert_eq!(record["run"]["workload"], "sync");
    let f0 = record["parts"]["sync"]["durable_write_us_p50"].as_f64().expect("F0 is a number");
    assert!(f0 > 0.0);
    let steps = record["parts"]["sync"]["steps"].as_array().expect("steps");
    for streams in [1, 2, 4, 8, 16, 32] {
        for file in ["preallocated", "new"] {
            let is_it =
                |step: &&Value| step["streams_count"] == streams && step["file"] == file && step["part"] == "curve";
            assert!(steps.iter().filter(is_it).count() >= 3, "{streams} {file}");
        }
    }
    let again = place.assay(&["report", "run"]).code(0);
    assert_eq!(again.out, done.out);
    place.assay(&["runs", "show", "run"]).code(0);
}

#[test]
fn a_named_new_file_is_used_and_removed_and_json_is_the_record() {
    let place = Place::new();
    let args = with(&["sync", "log.tmp", "-o", "run", "--format", "json"], SHORT);
    let done = place.assay(&args).code(0);
    assert_eq!(done.out, place.read("run/record.json"));
    assert!(!place.path("log.tmp").exists());
}

#[test]
fn a_foreign_file_a_device_and_a_bad_time_are_refused() {
    let place = Place::new();
    place.write("theirs", "theirs");
    let refused = place.assay(&["sync", "theirs"]).code(3);
    assert!(refused.errors()[0].contains("no killed assay sync left it"));
    assert_eq!(place.read("theirs"), "theirs");
    place.assay(&["sync", "/dev/null"]).code(3);
    place.assay(&["sync", "no/such/directory"]).code(3);
    for time in ["0", "10ms", "fast", "-1s"] {
        place.assay(&["sync", "--time", time]).code(2);
    }
    assert_eq!(place.files(), ["theirs"]);
}

#[test]
fn a_dry_run_touches_nothing() {
    let place = Place::new();
    let text = place.assay(&["sync", "--dry-run"]).code(0);
    assert!(text.out.contains("scratch file"), "{}", text.out);
    let json = place.assay(&["sync", "--dry-run", "--format", "json"]).code(0);
    let plan: Value = serde_json::from_str(&json.out).expect("JSON");
    assert!(plan["steps"].as_u64().is_some_and(|steps| steps > 40));
    assert!(place.files().is_empty());
}

#[test]
fn int_ends_it_with_what_there_is_and_nothing_left() {
    let place = Place::new();
    std::fs::create_dir(place.path("disk")).expect("created");
    let started = place.start(&["sync", "disk", "-o", "run", "--time", "60s"]);
    let written = || {
        let entries = std::fs::read_dir(place.path("disk")).expect("readable");
        let mut files = entries.filter_map(|entry| entry.ok()?.metadata().ok());
        files.any(|file| file.len() >= 64 << 20)
    };
    let running = started.until("scratch file", written);
    // Into the first step, so that there is something to report.
    let about = format!("/proc/{}/io", running.pid().as_raw_nonzero());
    let calls = || {
        let text = std::fs::read_to_string(&about).expect("it runs");
        let calls = text.lines().find_map(|line| line.strip_prefix("syscw: ")).expect("a count");
        calls.parse::<u64>().expect("digits")
    };
    let before = calls();
    let running = running.until("writes of a step", || calls() > before + 300);
    running.signal(Signal::INT);
    let done = running.ended().code(130);
    let left = std::fs::read_dir(place.path("disk")).expect("readable");
    assert_eq!(left.count(), 0);
    assert!(done.out.contains("incomplete"), "{}{}", done.out, done.err);
    assert_eq!(place.files(), ["run/record.json", "run/report.html", "run/report.txt"]);
}
