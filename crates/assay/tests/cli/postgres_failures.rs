//! What can go wrong with a PostgreSQL server before and in a run: one clear error or a counted class for each, the
//! record is kept and marked, and no session stays on the server.

mod claims;

use crate::common::spoiler::{Attack, Harm, Server as Behind, Spoiler};
use crate::common::{Place, Ran, Started, json, until, with};
use crate::pg_server::{End, STRANGERS, Server, Stranger};
use serde_json::Value;
use std::time::Duration;

/// Two schemas of 8 MiB.
const SMALL: &[&str] = &["-s", "2", "--set", "SCALE=1000"];
/// A run that would last a minute if nothing happened.
const LONG: &[&str] = &["--time", "60", "--warmup", "0", "-o", "run", "--format", "full"];
const SHORT: &[&str] = &["--time", "1", "--warmup", "0", "-o", "run", "--format", "full"];

fn prepare(place: &Place, url: &str) {
    place.assay(&with(&["prepare", "--target", url], SMALL)).code(0);
}

fn arguments<'a>(verb: &'a str, url: &'a str, more: &[&[&'a str]]) -> Vec<&'a str> {
    let more = more.concat();
    // An option is given once.
    let small = if more.contains(&"-s") { &SMALL[2..] } else { SMALL };
    with(&with(&[verb, "--target", url], small), &more)
}

/// Starts a long run and returns it while it measures.
fn measuring(place: &Place, url: &str, more: &[&str]) -> Started {
    let started = place.start(&arguments("run", url, &[LONG, more]));
    started.until("the window begins", || place.measures("run"))
}

/// The record of a run that could not go on: kept, marked, with one clear error.
fn given_up(place: &Place, ran: Ran) -> (Value, String) {
    let ran = ran.code(4);
    let errors = ran.errors();
    assert_eq!(errors.len(), 1, "{}", ran.err);
    assert!(ran.out.contains("Verdict: invalid"), "{}", ran.out);
    let record = record(place);
    assert_eq!(record["run"]["verdict"], "invalid");
    // It gave up long before its minute was over.
    let elapsed = record["interval"]["whole_run_s"].as_f64();
    assert!(elapsed.expect("a figure") < 50.0, "{elapsed:?}");
    (record, errors[0].to_owned())
}

fn record(place: &Place) -> Value {
    let record = json(&place.read("run/record.json"));
    std::fs::rename(place.path("run"), place.path(&format!("run-{}", fresh()))).expect("a run's directory");
    record
}

fn fresh() -> u128 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    since.expect("a clock after 1970").as_nanos()
}

/// Operations that failed, of a class.
fn failed(record: &Value, class: &str) -> u64 {
    let classes = record["driver"]["errors_count"].as_object();
    let classes = classes.unwrap_or_else(|| panic!("no classes: {}", record["driver"]));
    classes.get(class).and_then(Value::as_u64).unwrap_or(0)
}

/// Statements that others stopped: given up, or tried again with success.
fn stopped(record: &Value, class: &str) -> u64 {
    let retried = record["driver"]["retries_by_class_count"][class].as_u64();
    failed(record, class) + retried.unwrap_or(0)
}

#[test]
fn a_server_that_is_stopped_in_a_run_ends_it_with_its_record_kept() {
    let Some(mut server) = Server::start(&[]) else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    for (how, place_of_loop) in [
        (End::Fast, "LOOP=client"),
        (End::Immediate, "LOOP=client"),
        (End::Killed, "LOOP=client"),
        (End::Fast, "LOOP=server"),
        (End::Killed, "LOOP=server"),
    ] {
        // So few updates that no table outgrows its data set, however long the versions of a killed session stay.
        let few = ["--set", place_of_loop, "--set", "UPDATE_PCT=2"];
        let run = measuring(&place, &server.url(), &few);
        server.stop(how);
        let (_, error) = given_up(&place, run.ended());
        assert!(error.contains("connection"), "{how:?}: {error}");
        server.start_again();
        server.keeps_no_session();
    }
    // What it left behind is whole.
    place.assay(&arguments("check", &server.url(), &[])).code(0);
}

#[test]
fn a_killed_program_leaves_no_session() {
    let Some(server) = Server::shared("killed") else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    for run_loop in ["LOOP=client", "LOOP=server"] {
        let more = ["--set", run_loop, "--set", "UPDATE_PCT=50"];
        measuring(&place, &server.url(), &more).kill();
        server.keeps_no_session();
        std::fs::rename(place.path("run"), place.path(run_loop)).expect("what is left of the run");
    }
    // As many updates as the host had time for may have made the tables grow, which a check refuses and this mends.
    for table in ["cf1_1", "cf1_2"] {
        server.query(&[&format!("vacuum (full, freeze, analyze) assay.{table}")]);
    }
    place.assay(&arguments("check", &server.url(), &[])).code(0);
}

#[test]
fn a_cut_connection_ends_the_run_with_its_record_kept() {
    let Some(server) = Server::shared("cut") else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    let proxy = Spoiler::before(&Behind::Unix(server.socket()), Attack::none());
    let url = format!("postgres://postgres@127.0.0.1:{}/cut", proxy.port);
    let run = measuring(&place, &url, &[]);
    proxy.cut();
    let (_, error) = given_up(&place, run.ended());
    assert!(error.contains("connection"), "{error}");
    // The server learns it too.
    server.keeps_no_session();
}

/// Something on the way keeps an answer for itself and lets new connections through: the server lives, and waits for us.
#[test]
fn an_answer_that_is_lost_on_the_way_ends_the_run_wherever_it_was() {
    let Some(server) = Server::shared("lost") else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    let impatient = ["--time", "1", "--warmup", "0", "--set", "PG_ANSWER_TIMEOUT=1", "--set", "PG_GRACE=8"];
    // In the login, in looks, claims and plans, among the first statements of the sessions.
    let ended = [300_u64, 755, 1064, 3316, 4475, 6000, 9000, 14_000, 20_000].map(|byte| {
        let proxy = Spoiler::before(&Behind::Unix(server.socket()), Attack::on_answers(Harm::Stall, byte));
        let url = format!("postgres://postgres@127.0.0.1:{}/lost?connect_timeout=2", proxy.port);
        let run = place.start(&arguments("run", &url, &[&impatient, &["-o", &byte.to_string()]]));
        run.ended()
    });
    let lost = ended.iter().filter(|ran| ran.err.contains("lost in transit")).count();
    let all: Vec<_> = ended.iter().map(|ran| (ran.code, ran.errors())).collect();
    assert!(all.iter().all(|(code, _)| [0, 3, 4].contains(code)), "{all:?}");
    assert!(lost >= 3, "{all:?}");
    server.keeps_no_session();
}

#[test]
fn statements_that_others_stop_are_counted_by_class() {
    let Some(server) = Server::shared("stopped") else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    // Any two ranges of so many of the 1000 keys meet. Operations are counted, not seconds: a busy host may have none in a second.
    let work_loop = ["--warmup", "0", "-o", "run", "--format", "full", "--set"];
    let one_schema = ["-s", "1", "-t", "4", "--set", "UPDATE_PCT=100", "--set", "UPDATE_WORK_UNIT=600"];
    // Sessions that change the same rows as a serial order would have it.
    server.query(&[
        "alter database stopped set deadlock_timeout = '10ms'",
        "alter database stopped set default_transaction_isolation = serializable",
    ]);
    // On a host that gives them one CPU in turn they would hardly meet in time: so all of them wait for a stranger first.
    let stranger = Stranger::holding(&server, "select count(*) from (select 1 from assay.cf1_1 for update) x", 600);
    let run = place.start(&arguments("run", &server.url(), &[&work_loop, &["WORK_LOOP=5"], &one_schema]));
    let run = run.until("the window begins", || place.measures("run"));
    std::thread::sleep(Duration::from_millis(500));
    drop(stranger);
    let ran = run.ended();
    let found = record(&place);
    assert!(stopped(&found, "serialization") > 0, "{}", found["driver"]);
    assert!(ran.code == 0 || ran.code == 4, "{}", ran.err);
    server.query(&["alter database stopped reset default_transaction_isolation"]);
    // Its versions may have outgrown the pages of so few rows, and then no run is let in.
    server.query(&["vacuum (full, freeze, analyze) assay.cf1_1"]);
    // Locks held over several statements are taken in no order.
    let several = with(&one_schema, &["--set", "COMMIT_EVERY=8"]);
    let ran = place.assay(&arguments("run", &server.url(), &[&work_loop, &["WORK_LOOP=40"], &several]));
    let found = record(&place);
    assert!(stopped(&found, "deadlock") > 0, "{}", found["driver"]);
    assert!(ran.code == 0 || ran.code == 4, "{}", ran.err);
    server.keeps_no_session();
}

#[test]
fn waits_that_take_longer_than_they_may_are_counted_by_class() {
    let Some(server) = Server::shared("waits") else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    let sessions = ["-s", "1", "-t", "2", "--set", "UPDATE_PCT=100"];
    for (limit, class) in [("statement_timeout", "statement timeout"), ("lock_timeout", "lock timeout")] {
        for run_loop in ["LOOP=client", "LOOP=server"] {
            // Long enough for what the run asks before it begins, which takes milliseconds and has the same limit.
            server.query(&[&format!("alter database waits set {limit} = '5s'")]);
            let held = "select count(*) from (select 1 from assay.cf1_1 for update) x";
            let stranger = Stranger::holding(&server, held, 600);
            let more = with(&sessions, &["--set", run_loop]);
            let ran = place.assay(&arguments("run", &server.url(), &[SHORT, &more])).code(4);
            drop(stranger);
            let found = record(&place);
            assert!(failed(&found, class) > 0, "{limit} {run_loop}: {}", found["driver"]);
            assert_eq!(ran.errors().len(), 1, "{}", ran.err);
            assert!(ran.out.contains(&format!("error {class}: ")), "{}", ran.out);
            server.keeps_no_session();
            server.query(&[&format!("alter database waits reset {limit}")]);
        }
    }
    // Whoever may wait as long as it takes waits, and is seen waiting for a lock.
    let held = "select count(*) from (select 1 from assay.cf1_1 for update) x";
    let stranger = Stranger::holding(&server, held, 600);
    // One row at a time: a session that loses its core in a transaction keeps old versions of the other's rows,
    // and these few pages have no room for many.
    let one_row = with(&sessions, &["--set", "WORK_UNIT=1"]);
    let longer = ["--time", "2", "--warmup", "0", "-o", "run"];
    let run = place.start(&arguments("run", &server.url(), &[&longer, &one_row]));
    let run = run.until("the window begins", || place.measures("run"));
    std::thread::sleep(Duration::from_millis(500));
    drop(stranger);
    run.ended().code(0);
    let found = record(&place);
    let waited = found["activity"].to_string();
    assert!(waited.contains("Lock:") || found.to_string().contains("enq: TX"), "{waited}");
    server.keeps_no_session();
}

#[test]
fn others_that_take_all_connections_stop_no_run_that_has_its_own() {
    let Some(server) = Server::start(&["max_connections=22"]) else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    let run = place.start(&arguments(
        "run",
        &server.url(),
        &[&["--time", "4", "--warmup", "0", "-o", "run"], &["--set", "UPDATE_PCT=0"]],
    ));
    let run = run.until("the window begins", || place.measures("run"));
    // Two of these places are for the one who ends the others.
    server.query(&["create role nobody_else login"]);
    let mut others = Vec::new();
    while others.len() < 30 {
        let mut psql = server.psql_of("nobody_else", &["select pg_sleep(600)"]);
        psql.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        others.push(psql.spawn().expect("psql"));
    }
    // The refused ones end by themselves, the others have all the places there are.
    until("one that is refused", || others.iter_mut().any(|psql| psql.try_wait().expect("a child").is_some()));
    let ran = run.ended().code(0);
    assert!(ran.errors().is_empty(), "{}", ran.err);
    let found = record(&place);
    assert_eq!(found["run"]["verdict"], "complete");
    // Whoever comes now is told how many places there are.
    let ran = place.assay(&arguments("run", &server.url(), &[SHORT])).code(3);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    assert!(ran.err.contains("max_connections is 22"), "{}", ran.err);
    server.query(&[&format!("select count(pg_terminate_backend(pid)) {STRANGERS}")]);
    for mut psql in others {
        psql.wait().expect("a child");
    }
    server.keeps_no_session();
}

#[test]
fn a_role_that_may_not_have_so_many_sessions_is_told_and_keeps_none() {
    let Some(server) = Server::shared("roles") else {
        return;
    };
    let place = Place::new();
    prepare(&place, &server.url());
    server.query(&["create role few login connection limit 5", "grant pg_read_all_data to few"]);
    let many = ["-t", "4", "--set", "UPDATE_PCT=0"];
    let ran = place.assay(&arguments("run", &server.url_of("few"), &[SHORT, &many])).code(3);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    let told = &ran.errors()[0];
    assert!(told.contains("too many connections for role") && told.contains("CONNECTION LIMIT"), "{told}");
    server.keeps_no_session();
}

#[test]
fn a_hot_standby_serves_selects_and_refuses_the_rest_before_it_starts() {
    let Some(mut primary) = Server::start(&[]) else {
        return;
    };
    let place = Place::new();
    prepare(&place, &primary.url());
    let standby = Server::standby_of(&mut primary);
    let ran = place.assay(&arguments("run", &standby.url(), &[SHORT])).code(3);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    let told = ran.err.to_lowercase();
    assert!(told.contains("standby") || told.contains("read-only"), "{told}");
    assert!(told.contains("update_pct"), "the way out: {told}");
    place.assay(&arguments("run", &standby.url(), &[SHORT, &["--set", "UPDATE_PCT=0"]])).code(0);
    let found = record(&place);
    assert_eq!(found["run"]["verdict"], "complete");
    // Nothing can be made or removed there either.
    for verb in ["prepare", "destroy"] {
        let ran = place.assay(&[
            verb,
            "--target",
            &standby.url(),
            "-s",
            "4",
            "--set",
            "SCALE=1000",
            "--set",
            "PG_SCHEMA=other",
        ]);
        assert_eq!(ran.code, 3, "{verb}: {}", ran.err);
        assert_eq!(ran.errors().len(), 1, "{verb}: {}", ran.err);
    }
    standby.keeps_no_session();
}

#[test]
fn a_server_one_may_not_enter_is_told_in_one_line() {
    let Some(server) = Server::shared("entered") else {
        return;
    };
    let place = Place::new();
    for url in [server.url_of("nobody_of_that_name"), server.url().replacen("/entered?", "/nowhere?", 1)] {
        for verb in ["run", "prepare", "check", "destroy"] {
            let ran = place.assay(&arguments(verb, &url, &[])).code(3);
            assert_eq!(ran.errors().len(), 1, "{verb} {url}: {}", ran.err);
            assert!(ran.err.contains("does not exist"), "{verb} {url}: {}", ran.err);
        }
    }
    assert!(place.files().is_empty(), "{:?}", place.files());
}
