use super::*;
use crate::testing::directory;
use crate::{OpenMode, PoolOptions};
use std::collections::BTreeMap;
use std::time::Instant;

const BLOCK: usize = 8192;
const LONG: Duration = Duration::from_secs(60);

fn content(block: u64, byte: usize) -> u8 {
    (block as usize * 31 + byte * 7 + byte / 256) as u8
}

/// A file of `blocks` blocks with known content, open for direct I/O.
fn file(place: &tempfile::TempDir, blocks: u64) -> Arc<DirectFile> {
    let file = DirectFile::create_new(&place.path().join("data"), true).unwrap();
    let data: Vec<u8> = (0..blocks).flat_map(|block| (0..BLOCK).map(move |byte| content(block, byte))).collect();
    file.write_at(0, &data).unwrap();
    Arc::new(file)
}

fn pool(frames: usize) -> Arc<Pool> {
    Pool::new(&PoolOptions { frames, frame_bytes: BLOCK, huge_pages: false }).unwrap()
}

fn options(backend: Backend, file: &Arc<DirectFile>, pool: Option<&Arc<Pool>>) -> RingOptions {
    RingOptions {
        entries: 8,
        buffers: 4,
        buffer_bytes: 2 * BLOCK,
        pool: pool.cloned(),
        files: vec![Arc::clone(file)],
        backend,
        helpers: 3,
    }
}

fn next(ring: &mut Ring) -> Completion {
    let begun = Instant::now();
    loop {
        if let Some(completion) = ring.pop() {
            return completion;
        }
        assert!(begun.elapsed() < LONG, "no completion");
        ring.submit(1, LONG).unwrap();
    }
}

fn on_both_backends(test: impl Fn(Backend)) {
    test(Backend::Uring);
    test(Backend::Helpers);
}

#[test]
fn frames_are_read_where_they_belong() {
    on_both_backends(|backend| {
        let place = directory();
        let (file, pool) = (file(&place, 16), pool(16));
        let mut ring = Ring::open(options(backend, &file, Some(&pool))).unwrap();
        let version = pool.version(3).unwrap();
        for block in 0..8_u64 {
            let frame = pool.try_exclusive(15 - block as u32).unwrap();
            ring.read_frame(0, block * BLOCK as u64, frame, 100 + block).unwrap();
        }
        assert_eq!(ring.in_flight(), 8);
        let mut seen = Vec::new();
        while ring.in_flight() > 0 {
            let completion = next(&mut ring);
            let block = completion.tag - 100;
            assert_eq!(completion.result.unwrap(), BLOCK as u32);
            let CompletionLease::Frame(frame) = completion.lease else { panic!("no frame") };
            assert_eq!(u64::from(frame.frame()), 15 - block);
            assert!((0..BLOCK).all(|byte| pool.bytes(&frame)[byte] == content(block, byte)));
            pool.release_unchanged(frame);
            seen.push(block);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..8).collect::<Vec<_>>());
        let counters = ring.counters();
        assert_eq!((counters.read_requests, counters.read_bytes), (8, 8 * BLOCK as u64));
        assert_eq!((counters.write_requests, counters.syncs, counters.errors), (0, 0, 0));
        assert!(counters.submits >= 1);
        assert!(pool.validate(3, version), "frame 3 was not read into");
        assert!(
            pool.version(8) != Some(version),
            "a frame the kernel wrote to has a new version however it is released"
        );
    });
}

#[test]
fn a_scattered_read_fills_the_frames_in_the_order_given() {
    on_both_backends(|backend| {
        let place = directory();
        let (file, pool) = (file(&place, 16), pool(16));
        let mut ring = Ring::open(options(backend, &file, Some(&pool))).unwrap();
        let order = [9, 2, 14, 3];
        let frames = order.iter().map(|&frame| pool.try_exclusive(frame).unwrap()).collect();
        ring.read_frames(0, 5 * BLOCK as u64, frames, 1).unwrap();
        let completion = next(&mut ring);
        assert_eq!(completion.result.unwrap() as usize, 4 * BLOCK);
        let CompletionLease::Frames(frames) = completion.lease else { panic!("no frames") };
        for (index, frame) in frames.into_iter().enumerate() {
            assert_eq!(frame.frame(), order[index]);
            assert!((0..BLOCK).all(|byte| pool.bytes(&frame)[byte] == content(5 + index as u64, byte)));
            pool.release(frame);
        }
        assert_eq!(ring.counters().read_requests, 1);
    });
}

#[test]
fn buffers_written_come_back_when_read() {
    on_both_backends(|backend| {
        for durable in [false, true] {
            let place = directory();
            let file = file(&place, 4);
            let mut ring = Ring::open(options(backend, &file, None)).unwrap();
            let mut buffer = ring.take_buffer().unwrap();
            assert_eq!(buffer.as_ptr().align_offset(4096), 0);
            assert_eq!(buffer.len(), 2 * BLOCK);
            buffer.fill(0xa5);
            ring.write_buffer(0, BLOCK as u64, buffer, BLOCK, durable, 7).unwrap();
            let completion = next(&mut ring);
            assert_eq!((completion.tag, completion.result.unwrap() as usize), (7, BLOCK));
            let CompletionLease::Buffer(mut buffer) = completion.lease else { panic!("no buffer") };
            ring.sync_file(0, 8).unwrap();
            let completion = next(&mut ring);
            assert_eq!((completion.tag, completion.result.unwrap()), (8, 0));
            assert!(matches!(completion.lease, CompletionLease::None));
            buffer.fill(0);
            ring.read_buffer(0, 0, buffer, 2 * BLOCK, 9).unwrap();
            let completion = next(&mut ring);
            assert_eq!(completion.result.unwrap() as usize, 2 * BLOCK);
            let CompletionLease::Buffer(buffer) = completion.lease else { panic!("no buffer") };
            assert!((0..BLOCK).all(|byte| buffer[byte] == content(0, byte)));
            assert!(buffer[BLOCK..].iter().all(|&byte| byte == 0xa5));
            let counters = ring.counters();
            assert_eq!((counters.write_requests, counters.write_bytes, counters.syncs), (1, BLOCK as u64, 1));
        }
    });
}

#[test]
fn a_read_over_the_end_is_short_and_one_past_it_is_empty() {
    on_both_backends(|backend| {
        let place = directory();
        let (file, pool) = (file(&place, 3), pool(4));
        let mut ring = Ring::open(options(backend, &file, Some(&pool))).unwrap();
        let buffer = ring.take_buffer().unwrap();
        ring.read_buffer(0, 2 * BLOCK as u64, buffer, 2 * BLOCK, 0).unwrap();
        assert_eq!(next(&mut ring).result.unwrap() as usize, BLOCK);
        let frame = pool.try_exclusive(0).unwrap();
        ring.read_frame(0, 3 * BLOCK as u64, frame, 0).unwrap();
        let completion = next(&mut ring);
        assert_eq!(completion.result.unwrap(), 0);
        let CompletionLease::Frame(frame) = completion.lease else { panic!("no frame") };
        pool.release(frame);
    });
}

#[test]
fn an_error_comes_back_with_its_lease_and_is_counted() {
    on_both_backends(|backend| {
        let place = directory();
        let made = file(&place, 3);
        let read_only = OpenMode { read: true, write: false, direct: true };
        let file = Arc::new(DirectFile::open(made.path(), read_only).unwrap());
        let mut ring = Ring::open(options(backend, &file, None)).unwrap();
        let buffer = ring.take_buffer().unwrap();
        ring.write_buffer(0, 0, buffer, BLOCK, false, 5).unwrap();
        let completion = next(&mut ring);
        assert_eq!(completion.tag, 5);
        assert_eq!(completion.result.unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert!(matches!(completion.lease, CompletionLease::Buffer(_)));
        let buffer = ring.take_buffer().unwrap();
        ring.read_buffer(0, 17, buffer, BLOCK, 6).unwrap();
        let outcome = next(&mut ring).result;
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EINVAL), "direct I/O at an odd offset");
        assert_eq!(ring.counters().errors, 2);
        assert_eq!(ring.counters().read_requests + ring.counters().write_requests, 0);
    });
}

#[test]
fn a_full_ring_hands_everything_back() {
    on_both_backends(|backend| {
        let place = directory();
        let (file, pool) = (file(&place, 16), pool(16));
        let mut ring = Ring::open(RingOptions { entries: 3, ..options(backend, &file, Some(&pool)) }).unwrap();
        for tag in 0..3 {
            ring.nop(tag).unwrap();
        }
        assert!(ring.nop(9).is_err());
        assert!(ring.sync_file(0, 9).is_err());
        let frame = ring.read_frame(0, 0, pool.try_exclusive(4).unwrap(), 9).unwrap_err();
        assert_eq!(frame.frame(), 4);
        let version_before = pool.downgrade(frame);
        pool.unpin(version_before);
        let frames = ring.read_frames(0, 0, vec![pool.try_exclusive(5).unwrap()], 9).unwrap_err();
        frames.into_iter().for_each(|frame| pool.release_unchanged(frame));
        let mut buffer = ring.take_buffer().unwrap();
        buffer[0] = 77;
        let buffer = ring.write_buffer(0, 0, buffer, BLOCK, false, 9).unwrap_err();
        let buffer = ring.read_buffer(0, 0, buffer, BLOCK, 9).unwrap_err();
        assert_eq!(buffer[0], 77);
        ring.give_back(buffer);
        // What is finished but not popped still takes its place.
        ring.submit(3, LONG).unwrap();
        assert!(ring.nop(9).is_err());
        assert_eq!(next(&mut ring).tag, 0);
        ring.nop(3).unwrap();
        let mut tags: Vec<u64> = (0..3).map(|_| next(&mut ring).tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, [1, 2, 3]);
        assert_eq!(ring.in_flight(), 0);
        assert_eq!(ring.counters().nops, 4);
    });
}

#[test]
fn buffers_run_out_and_come_back() {
    let place = directory();
    let file = file(&place, 1);
    let mut ring = Ring::open(options(Backend::Auto, &file, None)).unwrap();
    let mut taken: Vec<Buffer> = std::iter::from_fn(|| ring.take_buffer()).collect();
    assert_eq!(taken.len(), 4);
    let first = taken.pop().unwrap();
    ring.give_back(first);
    let mut again = ring.take_buffer().unwrap();
    assert!(ring.take_buffer().is_none());
    drop(ring);
    again.fill(1);
    assert!(again.iter().all(|&byte| byte == 1), "a buffer outlives its ring");
}

#[test]
#[should_panic(expected = "a ring that does not own it")]
fn a_buffer_of_another_ring_is_refused() {
    let place = directory();
    let file = file(&place, 1);
    let mut one = Ring::open(options(Backend::Auto, &file, None)).unwrap();
    let mut other = Ring::open(options(Backend::Auto, &file, None)).unwrap();
    let buffer = one.take_buffer().unwrap();
    let _ = other.read_buffer(0, 0, buffer, BLOCK, 0);
}

#[test]
#[should_panic(expected = "another pool than the ring's")]
fn a_frame_of_another_pool_is_refused() {
    let place = directory();
    let (file, own, foreign) = (file(&place, 1), pool(1), pool(1));
    let mut ring = Ring::open(options(Backend::Auto, &file, Some(&own))).unwrap();
    let _ = ring.read_frame(0, 0, foreign.try_exclusive(0).unwrap(), 0);
}

#[test]
fn options_that_cannot_work_are_refused_with_their_value() {
    let place = directory();
    let file = file(&place, 1);
    let good = options(Backend::Auto, &file, None);
    for bad in [
        RingOptions { entries: 0, ..good.clone() },
        RingOptions { entries: 100_000, ..good.clone() },
        RingOptions { buffer_bytes: 1000, ..good.clone() },
        RingOptions { buffers: usize::MAX, ..good },
    ] {
        assert!(matches!(Ring::open(bad), Err(BlockError::Invalid { .. })));
    }
}

#[test]
fn dropping_a_ring_waits_for_what_is_in_flight() {
    on_both_backends(|backend| {
        let place = directory();
        let (file, pool) = (file(&place, 64), pool(64));
        for submitted in [false, true] {
            let mut ring = Ring::open(RingOptions { entries: 64, ..options(backend, &file, Some(&pool)) }).unwrap();
            let _waker = ring.waker();
            let buffer = ring.take_buffer().unwrap();
            ring.read_buffer(0, 0, buffer, BLOCK, 0).unwrap();
            let offset = if submitted { 32 } else { 0 };
            for block in offset..offset + 30_u32 {
                let frame = pool.try_exclusive(block).unwrap();
                ring.read_frame(0, u64::from(block) * BLOCK as u64, frame, 0).unwrap();
            }
            if submitted {
                ring.submit(0, Duration::ZERO).unwrap();
            }
            drop(ring);
            assert!(
                pool.is_exclusive(offset),
                "the lease of a request that was never popped is lost: its frame stays shut"
            );
        }
        assert_eq!(Arc::strong_count(&pool), 1, "nothing was left behind");
        assert_eq!(Arc::strong_count(&file), 1);
    });
}

#[test]
fn a_wait_with_nothing_in_flight_ends_by_its_timeout() {
    on_both_backends(|backend| {
        let place = directory();
        let file = file(&place, 1);
        let mut ring = Ring::open(options(backend, &file, None)).unwrap();
        ring.submit(0, LONG).unwrap();
        ring.submit(1, Duration::ZERO).unwrap();
        let begun = Instant::now();
        ring.submit(1, Duration::from_millis(20)).unwrap();
        let _waker = ring.waker();
        ring.submit(1, Duration::from_millis(20)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(40));
        assert!(ring.pop().is_none());
    });
}

#[test]
fn a_wake_up_before_the_wait_is_not_lost() {
    on_both_backends(|backend| {
        let place = directory();
        let file = file(&place, 1);
        let mut ring = Ring::open(options(backend, &file, None)).unwrap();
        let waker = ring.waker();
        let begun = Instant::now();
        for _ in 0..3 {
            waker.wake();
            waker.clone().wake();
            ring.submit(1, LONG).unwrap();
        }
        assert!(begun.elapsed() < LONG);
        let begun = Instant::now();
        ring.submit(1, Duration::from_millis(20)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20), "wake-ups do not add up");
    });
}

#[test]
fn a_wake_up_ends_a_wait_for_several_completions() {
    on_both_backends(|backend| {
        let place = directory();
        let file = file(&place, 1);
        let mut ring = Ring::open(options(backend, &file, None)).unwrap();
        let waker = ring.waker();
        for round in 0..20 {
            let waker = waker.clone();
            let caller = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(round % 4));
                waker.wake();
            });
            let begun = Instant::now();
            ring.submit(4, LONG).unwrap();
            assert!(begun.elapsed() < LONG);
            caller.join().unwrap();
        }
        // The waker must not have spoiled ordinary waiting.
        for tag in 0..4 {
            ring.nop(tag).unwrap();
        }
        while ring.in_flight() > 0 {
            next(&mut ring);
        }
    });
}

#[test]
fn no_wake_up_is_lost_in_a_long_exchange() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const ROUNDS: u64 = 20_000;
    on_both_backends(|backend| {
        let place = directory();
        let file = file(&place, 1);
        let mut ring = Ring::open(options(backend, &file, None)).unwrap();
        let waker = ring.waker();
        let asked = Arc::new(AtomicU64::new(0));
        let answered = Arc::new(AtomicU64::new(0));
        let (asks, answers) = (Arc::clone(&asked), Arc::clone(&answered));
        let caller = std::thread::spawn(move || {
            for round in 1..=ROUNDS {
                asks.store(round, Ordering::Relaxed);
                waker.wake();
                while answers.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
            }
        });
        let begun = Instant::now();
        loop {
            let now = asked.load(Ordering::Relaxed);
            answered.store(now, Ordering::Release);
            if now == ROUNDS {
                break;
            }
            ring.submit(1, Duration::from_secs(20)).unwrap();
            assert!(begun.elapsed() < LONG, "a wake-up was lost at round {now}");
        }
        caller.join().unwrap();
    });
}

#[test]
fn a_waker_outlives_its_ring() {
    on_both_backends(|backend| {
        let place = directory();
        let file = file(&place, 1);
        let ring = Ring::open(options(backend, &file, None)).unwrap();
        let waker = ring.waker();
        drop(ring);
        waker.wake();
        assert_eq!(Arc::strong_count(&file), 1, "and does not keep the files open");
    });
}

#[test]
fn features_name_the_backend_and_what_was_registered() {
    let place = directory();
    let (file, pool) = (file(&place, 1), pool(4));
    let ring = Ring::open(options(Backend::Uring, &file, Some(&pool))).unwrap();
    let features = ring.features();
    assert_eq!(features.backend, "io_uring");
    // Each feature is either in use or refused with a reason.
    for name in
        ["single_issuer", "defer_taskrun", "coop_taskrun", "registered_files", "registered_pool", "registered_buffers"]
    {
        let refused = features.refused.iter().find(|(refused, _)| refused == name);
        assert!(features.has(name) != refused.is_some_and(|(_, why)| !why.is_empty()), "{name}: {features:?}");
    }
    let ring = Ring::open(options(Backend::Helpers, &file, Some(&pool))).unwrap();
    assert_eq!(ring.features().backend, "helper threads");
}

#[test]
fn many_rings_on_many_threads_share_one_pool() {
    on_both_backends(|backend| {
        let place = directory();
        let (file, pool) = (file(&place, 64), pool(64));
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let (file, pool) = (&file, &pool);
                scope.spawn(move || {
                    let mut ring = Ring::open(options(backend, file, Some(pool))).unwrap();
                    for round in 0..50_u32 {
                        for index in 0..8 {
                            let block = (thread * 16 + index + round) % 64;
                            if let Some(frame) = pool.try_exclusive(block) {
                                ring.read_frame(0, u64::from(block) * BLOCK as u64, frame, u64::from(block)).unwrap();
                            }
                        }
                        while ring.in_flight() > 0 {
                            let completion = next(&mut ring);
                            let CompletionLease::Frame(frame) = completion.lease else { panic!("no frame") };
                            assert_eq!(pool.bytes(&frame)[100], content(completion.tag, 100));
                            pool.release(frame);
                        }
                    }
                });
            }
        });
        assert!((0..64).all(|frame| !pool.is_exclusive(frame)));
    });
}

#[test]
fn buffered_files_work_as_well() {
    on_both_backends(|backend| {
        let place = directory();
        let path = file(&place, 4).path().to_path_buf();
        let mode = OpenMode { read: true, write: true, direct: false };
        let file = Arc::new(DirectFile::open(&path, mode).unwrap());
        assert!(!file.is_direct());
        let mut ring = Ring::open(options(backend, &file, None)).unwrap();
        let buffer = ring.take_buffer().unwrap();
        ring.read_buffer(0, 1, buffer, 100, 0).unwrap();
        let completion = next(&mut ring);
        assert_eq!(completion.result.unwrap(), 100);
        let CompletionLease::Buffer(buffer) = completion.lease else { panic!("no buffer") };
        assert_eq!(buffer[99], content(0, 100));
    });
}

#[test]
fn a_completion_brings_back_the_stamp_of_its_submit() {
    on_both_backends(|backend| {
        let place = directory();
        let file = file(&place, 8);
        let mut ring = Ring::open(options(backend, &file, None)).unwrap();
        let read = |ring: &mut Ring, tag: u64| {
            let buffer = ring.take_buffer().unwrap();
            ring.read_buffer(0, 0, buffer, BLOCK, tag).unwrap();
        };
        read(&mut ring, 1);
        read(&mut ring, 2);
        ring.stamp(1000);
        ring.submit(0, Duration::ZERO).unwrap();
        read(&mut ring, 3);
        ring.stamp(2000);
        ring.submit(0, Duration::ZERO).unwrap();
        // Given to the kernel without a stamp: unknown, not that of the request which had the slot before.
        let mut seen = BTreeMap::new();
        for _ in 0..3 {
            let completion = next(&mut ring);
            seen.insert(completion.tag, completion.submitted);
        }
        read(&mut ring, 4);
        ring.submit(0, Duration::ZERO).unwrap();
        ring.stamp(3000);
        let completion = next(&mut ring);
        seen.insert(completion.tag, completion.submitted);
        assert_eq!(seen, BTreeMap::from([(1, 1000), (2, 1000), (3, 2000), (4, 0)]));
    });
}

#[test]
fn parts_of_one_file_are_told_apart_and_counted_apart() {
    on_both_backends(|backend| {
        let place = directory();
        let (whole, pool) = (file(&place, 16), pool(4));
        let mode = OpenMode { read: true, write: true, direct: true };
        let part = |first: u64, blocks: u64| {
            let (base, room) = (first * BLOCK as u64, blocks * BLOCK as u64);
            Arc::new(DirectFile::open_part(whole.path(), mode, base, room).unwrap())
        };
        let mut given = options(backend, &whole, Some(&pool));
        given.files = vec![part(2, 4), part(8, 4)];
        let mut ring = Ring::open(given).unwrap();
        let frame = pool.try_exclusive(0).unwrap();
        ring.read_frame(1, BLOCK as u64, frame, 1).unwrap();
        let CompletionLease::Frame(frame) = next(&mut ring).lease else {
            panic!("a frame was read");
        };
        let right = (0..BLOCK).all(|byte| pool.bytes(&frame)[byte] == content(9, byte));
        assert!(right, "block 1 of the part is block 9");
        pool.release_unchanged(frame);
        let mut buffer = ring.take_buffer().unwrap();
        buffer[..BLOCK].fill(0xee);
        ring.write_buffer(0, 3 * BLOCK as u64, buffer, BLOCK, false, 2).unwrap();
        assert_eq!(next(&mut ring).result.unwrap(), BLOCK as u32);
        let mut written = [0; 2];
        whole.read_at(6 * BLOCK as u64 - 1, &mut written).unwrap();
        assert_eq!(written, [0xee, content(6, 0)]);

        let by_file: Vec<FileCounters> = ring.file_counters().collect();
        assert_eq!((by_file[0].read_requests, by_file[0].write_requests), (0, 1));
        assert_eq!((by_file[1].read_requests, by_file[1].write_requests), (1, 0));
        let all = ring.counters();
        assert_eq!(all.read_bytes, by_file[0].read_bytes + by_file[1].read_bytes);
        assert_eq!(all.write_bytes, by_file[0].write_bytes + by_file[1].write_bytes);
    });
}

#[test]
#[should_panic(expected = "outside file 0")]
fn a_write_beyond_a_part_is_refused() {
    let place = directory();
    let whole = file(&place, 4);
    let mode = OpenMode { read: true, write: true, direct: true };
    let part = DirectFile::open_part(whole.path(), mode, 0, BLOCK as u64).unwrap();
    let mut ring = Ring::open(options(Backend::Helpers, &Arc::new(part), None)).unwrap();
    let buffer = ring.take_buffer().unwrap();
    let _ = ring.write_buffer(0, BLOCK as u64, buffer, BLOCK, false, 1);
}
