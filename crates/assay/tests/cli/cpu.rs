//! `assay cpu`: its kernels, and its load in the place of stress-ng's.

use crate::common::Place;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

#[test]
fn it_measures_every_kernel_and_its_report_says_what_and_how_steadily() {
    let place = Place::new();
    let done = place.assay(&["cpu", "--time", "1s", "-o", "run", "--format", "full"]).code(0);
    for wanted in [
        "Kernels: Rates of One CPU and of All",
        "Scaling Curve",
        "Effective Clock of Each CPU",
        "Who Else Used the Host",
    ] {
        assert!(done.out.contains(wanted), "no {wanted}:\n{}", done.out);
    }
    assert_eq!(place.files(), ["run/record.json", "run/report.html", "run/report.txt"]);
    let record = place.record("run");
    assert_eq!((&record["kind"], &record["run"]["verdict"]), (&"cpu".into(), &"complete".into()));
    let part = &record["parts"]["cpu"];
    assert_eq!((&part["kernel_set"], &part["mode"]), (&"db-v1".into(), &"kernels".into()));
    assert_eq!(part["verification_errors_count"], 0);
    let rows = part["kernels"].as_array().expect("kernels");
    let one = |name: &str| {
        let is_it = |row: &&Value| row["kernel"] == name && row["threads_count"] == 1;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("no {name}"))
    };
    for name in ["add-dep", "btree-16m", "hash-join-256k", "sort", "crc32c-table", "aes-gcm", "syscall"] {
        let row = one(name);
        assert!(row["per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
        assert!(row["per_cpu_s"].is_number() && row["cv_pct"].is_number(), "{row}");
    }
    let keys: Vec<&str> =
        record["metrics"].as_array().expect("metrics").iter().filter_map(|m| m["key"].as_str()).collect();
    assert_eq!(keys[0], "effective_mhz");
    let again = place.assay(&["report", "run"]).code(0);
    assert_eq!(again.out, done.out);
    place.assay(&["runs", "show", "run"]).code(0);
}

#[test]
fn cpu_01_the_words_of_stress_ng_are_taken_and_its_row_is_printed() {
    let place = Place::new();
    let words = ["cpu", "--cpu", "300", "--timeout", "1s", "--verbose", "--metrics-brief", "-o", "run"];
    let done = place.assay(&words).code(0);
    let row = done.metrics_row("cpu");
    assert!(row[0] > 0.0 && row[1] >= 1.0, "{row:?}");
    assert_eq!(format!("{:.2}", row[0] / row[1]), format!("{:.2}", row[4]));
    let record = place.record("run");
    let settings = record["plan"]["settings"].as_array().expect("settings");
    let asked = settings.iter().find(|line| line["name"] == "SOAK");
    assert_eq!(asked.expect("it is a setting")["origin"], "cli");
    let soak = &record["parts"]["cpu"]["soak"];
    assert_eq!(soak["workers_count"], 300);
    let cpus = std::thread::available_parallelism().expect("known").get() as f64;
    assert!(soak["cpus_busy"].as_f64().expect("a number") <= cpus * 1.05, "{soak}");
}

#[test]
fn cpu_20_an_interrupted_load_prints_the_metrics_of_what_passed() {
    let place = Place::new();
    let running = place.start(&["cpu", "--soak", "0", "--time", "60s", "-o", "run"]);
    let running = running.computed(Duration::from_secs(1));
    running.signal(Signal::TERM);
    let done = running.ended().code(130);
    let row = done.metrics_row("cpu");
    assert!(row[0] > 0.0 && row[1] < 60.0, "{row:?}");
    assert!(done.out.contains("the run is incomplete"), "{}", done.out);
}

#[test]
fn a_bad_word_is_a_mistake_of_usage_and_a_dry_run_touches_nothing() {
    let place = Place::new();
    for words in
        [&["cpu", "--soak", "-1"][..], &["cpu", "--soak", "x"], &["cpu", "/tmp"], &["cpu", "--soak", "1", "--large"]]
    {
        place.assay(words).code(2);
    }
    let plan = place.assay(&["cpu", "--dry-run", "--format", "json"]).code(0);
    let plan: Value = serde_json::from_str(&plan.out).expect("JSON");
    assert_eq!(plan["kernel_set"], "db-v1");
    assert!(plan["steps"].as_u64().is_some_and(|steps| steps > 100));
    assert!(place.files().is_empty());
}
