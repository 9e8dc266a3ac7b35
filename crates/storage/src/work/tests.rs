mod content;
mod goal;
mod logs;
mod short;
mod simulated;
mod trims;

use super::super::spec::{
    Amount, Invocation, IoEngine, JobOptions, Mode, SteadyMetric, SteadyOptions, StorageJob, Verify,
};
use crate::measured::StorageMeasured;
use crate::readings::{StorageLive, StorageReadings, depth_slot};
use assay_measure::clock::NS_PER_S;
use assay_run::engine::EngineError;
use assay_run::probe::{Measured, Steps};
use assay_run::stop::Stop;
use std::any::Any;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const R: usize = 0;
const W: usize = 1;

/// Keeps what it is told, and requests the stop when it has heard enough.
#[derive(Default)]
struct Heard {
    status: Mutex<Vec<StorageReadings>>,
    live: Mutex<Vec<StorageLive>>,
    enough: Option<fn(&Heard) -> bool>,
    stop: Stop,
}

impl Heard {
    fn look(&self) {
        if self.enough.is_some_and(|enough| enough(self)) {
            self.stop.request();
        }
    }
}

impl Steps for Heard {
    fn step(&self, _number: usize, _of: usize, _what: &str) {}

    fn live(&self, now: &dyn Any) {
        let now: &StorageLive = now.downcast_ref().unwrap();
        self.live.lock().unwrap().push(now.clone());
        self.look();
    }

    fn status(&self, readings: &dyn Measured) {
        let readings: &dyn Any = readings;
        let StorageMeasured(readings) = readings.downcast_ref().unwrap();
        self.status.lock().unwrap().push(readings.clone());
        self.look();
    }
}

/// Does the next of these whenever a second with reads in it is told.
struct Meanwhile(Mutex<VecDeque<Box<dyn FnOnce() + Send>>>);

impl Meanwhile {
    fn of<const N: usize>(acts: [Box<dyn FnOnce() + Send>; N]) -> Self {
        Self(Mutex::new(acts.into()))
    }
}

impl Steps for Meanwhile {
    fn step(&self, _number: usize, _of: usize, _what: &str) {}

    fn live(&self, now: &dyn Any) {
        let now: &StorageLive = now.downcast_ref().unwrap();
        let reads = now.ios_per_s[R].is_some_and(|rate| rate > 0.0);
        let act = self.0.lock().unwrap().pop_front_if(|_| reads);
        act.into_iter().for_each(|act| act());
    }
}

fn job(change: impl FnOnce(&mut JobOptions)) -> StorageJob {
    let mut options = JobOptions { clones: 1, ..JobOptions::default() };
    change(&mut options);
    StorageJob { name: "job".to_owned(), options, ..StorageJob::default() }
}

fn invocation(jobs: Vec<StorageJob>) -> Invocation {
    Invocation { jobs, ..Invocation::default() }
}

fn run(jobs: Vec<StorageJob>) -> Result<StorageReadings, EngineError> {
    run_with(invocation(jobs), &Stop::new(), &Heard::default())
}

fn run_with(invocation: Invocation, stop: &Stop, heard: &dyn Steps) -> Result<StorageReadings, EngineError> {
    let readings = crate::aim(invocation)?.readings(stop, heard)?;
    check(&readings);
    Ok(readings)
}

/// A directory of its own on a real file system: the temporary one may be a tmpfs.
fn directory() -> tempfile::TempDir {
    let executable = std::env::current_exe().unwrap();
    tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
}

/// A foreign file, which may be read.
fn file(bytes: usize) -> (tempfile::TempDir, PathBuf) {
    let dir = directory();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![7_u8; bytes]).unwrap();
    (dir, path)
}

/// Identities of every reading.
fn check(readings: &StorageReadings) {
    for clone in &readings.clones {
        let ios: u64 = clone.ways.iter().map(|way| way.ios).sum();
        if clone.error == 0 && clone.errors_passed == 0 {
            assert_eq!(clone.depths.iter().sum::<u64>(), ios, "depths");
        }
        let label = &readings.jobs[clone.job].label;
        for way in &clone.ways {
            if !label.no_lat {
                assert_eq!(way.lat.histogram.count(), way.ios);
            }
            if !label.no_clat {
                assert_eq!(way.clat.histogram.count(), way.ios);
            }
            if way.slat.histogram.count() > 0 && !label.no_lat && !label.no_clat {
                let sum = way.slat.histogram.sum_ns() + way.clat.histogram.sum_ns();
                assert_eq!(way.lat.histogram.sum_ns(), sum);
            }
        }
    }
    for way in 0..3 {
        let clones = readings.clones.iter().map(|clone| &clone.ways[way]);
        let seconds = readings.seconds.iter();
        let ios: u64 = clones.clone().map(|way| way.ios).sum();
        let bytes: u64 = clones.clone().map(|way| way.bytes).sum();
        let lats: u64 = clones.map(|way| way.lat.histogram.count()).sum();
        assert_eq!(ios, seconds.clone().map(|second| second.ios[way]).sum::<u64>());
        assert_eq!(bytes, seconds.clone().map(|second| second.bytes[way]).sum::<u64>());
        assert_eq!(lats, seconds.map(|second| second.lat[way].count()).sum::<u64>());
    }
}

fn engines() -> [IoEngine; 6] {
    [IoEngine::Null, IoEngine::Nop, IoEngine::Psync, IoEngine::Pvsync2, IoEngine::IoUring, IoEngine::Libaio]
}

fn reads(path: &Path) -> impl Fn(&mut JobOptions) {
    let path = path.to_path_buf();
    move |options| {
        options.files.names = vec![path.clone()];
        options.files.size = Some(Amount::Bytes(1 << 20));
        options.files.direct = true;
        options.pattern.mode = Mode::RandRead;
    }
}

#[test]
fn every_engine_reads_and_counts() {
    let (_dir, path) = file(1 << 20);
    for engine in engines() {
        let readings = run(vec![job(|options| {
            reads(&path)(options);
            options.engine = engine;
            options.pace.depth = 8;
            options.clones = 2;
        })])
        .unwrap();
        for clone in &readings.clones {
            assert_eq!(clone.error_text, None);
            assert_eq!(clone.ways[R].ios, 256, "{engine:?}");
            assert_eq!(clone.ways[R].bytes, 1 << 20);
        }
    }
}

#[test]
fn the_probe_keeps_its_promises() {
    let dir = directory();
    let violations = assay_testkit::conformance::probe_suite(&crate::SPEC, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn io_06_lat_is_slat_plus_clat_and_never_smaller_than_clat() {
    let (_dir, path) = file(4 << 20);
    for engine in [IoEngine::IoUring, IoEngine::Libaio] {
        let readings = run(vec![job(|options| {
            reads(&path)(options);
            options.engine = engine;
            options.pace.depth = 16;
        })])
        .unwrap();
        let way = &readings.clones[0].ways[R];
        let mean = |latency: &crate::readings::LatencyReading| latency.histogram.mean_ns().unwrap();
        assert!((mean(&way.lat) - mean(&way.slat) - mean(&way.clat)).abs() < 1.0);
        assert!(way.lat.histogram.min_ns() >= way.clat.histogram.min_ns());
        assert!(way.lat.histogram.max_ns() >= way.clat.histogram.max_ns());
    }
}

#[test]
fn io_06_synchronous_engines_have_no_slat() {
    let (_dir, path) = file(1 << 20);
    for (engine, depth) in [(IoEngine::Psync, 8), (IoEngine::Null, 1)] {
        let readings = run(vec![job(|options| {
            reads(&path)(options);
            options.engine = engine;
            options.pace.depth = depth;
        })])
        .unwrap();
        assert!(readings.jobs[0].label.synchronous);
        assert_eq!(readings.clones[0].ways[R].slat.histogram.count(), 0);
        assert_eq!(readings.clones[0].depths[0], 256);
    }
}

#[test]
fn io_07_little_holds_between_the_measured_depth_the_rate_and_the_latency() {
    let (_dir, path) = file(16 << 20);
    let readings = run(vec![job(|options| {
        reads(&path)(options);
        options.files.size = None;
        options.engine = IoEngine::IoUring;
        options.pace.depth = 16;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(NS_PER_S);
    })])
    .unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.in_flight_ns, u128::from(clone.ways[R].lat.histogram.sum_ns()));
    // Every submission fills the depth, whatever the host does in between.
    assert_eq!(clone.depths[depth_slot(16)], clone.ways[R].ios, "{:?}", clone.depths);
    assert!(clone.in_flight_ns <= 16 * u128::from(clone.runtime_ns));
}

/// What a ramp costs the clock; what it leaves in no figure is simulated.
#[test]
fn io_10_the_ramp_is_before_the_first_second() {
    let readings = run(vec![job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pattern.mode = Mode::RandRead;
        options.pace.rate_iops[R] = Some(1000);
        options.pace.ramp_ns = NS_PER_S;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(NS_PER_S);
    })])
    .unwrap();
    let way = &readings.clones[0].ways[R];
    assert!(way.runtime_ns >= NS_PER_S && readings.elapsed_ns >= way.runtime_ns + NS_PER_S);
    assert_eq!(readings.seconds[0].end_ns, NS_PER_S);
}

#[test]
fn io_13_every_write_has_its_fdatasync() {
    for (engine, depth) in [(IoEngine::Psync, 1), (IoEngine::IoUring, 1), (IoEngine::IoUring, 4), (IoEngine::Libaio, 1)]
    {
        let dir = directory();
        let readings = run(vec![job(|options| {
            options.engine = engine;
            options.files.names = vec![dir.path().join("new")];
            options.files.size = Some(Amount::Bytes(64 << 10));
            options.pattern.mode = Mode::Write;
            options.pace.depth = depth;
            options.pace.fdatasync_every = 1;
        })])
        .unwrap();
        let clone = &readings.clones[0];
        assert_eq!(clone.error_text, None, "{engine:?}");
        assert_eq!(clone.ways[W].ios, 16);
        assert_eq!(clone.sync.histogram.count(), 16, "{engine:?} {depth}");
        assert_eq!(clone.depths.iter().sum::<u64>(), 16);
        assert_eq!(clone.ways[W].short_ios, 0);
    }
}

#[test]
fn io_13_fsync_every_fourth_write() {
    let dir = directory();
    let readings = run(vec![job(|options| {
        options.files.names = vec![dir.path().join("new")];
        options.files.size = Some(Amount::Bytes(64 << 10));
        options.pattern.mode = Mode::Write;
        options.pace.fsync_every = 4;
        options.files.end_fsync = true;
    })])
    .unwrap();
    assert_eq!(readings.clones[0].sync.histogram.count(), 4);
}

#[test]
fn io_14_a_rate_is_never_passed_and_both_latencies_are_told() {
    let (_dir, path) = file(4 << 20);
    for engine in [IoEngine::Psync, IoEngine::IoUring] {
        let readings = run(vec![job(|options| {
            reads(&path)(options);
            options.engine = engine;
            // From memory, so that the rate is below what can be done.
            options.files.direct = false;
            options.pace.depth = 4;
            options.pace.rate_iops[R] = Some(200);
            options.pace.time_based = true;
            options.pace.runtime_ns = Some(2 * NS_PER_S);
        })])
        .unwrap();
        let way = &readings.clones[0].ways[R];
        let most = 1 + way.runtime_ns / (NS_PER_S / 200);
        assert!((1..=most).contains(&way.ios), "{engine:?}: {} of {most}", way.ios);
        let response = way.response.as_ref().unwrap();
        assert_eq!(response.histogram.count(), way.ios);
        assert!(response.histogram.sum_ns() >= way.lat.histogram.sum_ns());
        let of_seconds = readings.seconds.iter().filter_map(|second| second.response.as_ref());
        assert_eq!(of_seconds.map(|response| response.count()).sum::<u64>(), way.ios);
    }
}

#[test]
fn a_missed_minimum_rate_is_an_error() {
    let readings = run(vec![job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pace.rate_iops[R] = Some(100);
        options.pace.rate_iops_min[R] = Some(1000);
        options.pace.rate_cycle_ns = 200_000_000;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(20 * NS_PER_S);
    })])
    .unwrap();
    let text = readings.clones[0].error_text.as_deref().unwrap();
    assert!(text.contains("rate_iops_min=1000"), "{text}");
    assert_ne!(readings.clones[0].error, 0);
    let ran_ns = readings.clones[0].ways[R].runtime_ns;
    assert!(ran_ns < 20 * NS_PER_S, "it ends with its failure: {ran_ns} ns");
}

#[test]
fn io_15_intermediate_readings_are_cumulative() {
    let bytes = |reading: &StorageReadings, clone: usize| reading.clones[clone].ways[R].bytes;
    let enough = |heard: &Heard| {
        let live = heard.live.lock().unwrap().iter().any(|now| now.states == "rr" && now.running == 2);
        let status = heard.status.lock().unwrap();
        live && status.iter().filter(|reading| reading.clones.iter().all(|clone| clone.ways[R].bytes > 0)).count() >= 3
    };
    let heard = Heard { enough: Some(enough), ..Heard::default() };
    let mut invocation = invocation(vec![job(|options| {
        options.engine = IoEngine::Nop;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pattern.no_map = true;
        options.pattern.mode = Mode::RandRead;
        options.pace.depth = 4;
        options.clones = 2;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(600 * NS_PER_S);
    })]);
    invocation.output.status_interval_ns = Some(300_000_000);
    let last = run_with(invocation, &heard.stop, &heard).unwrap();
    assert!(last.stopped, "it heard enough");
    let mut readings = heard.status.into_inner().unwrap();
    assert!(readings.iter().all(|reading| reading.running));
    readings.push(last);
    for clone in 0..2 {
        let totals: Vec<u64> = readings.iter().map(|reading| bytes(reading, clone)).collect();
        assert!(totals.is_sorted(), "{totals:?}");
    }
}

#[test]
fn io_18_a_group_is_the_sum_of_its_clones() {
    let (_dir, path) = file(1 << 20);
    let readings = run(vec![job(|options| {
        reads(&path)(options);
        options.engine = IoEngine::IoUring;
        options.clones = 4;
        options.measure.group_reporting = true;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(1_200_000_000);
    })])
    .unwrap();
    assert_eq!(readings.clones.len(), 4);
    let numbers: Vec<u32> = readings.clones.iter().map(|clone| clone.clone).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    for clone in &readings.clones {
        assert!(clone.user_ns + clone.system_ns <= clone.runtime_ns * 11 / 10);
        assert!(clone.ways[R].iops.count >= 1 && clone.ways[R].bw.mean > 0.0);
        assert!(clone.kernel_entries > 0);
    }
    assert_eq!(readings.seconds[0].length_ns, NS_PER_S);
}

#[test]
fn waves_follow_each_other_and_groups_have_their_own_seconds() {
    let timed = |wave: u32| {
        let mut timed = job(|options| {
            options.engine = IoEngine::Null;
            options.files.size = Some(Amount::Bytes(1 << 30));
            options.pace.time_based = true;
            options.pace.runtime_ns = Some(200_000_000);
            options.pace.rate_iops[R] = Some(1000);
        });
        (timed.wave, timed.group) = (wave, wave);
        timed
    };
    let readings = run(vec![timed(0), timed(1)]).unwrap();
    assert!(readings.elapsed_ns >= 400_000_000);
    let mut groups: Vec<u32> = readings.seconds.iter().map(|second| second.group).collect();
    groups.dedup();
    assert_eq!(groups, [0, 1]);
    for group in 0..2 {
        let lengths = readings.seconds.iter().filter(|second| second.group == group).map(|second| second.length_ns);
        assert!(lengths.sum::<u64>() >= 200_000_000, "{:?}", readings.seconds);
    }
}

#[test]
fn a_stop_drains_and_keeps_what_was_measured() {
    let (_dir, path) = file(1 << 20);
    let stop = Stop::new();
    let stopper = stop.clone();
    let stops = Meanwhile::of([Box::new(move || stopper.request())]);
    let job = job(|options| {
        reads(&path)(options);
        options.engine = IoEngine::IoUring;
        options.pace.depth = 8;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(60 * NS_PER_S);
    });
    let readings = run_with(invocation(vec![job]), &stop, &stops).unwrap();
    assert!(readings.stopped);
    assert!(readings.clones[0].ways[R].ios > 0);
}

#[test]
fn exitall_ends_the_others() {
    let short = job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 20));
        options.pace.exit_all = true;
    });
    let long = job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pace.rate_iops[R] = Some(100);
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(60 * NS_PER_S);
    });
    let readings = run(vec![short, long]).unwrap();
    assert!(readings.elapsed_ns < 60 * NS_PER_S);
    assert_eq!(readings.clones[1].error, 0);
}

#[test]
fn a_steady_job_ends_before_its_time() {
    let readings = run(vec![job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pace.rate_iops[R] = Some(1000);
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(60 * NS_PER_S);
        options.pace.steady_duration_ns = 2 * NS_PER_S;
        options.pace.steady = Some(SteadyOptions {
            metric: SteadyMetric::Iops,
            slope: false,
            limit: 50.0,
            percent: true,
            text: "iops:50%".to_owned(),
        });
    })])
    .unwrap();
    let steady = readings.jobs[0].steady.as_ref().unwrap();
    assert!(steady.attained, "{steady:?}");
    assert!(readings.elapsed_ns < 60 * NS_PER_S);
}

/// Cuts the file short.
fn cut(path: &Path, bytes: u64) -> Box<dyn FnOnce() + Send> {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    Box::new(move || file.set_len(bytes).unwrap())
}

#[test]
fn a_file_cut_short_under_the_run_is_an_error_that_says_so() {
    let (_dir, path) = file(4 << 20);
    let cuts = Meanwhile::of([cut(&path, 4096)]);
    let job = job(|options| {
        reads(&path)(options);
        options.files.size = None;
        options.files.direct = false;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(600 * NS_PER_S);
    });
    let readings = run_with(invocation(vec![job]), &Stop::new(), &cuts).unwrap();
    let clone = &readings.clones[0];
    let text = clone.error_text.as_deref().unwrap();
    assert_eq!(clone.error, 5, "{text}");
    assert!(text.contains("truncated"), "{text}");
    assert!(clone.ways[R].ios > 0);
}

#[test]
fn passed_errors_are_counted_and_the_job_goes_on() {
    let (_dir, path) = file(1 << 20);
    let stop = Stop::new();
    let stopper = stop.clone();
    let cuts = Meanwhile::of([cut(&path, 512 << 10), Box::new(move || stopper.request())]);
    let job = job(|options| {
        reads(&path)(options);
        options.files.direct = false;
        options.pace.pass_errors.read = true;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(600 * NS_PER_S);
    });
    let readings = run_with(invocation(vec![job]), &stop, &cuts).unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.error, 0);
    assert!(clone.errors_passed > 0);
}

#[test]
fn an_unaligned_direct_read_is_explained() {
    let (_dir, path) = file(1 << 20);
    let readings = run(vec![job(|options| {
        reads(&path)(options);
        options.engine = IoEngine::IoUring;
        options.pattern.blocks[R].min = 100;
        options.pattern.blocks[R].max = 100;
    })]);
    let text = match readings {
        Ok(readings) => readings.clones[0].error_text.clone().unwrap_or_default(),
        Err(error) => error.to_string(),
    };
    assert!(text.contains("direct=0") || text.contains("direct=1"), "{text}");
}

#[test]
fn an_io_slower_than_allowed_ends_the_job() {
    let (_dir, path) = file(1 << 20);
    let readings = run(vec![job(|options| {
        reads(&path)(options);
        options.pace.max_latency_ns = Some(1);
    })])
    .unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.error, 110);
    assert!(clone.error_text.as_deref().unwrap().contains("max_latency"));
}

#[test]
fn a_job_starts_after_its_delay_and_thinks_long_enough() {
    let readings = run(vec![job(|options| {
        options.engine = IoEngine::Null;
        options.files.size = Some(Amount::Bytes(1 << 20));
        options.pattern.number_ios = Some(10);
        options.pace.start_delay_ns = (200_000_000, 200_000_000);
        options.pace.think_ns = 20_000_000;
        options.pace.think_spin_ns = 1_000_000;
        options.pace.think_blocks = 2;
    })])
    .unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.ways[R].ios, 10);
    // A thought after each pair; the delay is before the first.
    assert!(clone.runtime_ns >= 100_000_000, "{}", clone.runtime_ns);
    assert!(readings.elapsed_ns >= clone.runtime_ns + 200_000_000);
}

/// In one wave: the third job runs beside the first, the second after the first has ended.
#[test]
fn a_job_waits_for_the_end_of_another() {
    let timed = |name: &str, first: Option<&str>, runtime_ns| StorageJob {
        name: name.to_owned(),
        ..job(|options| {
            options.engine = IoEngine::Null;
            options.files.size = Some(Amount::Bytes(1 << 20));
            options.pace.rate_iops[R] = Some(1000);
            options.pace.time_based = true;
            options.pace.runtime_ns = Some(runtime_ns);
            options.pace.wait_for = first.map(str::to_owned);
        })
    };
    let readings = run(vec![
        timed("first", None, 300_000_000),
        timed("second", Some("first"), 200_000_000),
        timed("beside", None, 100_000_000),
    ])
    .unwrap();
    assert!(readings.elapsed_ns >= 500_000_000, "{}", readings.elapsed_ns);
    for (clone, least_ms) in readings.clones.iter().zip([300, 200, 100]) {
        let runtime_ms = clone.ways[R].runtime_ns / 1_000_000;
        assert!(runtime_ms >= least_ms, "{runtime_ms} ms of {least_ms}");
        assert!(clone.ways[R].ios > 0);
    }
}

#[test]
fn mixed_jobs_count_both_directions_and_sync_after_writes_only() {
    let dir = directory();
    let readings = run(vec![job(|options| {
        options.engine = IoEngine::IoUring;
        options.files.names = vec![dir.path().join("new")];
        options.files.size = Some(Amount::Bytes(1 << 20));
        options.pattern.mode = Mode::RandRw;
        options.pace.depth = 4;
        options.pace.fsync_every = 10;
    })])
    .unwrap();
    let clone = &readings.clones[0];
    assert_eq!(clone.ways[R].ios + clone.ways[W].ios, 256);
    assert!(clone.ways[R].ios > 60 && clone.ways[W].ios > 60);
    assert_eq!(clone.sync.histogram.count(), clone.ways[W].ios / 10);
}

#[test]
fn no_instants_are_taken_where_none_are_wanted() {
    let readings = run(vec![job(|options| {
        options.engine = IoEngine::Nop;
        options.files.size = Some(Amount::Bytes(1 << 30));
        options.pattern.no_map = true;
        options.pattern.mode = Mode::RandRead;
        options.pace.depth = 8;
        options.pace.time_based = true;
        options.pace.runtime_ns = Some(300_000_000);
        let measure = &mut options.measure;
        (measure.no_lat, measure.no_clat, measure.no_slat) = (true, true, true);
        measure.no_bw = true;
    })])
    .unwrap();
    let clone = &readings.clones[0];
    assert!(clone.ways[R].ios > 0);
    assert!(clone.ways[R].lat.histogram.is_empty());
    assert_eq!(clone.in_flight_ns, 0);
    assert_eq!(readings.jobs[0].timing, "none");
    assert!(clone.runtime_ns >= 300_000_000, "{}", clone.runtime_ns);
}

#[test]
fn given_batches_go_to_the_kernel_as_given() {
    let readings = run(vec![job(|options| {
        options.engine = IoEngine::Nop;
        options.files.size = Some(Amount::Bytes(4 << 20));
        options.pace.depth = 32;
        options.pace.batch_submit = Some(16);
        options.pace.batch_complete_min = Some(8);
        options.pace.batch_complete_max = Some(16);
    })])
    .unwrap();
    let clone = &readings.clones[0];
    // 1..=4, ..=8, ..=16, ..=32: 1024 I/Os in groups of 16 at most.
    assert_eq!(clone.submits[4], 0, "{:?}", clone.submits);
    assert!(clone.submits[3] >= 60, "{:?}", clone.submits);
    assert_eq!(clone.completes[4], 0, "{:?}", clone.completes);
}
