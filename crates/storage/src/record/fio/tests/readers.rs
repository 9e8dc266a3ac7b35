//! What reads fio's output must find the same in ours: fio's own tools, plotters, parsers of the
//! text.

use super::{at, document, one_clone, real};
use crate::fixture;
use crate::readings::{CloneReading, StorageReadings};
use crate::record::fio::{json, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Sorted paths of all keys; places in arrays do not count.
fn paths(value: &Value, here: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let path = format!("{here}/{key}");
                found.insert(path.clone());
                paths(value, &path, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| paths(value, here, found)),
        _ => {}
    }
}

fn all_paths(document: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths(&serde_json::from_str(document).unwrap(), "", &mut found);
    found
}

/// Jobs of 7.1 to 7.3: directions alone and mixed, groups, syncs, errors passed over, a text.
const KEY_TREES: &[&str] = &[
    "--name=n --ioengine=null --size=4m --rw=randrw --bs=4k --iodepth=4 --numjobs=2",
    "--name=n --ioengine=null --size=4m --rw=read --bs=4k --iodepth=1 --numjobs=4 --group_reporting --description=x",
    "--size=256k --bs=4k --iodepth=1 --numjobs=1 --name=n --rw=write --fdatasync=8 --name=m --stonewall --rw=randread --continue_on_error=all",
];

#[test]
fn io_04_the_key_tree_is_fios() {
    for job in KEY_TREES {
        let words: Vec<&str> = job.split_whitespace().collect();
        let Some(theirs) = real::run(&words) else {
            return;
        };
        let readings = real::readings_of(&theirs);
        let ours = all_paths(&json(&readings, true, None));
        let theirs = all_paths(&theirs.json.join("\n"));
        let missing: Vec<_> = theirs.difference(&ours).collect();
        assert_eq!(missing, Vec::<&String>::new(), "{job}");
        // The headline always has its percentiles, and our own key is beside fio's.
        let more = ours.difference(&theirs);
        let more: Vec<_> = more
            .filter(|path| !path.contains("/lat_ns/percentile") && !path.contains("/lat_ns/bins"))
            .filter(|path| !path.starts_with("/native"))
            .collect();
        assert_eq!(more, Vec::<&String>::new(), "{job}");
    }
}

#[test]
fn io_04_plotters_find_what_they_read() {
    let document = document(&fixture::readings());
    for (place, mode) in [(0, "read"), (0, "write"), (1, "write")] {
        // fio-plot lays the global options over the job's and wants these four.
        let mut options = at(&document, &format!("jobs.{place}.job options")).clone();
        let all = options.as_object_mut().unwrap();
        all.extend(document["global options"].as_object().unwrap().clone());
        for name in ["rw", "iodepth", "numjobs", "bs"] {
            assert!(options[name].is_string(), "{name}");
        }
        for key in ["bw", "iops", "iops_stddev", "lat_ns.mean", "lat_ns.stddev"] {
            let path = format!("jobs.{place}.{mode}.{key}");
            assert!(at(&document, &path).is_number(), "{path}");
        }
        for key in ["latency_ns.1000", "latency_us.1000", "latency_ms.>=2000", "usr_cpu", "sys_cpu"] {
            assert!(at(&document, &format!("jobs.{place}.{key}")).is_number(), "{key}");
        }
    }
}

#[test]
fn io_05_fios_own_reader_of_bins_finds_our_percentiles() {
    if !fixture_csv_tool() {
        eprintln!("SKIPPED: fio_jsonplus_clat2csv does not run here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("ours.json");
    let readings = fixture::readings();
    std::fs::write(&source, json(&readings, true, None)).unwrap();
    for last in [None, Some("--validate")] {
        let mut command = Command::new("fio_jsonplus_clat2csv");
        command.arg(&source).arg(directory.path().join("ours.csv"));
        let output = command.args(last).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!said.contains("mismatch"), "{said}");
    }
    let document = document(&readings);
    for (place, way) in [(0, "read"), (0, "write"), (1, "write")] {
        let csv = directory.path().join(format!("ours_job{place}.csv"));
        let csv = std::fs::read_to_string(csv).unwrap();
        for latency in ["slat", "clat", "lat"] {
            let path = format!("jobs.{place}.{way}.{latency}_ns");
            let Some(percentiles) = at(&document, &path)["percentile"].as_object() else {
                continue;
            };
            let rows = column(&csv, &format!("{way}_{latency}_ns_cumulative"));
            let total = rows.last().unwrap().1;
            assert_eq!(total, at(&document, &path)["N"].as_u64().unwrap());
            for (percent, ns) in percentiles {
                let needed = percent.parse::<f64>().unwrap() / 100.0 * total as f64;
                let (found, _) = rows.iter().find(|(_, seen)| *seen as f64 >= needed).unwrap();
                assert_eq!(ns.as_u64().unwrap(), *found, "{path} {percent}");
            }
        }
    }
}

fn fixture_csv_tool() -> bool {
    let help = Command::new("fio_jsonplus_clat2csv").arg("--help").output();
    help.is_ok_and(|output| output.status.success())
}

/// Nanoseconds and the value of a column, rows without one left out.
fn column(csv: &str, name: &str) -> Vec<(u64, u64)> {
    let mut lines = csv.lines();
    let names = lines.next().unwrap().split(',');
    let place = names.map(str::trim).position(|column| column == name).unwrap();
    let rows = lines.filter_map(|line| {
        let mut values = line.split(',').map(str::trim);
        let ns = values.next()?.parse().ok()?;
        Some((ns, values.nth(place - 1)?.parse().ok()?))
    });
    rows.collect()
}

/// A reader of fio 3.x's text as scripts have it: each figure by the name of its line and its own.
fn fields(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut block = String::new();
    for line in text.lines() {
        if line.starts_with("Run status") || line.starts_with("Jobs: ") {
            block.clear();
        }
        let Some((name, rest)) = line.split_once(':') else {
            for entry in line.split(',').filter(|_| line.starts_with("     |")) {
                let (percent, value) = entry.split_once("th=[").unwrap_or(("", ""));
                let percent = percent.trim_start_matches([' ', '|']);
                if !percent.is_empty() {
                    let value = value.trim_matches([' ', ']']);
                    found.insert(format!("{block} {percent}"), value.to_owned());
                }
            }
            continue;
        };
        // The unit is a figure, too.
        let (name, unit) = name.split_once('(').unwrap_or((name, ""));
        let name = name.trim();
        block = name.to_owned();
        if !unit.is_empty() {
            found.insert(format!("{name} unit"), unit.trim_matches([' ', ')']).to_owned());
        }
        let mut rest = rest.replace(['(', ')', ','], " ");
        while rest.contains("= ") {
            rest = rest.replace("= ", "=");
        }
        for figure in rest.split_whitespace() {
            let key = figure.split_once('=').map_or_else(
                || format!("{name} {}", figure.trim_matches(|c: char| c.is_ascii_digit() || c == '.')),
                |(key, _)| format!("{name} {key}"),
            );
            let value = figure.split_once('=').map_or(figure, |(_, value)| value);
            found.entry(key).or_insert_with(|| value.to_owned());
        }
    }
    found
}

/// A run like the published one: 4 KiB random reads through libaio at depth 1.
fn like_the_published() -> StorageReadings {
    let mut label = fixture::label("randread", "libaio", 1, 1, 4096);
    label.synchronous = false;
    let mut clone: CloneReading = fixture::readings().clones[0].clone();
    clone.ways[1] = Default::default();
    let mut readings = one_clone(label, clone);
    readings.jobs[0].name = "readlatency-test-job".to_owned();
    readings
}

#[test]
fn io_02_a_reader_of_fios_text_finds_the_same_figures_in_ours() {
    let published = include_str!("../../../../../../testdata/fio-3.7-randread-4k-qd1.txt");
    let (theirs, ours) = (fields(published), fields(&text(&like_the_published())));
    // One entry of the lines of shares is enough: which ranges are in use differs.
    let known = |key: &&String| {
        let line = key.split(' ').next().unwrap_or_default();
        !key.starts_with("lat ") && !line.contains("test-job") && !line.starts_with("Jobs")
    };
    let keys = |fields: &BTreeMap<String, String>| -> BTreeSet<String> {
        let keys = fields.keys().filter(known);
        keys.filter(|key| key.contains("IOPS") || !key.contains(['/', '-'])).cloned().collect()
    };
    assert_eq!(keys(&ours), keys(&theirs));
    for (key, value) in [
        ("read IOPS", "700"),
        ("clat unit", "usec"),
        ("cpu ctx", "3900"),
        ("issued rwts total", "2800"),
        ("IO depths 8", "99.8%"),
        ("clat percentiles 99.99", "5800"),
    ] {
        assert_eq!(ours.get(key).map(String::as_str), Some(value), "{key}");
    }
    // The published figures are read as they stand there.
    for (key, value) in [
        ("read IOPS", "10.4k"),
        ("clat max", "88773k"),
        ("lat avg", "94.90"),
        ("clat percentiles 99.90", "441"),
        ("iops samples", "239"),
        ("issued rwts total", "1243592"),
    ] {
        assert_eq!(theirs.get(key).map(String::as_str), Some(value), "{key}");
    }
}
