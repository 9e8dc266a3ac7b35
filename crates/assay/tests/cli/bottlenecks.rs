//! Each bottleneck shows the wait that names it, first among the report's top events: nothing here depends on how fast the
//! machine is, only on what is short. Single reads are left out: how long they take is the disk's affair, and how many are left
//! when the window begins that of the host.

use crate::common::{Place, set, with};

/// The names under "Top 10 Foreground Events", in their order.
fn top_events(report: &str) -> Vec<String> {
    let mut lines = report
        .lines()
        .skip_while(|line| !line.starts_with("Top 10 Foreground Events"))
        .skip_while(|line| !line.starts_with("-----"));
    let rule = lines.next().expect("the table has a rule");
    let width = rule.find(' ').expect("it has columns");
    lines
        .take_while(|line| !line.trim().is_empty())
        .map(|line| line.chars().take(width).collect::<String>().trim().to_owned())
        .collect()
}

/// The top events, but single reads, of one run with so many sessions a schema, on a data set of its own.
fn top_of(threads: &str, data: &[&str], run: &[&str]) -> Vec<String> {
    let place = Place::new();
    let data = set(&with(&["SCAN_TABLE_SZ=16", "UNDO_MB=16"], data));
    place.assay(&with(&["prepare", "-s", "2"], &data)).code(0);
    let args = ["run", "--format", "full", "-s", "2", "-t", threads, "--time", "3", "--warmup", "2"];
    let report = place.assay(&with(&with(&args, &data), &set(run)));
    let report = report.code(0).out;
    let mut top = top_events(&report);
    top.retain(|event| event != "db file sequential read");
    assert!(!top.is_empty(), "{report}");
    top
}

/// One block a batch.
const SLOW_WRITER: [&str; 2] = ["DB_WRITER_BATCH=1", "DB_WRITER_COALESCE_BYTES=8192"];

/// Changes as large as they get, in blocks that stay cached, by sessions that need no log write to go on.
const MUCH_REDO: [&str; 4] = ["UPDATE_PCT=100", "REDO_STRESS=HEAVY", "CACHE_MB=256", "COMMIT_MODE=none"];

#[test]
fn a_writer_too_slow_for_its_sessions_shows_as_free_buffer_waits() {
    let updates = ["UPDATE_PCT=100", "WORK_UNIT=16", "CACHE_MB=2", "COMMIT_MODE=none"];
    let top = top_of("8", &["SCALE=6000", "REDO_LOG_MB=64"], &with(&updates, &SLOW_WRITER));
    assert_eq!(top[0], "free buffer waits", "{top:?}");
}

#[test]
fn log_files_too_small_show_as_checkpoint_incomplete() {
    let top = top_of("4", &["SCALE=6000", "REDO_LOG_MB=4", "REDO_LOGS=2"], &with(&MUCH_REDO, &SLOW_WRITER));
    assert_eq!(top[0], "log file switch (checkpoint incomplete)", "{top:?}");
}

#[test]
fn a_log_buffer_too_small_shows_as_log_buffer_space() {
    let top = top_of("16", &["SCALE=6000", "REDO_LOG_MB=512"], &with(&MUCH_REDO, &["LOG_BUFFER_MB=1"]));
    assert_eq!(top[0], "log buffer space", "{top:?}");
}

#[test]
fn data_that_fits_the_cache_shows_as_cpu() {
    // So few blocks, asked for so many at once, that a slow disk has read them all, too, when the window begins.
    let top = top_of(
        "1",
        &["SCALE=1000", "REDO_LOG_MB=8"],
        &["UPDATE_PCT=0", "CACHE_MB=64", "WORK_UNIT=256", "READ_MODE=batched"],
    );
    assert_eq!(top[0], "DB CPU", "{top:?}");
}
