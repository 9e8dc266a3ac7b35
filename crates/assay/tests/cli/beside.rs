//! What runs beside a run: the external script, commands at instants, and the activity history.

use crate::common::{Place, Ran, with};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A run that ends soon, in a directory of a known name.
const RUN: &[&str] = &[
    "run", "--target", "null:", "-s", "2", "-t", "2", "--time", "1", "--warmup", "0", "-o", "kept", "--format", "full",
];

/// A place with an executable `hook` that notes each call, then goes on with `more`.
fn hooked(more: &str) -> Place {
    let place = Place::new();
    // Whether there is a series with a snapshot, and whether there is a report, at each call.
    let hook = format!(
        "echo \"$1 $# $ASSAYRUN_ID $(grep -c '\"mark\"' \"$ASSAYRUN_DIR/series.jsonl\") \
         $(ls \"$ASSAYRUN_DIR\" | grep -c report.txt) [$ASSAYRUN_BEGIN]\" >> calls\necho said $1\n{more}\n"
    );
    place.write("hook", &hook);
    let path = place.path("hook");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    place.write("slob.conf", "EXTERNAL_SCRIPT=./hook\n");
    place
}

fn calls(place: &Place) -> Vec<Vec<String>> {
    let text = place.read("calls");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    text.lines().map(words).collect()
}

fn record(place: &Place) -> serde_json::Value {
    serde_json::from_str(&place.read("kept/record.json")).expect("a record")
}

fn run(place: &Place, more: &[&str]) -> Ran {
    place.assay(&with(&with(RUN, &["-c", "slob.conf"]), more))
}

#[test]
fn slob_40_the_script_is_called_three_times_in_order_around_the_operations() {
    let place = hooked("");
    let done = run(&place, &[]).code(0);
    let calls = calls(&place);
    let names: Vec<&str> = calls.iter().map(|words| words[0].as_str()).collect();
    assert_eq!(names, ["pre", "post", "end"]);
    let record = record(&place);
    for words in &calls {
        assert_eq!(words[1], "1", "one argument: {words:?}");
        assert_eq!(words[2], record["run"]["id"], "{words:?}");
    }
    // pre: no snapshot yet, so the gate is shut; post: the last is written, no report yet.
    assert_eq!((calls[0][3].as_str(), calls[0][4].as_str()), ("0", "0"));
    assert!(calls[1][3].parse::<u32>().is_ok_and(|marks| marks >= 3), "{calls:?}");
    assert_eq!(calls[1][4], "0");
    assert_eq!(calls[2][4], "1");
    assert_eq!(calls[0][5], "[]", "no instant is known before the gate");
    let begin = record["interval"]["begin"].as_str().expect("a wall time");
    assert_eq!(calls[2][5], format!("[{begin}]"));
    for call in ["pre", "post", "end"] {
        assert_eq!(place.read(&format!("kept/script-{call}.out")), format!("said {call}\n"));
    }
    for line in ["external script: ./hook pre; exit 0", "external script: ./hook post; exit 0"] {
        assert!(done.out.contains(line), "{line}: {}", done.out);
    }
}

#[test]
fn slob_40_pre_that_fails_stops_the_run_before_any_operation() {
    let place = hooked("echo the array is busy; [ $1 != pre ]");
    let refused = run(&place, &[]).code(3);
    let error = refused.errors().join("\n");
    for words in ["EXTERNAL_SCRIPT ./hook pre: exit 1", "the array is busy", "no operation was performed"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(calls(&place).len(), 1, "no other call follows");
    assert!(!place.path("kept").exists(), "a run that never began leaves nothing");
}

#[test]
fn slob_40_later_failures_only_warn() {
    let place = hooked("[ $1 = pre ]");
    let done = run(&place, &[]).code(0);
    assert_eq!(calls(&place).len(), 3);
    for call in ["post", "end"] {
        let warning = format!("warning: EXTERNAL_SCRIPT ./hook {call}: exit 1");
        assert!(done.err.contains(&warning), "{}", done.err);
    }
    assert!(done.out.contains("./hook post: exit 1"), "{}", done.out);
    assert_eq!(record(&place)["run"]["verdict"], "complete");
}

#[test]
fn slob_40_a_script_that_hangs_is_killed() {
    let place = hooked("sleep 1000");
    let refused = run(&place, &["--set", "EXTERNAL_SCRIPT_TIMEOUT=0.5"]).code(3);
    assert!(refused.errors()[0].contains("killed after 0.5 s"), "{}", refused.err);
}

#[test]
fn a_script_must_be_there_and_executable_and_is_not_called_by_a_dry_run() {
    let place = hooked("");
    run(&place, &["--dry-run"]).code(0);
    assert!(!place.path("calls").exists());
    fs::set_permissions(place.path("hook"), fs::Permissions::from_mode(0o644)).expect("set");
    let refused = run(&place, &[]).code(2);
    assert!(refused.errors()[0].contains("it is not executable"), "{}", refused.err);
    place.write("slob.conf", "EXTERNAL_SCRIPT=./none\n");
    let refused = run(&place, &[]).code(2);
    assert!(refused.errors()[0].contains("EXTERNAL_SCRIPT=./none"), "{}", refused.err);
    assert_eq!(place.files(), ["hook", "slob.conf"]);
}

#[test]
fn commands_run_at_their_instants_and_the_report_tells_how_they_ended() {
    let place = Place::new();
    let done = place
        .assay(&with(
            RUN,
            &["--at", "500ms", "echo heard; echo $ASSAYRUN_DIR", "--at", "200ms", "exit 3", "--at", "0", "kill -9 $$"],
        ))
        .code(0);
    let record = record(&place);
    let rows = record["timeline"].as_array().expect("rows");
    let seen: Vec<_> =
        rows.iter().map(|row| (row["text"].as_str(), row["status"].as_str(), row["output"].as_str())).collect();
    assert_eq!(
        seen,
        [
            (Some("kill -9 $$"), Some("killed by signal 9"), Some("at-3.out")),
            (Some("exit 3"), Some("exit 3"), Some("at-2.out")),
            (Some("echo heard; echo $ASSAYRUN_DIR"), Some("exit 0"), Some("at-1.out")),
        ]
    );
    for (row, at_s) in rows.iter().zip([0.0, 0.2, 0.5]) {
        // Never early; how late, a busy machine decides.
        assert!(row["at_s"].as_f64().is_some_and(|at| at >= at_s), "{row}");
    }
    let kept = fs::canonicalize(place.path("kept")).expect("there");
    let said = place.read("kept/at-1.out");
    assert!(said.starts_with("heard\n") && said.contains("kept"), "{said}");
    assert!(kept.ends_with("kept"));
    assert!(done.out.contains("command: exit 3; exit 3 after"), "{}", done.out);
    place.assay(&["runs", "rm", "kept", "--dir", "."]).code(0);
    assert!(!place.path("kept").exists(), "what commands said goes with the run");
}

#[test]
fn a_command_beyond_the_run_is_told_or_refused_and_a_dry_run_starts_none() {
    let place = Place::new();
    let refused = place.assay(&with(RUN, &["--at", "5s", "touch f"])).code(2);
    assert!(refused.errors()[0].contains("--at 5 s: the run ends after 1 s"), "{}", refused.err);
    let refused = place.assay(&with(RUN, &["--at", "soon", "touch f"])).code(2);
    assert!(refused.errors()[0].contains("--at=soon is not a duration"), "{}", refused.err);
    let dry = place.assay(&with(RUN, &["--at", "0.5", "touch f", "--dry-run"])).code(0);
    assert!(dry.out.contains("command at 0.5 s           touch f"), "{}", dry.out);
    assert_eq!(place.files(), Vec::<String>::new());
    let counted = ["run", "--target", "null:", "--set", "WORK_LOOP=50", "-o", "kept"];
    place.assay(&with(&counted, &["--at", "1h", "touch f"])).code(0);
    let row = &record(&place)["timeline"][0];
    assert_eq!(row["status"], "not started: the run ended before its start time");
    assert!(!place.path("f").exists());
}

#[test]
fn identity_i28_samples_agree_with_the_clocks_and_think_time_is_no_activity() {
    let place = Place::new();
    let think = ["THINK_TM_FREQUENCY=1", "THINK_TM_MIN=0.01", "THINK_TM_MAX=0.02"];
    let sets: Vec<&str> = think.iter().flat_map(|set| ["--set", *set]).collect();
    place.assay(&with(RUN, &sets)).code(0);
    let idle = record(&place);
    let active = idle["instance"]["ash"]["active_count"].as_f64().expect("ticks were made");
    // Four sessions that think nearly all the time: a thousandth of them is active.
    assert!(active < 1.0, "{active}");
    fs::remove_dir_all(place.path("kept")).expect("removed");
    place.assay(RUN).code(0);
    let busy = record(&place);
    let ash = &busy["instance"]["ash"];
    assert!(ash["ticks_count"].as_u64().is_some_and(|n| n > 0), "{ash}");
    assert_eq!(ash["max_active_count"], 4);
    assert!(ash["by_class"].get("CPU").is_some(), "{ash}");
    let identity = |id: &str| {
        let all = busy["integrity"].as_array().expect("identities");
        let found = all.iter().find(|identity| identity["id"] == id);
        found.unwrap_or_else(|| panic!("no {id}"))["ok"].clone()
    };
    assert_eq!(identity("ASH"), true);
}

#[test]
fn what_a_killed_run_had_started_beside_it_is_killed_too() {
    // A monitor that the script leaves running, and a command with a child of its own.
    let place = hooked("[ $1 = pre ] && { sleep 1000 & echo $! >> children; }\ntrue");
    let at = "sleep 1000 & echo $! >> children; sleep 1000";
    let args =
        ["run", "--target", "null:", "-s", "1", "--time", "60", "-o", "kept", "-c", "slob.conf", "--at", "100ms", at];
    let children = || -> Vec<u32> {
        let told = fs::read_to_string(place.path("children")).unwrap_or_default();
        told.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let lives = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let started = place.start(&args).until("child", || children().len() == 2);
    assert!(children().iter().all(lives), "the script's lives on, too");
    started.kill();
    let begun = std::time::Instant::now();
    while children().iter().any(lives) {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", children());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
