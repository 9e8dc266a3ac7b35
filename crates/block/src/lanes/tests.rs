mod discard;
mod short;

use super::*;
use crate::OpenMode;
use crate::testing::directory;
use std::path::Path;
use std::time::Instant;

const BLOCK: usize = 8192;
const LONG: Option<Duration> = Some(Duration::from_secs(60));

fn content(block: u64, byte: usize) -> u8 {
    (block as usize * 31 + byte * 7 + byte / 256) as u8
}

fn is_block(block: u64, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(byte, value)| *value == content(block, byte))
}

/// A file of `blocks` blocks with known content.
fn file(place: &tempfile::TempDir, blocks: u64, direct: bool) -> Arc<DirectFile> {
    let path = place.path().join(if direct { "direct" } else { "buffered" });
    let file = DirectFile::create_new(&path, direct).unwrap();
    let data: Vec<u8> = (0..blocks).flat_map(|block| (0..BLOCK).map(move |byte| content(block, byte))).collect();
    file.write_at(0, &data).unwrap();
    Arc::new(file)
}

fn lanes_of(engine: LaneEngine, lanes: u32, file: &Arc<DirectFile>) -> Lanes {
    Lanes::open(LanesOptions { lanes, lane_bytes: BLOCK, files: vec![Arc::clone(file)], engine }).unwrap()
}

/// Every engine that moves data, in every mode that differs in what it gives the kernel.
fn moving_engines() -> Vec<LaneEngine> {
    let plain = UringMode::default();
    vec![
        LaneEngine::Uring(plain),
        LaneEngine::Uring(UringMode { fixed_buffers: false, ..plain }),
        LaneEngine::Uring(UringMode { fixed_buffers: false, registered_files: false, nonvectored: false, ..plain }),
        LaneEngine::Uring(UringMode { force_async: 2, ..plain }),
        LaneEngine::Uring(UringMode { sq_thread: true, ..plain }),
        LaneEngine::Aio,
        LaneEngine::Psync(SyncCall::default()),
        LaneEngine::Psync(SyncCall { high_priority: true, nowait: false }),
    ]
}

/// Waits for and reaps exactly `count` completions.
fn collect(lanes: &mut Lanes, count: usize) -> Vec<LaneDone> {
    let begun = Instant::now();
    let mut done = Vec::new();
    while done.len() < count {
        assert!(begun.elapsed() < LONG.unwrap(), "no completion: {lanes:?}");
        let missing = (count - done.len()) as u32;
        lanes.submit_and_wait(missing, LONG).unwrap();
        lanes.reap(&mut done, missing);
    }
    done
}

#[test]
fn every_engine_writes_what_it_was_given_and_reads_what_is_there() {
    for direct in [true, false] {
        let place = directory();
        let file = file(&place, 64, direct);
        for engine in moving_engines() {
            let mut lanes = lanes_of(engine, 8, &file);
            for turn in 0..4_u64 {
                for lane in 0..8 {
                    let block = (turn * 8 + u64::from(lane) * 5) % 64;
                    lanes.read(lane, 0, block * BLOCK as u64, BLOCK as u32);
                }
                assert_eq!((lanes.queued(), lanes.in_flight()), (8, 0));
                for done in collect(&mut lanes, 8) {
                    assert_eq!(done.result, BLOCK as i32, "{engine:?}");
                    let block = (turn * 8 + u64::from(done.lane) * 5) % 64;
                    assert!(is_block(block, lanes.buffer(done.lane, BLOCK)), "{engine:?}");
                }
                assert_eq!((lanes.queued(), lanes.in_flight()), (0, 0));
            }
            // Writes: the blocks of lanes 0 to 3 change places, then come back.
            for turn in [1, 0] {
                for lane in 0..4_u32 {
                    let block = u64::from((lane + turn) % 4);
                    for (byte, value) in lanes.buffer_mut(lane, BLOCK).iter_mut().enumerate() {
                        *value = content(block, byte);
                    }
                    lanes.write(lane, 0, u64::from(lane) * BLOCK as u64, BLOCK as u32);
                }
                let done = collect(&mut lanes, 4);
                assert!(done.iter().all(|done| done.result == BLOCK as i32));
                lanes.sync(0, 0, turn == 1);
                assert_eq!(collect(&mut lanes, 1), [LaneDone { lane: 0, result: 0 }]);
                let mut block = vec![0; BLOCK];
                for place in 0..4_u64 {
                    file.read_at(place * BLOCK as u64, &mut block).unwrap();
                    let expected = (place + u64::from(turn)) % 4;
                    assert!(is_block(expected, &block), "{engine:?}");
                }
            }
            let counters = lanes.counters();
            assert_eq!(counters.read_requests, 32);
            assert_eq!(counters.read_bytes, 32 * BLOCK as u64);
            assert_eq!(counters.write_requests, 8);
            assert_eq!((counters.syncs, counters.errors, counters.nops), (2, 0, 0));
            assert!(counters.submits > 0);
        }
    }
}

#[test]
fn an_error_and_a_short_count_are_reported_by_their_lane() {
    let place = directory();
    let path = place.path().join("short");
    std::fs::write(&path, vec![7; 4096]).unwrap();
    let mode = OpenMode { read: true, write: false, direct: false };
    let file = Arc::new(DirectFile::open(&path, mode).unwrap());
    for engine in moving_engines() {
        let mut lanes = lanes_of(engine, 4, &file);
        lanes.read(0, 0, 0, BLOCK as u32);
        lanes.write(1, 0, 0, 4096);
        lanes.read(2, 0, 1 << 20, 4096);
        lanes.read(3, 0, 0, 512);
        let mut done = collect(&mut lanes, 4);
        done.sort_by_key(|done| done.lane);
        let results: Vec<i32> = done.iter().map(|done| done.result).collect();
        assert_eq!(results, [4096, -libc::EBADF, 0, 512], "{engine:?}");
        assert_eq!(lanes.counters().errors, 1);
        // The lane of the error can be used again.
        lanes.read(1, 0, 0, 4096);
        assert_eq!(collect(&mut lanes, 1)[0].result, 4096, "{engine:?}");
    }
}

#[test]
fn engines_that_move_nothing_complete_everything_and_need_no_file() {
    let engines = [
        LaneEngine::Nop(UringMode::default()),
        LaneEngine::Nop(UringMode { sq_thread: true, ..UringMode::default() }),
        LaneEngine::Null,
    ];
    for engine in engines {
        let mut lanes = Lanes::open(LanesOptions { lanes: 32, lane_bytes: 5000, files: Vec::new(), engine }).unwrap();
        assert_eq!(lanes.lane_bytes(), 8192);
        let mut busy = [false; 32];
        let mut reaped = 0_u64;
        let mut done = Vec::new();
        for turn in 0..1000_u32 {
            for lane in 0..32 {
                if !busy[lane as usize] && (lane + turn).is_multiple_of(3) {
                    lanes.write(lane, 9, u64::from(turn) << 40, 5000);
                    busy[lane as usize] = true;
                }
            }
            lanes.submit_and_wait(turn % 5, LONG).unwrap();
            assert_eq!(lanes.queued(), 0);
            done.clear();
            reaped += u64::from(lanes.reap(&mut done, 1 + turn % 11));
            for done in &done {
                assert_eq!(done.result, 5000);
                assert!(std::mem::take(&mut busy[done.lane as usize]), "once each");
            }
            assert_eq!(busy.iter().filter(|busy| **busy).count(), lanes.in_flight() as usize);
        }
        let left = lanes.in_flight() as usize;
        reaped += collect(&mut lanes, left).len() as u64;
        assert_eq!(lanes.counters().nops, reaped);
        assert!(reaped > 1000, "{engine:?}: {reaped}");
        let entered = lanes.counters().submits > 0;
        assert_eq!(entered, engine != LaneEngine::Null, "{engine:?}");
    }
}

#[test]
fn a_wait_ends_with_its_timeout_and_takes_nothing_that_is_queued() {
    let place = directory();
    let file = file(&place, 4, true);
    for engine in moving_engines() {
        let mut lanes = lanes_of(engine, 4, &file);
        lanes.read(0, 0, 0, 4096);
        // Nothing is in flight, so there is nothing to wait for, for ever or not.
        lanes.wait(1, None).unwrap();
        lanes.wait_batch(3, LONG, None).unwrap();
        assert_eq!((lanes.queued(), lanes.in_flight()), (1, 0), "{engine:?}");
        assert_eq!(lanes.submit().unwrap(), 1);
        assert_eq!((lanes.queued(), lanes.in_flight()), (0, 1), "{engine:?}");
        lanes.read(1, 0, 0, 4096);
        let mut done = Vec::new();
        while done.is_empty() {
            // Three can never come: one is in flight. Cut short, as below, it is called again.
            lanes.wait(3, None).unwrap();
            lanes.reap(&mut done, 8);
        }
        assert_eq!(done.len(), 1, "{engine:?}");
        assert_eq!((lanes.queued(), lanes.in_flight()), (1, 0), "{engine:?}");
        assert_eq!(collect(&mut lanes, 1)[0].lane, 1);
    }
}

#[test]
fn patience_makes_one_completion_enough() {
    let place = directory();
    let file = file(&place, 4, true);
    for engine in [LaneEngine::Uring(UringMode::default()), LaneEngine::Aio] {
        let mut lanes = lanes_of(engine, 4, &file);
        for turn in 0..20_u64 {
            for lane in 0..3 {
                lanes.read(lane, 0, turn % 4 * BLOCK as u64, 4096);
            }
            let patience = Some(Duration::from_micros(turn * 10));
            let taken = lanes.submit_and_wait_batch(3, patience, LONG).unwrap();
            assert_eq!(taken, 3);
            let mut done = Vec::new();
            while lanes.reap(&mut done, 3) == 0 {
                // Cut short: what the rings dropped before left to do in this thread counts as a signal.
                lanes.wait_batch(3, patience, LONG).unwrap();
            }
            let left = lanes.in_flight() as usize;
            collect(&mut lanes, left);
        }
    }
}

#[test]
fn a_reap_takes_no_more_than_it_is_told() {
    let place = directory();
    let file = file(&place, 8, true);
    for engine in moving_engines() {
        let mut lanes = lanes_of(engine, 8, &file);
        for lane in 0..8 {
            lanes.read(lane, 0, u64::from(lane) * BLOCK as u64, BLOCK as u32);
        }
        lanes.submit().unwrap();
        while lanes.in_flight() > 0 {
            lanes.wait(lanes.in_flight(), LONG).unwrap();
            let before = lanes.in_flight();
            let mut done = Vec::new();
            let count = lanes.reap(&mut done, 3);
            assert_eq!(count as usize, done.len());
            assert!(count <= 3 && lanes.in_flight() == before - count);
        }
        assert_eq!(lanes.counters().read_requests, 8, "{engine:?}");
    }
}

#[test]
fn lanes_dropped_in_flight_leave_the_file_as_the_requests_would() {
    let place = directory();
    let file = file(&place, 8, true);
    for engine in moving_engines() {
        let mut lanes = lanes_of(engine, 8, &file);
        for lane in 0..8 {
            lanes.buffer_mut(lane, BLOCK).fill(lane as u8 + 1);
            lanes.write(lane, 0, u64::from(lane) * BLOCK as u64, BLOCK as u32);
        }
        lanes.submit().unwrap();
        drop(lanes);
        let mut block = vec![0; BLOCK];
        for lane in 0..8_u64 {
            file.read_at(lane * BLOCK as u64, &mut block).unwrap();
            assert!(block.iter().all(|byte| *byte == lane as u8 + 1), "{engine:?}: lane {lane}");
            file.write_at(lane * BLOCK as u64, &vec![0; BLOCK]).unwrap();
        }
    }
}

#[test]
fn requests_never_given_to_the_kernel_vanish_with_their_lanes() {
    let place = directory();
    let file = file(&place, 4, true);
    for engine in moving_engines() {
        let mut lanes = lanes_of(engine, 4, &file);
        lanes.buffer_mut(0, BLOCK).fill(0xee);
        lanes.write(0, 0, 0, BLOCK as u32);
        drop(lanes);
        let mut block = vec![0; BLOCK];
        file.read_at(0, &mut block).unwrap();
        assert!(is_block(0, &block), "{engine:?}");
    }
}

fn said_by(action: impl FnOnce()) -> String {
    let action = std::panic::AssertUnwindSafe(action);
    let cause = std::panic::catch_unwind(action).unwrap_err();
    match cause.downcast::<String>() {
        Ok(text) => *text,
        Err(cause) => (*cause.downcast::<&'static str>().unwrap()).to_owned(),
    }
}

#[test]
fn misuse_of_a_lane_panics() {
    let place = directory();
    let path = place.path().join("part");
    std::fs::write(&path, vec![0; 16 * 4096]).unwrap();
    let mode = OpenMode { read: true, write: true, direct: true };
    let part = Arc::new(DirectFile::open_part(&path, mode, 4096, 8192).unwrap());
    let fresh = || lanes_of(LaneEngine::Uring(UringMode::default()), 2, &part);
    let busy = || {
        let mut lanes = fresh();
        lanes.read(0, 0, 0, 4096);
        lanes
    };
    assert!(said_by(|| busy().read(0, 0, 0, 4096)).contains("busy"));
    assert!(said_by(|| drop(busy().buffer(0, 1).to_vec())).contains("busy"));
    assert!(said_by(|| busy().buffer_mut(0, 1).fill(1)).contains("busy"));
    assert!(said_by(|| fresh().read(0, 0, 0, 8193)).contains("of a lane"));
    assert!(said_by(|| fresh().write(0, 0, 4096, 8192)).contains("outside file"));
    assert!(said_by(|| fresh().read(0, 1, 0, 4096)).contains("index out"));
}

#[test]
fn a_part_of_a_device_is_addressed_from_its_own_beginning() {
    let place = directory();
    let path = place.path().join("part");
    let data: Vec<u8> = (0..16_u8).flat_map(|block| vec![block; 4096]).collect();
    std::fs::write(&path, data).unwrap();
    let mode = OpenMode { read: true, write: true, direct: true };
    let part = Arc::new(DirectFile::open_part(&path, mode, 3 * 4096, 8192).unwrap());
    for engine in moving_engines() {
        let mut lanes = lanes_of(engine, 1, &part);
        lanes.read(0, 0, 4096, 4096);
        assert_eq!(collect(&mut lanes, 1)[0].result, 4096);
        assert!(lanes.buffer(0, 4096).iter().all(|byte| *byte == 4));
    }
}

#[test]
fn options_that_cannot_work_are_refused_in_words() {
    let refused = |lanes: u32, lane_bytes: usize| {
        let options = LanesOptions { lanes, lane_bytes, files: Vec::new(), engine: LaneEngine::Null };
        Lanes::open(options).unwrap_err().to_string()
    };
    assert!(refused(0, 4096).contains("1 to 16384 requests"));
    assert!(refused(16_385, 4096).contains("not 16385"));
    assert!(refused(1, 0).contains("1 byte to 1 GiB"));
    assert!(refused(1, (1 << 30) + 1).contains("1 byte to 1 GiB"));
}

#[test]
fn rounding_up_to_huge_pages_is_limited_over_all_lanes() {
    let half = Stretch::to_huge_pages(HUGE_PAGE / 2);
    assert_eq!(half.own, HUGE_PAGE / 2);
    assert_eq!(Stretch::to_huge_pages(HUGE_PAGE).own, 0);
    assert_eq!(Stretch::to_huge_pages(4096).own, 0);
    assert!(half.fits());
    let many: Vec<Stretch> =
        (0..=MAX_STRETCH / (HUGE_PAGE / 2)).map(|_| Stretch::to_huge_pages(HUGE_PAGE / 2)).collect();
    assert!(!many.last().unwrap().fits());
    drop(many);
    // Other tests have lanes as well, but not hundreds.
    assert!(Stretch::to_huge_pages(HUGE_PAGE / 2).fits());
}

/// Worker threads of this thread's rings.
fn workers() -> usize {
    let name = format!("iou-wrk-{}", rustix::thread::gettid().as_raw_nonzero());
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|comm| comm.trim() == name)
        .count()
}

#[test]
fn requests_on_a_file_system_in_memory_need_no_worker() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = file(&memory, 16, true);
    let mut lanes = lanes_of(LaneEngine::Uring(UringMode::default()), 8, &file);
    assert_eq!(lanes.features().has("memory_at_once"), crate::device_facts(memory.path()).is_tmpfs);
    for lane in 0..8 {
        lanes.read(lane, 0, u64::from(lane) * BLOCK as u64, BLOCK as u32);
    }
    lanes.submit().unwrap();
    let mut done = Vec::new();
    lanes.reap(&mut done, 8);
    let at_once = done.len();
    let left = lanes.in_flight() as usize;
    collect(&mut lanes, left);
    for lane in 0..8 {
        assert!(is_block(u64::from(lane), lanes.buffer(lane, BLOCK)));
    }
    if lanes.features().has("memory_at_once") && file.is_direct() {
        assert_eq!((at_once, workers()), (8, 0));
    }
}

#[test]
fn a_refused_io_uring_names_the_alternative() {
    let said = no_uring("not permitted".to_owned()).to_string();
    assert!(said.contains("not permitted") && said.contains("libaio"), "{said}");
}

fn polled_refusal(path: &Path, direct: bool) -> String {
    let mode = OpenMode { read: true, write: false, direct };
    let options = LanesOptions {
        lanes: 4,
        lane_bytes: 4096,
        files: vec![Arc::new(DirectFile::open(path, mode).unwrap())],
        engine: LaneEngine::Uring(UringMode { polled: true, ..UringMode::default() }),
    };
    match Lanes::open(options) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// Item 16 of the storage probe: a message that names poll queues, not a hang.
#[test]
fn storage_16_polling_without_poll_queues_is_refused_before_the_first_request() {
    let place = directory();
    let path = place.path().join("data");
    std::fs::write(&path, vec![0; 8192]).unwrap();
    assert!(polled_refusal(&path, false).contains("only direct I/O"));
    let facts = crate::device_facts(&path);
    let polls = facts.disk.is_ok_and(|disk| {
        std::fs::read_to_string(format!("/sys/class/block/{disk}/queue/io_poll")).is_ok_and(|text| text.trim() == "1")
    });
    if !polls {
        let said = polled_refusal(&path, true);
        assert!(said.contains("poll queues"), "{said}");
    }
    // A file system in memory has no device at all.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = memory.path().join("data");
    std::fs::write(&path, vec![0; 8192]).unwrap();
    let said = polled_refusal(&path, true);
    assert!(said.contains("poll queues") || said.contains("only direct I/O"), "{said}");
}

#[test]
fn a_device_polls_where_sysfs_says_so() {
    let place = directory();
    let root = std::fs::canonicalize(place.path()).unwrap();
    let disk = root.join("class/block/sda");
    std::fs::create_dir_all(disk.join("queue")).unwrap();
    std::fs::create_dir_all(root.join("dev/block")).unwrap();
    std::fs::create_dir_all(root.join("proc/self")).unwrap();
    std::os::unix::fs::symlink(&disk, root.join("dev/block/8:0")).unwrap();
    std::fs::write(root.join("proc/self/mountinfo"), "30 27 8:0 / / rw - ext4 /dev/sda rw\n").unwrap();
    let roots = crate::facts::Roots { proc: root.join("proc"), sys: root.clone() };
    for (text, expected) in [("0\n", false), ("1\n", true)] {
        std::fs::write(disk.join("queue/io_poll"), text).unwrap();
        assert_eq!(uring::poll_queues(&roots, &root), Ok(expected));
    }
    std::fs::remove_file(disk.join("queue/io_poll")).unwrap();
    assert!(uring::poll_queues(&roots, &root).is_err());
}

/// A file that has nothing to read until somebody writes to it, and its other end.
fn pipe(place: &tempfile::TempDir) -> (Arc<DirectFile>, std::fs::File) {
    let path = place.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    let both = OpenMode { read: true, write: true, direct: false };
    let file = Arc::new(DirectFile::open(&path, both).unwrap());
    let end = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    (file, end)
}

#[test]
fn a_wait_for_what_does_not_come_ends_with_time_or_patience() {
    use std::io::Write;
    let place = directory();
    let (pipe, mut end) = pipe(&place);
    let data = file(&place, 4, true);
    let mut lanes = Lanes::open(LanesOptions {
        lanes: 4,
        lane_bytes: BLOCK,
        files: vec![Arc::clone(&data), pipe],
        engine: LaneEngine::Uring(UringMode::default()),
    })
    .unwrap();
    lanes.read(0, 1, 0, 8);
    lanes.submit().unwrap();
    let brief = Some(Duration::from_millis(20));
    let begun = Instant::now();
    lanes.wait(1, brief).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let mut done = Vec::new();
    assert_eq!(lanes.reap(&mut done, 4), 0);
    // The read of the file comes, the other does not: one is enough after a while.
    lanes.read(1, 0, 0, 4096);
    assert_eq!(lanes.submit_and_wait_batch(2, brief, LONG).unwrap(), 1);
    assert_eq!(lanes.reap(&mut done, 4), 1);
    assert_eq!(done[0].lane, 1);
    assert_eq!((lanes.in_flight(), lanes.queued()), (1, 0));
    // A wait for ever is ended by the completion alone.
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        end.write_all(b"too late").unwrap();
    });
    while lanes.in_flight() > 0 {
        lanes.wait(1, None).unwrap();
        lanes.reap(&mut done, 4);
    }
    writer.join().unwrap();
    assert_eq!(done[1], LaneDone { lane: 0, result: 8 });
    assert_eq!(lanes.buffer(0, 8), b"too late");
}

/// The kernel's thread sleeps after a second without work and must then be woken; several are in use at once.
#[test]
fn a_submission_thread_that_went_to_sleep_is_woken() {
    let place = directory();
    let file = file(&place, 16, true);
    std::thread::scope(|scope| {
        for first in 0..2_u64 {
            let file = &file;
            scope.spawn(move || {
                let mode = UringMode { sq_thread: true, ..UringMode::default() };
                let mut lanes = lanes_of(LaneEngine::Uring(mode), 4, file);
                assert!(lanes.features().has("sq_thread"));
                for turn in 0..2_u64 {
                    for lane in 0..4_u32 {
                        let block = (first * 8 + turn * 4 + u64::from(lane)) % 16;
                        lanes.read(lane, 0, block * BLOCK as u64, BLOCK as u32);
                    }
                    for done in collect(&mut lanes, 4) {
                        assert_eq!(done.result, BLOCK as i32);
                        let block = (first * 8 + turn * 4 + u64::from(done.lane)) % 16;
                        assert!(is_block(block, lanes.buffer(done.lane, BLOCK)));
                    }
                    if turn == 0 {
                        std::thread::sleep(Duration::from_millis(1200));
                    }
                }
            });
        }
    });
}

#[test]
fn calls_that_would_block_fail_where_that_is_asked_for() {
    let place = directory();
    let file = file(&place, 16, false);
    file.sync_data().unwrap();
    let engines = [
        LaneEngine::Psync(SyncCall { nowait: true, high_priority: false }),
        LaneEngine::Uring(UringMode { nowait: true, ..UringMode::default() }),
    ];
    for engine in engines {
        let mut lanes = lanes_of(engine, 1, &file);
        // A refused read may have begun to fetch its pages, which then cannot be dropped for a moment.
        let refused = (0..200).any(|_| {
            file.invalidate(0, 0).unwrap();
            lanes.read(0, 0, 0, BLOCK as u32);
            collect(&mut lanes, 1)[0].result == -libc::EAGAIN
        });
        assert!(refused, "{engine:?}");
        assert_eq!(lanes.counters().errors, 1);
    }
}

#[test]
fn a_forced_request_is_done_by_a_worker() {
    let place = directory();
    let file = file(&place, 4, true);
    let mode = UringMode { force_async: 3, ..UringMode::default() };
    let mut lanes = lanes_of(LaneEngine::Uring(mode), 1, &file);
    for turn in 1..=3 {
        lanes.read(0, 0, 0, BLOCK as u32);
        assert_eq!(collect(&mut lanes, 1)[0].result, BLOCK as i32);
        assert_eq!(workers() > 0, turn == 3, "turn {turn}");
    }
}

#[test]
fn as_many_lanes_as_there_may_be_all_come_back() {
    let place = directory();
    let file = file(&place, 4, false);
    for engine in [LaneEngine::Uring(UringMode::default()), LaneEngine::Psync(SyncCall::default())] {
        let mut lanes =
            Lanes::open(LanesOptions { lanes: MAX_ENTRIES, lane_bytes: 4096, files: vec![Arc::clone(&file)], engine })
                .unwrap();
        for lane in 0..MAX_ENTRIES {
            lanes.read(lane, 0, 0, 512);
        }
        let mut seen = vec![false; MAX_ENTRIES as usize];
        for done in collect(&mut lanes, MAX_ENTRIES as usize) {
            assert_eq!(done.result, 512);
            assert!(!std::mem::replace(&mut seen[done.lane as usize], true));
        }
    }
}

/// The lock of a file goes with its last reference, a registration's included.
#[test]
fn dropped_lanes_have_let_go_of_their_files() {
    let place = directory();
    drop(file(&place, 4, true));
    for engine in moving_engines() {
        for _ in 0..20 {
            let mode = OpenMode { read: true, write: true, direct: true };
            let file = DirectFile::open(&place.path().join("direct"), mode).unwrap();
            file.lock_exclusive().unwrap();
            let mut lanes = lanes_of(engine, 4, &Arc::new(file));
            lanes.read(0, 0, 0, BLOCK as u32);
            lanes.submit().unwrap();
        }
    }
}

/// Tests that make no system call: they run under Miri, which watches every access to the buffers.
mod memory {
    use super::*;

    fn null_lanes(lanes: u32, lane_bytes: usize) -> Lanes {
        Lanes::open(LanesOptions { lanes, lane_bytes, files: Vec::new(), engine: LaneEngine::Null }).unwrap()
    }

    #[test]
    fn every_lane_keeps_its_own_bytes_whatever_the_others_do() {
        let len = if cfg!(miri) { 64 } else { 4096 };
        let mut lanes = null_lanes(7, 4096);
        let mut expected = [0_u8; 7];
        let mut busy = [false; 7];
        let mut random = 1_u32;
        let mut done = Vec::new();
        for turn in 0..if cfg!(miri) { 60 } else { 20_000_u32 } {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let lane = (random >> 16) % 7;
            let index = lane as usize;
            if !busy[index] {
                let bytes = lanes.buffer_mut(lane, len);
                assert!(bytes.iter().all(|byte| *byte == expected[index]));
                bytes.fill(turn as u8);
                expected[index] = turn as u8;
                lanes.write(lane, 0, u64::from(turn), 100);
                busy[index] = true;
            }
            if random & 0x8000 != 0 {
                lanes.submit().unwrap();
            }
            done.clear();
            lanes.reap(&mut done, 1 + (random >> 28));
            for done in &done {
                assert_eq!(done.result, 100);
                let index = done.lane as usize;
                assert!(std::mem::take(&mut busy[index]));
                assert_eq!(lanes.buffer(done.lane, 1)[0], expected[index]);
            }
            let count = busy.iter().filter(|busy| **busy).count();
            assert_eq!(count as u32, lanes.in_flight() + lanes.queued());
        }
    }

    #[test]
    fn buffers_are_aligned_zeroed_and_side_by_side() {
        let lanes = null_lanes(3, 5000);
        let first = lanes.buffer(0, 1).as_ptr();
        for lane in 0..3 {
            let bytes = lanes.buffer(lane, 8192);
            assert!(bytes.iter().all(|byte| *byte == 0));
            assert_eq!(bytes.as_ptr().align_offset(4096), 0);
            assert_eq!(bytes.as_ptr() as usize - first as usize, lane as usize * 8192);
        }
    }

    #[test]
    fn a_busy_lanes_buffer_cannot_be_had() {
        let mut lanes = null_lanes(2, 4096);
        lanes.read(1, 0, 0, 4096);
        lanes.submit().unwrap();
        assert!(said_by(|| lanes.buffer_mut(1, 1).fill(1)).contains("busy"));
        assert!(said_by(|| drop(lanes.buffer(1, 1).to_vec())).contains("busy"));
        assert!(said_by(|| lanes.sync(1, 0, true)).contains("busy"));
        lanes.buffer_mut(0, 4096).fill(1);
        let mut done = Vec::new();
        assert_eq!(lanes.reap(&mut done, 2), 1);
        lanes.buffer_mut(1, 4096).fill(1);
    }
}
