//! `assay ping` between two machines, beside the real ping, and through a relay that stalls.

use crate::common::netns::{Pair, SERVER};
use crate::common::relay::Relay;
use crate::common::{Place, Started, json};
use assay_testkit::port::free_port;
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

fn metric(record: &Value, key: &str) -> f64 {
    let metrics = record["metrics"].as_array().expect("metrics");
    let found = metrics.iter().find(|metric| metric["key"] == key && metric["scope"].is_null());
    let found = found.unwrap_or_else(|| panic!("no {key}"));
    found["value"].as_f64().unwrap_or_else(|| panic!("{found}"))
}

/// So many bytes through a relay are more than a hundred requests and their answers.
const UNDER_WAY: u64 = 40_000;

/// A server on loopback.
fn served(place: &Place, port: u16) -> Started {
    let server = place.start(&["ping", "server", "-p", &port.to_string()]);
    server.until("listening server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
}

#[test]
fn two_machines_by_every_method_and_the_real_ping_beside() {
    let Some(pair) = Pair::new() else {
        return;
    };
    let place = Place::new();
    let server = pair.server(&place, &["ping", "server", "--bind", "0.0.0.0", "-p", "5252"]);
    let server = server.until("listening server", || pair.listens(5252));
    for method in ["icmp", "tcp-connect", "tcp-echo", "udp-echo"] {
        let run = method;
        let words = ["ping", SERVER, "--method", method, "-p", "5252", "--rate", "50"];
        let args = [&words[..], &["--time", "1s", "-o", run]].concat();
        let done = pair.client(&place, &args).ended().code(0);
        let record = place.record(run);
        assert_eq!(record["run"]["verdict"], "complete", "{method}");
        assert_eq!(metric(&record, "packets_lost_pct"), 0.0, "{method}");
        let middle = metric(&record, "rtt_us_p50");
        assert!(middle > 0.0 && middle < 50_000.0, "{method}: {middle}");
        assert!(done.out.lines().count() <= 40, "{}", done.out);
    }
    let mut ping = Command::new("ping");
    ping.args(["-c", "20", "-i", "0.05", SERVER]);
    let theirs = pair.client_runs(&ping).ended();
    if theirs.code == 0 {
        place.write("ping.txt", &theirs.out);
        place.assay(&["import", "ping.txt", "-o", "theirs"]).code(0);
        let (own, theirs) = (place.record("icmp"), place.record("theirs"));
        assert_eq!(own["kind"], theirs["kind"]);
        let (a, b) = (metric(&own, "rtt_us_avg"), metric(&theirs, "rtt_us_avg"));
        assert!(a < b * 20.0 + 1000.0 && b < a * 20.0 + 1000.0, "{a} {b}");
        let compared = place.assay(&["compare", "theirs", "icmp"]);
        assert!(compared.out.contains("rtt_us_avg") || compared.out.contains("avg"), "{}", compared.out);
    }
    // What we print as ping is read back as what it was.
    let printed = place.assay(&["report", "icmp", "--format", "tool"]).code(0).out;
    place.write("own.txt", &printed);
    place.assay(&["import", "own.txt", "-o", "own"]).code(0);
    let (own, back) = (place.record("icmp"), place.record("own"));
    // The average is the one printed, which ping makes of whole microseconds of each reply and cuts.
    let printed_us = own["parts"]["ping"]["ping_us_avg"].as_f64().expect("an average");
    let lost_us = printed_us - metric(&back, "rtt_us_avg");
    assert!((-0.001..=1.0).contains(&lost_us), "{lost_us} of {printed_us}");
    assert_eq!(metric(&own, "packets_sent_count"), metric(&back, "packets_sent_count"));
    server.stopped();
}

#[test]
fn ping_19_a_stall_is_one_slow_round_trip_and_many_late_requests() {
    let place = Place::new();
    let port = free_port();
    let server = served(&place, port);
    let relay = Relay::to(port);
    let to = relay.port().to_string();
    let words = ["ping", "127.0.0.1", "--method", "tcp-echo", "-p", &to, "--rate", "1000", "--timeout", "20s"];
    let running = place.start(&[&words[..], &["--time", "6s", "-o", "run"]].concat());
    let running = running.until("requests", || relay.heard() > UNDER_WAY);
    relay.stall(true);
    std::thread::sleep(Duration::from_millis(1000));
    relay.stall(false);
    running.ended().code(0);
    let record = place.record("run");
    let part = &record["parts"]["ping"];
    // A sum, since how many requests a busy host answers afterwards, and so every percentile, is luck. None waits for
    // much more than the second, so that these are twenty requests at least.
    let sum_s = |of: &str| part[of]["hist_ns"]["sum_ns"].as_f64().expect("a sum") / 1e9;
    let late_s = sum_s("response") - sum_s("service");
    assert!(late_s >= 20.0, "{late_s}");
    let slow = part["worst"].as_array().expect("the worst");
    let outliers = slow.iter().filter(|row| row["service_us"].as_f64().expect("a time") >= 900_000.0).count();
    assert_eq!(outliers, 1, "{slow:?}");
    assert!(metric(&record, "rtt_us_max") >= 900_000.0);
    server.stopped();
}

#[test]
fn a_shaped_link_queues_requests_behind_a_stream() {
    let Some(pair) = Pair::new() else {
        return;
    };
    if !pair.shape("tbf rate 20mbit burst 32kb latency 200ms") {
        return;
    }
    let place = Place::new();
    let server = |what, port| {
        let args = [what, "server", "--bind", "0.0.0.0", "-p", port];
        pair.server(&place, &args)
    };
    let (echo, net) = (server("ping", "5252"), server("net", "5253"));
    let echo = echo.until("listening echo", || pair.listens(5252));
    let net = net.until("listening net", || pair.listens(5253));
    let words = ["ping", SERVER, "--method", "tcp-echo", "-p", "5252", "--rate", "50"];
    let args = [&words[..], &["--load", "5253", "--time", "2s", "-o", "run"]].concat();
    let done = pair.client(&place, &args).ended().code(0);
    let record = place.record("run");
    let info = &record["parts"]["ping"];
    let quickest = |of: &Value| of["service"]["us_min"].as_f64().expect("a time");
    let loaded = info["loaded"]["service"]["us_p50"].as_f64().expect("a time");
    // At 20 Mbit/s two packets of the stream before a request take 1.2 ms.
    assert!(loaded > 1200.0, "{loaded}");
    assert!(quickest(info) < 1200.0, "{}", quickest(info));
    assert!(done.out.contains("Under load"), "{}", done.out);
    let report = place.read("run/report.txt");
    assert!(report.contains("round trip, loaded"), "{report}");
    echo.stopped();
    net.stopped();
}

#[test]
fn an_interrupted_test_keeps_what_was_measured_and_so_does_one_whose_server_is_gone() {
    let place = Place::new();
    let port = free_port();
    let server = served(&place, port);
    let relay = Relay::to(port);
    let to = relay.port().to_string();
    let words = ["ping", "127.0.0.1", "--method", "tcp-echo", "-p", &to, "--time", "60s", "-o"];
    let running = place.start(&[&words[..], &["stopped"]].concat());
    let running = running.until("requests", || relay.heard() > UNDER_WAY);
    running.signal(Signal::INT);
    let done = running.ended().code(130);
    assert!(done.out.contains("incomplete"), "{}", done.out);
    assert!(metric(&place.record("stopped"), "packets_received_count") > 100.0);
    for (run, told) in [("cut", "the server closed the connection"), ("hung", "no answer within 1 s")] {
        let wanted = relay.heard() + UNDER_WAY;
        let running = place.start(&[&words[..], &[run, "--patience", "1s"]].concat());
        let running = running.until("requests", || relay.heard() > wanted);
        match run {
            "cut" => relay.cut(),
            _ => relay.stall(true),
        }
        let done = running.ended().code(4);
        let said = done.err.lines().filter(|line| line.contains("invalid: "));
        assert_eq!(said.count(), 1, "{}", done.err);
        assert!(done.err.contains(told), "{}", done.err);
        let record = place.record(run);
        assert_eq!(record["run"]["verdict"], "invalid");
        assert!(metric(&record, "packets_received_count") > 100.0);
    }
    server.stopped();
}

#[test]
fn a_dry_run_sends_nothing() {
    let place = Place::new();
    let plan = place.assay(&["ping", "198.51.100.7", "--dry-run", "-c", "5", "--format", "json"]).code(0);
    assert_eq!(json(&plan.out)["count"], 5);
    place.assay(&["ping", "host", "--method", "carrier"]).code(2);
    assert!(place.files().is_empty());
}

/// A server names each connection, and 3,000 of these lines are more than a pipe holds that nobody reads.
#[test]
fn a_server_that_nobody_listens_to_serves_on_and_ends_when_asked() {
    use std::io::Read;
    let place = Place::new();
    let port = free_port();
    let server = served(&place, port);
    for round in 0..60 {
        let clients: [_; 50] = std::array::from_fn(|_| {
            let stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
            stream.shutdown(std::net::Shutdown::Write).expect("we are done");
            stream
        });
        for mut client in clients {
            let ended = client.read(&mut [0]);
            assert!(matches!(ended, Ok(0)), "round {round}: {ended:?}");
        }
    }
    place.assay(&["ping", "127.0.0.1", "--method", "tcp-echo", "-p", &port.to_string(), "--time", "1s"]).code(0);
    server.stopped();
}
