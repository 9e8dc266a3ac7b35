//! `assay io`: where its reports go and what is in them.

use crate::common::{Place, Ran, with};
use serde_json::Value;

/// Reads of nothing.
const NULL: &[&str] = &["--no-record", "--name=n", "--ioengine=null", "--size=1g", "--rw=randread"];

/// Two thousand of them.
fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    with(&with(NULL, &["--number_ios=2000"]), more)
}

fn io(place: &Place, words: &[&str]) -> Ran {
    place.assay(&with(&["io"], words))
}

fn documents(text: &str) -> Vec<Value> {
    let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let all: Result<Vec<Value>, _> = stream.collect();
    all.unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn json_is_fios_tree_with_our_own_key_last() {
    let place = Place::new();
    let done = io(&place, &short(&["--output-format=json"])).code(0);
    let tree = documents(&done.out).remove(0);
    let keys: Vec<&str> = tree.as_object().expect("a tree").keys().map(String::as_str).collect();
    for key in ["fio version", "timestamp", "timestamp_ms", "time", "jobs", "native"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    let job = &tree["jobs"][0];
    assert_eq!(job["read"]["total_ios"], 2000);
    assert_eq!(job["job options"]["rw"], "randread");
    assert!(job["read"]["clat_ns"].get("bins").is_none());
    assert!(job["read"]["lat_ns"]["percentile"].is_object());
    let last = done.out.rfind("\"native\"").expect("there is one");
    assert!(last > done.out.find("\"jobs\"").expect("there are some"));
}

#[test]
fn json_plus_has_every_latency_in_a_bin() {
    let place = Place::new();
    let done = io(&place, &short(&["--output-format=json+"])).code(0);
    let tree = documents(&done.out).remove(0);
    let bins = tree["jobs"][0]["read"]["clat_ns"]["bins"].as_object().expect("bins");
    let sum: u64 = bins.values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, 2000);
}

#[test]
fn several_formats_come_in_fios_order() {
    let place = Place::new();
    let done = io(&place, &short(&["--output-format=normal,json,terse"])).code(0);
    let at = |text: &str| done.out.find(text).unwrap_or_else(|| panic!("no {text}: {}", done.out));
    let (terse, json, normal) = (at("3;"), at("{\n"), at("Run status group 0"));
    assert!(terse < json && json < normal);
    let minimal = io(&place, &short(&["--minimal"])).code(0);
    assert!(minimal.out.starts_with("3;"), "{}", minimal.out);
    assert_eq!(minimal.out.lines().count(), 1);
}

#[test]
fn the_report_goes_to_a_new_file_and_never_over_another() {
    let place = Place::new();
    place.write("theirs", "theirs");
    let refused = io(&place, &short(&["--output=theirs"])).code(6);
    assert!(refused.errors()[0].contains("never overwrites"), "{}", refused.err);
    assert_eq!(place.read("theirs"), "theirs");
    io(&place, &short(&["--output=no/such/dir"])).code(6);
    let done = io(&place, &short(&["--output=new", "--output-format=json"])).code(0);
    assert_eq!(done.out, "");
    assert_eq!(documents(&place.read("new")).len(), 1);
    // A job that is refused takes its empty report away again.
    let words = ["--no-record", "--name=a", "--filename=absent", "--rw=read", "--output=none"];
    io(&place, &words).code(2);
    assert_eq!(place.files(), ["new", "theirs"]);
}

#[test]
fn io_15_reports_every_so_often_are_cumulative() {
    let place = Place::new();
    let job = with(NULL, &["--time_based", "--runtime=2", "--rate_iops=100", "--status-interval=1"]);
    let done = io(&place, &with(&job, &["--output-format=json"])).code(0);
    let bytes: Vec<u64> =
        documents(&done.out).iter().map(|tree| tree["jobs"][0]["read"]["io_bytes"].as_u64().expect("bytes")).collect();
    assert!(bytes.len() >= 2, "{bytes:?}");
    assert!(bytes.is_sorted(), "{bytes:?}");
    let text = io(&place, &job).code(0);
    assert!(text.out.matches("Run status group 0").count() >= 2, "{}", text.out);
}

#[test]
fn the_progress_line_is_told_to_come_or_not() {
    let place = Place::new();
    let job = with(NULL, &["--time_based", "--runtime=2", "--rate_iops=100"]);
    let jobs = |done: &Ran| done.err.matches("Jobs: 1 (f=1").count();
    let always = io(&place, &with(&job, &["--eta=always"])).code(0);
    assert!(jobs(&always) >= 1, "{}", always.err);
    let newline = io(&place, &with(&job, &["--eta-newline=1"])).code(0);
    assert!(newline.err.lines().any(|line| line.starts_with("Jobs: ")), "{}", newline.err);
    let never = io(&place, &with(&job, &["--eta=never", "--eta-newline=1"])).code(0);
    assert_eq!(jobs(&never), 0, "{}", never.err);
    for done in [always, newline, never] {
        assert!(!done.out.contains("Jobs: "), "progress is not the product");
    }
}

#[test]
fn logs_are_written_with_fios_names_and_columns_and_never_over_others() {
    let place = Place::new();
    let job = [
        "--no-record",
        "--name=n",
        "--filename=own",
        "--size=4m",
        "--bs=4k",
        "--rw=randrw",
        "--numjobs=2",
        "--write_lat_log=x",
        "--write_bw_log=x",
        "--write_iops_log=x",
    ];
    io(&place, &job).code(0);
    let files = place.files();
    for name in ["x_clat", "x_lat", "x_slat", "x_bw", "x_iops"] {
        for clone in 1..=2 {
            let file = format!("{name}.{clone}.log");
            assert!(files.contains(&file), "no {file}: {files:?}");
        }
    }
    let rows = place.read("x_clat.1.log");
    let row: Vec<&str> = rows.lines().next().expect("a row").split(", ").collect();
    assert!(row.len() >= 5, "{row:?}");
    assert_eq!(row[3], "4096");
    assert_eq!(rows.lines().count(), 1024, "one row an I/O");
    let again = io(&place, &job);
    assert!(again.code != 0, "the logs of before are written over: {}", again.err);
    assert_eq!(place.read("x_clat.1.log"), rows);
}
