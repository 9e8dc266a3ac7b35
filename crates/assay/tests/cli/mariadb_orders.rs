//! Order entry on MariaDB and MySQL when it fails: the record is kept and marked, what failed is counted by its class, and no
//! transaction that was acknowledged is lost.

use crate::common::{Place, Started, with};
use crate::mariadb::Server;
use crate::orders_failures::{LONG, SMALL};
use rustix::process::Signal;
use serde_json::Value;

fn measuring(place: &Place, url: &str, form: &str) -> Started {
    let run = with(&["orders", "run", "--target", url, "--form", form], LONG);
    let run = place.start(&run);
    run.until("the window begins", || place.measures("run"))
}

/// One clear error, and a record that is kept, marked and counts each session.
fn given_up(place: &Place, run: Started) {
    let ran = run.ended().code(4);
    let errors = ran.errors();
    assert_eq!(errors.len(), 1, "{}", ran.err);
    assert!(errors[0].contains("lost its connection"), "{}", errors[0]);
    let record = place.record("run");
    assert_eq!(record["run"]["verdict"], "invalid");
    let lost: &Value = &record["driver"]["errors_count"]["connection lost"];
    assert!(lost.as_u64().is_some_and(|n| (1..=4).contains(&n)), "{lost}");
    // It gave up long before its minute was over.
    let elapsed = record["interval"]["whole_run_s"].as_f64();
    assert!(elapsed.expect("a figure") < 50.0, "{elapsed:?}");
    std::fs::remove_dir_all(place.path("run")).expect("a run's directory");
}

/// Sessions that are killed in a run of each form, then the server.
fn killed(server: Option<Server>) {
    let Some(server) = server else { return };
    let url = server.url();
    server.place.assay(&with(&["orders", "prepare", "--target", &url], SMALL)).code(0);
    for form in ["server", "client"] {
        let run = measuring(&server.place, &url, form);
        let ours = "from information_schema.processlist where db = 'assay_orders'";
        let kill = server.query(&format!("select concat('kill ', id, ';') {ours}"));
        assert!(kill.lines().count() >= 5, "{kill}");
        server.query(&kill);
        given_up(&server.place, run);
        let check = ["orders", "check", "--target", &url];
        let checked = server.place.assay(&check).code(0);
        assert!(checked.out.contains("C17"), "{}", checked.out);
        assert!(!checked.out.contains("n/a"), "{}", checked.out);
    }
    let run = measuring(&server.place, &url, "server");
    server.signal(Signal::KILL);
    given_up(&server.place, run);
}

#[test]
fn killed_sessions_leave_a_whole_data_set_and_a_killed_server_a_record() {
    killed(Server::start());
}

#[test]
fn on_mysql_killed_sessions_leave_a_whole_data_set_and_a_killed_server_a_record() {
    killed(Server::mysql());
}
