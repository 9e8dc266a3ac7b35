//! `assay io`: what its record says, and what must hold in it on real files.

use crate::common::{Place, Ran, with};
use serde_json::Value;

fn io(place: &Place, words: &[&str]) -> Ran {
    place.assay(&with(&["io", "-o", "run"], words))
}

fn record(place: &Place) -> Value {
    let text = place.read("run/record.json");
    serde_json::from_str(&text).expect("a record")
}

/// Identities by id: holds, or the reason why nobody can say.
fn identity<'a>(record: &'a Value, id: &str) -> &'a Value {
    let rows = record["integrity"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["id"] == id);
    row.unwrap_or_else(|| panic!("no {id}"))
}

/// The identities that hold by counting, whatever else the host does meanwhile.
fn exact_ones_hold(record: &Value) {
    for row in record["integrity"].as_array().expect("a list") {
        let counted = row["exact"] == true || row["id"] == "IO4" || row["id"] == "IO5";
        if counted {
            assert!(row["ok"] != false, "{row}");
        }
    }
    assert_eq!(identity(record, "IO1")["ok"], true);
    assert_eq!(identity(record, "IO4")["ok"], true);
}

#[test]
fn identity_io1_to_io5_hold_on_random_reads_through_the_ring() {
    let place = Place::new();
    io(
        &place,
        &[
            "--name=data",
            "--size=8m",
            "--rw=randread",
            "--bs=8k",
            "--ioengine=io_uring",
            "--iodepth=8",
            "--numjobs=2",
            "--runtime=2",
            "--time_based",
        ],
    )
    .code(0);
    let record = record(&place);
    exact_ones_hold(&record);
    assert_eq!(identity(&record, "IO2")["ok"], true);
    let info = &record["parts"]["storage"];
    assert_eq!(info["jobs"][0]["numjobs_count"], 2);
    let read = &info["jobs"][0]["ways"][0];
    assert!(read["lat"]["us_p99"].is_number(), "{read}");
    let jobs = info["jobs"][0]["ways"][0]["ios_count"].as_u64();
    assert_eq!(jobs, info["groups"][0]["ways"][0]["ios_count"].as_u64());
    assert!(record["series"]["t_s"].as_array().expect("a list").len() >= 2);
}

#[test]
fn identity_io6_holds_for_a_log_that_syncs_each_write() {
    let place = Place::new();
    io(&place, &["--name=redo", "--size=4m", "--rw=write", "--bs=4k", "--fdatasync=1", "--number_ios=200"]).code(0);
    let record = record(&place);
    exact_ones_hold(&record);
    assert_eq!(identity(&record, "IO6")["ok"], true);
    let job = &record["parts"]["storage"]["jobs"][0];
    assert_eq!(job["ways"][0]["way"], "write");
    assert!(job["sync"]["count"].as_u64().is_some_and(|n| n >= 200));
    let slat = &job["ways"][0]["slat"]["us_avg"]["na"];
    assert_eq!(*slat, "submission and completion are one call");
}

#[test]
fn a_rate_has_a_response_and_the_section_below_fios_text() {
    let place = Place::new();
    let done = io(
        &place,
        &[
            "--name=paced",
            "--ioengine=null",
            "--size=1g",
            "--rw=randread",
            "--rate_iops=500",
            "--runtime=1",
            "--time_based",
        ],
    )
    .code(0);
    assert!(done.out.contains("What fio leaves out (assay)"), "{}", done.out);
    assert!(done.out.contains("response (from the due time)"), "{}", done.out);
    let record = record(&place);
    assert_eq!(identity(&record, "IO9")["ok"], true);
    assert_eq!(record["parts"]["storage"]["groups"][0]["analysed"], "response latency");
}

#[test]
fn every_face_of_a_storage_record_reads_the_record_alone() {
    let place = Place::new();
    io(&place, &["--name=n", "--ioengine=null", "--size=1g", "--rw=randread", "--number_ios=50000"]).code(0);
    let face = |format: &str| place.assay(&["report", "run", "--format", format]).code(0).out;
    let text = face("text");
    assert!(text.contains("\nASSAY STORAGE REPORT"), "{text}");
    assert!(text.trim_end().ends_with("End of Report"), "{text}");
    assert_eq!(text, place.read("run/report.txt"));
    let csv = face("csv");
    assert!(csv.starts_with("t_s,in_window"), "{csv}");
    let summary = face("summary");
    assert_eq!(summary.lines().count(), 3, "{summary}");
    let json: Value = serde_json::from_str(&face("json")).expect("JSON");
    assert_eq!(json["parts"]["storage"]["jobs"][0]["ways"][0]["ios_count"], 50_000);
}

#[test]
fn identity_io5_and_io7_hold_where_a_buffered_job_ends_with_a_sync() {
    for sync in ["--end_fsync=1", "--fsync_on_close=1"] {
        let place = Place::new();
        let words = ["--name=w", "--rw=write", "--size=64m", sync];
        io(&place, &words).code(0);
        let record = record(&place);
        exact_ones_hold(&record);
        for id in ["IO5", "IO7"] {
            let row = identity(&record, id);
            assert_eq!(row["ok"], true, "{sync}: {row}");
        }
    }
}
