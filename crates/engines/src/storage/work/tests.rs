use super::super::spec::{Amount, Invocation, IoEngine, Job, Mode, Options};
use assay_measure::storage::{StorageLive, StorageReadings, Way};
use assay_run::engine::EngineError;
use assay_run::probe::{Readings, Steps};
use assay_run::stop::Stop;
use std::path::PathBuf;
use std::sync::Mutex;

/// Keeps what it is told.
#[derive(Default)]
struct Heard {
    status: Mutex<Vec<StorageReadings>>,
    live: Mutex<Vec<StorageLive>>,
}

impl Steps for Heard {
    fn step(&self, _number: usize, _of: usize, _what: &str) {}

    fn live(&self, now: &StorageLive) {
        self.live.lock().unwrap().push(now.clone());
    }

    fn status(&self, readings: &Readings) {
        let Readings::Storage(readings) = readings else {
            panic!("not of storage");
        };
        self.status.lock().unwrap().push((**readings).clone());
    }
}

fn job(change: impl FnOnce(&mut Options)) -> Job {
    let mut options = Options {
        clones: 1,
        ..Options::default()
    };
    change(&mut options);
    Job {
        name: "job".to_owned(),
        options,
        ..Job::default()
    }
}

fn invocation(jobs: Vec<Job>) -> Invocation {
    Invocation {
        jobs,
        ..Invocation::default()
    }
}

fn run(invocation: Invocation) -> Result<StorageReadings, EngineError> {
    run_with(invocation, &Stop::new(), &Heard::default())
}

fn run_with(
    invocation: Invocation,
    stop: &Stop,
    heard: &Heard,
) -> Result<StorageReadings, EngineError> {
    match crate::storage::aim(invocation)?.measure(stop, heard)? {
        Readings::Storage(readings) => Ok(*readings),
        other => panic!("{other:?}"),
    }
}

/// A file of random bytes in a directory of its own on a real file system.
fn file(bytes: usize) -> (tempfile::TempDir, PathBuf) {
    let executable = std::env::current_exe().unwrap();
    let dir = tempfile::tempdir_in(executable.parent().unwrap()).unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![7_u8; bytes]).unwrap();
    (dir, path)
}

/// Identities of every reading.
fn check(readings: &StorageReadings) {
    for clone in &readings.clones {
        let ios: u64 = clone.ways.iter().map(|way| way.ios).sum();
        assert_eq!(clone.depths.iter().sum::<u64>(), ios, "depths");
        for way in &clone.ways {
            for latency in [&way.lat, &way.clat] {
                assert_eq!(latency.histogram.count(), way.ios);
            }
            if way.slat.histogram.count() > 0 {
                let sum = way.slat.histogram.sum_ns() + way.clat.histogram.sum_ns();
                assert_eq!(way.lat.histogram.sum_ns(), sum);
            }
        }
    }
    let groups = |way: Way| {
        let clones = readings.clones.iter().map(|clone| &clone.ways[way.index()]);
        let seconds = readings.seconds.iter();
        let lats = seconds
            .clone()
            .map(|second| second.lat[way.index()].count());
        assert_eq!(
            clones.clone().map(|way| way.ios).sum::<u64>(),
            seconds
                .clone()
                .map(|second| second.ios[way.index()])
                .sum::<u64>(),
        );
        assert_eq!(
            clones.clone().map(|way| way.bytes).sum::<u64>(),
            seconds.map(|second| second.bytes[way.index()]).sum::<u64>(),
        );
        assert_eq!(
            clones.map(|way| way.lat.histogram.count()).sum::<u64>(),
            lats.sum::<u64>()
        );
    };
    Way::ALL.into_iter().for_each(groups);
}

#[test]
fn every_engine_reads_and_counts() {
    let (_dir, path) = file(1 << 20);
    for engine in [
        IoEngine::Null,
        IoEngine::Nop,
        IoEngine::Psync,
        IoEngine::Pvsync2,
        IoEngine::IoUring,
        IoEngine::Libaio,
    ] {
        let readings = run(invocation(vec![job(|options| {
            options.engine = engine;
            options.files.names = vec![path.clone()];
            options.files.size = Some(Amount::Bytes(1 << 20));
            options.files.direct = true;
            options.pace.depth = 8;
            options.pattern.mode = Mode::RandRead;
            options.clones = 2;
        })]))
        .unwrap();
        check(&readings);
        for clone in &readings.clones {
            assert_eq!(clone.error_text, None);
            assert_eq!(clone.ways[0].ios, 256, "{engine:?}");
            assert_eq!(clone.ways[0].bytes, 1 << 20);
        }
    }
}

#[test]
fn the_probe_keeps_its_promises() {
    let executable = std::env::current_exe().unwrap();
    let dir = tempfile::tempdir_in(executable.parent().unwrap()).unwrap();
    let violations = crate::conformance::probe_suite(&crate::storage::StorageProbe, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}
