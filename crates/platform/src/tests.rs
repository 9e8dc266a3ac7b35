//! Known machines, and what follows from measured tests.

use crate::facts::{FINDING, GOOD, Tree, UNKNOWN, look};
use crate::needs::goals as parsed;
use crate::plan::{COMMITS, Plan, READS, STREAMS, WRITES, tests};
use crate::record::{Asked, Finished, KIND, build};
use assay_measure::record::metric::Better;
use assay_measure::record::{Figure, Metric, Record};
use assay_measure::snapshot::RunData;
use assay_testkit::rules::{Case, just_fire};
use std::fs;
use std::path::Path;

/// Lays out the files that a machine was written down with.
fn machine(text: &str, place: &str) -> (tempfile::TempDir, Tree) {
    let root = tempfile::tempdir().expect("a temporary directory");
    for part in text.split("\n== ").skip(1) {
        let (path, content) = part.split_once('\n').expect("a path and its content");
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("made");
        fs::write(path, content).expect("written");
    }
    let tree = Tree::at(root.path(), Path::new(place));
    (root, tree)
}

fn screen(text: &str, place: &str) -> String {
    let (_root, tree) = machine(text, place);
    let rows = look(&tree);
    rows.iter().map(|row| format!("{:<17} {:<11} {}\n", row.fact, row.verdict, row.value)).collect()
}

#[test]
fn known_machines_have_the_facts_that_their_kernels_tell() {
    let of = [
        ("nitro-gp3", include_str!("machines/nitro-gp3.txt"), "/data/pg"),
        ("azure", include_str!("machines/azure.txt"), "/data"),
        ("oci", include_str!("machines/oci.txt"), "/u02/oradata"),
        ("vmware", include_str!("machines/vmware.txt"), "/var/lib/mysql"),
        ("bare-nvme", include_str!("machines/bare-nvme.txt"), "/pgdata"),
        ("container", include_str!("machines/container.txt"), "/var/lib/data"),
    ];
    for (name, text, place) in of {
        insta::assert_snapshot!(name, screen(text, place));
    }
}

#[test]
fn what_the_kernel_does_not_tell_is_neither_good_nor_bad() {
    let (_root, tree) = machine("", "/data");
    let rows = look(&tree);
    assert!(rows.len() <= 12);
    assert!(rows.iter().all(|row| row.verdict == UNKNOWN), "{rows:?}");
    // In the container the place is a volume, and without one it is the container's layer.
    let text = include_str!("machines/container.txt");
    let verdict = |place: &str| {
        let (_root, tree) = machine(text, place);
        look(&tree).into_iter().find(|row| row.fact == "file system").expect("a row").verdict
    };
    assert_eq!((verdict("/var/lib/data/pg").as_str(), verdict("/tmp").as_str()), (GOOD, FINDING));
}

fn finished(test: &'static str, metrics: &[(&str, &str, f64)]) -> Finished {
    let metrics = metrics.iter().map(|(key, scope, value)| Metric {
        key: (*key).to_owned(),
        scope: (*scope).to_owned(),
        value: Figure::decimal(*value),
        ..Metric::default()
    });
    let mut record = Record { metrics: metrics.collect(), ..Record::default() };
    record.run.verdict = "complete".to_owned();
    Finished { test, directory: test.to_owned(), record: Ok(record) }
}

pub(crate) fn asked(goals: &str) -> Asked {
    Asked {
        plan: Plan::Quick,
        place: "/nowhere".into(),
        peer: None,
        goals: parsed(goals).expect("good"),
        tests: tests(Plan::Quick, Path::new("/nowhere/file"), 1 << 30, false),
        root: "/nowhere".into(),
        busy_before_pct: Some(1.0),
    }
}

pub(crate) fn box_of(read_us: f64, commit_us: f64) -> Vec<Finished> {
    vec![
        finished(
            COMMITS,
            &[
                ("durable_write_us_p50", "", 300.0),
                ("many_commits_per_s", "group", 8_450.0),
                ("many_commit_us_p99", "group", commit_us),
                ("single_commits_per_s", "group", 910.0),
                ("single_commit_us_p99", "group", 700.0),
            ],
        ),
        finished(
            READS,
            &[
                ("read_ios_per_s", "depth 1", 8_000.0),
                ("read_lat_us_avg", "depth 1", 120.0),
                ("read_lat_us_p99", "depth 1", read_us),
                ("read_ios_per_s", "depth 32", 50_312.0),
                ("read_lat_us_p99", "depth 32", read_us + 600.0),
                ("read_ios_per_s", "depth 128", 52_000.0),
                ("read_lat_us_p99", "depth 128", read_us + 4000.0),
            ],
        ),
        finished(STREAMS, &[("read_mib_per_s", "read", 1000.0), ("write_mib_per_s", "write", 40.0)]),
        finished(WRITES, &[("writes_per_s", "", 12_000.0)]),
    ]
}

#[test]
fn the_class_is_of_the_loads_that_keep_their_latency() {
    let class = |read_us: f64, commit_us: f64| {
        let record = build(&RunData::default(), &asked(""), &box_of(read_us, commit_us), false);
        KIND.headline(&record).verdict
    };
    assert!(class(250.0, 4_900.0).starts_with("R50k C8.4k, fit with 1 warning"), "{}", class(250.0, 4_900.0));
    // Many sessions no longer keep it: one does.
    assert!(class(500.0, 5_100.0).starts_with("R8k C910, fit with 2 warnings"), "{}", class(500.0, 5_100.0));
    assert!(class(1_001.0, 4_900.0).starts_with("R- C8.4k, not fit: 1 need"), "{}", class(1_001.0, 4_900.0));
}

#[test]
fn goals_of_the_user_take_the_place_of_ours_and_say_so() {
    let record =
        build(&RunData::default(), &asked("[write_mib_per_s]\nwarn = 40\nfail = 10\n"), &box_of(250.0, 900.0), false);
    assert!(record.advice.iter().all(|advice| !["B1", "B2"].contains(&advice.id.as_str())), "{:?}", record.advice);
    let record = build(&RunData::default(), &asked(""), &box_of(250.0, 900.0), false);
    let advice = record.advice.iter().find(|advice| advice.id == "B2").expect("a warning");
    assert_eq!(
        advice.text,
        "write_mib_per_s is 40 MiB/s, less than 100. ".to_owned()
            + "Read the test of the row; where your database needs less, say so in --goals."
    );
}

/// As comparisons, trends and gates name them.
#[test]
fn a_need_is_a_figure_under_its_own_name_that_knows_which_way_is_better() {
    let record = build(&RunData::default(), &asked(""), &box_of(250.0, 900.0), false);
    let of = |key: &str| {
        let found = record.metrics.iter().find(|metric| metric.full_key() == key).expect(key);
        (found.value.value(), found.unit.clone(), found.better, found.is_primary)
    };
    assert_eq!(of("read_us_p99"), (Some(250.0), "us".to_owned(), Better::Lower, true));
    assert_eq!(of("write_mib_per_s"), (Some(40.0), "MiB/s".to_owned(), Better::Higher, true));
}

#[test]
fn settings_follow_from_the_figures_by_their_formula() {
    let rows = crate::settings::rows(&box_of(250.0, 900.0));
    let value = |at: usize| rows[at].setting_value.value().expect("known");
    // 120 us a random page; 8 KiB at 1000 MiB/s are 7.8125 us.
    assert!((value(0) - 15.36).abs() < 1e-9);
    assert_eq!((value(1), value(2), value(3)), (32.0, 12_000.0, 6_000.0));
    assert!(crate::settings::rows(&[]).iter().all(|row| row.setting_value.value().is_none()));
}

#[test]
fn a_stopped_platform_says_how_far_it_came() {
    let record = build(&RunData::default(), &asked(""), &box_of(250.0, 900.0)[..1], true);
    assert_eq!(record.run.verdict, "incomplete");
    assert!(record.run.verdict_reasons[0].contains("1 of 10 tests"), "{:?}", record.run.verdict_reasons);
    assert_eq!(KIND.members(&record), ["commits"]);
}

const CASES: &[Case] = &[
    ("B4", |fires| {
        let here = Asked { busy_before_pct: Some(if fires { 10.5 } else { 10.0 }), ..asked("") };
        build(&RunData::default(), &here, &box_of(250.0, 900.0), false)
    }),
    ("B1", |fires| build(&RunData::default(), &asked(""), &box_of(if fires { 10_001.0 } else { 999.0 }, 900.0), false)),
    ("B2", |fires| {
        let goals = if fires { "" } else { "[write_mib_per_s]\nwarn = 40\nfail = 10\n" };
        build(&RunData::default(), &asked(goals), &box_of(250.0, 900.0), false)
    }),
    ("B3", |fires| {
        let text = if fires { include_str!("machines/vmware.txt") } else { include_str!("machines/nitro-gp3.txt") };
        let place = if fires { "/var/lib/mysql" } else { "/data" };
        // Without swap and with the pages asked for, nothing of the instance is to change.
        let (root, _) = machine(text, place);
        let here = Asked { root: root.path().into(), place: place.into(), ..asked("") };
        build(&RunData::default(), &here, &box_of(250.0, 900.0), false)
    }),
    ("B8", |fires| {
        let cpuinfo = if fires { "cpu MHz\t\t: 2250.0\n" } else { "model name : X @ 2.10GHz\n" };
        let (root, _) = machine(&format!("\n== proc/cpuinfo\n{cpuinfo}"), "/data");
        let here = Asked { root: root.path().into(), ..asked("") };
        let cpu = finished(crate::plan::CPU, &[("effective_mhz", "", 1700.0)]);
        build(&RunData::default(), &here, &[box_of(250.0, 900.0), vec![cpu]].concat(), false)
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}
