//! Files of storage jobs with real processes: killed and stopped layouts, two runs at once.

use crate::common::{Place, with};
use rustix::process::Signal;
use std::path::Path;

/// Large enough to be caught in the middle of its layout.
const LAYOUT: &[&str] =
    &["io", "--no-record", "--name=j", "--filename=f", "--rw=randread", "--size=512m", "--direct=1", "--create_only=1"];

fn is_begun(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

#[test]
fn a_layout_that_is_killed_is_completed_by_the_next_run_and_one_that_is_stopped_is_gone() {
    let place = Place::new();
    let file = place.path("f");
    let stopped = place.start(LAYOUT).until("file", || is_begun(&file));
    stopped.signal(Signal::INT);
    let ran = stopped.ended();
    // It may have come to its end before it heard.
    assert!(ran.code == 130 || ran.code == 0, "{}", ran.err);
    if ran.code == 130 {
        assert!(!file.exists());
    } else {
        std::fs::remove_file(&file).expect("removed");
    }
    place.start(LAYOUT).until("file", || is_begun(&file)).kill();
    let next = place.assay(LAYOUT).code(0);
    assert!(next.err.contains("assay's file of"), "{}", next.err);
    let content = std::fs::read(&file).expect("readable");
    assert_eq!(content.len(), 512 << 20);
    let zeroes = content.chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0));
    assert_eq!(zeroes.count(), 0, "every block was written");
}

#[test]
fn two_runs_never_write_to_one_file_at_once() {
    let place = Place::new();
    let words = ["io", "--no-record", "--name=w", "--filename=f", "--rw=randwrite", "--size=1m"];
    let long = with(&words, &["--time_based", "--runtime=60"]);
    let file = place.path("f");
    let first = place.start(&long).until("file", || is_begun(&file));
    let second = place.assay(&words).code(3);
    assert!(second.err.contains("is in use"), "{}", second.err);
    first.signal(Signal::INT);
    first.ended().code(130);
    place.assay(&words).code(0);
}
