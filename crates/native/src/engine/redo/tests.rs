//! The log without a disk: places, acknowledgement in order, what a log block claims.

use super::*;
use proptest::prelude::*;

const BLOCK: usize = 512;
const PAYLOAD: u64 = (BLOCK - LOG_HEADER_BYTES) as u64;

fn log(max_flights: usize) -> Redo {
    log_of(max_flights, false)
}

fn log_of(max_flights: usize, sync_commits: bool) -> Redo {
    let redo = Redo::new(&RedoConfig {
        buffer_bytes: 1 << 20,
        huge_pages: false,
        block_bytes: BLOCK,
        files: 2,
        file_bytes: 64 * BLOCK as u64,
        start_lsn: 4096,
        sequence: 0,
        data_set: 7,
        threads: 2,
        max_flights,
        sync_commits,
    })
    .unwrap();
    open_next(&redo);
    redo
}

/// Opens the next file, whose header is needed for the first byte.
fn open_next(redo: &Redo) {
    add(redo, 8);
    let Step::Switch { file, sequence, first_lsn } = redo.reserve(1 << 20, u64::MAX) else {
        panic!("a full or unopened file must be switched");
    };
    redo.switched(file, sequence, first_lsn);
    let first = flush(redo);
    redo.finish(first);
}

/// Copies `bytes` of redo; returns where it ends.
fn add(redo: &Redo, bytes: usize) -> u64 {
    let appended = redo.append(0, &vec![0xab; bytes]).unwrap();
    let end = appended.range.1;
    redo.copied(appended, false);
    end
}

fn flush(redo: &Redo) -> Flush {
    match redo.reserve(1 << 20, u64::MAX) {
        Step::Write(flush) => flush,
        other => panic!("{other:?}"),
    }
}

/// What the flush's first block says may be missing before it.
fn unproven(redo: &Redo, flush: &Flush) -> u16 {
    let mut buffer = vec![0; flush.bytes];
    redo.fill(flush, &mut buffer);
    let seed = redo_format::block_seed(7, 1);
    let mut blocks = buffer.chunks_exact(BLOCK).map(|block| redo_format::open_block(block, seed).unwrap());
    let first = blocks.next().unwrap();
    assert!(first.first && first.lsn == flush.redo.range().0);
    assert!(blocks.all(|block| !block.first && block.unproven == 0));
    first.unproven
}

#[test]
fn a_later_write_is_acknowledged_only_with_the_earlier_one() {
    let redo = log(MAX_FLIGHTS);
    let begin = redo.durable();
    let middle = add(&redo, 800);
    let earlier = flush(&redo);
    let end = add(&redo, 800);
    let later = flush(&redo);
    assert_eq!(later.offset, earlier.offset + earlier.bytes as u64);
    redo.finish(later);
    assert_eq!(redo.durable(), begin, "what came before may never reach the disk");
    assert_eq!(earlier.redo.range(), (begin, middle));
    redo.finish(earlier);
    assert_eq!(redo.durable(), end);
}

#[test]
fn a_first_block_tells_how_much_before_it_may_be_missing() {
    let redo = log(MAX_FLIGHTS);
    add(&redo, 2 * PAYLOAD as usize);
    let one = flush(&redo);
    assert_eq!(unproven(&redo, &one), 0);
    add(&redo, 8);
    let two = flush(&redo);
    assert_eq!(unproven(&redo, &two), 2);
    add(&redo, 8);
    let three = flush(&redo);
    assert_eq!(unproven(&redo, &three), 3);
    redo.finish(one);
    add(&redo, 8);
    let four = flush(&redo);
    assert_eq!(unproven(&redo, &four), 2);
    // Out of order: the third is on disk, but nothing says so while the second is not.
    redo.finish(three);
    redo.finish(two);
    redo.finish(four);
    add(&redo, 8);
    assert_eq!(unproven(&redo, &flush(&redo)), 0);
}

#[test]
fn writes_under_way_are_limited_and_a_switch_waits_for_them() {
    let redo = log(2);
    add(&redo, 8);
    let one = flush(&redo);
    add(&redo, 62 * PAYLOAD as usize);
    let two = flush(&redo);
    add(&redo, 8);
    assert_eq!(redo.reserve(1 << 20, u64::MAX), Step::Busy);
    redo.finish(two);
    assert_eq!(
        redo.reserve(1 << 20, u64::MAX),
        Step::Busy,
        "the file is full, and its first write is not acknowledged"
    );
    redo.finish(one);
    let next = redo.reserve(1 << 20, u64::MAX);
    assert!(matches!(next, Step::Switch { sequence: 2, .. }), "{next:?}");
    assert_eq!(redo.reserve(1 << 20, u64::MAX), Step::Busy, "one switch at a time");
}

#[test]
fn nobody_writes_the_same_redo_twice() {
    let redo = log(MAX_FLIGHTS);
    add(&redo, 800);
    let only = flush(&redo);
    assert_eq!(redo.reserve(1 << 20, u64::MAX), Step::Nothing);
    assert_eq!(redo.unwritten(), 0);
    assert_eq!(redo.pending(), 800, "it leaves the buffer once durable");
    redo.finish(only);
    assert_eq!(redo.pending(), 0);
}

#[test]
fn one_write_at_a_time_where_that_is_asked_for() {
    let redo = log(1);
    add(&redo, 8);
    let one = flush(&redo);
    add(&redo, 8);
    assert_eq!(redo.reserve(1 << 20, u64::MAX), Step::Busy);
    redo.finish(one);
    assert_eq!(unproven(&redo, &flush(&redo)), 0);
}

#[test]
fn no_two_sync_commits_share_a_write_whoever_makes_it() {
    let redo = log_of(1, true);
    let append = |thread| redo.append(thread, &[1; 64]).unwrap();
    let ends = |appended: &Appended| appended.range.1;
    // The second of two threads is ready first, and would write: what the first copies is no part of it, and once that is
    // ready its commit is known.
    let (one, two) = (append(0), append(1));
    let (first, second) = (ends(&one), ends(&two));
    redo.copied(two, true);
    assert_eq!(redo.reserve(1 << 20, u64::MAX), Step::Nothing);
    redo.copied(one, true);
    let three = append(0);
    let third = ends(&three);
    redo.copied(three, true);
    // Redo that ends no commit goes with the next that does, or alone.
    let rest = add(&redo, 64);
    for end in [first, second, third, rest] {
        let write = flush(&redo);
        assert_eq!(write.redo.range().1, end);
        redo.finish(write);
    }
    assert_eq!(redo.reserve(1 << 20, u64::MAX), Step::Nothing);
    // Where they may share one, they do.
    let redo = log(1);
    redo.copied(redo.append(0, &[1; 64]).unwrap(), true);
    redo.copied(redo.append(1, &[1; 64]).unwrap(), true);
    assert_eq!(flush(&redo).redo.range().1, redo.tail());
}

#[test]
fn promised_room_is_given_back_with_the_write_that_uses_it() {
    let redo = log(MAX_FLIGHTS);
    let claim = redo.try_claim(800, 0).unwrap();
    let end = add(&redo, 800);
    let early = flush(&redo);
    redo.settle(claim, 800, end);
    assert_eq!(redo.position().promised, 0, "its blocks are taken already");
    redo.finish(early);
    let claim = redo.try_claim(800, 0).unwrap();
    let end = add(&redo, 800);
    redo.settle(claim, 800, end);
    assert_eq!(redo.position().promised, 3);
    let late = flush(&redo);
    assert_eq!((late.blocks, redo.position().promised), (2, 0));
}

proptest! {
    /// Writes end in any order: what is durable is always a prefix of what ended, and in the end everything.
    #[test]
    fn durable_is_a_prefix(steps in prop::collection::vec((any::<bool>(), 1usize..40, any::<prop::sample::Index>()), 1..60)) {
        let redo = log(MAX_FLIGHTS);
        let mut open: Vec<Flush> = Vec::new();
        for (begin, words, which) in steps {
            if begin || open.is_empty() {
                add(&redo, words * 8);
                match redo.reserve(1 << 20, u64::MAX) {
                    Step::Write(flush) => open.push(flush),
                    Step::Busy => {}
                    Step::Switch { file, sequence, first_lsn } => {
                        prop_assert!(open.is_empty());
                        redo.switched(file, sequence, first_lsn);
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            } else {
                let flush = open.swap_remove(which.index(open.len()));
                redo.finish(flush);
            }
            let oldest = open.iter().map(|f| f.redo.range().0).min().unwrap_or(redo.reserved());
            prop_assert_eq!(redo.durable(), oldest);
            prop_assert!(open.len() <= MAX_FLIGHTS);
        }
    }
}

#[test]
fn a_flush_is_due_at_a_third_of_the_buffer_and_at_most_a_mebibyte() {
    assert_eq!(log(1).due_bytes(), (1 << 20) / 3);
    let large = Redo::new(&RedoConfig {
        buffer_bytes: 16 << 20,
        huge_pages: false,
        block_bytes: BLOCK,
        files: 2,
        file_bytes: 64 * BLOCK as u64,
        start_lsn: 4096,
        sequence: 0,
        data_set: 7,
        threads: 2,
        max_flights: 1,
        sync_commits: false,
    })
    .unwrap();
    assert_eq!(large.due_bytes(), 1 << 20);
}
