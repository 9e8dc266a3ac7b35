//! `assay import`: other tools' output becomes a record like any other.

use crate::common::Place;
use serde_json::Value;

const LOAD_PROFILE: &str = include_str!("../../../../testdata/awr/load-profile-bm.txt");
const IO_PROFILE: &str = include_str!("../../../../testdata/awr/io-profile-bm.txt");

#[test]
fn fragments_become_one_record_with_file_and_line_of_every_value() {
    let place = Place::new();
    place.write("lp.txt", LOAD_PROFILE);
    place.write("io.txt", IO_PROFILE);
    let args = ["import", "lp.txt", "io.txt", "-L", "bare metal", "-o", "bm"];
    let done = place.assay(&args).code(0);
    let report = place.read("bm/report.txt");
    assert_eq!(report.lines().next(), done.out.lines().next());
    assert!(done.out.contains("bare metal"), "{}", done.out);
    let given = place.read("bm/config/given");
    assert_eq!(given, "assay import lp.txt io.txt -L 'bare metal' -o bm\n");
    let record: Value = serde_json::from_str(&place.read("bm/record.json")).expect("JSON");
    assert_eq!(record["run"]["workload"], "imported");
    assert_eq!(record["run"]["label"], "bare metal");
    let files = record["provenance"]["files"].as_array().expect("files");
    assert_eq!(files.len(), 2);
    assert_eq!(files[0]["size_bytes"], LOAD_PROFILE.len());
    let values = record["provenance"]["values"].as_array().expect("values");
    assert!(values.iter().any(|value| value["file"] == 1), "none of io.txt");
    for value in values {
        let at = value["at"].as_str().expect("a pointer");
        assert!(at.is_empty() || record.pointer(at) == Some(&value["value"]), "{value}");
    }
    place.assay(&["report", "bm"]).code(0);
    place.assay(&["runs", "show", "bm"]).code(0);
    place.assay(&["runs", "rm", "bm"]).code(0);
    assert!(!place.path("bm").exists());
}

#[test]
fn a_second_import_of_the_same_content_says_so() {
    let place = Place::new();
    place.write("a.txt", LOAD_PROFILE);
    let first = place.assay(&["import", "a.txt"]).code(0);
    assert!(!first.err.contains("already"), "{}", first.err);
    place.write("renamed.txt", LOAD_PROFILE);
    let again = place.assay(&["import", "renamed.txt"]).code(0);
    let said = "already has the same figures; this is a second record of them";
    assert!(again.err.contains(said), "{}", again.err);
    place.write("b.txt", &LOAD_PROFILE.replace("1,652,624.9", "2,200,000.1"));
    let other = place.assay(&["import", "b.txt"]).code(0);
    assert!(!other.err.contains("already"), "{}", other.err);
}

#[test]
fn each_file_can_have_a_record_of_its_own_and_json_is_the_record() {
    let place = Place::new();
    place.write("a.txt", LOAD_PROFILE);
    place.write("b.txt", &LOAD_PROFILE.replace("1,652,624.9", "2,200,000.1"));
    place.assay(&["import", "--each", "a.txt", "b.txt", "-o", "both"]).code(0);
    assert!(place.path("both/1-awr/record.json").is_file());
    assert!(place.path("both/2-awr/record.json").is_file());
    let done = place.assay(&["import", "a.txt", "-o", "one", "--format", "json"]).code(0);
    assert_eq!(done.out, place.read("one/record.json"));
}

#[test]
fn what_cannot_be_imported_is_refused_before_anything_is_created() {
    let place = Place::new();
    place.write("a.txt", LOAD_PROFILE);
    place.write("b.txt", &LOAD_PROFILE.replace("1,652,624.9", "2,200,000.1"));
    place.write("letter.txt", "Dear all,\nthe figures follow.\n");
    for (args, says) in [
        (&["import", "letter.txt"][..], "letter.txt: not recognised as any of"),
        (&["import", "none.txt"], "none.txt: No such file"),
        (&["import"], "FILE"),
    ] {
        let done = place.assay(args).code(2);
        assert!(done.err.contains(says), "{args:?}: {}", done.err);
    }
    assert_eq!(place.files(), ["a.txt", "b.txt", "letter.txt"]);
}

#[test]
fn files_of_two_runs_become_two_records_and_one_refused_file_refuses_no_other() {
    let place = Place::new();
    place.write("a.txt", LOAD_PROFILE);
    place.write("b.txt", &LOAD_PROFILE.replace("1,652,624.9", "2,200,000.1"));
    place.write("letter.txt", "Dear all,\nthe figures follow.\n");
    let args = ["import", "a.txt", "letter.txt", "b.txt", "none.txt", "-o", "all"];
    let done = place.assay(&args).code(2);
    for says in ["letter.txt: not recognised", "none.txt: No such file"] {
        assert!(done.err.contains(says), "{says}: {}", done.err);
    }
    assert!(place.path("all/1-awr/record.json").is_file());
    assert!(place.path("all/2-awr/record.json").is_file());
    let second = place.read("all/2-awr/record.json");
    assert!(second.contains("b.txt") && !second.contains("a.txt"));
}

#[test]
fn records_of_many_runs_share_a_script_and_take_a_fraction_of_what_it_has() {
    let place = Place::new();
    let run = include_str!("../../../../testdata/import/fio-3.33-mixed.txt");
    place.write("runs.txt", &run.repeat(20));
    for (args, above) in [(&["import", "runs.txt", "-o", "all"][..], "all"), (&["import", "runs.txt"], "assay-runs")] {
        let done = place.assay(args).code(0);
        assert!(!done.err.contains("already"), "they are alike, and none was imported before: {}", done.err);
        let files = place.files();
        let here: Vec<&String> = files.iter().filter(|file| file.starts_with(&format!("{above}/"))).collect();
        let records = here.iter().filter(|file| file.ends_with("/record.json"));
        assert_eq!(records.count(), 20);
        let scripts = here.iter().filter(|file| file.ends_with("assay-plotly.js"));
        assert_eq!(scripts.count(), 1);
        let bytes = |file: &&&String| std::fs::metadata(place.path(file)).expect("there").len();
        let pages = here.iter().filter(|file| file.ends_with("/report.html"));
        let largest = pages.map(|page| bytes(&page)).max().expect("pages");
        assert!(largest < 200_000, "{largest}");
    }
    // One alone is passed on with all it needs.
    place.write("run.txt", run);
    place.assay(&["import", "run.txt", "-o", "one"]).code(0);
    assert!(!place.path("one/assay-plotly.js").exists());
}

/// The kit waits 30 s between the first snapshot and the work, and its banner says how long the work was.
#[test]
fn the_banner_of_the_kit_and_its_awr_are_one_record_that_says_the_tail_is_idle() {
    const BANNER: &str = include_str!("../../../../testdata/slob-banner-2.5.4.txt");
    const AWR: &str = include_str!("../../../../testdata/awr/awr-11.2.txt");
    let place = Place::new();
    place.write("banner.txt", &BANNER.replace("RUN_TIME: 300", "RUN_TIME: 540"));
    place.write("awr.txt", AWR);
    let done = place.assay(&["import", "banner.txt", "awr.txt", "-o", "run"]).code(0);
    let record: Value = serde_json::from_str(&place.read("run/record.json")).expect("JSON");
    let files = record["provenance"]["files"].as_array().expect("files");
    assert_eq!(files.len(), 2);
    assert!(done.out.contains("540") && done.out.contains("600"), "{}", done.out);
}
