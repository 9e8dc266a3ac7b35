//! Discards, of what is no block device; real devices are in the tests of the storage probe.

use super::*;

#[test]
fn a_regular_file_cannot_be_discarded_and_keeps_its_bytes() {
    let place = directory();
    let file = file(&place, 4, false);
    for engine in moving_engines() {
        let mut lanes = lanes_of(engine, 1, &file);
        assert_eq!(lanes.discard(0, 0, BLOCK as u64), Err(libc::ENOTTY));
        lanes.read(0, 0, 0, BLOCK as u32);
        collect(&mut lanes, 1);
        assert!(is_block(0, lanes.buffer(0, BLOCK)));
    }
}

#[test]
fn bytes_outside_what_was_opened_are_never_discarded() {
    let place = directory();
    drop(file(&place, 4, false));
    let path = place.path().join("buffered");
    let mode = OpenMode { read: true, write: true, direct: false };
    let file = Arc::new(DirectFile::open_part(&path, mode, 0, 2 * BLOCK as u64).unwrap());
    let mut lanes = lanes_of(LaneEngine::Psync(SyncCall::default()), 1, &file);
    let said = said_by(move || {
        let _ = lanes.discard(0, BLOCK as u64, 2 * BLOCK as u64);
    });
    assert!(said.contains("lie outside file 0"), "{said}");
}

#[test]
fn engines_that_touch_no_file_discard_nothing() {
    let place = directory();
    let file = file(&place, 4, false);
    for engine in [LaneEngine::Null, LaneEngine::Nop(UringMode::default())] {
        let mut lanes = lanes_of(engine, 1, &file);
        assert_eq!(lanes.discard(0, 0, BLOCK as u64), Ok(()));
        assert_eq!(lanes.counters().submits, 0);
    }
}
