//! `assay io`: what it does with words, files and signals.

use crate::common::{Place, Ran, Started, json, with};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// A job that needs no file.
const NULL: &[&str] = &["--name=n", "--ioengine=null", "--size=1g", "--rw=randread", "--time_based", "--runtime=1"];

fn io(place: &Place, words: &[&str]) -> Ran {
    place.assay(&with(&["io"], words))
}

/// Sequential writes of our own file, 8 MiB.
fn own_file(place: &Place, name: &str) {
    let filename = format!("--filename={name}");
    let words = ["--no-record", "--name=make", &filename, "--size=8m", "--rw=write", "--bs=256k"];
    io(place, &words).code(0);
}

#[test]
fn a_run_prints_fios_report_and_leaves_its_record() {
    let place = Place::new();
    let done = io(&place, &with(NULL, &["-o", "run"])).code(0);
    for line in [
        "n: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=null, iodepth=1",
        "n: (groupid=0, jobs=1): err= 0: pid=",
        "  read: IOPS=",
        "Run status group 0 (all jobs):",
    ] {
        assert!(done.out.contains(line), "no {line}: {}", done.out);
    }
    assert_eq!(
        place.files(),
        ["run/config/given", "run/fio.json", "run/record.json", "run/report.html", "run/report.txt"]
    );
    let record = json(&place.read("run/record.json"));
    assert_eq!(record["schema"], "assay/2");
    assert_eq!(record["run"]["workload"], "io");
    assert_eq!(record["run"]["verdict"], "complete");
    assert!(place.read("run/config/given").starts_with("assay io --name=n --ioengine=null"));
    let again = place.assay(&["report", "run"]).code(0);
    assert_eq!(again.out, place.read("run/report.txt"));
    let fio = json(&place.read("run/fio.json"));
    assert_eq!(fio["jobs"][0]["jobname"], "n");
}

#[test]
fn a_directory_alone_is_measured_in_the_usual_way_and_left_as_it_was() {
    let place = Place::new();
    std::fs::create_dir(place.path("disk")).expect("created");
    let words = ["disk", "--size=16m", "--runtime=1", "--no-record", "--output-format=json"];
    let done = io(&place, &words).code(0);
    assert!(!done.out.contains("reads the blocks that"), "it warns of itself: {}", done.out);
    let jobs = json(&done.out)["jobs"].clone();
    for (job, depth) in [(0, "1"), (1, "32")] {
        assert_eq!(jobs[job]["job options"]["iodepth"], depth);
        assert!(jobs[job]["read"]["total_ios"].as_u64() > Some(0));
    }
    assert!(place.files().is_empty(), "{:?}", place.files());
}

#[test]
fn what_a_killed_look_at_a_directory_left_is_named_and_goes_with_the_command() {
    let place = Place::new();
    let disk = place.path("it's a disk");
    std::fs::create_dir(&disk).expect("created");
    let words = ["io", "it's a disk", "--size=16m", "--runtime=60", "--no-record"];
    let quick = ["it's a disk", "--size=16m", "--runtime=1", "--no-record"];
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(&disk).expect("readable");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    };
    let running = place.start(&words).until("scratch file", || names().iter().any(|name| name.ends_with(".scratch")));
    let done = io(&place, &quick).code(0);
    assert!(!done.err.contains("left by"), "it runs: {}", done.err);
    let left = names();
    running.kill();
    assert_eq!(names(), left);
    let done = io(&place, &quick).code(0);
    let told = done.err.lines().find_map(|line| line.split_once("remove with: "));
    let (_, command) = told.unwrap_or_else(|| panic!("{}", done.err));
    assert!(left.iter().all(|name| command.contains(name.as_str())), "{command}");
    let ran = std::process::Command::new("sh").args(["-c", command]).status();
    assert!(ran.expect("a shell").success(), "{command}");
    assert_eq!(names(), Vec::<String>::new());
}

#[test]
fn runs_are_kept_shown_and_removed_like_any_others() {
    let place = Place::new();
    place.write("job.fio", "[one]\nioengine=null\nsize=1g\nnumber_ios=1000\n");
    io(&place, &["job.fio"]).code(0);
    let run = place.only_run();
    assert!(run.to_string_lossy().contains("-io-"), "{}", run.display());
    let kept = std::fs::read_to_string(run.join("config/job-1.fio")).expect("kept");
    assert_eq!(kept, place.read("job.fio"));
    let list = place.assay(&["runs", "list"]).code(0);
    assert!(list.out.contains(" io "), "{}", list.out);
    let card = place.assay(&["runs", "show", "last"]).code(0);
    assert!(card.out.contains("fio.json"), "{}", card.out);
    for format in ["text", "json", "csv", "summary"] {
        place.assay(&["report", "last", "--format", format]).code(0);
    }
    let id = run.to_string_lossy().rsplit('-').next().expect("an id").to_owned();
    place.assay(&["runs", "rm", &id]).code(0);
    // The catalogue is of the directory, not of a run.
    assert_eq!(place.files(), ["assay-runs/catalogue.jsonl", "job.fio"]);
}

#[test]
fn without_a_record_nothing_is_left_and_a_used_directory_is_refused() {
    let place = Place::new();
    io(&place, &with(NULL, &["--no-record"])).code(0);
    assert!(place.files().is_empty());
    std::fs::create_dir(place.path("used")).expect("created");
    place.write("used/file", "theirs");
    let refused = io(&place, &with(NULL, &["-o", "used"])).code(2);
    assert!(refused.errors()[0].contains("never overwrites"), "{}", refused.err);
    assert_eq!(refused.out, "");
}

#[test]
fn mistakes_are_named_with_their_place_and_the_way_out() {
    let place = Place::new();
    place.write("bad.fio", "[a]\nioengine=null\nsize=1g\nrw=sideways\n");
    place.write("nosection.fio", "rw=read\n");
    for (words, text) in [
        (&[][..], "--name=JOB"),
        (&["--name=a", "--iodpeth=4"], "iodepth"),
        (&["--name=a", "--rw=sideways"], "sideways"),
        (&["--name=a", "--ioengine=rados"], "not supported"),
        (&["--name=a", "--bs"], "bs"),
        (&["absent.fio"], "absent.fio"),
        (&["bad.fio"], "line 4"),
        (&["--server"], "not supported"),
        (&["--name=a", "--filename=absent"], "size="),
        (&["--name=a", "--directory=no/such/place", "--size=1m"], "no/such/place"),
    ] {
        let done = io(&place, words).code(2);
        assert_eq!(done.out, "", "{words:?}");
        let errors = done.errors().join("\n");
        assert!(errors.contains(text), "{words:?}: {errors}");
    }
    assert_eq!(place.files(), ["bad.fio", "nosection.fio"]);
}

#[test]
fn io_11_readonly_is_heeded_before_a_file_is_opened() {
    let place = Place::new();
    own_file(&place, "own");
    let before = std::fs::read(place.path("own")).expect("readable");
    let words = ["--readonly", "--name=a", "--filename=own", "--bs=4k", "--rw=randwrite"];
    let done = io(&place, &words).code(2);
    assert!(done.err.contains("--readonly"), "{}", done.err);
    assert_eq!(std::fs::read(place.path("own")).expect("readable"), before);
}

#[test]
fn io_12_a_foreign_file_is_written_only_where_it_is_named() {
    let place = Place::new();
    let theirs = "theirs\n".repeat(20_000);
    place.write("theirs", &theirs);
    let job = ["--no-record", "--name=a", "--filename=theirs", "--bs=4k", "--rw=write", "--size=64k", "--destroy"];
    let done = io(&place, &with(&job, &["own"])).code(3);
    assert!(done.errors()[0].contains("theirs"), "{}", done.err);
    assert_eq!(place.read("theirs"), theirs);
    io(&place, &with(&job, &["theirs"])).code(0);
    let after = std::fs::read(place.path("theirs")).expect("readable");
    assert_eq!(after.len(), theirs.len(), "nothing is cut off");
    assert_ne!(after, theirs.as_bytes());
    assert_eq!(after[65_536..], theirs.as_bytes()[65_536..]);
}

#[test]
fn what_cannot_be_used_is_told_with_exit_3() {
    let place = Place::new();
    std::fs::create_dir(place.path("database")).expect("created");
    place.write("database/PG_VERSION", "15\n");
    for words in [
        &["--name=a", "--filename=/proc/version", "--rw=write", "--size=4k"][..],
        &["--name=a", "--filename=database/x", "--rw=write", "--size=1m"],
    ] {
        let done = io(&place, &with(words, &["--no-record"]));
        assert_eq!(done.code, 3, "{words:?}: {}{}", done.out, done.err);
        assert!(!done.errors().is_empty(), "{words:?}");
    }
    assert_eq!(place.files(), ["database/PG_VERSION"]);
}

#[test]
fn parsing_alone_says_what_would_be_touched_and_touches_nothing() {
    let place = Place::new();
    let job = ["--name=a", "--filename=new", "--rw=write", "--size=1m", "--parse-only"];
    let done = io(&place, &job).code(0);
    assert_eq!(done.out, "");
    assert!(done.err.contains("new"), "{}", done.err);
    place.write("theirs", "theirs");
    let job = ["--name=a", "--filename=theirs", "--rw=write", "--size=1m", "--parse-only"];
    let done = io(&place, &job).code(0);
    assert!(done.err.contains("would refuse the run"), "{}", done.err);
    assert_eq!(place.files(), ["theirs"]);
}

#[test]
fn questions_are_answered_on_stdout() {
    let place = Place::new();
    for (words, text) in [
        (&["--help"][..], "--destroy"),
        (&["-h"], "--destroy"),
        (&["--version"], "assay-"),
        (&["--cmdhelp"], "iodepth"),
        (&["--cmdhelp=bs"], "4096"),
        (&["--enghelp"], "io_uring"),
        (&["--enghelp=io_uring"], "registerfiles"),
        (&["--showcmd", "--name=a", "--rw=randread", "--ioengine=null"], "--name=a"),
    ] {
        let done = io(&place, words).code(0);
        assert!(done.out.contains(text), "{words:?}: {}", done.out);
    }
    io(&place, &["--cmdhelp=nosuch"]).code(2);
    assert!(place.files().is_empty());
}

#[test]
fn a_job_file_with_sections_includes_variables_and_sums_is_run() {
    let place = Place::new();
    place.write("common.inc", "bs=8k\nioengine=null\n");
    place.write(
        "job.fio",
        "; a comment\n[global]\ninclude common.inc\nsize=${SIZE}\nnumber_ios=(10*100)\n\
         [reads]\nrw=randread\n[global]\nbs=16k\n[more]\nrw=read\nstonewall\n",
    );
    let mut command = place.command(&["io", "job.fio", "--output-format=json", "--no-record"]);
    command.env("SIZE", "1g");
    let done = Started::new(command.stdout(Stdio::piped())).ended().code(0);
    let jobs = json(&done.out)["jobs"].clone();
    let names: Vec<&Value> = jobs.as_array().expect("jobs").iter().map(|job| &job["jobname"]).collect();
    assert_eq!(names, ["reads", "more"]);
    assert_eq!(jobs[0]["read"]["total_ios"], 1000);
    assert_eq!(jobs[0]["read"]["io_bytes"], 1000 * 8192);
    assert_eq!(jobs[1]["read"]["io_bytes"], 1000 * 16384);
    assert_eq!(jobs[1]["groupid"], 1);
}

#[test]
fn a_job_file_comes_from_standard_input_and_is_kept() {
    let place = Place::new();
    let text = "[stdin]\nioengine=null\nsize=1g\nnumber_ios=10\n";
    let mut command = place.command(&["io", "-", "-o", "run"]);
    let mut started = Started::new(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut pipe = started.child().stdin.take().expect("a pipe");
    pipe.write_all(text.as_bytes()).expect("written");
    drop(pipe);
    let done = started.ended().code(0);
    assert!(done.out.contains("stdin: (groupid=0"), "{}", done.out);
    assert_eq!(place.read("run/config/job-1.fio"), text);
}

/// The published command lines of a cloud provider's block volume tests, on a file and for a second each.
#[test]
fn io_01_the_published_command_lines_run_unchanged() {
    let place = Place::new();
    own_file(&place, "volume");
    for (name, more) in [
        ("iops-test-job", &["--rw=randread", "--bs=4k", "--iodepth=256", "--numjobs=4"][..]),
        ("readlatency-test-job", &["--rw=randread", "--bs=4k", "--iodepth=1", "--numjobs=1"]),
    ] {
        let name = format!("--name={name}");
        let mut words = vec!["--filename=volume", "--direct=1"];
        words.extend(more);
        words.extend(["--ioengine=libaio", "--runtime=1", "--time_based", "--group_reporting", &name]);
        words.extend(["--eta-newline=1", "--readonly", "--no-record"]);
        let done = io(&place, &words).code(0);
        assert!(done.out.contains("ioengine=libaio"), "{}", done.out);
        assert!(done.out.contains("   READ: bw="), "{}", done.out);
        let eta = done.err.lines().any(|line| line.starts_with("Jobs: "));
        assert!(eta, "no progress line: {}", done.err);
    }
}

#[test]
fn term_ends_it_with_what_there_is() {
    let place = Place::new();
    let words = ["io", "--name=n", "--ioengine=null", "--size=1g", "--time_based", "--runtime=60"];
    let started = place.start(&with(&words, &["-o", "run"]));
    let running = started.until("run directory", || place.path("run/config/given").exists());
    let running = running.computed(Duration::from_secs(1));
    running.signal(Signal::TERM);
    let done = running.ended().code(130);
    assert!(done.out.contains("read: IOPS="), "{}{}", done.out, done.err);
    let record = json(&place.read("run/record.json"));
    assert_eq!(record["run"]["verdict"], "incomplete");
}

#[test]
fn a_killed_run_leaves_its_own_file_which_the_next_one_takes() {
    let place = Place::new();
    let words = [
        "io",
        "--name=k",
        "--filename=own",
        "--size=8m",
        "--rw=randwrite",
        "--bs=4k",
        "--time_based",
        "--runtime=60",
        "--status-interval=1",
    ];
    let started = place.start(&words);
    let laid_out = || std::fs::metadata(place.path("own")).is_ok_and(|about| about.len() == 8 << 20);
    started.until("file", laid_out).kill();
    let run = place.only_run();
    let list = place.assay(&["runs", "list"]).code(0);
    assert!(list.out.contains("not recovered"), "{}", list.out);
    place.assay(&["runs", "recover", "last"]).code(2);
    place.assay(&["runs", "rm", &run.to_string_lossy()]).code(0);
    assert!(!run.exists());
    let next = ["--no-record", "--name=k", "--filename=own", "--size=8m", "--rw=randwrite", "--number_ios=10"];
    io(&place, &next).code(0);
}
