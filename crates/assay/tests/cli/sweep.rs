//! Sweeps on real data: their steps, their summary, their endings.

use crate::common::{Place, json, with};
use serde_json::Value;
use std::fs;

const SHORT: &[&str] = &["sweep", "--time", "1", "--warmup", "0.2", "--set", "CACHE_MB=4", "--format", "json"];

/// What only a sweep has.
fn part(record: &Value) -> &Value {
    &record["parts"]["sweep"]
}

fn texts<'a>(list: &'a Value, pick: impl Fn(&'a Value) -> &'a Value) -> Vec<String> {
    let list = list.as_array().expect("a list");
    list.iter().map(|item| pick(item).to_string()).collect()
}

#[test]
fn each_step_leaves_a_record_and_each_combination_a_curve() {
    let place = Place::prepared("2");
    let lists = [
        "--sessions",
        "3,1,2",
        "--set",
        "READ_MODE=single,batched",
        "--seed",
        "7",
        "-o",
        "swept",
        "--p99",
        "10s",
        // Small operations on cached data: a second has enough of them for a percentile on any disk.
        "--set",
        "WORK_UNIT=1",
        "--set",
        "CACHE_MB=64",
    ];
    let swept = place.assay(&with(SHORT, &lists)).code(0);
    let found = json(&swept.out);
    assert_eq!(found["schema"], "assay/2");
    assert_eq!(found["kind"], "sweep");
    assert_eq!(found["run"]["verdict"], "complete");
    assert_eq!(found["run"]["engine"], "native");
    assert_eq!(found, json(&place.read("swept/record.json")), "printed is what is kept");
    assert!(place.read("swept/report.txt").ends_with("End of Report\n"));
    assert!(place.read("swept/report.html").contains("src=\"assay-plotly.js\""));
    let setting = |name: &str| {
        let settings = found["plan"]["settings"].as_array().expect("settings");
        let line = settings.iter().find(|line| line["name"] == name);
        line.expect("a line")["value"].clone()
    };
    // The lists of what varied, and what all steps have in common.
    assert_eq!(setting("READ_MODE"), "single,batched");
    assert_eq!(setting("SESSIONS"), "1,2,3");
    assert_eq!(setting("WORK_UNIT"), "1");
    assert!(found["interval"]["whole_run_s"].as_f64() > Some(6.0));

    let swept = part(&found);
    let sessions = texts(&swept["steps"], |step| &step["place"]["sessions"]);
    assert_eq!(sessions, ["1", "2", "3", "1", "2", "3"]);
    let held = texts(&swept["curves"], |curve| &curve["held"]["READ_MODE"]);
    assert_eq!(held, ["\"single\"", "\"batched\""]);
    assert_eq!(swept["curves"][1]["steps"], json("[4, 5, 6]"));
    for curve in swept["curves"].as_array().expect("curves") {
        // On a busy host none is shown.
        let sentence = curve["knee"]["sentence"].as_str().expect("text");
        assert!(sentence.starts_with("Knee") || sentence.starts_with("No knee is shown"), "{sentence}");
        // Every step keeps the goal that had enough operations for a percentile: on a starved host not each has.
        let numbers = curve["steps"].as_array().expect("steps").iter();
        let judged = numbers
            .map(|number| &swept["steps"][number.as_u64().expect("a number") as usize - 1])
            .rfind(|step| step["op"]["us_p99"].is_f64());
        let load = judged.map_or(&Value::Null, |step| &step["place"]["sessions"]);
        let found = curve["goal"]["load"].as_f64();
        assert_eq!(found, load.as_f64(), "{}", curve["goal"]["sentence"]);
        assert!(!curve["usl"]["fitted"].as_bool().expect("a truth"), "three steps are too few");
    }

    for step in swept["steps"].as_array().expect("steps") {
        let directory = step["place"]["directory"].as_str().expect("a directory");
        let record = json(&place.read(&format!("swept/{directory}/record.json")));
        assert_eq!(record["run"]["sessions"], step["place"]["sessions"]);
        assert_eq!(record["run"]["seed"], 7);
        let ops = record["interval"]["ops_count"].as_f64().expect("operations");
        let elapsed = record["interval"]["elapsed_s"].as_f64().expect("a window");
        assert_eq!(step["ops_per_s"].as_f64(), Some(ops / elapsed));
        let settings = record["plan"]["settings"].as_array().expect("settings");
        let mode = settings.iter().find(|line| line["name"] == "READ_MODE");
        assert_eq!(mode.expect("a line")["value"], step["place"]["over"]["READ_MODE"]);
        // Session k works on schema ((k - 1) mod schemas) + 1.
        let homes = texts(&record["driver"]["per_session"], |session| &session["schema"]);
        assert_eq!(homes, ["1", "2", "1"][..homes.len()]);
    }
}

#[test]
fn a_sweep_is_kept_listed_shown_and_removed_like_a_run() {
    let place = Place::new();
    let args = ["sweep", "--target", "null:", "--sessions", "1,2", "--time", "1", "--warmup", "0"];
    let swept = place.assay(&args).code(0);
    assert!(swept.err.contains("step 2 of 2, about ") && swept.err.contains(" s left: 2 sessions"), "{}", swept.err);
    let dir = place.only_run();
    let kept = std::fs::read_to_string(dir.join("report.txt")).expect("a report");
    assert_eq!(place.assay(&["report", "last"]).code(0).out, kept);
    let summary = place.assay(&["report", "last", "--format", "summary"]).code(0).out;
    assert_eq!(summary.lines().count(), 4, "{summary}");
    place.assay(&["report", "last", "--format", "csv"]).code(2);
    let listed = place.assay(&["runs", "list"]).code(0).out;
    assert!(listed.contains("slob sweep"), "{listed}");
    let shown = place.assay(&["runs", "show", "last"]).code(0).out;
    assert!(shown.contains("record.json") && shown.contains("\nknee "), "{shown}");
    fs::write(dir.join("mine"), "x").expect("written");
    place.assay(&["runs", "rm", &dir.display().to_string()]).code(0);
    let mut left: Vec<String> = place.files();
    // The catalogue is of the directory, not of a run.
    left.retain(|name| !name.ends_with("catalogue.jsonl"));
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with("/mine"));
}

#[test]
fn sweeps_are_compared_with_sweeps_and_their_steps_with_steps() {
    let place = Place::new();
    for name in ["a", "b"] {
        let args = ["sweep", "--target", "null:", "--sessions", "1,2", "--time", "1", "--warmup", "0", "-o", name];
        place.assay(&args).code(0);
    }
    let gates = ["--fail-if", "2_sessions.ops_per_s > 1"];
    let told = place.assay(&with(&["compare", "a", "b", "--same"], &gates)).code(5);
    let words: Vec<&str> = told.out.split_whitespace().collect();
    let same = words.join(" ").contains("values of sessions 1,2 1,2 same");
    assert!(same, "{}", told.out);
    assert!(told.err.contains("regression: 2_sessions.ops_per_s"), "{}", told.err);
    let step = "b/step-002-sessions-2";
    let told = place.assay(&["compare", "a", step]).code(2);
    assert!(told.err.contains("name the step to compare, such as a/step-001-sessions-1"), "{}", told.err);
    place.assay(&["compare", "a/step-002-sessions-2", step]).code(0);
    let csv = place.assay(&["report", "a", "--format", "metrics-csv"]);
    assert!(csv.code(0).out.contains("ops_per_s,2 sessions,"));
    let answer = place.assay(&["report", "a", "--format", "answer"]).code(0);
    assert!(answer.out.contains("operations/s at the fastest step"), "{}", answer.out);
    let lines = place.assay(&["report", "a", "--format", "summary"]).code(0).out.lines().count();
    assert_eq!(lines, 4, "a line for each step below names and units");
    let refused = place.assay(&["report", "a", "--format", "csv"]).code(2);
    assert!(refused.err.contains("name one of them, such as a/step-001-sessions-1"), "{}", refused.err);
}

#[test]
fn an_automatic_sweep_ends_within_its_bound() {
    let place = Place::new();
    let args = with(SHORT, &["--target", "null:", "--max-sessions", "3", "--sessions", "auto", "-o", "swept"]);
    let found = json(&place.assay(&args).code(0).out);
    let mut sessions: Vec<u64> = part(&found)["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| step["place"]["sessions"].as_u64().expect("a number"))
        .collect();
    assert_eq!(sessions[0], 1);
    let steps = sessions.len();
    sessions.sort_unstable();
    sessions.dedup();
    assert_eq!(sessions.len(), steps, "no load twice");
    assert!(sessions.last().is_some_and(|most| *most <= 3), "{sessions:?}");
}

#[test]
fn cpus_confine_the_threads_of_their_step_alone() {
    let place = Place::new();
    let args = with(SHORT, &["--target", "null:", "--sessions", "2", "--cpus", "1", "-o", "swept"]);
    let found = json(&place.assay(&args).code(0).out);
    let step = &part(&found)["steps"][0];
    assert_eq!(step["place"]["cpus"], 1);
    assert!(step["confined_busy_pct"].is_f64(), "{step}");
    let record = json(&place.read("swept/step-001-sessions-2-cpus-1/record.json"));
    assert_eq!(record["driver"]["threads_count"], 1);
    let facts = record["host"]["facts"].as_array().expect("facts");
    let usable = facts.iter().find(|fact| fact["name"] == "cpus_usable");
    assert_eq!(usable.expect("a fact")["value"], "1");
}

#[test]
fn ctrl_c_summarises_what_there_is() {
    let place = Place::prepared("1");
    let args = ["sweep", "--time", "30", "--sessions", "1,2,4", "--set", "CACHE_MB=4", "-o", "swept"];
    let run = place.start(&args).until("measured window", || place.has_mark("begin"));
    run.signal(rustix::process::Signal::INT);
    let stopped = run.ended().code(130);
    assert!(stopped.out.contains("stopped on request after 1 step"), "{}", stopped.out);
    let found = json(&place.read("swept/record.json"));
    assert_eq!(found["run"]["verdict"], "incomplete");
    let swept = part(&found);
    assert_eq!(swept["steps"][0]["verdict"], "incomplete");
    assert_eq!(swept["curves"][0]["left_out"], json("[1]"));
    // The data set was closed as after any run.
    place.assay(&["check"]).code(0);
}

#[test]
fn a_step_that_cannot_run_is_marked_and_the_others_go_on() {
    let place = Place::prepared("1");
    // An undo file of 8 MiB has no room for the extents of so many sessions.
    let args = with(SHORT, &["--sessions", "1,5000", "--set", "UPDATE_PCT=50,0", "-o", "swept"]);
    let ended = place.assay(&args);
    assert!(ended.code == 2 || ended.code == 3, "{}: {}", ended.code, ended.err);
    let found = json(&place.read("swept/record.json"));
    let found = part(&found);
    let verdicts = texts(&found["steps"], |step| &step["verdict"]);
    assert_eq!(verdicts, ["\"complete\"", "\"failed\"", "\"complete\"", "\"failed\""]);
    assert!(!texts(&found["steps"][1]["verdict_reasons"], |reason| reason).is_empty());
    assert_eq!(found["steps"][1]["ops_per_s"]["na"], "the step failed");
    // On a machine that is very busy a session may end no operation in its second: no point of the curve either.
    let first_ran = found["steps"][0]["ops_per_s"].as_f64() > Some(0.0);
    let left_out = if first_ran { "[2]" } else { "[1,2]" };
    assert_eq!(found["curves"][0]["left_out"], json(left_out));
}

#[test]
fn mistakes_are_told_before_anything_is_touched() {
    let place = Place::new();
    for (args, part) in [
        (&["--sessions", "1,zwei"][..], "zwei"),
        (&["--sessions", "1,1"], "twice"),
        (&["--cpus", "9999"], "may use"),
        (&["--p99", "never"], "--p99"),
        (&["--p99", "5"], "--p99 5: add the unit: --p99 5ms or --p99 5s"),
        (&["--set", "UPDATE_PCT=10,101"], "101"),
        (&["--set", "READ_MODE=single,other"], "other"),
        (&["--set", "TRACE=ops.csv"], "TRACE"),
        (&["--set", "THREADS_PER_SCHEMA=2"], "not both"),
        (&["--set", "SCALE=2000,1G"], "SCALE"),
    ] {
        let told = place.assay(&with(&["sweep"], args)).code(2);
        assert!(told.err.contains(part), "{args:?}: {}", told.err);
        assert_eq!(told.out, "", "{args:?}");
    }
    let plan = place.assay(&["sweep", "--sessions", "1,2", "--set", "UPDATE_PCT=0,10", "--dry-run"]);
    let plan = plan.code(0).out;
    assert!(plan.contains("Sweep of 4 steps"), "{plan}");
    assert!(plan.contains("2 sessions, UPDATE_PCT=10"), "{plan}");
    let plan = place.assay(&["sweep", "--dry-run", "--format", "json"]).code(0).out;
    assert_eq!(json(&plan)["sweep"]["steps"][0], "from 1 session");
    assert_eq!(place.files(), Vec::<String>::new());
}
