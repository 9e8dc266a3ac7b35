//! The database writers: several of them, their limits, and what they leave behind.

use super::strain::{updates, waits};
use super::*;
use assay_measure::snapshot::Snapshot;
use assay_run::{Mark, Observer};
use std::collections::BTreeMap;

/// Timeouts of an event over the whole run.
fn timeouts(data: &RunData, name: &str) -> u64 {
    let events = data.drained.stats.events.iter();
    events.filter(|event| event.name == name).map(|event| event.timeouts).sum()
}

/// Bytes each writer thread of this process has written, by its name.
#[derive(Default)]
struct WriterThreads(BTreeMap<String, u64>);

impl Observer for WriterThreads {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, mark: Mark, _now: &Snapshot) {
        if mark != Mark::End {
            return;
        }
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let io = std::fs::read_to_string(task.path().join("io")).unwrap_or_default();
            let written = io
                .lines()
                .find_map(|line| line.strip_prefix("write_bytes: "))
                .map_or(0, |bytes| bytes.parse().unwrap());
            *self.0.entry(name.trim().to_owned()).or_default() += written;
        }
    }
}

#[test]
fn several_writers_share_the_work_and_the_data_set_closes_clean() {
    let dir = directory();
    let settings = settings(&[
        ("SCALE", "1000"),
        ("CACHE_MB", "2"),
        ("DB_WRITERS", "4"),
        ("DB_WRITER_BATCH", "4"),
        ("REDO_LOG_MB", "4"),
    ]);
    prepare(dir.path(), &settings, 2);
    for _ in 0..2 {
        let plan = updates(2, 8, 100);
        let engine = open(dir.path(), &plan, &settings).unwrap();
        let facts = engine.facts();
        let fact = |name: &str| facts.iter().find(|fact| fact.name == name).unwrap();
        assert_eq!(fact("db_writers").value, "4");
        let options = Options { calibrate: false, ..Options::default() };
        let mut threads = WriterThreads::default();
        let (clock, stop) = (Clock::real(), Stop::new());
        let data = execute(&plan, &*engine, &clock, &stop, &mut threads, options).unwrap();
        drop(engine);
        assert_eq!(data.verdict, Verdict::Complete);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 1600);
        assert!(counted(&data, counter_catalog::REDO_LOG_SWITCHES) > 2);
        // No other test has more than one writer, so these three are this engine's.
        for number in 1..4 {
            let name = format!("assay-dbw{number}");
            let written = threads.0.get(&name).copied();
            assert!(written.is_some_and(|bytes| bytes > 0), "{name}: {written:?}");
        }
        check(dir.path(), &settings);
    }
}

#[test]
fn a_batch_keeps_its_limits() {
    let dir = directory();
    let given = [("SCALE", "2000"), ("CACHE_MB", "2")];
    prepare(dir.path(), &settings(&given), 1);
    let sequential =
        Plan { work_unit: 500, update_work_unit: 500, scale: 2000, update_keys: 2000, ..updates(1, 2, 20) };
    let per_request = |limit: &str| {
        let mut given = given.to_vec();
        given.extend([("DB_WRITER_BATCH", "3"), ("DB_WRITER_COALESCE_BYTES", limit)]);
        let data = run(dir.path(), &settings(&given), &sequential);
        let requests = counted(&data, counter_catalog::PHYSICAL_WRITE_REQUESTS);
        let submits = counted(&data, counter_catalog::DBWR_SUBMITS);
        assert!(requests <= 3 * submits, "{requests} of {submits} batches");
        let row = data.drained.stats.io.iter();
        let large: u64 = row.filter(|row| row.function == "DBWR").map(|row| row.large_write_requests).sum();
        assert_eq!(large, 0, "none reaches 128 KiB");
        counted(&data, counter_catalog::PHYSICAL_WRITES) as f64 / requests as f64
    };
    // A request is never smaller than a block.
    assert_eq!(per_request("4096"), 1.0);
    let joined = per_request("65536");
    assert!(joined > 1.0 && joined <= 8.0, "{joined}");
    check(dir.path(), &settings(&given));
}

#[test]
fn a_free_buffer_wait_is_counted_at_each_look_and_its_timer_is_flagged() {
    let dir = directory();
    let given = [("SCALE", "1000"), ("CACHE_MB", "0.5")];
    prepare(dir.path(), &settings(&given), 2);
    const NAME: &str = "free buffer waits";
    let timed = run(dir.path(), &settings(&given), &updates(2, 8, 40));
    assert!(waits(&timed, NAME) > 0);
    assert_eq!(timeouts(&timed, NAME), waits(&timed, NAME));
    let mut events = timed.drained.stats.events.iter();
    let event = events.find(|event| event.name == NAME).unwrap();
    // The timer is 10 ms; a wait begins when the session is put aside, a moment after the timer was set.
    let mean = event.waits.mean_ns().unwrap();
    assert!(mean >= 9_900_000.0, "{mean}");
    let posted = settings(&[("SCALE", "1000"), ("CACHE_MB", "0.5"), ("FREE_WAIT", "posted")]);
    let posted = run(dir.path(), &posted, &updates(2, 8, 40));
    assert!(waits(&posted, NAME) > 0);
    assert!(timeouts(&posted, NAME) < waits(&posted, NAME));
}

/// So many single-row updates a second for so long, all of which fit into cache and log.
fn trickle(dir: &Path, rate_per_s: u64, seconds: f64, given: &[(&str, &str)]) -> RunData {
    let mut all = vec![("SCALE", "1000"), ("CACHE_MB", "64"), ("REDO_LOG_MB", "64")];
    all.extend(given);
    let plan = Plan {
        work_loop: 0,
        run_time_ns: (seconds * 1e9) as u64,
        rate_per_s,
        work_unit: 1,
        update_work_unit: 1,
        ..updates(1, 2, 0)
    };
    // A busy machine may miss the rate; what is judged is what the writer did.
    let engine = open(dir, &plan, &settings(&all)).unwrap();
    let options = Options { calibrate: false, ..Options::default() };
    let (clock, stop) = (Clock::real(), Stop::new());
    execute(&plan, &*engine, &clock, &stop, &mut Unobserved, options).unwrap()
}

/// Buffers written for checkpoints, and dirty ones, when the window ended.
fn at_the_end(data: &RunData) -> (u64, u64) {
    let written = data.end.stats.get(counter_catalog::DBWR_CHECKPOINT_BUFFERS).unwrap();
    (written, data.end.stats.gauges["dirty_buffers"])
}

#[test]
fn each_checkpoint_control_alone_makes_the_writer_write() {
    let dir = directory();
    prepare(dir.path(), &settings(&[("SCALE", "1000"), ("REDO_LOG_MB", "64")]), 1);
    // Log and cache are hardly used: nothing asks for a write.
    let (written, dirty) = at_the_end(&trickle(dir.path(), 150, 1.5, &[]));
    assert_eq!(written, 0);
    assert!(dirty > 100, "{dirty}");
    let (written, dirty) = at_the_end(&trickle(dir.path(), 150, 1.5, &[("FAST_START_IO_TARGET", "20")]));
    assert!(written > 100, "{written} written, {dirty} dirty");
    // 150 updates a second make about 400 KiB of redo, about 100 log blocks' worth.
    let (written, _) = at_the_end(&trickle(dir.path(), 150, 1.5, &[("LOG_CHECKPOINT_INTERVAL", "20")]));
    assert!(written > 0);
    let (written, _) = at_the_end(&trickle(dir.path(), 150, 2.5, &[("LOG_CHECKPOINT_TIMEOUT", "1")]));
    assert!(written > 0);
    check(dir.path(), &settings(&[("SCALE", "1000")]));
}

#[test]
fn a_copy_is_a_clone_only_if_its_block_changed_meanwhile() {
    let dir = directory();
    let roomy = [("SCALE", "1000"), ("CACHE_MB", "64")];
    prepare(dir.path(), &settings(&roomy), 1);
    // All blocks are written at close, when nobody changes them.
    let calm = Plan { rate_per_s: 0, ..updates(1, 1, 20) };
    let engine = open(dir.path(), &calm, &settings(&roomy)).unwrap();
    let (clock, stop) = (Clock::real(), Stop::new());
    let options = Options { calibrate: false, ..Options::default() };
    execute(&calm, &*engine, &clock, &stop, &mut Unobserved, options).unwrap();
    let written = engine.sample();
    assert_eq!(written.get(counter_catalog::WRITE_CLONES), Some(0));
    assert!(written.get(counter_catalog::PHYSICAL_WRITES_FROM_CACHE).unwrap() > 0);
    drop(engine);
    // The undo blocks and rows of a cache full of changes change while they are written.
    let busy =
        settings(&[("SCALE", "1000"), ("CACHE_MB", "64"), ("FAST_START_IO_TARGET", "1"), ("COMMIT_MODE", "none")]);
    let data = run(dir.path(), &busy, &updates(1, 8, 300));
    let clones = counted(&data, counter_catalog::WRITE_CLONES);
    let written = counted(&data, counter_catalog::PHYSICAL_WRITES_FROM_CACHE);
    assert!(clones > 0 && clones < written, "{clones} of {written}");
    check(dir.path(), &busy);
}

#[test]
fn redo_nobody_waits_for_is_written_after_three_seconds() {
    let dir = directory();
    let given = [("SCALE", "1000"), ("CACHE_MB", "64")];
    prepare(dir.path(), &settings(&given), 1);
    let data = trickle(dir.path(), 40, 4.5, &[("COMMIT_MODE", "none")]);
    // A commit asks for nothing, the pending redo is far from 1 MiB, and no block is written.
    let at_end = &data.end.stats;
    assert!(at_end.get(counter_catalog::REDO_SIZE).unwrap() < 1 << 20);
    assert!(at_end.get(counter_catalog::REDO_WRITES).unwrap() >= 1);
    assert!(at_end.get(counter_catalog::REDO_BYTES_WRITTEN).unwrap() > 0);
    assert_eq!(at_end.get(counter_catalog::PHYSICAL_WRITES), Some(0));
}

#[test]
fn every_log_block_size_and_io_mode_works_and_says_what_it_came_to() {
    for (log_block, mode, begins) in [
        ("512", "none", "none (page cache, blocking"),
        ("4096", "asynch", "asynch (page cache, io_uring"),
        ("16384", "directio", "directio (O_DIRECT, blocking"),
        ("65536", "setall", "setall (O_DIRECT, io_uring"),
    ] {
        let dir = directory();
        let given = [("SCALE", "1000"), ("CACHE_MB", "2"), ("LOG_BLOCK_BYTES", log_block), ("IO_MODE", mode)];
        let settings = settings(&given);
        prepare(dir.path(), &settings, 1);
        let plan = updates(1, 4, 30);
        let engine = open(dir.path(), &plan, &settings).unwrap();
        let facts = engine.facts();
        let value = |name: &str| {
            let fact = facts.iter().find(|fact| fact.name == name);
            fact.map_or("missing", |fact| fact.value.as_str())
        };
        assert_eq!(value("log_block_bytes"), log_block);
        assert_eq!(value("io_mode_requested"), mode);
        let tmpfs = assay_block::device_facts(dir.path()).is_tmpfs;
        assert!(tmpfs || value("io_mode_achieved").starts_with(begins), "{mode}: {}", value("io_mode_achieved"));
        drop(engine);
        let data = run(dir.path(), &settings, &plan);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 120);
        let bytes: u64 = log_block.parse().unwrap();
        assert_eq!(
            counted(&data, counter_catalog::REDO_BYTES_WRITTEN),
            counted(&data, counter_catalog::REDO_BLOCKS_WRITTEN) * bytes
        );
        check(dir.path(), &settings);
    }
}
