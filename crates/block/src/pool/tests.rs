use super::*;
use proptest::prelude::*;

fn small(frames: usize) -> Arc<Pool> {
    Pool::new(&PoolOptions { frames, frame_bytes: 4096, huge_pages: false }).unwrap()
}

#[test]
fn sizes_that_cannot_work_are_refused_with_their_value() {
    for (frames, frame_bytes) in [(0, 4096), (1, 0), (1, 1000), (usize::MAX, 4096), (1 << 31, 1 << 40)] {
        let error = Pool::new(&PoolOptions { frames, frame_bytes, huge_pages: false }).unwrap_err();
        assert!(matches!(error, BlockError::Invalid { .. }), "{frames} x {frame_bytes}: {error}");
    }
}

#[test]
fn exclusive_shuts_everyone_out_and_shared_shuts_writers_out() {
    let pool = small(2);
    let lease = pool.try_exclusive(1).unwrap();
    assert!(pool.try_exclusive(1).is_none());
    assert!(pool.try_shared(1).is_none());
    assert!(pool.version(1).is_none());
    assert!(pool.is_exclusive(1) && !pool.is_pinned(1));
    let pin = pool.downgrade(lease);
    assert!(!pool.is_exclusive(1) && pool.is_pinned(1));
    let second = pool.try_shared(1).unwrap();
    assert!(pool.try_exclusive(1).is_none());
    pool.unpin(pin);
    assert!(pool.try_exclusive(1).is_none());
    pool.unpin(second);
    let lease = pool.try_exclusive(1).unwrap();
    pool.release(lease);
    assert!(pool.version(0).is_some());
}

#[test]
fn a_mark_is_set_once_taken_once_and_neither_a_change_nor_a_lease_ends_it() {
    let pool = small(2);
    let version = pool.version(0).unwrap();
    assert!(!pool.unmark(0));
    pool.mark(0);
    pool.mark(0);
    assert!(pool.validate(0, version), "a mark is no change");
    assert!(!pool.is_pinned(0) && !pool.is_exclusive(0));
    let pin = pool.try_shared(0).unwrap();
    pool.unpin(pin);
    let lease = pool.try_exclusive(0).unwrap();
    pool.release(lease);
    assert!(!pool.validate(0, version), "a release is one");
    let lease = pool.try_exclusive(0).unwrap();
    let pin = pool.downgrade(lease);
    pool.unpin(pin);
    assert!(pool.unmark(0) && !pool.unmark(0) && !pool.unmark(1));
}

#[test]
fn a_pin_does_not_end_an_optimistic_read_but_a_release_does() {
    let pool = small(1);
    let version = pool.version(0).unwrap();
    let pin = pool.try_shared(0).unwrap();
    assert!(pool.validate(0, version));
    pool.unpin(pin);
    assert!(pool.validate(0, version));
    let lease = pool.try_exclusive(0).unwrap();
    assert!(!pool.validate(0, version), "a frame that is being changed never validates");
    pool.release_unchanged(lease);
    assert!(pool.validate(0, version), "nothing was written");
    let mut lease = pool.try_exclusive(0).unwrap();
    pool.write_word(&mut lease, 0, 1);
    pool.release_unchanged(lease);
    assert!(!pool.validate(0, version), "something was written although the caller denied it");
}

#[test]
fn the_version_wraps_without_touching_its_neighbours_in_the_word() {
    let pool = small(1);
    pool.states[0].store(u64::from(u32::MAX) << VERSION_SHIFT, Ordering::Relaxed);
    let lease = pool.try_exclusive(0).unwrap();
    let pin = pool.downgrade(lease);
    assert_eq!(pool.version(0), Some(Version(0)));
    assert!(!pool.is_exclusive(0));
    pool.unpin(pin);
    assert_eq!(pool.states[0].load(Ordering::Relaxed), 0);
}

#[test]
fn the_last_possible_pin_does_not_spill_into_the_version() {
    let pool = small(1);
    pool.states[0].store(SHARED_MASK - SHARED_ONE, Ordering::Relaxed);
    let pin = pool.try_shared(0).unwrap();
    assert!(pool.try_shared(0).is_none());
    assert_eq!(pool.version(0), Some(Version(0)));
    pool.unpin(pin);
}

#[test]
#[should_panic(expected = "was used with pool")]
fn a_lease_of_another_pool_is_refused() {
    let (one, other) = (small(1), small(1));
    let lease = one.try_exclusive(0).unwrap();
    other.release(lease);
}

#[test]
#[should_panic(expected = "outside a frame")]
fn a_write_past_the_end_is_refused() {
    let pool = small(2);
    let mut lease = pool.try_exclusive(0).unwrap();
    pool.write(&mut lease, 4090, &[1; 7]);
}

#[test]
#[should_panic(expected = "word 512 of a frame of 512 words")]
fn a_word_past_the_end_is_refused() {
    small(2).word(0, 512);
}

#[test]
fn prefetching_out_of_range_is_ignored() {
    let pool = small(1);
    pool.prefetch(0, 64);
    pool.prefetch(0, 1 << 40);
    pool.prefetch(7, 0);
    pool.prefetch_state(0);
    pool.prefetch_state(u32::MAX);
}

#[test]
#[cfg_attr(miri, ignore = "there is no /proc/self/smaps of Miri's memory")]
fn huge_pages_are_reported_and_never_exceed_the_pool() {
    let pool = Pool::new(&PoolOptions { frames: 1024, frame_bytes: 8192, huge_pages: true }).unwrap();
    let huge = pool.huge_pages_bytes().expect("Linux has /proc/self/smaps");
    assert!(huge <= 8 << 20, "{huge}");
}

#[derive(Debug, Clone)]
enum Step {
    Exclusive(u32),
    Shared(u32),
    Release(u32, bool),
    Unchanged(u32),
    Downgrade(u32),
    Unpin(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let frame = 0..2_u32;
    prop_oneof![
        frame.clone().prop_map(Step::Exclusive),
        frame.clone().prop_map(Step::Shared),
        (frame.clone(), any::<bool>()).prop_map(|(frame, write)| Step::Release(frame, write)),
        frame.clone().prop_map(Step::Unchanged),
        frame.clone().prop_map(Step::Downgrade),
        frame.prop_map(Step::Unpin),
    ]
}

#[derive(Default)]
struct ModelFrame {
    exclusive: Option<Exclusive>,
    shared: Vec<Shared>,
    version: u32,
}

fn apply(pool: &Pool, frames: &mut [ModelFrame], step: &Step) {
    match *step {
        Step::Exclusive(frame) => {
            let model = &mut frames[frame as usize];
            let lease = pool.try_exclusive(frame);
            assert_eq!(lease.is_some(), model.exclusive.is_none() && model.shared.is_empty());
            model.exclusive = lease.or(model.exclusive.take());
        }
        Step::Shared(frame) => {
            let model = &mut frames[frame as usize];
            let lease = pool.try_shared(frame);
            assert_eq!(lease.is_some(), model.exclusive.is_none());
            model.shared.extend(lease);
        }
        Step::Release(frame, write) => {
            let model = &mut frames[frame as usize];
            if let Some(mut lease) = model.exclusive.take() {
                if write {
                    pool.write_word(&mut lease, 3, u64::from(model.version));
                }
                pool.release(lease);
                model.version = model.version.wrapping_add(1);
            }
        }
        Step::Unchanged(frame) => {
            if let Some(lease) = frames[frame as usize].exclusive.take() {
                pool.release_unchanged(lease);
            }
        }
        Step::Downgrade(frame) => {
            let model = &mut frames[frame as usize];
            if let Some(lease) = model.exclusive.take() {
                model.shared.push(pool.downgrade(lease));
                model.version = model.version.wrapping_add(1);
            }
        }
        Step::Unpin(frame) => {
            if let Some(lease) = frames[frame as usize].shared.pop() {
                pool.unpin(lease);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

    #[test]
    fn the_state_word_follows_the_model(steps in proptest::collection::vec(step(), 1..200)) {
        let pool = small(2);
        let mut frames = [ModelFrame::default(), ModelFrame::default()];
        for step in &steps {
            apply(&pool, &mut frames, step);
            for (index, model) in (0_u32..).zip(&frames) {
                prop_assert_eq!(pool.is_exclusive(index), model.exclusive.is_some());
                prop_assert_eq!(pool.is_pinned(index), !model.shared.is_empty());
                let expected = model.exclusive.is_none().then_some(Version(model.version));
                prop_assert_eq!(pool.version(index), expected);
            }
        }
    }

    #[test]
    fn what_is_written_at_any_offset_is_what_is_read(
        writes in proptest::collection::vec((0_usize..4096, proptest::collection::vec(any::<u8>(), 0..70)), 1..20)
    ) {
        let pool = small(3);
        let mut model = vec![0_u8; 4096];
        let mut lease = pool.try_exclusive(1).unwrap();
        for (offset, data) in &writes {
            let data = &data[..data.len().min(4096 - offset)];
            pool.write(&mut lease, *offset, data);
            model[*offset..offset + data.len()].copy_from_slice(data);
        }
        prop_assert_eq!(pool.bytes(&lease), &model[..]);
        for word in 0..512 {
            let expected = u64::from_ne_bytes(model[word * 8..word * 8 + 8].try_into().unwrap());
            prop_assert_eq!(pool.word(1, word), expected);
        }
        let mut words = [0; 4];
        pool.words(1, 508, &mut words);
        prop_assert_eq!(words[3], u64::from_ne_bytes(model[4088..].try_into().unwrap()));
        pool.fill_zero(&mut lease);
        prop_assert!(pool.bytes(&lease).iter().all(|&byte| byte == 0));
        pool.release(lease);
        for neighbour in [0, 2] {
            let pin = pool.try_shared(neighbour).unwrap();
            prop_assert!(pool.bytes(&pin).iter().all(|&byte| byte == 0), "a neighbour was touched");
            pool.unpin(pin);
        }
    }
}

#[test]
fn an_optimistic_read_that_validates_is_never_torn() {
    use std::sync::atomic::AtomicBool;
    let rounds: u64 = if cfg!(miri) { 20 } else { 40_000 };
    let pool = small(1);
    let stop = AtomicBool::new(false);
    let validated = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut words = [0_u64; 64];
                while !stop.load(Ordering::Relaxed) || validated.load(Ordering::Relaxed) == 0 {
                    let Some(version) = pool.version(0) else {
                        continue;
                    };
                    pool.words(0, 0, &mut words);
                    if pool.validate(0, version) {
                        assert!(words.iter().all(|&word| word == words[0]), "torn: {words:?}");
                        validated.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let writers: Vec<_> = (0..2_u64)
            .map(|writer| {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let mut lease = loop {
                            match pool.try_exclusive(0) {
                                Some(lease) => break lease,
                                None => std::hint::spin_loop(),
                            }
                        };
                        for word in 0..64 {
                            pool.write_word(&mut lease, word, round << 1 | writer);
                        }
                        pool.release(lease);
                        if round % 64 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(validated.load(Ordering::Relaxed) > 0);
}

#[test]
fn shared_readers_never_see_a_writer_at_work() {
    let pool = small(1);
    let rounds: u64 = if cfg!(miri) { 10 } else { 20_000 };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..rounds {
                if let Some(mut lease) = pool.try_exclusive(0) {
                    for word in 0..32 {
                        pool.write_word(&mut lease, word, round);
                    }
                    pool.release(lease);
                }
            }
        });
        while !writer.is_finished() {
            if let Some(pin) = pool.try_shared(0) {
                let bytes = pool.bytes(&pin);
                assert!((1..32).all(|word| bytes[word * 8..word * 8 + 8] == bytes[..8]));
                pool.unpin(pin);
            }
        }
    });
}
