//! The identities of the report on real runs of the native engine: every kind of run
//! that moves the counters of an identity must find it holding, not merely unknown.

use assay_awr::record;
use assay_measure::clock::Clock;
use assay_measure::config::{Settings, Tables, command_line, resolve};
use assay_measure::record::{Record, Truth};
use assay_measure::snapshot::Verdict;
use assay_native::Native;
use assay_native::params::PARAMS;
use assay_run::engine::{Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Options, Unobserved, execute};
use std::path::Path;
use std::sync::OnceLock;

const SCALE: u64 = 2000;
const PHYSICAL: &str = "physical";
const CACHED: &str = "cached";
const WRITES: &str = "writes";
const SCANS: &str = "scans";
const SHARED: &str = "shared";
const BATCHED: &str = "batched";
const NO_WAIT: &str = "commit none";
const SYNC: &str = "commit sync";
const LATE: &str = "commit at log-off";

/// Kinds of runs that change blocks.
const CHANGING: &[&str] = &[WRITES, SCANS, SHARED, BATCHED, NO_WAIT, SYNC, LATE];
/// Kinds of runs whose data does not fit into the cache.
const READING: &[&str] = &[PHYSICAL, WRITES, SCANS, BATCHED];

/// Of a window; enough for a commit of each session in every kind of run.
const LEAST_OPERATIONS: u64 = 100;

type Given = &'static [(&'static str, &'static str)];

struct Silent;

impl Progress for Silent {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

fn settings(given: &[(&str, &str)]) -> Settings {
    let small = [
        ("SCALE", "2000"),
        ("REDO_LOGS", "2"),
        ("REDO_LOG_MB", "4"),
        ("UNDO_MB", "16"),
        ("SEED", "11"),
        ("SCAN_TABLE_SZ", "256"),
    ];
    let options =
        small.iter().chain(given).map(|(name, value)| ("--set".to_owned(), (*name).to_owned(), (*value).to_owned()));
    let tables =
        Tables { target: "native", params: PARAMS, workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
    let resolved = resolve(&tables, &[command_line(options)]);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    resolved.settings
}

/// Half updates, a short window after a short warm-up.
fn plan(schemas: u32, threads: u32) -> Plan {
    Plan {
        update_pct: 50,
        work_unit: 16,
        update_work_unit: 16,
        scan_blocks: 256,
        run_time_ns: 1_000_000_000,
        warmup_ns: 200_000_000,
        ..Plan::plain(schemas, threads, SCALE)
    }
}

fn kinds() -> Vec<(&'static str, Given, Plan)> {
    let reads = Plan { update_pct: 0, ..plan(2, 2) };
    let scans = Plan { update_pct: 20, scan_pct: 50, ..plan(2, 2) };
    vec![
        (PHYSICAL, &[("CACHE_MB", "0")], reads.clone()),
        (CACHED, &[("CACHE_MB", "64")], reads),
        (WRITES, &[("CACHE_MB", "1")], plan(2, 4)),
        (SCANS, &[("CACHE_MB", "4")], scans),
        (SHARED, &[("CACHE_MB", "8")], plan(1, 8)),
        (BATCHED, &[("CACHE_MB", "2"), ("READ_MODE", "batched")], plan(2, 2)),
        (NO_WAIT, &[("CACHE_MB", "16"), ("COMMIT_MODE", "none")], plan(2, 2)),
        (SYNC, &[("CACHE_MB", "16"), ("COMMIT_MODE", "sync")], plan(2, 4)),
        // Sessions log off with a transaction open, each thread at its own time.
        (LATE, &[("CACHE_MB", "64")], Plan { commit_every: 7, ..plan(2, 1) }),
    ]
}

/// A run that has something to show: where others keep the disk busy, it may stall for the whole of a short window.
fn run(dir: &Path, given: Given, plan: &Plan) -> Record {
    let done = |record: &Record| record.driver.ops.iter().map(|ops| ops.count).sum::<u64>();
    let mut runs = (0..5).map(|_| run_once(dir, given, plan));
    runs.find(|record| done(record) >= LEAST_OPERATIONS).expect("the disk did not stall five times")
}

fn run_once(dir: &Path, given: Given, plan: &Plan) -> Record {
    let location = dir.to_str().expect("a path of plain letters");
    let engine =
        Native.open(location, plan, &settings(given), &Stop::new(), &Silent).expect("the data set was closed cleanly");
    let options = Options { calibrate: false, ..Options::default() };
    let (clock, stop) = (Clock::real(), Stop::new());
    let data =
        execute(plan, &*engine, &clock, &stop, &mut Unobserved, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(data.verdict, Verdict::Complete);
    record::build(&data)
}

/// One record of each kind, made once for all tests: the identities judge the bytes
/// of the whole process, so no two runs may go on at a time.
fn records() -> &'static [(&'static str, Record)] {
    static RECORDS: OnceLock<Vec<(&'static str, Record)>> = OnceLock::new();
    RECORDS.get_or_init(|| {
        // Beside the build products: direct I/O has no effect on a memory file system.
        let executable = std::env::current_exe().expect("this program");
        let beside = executable.parent().expect("it lies in a directory");
        let dir = tempfile::tempdir_in(beside).expect("a directory");
        let location = dir.path().to_str().expect("a path of plain letters");
        Native.prepare(location, &settings(&[]), 2, &Stop::new(), &Silent).expect("room for 80 MiB");
        kinds().into_iter().map(|(kind, given, plan)| (kind, run(dir.path(), given, &plan))).collect()
    })
}

/// No kind of run violates the identity, and each of `kinds` shows that it holds.
fn holds(id: &str, kinds: &[&str]) {
    for (kind, record) in records() {
        let identity = record
            .integrity
            .iter()
            .find(|identity| identity.id == id)
            .unwrap_or_else(|| panic!("{id} is not evaluated"));
        let sentence = format!("{kind}: {id} {}: {}", identity.rule, identity.sentence);
        match &identity.ok {
            Truth::Holds => {}
            Truth::Violated => panic!("{sentence}"),
            Truth::Na(_) => assert!(!kinds.contains(kind), "{sentence}"),
        }
    }
}

fn everywhere() -> Vec<&'static str> {
    records().iter().map(|(kind, _)| *kind).collect()
}

#[test]
fn identity_i02_writes_are_from_cache_or_direct() {
    holds("I2", CHANGING);
}

#[test]
fn identity_i03_i04_bytes_are_blocks() {
    holds("I3", READING);
    holds("I4", CHANGING);
}

#[test]
fn identity_i06_requests_are_at_most_blocks() {
    holds("I6a", READING);
    holds("I6b", &[SCANS, BATCHED]);
}

#[test]
fn identity_i07_totals_include_the_data() {
    holds("I7a", READING);
    holds("I7b", READING);
    holds("I7c", CHANGING);
    holds("I7d", CHANGING);
}

#[test]
fn identity_i08_what_is_not_data_is_log_and_control_file() {
    holds("I8", CHANGING);
}

#[test]
fn identity_i09_log_blocks_hold_redo_waste_and_headers() {
    holds("I9", CHANGING);
}

#[test]
fn identity_i10_gets_are_hits_misses_and_waits_for_others() {
    holds("I10a", READING);
    holds("I10b", &everywhere());
}

#[test]
fn identity_i12_writes_without_checkpoints_are_at_most_writes() {
    holds("I12", CHANGING);
}

#[test]
fn identity_i13_functions_add_up_to_all_requests_and_bytes() {
    holds("I13a", READING);
    holds("I13b", READING);
    holds("I13c", CHANGING);
    holds("I13d", CHANGING);
}

#[test]
fn identity_i15_i16_histograms_agree_with_counts_and_times() {
    holds("I15", &everywhere());
    holds("I16", &everywhere());
}

#[test]
fn identity_i18_db_time_has_no_gap() {
    holds("I18", &everywhere());
}

#[test]
fn identity_i19_i20_waits_add_up_by_class_and_actor() {
    holds("I19", READING);
    holds("I20", READING);
}

#[test]
fn identity_i22_i23_log_times_are_the_log_events() {
    holds("I22a", &[WRITES, SHARED, BATCHED, SYNC]);
    holds("I22b", CHANGING);
    holds("I23", &[]);
}

#[test]
fn identity_i26_rates_multiply_back() {
    holds("I26a", &everywhere());
    holds("I26b", CHANGING);
}

#[test]
fn identity_i36_log_waits_and_writes_have_a_cause() {
    holds("I36a", CHANGING);
    holds("I36b", CHANGING);
}

#[test]
fn identity_i40_rows_are_counted_alike_by_driver_and_engine() {
    holds("I40a", &everywhere());
    holds("I40b", &everywhere());
}

#[test]
fn identity_i41_the_ring_saw_every_byte() {
    for id in ["I41a", "I41b"] {
        holds(id, READING);
    }
    for id in ["I41c", "I41d"] {
        holds(id, CHANGING);
    }
    // Not on every file system: what the kernel charged is n/a without direct I/O.
    holds("I41e", &[]);
    holds("I41f", &[]);
}

#[test]
fn identity_i42_dirty_buffers_are_those_dirtied_and_not_cleaned() {
    holds("I42", CHANGING);
}

#[test]
fn identity_i44_no_counter_ever_falls() {
    holds("I44", &everywhere());
}

#[test]
fn no_kind_of_run_violates_an_exact_identity() {
    for (kind, record) in records() {
        let violated: Vec<String> = assay_measure::identity::violated_exact(record)
            .iter()
            .map(|identity| format!("{}: {}", identity.id, identity.sentence))
            .collect();
        assert!(violated.is_empty(), "{kind}: {violated:#?}");
    }
}
