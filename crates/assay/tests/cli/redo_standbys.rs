//! `assay redo` with several standbys and with the primary's own log.

use crate::common::relay::Relay;
use crate::common::{Place, with};
use crate::redo::{Standby, UNDER_WAY, figure, identities_hold, scoped, tested};
use serde_json::Value;
use std::time::Duration;

/// Three standbys, each behind a relay with its distance there and back, us.
fn three(place: &Place, round_trips_us: [u64; 3]) -> (Vec<Standby>, Vec<Relay>, String) {
    let standbys: Vec<Standby> = (0..3).map(|_| Standby::new(place, &[])).collect();
    let relays: Vec<Relay> = standbys.iter().map(|one| Relay::to(one.port)).collect();
    for (relay, us) in relays.iter().zip(round_trips_us) {
        relay.delay(Duration::from_micros(us / 2));
    }
    let names: Vec<String> = relays.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let names = names.join(",");
    (standbys, relays, names)
}

/// The quickest commit under each rule of a run, ms.
fn quickest_by_rule(record: &Value) -> Vec<(String, f64)> {
    let rules = record["parts"]["redo"]["rules"].as_array().expect("rules");
    let of = |row: &Value| {
        let name = row["rule"].as_str().expect("a name").to_owned();
        (name, row["latency"]["us_min"].as_f64().expect("a time") / 1e3)
    };
    rules.iter().map(of).collect()
}

#[test]
fn redo_12_every_rule_from_one_run() {
    let place = Place::new();
    let (_standbys, _relays, names) = three(&place, [1_000, 20_000, 60_000]);
    // A commit takes as long as the way to the last standby that its rule waits for, and less than the way to the next: the
    // quickest one, for a busy machine holds up the others.
    let wanted = [
        ("any 1", 1.0..20.0),
        ("any 2", 20.0..60.0),
        ("first 1", 1.0..20.0),
        ("first 2", 20.0..60.0),
        ("all", 60.0..f64::INFINITY),
    ];
    place.assay(&["redo", &names, "--length", "4k", "--time", "2s", "-o", "run"]).code(0);
    let record = place.record("run");
    let found = quickest_by_rule(&record);
    assert_eq!(found.len(), wanted.len());
    for ((rule, ms), (name, found)) in wanted.into_iter().zip(found) {
        assert_eq!(name, rule);
        assert!(ms.contains(&found), "{rule}: {found} ms");
        assert!(scoped(&record, rule, "redo_commit_us_p50") >= ms.start * 1e3);
    }
    // The run itself waited for all.
    assert_eq!(figure(&record, "redo_transport_us_p50"), scoped(&record, "all", "redo_commit_us_p50"));
    let report = place.read("run/report.txt");
    assert!(report.contains("Commit Latency under Every Rule"), "{report}");
}

/// The mean of a part of a record, ms, and its quickest.
fn mean_and_quickest_ms(record: &Value, part: &str) -> (f64, f64) {
    let of = |end: &str| {
        let us = &record["parts"]["redo"][part][end];
        us.as_f64().unwrap_or_else(|| panic!("{part} {end}: {us}")) / 1e3
    };
    (of("us_avg"), of("us_min"))
}

#[test]
fn redo_13_the_primary_s_own_log_before_or_beside_the_standby() {
    let place = Place::new();
    let standby = Standby::new(&place, &[]);
    let relay = Relay::to(standby.port);
    relay.delay(Duration::from_millis(10));
    let more = ["--length", "4k", "--time", "2s", "--slow-local", "40ms"];
    let run = |how: &str| {
        let more = with(&more, &["--local-file", ".", "--local", how]);
        let (_, record) = tested(&place, relay.port(), how, &more);
        move |part: &str| mean_and_quickest_ms(&record, part)
    };
    // One after the other they take their sum, beside each other the longer of the two and less than the sum.
    let serial = run("serial");
    assert!(serial("commit").1 >= 60.0, "{}", serial("commit").1);
    assert_eq!(serial("serial"), serial("commit"));
    assert!((40.0..60.0).contains(&serial("parallel").1), "{}", serial("parallel").1);
    let parallel = run("parallel");
    assert!((40.0..60.0).contains(&parallel("commit").1), "{}", parallel("commit").1);
    assert_eq!(parallel("parallel"), parallel("commit"));
    assert!(!place.files().iter().any(|file| file.ends_with(".scratch")));
}

/// A local write that is longer than the way to the standby is none of the network's time.
#[test]
fn redo_13_a_local_write_beside_the_messages_is_not_the_network_s() {
    let place = Place::new();
    let (_standbys, relays, names) = three(&place, [1_000, 1_000, 1_000]);
    let one = format!("127.0.0.1:{}", relays[0].port());
    for (run, standbys) in [("one", &one), ("three", &names)] {
        let args = [
            "redo",
            standbys,
            "--length",
            "4k",
            "--time",
            "2s",
            "--local",
            "parallel",
            "--local-file",
            ".",
            "--slow-local",
            "12ms",
            "--log-size",
            "8m",
            "-o",
            run,
        ];
        place.assay(&args).code(0);
        let record = place.record(run);
        let info = &record["parts"]["redo"];
        let ms = |of: &Value| of["us_min"].as_f64().expect("a time") / 1e3;
        // The quickest of several hundred: the others may have waited for a CPU.
        for standby in info["standbys"].as_array().expect("standbys") {
            let network = ms(&standby["network"]);
            assert!((1.0..6.0).contains(&network), "{run}: {network}");
        }
        assert!(ms(&info["commit"]) >= 12.0, "{run}: {}", info["commit"]["us_min"]);
        assert!(ms(&info["serial"]) >= 13.0, "{run}: {}", info["serial"]["us_min"]);
    }
}

#[test]
fn redo_14_a_lost_standby_is_an_event_where_a_quorum_remains_and_the_end_where_none_does() {
    let place = Place::new();
    for (rule, code) in [("any 2", 0), ("first 2", 0), ("all", 4)] {
        let (mut standbys, relays, names) = three(&place, [0, 0, 0]);
        let run = rule.replace(' ', "-");
        let args = ["redo", &names, "--ack", rule, "--length", "1k", "--time", "3s", "-o", &run];
        let running = place.start(&args).until("messages", || relays[0].heard() > UNDER_WAY);
        standbys.remove(0).started.kill();
        let ran = running.ended().code(code);
        let record = place.record(&run);
        let standbys = record["parts"]["redo"]["standbys"].as_array().expect("standbys");
        let lost = standbys.iter().filter(|one| one["lost"] != "").count();
        assert_eq!(lost, 1, "{rule}: {}", ran.err);
        match code {
            0 => assert!(record["advice"].to_string().contains("was lost"), "{rule}"),
            _ => {
                assert!(ran.err.contains("commit rule \"all\" cannot be kept"), "{}", ran.err);
                assert!(ran.err.contains("127.0.0.1:"), "{}", ran.err);
            }
        }
    }
}

#[test]
fn a_standby_that_is_late_is_left_behind_when_grace_is_over() {
    let place = Place::new();
    let (_standbys, _relays, names) = three(&place, [0, 0, 200_000]);
    // Long enough for two seconds that TCP was asked in, also where the asking thread has a part of a CPU.
    let args = ["redo", &names, "--grace", "150ms", "--length", "1k", "--time", "6s", "-o", "run"];
    let ran = place.assay(&args).code(0);
    let record = place.record("run");
    let info = &record["parts"]["redo"];
    assert_eq!(info["rule"], "all that remain");
    let last = &info["standbys"][2];
    assert_eq!(last["lost"], "it had not acknowledged when --grace ended", "{}", ran.err);
    // One commit waited for it, the rest did not. (On a busy host the others may be late by tens of milliseconds.)
    assert!(figure(&record, "redo_transport_us_max") >= 150_000.0);
    assert!(figure(&record, "redo_transport_us_p50") < 200_000.0);
    // What TCP says of each connection, second by second.
    for standby in 0..2 {
        let rows = info["standbys"][standby]["tcp_seconds"].as_array();
        let rtt = rows.expect("seconds").iter().filter(|row| row["rtt_us"].is_u64());
        assert!(rtt.count() >= 2, "{}", info["standbys"][standby]);
    }
    let series = record["series"]["metrics"].as_object().expect("columns");
    let of_tcp = series.keys().filter(|name| name.starts_with("rtt_us_"));
    assert_eq!(of_tcp.count(), 2, "{:?}", series.keys());
}

#[test]
fn streams_to_several_standbys_run_each_at_its_own_speed() {
    let place = Place::new();
    let slow = Standby::writing(&place, &["--slow-write", "20ms"]);
    let quick = Standby::writing(&place, &[]);
    let relay = Relay::to(quick.port);
    let names = format!("127.0.0.1:{},127.0.0.1:{}", slow.port, relay.port());
    let args = [
        "redo",
        &names,
        "--mode",
        "async",
        "--length",
        "8k",
        "--write-mode",
        "pagecache",
        "--log-size",
        "8m",
        "--time",
        "1s",
        "-o",
        "run",
    ];
    let ran = place.assay(&args).code(0);
    let record = place.record("run");
    identities_hold(&record);
    let rate = |port: u16| scoped(&record, &format!("127.0.0.1:{port}"), "redo_standby_per_s");
    // 20 ms a write are 50 in a second.
    assert!(rate(slow.port) <= 50.0, "{}", rate(slow.port));
    assert!(rate(relay.port()) > rate(slow.port), "{}", ran.out);
    assert!(ran.out.contains("to each at its own speed"), "{}", ran.out);
    let names = ["redo", &names, "--mode", "async", "--grace", "1s"];
    let told = place.assay(&names).code(2);
    assert!(told.errors()[0].contains("--grace"), "{}", told.err);
    // One that dies takes nobody with it.
    let wanted = relay.heard() + UNDER_WAY;
    let running = place.start(&[&args[..args.len() - 3], &["3s", "-o", "one-left"]].concat());
    let running = running.until("messages", || relay.heard() > wanted);
    quick.started.kill();
    let ran = running.ended().code(0);
    let record = place.record("one-left");
    let lost = record["parts"]["redo"]["standbys"][1]["lost"].as_str();
    assert!(lost.is_some_and(|why| !why.is_empty()), "{}", ran.err);
    identities_hold(&record);
}
