//! The running engine on real files: the conformance suite, and what only it can show.

mod paths;
mod scans;
mod slob;
mod strain;
mod writers;

use crate::Native;
use crate::bulk::Watch;
use crate::params::PARAMS;
use crate::paths::Asked;
use assay_measure::clock::Clock;
use assay_measure::config::{Settings, Tables, command_line, resolve};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::snapshot::{RunData, Verdict};
use assay_run::engine::{Engine, EngineError, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Options, Unobserved, execute};
use assay_testkit::conformance;
use assay_testkit::conformance::life;
use std::path::Path;
use tempfile::TempDir;

struct Silent;

impl Progress for Silent {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

/// Opens the data set without a progress line.
pub(super) fn open(dir: &Path, plan: &Plan, settings: &Settings) -> Result<Box<dyn Engine>, EngineError> {
    let (stop, progress) = (&Stop::new(), &Silent);
    let asked = Asked::new(&dir.to_string_lossy(), settings)?;
    super::open(&asked, plan, settings, Watch { stop, progress })
}

/// A directory beside the build products: the system's temporary directory may be a tmpfs,
/// where direct I/O is accepted but not performed.
pub(super) fn directory() -> TempDir {
    let executable = std::env::current_exe().unwrap();
    tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
}

/// Small files and what `given` says, as the command line would.
pub(super) fn settings(given: &[(&str, &str)]) -> Settings {
    let small = [("REDO_LOGS", "2"), ("REDO_LOG_MB", "8"), ("UNDO_MB", "16"), ("SEED", "7"), ("SCAN_TABLE_SZ", "16")];
    let options =
        small.iter().chain(given).map(|(name, value)| ("--set".to_owned(), (*name).to_owned(), (*value).to_owned()));
    let tables =
        Tables { target: "native", params: PARAMS, workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
    let resolved = resolve(&tables, &[command_line(options)]);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    resolved.settings
}

/// Prepares a data set of `schemas` schemas in `dir`.
pub(super) fn prepare(dir: &Path, settings: &Settings, schemas: u32) {
    let location = dir.to_str().unwrap();
    life::load(&Native, location, settings, schemas, &Stop::new(), &Silent).unwrap();
}

/// Verifies every block of the data set.
pub(super) fn check(dir: &Path, settings: &Settings) {
    let location = dir.to_str().unwrap();
    life::check(&Native, location, settings).unwrap();
}

/// Runs a plan on the data set and closes it again.
pub(super) fn run(dir: &Path, settings: &Settings, plan: &Plan) -> RunData {
    let engine = open(dir, plan, settings).unwrap();
    let options = Options { calibrate: false, ..Options::default() };
    let data = execute(plan, &*engine, &Clock::real(), &Stop::new(), &mut Unobserved, options)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(data.verdict, Verdict::Complete);
    data
}

/// A counter's growth over the whole run, the close included.
pub(super) fn counted(data: &RunData, stat: Stat) -> u64 {
    data.drained.stats.get(stat).unwrap() - data.gate.stats.get(stat).unwrap_or(0)
}

#[test]
fn no_two_commands_share_a_data_set() {
    let dir = directory();
    let violations = conformance::claims_suite(conformance::Ground {
        target: &Native,
        location: dir.path().join("data").to_str().unwrap(),
        settings: &settings(&[("SCALE", "1000")]),
        runs_share: false,
    });
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn the_engine_passes_the_conformance_suite_in_every_read_and_cache_mode() {
    let dir = directory();
    let loaded = settings(&[("SCALE", "1000")]);
    prepare(dir.path(), &loaded, 2);
    for given in [
        &[("SCALE", "1000")][..],
        &[("SCALE", "1000"), ("CACHE_MB", "0")],
        &[("SCALE", "1000"), ("CACHE_MB", "1"), ("READ_MODE", "batched"), ("DB_WRITERS", "3")],
        &[("SCALE", "1000"), ("INDEX", "computed"), ("COMMIT_MODE", "sync")],
        &[("SCALE", "1000"), ("IO_MODE", "directio"), ("CACHE_READ", "pinned")],
    ] {
        let settings = settings(given);
        let violations = conformance::suite(&mut |plan| conformance::Subject {
            engine: open(dir.path(), plan, &settings).unwrap(),
            clock: Clock::real(),
        });
        assert!(violations.is_empty(), "{given:?}: {violations:#?}");
        check(dir.path(), &settings);
    }
}

#[test]
fn updates_reach_the_disk_and_the_data_set_opens_again() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "2"), ("DB_BLOCK_CHECKSUM", "full")]);
    prepare(dir.path(), &settings, 2);
    let plan = Plan {
        update_pct: 100,
        work_unit: 16,
        update_work_unit: 16,
        work_loop: 200,
        run_time_ns: 0,
        scan_blocks: 16,
        ..Plan::plain(2, 2, 1000)
    };
    for _ in 0..2 {
        let data = run(dir.path(), &settings, &plan);
        assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 800);
        assert!(counted(&data, counter_catalog::PHYSICAL_WRITES) > 0);
        check(dir.path(), &settings);
    }
}

#[test]
fn a_log_much_too_small_slows_sessions_down_but_stops_none() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "4"), ("REDO_LOG_MB", "4"), ("REDO_STRESS", "HEAVY")]);
    prepare(dir.path(), &settings, 2);
    let plan = Plan {
        update_pct: 100,
        work_unit: 16,
        update_work_unit: 16,
        work_loop: 40,
        run_time_ns: 0,
        scan_blocks: 16,
        redo_stress: assay_run::plan::RedoStress::Heavy,
        ..Plan::plain(2, 16, 1000)
    };
    let data = run(dir.path(), &settings, &plan);
    assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 32 * 40);
    assert!(counted(&data, counter_catalog::REDO_LOG_SWITCHES) >= 2);
    assert!(counted(&data, counter_catalog::REDO_LOG_SPACE_REQUESTS) > 0);
    check(dir.path(), &settings);
}
