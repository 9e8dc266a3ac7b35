//! A server that stops answering while all its connections stay: every command ends, by itself or on request, a run
//! with its record, and no session stays on the server when it goes on.

use crate::common::{Place, Ran, Started, json, set, with};
use crate::pg_server::{Server, Stranger, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// Longer than any test waits: what ends such a run is not its time.
const FOR_EVER: &[&str] = &["--time", "600", "--warmup", "0", "-o", "run", "--format", "full"];
const NEVER: &[&str] = &["--set", "PG_ANSWER_TIMEOUT=600"];
const SOON: &[&str] = &["--set", "PG_ANSWER_TIMEOUT=2"];

fn arguments<'a>(verb: &'a str, url: &'a str, more: &[&[&'a str]]) -> Vec<&'a str> {
    let more = more.concat();
    let schemas: &[&str] = if more.contains(&"-s") { &[] } else { &["-s", "2"] };
    let scale: &[&str] =
        if more.iter().any(|word| word.starts_with("SCALE=")) { &[] } else { &["--set", "SCALE=1000"] };
    [&[verb, "--target", url], schemas, scale, &more].concat()
}

/// A server with a data set, and a place to run in.
fn loaded() -> Option<(Server, Place)> {
    let server = Server::start(&[])?;
    let place = Place::new();
    place.assay(&arguments("prepare", &server.url(), &[])).code(0);
    Some((server, place))
}

/// A run that measures.
fn measuring(place: &Place, server: &Server, more: &[&str]) -> Started {
    let url = server.url();
    let started = place.start(&arguments("run", &url, &[more]));
    started.until("the window begins", || place.measures("run"))
}

/// The record of the run in `run`, which makes room for the next one.
fn record(place: &Place) -> Value {
    let record = json(&place.read("run/record.json"));
    std::fs::remove_dir_all(place.path("run")).expect("a run's directory");
    record
}

/// Exit 4, one error that says why, and a record that says the same.
fn given_up(place: &Place, ran: Ran, reason: &str, others: &str) {
    let ran = ran.code(4);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    assert!(ran.errors()[0].contains(reason), "{}", ran.err);
    assert!(ran.errors()[0].contains(others), "{}", ran.err);
    let record = record(place);
    assert_eq!(record["run"]["verdict"], "invalid");
    assert!(record.to_string().contains(reason), "{}", record["run"]);
}

#[test]
fn a_frozen_server_is_given_up_and_the_record_says_how_many_waited() {
    let Some((server, place)) = loaded() else {
        return;
    };
    let ways: &[&[&str]] = &[
        &["-t", "1"],
        &["-t", "4", "--set", "DRIVER_THREADS=2"],
        &["-t", "1", "--set", "LOOP=server", "--set", "UPDATE_PCT=50"],
    ];
    for (way, others) in ways.iter().zip(["another session", "7 other", "another session"]) {
        let run = measuring(&place, &server, &with(FOR_EVER, &with(SOON, way)));
        server.freeze();
        let ran = run.ended();
        server.thaw();
        let reason = "did not answer within 2 s, and a new connection did not";
        given_up(&place, ran, reason, others);
        server.keeps_no_session();
    }
}

#[test]
fn a_run_ends_at_its_time_and_the_grace_whatever_its_server_does() {
    let Some((server, place)) = loaded() else {
        return;
    };
    let timed = ["--time", "3", "--warmup", "0", "-o", "run", "-t", "2"];
    let timed = with(&with(&timed, NEVER), &["--set", "PG_GRACE=4"]);
    let reason = "did not answer within 4 s after the end of the run (PG_GRACE)";
    let run = measuring(&place, &server, &timed);
    server.freeze();
    let ran = run.ended();
    server.thaw();
    given_up(&place, ran, reason, "");
    server.keeps_no_session();
    // One process that hangs while its server lives is no sign of life either when the time is over. It only reads: one
    // stopped in an update may hold rows that another session then waits for, which is an error of its own.
    let run = measuring(&place, &server, &with(&timed, &["--set", "UPDATE_PCT=0"]));
    let pid = server.query(&[
        "select pid from pg_stat_activity where application_name = 'assay' and query ilike '%custid between%' limit 1",
    ]);
    let pid = pid.parse().expect("a process");
    signal(pid, Signal::STOP);
    let ran = run.ended();
    signal(pid, Signal::CONT);
    given_up(&place, ran, reason, "");
    server.keeps_no_session();
}

#[test]
fn a_run_on_a_frozen_server_ends_on_request() {
    let Some((server, place)) = loaded() else {
        return;
    };
    for (signals, way) in [
        (&[Signal::TERM][..], &["-t", "1"][..]),
        (&[Signal::TERM], &["-t", "4", "--set", "DRIVER_THREADS=1"]),
        (&[Signal::TERM], &["-t", "1", "--set", "LOOP=server"]),
        (&[Signal::INT, Signal::INT], &["-t", "1"]),
        (&[Signal::INT, Signal::INT], &["-t", "4", "--set", "DRIVER_THREADS=1"]),
    ] {
        let run = measuring(&place, &server, &with(FOR_EVER, &with(NEVER, way)));
        server.freeze();
        for one in signals {
            run.signal(*one);
            std::thread::sleep(Duration::from_millis(300));
        }
        let ran = run.ended();
        server.thaw();
        let ran = ran.code(130);
        assert!(ran.out.contains("Verdict: "), "{} {}", ran.out, ran.err);
        let record = record(&place);
        assert_ne!(record["run"]["verdict"], "complete", "{signals:?} {way:?}");
        server.keeps_no_session();
    }
}

#[test]
fn prepare_and_check_give_a_frozen_server_up_and_end_on_request() {
    let Some((server, place)) = loaded() else {
        return;
    };
    let url = server.url();
    let fresh = ["--set", "PG_SCHEMA=fresh", "--set", "SCALE=20000"];
    for (verb, more) in [("prepare", &fresh[..]), ("check", &[])] {
        for (patience, stop, code) in [(SOON, false, 3), (NEVER, true, 130)] {
            // Whoever looks at the first table waits, so that the freeze comes in the midst of it.
            let stranger = Stranger::holding(&server, "lock table assay.cf1_1", 600);
            let started = place.start(&arguments(verb, &url, &[more, patience]));
            let started = started.until("a session", || server.sessions() > 0);
            std::thread::sleep(Duration::from_millis(300));
            server.freeze();
            if stop {
                started.signal(Signal::TERM);
            }
            let ran = started.ended();
            server.thaw();
            drop(stranger);
            let ran = ran.code(code);
            assert_eq!(ran.errors().len(), 1, "{verb}: {}", ran.err);
            let told = stop || ran.errors()[0].contains("did not answer within 2 s");
            assert!(told, "{verb}: {}", ran.err);
            server.keeps_no_session();
        }
    }
    // What was given up in the midst of it is made good.
    place.assay(&arguments("prepare", &url, &[&fresh])).code(0);
    place.assay(&arguments("check", &url, &[])).code(0);
}

#[test]
fn nobody_waits_longer_than_asked_for_a_frozen_server_to_let_him_in() {
    let Some((server, place)) = loaded() else {
        return;
    };
    let url = format!("{}&connect_timeout=2", server.url());
    server.freeze();
    for verb in ["run", "prepare", "check", "destroy"] {
        let ran = place.assay(&arguments(verb, &url, &[])).code(3);
        assert_eq!(ran.errors().len(), 1, "{verb}: {}", ran.err);
        assert!(ran.err.contains("no answer within 2 s"), "{verb}: {}", ran.err);
    }
    server.thaw();
    server.keeps_no_session();
}

#[test]
fn a_server_that_lives_is_waited_for_longer_than_an_answer_may_take() {
    let Some((server, place)) = loaded() else {
        return;
    };
    for way in [&["-t", "1"][..], &["-t", "4", "--set", "DRIVER_THREADS=1"]] {
        let held = "select count(*) from (select 1 from assay.cf1_1 for update) x";
        let stranger = Stranger::holding(&server, held, 6);
        let timed = ["--time", "2", "--warmup", "0", "-o", "run"];
        // Few rows at a time, and pauses: the stranger keeps all versions, which must not outgrow the tables.
        let updates = set(&["PG_ANSWER_TIMEOUT=1", "UPDATE_PCT=100", "WORK_UNIT=1"]);
        let pauses = set(&["THINK_TM_FREQUENCY=1", "THINK_TM_MIN=.01", "THINK_TM_MAX=.01"]);
        let updates = with(&updates, &pauses);
        let timed = with(&with(&timed, way), &updates);
        let ran = place.assay(&arguments("run", &server.url(), &[&timed]));
        drop(stranger);
        ran.code(0);
        assert_eq!(record(&place)["run"]["verdict"], "complete");
        server.keeps_no_session();
    }
}
