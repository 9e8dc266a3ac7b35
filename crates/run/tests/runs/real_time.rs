//! Runs on the real clock and real threads: what simulated time cannot show. Nothing
//! here asserts speed.

use crate::common::{Told, ops, quiet};
use assay_measure::clock::{Clock, NS_PER_S};
use assay_measure::counter_catalog;
use assay_measure::snapshot::{HostReading, Snapshot, Verdict};
use assay_run::null::NullEngine;
use assay_run::plan::{Plan, Think};
use assay_run::stop::Stop;
use assay_run::{Mark, Observer, Options, execute, trace};
use assay_slob::Slob;

fn run(plan: &Plan, options: Options) -> (assay_measure::snapshot::RunData, Told) {
    let clock = Clock::real();
    let engine = NullEngine::new(plan, &Slob, &clock);
    let mut told = Told::default();
    let data = execute(plan, &engine, &clock, &Stop::new(), &mut told, options);
    (data.expect("the null engine never fails"), told)
}

#[test]
fn slob_25_256_sessions_all_begin() {
    // Pauses keep the trace small and the threads from fighting for the CPU.
    let plan = Plan {
        run_time_ns: NS_PER_S,
        think: Some(Think { frequency: 1, min_ns: 20_000_000, max_ns: 20_000_000 }),
        ..Plan::plain(256, 1, 20_000)
    };
    let closed = Plan { think: None, work_loop: 10, ..plan.clone() };
    let (data, _) = run(&closed, quiet());
    assert_eq!(data.per_session.len(), 256);
    let begun = data.per_session.iter().filter(|session| session.first_op_ns.is_some());
    assert_eq!(begun.count(), 256);
    assert_eq!(ops(&data.drained.driver), 2_560);
    let (data, _) = run(&plan, quiet());
    assert!(data.per_session.iter().all(|session| session.ops > 0));
    assert_eq!(data.verdict, Verdict::Complete);
}

#[test]
fn every_snapshot_of_real_threads_keeps_the_identities() {
    let plan = Plan { run_time_ns: 2 * NS_PER_S, update_pct: 20, ..Plan::plain(4, 4, 20_000) };
    let options = Options { cpus: 2, ..Options::default() };
    let (data, _) = run(&plan, options);
    assert_eq!(data.verdict, Verdict::Complete);
    for snapshot in data.series.iter().chain([&data.drained]) {
        let driver = &snapshot.driver;
        let rows: u64 = driver.ops.iter().map(|op| op.rows).sum();
        assert_eq!(snapshot.stats.get(counter_catalog::ROWS_VISITED), Some(rows));
        assert_eq!(snapshot.stats.get(counter_catalog::EXECUTE_COUNT), Some(ops(driver)));
        assert_eq!(snapshot.stats.get(counter_catalog::DB_TIME), Some(driver.busy_ns));
        let service: u64 = driver.ops.iter().map(|op| op.service.sum_ns()).sum();
        assert_eq!(service, driver.busy_ns);
        assert_eq!(driver.threads, 2);
        assert!(driver.thread_cpu_ns > 0);
        assert_ne!(snapshot.host, HostReading::default());
    }
    assert_eq!(data.end.driver.sessions_active, 16);
    assert!(data.floor_ns_per_op.expect("calibrated") > 0.0);
    assert!(data.clock_read_ns.expect("calibrated") > 0.0);
    assert!(data.host.iter().any(|fact| fact.name == "kernel"));
    let window_ns = data.end.at_ns - data.begin.at_ns;
    assert!(window_ns >= 2 * NS_PER_S);
}

#[test]
fn counters_never_go_back() {
    let plan = Plan { run_time_ns: 3 * NS_PER_S, warmup_ns: NS_PER_S / 2, ..Plan::plain(8, 1, 20_000) };
    let (data, told) = run(&plan, quiet());
    let all = [&data.gate].into_iter().chain(&data.series).chain([&data.drained]);
    let all: Vec<_> = all.collect();
    for pair in all.windows(2) {
        assert!(pair[0].at_ns <= pair[1].at_ns);
        assert!(ops(&pair[0].driver) <= ops(&pair[1].driver));
        assert!(pair[0].driver.thread_cpu_ns <= pair[1].driver.thread_cpu_ns);
    }
    assert_eq!(told.phases, ["connect", "warm-up", "measure", "drain", "close"]);
}

#[test]
fn the_csv_trace_has_a_line_for_every_operation() {
    let plan = Plan { work_loop: 100, update_pct: 50, scan_pct: 50, scan_blocks: 8, ..Plan::plain(2, 1, 20_000) };
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let sink = trace::Csv::new(file.reopen().expect("the same file")).expect("a header");
    let options = Options { trace: Some(Box::new(sink)), ..quiet() };
    run(&plan, options);
    let text = std::fs::read_to_string(file.path()).expect("the trace");
    let mut lines = text.lines();
    let columns = lines.next().expect("a header").split(',').count();
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 200);
    assert!(lines.iter().all(|line| line.split(',').count() == columns));
    assert_eq!(lines.iter().filter(|line| line.contains(",update,")).count(), 100);
}

/// Takes longer than a second to look at the first one.
#[derive(Default)]
struct Slow(Vec<u64>);

impl Observer for Slow {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, mark: Mark, now: &Snapshot) {
        if mark == Mark::Second && self.0.is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(2_200));
        }
        self.0.push(now.at_ns);
    }
}

#[test]
fn a_slow_observer_delays_no_operation_and_not_the_end() {
    let plan = Plan { run_time_ns: 2 * NS_PER_S, ..Plan::plain(4, 1, 20_000) };
    let clock = Clock::real();
    let engine = NullEngine::new(&plan, &Slob, &clock);
    let mut slow = Slow::default();
    let data = execute(&plan, &engine, &clock, &Stop::new(), &mut slow, quiet());
    let data = data.expect("the null engine never fails");
    assert_eq!(data.verdict, Verdict::Complete);
    // The end was read by the threads at its instant, although nobody asked them then.
    assert_eq!(data.end.driver.sessions_active, 4);
    assert!(data.end.at_ns >= 2 * NS_PER_S);
    assert!(ops(&data.end.driver) <= ops(&data.drained.driver));
}
