//! `fleet run -- platform`.

use super::{Fleet, own};
use crate::common::{Started, with};
use serde_json::Value;

/// A plan of some tests of a second.
fn plan<'a>(tests: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    with(&["--", "platform", "--size", "64M", "--brief", tests], more)
}

#[test]
fn a_platform_is_measured_in_lockstep_in_a_directory_that_all_share() {
    let Some(mut fleet) = Fleet::of(&["a", "b"]) else { return };
    fleet.agent("c", &["--clock-ahead-ms", "3600000"]);
    std::fs::create_dir(fleet.place.path("shared")).expect("a directory");
    let tests = ["clock", "commits", "reads"];
    let names = tests.join(",");
    let ran = fleet.run(&["--hosts", "3"], &plan(&names, &["../shared", "--anyway"])).code(0);
    assert!(ran.out.starts_with("platforms on ../shared: 3 hosts, "), "{}", ran.out);
    assert_eq!(std::fs::read_dir(fleet.place.path("shared")).expect("readable").count(), 0, "nothing stays there");
    let record = fleet.record();
    let part = &record["parts"]["platforms"];
    assert_eq!((&record["kind"], &part["measured_count"]), (&Value::from("platforms"), &Value::from(3)));
    assert!(own(&record).iter().all(|own| own["kind"] == "platform" && own["run"]["verdict"] == "complete"));
    // By one clock: the last host's end of a test, and the first one's begin of the next.
    let made: Vec<(&str, f64, f64)> = (part["tests"].as_array().expect("tests").iter())
        .map(|row| {
            assert_eq!((&row["hosts_count"], &row["note"]), (&Value::from(3), &Value::from("")), "{row}");
            let at = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{row}"));
            (row["test"].as_str().expect("a name"), at("begin_s"), at("end_s"))
        })
        .collect();
    assert_eq!(made.iter().map(|row| row.0).collect::<Vec<_>>(), tests);
    assert!(made.windows(2).all(|pair| pair[0].2 <= pair[1].1), "{made:?}");
    let report = fleet.place.read("run/report.txt");
    assert!(report.contains("3 of 3 hosts, started within") && report.contains("All Hosts Together"), "{report}");

    // Another run of the same.
    let mut other = record.clone();
    other["run"]["id"] = "0000beef".into();
    std::fs::create_dir(fleet.place.path("other")).expect("a directory");
    fleet.place.write("other/record.json", &other.to_string());
    for (limit, code) in [("> 1000000000", 0), ("> 1", 5)] {
        let limit = format!("worst_host.clock_read_ns {limit}");
        fleet.place.assay(&["compare", "run", "other", "--fail-if", &limit]).code(code);
    }
}

#[test]
fn a_platform_goes_on_without_a_host_that_is_lost_in_the_middle() {
    let Some(mut fleet) = Fleet::of(&["a", "b"]) else { return };
    let running = fleet.begin(&["--hosts", "2"], &plan("clock,commits", &["--anyway"]));
    let has_ended =
        |fleet: &Fleet| fleet.place.files().iter().any(|file| file.starts_with("b/") && file.contains("/clock/"));
    let running = running.until("the first test of b", || has_ended(&fleet));
    fleet.agents.pop().expect("an agent").kill();
    fleet.agent("b", &[]);
    let ran = running.ended().code(4);
    assert!(ran.out.contains("partial: 1 of 2 hosts"), "{}\n{}", ran.out, ran.err);
    let part = fleet.record()["parts"]["platforms"].clone();
    let (lost, left) = (&part["hosts"][0], &part["hosts"][1]);
    assert_eq!((&lost["name"], &left["name"]), (&Value::from("b"), &Value::from("a")), "{part}");
    assert!(lost["verdict"].as_str().is_some_and(|why| why.contains("its agent was started again")), "{lost}");
    let tests: Vec<(&Value, &Value)> =
        part["tests"].as_array().expect("tests").iter().map(|row| (&row["test"], &row["hosts_count"])).collect();
    assert_eq!(tests, [(&Value::from("clock"), &Value::from(1)), (&Value::from("commits"), &Value::from(1))]);
}

/// Keeps some of the CPUs busy, and leaves them to whoever else wants them.
struct Spinners(Vec<Started>);

impl Spinners {
    fn start() -> Self {
        let count = std::thread::available_parallelism().map_or(1, |cpus| cpus.get().div_ceil(4));
        let spin = || std::process::Command::new("nice").args(["-n", "19", "sh", "-c", "while :; do :; done"]).spawn();
        Self((0..count).map(|_| Started::of(spin().expect("it starts"))).collect())
    }
}

#[test]
fn a_busy_host_ends_a_platform_before_anything_is_measured() {
    let Some(fleet) = Fleet::of(&["a", "b"]) else { return };
    let spinners = Spinners::start();
    let ran = fleet.run(&["--hosts", "2"], &plan("clock", &[])).code(3);
    drop(spinners.0);
    let errors = ran.errors();
    assert!(
        errors.len() == 1 && errors[0].contains("keep this host's CPUs") && errors[0].ends_with("no host began"),
        "{}",
        ran.err
    );
    assert!(!fleet.place.files().iter().any(|file| file.ends_with("record.json")), "{:?}", fleet.place.files());
}
