//! The life of a native data set at the command line.

use crate::common::{Place, SMALL, json, with};
use std::fs;

#[test]
fn prepare_check_and_destroy_leave_nothing() {
    let place = Place::new();
    let done = place.assay(&with(&["prepare", "-s", "2", "--format", "json", "-o", "load"], SMALL)).code(0);
    let record = place.record("load");
    assert_eq!((&record["kind"], &record["run"]["workload"]), (&"load".into(), &"prepare".into()));
    assert!(record["parts"]["load"]["load_mb_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{record}");
    fs::remove_dir_all(place.path("load")).expect("removed");
    let summary = json(&done.out);
    assert!(summary["plan"].is_object() && summary["summary"].is_object(), "{}", done.out);
    assert!(done.err.contains("Free now"), "the plan comes first: {}", done.err);
    let checked = place.assay(&["check"]).code(0);
    assert!(checked.out.contains("every block"), "{}", checked.out);
    let plan = place.assay(&["destroy", "--dry-run"]).code(0);
    assert!(plan.out.contains("assay-data"), "{}", plan.out);
    assert!(place.path("assay-data/control.assay").exists());
    place.write("assay-data/foreign.txt", "mine");
    place.assay(&["destroy"]).code(0);
    assert_eq!(place.files(), ["assay-data/foreign.txt"]);
    fs::remove_dir_all(place.path("assay-data")).expect("removed");
    place.assay(&["check"]).code(3);
    place.assay(&["destroy"]).code(3);
}

#[test]
fn schemas_are_added_but_never_taken() {
    let place = Place::new();
    place.assay(&with(&["prepare", "-s", "1"], SMALL)).code(0);
    let again = place.assay(&with(&["prepare", "-s", "1"], SMALL)).code(2);
    assert!(again.err.contains("already has 1 schema of 2000 blocks"), "{}", again.err);
    place.assay(&["prepare", "-s", "3"]).code(0);
    let checked = place.assay(&["check", "--format", "json"]).code(0);
    assert!(checked.out.contains('3'), "{}", checked.out);
    let more = place.assay(&["run", "-s", "4"]).code(2);
    assert!(more.err.contains("schemas 1 to 3 are loaded"), "{}", more.err);
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let place = Place::new();
    fs::create_dir(place.path("mine")).expect("made");
    place.write("mine/thesis.txt", "words");
    for command in ["prepare", "run", "check", "destroy"] {
        let done = place.assay(&[command, "--target", "native:mine"]);
        assert_eq!(done.code, 3, "{command}: {}", done.err);
        assert_eq!(done.errors().len(), 1, "{command}: {}", done.err);
        assert_eq!(place.files(), ["mine/thesis.txt"], "{command}");
    }
}

#[test]
fn a_dry_run_touches_nothing_and_shows_the_plan() {
    let place = Place::new();
    for command in ["run", "prepare"] {
        let done = place.assay(&with(&[command, "--dry-run"], SMALL)).code(0);
        assert!(done.out.contains("Free now"), "{command}: {}", done.out);
        assert_eq!(place.files(), Vec::<String>::new(), "{command}");
    }
    let done = place.assay(&["run", "--dry-run", "--format", "json", "--seed", "5"]).code(0);
    let plan = json(&done.out);
    assert_eq!(plan["plan"]["seed"], 5);
    assert_eq!(plan["plan"]["schemas"], 4);
    assert_eq!(plan["plan"]["scale"], 32_768);
    assert_eq!(plan["plan"]["run_time_ns"], 30_000_000_000_u64);
    assert_eq!(plan["plan"]["warmup_ns"], 3_000_000_000_u64);
    assert!(plan["prepare"].is_object());
}

#[test]
fn slobs_own_spellings_read_the_slob_conf_beside_them() {
    let place = Place::new();
    place.write("slob.conf", "SCALE=2000\nUPDATE_PCT=35\nTHREADS_PER_SCHEMA=2\n");
    let set = ["--set", "REDO_LOG_MB=8", "--set", "UNDO_MB=8"];
    let done = place.assay(&with(&["setup", "IOPS", "2"], &set)).code(0);
    assert!(done.err.contains("./slob.conf") && done.err.contains("tablespace IOPS"), "{}", done.err);
    for (args, sessions) in [(vec!["runit", "2"], 4), (vec!["runit", "-s", "1", "-t", "3"], 3)] {
        let done = place.assay(&with(&args, &["--dry-run", "--format", "json"])).code(0);
        let plan = json(&done.out);
        assert_eq!(plan["plan"]["update_pct"], 35);
        let of = |name: &str| plan["plan"][name].as_u64().expect("a number");
        assert_eq!(of("schemas") * of("threads_per_schema"), sessions, "{args:?}");
    }
    place.assay(&["setup", "IOPS"]).code(2);
    place.assay(&["runit", "1", "-s", "2"]).code(2);
}

#[test]
fn a_plan_that_cannot_run_is_refused_before_anything_is_loaded() {
    let place = Place::new();
    for set in ["WORK_UNIT=2001", "SCAN_TABLE_SZ=0\u{1f}"] {
        let args = with(&["run", "--set", set], SMALL);
        let done = place.assay(&args).code(2);
        assert_eq!(done.errors().len(), 1, "{}", done.err);
        assert_eq!(place.files(), Vec::<String>::new());
    }
    let args = with(&["run", "--set", "SCAN_PCT=10", "--set", "SCAN_TABLE_SZ=0"], SMALL);
    let done = place.assay(&args).code(2);
    assert!(done.err.contains("SCAN"), "slob_22: {}", done.err);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn scale_above_the_load_names_both_numbers() {
    let place = Place::new();
    place.assay(&with(&["prepare", "-s", "1", "-o", "load"], SMALL)).code(0);
    let done = place.assay(&["run", "--set", "SCALE=3000"]).code(2);
    assert!(done.err.contains("3000") && done.err.contains("2000"), "slob_31: {}", done.err);
    assert!(!place.path("assay-runs").exists());
}

#[test]
fn sizes_that_no_memory_holds_are_refused_before_anything_is_made() {
    let place = Place::new();
    let sizes = [
        ("LOG_BUFFER_MB=20000", "LOG_BUFFER_MB=20000"),
        ("LOG_BUFFER_MB=17592186044415", "LOG_BUFFER_MB"),
        ("CACHE_MB=90000000", "CACHE_MB=90000000"),
        ("UNDO_MB=90000000000", "UNDO_MB=90000000000"),
        ("REDO_LOG_MB=90000000000", "REDO_LOG_MB=90000000000"),
    ];
    for (set, named) in sizes {
        for command in ["run", "prepare"] {
            let args = with(&with(&[command], SMALL), &["--set", set]);
            let done = place.assay(&args);
            assert!([2, 3].contains(&done.code), "{set}: {} {}", done.code, done.err);
            assert_eq!(done.errors().len(), 1, "{set}: {}", done.err);
            assert!(done.err.contains(named), "{set}: {}", done.err);
            assert_eq!(place.files(), Vec::<String>::new(), "{set}");
        }
    }
    place.assay(&with(&["prepare", "-s", "1"], SMALL)).code(0);
    let before = place.files();
    let huge = [
        &["LOG_BUFFER_MB=20000"][..],
        &["CACHE_MB=90000000"],
        &["IO_DEPTH=1024", "READ_MODE=batched", "THREADS_PER_SCHEMA=20000", "CACHE_MB=0"],
    ];
    for sets in huge {
        let mut args = vec!["run", "--set", "WORK_LOOP=50"];
        for set in sets {
            args.extend(["--set", set]);
        }
        let done = place.assay(&args);
        assert!([2, 3].contains(&done.code), "{sets:?}: {} {}", done.code, done.err);
        assert_eq!(done.errors().len(), 1, "{sets:?}: {}", done.err);
        assert_eq!(place.files(), before, "{sets:?}");
    }
    place.assay(&["check"]).code(0);
}
