//! How runs end when they do not end as planned.

use crate::common::{Told, ops, quiet, simulate, try_simulate};
use assay_measure::clock::{Clock, NS_PER_S};
use assay_measure::snapshot::{Fact, Snapshot, StatSet, Verdict};
use assay_run::engine::{Assignment, Driver, Engine, EngineError};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::workload::Workload;
use assay_run::{Mark, Observer, Options, RunError, Unobserved, execute, trace};
use assay_slob::Slob;
use assay_testkit::sim_engine::{Delay, Fault, SimEngine, SimOptions};
use std::sync::Mutex;
use std::time::Duration;

fn ten_seconds() -> Plan {
    Plan { run_time_ns: 10 * NS_PER_S, warmup_ns: 2 * NS_PER_S, ..Plan::plain(2, 2, 20_000) }
}

fn stopping_at(second: u64, requests: u32) -> Told {
    Told { stop_at_second: Some((second, requests)), ..Told::default() }
}

fn run(plan: &Plan, sim: SimOptions, told: Told) -> crate::common::Ran {
    try_simulate(plan, sim, told).map_err(|error| error.0.to_string()).expect("a run that ends")
}

fn fault(session: u32, i: u64, attempts: u32, retryable: bool) -> Fault {
    Fault { session, i, attempts, retryable }
}

#[test]
fn the_first_request_ends_the_window_there_and_drains() {
    let ran = run(&ten_seconds(), SimOptions::default(), stopping_at(5, 1));
    assert_eq!(ran.data.verdict, Verdict::Incomplete("stopped on request".to_owned()));
    assert_eq!(ran.data.begin.at_ns, 2 * NS_PER_S);
    assert_eq!(ran.data.end.at_ns, 5 * NS_PER_S);
    assert_eq!(ran.data.end.driver.sessions_active, 4);
    assert_eq!(ops(&ran.data.drained.driver), ran.rows.len() as u64);
    assert_eq!(ran.data.drained.driver.in_flight, 0);
    assert_eq!(ran.closes, 1);
}

#[test]
fn a_request_during_the_warm_up_leaves_a_window_from_the_gate() {
    let ran = run(&ten_seconds(), SimOptions::default(), stopping_at(1, 1));
    assert!(matches!(ran.data.verdict, Verdict::Incomplete(_)));
    assert_eq!(ran.data.begin, ran.data.gate);
    assert_eq!(ran.data.end.at_ns, NS_PER_S);
    assert!(ran.data.warnings.iter().any(|text| text.contains("warm-up")));
}

#[test]
fn the_second_request_abandons_what_is_in_flight() {
    // 1.5 ms do not divide 5 s: every session is in the middle of an operation.
    let sim = SimOptions { select: Delay::Fixed(1_500_000), ..SimOptions::default() };
    let ran = run(&ten_seconds(), sim, stopping_at(5, 2));
    let Verdict::Incomplete(reason) = &ran.data.verdict else {
        panic!("{:?}", ran.data.verdict);
    };
    assert!(reason.contains("abandoned"), "{reason}");
    assert_eq!(ran.data.drained.driver.in_flight, 4);
    assert_eq!(ran.closes, 1, "also an abandoned target is closed");
}

#[test]
fn a_request_before_the_gate_does_nothing_at_all() {
    let plan = ten_seconds();
    let clock = Clock::simulated();
    let engine = SimEngine::new(&plan, &Slob, &clock, SimOptions::default());
    let stop = Stop::new();
    stop.request();
    let mut told = Told::default();
    let outcome = execute(&plan, &engine, &clock, &stop, &mut told, quiet());
    // Ready and stopped race fairly: either no gate, or a run that ends at once.
    match outcome {
        Err(RunError::Interrupted) => assert!(told.marks.is_empty() && engine.closes() == 1),
        Ok(data) => assert!(matches!(data.verdict, Verdict::Incomplete(_))),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn slob_25_a_driver_that_cannot_open_aborts_with_no_operation_done() {
    let refusing = SimOptions { refuses: true, ..SimOptions::default() };
    let error = try_simulate(&ten_seconds(), refusing, Told::default()).err();
    let (error, closes) = *error.expect("it cannot start");
    assert!(matches!(error, RunError::NotReady { thread: 0, .. }), "{error}");
    assert_eq!(closes, 1, "what was opened is closed");
}

#[test]
fn one_failed_operation_makes_a_run_invalid_but_does_not_end_it() {
    let sim = SimOptions { faults: vec![fault(2, 10, 1, false)], ..SimOptions::default() };
    let ran = simulate(&ten_seconds(), sim);
    let Verdict::Invalid(reasons) = &ran.data.verdict else {
        panic!("{:?}", ran.data.verdict);
    };
    assert!(reasons[0].starts_with("1 operations failed"), "{reasons:?}");
    assert!(ran.data.warnings.iter().any(|text| text.contains("programmed fault")));
    assert_eq!(ran.data.end.at_ns, 12 * NS_PER_S);
    let driver = &ran.data.drained.driver;
    assert_eq!(driver.errors.get("io"), Some(&1));
    assert_eq!(ops(driver) + 1, ran.rows.len() as u64);
    assert_eq!(ran.rows.iter().filter(|row| row.rows.is_none()).count(), 1);
}

#[test]
fn tolerated_errors_leave_a_run_complete() {
    let plan = ten_seconds();
    let clock = Clock::simulated();
    let sim = SimOptions { faults: vec![fault(1, 3, 1, false)], ..SimOptions::default() };
    let engine = SimEngine::new(&plan, &Slob, &clock, sim);
    let options = Options { errors_tolerated: 1, ..quiet() };
    let data = execute(&plan, &engine, &clock, &Stop::new(), &mut Unobserved, options);
    assert_eq!(data.expect("a run").verdict, Verdict::Complete);
}

#[test]
fn a_retryable_failure_is_tried_once_more() {
    let sim = SimOptions { faults: vec![fault(1, 5, 1, true), fault(1, 9, 2, true)], ..SimOptions::default() };
    let ran = simulate(&ten_seconds(), sim);
    let driver = &ran.data.drained.driver;
    assert_eq!(driver.retries, 2);
    assert_eq!(driver.errors.get("deadlock"), Some(&1));
    // Both attempts belong to the operation's time.
    let row = ran.rows.iter().find(|row| row.session == 1 && row.i == 5);
    assert_eq!(row.map(|row| (row.service_ns, row.rows)), Some((2_000_000, Some(64))));
}

#[test]
fn more_than_a_hundred_errors_stop_the_run() {
    let sim = SimOptions { loses_a_row: true, ..SimOptions::default() };
    let ran = simulate(&ten_seconds(), sim);
    assert!(matches!(&ran.data.verdict, Verdict::Invalid(reasons) if reasons[0].contains("failed")));
    let driver = &ran.data.drained.driver;
    let errors = driver.errors.get("rows").copied().unwrap_or(0);
    assert!((101..110).contains(&errors), "{errors}");
    assert!(ran.data.end.at_ns < NS_PER_S);
    assert!(ran.data.warnings.iter().any(|text| text.contains("63 rows, expected 64")));
}

#[test]
fn a_broken_target_ends_the_run_and_keeps_what_was_measured() {
    let sim = SimOptions { breaks_at_ns: Some(4 * NS_PER_S), ..SimOptions::default() };
    let error = try_simulate(&ten_seconds(), sim, Told::default()).err();
    let (error, closes) = *error.expect("it broke");
    let RunError::Lost { source, data } = error else {
        panic!("{error}");
    };
    assert!(matches!(source, EngineError::Unusable(_)));
    assert!(matches!(&data.verdict, Verdict::Invalid(reasons) if reasons[0].contains("broke")));
    assert!(data.series.len() >= 3);
    assert!(ops(&data.drained.driver) > 10_000);
    assert_eq!(closes, 1);
}

#[test]
fn a_panic_on_a_driver_thread_yields_a_partial_result() {
    let sim = SimOptions { panics_at_ns: Some(4 * NS_PER_S + 1), ..SimOptions::default() };
    let ran = run(&ten_seconds(), sim, Told::default());
    let Verdict::Invalid(reasons) = &ran.data.verdict else {
        panic!("{:?}", ran.data.verdict);
    };
    assert!(reasons[0].contains("programmed panic"), "{reasons:?}");
    let driver = &ran.data.drained.driver;
    assert_eq!(ops(driver), ran.rows.len() as u64);
    assert_eq!(ops(driver), 4 * 4_000);
    // The engine's counters are those of the last second, the loop's are its last.
    assert!(ran.data.drained.stats.get(assay_measure::counter_catalog::ROWS_VISITED) > Some(0));
}

#[test]
fn a_full_engine_is_reaped_and_every_session_gets_its_turn() {
    let sim = SimOptions { room: 3, ..SimOptions::default() };
    let plan = Plan { run_time_ns: 2 * NS_PER_S, ..Plan::plain(10, 1, 20_000) };
    let ran = simulate(&plan, sim);
    assert_eq!(ran.data.verdict, Verdict::Complete);
    // Three at a time, 1 ms each.
    assert!(ran.rows.len() >= 5_990, "{}", ran.rows.len());
    let done = ran.data.per_session.iter().map(|session| session.ops);
    assert!(done.clone().max().expect("ten") - done.min().expect("ten") <= 1);
}

#[test]
fn a_blocking_engine_runs_through_the_same_loop() {
    let sim = SimOptions { blocking: true, ..SimOptions::default() };
    let plan = Plan { run_time_ns: 2 * NS_PER_S, ..Plan::plain(4, 1, 20_000) };
    let ran = simulate(&plan, sim);
    assert_eq!(ran.data.verdict, Verdict::Complete);
    assert_eq!(ran.data.end.at_ns, 2 * NS_PER_S);
    assert_eq!(ops(&ran.data.end.driver), 2_000);
    // One thread that blocks: the others wait their turn inside their operation's time.
    let driver = &ran.data.drained.driver;
    assert_eq!(driver.ops[0].service.max_ns(), Some(4_000_000));
    let told = ran.told.marks.iter().filter(|(mark, _)| *mark == Mark::Second);
    assert_eq!(told.count(), 1);
}

/// A trace that cannot be written.
struct FullDisk;

impl trace::Sink for FullDisk {
    fn rows(&mut self, _rows: &[trace::Row]) -> std::io::Result<()> {
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_a_warning() {
    let plan = ten_seconds();
    let clock = Clock::simulated();
    let engine = SimEngine::new(&plan, &Slob, &clock, SimOptions::default());
    let options = Options { trace: Some(Box::new(FullDisk)), ..quiet() };
    let data = execute(&plan, &engine, &clock, &Stop::new(), &mut Unobserved, options);
    let data = data.expect("the run itself is good");
    assert_eq!(data.verdict, Verdict::Complete);
    assert!(data.warnings.iter().any(|text| text.contains("trace is incomplete")));
}

/// An observer with a bug.
struct Panics;

impl Observer for Panics {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, mark: Mark, _now: &Snapshot) {
        assert!(mark != Mark::Second, "programmed panic of an observer");
    }
}

#[test]
fn a_panic_of_the_observer_does_not_leave_threads_waiting() {
    let plan = ten_seconds();
    let ended = std::panic::catch_unwind(|| {
        let clock = Clock::simulated();
        let engine = SimEngine::new(&plan, &Slob, &clock, SimOptions::default());
        execute(&plan, &engine, &clock, &Stop::new(), &mut Panics, quiet()).is_ok()
    });
    assert!(ended.is_err());
}

/// Its driver opens only when told to.
struct Late(Stop, Mutex<Vec<(&'static str, Option<Duration>)>>);

impl Engine for Late {
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    fn workload(&self) -> &dyn Workload {
        &Slob
    }

    fn driver_threads(&self, _sessions: usize, _cpus: usize) -> usize {
        2
    }

    fn driver<'a>(&'a self, _: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        while !self.0.requested() {
            std::thread::yield_now();
        }
        Err(EngineError::Unusable("too late".to_owned()))
    }

    fn sample(&self) -> StatSet {
        StatSet::default()
    }

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.1.lock().expect("no panic").push((name, within));
    }

    fn close(&self) -> Result<(), EngineError> {
        self.phase("closed", None);
        Ok(())
    }
}

/// Lets the late drivers go once the collector says that it connects, long after it has given them up.
struct Impatient(Stop);

impl Observer for Impatient {
    fn phase(&mut self, name: &str) {
        let stop = self.0.clone();
        if name == "connect" {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(2));
                stop.request();
            });
        }
    }

    fn snapshot(&mut self, mark: Mark, _now: &Snapshot) {
        panic!("{mark:?} although nobody was ready");
    }
}

#[test]
fn slob_25_drivers_that_take_too_long_abort_the_run() {
    let plan = ten_seconds();
    let late = Stop::new();
    let engine = Late(late.clone(), Mutex::default());
    let options = Options { ready_timeout: Some(Duration::from_millis(10)), ..quiet() };
    let clock = Clock::real();
    let outcome = execute(&plan, &engine, &clock, &Stop::new(), &mut Impatient(late), options);
    let error = outcome.expect_err("nobody was ready");
    let RunError::ReadyTimeout { missing, threads, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((missing, threads), (2, 2));
    // Who still waits has little time; the close has its own for all that.
    let phases = engine.1.into_inner().expect("no panic");
    let [connecting, leaving, closing, closed, after] = phases[..] else { panic!("{phases:?}") };
    assert_eq!((connecting.0, connecting.1), (leaving.0, Some(Duration::from_millis(10))));
    assert!(leaving.1 < closing.1 && closing.0 != leaving.0, "{phases:?}");
    assert_eq!((closed.0, after.1), ("closed", None));
}

#[test]
fn a_run_whose_observer_has_enough_is_whole_and_shorter() {
    let told = Told { enough_at_second: Some(5), ..Told::default() };
    let ran = run(&ten_seconds(), SimOptions::default(), told);
    assert_eq!(ran.data.verdict, Verdict::Complete);
    assert_eq!((ran.data.begin.at_ns, ran.data.end.at_ns), (2 * NS_PER_S, 5 * NS_PER_S));
    assert_eq!(ran.data.drained.driver.in_flight, 0);
}
