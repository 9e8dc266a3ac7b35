use super::reading::SyncPart;
use super::*;
use crate::scratch::{Place, Scratch};
use assay_run::left::{Kind, Mark};
use assay_testkit::conformance::probe_suite;
use std::any::Any;
use std::fs;

/// Below the build directory: the system's temporary directory may be memory.
fn directory() -> tempfile::TempDir {
    let executable = std::env::current_exe().unwrap();
    tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
}

struct Silent;

impl Steps for Silent {
    fn step(&self, _: usize, _: usize, _: &str) {}
}

fn aimed(dir: &Path, time: Duration) -> Aim {
    let place = Place::find(dir, "sync").unwrap();
    let facts = device_facts(place.path());
    Aim {
        steps: plan::steps(facts.logical_block_bytes.as_ref().ok().copied()),
        place,
        facts,
        time,
        commits_per_s: None,
        free_bytes: 0,
        file_bytes: 4 << 20,
        growth_bytes: 1 << 20,
    }
}

#[test]
fn it_passes_the_suite() {
    let dir = directory();
    let violations = probe_suite(&SPEC, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

fn measured(aim: &Aim) -> Box<SyncReadings> {
    let readings: Box<dyn Any> = aim.measure(&Stop::new(), &Silent).unwrap();
    readings.downcast().unwrap()
}

#[test]
fn every_step_counts_what_it_did() {
    let dir = directory();
    let aim = aimed(dir.path(), Duration::from_millis(1500));
    let readings = measured(&aim);
    assert_eq!(readings.steps.len(), aim.steps.len());
    for step in &readings.steps {
        let writes = step.latency.count();
        if step.note.as_deref().is_some_and(|why| why.contains("at least")) {
            assert_eq!(writes, 0);
            continue;
        }
        assert!(writes >= 1, "{step:?}");
        assert!(!step.rates.is_empty() && step.rates.iter().all(|rate| *rate > 0.0));
        match step.method {
            SyncMethod::WriteOnly => assert_eq!(step.flushes, 0),
            SyncMethod::Group => assert!((1..=writes).contains(&step.flushes), "{step:?}"),
            _ => assert_eq!(step.flushes, writes, "{step:?}"),
        }
        if step.growing {
            assert!(writes * step.bytes <= aim.growth_bytes * step.rates.len() as u64, "each round ends at the limit");
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn many_streams_share_flushes() {
    let dir = directory();
    let mut aim = aimed(dir.path(), Duration::from_millis(300));
    aim.steps.retain(|step| step.part == SyncPart::Safety && step.method == SyncMethod::Group);
    let readings = measured(&aim);
    let many = readings.steps.iter().find(|step| step.streams > 1).unwrap();
    assert!(many.flushes < many.latency.count(), "{many:?}");
}

#[test]
fn what_a_killed_probe_left_stands_in_the_plan_with_the_command_that_removes_it() {
    let dir = directory();
    let plan = || aimed(dir.path(), Duration::from_secs(1)).plan();
    let named = |lines: &[Line]| lines.iter().any(|line| line.key == "left_behind");
    assert!(!named(&plan()));
    drop(Mark::put(&dir.path().join("assay-sync-0000abcd.scratch"), Kind::File).unwrap());
    assert!(named(&plan()));
}

#[test]
fn a_name_that_somebody_swaps_leads_to_no_other_file() {
    let dir = directory();
    let canary = dir.path().join("canary");
    fs::write(&canary, "sings").unwrap();
    let named = dir.path().join("scratch");
    let place = Place::find(&named, "sync").unwrap();
    let scratch = Scratch::create(&place, (1 << 20, 0), &mut |_| true).unwrap().unwrap();
    fs::rename(&named, dir.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(&canary, &named).unwrap();
    let mut writer = assay_block::BlockingWriter::open(&scratch.opened(), 4096, true).unwrap();
    writer.write(0, 4096, true).unwrap();
    assert_eq!(fs::read_to_string(&canary).unwrap(), "sings");
}

#[test]
fn links_devices_and_missing_directories_are_refused() {
    let dir = directory();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path().join("absent"), &link).unwrap();
    for place in [link.as_path(), Path::new("/dev/null"), &dir.path().join("a/b")] {
        let error = Place::find(place, "sync").unwrap_err();
        assert!(matches!(error, EngineError::Unusable(_)), "{error}");
    }
}

#[test]
fn too_little_space_is_said_with_figures() {
    let dir = directory();
    let place = Place::find(dir.path(), "sync").unwrap();
    let error = place.check_space(u64::MAX / 4).unwrap_err();
    assert!(error.to_string().contains("must stay free"), "{error}");
}
