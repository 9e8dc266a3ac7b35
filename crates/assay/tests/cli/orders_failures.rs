//! What can go wrong with a server before and in a run of order entry: one clear error or a counted class for each, the
//! record is kept and marked, and no transaction that was acknowledged is lost.

use crate::common::{Place, Started, with};
use crate::pg_server::{End, OURS, Server};

pub(crate) const SMALL: &[&str] = &["--scale", ".002", "--seed", "7"];
const OTHER: &[&str] = &["--scale", ".002", "--set", "ORDERS_SCHEMA=other"];
/// A run that would last a minute if nothing happened.
pub(crate) const LONG: &[&str] = &["--sessions", "4", "--time", "60", "--warmup", "0", "-o", "run"];

/// A data set in a database.
fn prepared(server: Option<Server>) -> Option<(Server, Place)> {
    let server = server?;
    let place = Place::new();
    let url = server.url();
    place.assay(&with(&["orders", "prepare", "--target", &url], SMALL)).code(0);
    Some((server, place))
}

fn arguments<'a>(verb: &'a str, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    with(&["orders", verb, "--target", url], more)
}

fn measuring(place: &Place, url: &str, form: &str) -> Started {
    let more = with(LONG, &["--form", form]);
    let started = place.start(&arguments("run", url, &more));
    started.until("the window begins", || place.measures("run"))
}

/// Its record is kept and marked, with one clear error that has one of these words.
fn given_up(place: &Place, run: Started, words: &[&str]) {
    let ran = run.ended().code(4);
    let errors = ran.errors();
    assert_eq!(errors.len(), 1, "{}", ran.err);
    assert!(words.iter().any(|word| errors[0].contains(word)), "{}", ran.err);
    let record = place.record("run");
    assert_eq!(record["run"]["verdict"], "invalid");
    // It gave up long before its minute was over.
    let elapsed = record["interval"]["whole_run_s"].as_f64();
    assert!(elapsed.expect("a figure") < 50.0, "{elapsed:?}");
    std::fs::remove_dir_all(place.path("run")).expect("a run's directory");
}

#[test]
fn a_server_that_stops_in_a_run_has_kept_what_it_acknowledged() {
    let Some((mut server, place)) = prepared(Server::start(&[])) else {
        return;
    };
    let url = server.url();
    for (how, form) in [(End::Killed, "server"), (End::Fast, "client"), (End::Killed, "client")] {
        let run = measuring(&place, &url, form);
        server.stop(how);
        given_up(&place, run, &["connection"]);
        server.start_again();
        server.keeps_no_session();
        let checked = place.assay(&arguments("check", &url, &[])).code(0);
        assert!(checked.out.contains("17"), "{}", checked.out);
    }
}

#[test]
fn sessions_that_are_ended_are_told_and_leave_a_whole_data_set() {
    let Some((server, place)) = prepared(Server::shared("orders_ended")) else {
        return;
    };
    let url = server.url();
    for form in ["server", "client"] {
        let run = measuring(&place, &url, form);
        server.query(&[&format!("select pg_terminate_backend(pid) {OURS} and backend_type = 'client backend'")]);
        given_up(&place, run, &["terminat", "connection"]);
        server.keeps_no_session();
    }
    place.assay(&arguments("check", &url, &[])).code(0);
}

#[test]
fn what_may_not_be_written_and_who_may_not_is_told_before_anything_is_done() {
    let Some((server, place)) = prepared(Server::shared("orders_refused")) else {
        return;
    };
    server.query(&["create role stranger login"]);
    let stranger = server.url_of("stranger");
    let refused = place.assay(&arguments("run", &stranger, LONG)).code(3);
    assert_eq!(refused.errors().len(), 1, "{}", refused.err);
    assert!(refused.err.contains("connect as that role"), "{}", refused.err);
    let url = server.url();
    server.query(&["alter database orders_refused set default_transaction_read_only = on"]);
    for (verb, more) in [("run", LONG), ("prepare", OTHER)] {
        let refused = place.assay(&arguments(verb, &url, more)).code(3);
        assert_eq!(refused.errors().len(), 1, "{}", refused.err);
        assert!(refused.err.contains("read"), "{}", refused.err);
    }
    server.query(&[
        "set default_transaction_read_only = off",
        "alter database orders_refused reset default_transaction_read_only",
    ]);
    let other = with(LONG, &["--scale", ".003"]);
    let refused = place.assay(&arguments("run", &server.url(), &other)).code(2);
    assert!(refused.err.contains("ORDERS_SCALE asks for another"), "{}", refused.err);
    assert!(!place.path("run").join("record.json").exists());
    // Not once for each step of a sweep.
    let sweep = ["--scale", ".003", "--sessions", "1,2", "--time", "2", "-o", "swept"];
    let refused = place.assay(&arguments("sweep", &server.url(), &sweep)).code(2);
    assert_eq!(refused.errors().len(), 1, "{}", refused.err);
    assert!(!place.path("swept").exists());
    place.assay(&arguments("check", &server.url(), &[])).code(0);
}

#[test]
fn a_data_set_that_somebody_else_broke_makes_a_run_invalid() {
    let Some((server, place)) = prepared(Server::shared("orders_broken")) else {
        return;
    };
    server.query(&["update assay_orders.orders set order_total = order_total + 1 \
         where order_id = (select min(order_id) from assay_orders.orders)"]);
    let short = ["--sessions", "2", "--time", "1", "--warmup", "0", "-o", "run"];
    let ran = place.assay(&arguments("run", &server.url(), &short)).code(4);
    for part in ["The data set is not consistent: C2", "assay orders check --target"] {
        assert!(ran.out.contains(part), "no {part}: {}", ran.out);
    }
    assert_eq!(place.record("run")["run"]["verdict"], "invalid");
}
