//! Whole runs on native data sets: prepare, run, report, run again.

use crate::common::{Place, Ran, SMALL, Started, json, set, with};
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

/// A run that ends soon; its figures are not the point.
fn short(place: &Place, more: &[&str]) -> Ran {
    let args = ["run", "--set", "WORK_LOOP=50", "--set", "CACHE_MB=4"];
    let report = if more.contains(&"--format") { &[][..] } else { &["--format", "full"] };
    place.assay(&with(&with(&args, report), more))
}

fn setting<'a>(record: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let settings = record["plan"]["settings"].as_array().expect("a list");
    let line = settings.iter().find(|line| line["name"] == name);
    line.unwrap_or_else(|| panic!("{name} is not in the record"))
}

fn whole_run(record: &serde_json::Value, key: &str) -> u64 {
    record["instance"]["stats"][key]["whole_run_total"]
        .as_u64()
        .unwrap_or_else(|| panic!("{key}: {}", record["instance"]["stats"][key]))
}

#[test]
fn the_first_run_prepares_and_the_second_reuses_the_data() {
    let place = Place::new();
    let args = with(&["run", "--set", "WORK_LOOP=50", "--format", "full"], SMALL);
    let first = place.assay(&args).code(0);
    assert!(first.err.contains("assay prepares it first"), "{}", first.err);
    assert!(first.out.trim_end().ends_with("End of Report"));
    let control = place.path("assay-data/control.assay");
    let made = fs::metadata(&control).expect("prepared").created().ok();
    let second = place.assay(&args).code(0);
    assert!(!second.err.contains("prepares it first"), "{}", second.err);
    assert_eq!(fs::metadata(&control).expect("still there").created().ok(), made);
    assert_eq!(
        fs::read_dir(place.path("assay-runs"))
            .expect("kept")
            .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir()))
            .count(),
        2
    );
    place.assay(&["check"]).code(0);
}

#[test]
fn the_grep_of_the_field_works_on_the_report() {
    let place = Place::prepared("1");
    let report = short(&place, &[]).code(0).out;
    let lines: Vec<&str> = report.lines().collect();
    let found: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].contains("physical read IO requests")).collect();
    assert_eq!(found.len(), 1, "the words are on exactly one line");
    let window = &lines[found[0]..(found[0] + 35).min(lines.len())];
    let physical: Vec<&str> = window.iter().copied().filter(|line| line.contains("physical")).collect();
    for name in [
        "physical read bytes",
        "physical read total IO requests",
        "physical read total bytes",
        "physical reads",
        "physical reads cache",
        "physical write IO requests",
        "physical write bytes",
        "physical writes",
    ] {
        assert!(
            physical.iter().any(|line| line.trim_start().starts_with(name)),
            "{name} is not in\n{}",
            physical.join("\n")
        );
    }
}

#[test]
fn slob_42_the_field_file_runs_as_it_says_and_every_parameter_is_reported() {
    let place = Place::new();
    let text = include_str!("../../../../testdata/slob-r1.conf");
    place.write("slob-r1.conf", text);
    let sizes = ["--set", "REDO_LOG_MB=32", "--set", "UNDO_MB=8"];
    place.assay(&with(&["prepare", "--target", "native:d", "-c", "slob-r1.conf", "-s", "2"], &sizes)).code(0);
    let args = [
        "run",
        "--target",
        "native:d",
        "-c",
        "slob-r1.conf",
        "-s",
        "2",
        // Both sessions end by count: a busy host may do one operation a second.
        "--set",
        "WORK_LOOP=8",
        "--warmup",
        "0",
        "--format",
        "json",
        "-o",
        "out",
        "--set",
        "TRACE=trace.csv",
    ];
    let record = json(&place.assay(&args).code(0).out);
    for (name, value, origin) in [
        ("UPDATE_PCT", "30", "file slob-r1.conf:1"),
        ("WORK_UNIT", "256", "file slob-r1.conf:6"),
        ("WORK_LOOP", "8", "cli"),
        ("EDGE", "clamp", "default"),
        ("SYSDBA_PASSWD", "***", "file slob-r1.conf:16"),
    ] {
        assert_eq!(setting(&record, name)["value"], value, "{name}");
        assert_eq!(setting(&record, name)["origin"], origin, "{name}");
    }
    let trace = place.read("trace.csv");
    let rows: Vec<Vec<&str>> = trace.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let count = |wanted: &dyn Fn(&[&str]) -> bool| rows.iter().filter(|row| wanted(row)).count();
    // Session 2 lives on schema 2 and does every second operation on schema 1.
    let second = count(&|row| row[0] == "2");
    let redirected = count(&|row| row[0] == "2" && row[4] == "1");
    assert_eq!((second, redirected), (8, 4), "operations of session 2, and of these on schema 1");
    let updates = count(&|row| row[3] == "update");
    assert_eq!(count(&|row| row[6] == "256"), rows.len(), "every operation touches 256 keys");
    assert_eq!(whole_run(&record, "user_commits_count"), updates as u64);
    assert!(!place.read("out/report.txt").contains("Welcome1"));
}

#[test]
fn slob_46_term_leaves_an_incomplete_report_and_a_data_set_that_passes_its_check() {
    let place = Place::prepared("2");
    let child = place.start(&["run", "--time", "10m", "--warmup", "0", "--set", "UPDATE_PCT=50"]);
    let child = child.until("second", || place.has_mark("second"));
    child.signal(rustix::process::Signal::TERM);
    let done = child.ended().code(130);
    assert!(done.out.to_lowercase().contains("incomplete"));
    place.assay(&["check"]).code(0);
    short(&place, &[]).code(0);
}

#[test]
fn a_killed_run_keeps_its_history_and_leaves_a_data_set_that_whoever_opens_it_recovers() {
    let place = Place::prepared("1");
    let killed = |run: &str| {
        let args =
            ["run", "--time", "10m", "--warmup", "0", "--set", "UPDATE_PCT=100", "--at", "0", "echo heard", "-o"];
        let series = || fs::read_to_string(place.path(run).join("series.jsonl")).unwrap_or_default();
        let child = place.start(&with(&args, &[run])).until("command and second", || {
            let lines = series();
            lines.contains("\"status\":\"exit 0\"") && lines.matches("\"mark\":\"second\"").count() >= 3
        });
        child.kill();
    };
    killed("one");
    let recovered = place.assay(&["runs", "recover", "one"]).code(0);
    assert!(recovered.out.contains("Limited by"), "{}", recovered.out);
    let report = place.assay(&["report", "one"]).code(0).out;
    for part in ["command: echo heard; exit 0", "Sessions inside a call, sampled every", "physical read IO requests"] {
        assert!(report.contains(part), "no {part}:\n{report}");
    }
    let next = short(&place, &[]).code(0);
    assert!(next.out.contains("recovered_commits"), "{}", next.out);
    killed("two");
    let checked = place.assay(&["check"]).code(0);
    assert!(checked.out.contains("Commits replayed"), "{}", checked.out);
}

/// Stopped by a signal, as a paused machine stops it: whatever measures says so first, and ends with the finding in its record.
#[test]
fn a_process_that_stood_still_says_so_before_anything_else() {
    let place = Place::prepared("1");
    let of_io = ["io", "--name=j", "--filename=f", "--rw=randread", "--size=4m", "--time_based", "--runtime=9"];
    let run = place.start(&["run", "--time", "9", "--warmup", "0", "--set", "THINK_TM_FREQUENCY=100", "-o", "run"]);
    let io = place.start(&with(&of_io, &["--thinktime=100", "-o", "io"]));
    let cpu = place.start(&["cpu", "--time", "9s", "-o", "cpu"]).computed(Duration::from_millis(500));
    let all = [run.until("the window begins", || place.measures("run")), io.computed(Duration::from_millis(100)), cpu];
    all.iter().for_each(|one| one.signal(Signal::STOP));
    std::thread::sleep(Duration::from_secs(3));
    all.iter().for_each(|one| one.signal(Signal::CONT));
    for (ran, name) in all.map(Started::ended).into_iter().zip(["run", "io", "cpu"]) {
        let ran = ran.code(0);
        assert!(ran.out.contains("H1: assay stood still for"), "{name}: {}", ran.out);
        let advice = &json(&place.read(&format!("{name}/record.json")))["advice"][0];
        assert_eq!((&advice["id"], &advice["severity"]), (&"H1".into(), &"high".into()), "{advice}");
    }
}

#[test]
fn slob_27_sessions_use_the_schemas_asked_for() {
    let place = Place::prepared("4");
    let args = ["-s", "2", "-t", "3", "--format", "json"];
    let one = with(&args, &set(&["TRACE=t.csv", "THREADS_PER_SCHEMA=1"]));
    let record = json(&short(&place, &one).code(0).out);
    assert_eq!(record["run"]["sessions"], 2, "--set comes later than -t and counts");
    let three = with(&args, &set(&["TRACE=u.csv"]));
    let record = json(&short(&place, &three).code(0).out);
    assert_eq!(record["run"]["sessions"], 6);
    let trace = place.read("u.csv");
    let schemas: std::collections::BTreeSet<&str> =
        trace.lines().skip(1).filter_map(|line| line.split(',').nth(4)).collect();
    assert_eq!(schemas.into_iter().collect::<Vec<_>>(), ["1", "2"]);
}

#[test]
fn slob_49_the_summary_reproduces_the_record() {
    let place = Place::prepared("1");
    let record = json(&short(&place, &["--format", "json", "--set", "UPDATE_PCT=0"]).code(0).out);
    let summary = place.assay(&["report", "last", "--format", "summary"]).code(0).out;
    let lines: Vec<Vec<&str>> = summary.lines().map(|line| line.split('|').collect()).collect();
    let column = |name: &str| {
        let at = lines[0].iter().position(|head| *head == name);
        lines[2][at.unwrap_or_else(|| panic!("{name} is not in {:?}", lines[0]))]
    };
    assert_eq!(column("SESSIONS"), "1");
    let ops = record["interval"]["ops_count"].as_f64().expect("a number");
    let elapsed = record["interval"]["elapsed_s"].as_f64().expect("a number");
    let executes: f64 = column("EXECUTES").replace(',', "").parse().expect("a number");
    assert!((executes - ops / elapsed).abs() <= 1.0, "{executes}");
    assert_eq!(column("DPR_LAT"), "", "no scan, no direct path read: empty, not 0");
}

#[test]
fn a_parallel_scan_reads_past_the_cache_and_reports_its_bandwidth() {
    let place = Place::new();
    let table = with(SMALL, &["--set", "SCAN_TABLE_SZ=4M"]);
    place.assay(&with(&["prepare", "-s", "2"], &table)).code(0);
    let scan = ["--set", "SCAN_PCT=100", "--set", "UPDATE_PCT=0"];
    let ours = with(&scan, &["--parallel", "3", "--format", "json"]);
    let record = json(&short(&place, &ours).code(0).out);
    let streams = setting(&record, "SCAN_PARALLEL");
    assert_eq!((&streams["value"], &streams["origin"]), (&"3".into(), &"cli".into()));
    assert_eq!(record["instance"]["scan"]["streams_count"], 3);
    assert!(record["instance"]["scan"]["direct_mb_per_s"].as_f64().expect("a rate") > 0.0);
    // Scans only: what was read past the cache is all there was, whole tables of 512 blocks.
    let blocks = whole_run(&record, "table_scan_blocks_gotten_blocks");
    assert!(blocks > 0 && blocks.is_multiple_of(512), "{blocks}");
    assert_eq!(whole_run(&record, "physical_reads_direct_blocks"), blocks);
    assert_eq!(whole_run(&record, "physical_reads_cache_blocks"), 0);
    let layers = record["instance"]["layers"].as_array().expect("a list");
    assert_eq!(layers.len(), 1, "{layers:?}");
    assert_eq!(layers[0]["event"], "direct path read");
    // Begun on one side, ended on the other: at both ends of the window some are under way,
    // 2 sessions x 3 streams x 4 requests at most.
    let ended = layers[0]["syscall"]["count"].as_u64().expect("a count");
    let begun = record["instance"]["scan"]["direct_requests_count"].as_u64().expect("a count");
    assert!(ended.abs_diff(begun) <= 24, "{ended} of {begun}");
    for identity in record["integrity"].as_array().expect("a list") {
        assert_ne!(identity["ok"], false, "{identity}");
    }
    let text = place.assay(&["report", "last"]).code(0).out;
    for words in ["Latency by Layer", "Scan Throughput", "MiB/s (2^20)"] {
        assert!(text.contains(words), "{words}");
    }
    let wrong = place.assay(&["run", "--parallel", "0", "--dry-run"]).code(2);
    assert!(wrong.err.contains("--parallel"), "{}", wrong.err);
}
