//! `assay redo` with several standbys and with the primary's own log.

use crate::common::relay::Relay;
use crate::common::{Place, with};
use crate::redo::{Standby, figure, scoped, tested};
use std::time::Duration;

/// Three standbys, each behind a relay with its distance there and back, us.
fn three(place: &Place, round_trips_us: [u64; 3]) -> (Vec<Standby>, Vec<Relay>, String) {
    let standbys: Vec<Standby> = (0..3).map(|_| Standby::new(place, &[])).collect();
    let relays: Vec<Relay> = standbys.iter().map(|one| Relay::to(one.port)).collect();
    for (relay, us) in relays.iter().zip(round_trips_us) {
        relay.delay(Duration::from_micros(us / 2));
    }
    let names: Vec<String> = relays
        .iter()
        .map(|one| format!("127.0.0.1:{}", one.port()))
        .collect();
    let names = names.join(",");
    (standbys, relays, names)
}

#[test]
fn redo_12_every_rule_from_one_run() {
    let place = Place::new();
    let (_standbys, _relays, names) = three(&place, [1_000, 5_000, 20_000]);
    let args = [
        "redo", &names, "--length", "4k", "--time", "4s", "-o", "run",
    ];
    place.assay(&args).code(0);
    let record = place.record("run");
    let of = |rule: &str| scoped(&record, rule, "redo_commit_us_p50") / 1e3;
    for (rule, ms) in [
        ("any 1", 1.0),
        ("any 2", 5.0),
        ("all", 20.0),
        ("first 1", 1.0),
        ("first 2", 5.0),
    ] {
        // How long a busy machine takes beyond that is its own affair.
        assert!(of(rule) >= ms, "{rule}: {} ms", of(rule));
    }
    assert!(of("any 1") < of("any 2") && of("any 2") < of("all"));
    assert!(figure(&record, "redo_transport_us_p50") >= 20_000.0);
    let report = place.read("run/report.txt");
    assert!(
        report.contains("Commit Latency under Every Rule"),
        "{report}"
    );
}

#[test]
fn redo_13_the_primary_s_own_log_before_or_beside_the_standby() {
    let place = Place::new();
    let standby = Standby::new(&place, &[]);
    let relay = Relay::to(standby.port);
    relay.delay(Duration::from_millis(2));
    let more = [
        "--length",
        "4k",
        "--time",
        "3s",
        "--slow-local",
        "8ms",
        "--local-file",
        ".",
    ];
    let p50 = |run: &str, how: &str| {
        let (_, record) = tested(&place, relay.port(), run, &with(&more, &["--local", how]));
        let of = |key: &str| figure(&record, &format!("{key}_us_p50")) / 1e3;
        let serial = (how == "serial").then(|| of("redo_serial_commit"));
        (of("redo_transport"), serial, of("redo_parallel_commit"))
    };
    let (commit, serial, parallel) = p50("serial", "serial");
    assert!(commit >= 12.0, "{commit}");
    assert_eq!(serial, Some(commit));
    assert!(parallel >= 8.0 && parallel < commit, "{parallel}");
    let (commit, _, parallel) = p50("parallel", "parallel");
    assert!(commit >= 8.0, "{commit}");
    assert_eq!(parallel, commit);
    assert!(!place.files().iter().any(|file| file.ends_with(".scratch")));
}

#[test]
fn redo_14_a_lost_standby_is_an_event_where_a_quorum_remains_and_the_end_where_none_does() {
    let place = Place::new();
    for (rule, code) in [("any 2", 0), ("first 2", 0), ("all", 4)] {
        let (mut standbys, _relays, names) = three(&place, [0, 0, 0]);
        let run = rule.replace(' ', "-");
        let args = [
            "redo", &names, "--ack", rule, "--length", "1k", "--time", "5s", "-o", &run,
        ];
        let running = place.start(&args);
        std::thread::sleep(Duration::from_millis(2500));
        standbys.remove(0).started.kill();
        let ran = running.ended().code(code);
        let record = place.record(&run);
        let standbys = record["parts"]["redo"]["standbys"]
            .as_array()
            .expect("standbys");
        let lost = standbys.iter().filter(|one| one["lost"] != "").count();
        assert_eq!(lost, 1, "{rule}: {}", ran.err);
        match code {
            0 => assert!(
                record["warnings"].to_string().contains("was lost"),
                "{rule}"
            ),
            _ => {
                assert!(
                    ran.err.contains("commit rule \"all\" cannot be kept"),
                    "{}",
                    ran.err
                );
                assert!(ran.err.contains("127.0.0.1:"), "{}", ran.err);
            }
        }
    }
}
