use super::*;
use crate::rundir::{RECORD, TAGS};
use assay_measure::record::{LoadRow, Record};
use std::fs;
use tempfile::TempDir;

/// A run directory with a record of so many operations a second.
fn run(dir: &TempDir, name: &str, ops_per_s: f64) {
    assay_report::kinds::install(crate::registry::kinds());
    let mut record = Record { schema: assay_measure::record::SCHEMA.to_owned(), ..Record::default() };
    record.run.id = name.rsplit('-').next().unwrap_or_default().to_owned();
    record.run.verdict = "complete".to_owned();
    record.instance.load_profile.push(LoadRow {
        name: "Operations".to_owned(),
        unit: "count".to_owned(),
        per_s: ops_per_s.into(),
        ..LoadRow::default()
    });
    let path = dir.path().join(name);
    fs::create_dir_all(&path).expect("made");
    let text = assay_report::json::write(&record).expect("JSON");
    fs::write(path.join(RECORD), text).expect("written");
}

fn rates(catalogue: &Catalogue) -> Vec<(String, f64)> {
    let rate = |entry: &Entry| (entry.id.clone(), entry.ops_per_s.unwrap_or(-1.0));
    catalogue.entries.iter().map(rate).collect()
}

fn open(dir: &TempDir) -> Catalogue {
    Catalogue::open(dir.path()).expect("a catalogue")
}

fn expected(rates: &[(&str, f64)]) -> Vec<(String, f64)> {
    rates.iter().map(|(id, rate)| ((*id).to_owned(), *rate)).collect()
}

#[test]
fn runs_that_come_change_and_go_are_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    run(&dir, "2-slob-b", 20.0);
    fs::create_dir(dir.path().join("notes")).expect("made");
    assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0), ("b", 20.0)]));
    assert!(dir.path().join(CATALOGUE).is_file());
    run(&dir, "2-slob-b", 200.5);
    run(&dir, "3-slob-c", 30.0);
    fs::remove_dir_all(dir.path().join("1-slob-a")).expect("removed");
    let catalogue = open(&dir);
    assert_eq!(rates(&catalogue), expected(&[("b", 200.5), ("c", 30.0)]));
    let (info, values) = catalogue.metric("ops_per_s").expect("known");
    assert_eq!((info.unit.as_str(), info.better.as_str()), ("1/s", "higher"));
    let values: Vec<&Value> = values.values().collect();
    assert!(values.contains(&&Ok(200.5)) && values.len() == 2, "{values:?}");
}

#[test]
fn tags_are_those_of_the_directory_whatever_becomes_of_the_catalogue() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    open(&dir);
    let path = dir.path().join("1-slob-a");
    let changes = [Change::Add("good".to_owned()), Change::Set("disk".to_owned(), "nvme".to_owned())];
    change_tags(&path, &changes).expect("written");
    let tags = |catalogue: &Catalogue| catalogue.entries[0].tags.clone();
    assert_eq!(tags(&open(&dir)), ["disk=nvme", "good"]);
    fs::remove_file(dir.path().join(CATALOGUE)).expect("removed");
    assert_eq!(tags(&open(&dir)), ["disk=nvme", "good"]);
    fs::remove_file(path.join(TAGS)).expect("removed");
    assert!(tags(&open(&dir)).is_empty());
    assert_eq!(Catalogue::rebuild(dir.path()).expect("rebuilt").entries.len(), 1);
}

#[test]
fn what_is_no_catalogue_is_set_aside_and_made_again() {
    for (what, bytes) in
        [("text", &b"not a database, but long enough to be looked at\n"[..]), ("cut", b"SQLite format 3\0\x10\0")]
    {
        let dir = tempfile::tempdir().expect("a directory");
        run(&dir, "1-slob-a", 10.0);
        fs::write(dir.path().join(CATALOGUE), bytes.repeat(40)).expect("written");
        assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]), "{what}");
        let kept = fs::read(dir.path().join("catalogue.sqlite.damaged")).expect("kept");
        assert_eq!(kept, bytes.repeat(40), "{what}");
        assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]), "{what}, again");
    }
}

#[test]
fn a_page_that_is_overwritten_does_not_spoil_the_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    open(&dir);
    let path = dir.path().join(CATALOGUE);
    let mut bytes = fs::read(&path).expect("readable");
    let end = bytes.len();
    bytes[4096..end].fill(0xa5);
    fs::write(&path, &bytes).expect("written");
    assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]));
}

#[test]
fn tables_of_another_version_are_made_anew_and_somebody_elses_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    open(&dir);
    let path = dir.path().join(CATALOGUE);
    let old = rusqlite::Connection::open(&path).expect("opened");
    old.execute_batch("DROP TABLE metrics; PRAGMA user_version = 99").expect("changed");
    drop(old);
    assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]));
    assert!(open(&dir).metric("ops_per_s").is_ok());
    fs::remove_file(&path).expect("removed");
    let theirs = rusqlite::Connection::open(&path).expect("opened");
    theirs.execute_batch("CREATE TABLE runs (mine TEXT)").expect("made");
    drop(theirs);
    assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]));
    assert!(dir.path().join("catalogue.sqlite.damaged").is_file());
}

#[test]
fn a_catalogue_that_somebody_holds_is_done_without() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    open(&dir);
    let path = dir.path().join(CATALOGUE);
    let other = rusqlite::Connection::open(&path).expect("opened");
    other.execute_batch("BEGIN EXCLUSIVE").expect("held");
    run(&dir, "2-slob-b", 20.0);
    assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0), ("b", 20.0)]));
}

#[test]
fn an_unknown_metric_is_refused_with_what_is_near() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    let catalogue = open(&dir);
    for near in ["opss_per_s", "ops", "ops_rate"] {
        let failure = catalogue.metric(near).expect_err(near);
        assert!(failure.lines[0].contains("near it: ops_per_s"), "{:?}", failure.lines);
    }
    let failure = catalogue.metric("xyz").expect_err("unknown");
    assert!(failure.lines[0].contains("csv-summary"), "{:?}", failure.lines);
}

#[test]
fn a_directory_without_runs_gets_no_file() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(open(&dir).entries.is_empty());
    assert!(!dir.path().join(CATALOGUE).exists());
    assert!(Catalogue::open(&dir.path().join("absent")).expect("empty").entries.is_empty());
}
