//! A write that fails stops the engine at once: no commit is acknowledged over it, the run is
//! invalid, and the data set is whole again after the next open.
//!
//! The failing device is a limit of the process's file size (EFBIG), met by the first write
//! beyond it.

use crate::common::{Place, Ran, Started, with};
use std::process::{Command, Stdio};

/// A run whose files cannot be written beyond so many KiB.
fn run_limited(place: &Place, limit_kib: u32, settings: &[&str]) -> Ran {
    let plain =
        place.command(&with(&["run", "--time", "60", "--warmup", "0", "-o", "run", "--format", "full"], settings));
    let mut limited = Command::new("bash");
    limited
        .arg("-c")
        .arg(format!("trap '' XFSZ; ulimit -f {limit_kib}; exec \"$0\" \"$@\""))
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(place.path("."))
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Started::new(&mut limited).ended()
}

/// What a run that met a write error must look like, and what must be left.
fn stopped(place: &Place, ran: Ran, file: &str) -> serde_json::Value {
    let ran = ran.code(3);
    let last = ran.errors().pop().expect("there is an error").to_owned();
    // A write that begins below the limit ends there and is short; the next one fails.
    assert!(last.contains("File too large") || last.contains("wrote"), "{last}");
    assert!(last.contains(file), "{last}");
    assert!(ran.out.contains("Verdict: invalid"), "{}", ran.out);
    let record: serde_json::Value =
        serde_json::from_str(&place.read("run/record.json")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(record["run"]["verdict"], "invalid");
    // It gave up long before its 60 seconds.
    let elapsed = record["interval"]["whole_run_s"].as_f64().expect("a figure");
    assert!(elapsed < 50.0, "{elapsed}");
    let checked = place.assay(&["check"]).code(0);
    assert!(checked.out.contains("Row changes replayed"), "{}", checked.out);
    record
}

fn whole_run(record: &serde_json::Value, key: &str) -> u64 {
    let total = &record["instance"]["stats"][key]["whole_run_total"];
    total.as_u64().unwrap_or_else(|| panic!("{key}: {total}"))
}

#[test]
fn a_failed_data_write_stops_the_engine_and_the_data_set_recovers() {
    let place = Place::new();
    let sizes = ["--set", "SCALE=6000", "--set", "REDO_LOG_MB=16", "--set", "UNDO_MB=8", "--set", "SCAN_TABLE_SZ=16"];
    place.assay(&with(&["prepare", "-s", "1"], &sizes)).code(0);
    let settings = ["--set", "UPDATE_PCT=100", "--set", "CACHE_MB=4", "--set", "DB_WRITERS=2"];
    let ran = run_limited(&place, 24 * 1024, &settings);
    let record = stopped(&place, ran, "data-0001.assay");
    assert!(whole_run(&record, "redo_writes_count") > 0);
}

#[test]
fn a_failed_log_write_stops_the_engine_and_no_commit_is_acknowledged_over_it() {
    let place = Place::new();
    let sizes = ["--set", "SCALE=1000", "--set", "REDO_LOG_MB=64", "--set", "UNDO_MB=8", "--set", "SCAN_TABLE_SZ=16"];
    place.assay(&with(&["prepare", "-s", "1"], &sizes)).code(0);
    let settings = ["--set", "UPDATE_PCT=100", "--set", "REDO_STRESS=HEAVY"];
    let ran = run_limited(&place, 24 * 1024, &settings);
    let record = stopped(&place, ran, "redo-0");
    let commits = whole_run(&record, "user_commits_count");
    let durable = whole_run(&record, "redo_bytes_written");
    assert!(durable <= 24 << 20, "{durable} bytes of redo were written below the limit");
    // Each commit has 327 KB of redo before it.
    assert!(commits > 10 && commits * 300_000 <= durable, "{commits} commits");
}
