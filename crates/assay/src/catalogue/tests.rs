use super::*;
use crate::rundir::{RECORD, TAGS};
use assay_measure::record::{LoadRow, Record};
use std::fs;
use tempfile::TempDir;

/// A run directory with a record of so many operations a second.
fn run(dir: &TempDir, name: &str, ops_per_s: f64) {
    crate::registry::install();
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
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    open(&dir);
    let good = fs::read(dir.path().join(CATALOGUE)).expect("readable");
    let theirs = b"{\"mine\":1}\nsomebody's own\n".to_vec();
    for (number, bytes) in [theirs, good[..good.len() - 9].to_vec(), vec![0xa5; 4096]].into_iter().enumerate() {
        fs::write(dir.path().join(CATALOGUE), &bytes).expect("written");
        assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]));
        let kept = match number {
            0 => format!("{CATALOGUE}.damaged"),
            before => format!("{CATALOGUE}.damaged-{}", before + 1),
        };
        assert_eq!(fs::read(dir.path().join(kept)).expect("kept"), bytes);
        assert_eq!(fs::read(dir.path().join(CATALOGUE)).expect("made again"), good);
    }
}

#[test]
fn lines_of_another_version_are_made_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    open(&dir);
    let path = dir.path().join(CATALOGUE);
    let good = fs::read_to_string(&path).expect("readable");
    let other = good.replacen("\"assay_catalogue\":3", "\"assay_catalogue\":2", 1).replace("\"a\"", "\"other\"");
    assert_ne!(other, good);
    fs::write(&path, other).expect("written");
    assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]));
    assert_eq!(fs::read_to_string(&path).expect("readable"), good);
}

#[test]
fn a_catalogue_that_cannot_be_written_is_done_without() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&dir, "1-slob-a", 10.0);
    // A name that leads elsewhere is neither read nor written through.
    let elsewhere = dir.path().join("theirs");
    fs::write(&elsewhere, "{}").expect("written");
    std::os::unix::fs::symlink(&elsewhere, dir.path().join(CATALOGUE)).expect("a link");
    assert_eq!(rates(&open(&dir)), expected(&[("a", 10.0)]));
    assert_eq!(fs::read_to_string(&elsewhere).expect("readable"), "{}");
    assert!(dir.path().join(CATALOGUE).is_symlink());
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
    assert!(failure.lines[0].contains("metrics-csv"), "{:?}", failure.lines);
}

#[test]
fn a_directory_without_runs_gets_no_file() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(open(&dir).entries.is_empty());
    assert!(!dir.path().join(CATALOGUE).exists());
    assert!(Catalogue::open(&dir.path().join("absent")).expect("empty").entries.is_empty());
}
