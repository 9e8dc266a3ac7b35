//! Runs at the command line, on the null target: directories, formats, signals, recovery.

use crate::common::{BRIEF, LONG, Place, Started, json, with};
use std::fs;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_run_prints_its_report_alone_and_leaves_its_record() {
    let place = Place::new();
    let done = place.assay(&with(BRIEF, &["--format", "full"])).code(0);
    assert!(done.out.contains("\nASSAY WORKLOAD REPORT"), "{}", done.out);
    assert!(done.out.trim_end().ends_with("End of Report"), "{}", done.out);
    let dir = place.only_run();
    let name = dir.file_name().expect("a name").to_string_lossy().into_owned();
    let parts: Vec<&str> = name.split('-').collect();
    assert_eq!(parts.len(), 3, "{name}");
    assert!(parts[0].len() == 16 && parts[0].ends_with('Z'), "{name}");
    assert_eq!(parts[1], "slob");
    assert_eq!(fs::read_to_string(dir.join("report.txt")).expect("kept"), done.out);
    let record = json(&fs::read_to_string(dir.join("record.json")).expect("kept"));
    assert_eq!(record["schema"], "assay/2");
    assert_eq!(record["run"]["id"], parts[2]);
    assert_eq!(record["run"]["sessions"], 4);
    let effective = fs::read_to_string(dir.join("config/effective")).expect("kept");
    assert!(effective.contains("WORK_LOOP=100 "), "{effective}");
    assert!(!dir.join("config/given").exists(), "no file was given");
}

#[test]
fn json_output_is_the_record_itself() {
    let place = Place::new();
    let args = with(BRIEF, &["--format", "json", "-o", "out/run1"]);
    let done = place.assay(&args).code(0);
    assert_eq!(done.out, place.read("out/run1/record.json"));
    assert_eq!(json(&done.out)["run"]["verdict"], "complete");
    assert!(!place.path("assay-runs").exists());
}

#[test]
fn an_output_directory_that_holds_anything_is_refused_before_the_run() {
    let place = Place::new();
    fs::create_dir(place.path("used")).expect("made");
    place.write("used/file", "mine");
    place.write("plain", "mine");
    for output in ["used", "plain"] {
        let done = place.assay(&with(BRIEF, &["-o", output])).code(2);
        assert_eq!(done.errors().len(), 1, "{}", done.err);
        assert_eq!(done.out, "");
    }
    assert_eq!(place.files(), ["plain", "used/file"]);
}

#[test]
fn slob_42_given_and_effective_configuration_are_kept_without_secrets() {
    let place = Place::new();
    place.write("a.conf", "SYSDBA_PASSWD=\"Welcome1\"  # Welcome1\nUPDATE_PCT=30\n");
    let mut command = place.command(&with(BRIEF, &["-c", "a.conf", "-o", "run", "--format", "json"]));
    command.env("ASSAY_MYSQL_ROOT_PWD", "Welcome2");
    let done = Started::new(command.stdout(Stdio::piped())).ended().code(0);
    assert_eq!(place.read("run/config/given"), "SYSDBA_PASSWD=***\nUPDATE_PCT=30\n");
    for file in place.files() {
        if file != "a.conf" {
            let text = place.read(&file);
            assert!(!text.contains("Welcome1") && !text.contains("Welcome2"), "{file}");
        }
    }
    assert!(!done.out.contains("Welcome") && !done.err.contains("Welcome"));
    let record = json(&done.out);
    let settings = record["plan"]["settings"].as_array().expect("a list").clone();
    let of = |name: &str| {
        let line = settings.iter().find(|line| line["name"] == name);
        line.unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(of("UPDATE_PCT")["origin"], "file a.conf:2");
    assert_eq!(of("SYSDBA_PASSWD")["value"], "***");
    assert_eq!(of("WORK_UNIT")["origin"], "default");
    let report = place.read("run/report.txt");
    for name in ["UPDATE_PCT", "THINK_TM_MAX", "EDGE", "COMPAT", "SEED", "HOTSPOT_MB", "DO_HOTSPOT"] {
        assert!(report.contains(name), "{name} is not in the report");
    }
}

#[test]
fn a_run_is_found_by_id_by_path_and_as_the_last() {
    let place = Place::new();
    place.assay(BRIEF).code(0);
    let dir = place.only_run();
    let text = fs::read_to_string(dir.join("report.txt")).expect("kept");
    let id = dir.to_string_lossy().rsplit('-').next().expect("an id").to_owned();
    let record = dir.join("record.json");
    for run in [id.as_str(), "last", dir.to_str().expect("UTF-8"), record.to_str().expect("UTF-8")] {
        assert_eq!(place.assay(&["report", run]).code(0).out, text, "{run}");
    }
    place.assay(&["report", "nothere"]).code(2);
    place.assay(&["report", "assay-runs"]).code(2);
    let summary = place.assay(&["report", "last", "--format", "summary"]).code(0).out;
    let columns: Vec<usize> = summary.lines().map(|line| line.split('|').count()).collect();
    assert_eq!(columns, [18, 18, 18], "{summary}");
    let csv = place.assay(&["report", "last", "--format", "csv"]).code(0).out;
    assert!(csv.lines().count() >= 2, "{csv}");
    let list = place.assay(&["runs", "list"]).code(0).out;
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains(&id) && list.contains("complete") && list.contains("null"), "{list}");
    let listed = json(&place.assay(&["runs", "list", "--format", "json"]).code(0).out);
    assert_eq!(listed[0]["id"], id.as_str());
    let card = place.assay(&["runs", "show", &id]).code(0).out;
    assert!(card.contains("record.json") && card.contains("seed"), "{card}");
}

#[test]
fn only_runs_are_removed_and_only_their_files() {
    let place = Place::new();
    place.assay(BRIEF).code(0);
    let dir = place.only_run();
    fs::create_dir(place.path("precious")).expect("made");
    place.write("precious/record.json", "{}");
    place.assay(&["runs", "rm", "precious"]).code(2);
    place.assay(&["runs", "rm", dir.to_str().expect("UTF-8"), "precious"]).code(2);
    assert!(dir.join("record.json").exists(), "all or nothing");
    fs::write(dir.join("notes.txt"), "mine").expect("written");
    place.assay(&["runs", "rm", "last"]).code(0);
    assert_eq!(fs::read_to_string(dir.join("notes.txt")).expect("left"), "mine");
    assert!(!dir.join("record.json").exists());
    assert!(place.path("precious/record.json").exists());
}

#[test]
fn slob_46_term_ends_cleanly_with_a_report_marked_incomplete() {
    for (stop, name) in [(rustix::process::Signal::TERM, "TERM"), (rustix::process::Signal::INT, "INT")] {
        let place = Place::new();
        let child = place.start(&with(LONG, &["--format", "full"])).until("second", || place.has_mark("second"));
        child.signal(stop);
        let done = child.ended().code(130);
        assert!(done.out.trim_end().ends_with("End of Report"), "{name}: {}", done.out);
        let dir = place.only_run();
        let record = json(&fs::read_to_string(dir.join("record.json")).expect("kept"));
        assert_eq!(record["run"]["verdict"], "incomplete", "{name}");
        assert!(done.out.to_lowercase().contains("incomplete"), "{name}");
    }
}

#[test]
fn a_killed_run_is_recovered_up_to_its_last_second() {
    let place = Place::new();
    let child = place.start(LONG).until("second", || place.has_mark("second"));
    let dir = place.only_run();
    let seconds = || {
        let series = fs::read_to_string(dir.join("series.jsonl")).expect("kept");
        series.matches("\"mark\":\"second\"").count()
    };
    child.until("third second", || seconds() >= 3).kill();
    assert!(!dir.join("record.json").exists());
    let said = place.assay(&["report", "last"]).code(2);
    assert!(said.err.contains("assay runs recover"), "{}", said.err);
    let list = place.assay(&["runs", "list"]).code(0).out;
    assert!(list.contains("not recovered"), "{list}");

    let seconds = seconds();
    let done = place.assay(&["runs", "recover", "last"]).code(0);
    assert!(done.out.contains("Limited by"), "{}", done.out);
    let record = json(&fs::read_to_string(dir.join("record.json")).expect("rebuilt"));
    assert_eq!(record["run"]["verdict"], "incomplete");
    let elapsed = record["interval"]["elapsed_s"].as_f64().expect("a number");
    assert!((elapsed - seconds as f64).abs() < 0.9, "{elapsed} s of {seconds} seconds");
    let ops = record["interval"]["ops_count"].as_f64().expect("a number");
    assert!(ops > 0.0 && ops <= 100.0 * elapsed + 10.0, "{ops} operations in {elapsed} s at 100/s");
    place.assay(&["runs", "recover", "last"]).code(2);
}

#[test]
fn a_series_with_a_cut_off_line_is_recovered_and_a_foreign_file_is_not() {
    let place = Place::new();
    let whole = place.assay(&with(BRIEF, &["-o", "run", "--format", "json"])).code(0);
    let series = place.read("run/series.jsonl");
    fs::remove_file(place.path("run/record.json")).expect("removed");
    place.write("run/series.jsonl", &series[..series.len() - 40]);
    place.assay(&["runs", "recover", "run"]).code(0);
    let record = json(&place.read("run/record.json"));
    assert_eq!(record["run"]["verdict"], "incomplete");
    assert_eq!(record["interval"]["ops_count"], json(&whole.out)["interval"]["ops_count"], "the window was whole");
    fs::remove_file(place.path("run/record.json")).expect("removed");
    for text in ["", "\n", "{}\n", "not json\n", &series[..series.find('\n').expect("a header") + 1]] {
        place.write("run/series.jsonl", text);
        let done = place.assay(&["runs", "recover", "run"]).code(2);
        assert_eq!(done.errors().len(), 1, "{text}: {}", done.err);
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let place = Place::new();
    let mut child = place.start(BRIEF);
    drop(child.child().stdout.take());
    let done = child.ended().code(0);
    assert_eq!(done.errors(), Vec::<&str>::new());
    assert!(place.only_run().join("record.json").exists());
}

#[test]
fn a_record_that_cannot_be_written_is_exit_6_and_the_report_is_printed() {
    if rustix::process::geteuid().is_root() {
        // Root ignores permissions; a file where the directory should be stops it too.
        let place = Place::new();
        place.write("assay-runs", "a file");
        let done = place.assay(BRIEF).code(6);
        assert_eq!(done.errors().len(), 1, "{}", done.err);
    }
    let full = Path::new("/dev/full");
    let place = Place::new();
    let out = fs::File::options().write(true).open(full).expect("/dev/full is there");
    let done = Started::new(place.command(BRIEF).stdout(out)).ended().code(6);
    assert!(done.err.contains("standard output"), "{}", done.err);
    assert!(place.only_run().join("record.json").exists());
}

#[test]
fn the_same_seed_counts_the_same_operations_and_the_trace_is_kept() {
    let place = Place::new();
    let args = [
        "run",
        "--target",
        "null:",
        "-s",
        "2",
        "-t",
        "2",
        "--set",
        "WORK_LOOP=50",
        "--seed",
        "7",
        "--set",
        "SCALE=2000",
    ];
    for trace in ["a.csv", "b.csv"] {
        let set = format!("TRACE={trace}");
        place.assay(&with(&args, &["--set", &set, "-o", &trace[..1]])).code(0);
    }
    let keys = |name: &str| {
        let mut rows: Vec<Vec<String>> = place
            .read(name)
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(str::to_owned).collect())
            .map(|row: Vec<String>| [0, 1, 3, 4, 5, 6].map(|column| row[column].clone()).to_vec())
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(keys("a.csv").len(), 200);
    assert_eq!(keys("a.csv"), keys("b.csv"), "slob_44");
    let again = place.assay(&with(&args, &["--set", "TRACE=a.csv"])).code(6);
    assert!(again.err.contains("a.csv"), "{}", again.err);
}

#[test]
fn progress_is_a_line_every_ten_seconds_at_most_and_never_on_stdout() {
    let place = Place::new();
    let done = place.assay(BRIEF).code(0);
    let live = done.err.lines().filter(|line| line.contains("ops/s")).count();
    assert!(live <= 1, "{}", done.err);
    assert!(!done.err.contains('\u{1b}'), "no terminal, no escapes: {}", done.err);
}

#[test]
fn runs_are_labelled_tagged_filtered_and_followed() {
    let place = Place::new();
    for (seed, label) in [("1", "nightly"), ("2", "nightly"), ("3", "other")] {
        let output = format!("assay-runs/2026010{seed}T000000Z-slob-0000000{seed}");
        let more = ["--label", label, "--seed", seed, "-o", &output];
        place.assay(&with(BRIEF, &more)).code(0);
    }
    let list = ["runs", "list", "--label", "nightly", "--format", "json"];
    let found = json(&place.assay(&list).code(0).out);
    assert_eq!(found.as_array().map(Vec::len), Some(2));
    assert_eq!(found[0]["label"], "nightly");
    assert_eq!(found[0]["kind"], "slob");
    place.assay(&["runs", "tag", "assay-runs/20260103T000000Z-slob-00000003", "+kept", "disk=old"]).code(0);
    let index = ["runs", "list", "--format", "html", "-o", "assay-runs/index.html"];
    place.assay(&index).code(0);
    let page = place.read("assay-runs/index.html");
    let link = r#"href="20260102T000000Z-slob-00000002/report.html""#;
    assert!(page.contains(link), "a run's page is reached from beside it");
    let whole = place.assay(&["runs", "list", "--format", "html", "-o", "all.html"]);
    whole.code(0);
    assert!(place.read("all.html").contains(r#"href="assay-runs/20260102T"#));
    let tagged = place.assay(&["runs", "list", "--tag", "disk", "--metric", "ops_per_s", "--format", "csv"]);
    let tagged = tagged.code(0).out;
    assert_eq!(tagged.lines().count(), 2, "{tagged}");
    assert!(tagged.contains("disk=old;kept"), "{tagged}");
    let trend = json(&place.assay(&["runs", "trend", "ops_per_s", "--format", "json"]).code(0).out);
    assert_eq!(trend["better"], "higher");
    assert_eq!(trend["runs"].as_array().map(Vec::len), Some(3));
    assert!(trend["runs"][2]["value"].as_f64() > Some(0.0));
    let text = place.assay(&["runs", "trend", "ops_per_s", "--label", "nightly"]).code(0).out;
    assert!(text.contains("2 values, median") && text.contains("higher is better"), "{text}");
    let page = place.assay(&["runs", "trend", "ops_per_s", "--format", "html"]).code(0).out;
    assert!(page.trim_end().ends_with("</html>"), "{page}");
    let shown = place.assay(&["runs", "show", "--format", "answer"]).code(0).out;
    let reported = place.assay(&["report", "--format", "answer"]).code(0).out;
    assert!(shown.starts_with("slob") && shown == reported, "both of the last run: {shown}");
    let slip = place.assay(&["rnu"]).code(2);
    assert!(slip.err.contains("'run'") && !slip.err.contains("runit"), "{}", slip.err);
    let wrong = place.assay(&["runs", "trend", "opps_per_s"]).code(2);
    assert!(wrong.err.contains("near it: ops_per_s"), "{}", wrong.err);
    let wrong = place.assay(&["runs", "tag", "last", "plain"]).code(2);
    assert!(wrong.err.contains("+NAME"), "{}", wrong.err);
    for format in ["metrics-csv", "openmetrics"] {
        let face = place.assay(&["report", "last", "--dir", "assay-runs", "--format", format]);
        assert!(!face.code(0).out.is_empty(), "{format}");
    }
    place.assay(&["runs", "rm", "assay-runs/20260103T000000Z-slob-00000003"]).code(0);
    assert!(!place.path("assay-runs/20260103T000000Z-slob-00000003").exists());
}
