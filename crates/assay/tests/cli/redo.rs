//! `assay redo` with one standby: both ends as processes, on loopback or on two machines. Numbers are those of the
//! conformance list of the redo-transport specification.

use crate::common::netns::{Pair, SERVER};
use crate::common::relay::Relay;
use crate::common::{Place, Ran, Started, json, until, with};
use assay_testkit::port::free_port;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// So many bytes through a relay tell that messages flow.
pub(crate) const UNDER_WAY: u64 = 100_000;

/// A standby on loopback that writes below `logs`.
pub(crate) struct Standby {
    pub(crate) port: u16,
    pub(crate) started: Started,
}

impl Standby {
    pub(crate) fn new(place: &Place, more: &[&str]) -> Self {
        let _ = std::fs::create_dir(place.path("logs"));
        let port = free_port();
        let number = port.to_string();
        let args = ["redo", "server", "--port", &number];
        let started = place.start(&with(&args, more));
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        Self { port, started: started.until("listener", listens) }
    }

    pub(crate) fn writing(place: &Place, more: &[&str]) -> Self {
        Self::new(place, &with(&["--allow-write", "logs"], more))
    }
}

/// A test against loopback, with a log that is quickly made; its record.
pub(crate) fn tested(place: &Place, port: u16, run: &str, more: &[&str]) -> (Ran, Value) {
    let number = port.to_string();
    let args = ["redo", "127.0.0.1", "--port", &number, "--log-size", "8m", "-o", run];
    let ran = place.assay(&with(&args, more)).code(0);
    (ran, place.record(run))
}

pub(crate) fn figure(record: &Value, key: &str) -> f64 {
    scoped(record, "", key)
}

pub(crate) fn scoped(record: &Value, scope: &str, key: &str) -> f64 {
    let metrics = record["metrics"].as_array().expect("metrics");
    let is_it = |metric: &&Value| metric["key"] == key && metric["scope"].as_str().unwrap_or_default() == scope;
    let found = metrics.iter().find(is_it);
    let found = found.unwrap_or_else(|| panic!("no {scope} {key}"));
    found["value"].as_f64().unwrap_or_else(|| panic!("{key}: {}", found["value"]))
}

/// Logs and their marks.
fn logs(place: &Place) -> usize {
    std::fs::read_dir(place.path("logs")).map_or(0, |entries| entries.count())
}

pub(crate) fn identities_hold(record: &Value) {
    for identity in record["integrity"].as_array().expect("identities") {
        assert_ne!(identity["ok"], false, "{identity}");
    }
}

#[test]
fn redo_01_oratcptest_s_own_words_run_and_print_its_report() {
    let place = Place::new();
    let standby = Standby::writing(&place, &[]);
    let port = format!("-port={}", standby.port);
    for (mode, length, columns) in [
        ("sync", "4k", "                    Throughput             Latency"),
        ("async", "8k", "                    Throughput"),
    ] {
        let (mode_word, length_word) = (format!("-mode={mode}"), format!("-length={length}"));
        let args = [
            "redo",
            "127.0.0.1",
            &port,
            &mode_word,
            &length_word,
            "-duration=1s",
            "-interval=1s",
            "-write",
            "--log-size",
            "8m",
            "-o",
            mode,
            "--format",
            "tool",
        ];
        let ran = place.assay(&args).code(0);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines[0], "[Requesting a test]");
        assert_eq!(lines[6], format!("\tTransport mode         = {}", mode.to_uppercase()));
        assert_eq!(lines[15], columns, "{}", ran.out);
        assert_eq!(ran.out.matches("Mbytes/s").count(), 2, "{}", ran.out);
        assert!(ran.out.contains(" Test finished.\n\t       Socket send buffer = "));
        identities_hold(&place.record(mode));
    }
    assert_eq!(logs(&place), 0);
}

#[test]
fn redo_03_05_09_every_message_is_counted_once_on_both_sides() {
    let place = Place::new();
    let standby = Standby::writing(&place, &[]);
    for (run, more) in [
        ("sync", &["--length", "4k", "--write"][..]),
        ("nothing", &["--length", "0"]),
        ("async", &["--length", "1m", "--mode", "async"]),
        ("async-write", &["--length", "8k", "--mode", "async", "--write"]),
        ("four", &["--length", "2k", "--connections", "4"]),
        ("deep", &["--length", "2k", "--inflight", "8"]),
    ] {
        let (_, record) = tested(&place, standby.port, run, &with(&["--time", "1s"], more));
        identities_hold(&record);
        let info = &record["parts"]["redo"];
        let sent = info["sent_count"].as_u64().expect("a count");
        assert!(sent > 0, "{run}");
        // The seconds of the series add up to the totals.
        let series = &record["series"]["metrics"]["redo_transport_count"];
        let sum: u64 = series.as_array().expect("a series").iter().filter_map(Value::as_u64).sum();
        assert_eq!(sum, sent, "{run}");
        let consumed = info["standbys"][0]["consumed_count"].as_u64();
        assert_eq!(consumed, Some(sent), "{run}");
    }
}

#[test]
fn redo_06_distance_is_the_network_s_and_07_a_slow_disk_is_the_disk_s() {
    let place = Place::new();
    let quick = Standby::writing(&place, &[]);
    let slow = Standby::writing(&place, &["--slow-write", "20ms"]);
    let relay = Relay::to(quick.port);
    let more = ["--length", "4k", "--time", "1s", "--write-mode", "pagecache"];
    // Of the quickest message: what a busy machine adds to the others is its own affair. A way takes what it is long and a
    // disk what it is slow, at least; and were one's time called the other's, that would have it in every message.
    let quickest = |record: &Value, part: &str| {
        let of = &record["parts"]["redo"]["standbys"][0][part]["us_min"];
        of.as_f64().unwrap_or_else(|| panic!("{part}: {of}"))
    };
    relay.delay(Duration::from_micros(10_000));
    let (_, far) = tested(&place, relay.port(), "far", &more);
    assert!(quickest(&far, "network") >= 20_000.0, "{}", far["parts"]["redo"]["standbys"]);
    assert!(quickest(&far, "disk") < 10_000.0, "{}", far["parts"]["redo"]["standbys"]);
    let (_, worn) = tested(&place, slow.port, "worn", &more);
    assert!(quickest(&worn, "disk") >= 20_000.0, "{}", worn["parts"]["redo"]["standbys"]);
    assert!(quickest(&worn, "network") < 10_000.0, "{}", worn["parts"]["redo"]["standbys"]);
}

#[test]
fn redo_08_a_cap_on_writes_holds_at_any_size() {
    let place = Place::new();
    let (per_s, burst) = (300.0, 100.0);
    let standby = Standby::writing(&place, &["--limit-writes", "300,100"]);
    std::thread::scope(|scope| {
        for length in ["4k", "8k"] {
            let (place, port) = (&place, standby.port);
            scope.spawn(move || {
                let more = ["--length", length, "--time", "2s", "--write-mode", "pagecache"];
                // Whether and since when it shows in the seconds is a matter of the series, and tested with many of them.
                let (_, record) = tested(place, port, length, &more);
                let info = &record["parts"]["redo"];
                let (sent, elapsed) = (info["sent_count"].as_f64(), record["interval"]["elapsed_s"].as_f64());
                let (sent, elapsed) = (sent.expect("a count"), elapsed.expect("a time"));
                assert!(sent > 0.0 && sent <= burst + per_s * elapsed + 1.0, "{sent} in {elapsed} s");
            });
        }
    });
}

#[test]
fn redo_10_11_no_file_without_leave_and_none_left_however_it_ends() {
    let place = Place::new();
    let refusing = Standby::new(&place, &[]);
    let number = refusing.port.to_string();
    let args = ["redo", "127.0.0.1", "--port", &number, "--write", "--time", "1s"];
    let refused = place.assay(&args).code(3);
    assert!(refused.errors()[0].contains("--allow-write"), "{}", refused.err);
    assert_eq!(logs(&place), 0);
    let standby = Standby::writing(&place, &["--max-log", "16m", "--max-time", "1m"]);
    let relay = Relay::to(standby.port);
    let number = relay.port().to_string();
    let base = ["redo", "127.0.0.1", "--port", &number, "--write", "--length", "4k"];
    for (more, told) in
        [(&["--log-size", "1g"][..], "--max-log"), (&["--log-size", "8m", "--time", "2m"], "--max-time")]
    {
        let refused = place.assay(&with(&base, more)).code(3);
        assert!(refused.errors()[0].contains(told), "{}", refused.err);
    }
    let begin = |run: &str| {
        let args = with(&base, &["--log-size", "8m", "--time", "50s", "-o", run]);
        let wanted = relay.heard() + UNDER_WAY;
        place.start(&args).until("log in use", || logs(&place) == 2 && relay.heard() > wanted)
    };
    let gone = || until("the log to go", || logs(&place) == 0);
    let running = begin("int");
    running.signal(Signal::INT);
    let done = running.ended().code(130);
    assert!(done.out.contains("Redo transport SYNC"), "{}", done.out);
    assert_eq!(place.record("int")["run"]["verdict"], "incomplete");
    gone();
    begin("killed").kill();
    gone();
    let running = begin("served");
    standby.started.signal(Signal::INT);
    standby.started.ended().code(0);
    gone();
    let lost = running.ended().code(4);
    assert!(lost.err.contains("it failed: the standby was stopped"), "{}", lost.err);
}

#[test]
fn what_a_killed_server_left_is_named_by_the_next_and_removed_by_the_command_that_it_names() {
    let place = Place::new();
    let standby = Standby::writing(&place, &[]);
    let number = standby.port.to_string();
    let words = ["redo", "127.0.0.1", "--port", &number, "--write", "--log-size", "8m", "--time", "50s", "-o", "run"];
    let running = place.start(&words).until("log", || logs(&place) == 2);
    standby.started.kill();
    drop(running);
    let plan = || place.assay(&["redo", "server", "--allow-write", "logs", "--dry-run"]).code(0).out;
    let said = plan();
    let line = said.lines().find(|line| line.contains("left by a killed command"));
    let (_, command) = line.and_then(|line| line.split_once("remove with ")).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(logs(&place), 2, "nobody removes it unasked");
    let ran = std::process::Command::new("sh").args(["-c", command]).status();
    assert!(ran.expect("a shell").success(), "{command}");
    assert_eq!(logs(&place), 0);
    assert!(!plan().contains("left by"));
}

/// Whatever a client wanted, the server ends as it was asked to.
#[test]
fn ctrl_c_of_a_server_is_a_good_end_after_any_client() {
    let place = Place::new();
    let standby = Standby::writing(&place, &[]);
    let number = standby.port.to_string();
    for (run, length) in [("nothing", "0"), ("one", "1"), ("many", "1m")] {
        let words = ["redo", "127.0.0.1", "--port", &number, "--write-mode", "pagecache", "--log-size", "4k"];
        place.assay(&with(&words, &["--length", length, "--time", "1s", "--local", "serial", "-o", run])).code(0);
    }
    standby.started.signal(Signal::INT);
    let ended = standby.started.ended().code(0);
    assert!(!ended.err.contains("bug") && !ended.err.contains("error"), "{}", ended.err);
    assert_eq!(logs(&place), 0);
}

#[test]
fn redo_15_a_stall_shows_in_the_latency_from_the_due_time() {
    let place = Place::new();
    let standby = Standby::new(&place, &[]);
    let relay = Relay::to(standby.port);
    let number = relay.port().to_string();
    let args = ["redo", "127.0.0.1", "--port", &number, "--length", "1k", "--rate", "200", "--time", "5s", "-o", "run"];
    let running = place.start(&args).until("second of it", || relay.heard() > 200_000);
    relay.stall(true);
    std::thread::sleep(Duration::from_millis(1500));
    relay.stall(false);
    running.ended().code(0);
    let record = place.record("run");
    let info = &record["parts"]["redo"];
    let due = info["commit"]["us_p90"].as_f64().expect("a percentile");
    let closed = info["standbys"][0]["total"]["us_p90"].as_f64().expect("a percentile");
    assert!(due > 300_000.0, "{due}");
    assert!(closed < 100_000.0, "{closed}");
}

#[test]
fn redo_18_strangers_and_garbage_neither_stop_the_server_nor_are_served() {
    let place = Place::new();
    let standby = Standby::new(&place, &[]);
    let long = vec![b'x'; 200_000];
    let mut hello = b"assaypr1redo\0\0\0\0".to_vec();
    hello.extend([2, 0]);
    hello.resize(64, 0);
    let mut oversized = hello.clone();
    oversized.extend(u32::MAX.to_le_bytes());
    let mut nonsense = hello.clone();
    nonsense.extend([8, 0, 0, 0]);
    nonsense.extend(b"{\"a\":[}}");
    for bytes in [&b"GET / HTTP/1.0\r\n\r\n"[..], &long, &hello, &oversized, &nonsense] {
        let mut stream = TcpStream::connect(("127.0.0.1", standby.port)).expect("connected");
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 64, "{}", answer.len());
    }
    tested(&place, standby.port, "after", &["--length", "1k", "--time", "1s"]);
}

#[test]
fn redo_19_a_mode_that_the_file_system_lacks_is_refused_by_name_or_told() {
    let memory = std::path::Path::new("/dev/shm");
    let Ok(logs) = tempfile::tempdir_in(memory) else {
        return;
    };
    let place = Place::new();
    let path = logs.path().display().to_string();
    let standby = Standby::new(&place, &["--allow-write", &path]);
    let number = standby.port.to_string();
    let args = [
        "redo",
        "127.0.0.1",
        "--port",
        &number,
        "--log-size",
        "8m",
        "--time",
        "1s",
        "--length",
        "4k",
        "--write-mode",
        "direct-dsync",
    ];
    let refused = place.assay(&args).code(3);
    assert!(refused.errors()[0].contains("in memory (tmpfs)"), "{}", refused.err);
    let (_, record) = tested(&place, standby.port, "told", &["--write", "--time", "1s"]);
    assert_eq!(record["parts"]["redo"]["write"], "dsync");
    assert!(place.read("told/report.txt").contains("wrote by dsync instead of direct-dsync"));
}

#[test]
fn who_knows_the_secret_is_served() {
    let place = Place::new();
    place.write("secret", "a secret of some length\n");
    place.write("other", "another secret of that length\n");
    let standby = Standby::new(&place, &["--secret-file", "secret"]);
    let more = ["--length", "1k", "--time", "1s"];
    tested(&place, standby.port, "known", &with(&more, &["--secret-file", "secret"]));
    let number = standby.port.to_string();
    let args = with(&["redo", "127.0.0.1", "--port", &number], &more);
    let refused = place.assay(&args).code(3);
    assert!(refused.errors()[0].contains("--secret-file"), "{}", refused.err);
    let refused = place.assay(&with(&args, &["--secret-file", "other"])).code(3);
    assert!(refused.errors()[0].contains("its secret differs"), "{}", refused.err);
    assert!(!place.read("known/record.json").contains("a secret of"));
}

#[test]
fn a_peer_that_hangs_is_absent_or_is_a_stranger_ends_in_one_error_in_time() {
    let place = Place::new();
    let ask = |port: u16| {
        let number = port.to_string();
        let args = ["redo", "127.0.0.1", "--port", &number, "--timeout", "1s", "--time", "5s"];
        let ran = place.assay(&args).code(3);
        assert_eq!(ran.errors().len(), 1, "{}", ran.err);
        ran.errors()[0].to_owned()
    };
    assert!(ask(free_port()).contains("cannot connect"));
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    assert!(ask(silent.local_addr().expect("known").port()).contains("no answer within 1 s"));
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = stranger.local_addr().expect("known").port();
    std::thread::spawn(move || {
        for client in stranger.incoming().flatten() {
            let _ = (&client).write_all(b"220 mail.example.org ESMTP ready\r\n");
            std::thread::sleep(Duration::from_secs(2));
        }
    });
    assert!(ask(port).contains("this is not assay"));
}

#[test]
fn a_standby_that_hangs_or_dies_leaves_what_was_measured_and_one_error() {
    let place = Place::new();
    for (run, mode, told) in [
        ("hung", "sync", "no answer within 5 s while an acknowledgement was awaited"),
        ("hung-async", "async", "no answer within 5 s"),
        ("dead", "sync", "the connection ended"),
        ("dead-async", "async", "the connection ended"),
    ] {
        let standby = Standby::new(&place, &[]);
        let relay = Relay::to(standby.port);
        let is_hung = run.starts_with("hung");
        let port = relay.port().to_string();
        // A stream takes no pace.
        let pace: &[&str] = if mode == "sync" { &["--rate", "2000"] } else { &[] };
        let limits = ["--timeout", "5s", "--time", "60s", "--length", "1k", "--mode", mode, "-o", run];
        let args = [&["redo", "127.0.0.1", "--port", &port], &limits[..], pace].concat();
        let running = place.start(&args).until("messages", || relay.heard() > UNDER_WAY);
        // A stream has sent as much long before its first second is measured.
        if mode == "async" {
            std::thread::sleep(Duration::from_millis(2500));
        }
        if is_hung {
            relay.stall(true)
        } else {
            standby.started.kill()
        }
        let done = running.ended().code(4);
        let said: Vec<&str> = done.err.lines().filter(|line| line.contains("invalid: ")).collect();
        assert_eq!(said.len(), 1, "{}", done.err);
        assert!(said[0].contains(told) && said[0].contains(&port), "{run}: {}", said[0]);
        let record = place.record(run);
        assert_eq!(record["run"]["verdict"], "invalid");
        assert!(figure(&record, "redo_transport_per_s") > 0.0);
        identities_hold(&record);
        assert!(record["advice"].to_string().contains("was lost"), "{run}");
        // Nobody told what the standby's CPU did: that is not 0.
        let standby = &record["parts"]["redo"]["standbys"][0];
        assert!(standby["cpu_s"]["na"].is_string(), "{}", standby["cpu_s"]);
    }
}

#[test]
fn a_plan_sends_nothing_and_bad_words_name_the_way_out() {
    let place = Place::new();
    let plan = place.assay(&["redo", "standby.example", "-length=8k", "-write", "--dry-run"]);
    let plan = plan.code(0);
    assert!(plan.out.contains("standby.example") && plan.out.contains("8 KiB"), "{}", plan.out);
    let served = place.assay(&["redo", "-server", "--dry-run"]).code(0);
    assert!(served.out.contains("127.0.0.1"), "{}", served.out);
    for (args, told) in [
        (&["--mode", "fast"][..], "--mode fast"),
        (&["-length=4q"], "--length 4q"),
        (&["--length", "1g"], "--length"),
        (&["--write-mode", "sync"], "--write-mode sync"),
        (&["--ack", "any 2"], "--ack any 2"),
        (&["--interval", "500ms"], "--interval 500ms"),
        (&["--mode", "async", "--inflight", "2"], "--mode async"),
        (&["-freq=1h"], "-freq"),
        (&["--standby", "b:0"], "b:0"),
        (&["-lenght=4k"], "--length"),
    ] {
        let ran = place.assay(&with(&["redo", "a"], args)).code(2);
        assert!(ran.err.contains(told), "{args:?}: {}", ran.err);
    }
    assert!(place.files().is_empty());
}

#[test]
fn an_own_test_compares_with_an_imported_one_figure_by_figure() {
    let place = Place::new();
    let standby = Standby::writing(&place, &[]);
    tested(&place, standby.port, "own", &["--length", "4k", "--write", "--time", "1s"]);
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/import/oratcptest-0.txt");
    place.assay(&["import", sample, "-o", "theirs"]).code(0);
    assert_eq!(place.record("theirs")["kind"], place.record("own")["kind"]);
    let compared = place.assay(&["compare", "theirs", "own", "--format", "json"]).code(0);
    let text = json(&compared.out).to_string();
    for key in [
        "redo_transport_us_avg",
        "redo_transport_bytes_per_s",
        "redo_transport_per_s",
        "redo_transport_disk_write_us_avg",
        "redo_transport_message_bytes",
    ] {
        assert!(text.contains(key), "{key}");
        let values = ["own", "theirs"].map(|run| figure(&place.record(run), key));
        assert!(values.iter().all(|value| *value > 0.0), "{key}: {values:?}");
    }
    // The report that we print in oratcptest's layout comes back with the same figures.
    let tool = place.assay(&["report", "own", "--format", "full"]).code(0);
    assert!(tool.out.contains("[Requesting a test]"), "{}", tool.out);
}

#[test]
fn two_machines() {
    let Some(pair) = Pair::new() else { return };
    let place = Place::new();
    std::fs::create_dir(place.path("logs")).expect("created");
    let server = pair.server(&place, &["redo", "server", "--bind", SERVER, "--port", "5701", "--allow-write", "logs"]);
    let _server = server.until("listener", || pair.listens(5701));
    let args = [
        "redo",
        SERVER,
        "--port",
        "5701",
        "--length",
        "8k",
        "--write",
        "--log-size",
        "8m",
        "--time",
        "1s",
        "-o",
        "run",
    ];
    pair.client(&place, &args).ended().code(0);
    let record = place.record("run");
    identities_hold(&record);
    assert!(figure(&record, "redo_transport_per_s") > 1.0);
    let warnings = record["advice"].to_string();
    assert!(!warnings.contains("this host"), "{warnings}");
}
