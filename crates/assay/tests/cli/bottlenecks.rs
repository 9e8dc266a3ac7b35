//! Each bottleneck shows the wait that names it, first among the report's top events:
//! nothing here depends on how fast the machine is, only on what is short.

use crate::common::{Place, with};

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
        .map(|line| {
            line.chars()
                .take(width)
                .collect::<String>()
                .trim()
                .to_owned()
        })
        .collect()
}

/// The top events of one run on a data set of its own.
fn top_of(data: &[&str], run: &[&str]) -> Vec<String> {
    let place = Place::new();
    let sizes = ["--set", "SCAN_TABLE_SZ=16", "--set", "UNDO_MB=16"];
    let data = with(&sizes, data);
    place.assay(&with(&["prepare", "-s", "2"], &data)).code(0);
    let args = ["run", "-s", "2", "--time", "3", "--warmup", "1"];
    let report = place.assay(&with(&with(&args, &data), run)).code(0).out;
    let top = top_events(&report);
    assert!(!top.is_empty(), "{report}");
    top
}

#[test]
fn a_writer_too_slow_for_its_sessions_shows_as_free_buffer_waits() {
    // One block a batch, and sessions that need no log write to go on.
    let top = top_of(
        &["--set", "SCALE=6000", "--set", "REDO_LOG_MB=64"],
        &[
            "-t",
            "8",
            "--set",
            "UPDATE_PCT=100",
            "--set",
            "WORK_UNIT=16",
            "--set",
            "CACHE_MB=2",
            "--set",
            "COMMIT_MODE=none",
            "--set",
            "DB_WRITER_BATCH=1",
            "--set",
            "DB_WRITER_COALESCE_BYTES=8192",
        ],
    );
    assert_eq!(top[0], "free buffer waits", "{top:?}");
}

#[test]
fn log_files_too_small_show_as_checkpoint_incomplete() {
    let top = top_of(
        &[
            "--set",
            "SCALE=6000",
            "--set",
            "REDO_LOG_MB=4",
            "--set",
            "REDO_LOGS=2",
        ],
        &[
            "-t",
            "4",
            "--set",
            "UPDATE_PCT=100",
            "--set",
            "REDO_STRESS=HEAVY",
            "--set",
            "CACHE_MB=256",
            "--set",
            "DB_WRITER_BATCH=1",
            "--set",
            "DB_WRITER_COALESCE_BYTES=8192",
            "--set",
            "COMMIT_MODE=none",
        ],
    );
    assert_eq!(top[0], "log file switch (checkpoint incomplete)", "{top:?}");
}

#[test]
fn a_log_buffer_too_small_shows_as_log_buffer_space() {
    let top = top_of(
        &["--set", "SCALE=6000", "--set", "REDO_LOG_MB=512"],
        &[
            "-t",
            "16",
            "--set",
            "UPDATE_PCT=100",
            "--set",
            "REDO_STRESS=HEAVY",
            "--set",
            "CACHE_MB=256",
            "--set",
            "LOG_BUFFER_MB=1",
            "--set",
            "COMMIT_MODE=none",
        ],
    );
    assert_eq!(top[0], "log buffer space", "{top:?}");
}

#[test]
fn data_that_fits_the_cache_shows_as_cpu() {
    let top = top_of(
        &["--set", "SCALE=2000", "--set", "REDO_LOG_MB=8"],
        &["--set", "UPDATE_PCT=0", "--set", "CACHE_MB=64"],
    );
    assert_eq!(top[0], "DB CPU", "{top:?}");
}
