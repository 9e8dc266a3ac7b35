//! A ring where memory must not be locked. A test program of its own: the limit is the process's.

use assay_block::{Backend, CompletionLease, DirectFile, Pool, PoolOptions, Ring, RingOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_ring_works_unregistered_where_the_locked_memory_limit_is_too_low_and_says_so() {
    let executable = std::env::current_exe().unwrap();
    let place = tempfile::tempdir_in(executable.parent().unwrap()).unwrap();
    let file = DirectFile::create_new(&place.path().join("data"), true).unwrap();
    file.write_at(0, &vec![0x5a; 64 * 1024]).unwrap();
    let pool = Pool::new(&PoolOptions { frames: 512, frame_bytes: 8192, huge_pages: false }).unwrap();
    let options = RingOptions {
        entries: 8,
        buffers: 64,
        buffer_bytes: 65_536,
        pool: Some(Arc::clone(&pool)),
        files: vec![Arc::new(file)],
        backend: Backend::Uring,
        helpers: 1,
    };

    // The capability that lifts the limit is a thread's, so only this thread gives it up.
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, sets).unwrap();
    let before = getrlimit(Resource::Memlock);
    let low = before.maximum.map_or(1 << 20, |maximum| maximum.min(1 << 20));
    setrlimit(Resource::Memlock, Rlimit { current: Some(low), maximum: before.maximum }).unwrap();

    let mut ring = Ring::open(options).unwrap();
    let features = ring.features().clone();
    for name in ["registered_pool", "registered_buffers"] {
        assert!(!features.has(name), "{features:?}");
        let (_, why) = features.refused.iter().find(|(refused, _)| refused == name).expect(name);
        assert!(why.contains("locked-memory limit") && why.contains("ulimit -l"), "{why}");
    }

    ring.read_frame(0, 8192, pool.try_exclusive(7).unwrap(), 1).unwrap();
    ring.read_frames(0, 0, vec![pool.try_exclusive(3).unwrap(), pool.try_exclusive(1).unwrap()], 2).unwrap();
    let buffer = ring.take_buffer().unwrap();
    ring.read_buffer(0, 0, buffer, 65_536, 3).unwrap();
    let mut bytes = 0;
    while ring.in_flight() > 0 {
        ring.submit(1, Duration::from_secs(10)).unwrap();
        while let Some(completion) = ring.pop() {
            bytes += completion.result.unwrap() as usize;
            let all_right = |data: &[u8]| data.iter().all(|&byte| byte == 0x5a);
            match completion.lease {
                CompletionLease::Frame(frame) => {
                    assert!(all_right(pool.bytes(&frame)));
                    pool.release(frame);
                }
                CompletionLease::Frames(frames) => {
                    for frame in frames {
                        assert!(all_right(pool.bytes(&frame)));
                        pool.release(frame);
                    }
                }
                CompletionLease::Buffer(buffer) => assert!(all_right(&buffer)),
                CompletionLease::None => panic!("each of the three held something"),
            }
        }
    }
    assert_eq!(bytes, 3 * 8192 + 65_536);
}
