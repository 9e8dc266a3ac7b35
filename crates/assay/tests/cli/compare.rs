//! `compare` and `run --repeat` at the command line.

use crate::common::{BRIEF, Place, with};
use serde_json::{Value, json};

/// A record with nothing but a few rates and a setting: what a reader needs and no more.
fn record(place: &Place, name: &str, ops_per_s: f64, work_unit: &str) {
    let row = |name: &str, per_s: f64| json!({"name": name, "unit": "count", "total": per_s * 60.0, "per_s": per_s, "per_op": per_s / ops_per_s});
    let record = json!({
        "schema": "assay/2",
        "kind": "slob",
        "run": {"id": name, "workload": "slob", "engine": "native", "version": "0.1.0", "verdict": "complete", "sessions": 4},
        "interval": {"elapsed_s": 60.0, "begin_s": 6.0},
        "plan": {"settings": [{"name": "WORK_UNIT", "value": work_unit, "origin": "cli"}]},
        "instance": {"load_profile": [
            row("Operations", ops_per_s),
            row("Read IO requests", ops_per_s * 60.0),
            row("Logical read (blocks)", ops_per_s * 67.0),
        ]},
    });
    std::fs::create_dir_all(place.path(name)).expect("made");
    place.write(&format!("{name}/record.json"), &record.to_string());
}

fn row<'a>(comparison: &'a Value, key: &str) -> &'a Value {
    let rows = comparison["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

/// Two groups of three: about 1000 and about 900 operations a second.
fn two_groups(place: &Place) {
    for (i, rate) in [1000.0, 1004.0, 996.0].into_iter().enumerate() {
        record(place, &format!("a{i}"), rate, "64");
        record(place, &format!("b{i}"), rate * 0.9, "64");
    }
}

const GROUPS: &[&str] = &["compare", "a0,a1,a2", "b0,b1,b2"];

#[test]
fn groups_of_repeats_are_compared_and_gates_decide_the_exit_code() {
    let place = Place::new();
    two_groups(&place);
    let answer = place.assay(GROUPS).code(0).out;
    assert!(answer.starts_with("B is 10.0 % slower than A (Operations 1,000 and 900/s, 95 % interval"), "{answer}");
    assert!(answer.lines().count() <= 40, "{answer}");
    let done = place.assay(&with(GROUPS, &["--format", "text"])).code(0);
    assert!(done.out.contains("Operations: B does 10.0 % less per second than A"), "{}", done.out);
    assert!(done.out.contains("Shows %"), "{}", done.out);
    assert!(!done.out.contains("WORK_UNIT"), "{}", done.out);
    let listed = place.assay(&with(GROUPS, &["--same"])).code(0);
    assert!(listed.out.contains("WORK_UNIT"), "{}", listed.out);
    let done = place.assay(&with(GROUPS, &["--format", "json"])).code(0);
    let comparison = crate::common::json(&done.out);
    assert_eq!(comparison["schema"], "assay-compare/1");
    assert_eq!(row(&comparison, "ops_per_s")["against"][0]["verdict"], "worse");
    let gate = |text: &str, code: i32| place.assay(&with(GROUPS, &["--fail-if", text])).code(code);
    let fired = gate("ops_per_s < -5%", 5);
    for words in [
        "error: regression: ops_per_s fell by 10.0 %",
        "limit a fall of 5 %: failed (B 899.995/s, A 999.995/s",
        "95 % interval",
    ] {
        assert!(fired.err.contains(words), "{words}: {}", fired.err);
    }
    assert_eq!(fired.out, answer, "the product comes all the same");
    let kept = gate("ops_per_s < -15%", 0);
    assert!(kept.err.contains("gate: ops_per_s fell by 10.0 %, limit a fall of 15 %: passed"), "{}", kept.err);
    gate("ops_per_s < 950", 5);
    gate("ops_per_s > 950", 0);
    let unknown = gate("opps_per_s < -5%", 2);
    assert!(unknown.err.contains("ops_per_s"), "{}", unknown.err);
    assert_eq!(unknown.out, "");
    let malformed = gate("ops_per_s -5%", 2);
    assert!(malformed.err.contains("KEY < LIMIT"), "{}", malformed.err);
}

#[test]
fn a_change_beyond_its_limit_that_may_be_noise_is_neither_passed_nor_a_regression() {
    let place = Place::new();
    for (i, rate) in [1000.0, 1300.0, 700.0].into_iter().enumerate() {
        record(&place, &format!("a{i}"), rate, "64");
        record(&place, &format!("b{i}"), rate * 0.9, "64");
    }
    let args = with(GROUPS, &["--fail-if", "ops_per_s < -5%"]);
    let unsure = place.assay(&args).code(4);
    let words =
        "error: could not be judged: ops_per_s fell by 10.0 %, limit a fall of 5 %: beyond the limit, but it cannot";
    assert!(unsure.err.contains(words), "{}", unsure.err);
    place.assay(&with(&args, &["--fail-if-unsure"])).code(5);
}

#[test]
fn another_test_is_neither_faster_nor_judged_by_a_gate() {
    let place = Place::new();
    record(&place, "a", 1000.0, "64");
    record(&place, "b", 2000.0, "16");
    let done = place.assay(&["compare", "a", "b", "--fail-if", "ops_per_s < -5%"]).code(4);
    assert!(done.out.contains("Not the same test: WORK_UNIT 64 and 16"), "{}", done.out);
    assert!(!done.out.contains("per second than"), "{}", done.out);
    assert!(done.err.contains("cannot be judged"), "{}", done.err);
}

#[test]
fn what_is_varied_on_purpose_is_said_and_gates_judge_it() {
    let place = Place::new();
    record(&place, "a", 1000.0, "64");
    record(&place, "b", 2000.0, "16");
    let args = ["compare", "a", "b", "--fail-if", "ops_per_s < -5%", "--allow"];
    let done = place.assay(&with(&args, &["work_unit"])).code(0);
    assert!(done.out.contains("Varied on purpose: WORK_UNIT 64 and 16"), "{}", done.out);
    assert!(done.err.contains("passed"), "{}", done.err);
    assert!(!done.out.contains("Not the same test"), "{}", done.out);
    let wrong = place.assay(&with(&args, &["WORK_UNITS"])).code(2);
    assert!(wrong.err.contains("did you mean WORK_UNIT?"), "{}", wrong.err);
    // Another difference forbids a verdict as before.
    let other = place.assay(&with(&args, &["sessions"])).code(4);
    assert!(other.out.contains("Not the same test: WORK_UNIT 64 and 16"), "{}", other.out);
}

#[test]
fn mistakes_name_the_run_and_the_way_out() {
    let place = Place::new();
    record(&place, "a", 1000.0, "64");
    place.write("bad.json", "{}");
    std::fs::create_dir(place.path("empty")).expect("made");
    for (args, words) in [
        (&["compare", "a"][..], "2 values"),
        (&["compare", "a", "nowhere"], "assay runs list"),
        (&["compare", "a", "empty"], "record.json"),
        (&["compare", "a", "bad.json"], "bad.json"),
        // What a shell makes of a directory of one run.
        (&["compare", "a", "catalogue.jsonl"], "only one is named"),
        (&["runs", "rm", "--yes", "catalogue.jsonl"], "no run is named"),
        (&["compare", "a", "a", "-o", "no/such/file"], "no/such/file"),
    ] {
        let done = place.assay(args);
        assert!(done.code == 2 || done.code == 6, "{args:?}: {}", done.code);
        assert_eq!(done.out, "", "{args:?}");
        assert!(done.err.contains(words), "{args:?}: {}", done.err);
    }
}

#[test]
fn faces_go_to_a_file_where_asked() {
    let place = Place::new();
    two_groups(&place);
    let done = place.assay(&with(GROUPS, &["-o", "compared.txt"])).code(0);
    assert!(done.out.starts_with("B is 10.0 % slower than A"), "{}", done.out);
    assert!(place.read("compared.txt").starts_with("Comparison"));
    place.assay(&with(GROUPS, &["-o", "compared.html"])).code(0);
    assert_eq!(place.assay(&with(GROUPS, &["--format", "html", "-o", "again.html"])).code(0).out, "");
    assert_eq!(place.read("again.html"), place.read("compared.html"));
    let page = place.read("compared.html");
    assert!(page.contains("<!DOCTYPE html>") || page.contains("<!doctype html>"));
    place.write(
        "prices.toml",
        "date = 2026-11-01\ncurrency = \"USD\"\nsource = \"a price list\"\n\n[[platform]]\nname = \"box\"\n\n[[platform.hourly]]\nname = \"host\"\nprice = 0.1\n",
    );
    let done = place.assay(&with(GROUPS, &["--cost", "prices.toml", "--platform", "box", "--format", "full"]));
    // What a price file looks like is the cost command's own matter; here it is enough that it reaches the tables.
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("cost_per_million_ops"), "{}", done.out);
}

#[test]
fn repeats_are_one_group_with_a_noise_floor() {
    let place = Place::new();
    let repeats = ["--repeat", "3", "-o", "three", "--label", "night"];
    let done = place.assay(&with(BRIEF, &repeats)).code(0);
    assert!(done.out.contains("A/A Noise Floor"), "{}", done.out);
    assert!(done.out.contains("3 of 3 runs, complete") && done.out.contains("label night"), "{}", done.out);
    assert_eq!(place.read("three/repeat.txt"), done.out);
    let kept = crate::common::json(&place.read("three/repeat.json"));
    assert_eq!(kept["schema"], "assay-repeat/1");
    assert_eq!(kept["runs"].as_array().map(Vec::len), Some(3));
    let noise = kept["noise"].as_array().expect("noise");
    assert!(noise.iter().any(|row| row["key"] == "ops_per_s" && row["variation_pct"].is_f64()));
    let compared = place.assay(&["compare", "three", "three", "--format", "json"]).code(0);
    let comparison = crate::common::json(&compared.out);
    assert_eq!(comparison["pairs"][0]["shared_runs"].as_array().map(Vec::len), Some(3));
    assert_eq!(row(&comparison, "ops_per_s")["against"][0]["verdict"], "na");
    assert!(compared.err.contains("notice: ") && compared.err.contains("no gate is judged"), "{}", compared.err);
    let gate = |text: &str, code: i32| place.assay(&["compare", "three", "three", "--fail-if", text]).code(code);
    let relative = gate("ops_per_s < -5%", 4);
    assert!(relative.out.contains("the same runs") && relative.err.contains("cannot be judged"), "{}", relative.err);
    assert!(gate("ops_per_s < 1", 0).err.contains("limit at least 1/s: passed"));
    assert_eq!(place.assay(&["report", "three"]).code(0).out, done.out);
    let lines = place.assay(&["report", "three", "--format", "summary"]).code(0).out;
    assert_eq!(lines.lines().count(), 5);
    place.assay(&["report", "three", "--format", "csv"]).code(2);
    let listed = place.assay(&["runs", "list", "--dir", ".", "--format", "json"]).code(0).out;
    assert!(listed.contains("three") && listed.contains("repeat"), "{listed}");
    let shown = place.assay(&["runs", "show", "three"]).code(0).out;
    assert!(shown.contains("repeat-3"), "{shown}");
    place.assay(&["runs", "rm", "three"]).code(0);
    assert!(!place.path("three").exists());
}

#[test]
fn interrupted_repeats_keep_what_there_is() {
    let place = Place::new();
    let run = ["run", "--target", "null:", "--time", "1", "--warmup", "0", "--repeat", "50", "-o", "cut"];
    let child = place.start(&run).until("second run", || place.measures("cut/repeat-2"));
    child.signal(rustix::process::Signal::INT);
    let done = child.ended().code(130);
    assert!(done.out.contains("stopped on request"), "{}", done.out);
    assert_eq!(crate::common::json(&place.read("cut/repeat.json"))["verdict"], "incomplete");
}
