//! One clone on a simulated clock, which only its naps move: an I/O of the null engine takes no time, so that schedules,
//! ramps and pauses are exact on any host.

use super::*;
use crate::work::board::Board;
use crate::work::logs::write_all;
use crate::work::thread::{self, Left};
use crate::work::worker::Worker;
use crate::work::{CloneReading, Work, seed_of};
use assay_measure::clock::Clock;
use std::sync::mpsc::channel;

const MS: u64 = 1_000_000;
const BEGUN_NS: u64 = 7 * NS_PER_S;

/// What `act` makes of the job's clone.
fn with_clone<T>(job: StorageJob, act: impl FnOnce(&mut Worker<'_>) -> T) -> T {
    let invocation = invocation(vec![job]);
    let (stop, plan) = (Stop::new(), crate::files::plan(&invocation).unwrap());
    let opened = crate::files::open(plan, &invocation, &stop, &Heard::default()).unwrap();
    let seeds = invocation.jobs.iter().map(seed_of).collect();
    let work = Work { invocation: &invocation, opened: &opened, seeds, run: 1 };
    let (rows, batches) = channel();
    let made = {
        let ((tasks, _), board) = (work.tasks(&[0], &[0], &rows), Board::new(1, 1));
        let mut worker = thread::set_up(&tasks[0], &board, &stop, &mut Left::default()).unwrap();
        worker.clock = Clock::simulated();
        worker.clock.advance_to(BEGUN_NS);
        act(&mut worker)
    };
    // The writer of logs ends with the last that could send it a row.
    drop(rows);
    assert!(write_all(&batches).is_empty());
    made
}

fn simulated(job: StorageJob) -> CloneReading {
    with_clone(job, |worker| {
        worker.work();
        worker.reading_at_end()
    })
}

fn timed(change: impl FnOnce(&mut JobOptions)) -> StorageJob {
    job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pattern.mode = Mode::RandRead;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(NS_PER_S);
        change(options);
    })
}

#[test]
fn io_10_the_ramp_is_in_no_figure_and_in_no_log() {
    let dir = directory();
    let prefix = dir.path().join("log").display().to_string();
    let clone = simulated(timed(|options| {
        options.pace.rate_iops[R] = Some(1000);
        options.pace.ramp_ns = NS_PER_S;
        options.measure.lat_log = Some(prefix.clone());
    }));
    let way = &clone.ways[R];
    assert_eq!((way.runtime_ns, way.ios, way.response.as_ref().unwrap().histogram.count()), (NS_PER_S, 1000, 1000));
    let log = std::fs::read_to_string(format!("{prefix}_lat.1.log")).unwrap();
    let ms: Vec<u64> = log.lines().map(|line| line.split(", ").next().unwrap().parse().unwrap()).collect();
    assert_eq!(ms, (0..1000).collect::<Vec<_>>());
}

#[test]
fn io_14_a_rate_is_kept_to_the_io() {
    for depth in [1, 4] {
        let clone = simulated(timed(|options| {
            options.pace.depth = depth;
            options.pace.rate_iops[R] = Some(200);
            options.pace.runtime_ns = Some(2 * NS_PER_S);
        }));
        let way = &clone.ways[R];
        assert_eq!((way.runtime_ns, way.ios), (2 * NS_PER_S, 400), "{depth}");
        assert_eq!(way.response.as_ref().unwrap().histogram.max_ns(), Some(0), "each when it is due");
    }
}

#[test]
fn each_direction_of_a_mixed_job_keeps_its_rate() {
    let clone = simulated(timed(|options| {
        options.pattern.mode = Mode::RandRw;
        options.pace.rate_iops = [Some(300), Some(100), None];
    }));
    assert_eq!((clone.ways[R].ios, clone.ways[W].ios), (300, 100));
}

/// Half a second of thinking stands in for a device that stalls: I/Os that were due meanwhile are late, which only the
/// response latency may show.
#[test]
fn io_14_a_stall_is_in_the_response_latency_of_all_that_were_due() {
    let clone = simulated(timed(|options| {
        options.pace.rate_iops[R] = Some(100);
        options.pace.think_ns = 500 * MS;
        options.pace.think_blocks = 50;
        options.pattern.number_ios = Some(100);
        options.pace.time_based = false;
        options.pace.runtime_ns = None;
    }));
    let way = &clone.ways[R];
    let response = &way.response.as_ref().unwrap().histogram;
    // The fiftieth is due after 490 ms and thought about until 990 ms: the next was due after 500, and so on.
    let late: u64 = (1..50).map(|nth| 500 - 10 * nth).sum();
    assert_eq!((response.count(), response.max_ns(), response.sum_ns()), (100, Some(490 * MS), late * MS));
    assert_eq!((way.lat.histogram.count(), way.lat.histogram.max_ns()), (100, Some(0)));
}

#[test]
fn a_clone_thinks_after_each_group_of_ios_and_its_latency_does_not_hold_that() {
    let clone = simulated(timed(|options| {
        options.pattern.number_ios = Some(10);
        options.pace.think_ns = 20 * MS;
        options.pace.think_blocks = 2;
        options.pace.time_based = false;
        options.pace.runtime_ns = None;
    }));
    // A thought after each pair, as in fio also after the last.
    assert_eq!((clone.ways[R].ios, clone.runtime_ns, clone.ways[R].lat.histogram.max_ns()), (10, 100 * MS, Some(0)));
}

#[test]
fn a_clone_that_takes_no_instants_looks_at_the_clock_every_sixteenth_turn() {
    let job = timed(|options| {
        let measure = &mut options.measure;
        (measure.no_lat, measure.no_clat, measure.no_slat) = (true, true, true);
    });
    let turns = with_clone(job, |worker| {
        worker.now = worker.clock.now_ns();
        worker.event();
        worker.clock.advance_to(BEGUN_NS + NS_PER_S);
        (1..=100).find(|_| {
            worker.look_around();
            worker.ending
        })
    });
    assert_eq!(turns, Some(16));
}
