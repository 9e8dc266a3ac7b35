//! `assay net` between two machines, against stock iperf3 in both roles, and through a link that is shaped.

use crate::common::netns::{Pair, SERVER};
use crate::common::relay::Relay;
use crate::common::{Place, Ran, Started, json};
use assay_testkit::port::free_port;
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

const PORT: u16 = 5210;
/// So many bytes tell that a test is under way: at the rates asked for, more than a second of it is over.
const UNDER_WAY: u64 = 3_000_000;

/// Whether there is an iperf3 to compare with.
fn has_iperf3() -> bool {
    Command::new("iperf3").arg("--version").output().is_ok()
}

/// Two machines with an iperf3; nothing where one of them is missing.
fn machines() -> Option<(Pair, Place)> {
    let pair = Pair::new()?;
    has_iperf3().then(|| (pair, Place::new()))
}

fn iperf3(args: &[&str]) -> Command {
    let mut command = Command::new("iperf3");
    command.args(["-p", &PORT.to_string()]).args(args);
    command
}

/// An iperf3 on the second machine that serves one test.
fn served_by_iperf3(pair: &Pair) -> Started {
    let server = pair.server_runs(&iperf3(&["-s", "-1"]));
    server.until("listening iperf3", || pair.listens(PORT))
}

/// An assay on the second machine that serves until it is stopped.
fn served_by_assay(pair: &Pair, place: &Place, more: &[&str]) -> Started {
    let port = PORT.to_string();
    let mut args = vec!["net", "server", "--bind", "0.0.0.0", "-p", &port];
    args.extend(more);
    let server = pair.server(place, &args);
    server.until("listening assay", || pair.listens(PORT))
}

fn assay(pair: &Pair, place: &Place, run: &str, more: &[&str]) -> Ran {
    let port = PORT.to_string();
    let mut args = vec!["net", SERVER, "-p", &port, "-o", run];
    args.extend(more);
    pair.client(place, &args).ended()
}

fn metric(record: &Value, scope: &str, key: &str) -> f64 {
    let metrics = record["metrics"].as_array().expect("metrics");
    let found = metrics.iter().find(|metric| metric["key"] == key && metric["scope"].as_str().unwrap_or("") == scope);
    let found = found.unwrap_or_else(|| panic!("no {scope} {key}"));
    found["value"].as_f64().unwrap_or_else(|| panic!("{found}"))
}

fn violated(record: &Value) -> usize {
    let all = record["integrity"].as_array().expect("identities");
    all.iter().filter(|identity| identity["ok"] == false).count()
}

/// Tests of section 11: how both programs are asked, and the protocol. One goes as fast as it can; the others leave the CPUs to
/// other tests.
const ROWS: &[(&[&str], &[&str], &str)] = &[
    (&["-t", "1"], &["-t", "1"], "tcp"),
    (&["-t", "1", "-b", "50M", "-R"], &["-t", "1", "-b", "50M", "-R"], "tcp"),
    (&["-t", "1", "-b", "50M", "--bidir"], &["-t", "1", "-b", "50M", "--bidir"], "tcp"),
    (&["-t", "1", "-b", "50M", "-P", "3"], &["-t", "1", "-b", "50M", "-P", "3"], "tcp"),
    (&["-t", "1", "-b", "50M", "-P", "2", "-R"], &["-t", "1", "-b", "50M", "-P", "2", "-R"], "tcp"),
    (&["-t", "1", "-u", "-b", "10M"], &["-t", "1", "-u", "-b", "10M"], "udp"),
    (&["-t", "1", "-u", "-b", "10M", "-R"], &["-t", "1", "-u", "-b", "10M", "-R"], "udp"),
    (&["-t", "1", "-u", "-b", "10M", "--bidir"], &["-t", "1", "-u", "-b", "10M", "--bidir"], "udp"),
    (&["-t", "1", "-u", "-b", "10M"], &["-t", "1", "-u", "-b", "10M", "--udp-counters-64bit"], "udp"),
    (&["-n", "10M"], &["-n", "10M"], "tcp"),
    (&["-k", "100"], &["-k", "100"], "tcp"),
    (&["-O", "1", "-t", "1", "-b", "50M"], &["-O", "1", "-t", "1", "-b", "50M"], "tcp"),
    (&["-t", "1", "-b", "20M"], &["-t", "1", "-b", "20M"], "tcp"),
    (&["-t", "1", "-b", "50M", "-w", "64K"], &["-t", "1", "-b", "50M", "-w", "64K"], "tcp"),
    (&["-t", "1", "-b", "50M", "-M", "1000"], &["-t", "1", "-b", "50M", "-M", "1000"], "tcp"),
    (&["-t", "1", "-b", "50M", "-N", "-l", "1K"], &["-t", "1", "-b", "50M", "-N", "-l", "1K"], "tcp"),
    (&["-t", "1", "-b", "50M", "-C", "reno"], &["-t", "1", "-b", "50M", "-C", "reno"], "tcp"),
    (&["-t", "1", "-b", "50M", "-Z"], &["-t", "1", "-b", "50M", "-Z"], "tcp"),
    (&["-t", "1", "-b", "50M", "--get-server-output"], &["-t", "1", "-b", "50M", "--get-server-output"], "tcp"),
    (&["-t", "1", "-b", "50M", "-4"], &["-t", "1", "-b", "50M", "-4"], "tcp"),
];

#[test]
fn net_01_every_row_against_a_stock_server() {
    let Some((pair, place)) = machines() else {
        return;
    };
    for (at, (ours, _, proto)) in ROWS.iter().enumerate() {
        let server = served_by_iperf3(&pair);
        let run = format!("run{at}");
        assay(&pair, &place, &run, ours).code(0);
        server.ended().code(0);
        let record = place.record(&run);
        assert_eq!(record["run"]["verdict"], "complete", "{ours:?}");
        assert_eq!(violated(&record), 0, "{ours:?}: {}", record["integrity"]);
        let roles = if ours.contains(&"--bidir") { &["TX-C ", "RX-C "][..] } else { &[""] };
        for role in roles {
            let of = |side: &str| metric(&record, &format!("{role}{side}"), &format!("{proto}_moved_bytes"));
            let (sent, got) = (of("sender"), of("receiver"));
            assert!(got > 0.0 && sent > 0.0, "{ours:?}: {sent} {got}");
            // What lay in buffers at the end, or was sent before the other end began to count.
            assert!((sent - got).abs() <= 0.5 * sent.max(got) + 64e6, "{ours:?}: {sent} {got}");
        }
    }
}

#[test]
fn net_01_every_row_from_a_stock_client() {
    let Some((pair, place)) = machines() else {
        return;
    };
    let server = served_by_assay(&pair, &place, &[]);
    for (_, theirs, _) in ROWS {
        let mut args = vec!["-c", SERVER];
        args.extend(*theirs);
        let done = pair.client_runs(&iperf3(&args)).ended().code(0);
        assert!(done.out.contains("iperf Done."), "{theirs:?}: {}", done.out);
        let wants_output = theirs.contains(&"--get-server-output");
        assert_eq!(done.out.contains("Server output:"), wants_output, "{theirs:?}: {}", done.out);
    }
    let done = server.stopped();
    assert!(done.err.contains("Server listening on 5210 (test #1)"), "{}", done.err);
}

#[test]
fn net_07_a_stock_client_is_told_that_the_server_is_busy_and_why_a_secret_refuses_it() {
    let Some((pair, place)) = machines() else {
        return;
    };
    let server = served_by_assay(&pair, &place, &[]);
    let port = PORT.to_string();
    let first = pair.client(&place, &["net", SERVER, "-p", &port, "-t", "60", "-b", "20M", "-o", "first"]);
    let first = first.until("first test", || pair.sent_bytes() > UNDER_WAY);
    let second = pair.client_runs(&iperf3(&["-c", SERVER, "-t", "1"])).ended();
    assert!(second.code != 0 && second.err.contains("busy"), "{}", second.err);
    // The first goes on as if nothing had been.
    let wanted = pair.sent_bytes() + UNDER_WAY;
    let first = first.until("more of the first test", || pair.sent_bytes() > wanted);
    first.signal(Signal::INT);
    first.ended().code(130);
    assert!(metric(&place.record("first"), "sender", "tcp_moved_bytes") > UNDER_WAY as f64);
    server.stopped();
    place.write("secret", "known to both ends\n");
    let server = served_by_assay(&pair, &place, &["--secret-file", "secret"]);
    let refused = pair.client_runs(&iperf3(&["-c", SERVER, "-t", "1"])).ended();
    assert!(refused.code != 0 && refused.err.contains("authorization"), "{}", refused.err);
    assay(&pair, &place, "known", &["-t", "1", "-b", "10M", "--secret-file", "secret"]).code(0);
    let told = assay(&pair, &place, "unknown", &["-t", "1"]).code(3);
    assert!(told.errors()[0].contains("--secret-file"), "{}", told.err);
    server.stopped();
}

#[test]
fn a_shaped_link_gives_its_rate_and_no_more() {
    let Some((pair, place)) = machines() else {
        return;
    };
    if !pair.shape("tbf rate 50mbit burst 64kb latency 100ms") {
        return;
    }
    let server = served_by_assay(&pair, &place, &[]);
    // What is named as the limit of such series is tested where it is found out: a busy machine has other limits.
    assay(&pair, &place, "tcp", &["-t", "2"]).code(0);
    let tcp = place.record("tcp");
    let rate = metric(&tcp, "receiver", "tcp_throughput_bits_per_s_mean");
    assert!((1e6..52e6).contains(&rate), "{rate}");
    assert_eq!(violated(&tcp), 0, "{}", tcp["integrity"]);
    // Datagrams wait before it in the socket's own buffer: the link loses none.
    assay(&pair, &place, "udp", &["-t", "1", "-u", "-b", "100M"]).code(0);
    let udp = place.record("udp");
    let of = |key: &str| metric(&udp, "receiver", key);
    let rate = of("udp_throughput_bits_per_s_mean");
    assert!((1e6..53e6).contains(&rate), "{rate}");
    // What the kernel of a busy receiver dropped for want of room is no loss of the link.
    let dropped = udp["parts"]["network"]["native_remote"]["udp"]["receive_buffer"].as_f64();
    assert_eq!(Some(of("udp_lost_exact_count")), dropped);
    server.stopped();
}

#[test]
fn net_10_no_more_is_sent_than_was_asked_for() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for (run, words) in [("tcp", &["-b", "10M"][..]), ("udp", &["-u", "-b", "10M"]), ("back", &["-b", "10M", "-R"])]
        {
            let place = &place;
            scope.spawn(move || {
                let port = free_port().to_string();
                let server = place.start(&["net", "server", "-p", &port]);
                let number = port.parse().expect("a port");
                let server =
                    server.until("listening server", || std::net::TcpStream::connect(("127.0.0.1", number)).is_ok());
                let args = ["net", "127.0.0.1", "-p", &port, "-t", "2", "-o", run];
                place.start(&[&args[..], words].concat()).ended().code(0);
                let proto = if run == "udp" { "udp" } else { "tcp" };
                let key = format!("{proto}_throughput_bits_per_s_mean");
                let rate = metric(&place.record(run), "sender", &key);
                // A burst of one block is sent ahead. How well it is kept from below is the machine's affair.
                assert!((1e5..=11e6).contains(&rate), "{words:?}: {rate}");
                server.stopped();
            });
        }
    });
}

#[test]
fn what_a_small_buffer_drops_is_counted_exactly_and_named() {
    let Some((pair, place)) = machines() else {
        return;
    };
    let server = served_by_assay(&pair, &place, &[]);
    let words = ["-t", "2", "-u", "-b", "0", "-l", "1400", "-w", "8K"];
    let done = assay(&pair, &place, "run", &words).code(0);
    let record = place.record("run");
    let lost = metric(&record, "receiver", "udp_lost_exact_count");
    let native = &record["parts"]["network"]["native_remote"]["udp"];
    let dropped = native["receive_buffer"].as_f64().expect("counted");
    assert!(lost > 0.0 && dropped > 0.0, "{lost} {dropped}");
    // Nobody else has a socket there: what the kernel dropped is what did not arrive.
    assert!((lost - dropped).abs() <= 0.02 * lost + 5.0, "{lost} {dropped}");
    assert!(done.out.contains("the receiver's socket buffer"), "{}", done.out);
    server.stopped();
}

#[test]
fn what_the_way_loses_is_counted_to_the_datagram_and_named() {
    let place = Place::new();
    let port = free_port();
    let server = place.start(&["net", "server", "-p", &port.to_string()]);
    let server = server.until("listening server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let relay = Relay::to(port);
    // 2.5 %: with 98 % of what was asked for the rate would be the limit, and 2 % are too near to that.
    let passed_on = relay.losing_datagrams(port, 40, 1000);
    let to = relay.port().to_string();
    let words = ["net", "127.0.0.1", "-p", &to, "-u", "-b", "8M", "-l", "1000"];
    let done = place.start(&[&words[..], &["-t", "3", "-o", "run"]].concat()).ended().code(0);
    let record = place.record("run");
    let native = &record["parts"]["network"]["native_remote"]["udp"];
    let dropped = native["receive_buffer"].as_f64().expect("counted");
    let received = &record["parts"]["network"]["streams"][0]["received"];
    let [counted, highest] = ["lost", "datagrams"].map(|key| received[key].as_f64().expect("counted"));
    // Beyond the highest number that arrived some may have been on the way when the test was over.
    let passed_on = passed_on.lock().expect("not poisoned");
    let lost = highest - passed_on.iter().filter(|number| **number as f64 <= highest).count() as f64;
    assert!(lost >= 20.0, "{lost}");
    // The kernel of the server may have dropped some for want of room: then these may be the limit.
    assert!((lost..=lost + dropped).contains(&counted), "{counted} of {lost} and {dropped}");
    assert!(metric(&record, "receiver", "udp_lost_exact_count") >= counted);
    let is_named = done.out.contains("the network, which loses datagrams");
    assert!(is_named || 2.0 * dropped >= counted, "{}", done.out);
    server.stopped();
}

#[test]
fn net_13_its_json_and_text_come_back_through_the_import_with_the_same_figures() {
    let Some((pair, place)) = machines() else {
        return;
    };
    let server = served_by_assay(&pair, &place, &[]);
    for (run, face, more) in [
        ("own-json", "tool-json", &["-t", "2", "-b", "20M"][..]),
        ("own-udp", "tool-json", &["-t", "2", "-u", "-b", "20M"]),
        ("own-text", "iperf3", &["-t", "2", "-b", "20M", "-P", "2"]),
    ] {
        let mut args = more.to_vec();
        args.extend(["--format", face]);
        let printed = assay(&pair, &place, run, &args).code(0).out;
        let file = format!("{run}.out");
        place.write(&file, &printed);
        place.assay(&["import", &file, "-o", &format!("{run}-imported")]).code(0);
        let (own, imported) = (place.record(run), place.record(&format!("{run}-imported")));
        assert_eq!(own["kind"], imported["kind"]);
        let proto = if more.contains(&"-u") { "udp" } else { "tcp" };
        for side in ["sender", "receiver"] {
            let key = format!("{proto}_throughput_bits_per_s_mean");
            let (a, b) = (metric(&own, side, &key), metric(&imported, side, &key));
            assert!((a / b - 1.0).abs() < 0.01, "{run} {side}: {a} {b}");
        }
        let compared = place.assay(&["compare", run, &format!("{run}-imported")]);
        assert!(compared.out.contains("rate"), "{}{}", compared.out, compared.err);
    }
    server.stopped();
    let failed = assay(&pair, &place, "gone", &["--json"]);
    assert_eq!(failed.code, 3, "{}", failed.err);
    assert!(json(&failed.out)["error"].as_str().is_some_and(|e| e.contains("cannot connect")), "{}", failed.out);
}

#[test]
fn an_interrupted_test_keeps_what_was_measured() {
    let Some((pair, place)) = machines() else {
        return;
    };
    let server = served_by_assay(&pair, &place, &[]);
    let port = PORT.to_string();
    let running = pair.client(&place, &["net", SERVER, "-p", &port, "-t", "60", "-b", "20M", "-o", "run"]);
    let running = running.until("test", || pair.sent_bytes() > UNDER_WAY);
    // `ip netns exec` has become the program itself.
    running.signal(Signal::INT);
    let done = running.ended().code(130);
    assert!(done.out.contains("incomplete"), "{}", done.out);
    let record = place.record("run");
    let moved = metric(&record, "sender", "tcp_moved_bytes");
    assert!(moved > 0.0, "{moved}");
    // The server is told, and serves the next.
    assay(&pair, &place, "next", &["-t", "1", "-b", "10M"]).code(0);
    server.stopped();
}

#[test]
fn a_link_that_is_cut_or_a_server_that_dies_leaves_what_was_measured_and_one_error() {
    let Some((pair, place)) = machines() else {
        return;
    };
    let server = served_by_assay(&pair, &place, &[]);
    let port = PORT.to_string();
    let words = ["net", SERVER, "-p", &port, "-t", "60", "--patience", "2s"];
    let started = |run: &str, more: &[&str]| {
        let wanted = pair.sent_bytes() + UNDER_WAY;
        let running = pair.client(&place, &[&words[..], &["-o", run], more].concat());
        running.until("test", || pair.sent_bytes() > wanted)
    };
    let ended = |running: Started, run: &str, told: &str| {
        let done = running.ended().code(4);
        let said = done.err.lines().filter(|line| line.contains("invalid: "));
        assert_eq!(said.count(), 1, "{}", done.err);
        assert!(done.err.contains(told), "{}", done.err);
        let record = place.record(run);
        assert_eq!(record["run"]["verdict"], "invalid");
        assert!(metric(&record, "sender", "tcp_moved_bytes") > 1e5);
        assert_eq!(violated(&record), 0, "{}", record["integrity"]);
        (record, done)
    };
    let running = started("dead", &["-b", "10M", "--format", "tool-json"]);
    server.kill();
    let (_, done) = ended(running, "dead", SERVER);
    let told = json(&done.out);
    assert!(told["error"].as_str().is_some_and(|why| why.contains(SERVER)), "{}", done.out);
    assert!(!told["intervals"].as_array().expect("rows").is_empty());
    let server = served_by_assay(&pair, &place, &[]);
    let running = started("cut", &["-b", "20M", "-i", "0.5"]);
    pair.link(false);
    let (record, _) = ended(running, "cut", "nothing moved for 2 s");
    // The 2 s that were waited for in vain are no time of the test; a reading lies within half a second of the cut.
    let seconds = |key: &str| record["interval"][key].as_f64().expect("known");
    let (elapsed, whole) = (seconds("elapsed_s"), seconds("whole_run_s"));
    assert!(whole - elapsed >= 1.4, "{elapsed} of {whole}");
    drop(server);
}

/// Whether lines begin so, one after the other.
fn begin_in_order(text: &str, wanted: &[&str]) -> bool {
    let mut lines = text.lines();
    wanted.iter().all(|begin| lines.any(|line| line.starts_with(begin)))
}

#[test]
fn a_verbose_text_in_the_unit_asked_for_is_that_of_iperf3_and_is_appended_to_a_log_file() {
    let Some((pair, place)) = machines() else {
        return;
    };
    let wanted = [
        "iperf 3.",
        "Linux ",
        "Time: ",
        "Connecting to host ",
        "      Cookie: ",
        "      TCP MSS: ",
        "      Target Bitrate: 10000000",
        "[  ",
        "Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 1 second test, tos 0",
        "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
        "[  ",
        "- - -",
        "Test Complete. Summary Results:",
        "[ ID] Interval           Transfer     Bitrate         Retr",
        "[  ",
        "[  ",
        "CPU Utilization: local/sender ",
        "snd_tcp_congestion ",
        "rcv_tcp_congestion ",
        "iperf Done.",
    ];
    let words = ["-t", "1", "-b", "10M", "-V", "-f", "k", "-A", "0,0", "--logfile"];
    let server = served_by_iperf3(&pair);
    let theirs = place.path("theirs").display().to_string();
    let args = [&["-c", SERVER][..], &words, &[&theirs]].concat();
    pair.client_runs(&iperf3(&args)).ended().code(0);
    server.ended().code(0);
    let theirs = place.read("theirs");
    assert!(begin_in_order(&theirs, &wanted), "{theirs}");
    for run in ["one", "two"] {
        let server = served_by_iperf3(&pair);
        let more = [&words[..], &["ours", "--format", "tool"]].concat();
        let done = assay(&pair, &place, run, &more).code(0);
        assert_eq!(done.out, "");
        server.ended().code(0);
    }
    let ours = place.read("ours");
    let twice = [&wanted[..], &wanted].concat();
    assert!(begin_in_order(&ours, &twice), "{ours}");
    for text in [&theirs, &ours] {
        let rates = text.lines().filter(|line| line.ends_with("sender"));
        assert!(rates.clone().count() > 0 && rates.clone().all(|line| line.contains(" Kbits/sec")), "{text}");
    }
    let server = served_by_assay(&pair, &place, &[]);
    let told = assay(&pair, &place, "there", &["-A", "0,1000", "-t", "1"]).code(3);
    assert!(told.errors()[0].contains("refuses these parameters"), "{}", told.err);
    let told = assay(&pair, &place, "here", &["-A", "8000"]).code(2);
    assert!(told.errors()[0].contains("--affinity 8000"), "{}", told.err);
    let told = assay(&pair, &place, "nowhere", &["--logfile", "no/such/file"]).code(2);
    assert!(told.errors()[0].contains("--logfile no/such/file"), "{}", told.err);
    server.stopped();
}

#[test]
fn a_dry_run_sends_nothing_and_mistakes_are_told_before() {
    let place = Place::new();
    let plan =
        place.assay(&["net", "198.51.100.7", "-u", "-b", "10M", "-P", "2", "--dry-run", "--format", "json"]).code(0);
    let plan = json(&plan.out);
    assert_eq!((&plan["protocol"], &plan["streams"]), (&"udp".into(), &2.into()));
    assert_eq!(plan["rate_bits_per_s"], 20_000_000);
    for words in [
        &["net"][..],
        &["net", "host", "-R", "--bidir"],
        &["net", "host", "-P", "0"],
        &["net", "host", "-b", "quick"],
        &["net", "server", "--bind", "nowhere"],
    ] {
        place.assay(words).code(2);
    }
    let told = place.assay(&["net", "server", "--dry-run", "-p", "5999"]).code(0);
    assert!(told.out.contains("127.0.0.1:5999"), "{}", told.out);
    assert!(place.files().is_empty());
}
