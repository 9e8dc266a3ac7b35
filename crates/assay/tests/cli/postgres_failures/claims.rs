//! Several commands on one data set of a PostgreSQL server, as separate programs: who needs it alone is refused, runs
//! share it and say so.

use crate::common::{Place, Started, json, set, with};
use crate::pg_server::{OURS, Server};
use rustix::process::Signal;
use serde_json::Value;

/// Paced, so that its sessions are idle most of the time: nothing but a claim tells that somebody is there.
const PACED: &[&str] = &["RATE=20", "UPDATE_PCT=50"];
/// One schema of 8 MiB.
const SMALL: &[&str] = &["-s", "1", "--set", "SCALE=1000"];

/// A database with a data set, its URL, and a place to run in; `None` where no server is installed.
fn prepared(server: Option<Server>) -> Option<(Server, String, Place)> {
    let server = server?;
    let place = Place::new();
    let url = server.url();
    place.assay(&with(&["prepare", "--target", &url], SMALL)).code(0);
    Some((server, url, place))
}

/// A paced run in the directory `name`, returned while it measures.
fn measuring(place: &Place, url: &str, name: &str, seconds: &str) -> Started {
    let args = ["run", "--target", url, "-o", name, "--warmup", "0", "--time", seconds];
    let started = place.start(&with(&with(&args, SMALL), &set(PACED)));
    started.until("the window begins", || place.measures(name))
}

fn record(place: &Place, name: &str) -> Value {
    json(&place.read(&format!("{name}/record.json")))
}

fn told_of_another(record: &Value) -> bool {
    let warnings = record["warnings"].as_array().expect("warnings");
    let mut texts = warnings.iter().filter_map(Value::as_str);
    texts.any(|text| text.contains("Another assay shared this data set") && text.contains("assay run since 20"))
}

#[test]
fn destroy_prepare_and_check_under_a_paced_run_are_refused_and_the_data_set_stays() {
    let Some((_server, url, place)) = prepared(Server::shared("claimed")) else {
        return;
    };
    let running = measuring(&place, &url, "run", "600");
    for command in
        [&["destroy", "--target", &url][..], &["check", "--target", &url], &["prepare", "--target", &url, "-s", "2"]]
    {
        let refused = place.assay(command).code(3);
        let errors = refused.errors();
        assert_eq!(errors.len(), 1, "{}", refused.err);
        assert!(
            errors[0].contains("in use by assay run since 20") && errors[0].contains("server process"),
            "{}",
            errors[0]
        );
    }
    running.signal(Signal::TERM);
    running.ended().code(130);
    assert_eq!(record(&place, "run")["run"]["verdict"], "incomplete");
    assert!(!told_of_another(&record(&place, "run")));
    place.assay(&["check", "--target", &url]).code(0);
    place.assay(&["destroy", "--target", &url]).code(0);
}

#[test]
fn two_runs_share_a_data_set_and_both_records_say_so() {
    let Some((_server, url, place)) = prepared(Server::shared("shared")) else {
        return;
    };
    let long = measuring(&place, &url, "long", "600");
    let short = measuring(&place, &url, "short", "1");
    short.ended().code(0);
    long.signal(Signal::TERM);
    long.ended().code(130);
    for (name, verdict) in [("long", "incomplete"), ("short", "complete")] {
        let record = record(&place, name);
        assert!(told_of_another(&record), "{name}: {}", record["warnings"]);
        assert_eq!(record["run"]["verdict"], verdict);
    }
}

#[test]
fn a_run_whose_claim_is_taken_away_is_invalid() {
    let Some((server, url, place)) = prepared(Server::shared("claim_lost")) else {
        return;
    };
    let running = measuring(&place, &url, "run", "5");
    let ended = server
        .query(&[&format!("select pg_terminate_backend(pid) {OURS} and application_name like 'assay run since %'")]);
    assert!(ended.contains('t'), "{ended}");
    let ran = running.ended().code(4);
    assert!(ran.err.contains("the claim on the data set was lost"), "{}", ran.err);
    assert_eq!(record(&place, "run")["run"]["verdict"], "invalid");
}

#[test]
fn pages_that_a_run_added_to_its_tables_are_no_physical_reads_and_void_it_where_they_are_counted_so() {
    let Some((server, url, place)) = prepared(Server::start(&["shared_buffers=256MB"])) else {
        return;
    };
    // Versions that somebody may still want to see stay, and every update of a row needs a page.
    let mut watcher = server
        .psql(&["begin isolation level repeatable read; select count(*) from pg_class; select pg_sleep(60)"])
        .spawn()
        .expect("psql");
    let many = ["run", "--target", &url, "-o", "run", "--warmup", "0"];
    let many = with(&with(&many, SMALL), &set(&["UPDATE_PCT=100", "WORK_LOOP=500"]));
    let ran = place.assay(&many);
    watcher.kill().expect("psql");
    watcher.wait().expect("psql");
    let record = record(&place, "run");
    let grew = record["warnings"].to_string();
    assert!(grew.contains("The tables of the data set grew from"), "{grew}");
    let version: u32 =
        server.query(&["select current_setting('server_version_num')::int / 10000"]).trim().parse().expect("a number");
    if version < 16 {
        let ran = ran.code(4);
        assert!(ran.err.contains("counts a page that it adds to a table as read"), "{}", ran.err);
        assert_eq!(record["run"]["verdict"], "invalid");
    } else {
        ran.code(0);
    }
    let checked = place.assay(&["check", "--target", &url]).code(3);
    assert!(checked.err.contains("VACUUM (FULL, FREEZE, ANALYZE)"), "{}", checked.err);
}
