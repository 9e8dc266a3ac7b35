//! Hands that mean harm, or slip: runs that are removed while they go on, links in the place of directories, files
//! that were edited, and limits that end a process.

use crate::common::{BRIEF, LONG, Place, Started, until, with};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// A finished run at this place.
fn finished(place: &Place, name: &str) {
    place.assay(&with(BRIEF, &["-o", name])).code(0);
}

/// Copies the files of a run.
fn copy(place: &Place, from: &str, to: &str) {
    fs::create_dir_all(place.path(to).join("config")).expect("made");
    for file in place.files() {
        if let Some(name) = file.strip_prefix(&format!("{from}/")) {
            fs::copy(place.path(&file), place.path(to).join(name)).expect("copied");
        }
    }
}

/// Somebody's files with the names of ours.
fn precious(place: &Place) {
    fs::create_dir(place.path("precious")).expect("made");
    for name in ["given", "effective", "job-1.fio", "record.json"] {
        place.write(&format!("precious/{name}"), "mine");
    }
}

fn all_precious(place: &Place) -> bool {
    ["given", "effective", "job-1.fio", "record.json"]
        .iter()
        .all(|name| fs::read_to_string(place.path("precious").join(name)).is_ok_and(|text| text == "mine"))
}

#[test]
fn a_run_under_way_is_not_removed_recovered_or_tagged() {
    let place = Place::new();
    let run = place.start(LONG).until("second", || place.has_mark("second"));
    let before = place.files();
    for command in [&["runs", "rm", "last"][..], &["runs", "recover", "last"], &["runs", "tag", "last", "+x"]] {
        let refused = place.assay(command).code(3);
        assert!(refused.err.contains("is writing there"), "{command:?}: {}", refused.err);
    }
    let list = place.assay(&["runs", "list"]).code(0).out;
    assert!(list.contains("under way"), "{list}");
    place.assay(&["runs", "rebuild"]).code(0);
    let still: Vec<String> = place.files().into_iter().filter(|file| !file.contains("catalogue")).collect();
    assert_eq!(still, before);
    run.signal(Signal::TERM);
    run.ended().code(130);
    let list = place.assay(&["runs", "list"]).code(0).out;
    assert!(list.contains("incomplete"), "{list}");
    place.assay(&["runs", "tag", "last", "+x"]).code(0);
    let dir = place.only_run();
    place.assay(&["runs", "rm", "last"]).code(0);
    assert!(!dir.exists());
}

#[test]
fn links_are_not_followed_and_what_is_not_ours_is_left_and_named() {
    let place = Place::new();
    precious(&place);
    finished(&place, "run");
    copy(&place, "run", "other");
    symlink("run", place.path("link")).expect("linked");
    for name in ["link", "link/", "link/."] {
        let refused = place.assay(&["runs", "rm", name]).code(2);
        assert!(refused.err.contains("is a link"), "{}", refused.err);
    }
    assert!(place.path("run/record.json").exists());
    // A link for config, a link for a file, somebody's file and directory.
    fs::remove_dir_all(place.path("run/config")).expect("removed");
    symlink(place.path("precious"), place.path("run/config")).expect("linked");
    symlink(place.path("precious/given"), place.path("run/at-1.out")).expect("linked");
    place.write("run/notes.txt", "mine");
    fs::create_dir(place.path("run/fio.json")).expect("made");
    let removed = place.assay(&["runs", "rm", "run"]).code(0);
    for name in ["config", "at-1.out", "notes.txt", "fio.json"] {
        assert!(removed.err.contains(name), "{name}: {}", removed.err);
        assert!(place.path("run").join(name).symlink_metadata().is_ok(), "{name}");
    }
    assert!(!place.path("run/record.json").exists());
    assert!(all_precious(&place));
    // A file in config that is not ours.
    place.write("other/config/given.bak", "mine");
    let removed = place.assay(&["runs", "rm", "other"]).code(0);
    assert!(removed.err.contains("config/given.bak"), "{}", removed.err);
    assert_eq!(place.read("other/config/given.bak"), "mine");
}

#[test]
fn a_racing_neighbour_that_swaps_config_for_a_link_loses_nothing() {
    let place = Place::new();
    precious(&place);
    finished(&place, "model");
    let done = AtomicBool::new(false);
    let (run, theirs) = (place.path("run"), place.path("precious"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (config, aside) = (run.join("config"), place.path("aside"));
            while !done.load(Ordering::Relaxed) {
                // Every step may fail: the directory comes and goes.
                let _ = fs::rename(&config, &aside);
                let _ = symlink(&theirs, &config);
                std::thread::yield_now();
                let _ = fs::remove_file(&config);
                let _ = fs::rename(&aside, &config);
            }
        });
        for _ in 0..30 {
            let _ = fs::remove_dir_all(&run);
            fs::create_dir_all(&run).expect("made");
            for name in ["record.json", "series.jsonl", "report.txt"] {
                fs::copy(place.path("model").join(name), run.join(name)).expect("copied");
            }
            let _ = fs::create_dir(run.join("config"));
            let ran = place.assay(&["runs", "rm", "run"]);
            assert!([0, 2, 6].contains(&ran.code), "{}: {}", ran.code, ran.err);
            assert!(all_precious(&place), "{}", ran.err);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_a_record_says_does_not_reach_the_terminal_as_commands_nor_a_spreadsheet_as_a_formula() {
    let place = Place::new();
    finished(&place, "assay-runs/one");
    let text = place.read("assay-runs/one/record.json");
    let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let evil = "=1+1\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{7f}";
    record["run"]["label"] = evil.into();
    record["warnings"] = serde_json::json!([evil]);
    record["run"]["verdict_reasons"] = serde_json::json!([evil]);
    place.write("assay-runs/one/record.json", &record.to_string());
    let mut seen = Vec::new();
    for format in ["text", "json", "csv", "metrics-csv", "openmetrics", "summary", "answer"] {
        seen.push(place.assay(&["report", "last", "--format", format]).code(0));
    }
    // Without its script, which has every character there is.
    let page = ["--format", "html", "--assets", "shared", "-o", "page.html"];
    let mut page = place.assay(&with(&["report", "last"], &page)).code(0);
    page.out = place.read("page.html");
    seen.push(page);
    for format in ["text", "json", "csv"] {
        seen.push(place.assay(&["runs", "list", "--format", format]).code(0));
    }
    seen.push(place.assay(&["runs", "show", "last"]).code(0));
    for ran in seen {
        let bad = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!ran.out.contains(bad) && !ran.err.contains(bad), "{:?}", ran.out);
    }
    let csv = place.assay(&["runs", "list", "--format", "csv"]).code(0).out;
    assert!(csv.contains(",'=1+1"), "{csv}");
}

#[test]
fn a_hangup_saves_and_reports_unless_it_is_ignored() {
    // Said by name: whoever runs the tests may ignore it, and what he starts inherits that.
    for (way, time, code) in [("default", "600", 130), ("ignore", "2", 0)] {
        let place = Place::new();
        let program = place.command(&[]).get_program().to_owned();
        let mut command = Command::new("env");
        command
            .arg(format!("--{way}-signal=HUP"))
            .arg(program)
            .args(["run", "--target", "null:", "--time", time, "--warmup", "0", "--set", "THINK_TM_FREQUENCY=100"])
            .current_dir(place.path("."))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let run = Started::new(&mut command).until("second", || place.has_mark("second"));
        run.signal(Signal::HUP);
        run.ended().code(code);
        assert!(place.only_run().join("record.json").exists(), "{way}");
    }
}

/// Runs the binary under a limit of the shell.
fn limited(place: &Place, limit: &str, args: &str) -> crate::common::Ran {
    let program = place.command(&[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit}; exec \"$0\" {args}")]);
    shell.arg(&program).current_dir(place.path("."));
    Started::new(shell.stdout(Stdio::piped())).ended()
}

#[test]
fn a_file_that_may_not_grow_is_told_like_a_full_disk_and_recovery_invents_no_kill() {
    let place = Place::new();
    let args = "run --target null: --time 2 --warmup 0 --set RATE=100 -o run";
    let ran = limited(&place, "ulimit -f 20", args).code(6);
    assert!(ran.err.contains("ulimit -f"), "{}", ran.err);
    assert!(!place.path("run/record.json").exists());
    place.assay(&["runs", "recover", "run"]).code(0);
    let record = place.read("run/record.json");
    assert!(record.contains("or the disk was full"), "{record}");
    assert!(!record.contains("the run was killed, its last"), "{record}");
}

#[test]
fn an_import_is_refused_before_it_fills_the_memory() {
    let place = Place::new();
    let sparse = fs::File::create(place.path("sparse")).expect("made");
    sparse.set_len(20 << 30).expect("set");
    place.write("line", &"x".repeat(65_000_000));
    for (file, why) in [("sparse", "at most 1 GiB"), ("line", "64 MB")] {
        let refused = place.assay(&["import", file]).code(2);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
    fs::remove_file(place.path("line")).expect("removed");
    // Memory for one such line, not for all of an endless one.
    let endless = "import - < /dev/zero";
    let refused = limited(&place, "ulimit -v 1000000", endless).code(2);
    assert!(refused.err.contains("64 MB"), "{}", refused.err);
    assert!(!place.path("assay-runs").exists());
}

#[test]
fn a_run_that_the_control_group_would_kill_says_so_beforehand() {
    let mine = fs::read_to_string("/proc/self/cgroup").expect("readable");
    let v1 = mine.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let root = Path::new("/sys/fs/cgroup/memory");
    let above = v1.map(|path| root.join(path.trim_start_matches('/')));
    let above = above.map(|dir| if dir.is_dir() { dir } else { root.to_path_buf() });
    let group = above.map(|dir| dir.join(format!("assay-test-{}", std::process::id())));
    // Only where this process may make a group; the arithmetic is tested beside the reader.
    let Some(group) = group.filter(|dir| fs::create_dir(dir).is_ok()) else {
        return;
    };
    let place = Place::new();
    let limit = "memory.limit_in_bytes";
    fs::write(group.join(limit), (300_u64 << 20).to_string()).expect("limited");
    let enter = format!("echo $$ > {}/cgroup.procs", group.display());
    let run = |cache: &str| {
        let args = format!(
            "run --target native:data -s 1 --set SCALE=2000 --set REDO_LOG_MB=32 --set UNDO_MB=8 --set CACHE_MB={cache} --time 1 --warmup 0"
        );
        limited(&place, &enter, &args)
    };
    let (refused, near, fits) = (run("1000"), run("200"), run("8"));
    // It is not read, so it need not hold anything.
    fs::File::create(place.path("sparse")).expect("made").set_len(100 << 20).expect("set");
    let import = limited(&place, &enter, "import sparse");
    // It is empty a moment after its last process.
    until("the group's end", || fs::remove_dir(&group).is_ok());
    let import = import.code(3);
    let said =
        format!("an import of 100 MiB takes up to 800 MiB of memory, but the limit of 300 MiB ({}", group.display());
    assert!(import.err.contains(&said) && import.err.contains("would kill it"), "{}", import.err);
    let refused = refused.code(3);
    for part in ["CACHE_MB", "300 MiB", limit, "would kill the run"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(near.err.contains("may kill the run"), "{}", near.err);
    assert!(!fits.code(0).err.contains("kill"));
}

#[test]
fn what_is_no_regular_file_or_too_large_is_refused_by_every_reader_and_nobody_waits() {
    let place = Place::new();
    finished(&place, "run");
    place.write("prices.toml", &place.assay(&["cost", "--example"]).code(0).out);
    let bad = ["pipe", "endless", "huge"];
    let make = |at: &Path, what: &str| match what {
        "pipe" => rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("made"),
        "endless" => symlink("/dev/zero", at).expect("made"),
        _ => fs::File::create(at).and_then(|file| file.set_len(3 << 30)).expect("made"),
    };
    for what in bad {
        let why = match what {
            "pipe" => "is a named pipe, not ",
            "endless" => "is a device, not ",
            _ => "has 3 GiB, so it is not ",
        };
        make(&place.path(what), what);
        fs::create_dir(place.path(&format!("run-{what}"))).expect("made");
        let (run, record) = (format!("run-{what}"), format!("run-{what}/record.json"));
        make(&place.path(&record), what);
        for args in [
            &["import", what][..],
            &["run", "-c", what, "--dry-run"],
            &["io", what],
            &["cost", "run", "--prices", what],
            &["report", &record],
            &["cost", &record, "--prices", "prices.toml"],
            &["report", &run],
            &["compare", "run", &run],
        ] {
            let refused = place.assay(args).code(2);
            assert!(refused.err.contains(what) && refused.err.contains(why), "{args:?}: {}", refused.err);
            assert!(refused.err.contains("; name "), "{args:?}: {}", refused.err);
        }
        // Among other runs it is one that cannot be read, whatever it is.
        fs::create_dir_all(place.path("assay-runs")).expect("made");
        fs::rename(place.path(&format!("run-{what}")), place.path(&format!("assay-runs/{what}"))).expect("moved");
    }
    place.assay(&["runs", "list"]).code(0);
    place.assay(&["runs", "list", "--format", "html"]).code(0);
    place.assay(&["runs", "rebuild"]).code(0);
}

#[test]
fn the_pipe_of_a_shells_command_is_a_file_that_the_user_names() {
    let place = Place::new();
    place.write("out.txt", include_str!("../../../../testdata/import/fio-2.1.txt"));
    place.write("prices.toml", &place.assay(&["cost", "--example"]).code(0).out);
    place.write("slob.conf", "UPDATE_PCT=0\n");
    let program = place.command(&[]).get_program().to_owned();
    for args in [
        "import <(cat out.txt) -o imported",
        "cost --prices <(cat prices.toml)",
        "run -c <(cat slob.conf) --target null: --dry-run",
    ] {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("\"$0\" {args}")]).arg(&program).current_dir(place.path("."));
        Started::new(shell.stdout(Stdio::piped())).ended().code(0);
    }
}

#[test]
fn a_service_with_a_password_is_starred_in_everything_a_run_leaves() {
    let place = Place::new();
    place.write("slob.conf", "ADMIN_SQLNET_SERVICE='sys/Kq9hunter2@db'\nSQLNET_SERVICE_BASE=\"u/Kq9hunter2@//h:1/s\"\nDBA_PRIV_USER=system/Kq9hunter2\n");
    let ran = place.assay(&with(BRIEF, &["-c", "slob.conf", "-o", "run", "--format", "json"])).code(0);
    let shown = place.assay(&["config", "show", "-c", "slob.conf", "--target", "null:"]).code(0);
    for text in [ran.out, ran.err, shown.out, shown.err] {
        assert!(!text.contains("Kq9hunter2"), "{text}");
    }
    for file in place.files().iter().filter(|file| file.starts_with("run/")) {
        assert!(!place.read(file).contains("Kq9hunter2"), "{file}");
    }
    assert!(place.read("run/config/given").contains("sys/***@db"));
}

/// The look at a data set comes before what a command does, and is ended by the same signals.
#[test]
fn a_server_that_says_nothing_is_left_on_request() {
    let place = Place::new();
    for kind in ["postgres", "mysql"] {
        for verb in [&["check"][..], &["orders", "check"]] {
            let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = silent.local_addr().expect("known").port();
            let url = format!("{kind}://u@127.0.0.1:{port}/d");
            let started = place.start(&with(verb, &["--target", &url]));
            let met = silent.accept().expect("a client");
            started.signal(Signal::TERM);
            let ran = started.ended().code(130);
            assert!(ran.errors().len() <= 1, "{kind} {verb:?}: {}", ran.err);
            drop(met);
        }
    }
}

/// The system's look-up of a name takes no deadline; whoever waits for it has one, and hears a request to stop.
#[test]
fn a_name_server_that_says_nothing_is_left_on_request() {
    let place = Place::new();
    let id = std::process::id().to_be_bytes();
    let Ok(silent) = std::net::UdpSocket::bind((std::net::Ipv4Addr::new(127, 77, id[2], id[3]), 53)) else {
        eprintln!("skipped: a name server of our own needs root");
        return;
    };
    let server = silent.local_addr().expect("known").ip();
    place.write("resolv.conf", &format!("nameserver {server}\noptions timeout:60 attempts:5\n"));
    let mounted = "mount --bind resolv.conf /etc/resolv.conf && exec \"$@\"";
    let alone = ["--mount", "sh", "-c", mounted, "sh"];
    let tried = Command::new("unshare").args(alone).arg("true").current_dir(place.path(".")).status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mounting is not allowed here");
        return;
    }
    silent.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("set");
    let asked = |name: &str| {
        let mut packet = [0; 512];
        while !packet.windows(name.len()).any(|part| part == name.as_bytes()) {
            silent.recv(&mut packet).expect("a question");
        }
    };
    let commands = ["check --target postgres://u@0.example/d", "check --target mysql://u@1.example/d", "net 2.example"];
    for (number, args) in commands.into_iter().chain(["ping 3.example", "redo 4.example"]).enumerate() {
        let mut command = Command::new("unshare");
        command.args(alone).arg(place.command(&[]).get_program()).args(args.split(' ')).current_dir(place.path("."));
        let started = Started::new(command.stdout(Stdio::piped()));
        asked(&format!("\u{1}{number}\u{7}example"));
        started.signal(Signal::TERM);
        let ran = started.ended().code(130);
        assert!(ran.errors().len() <= 1, "{args}: {}", ran.err);
    }
}
