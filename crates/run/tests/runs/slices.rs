//! Slices: the target performs many operations of a session by itself.

use crate::common::{Told, ops, simulate, try_simulate};
use assay_measure::clock::NS_PER_S;
use assay_measure::counter_catalog;
use assay_measure::snapshot::{SELECT, Verdict};
use assay_run::plan::Plan;
use assay_testkit::sim_engine::{Delay, Fault, SimOptions};

fn sliced(operations: usize) -> SimOptions {
    SimOptions { slice_ops: operations, ..SimOptions::default() }
}

#[test]
fn a_window_of_slices_holds_exactly_the_operations_that_end_in_it() {
    let plan =
        Plan { update_pct: 30, run_time_ns: 10 * NS_PER_S, warmup_ns: 2 * NS_PER_S, ..Plan::plain(1, 1, 10_000) };
    // A millisecond each and no way to go: a thousand a second, however they travel.
    for operations in [1, 7, 100, 5000] {
        let ran = simulate(&plan, sliced(operations));
        assert_eq!(ran.data.verdict, Verdict::Complete);
        let window = ops(&ran.data.end.driver) - ops(&ran.data.begin.driver);
        assert_eq!(window, 10_000, "{operations} a slice");
        for (second, snapshot) in ran.data.series.iter().enumerate() {
            let ended = ops(&snapshot.driver);
            assert_eq!(ended, snapshot.at_ns / 1_000_000, "second {second}");
        }
        // Little's law: one session, always busy.
        let busy = ran.data.end.driver.busy_ns - ran.data.begin.driver.busy_ns;
        assert_eq!(busy, 10 * NS_PER_S);
    }
}

#[test]
fn slices_change_no_operation() {
    let plan = Plan {
        update_pct: 30,
        scan_pct: 10,
        scan_blocks: 16,
        hot_schema_frequency: 4,
        work_loop: 500,
        run_time_ns: 0,
        ..Plan::plain(3, 2, 10_000)
    };
    let key = |ran: &crate::common::Ran| {
        let mut rows: Vec<_> =
            ran.rows.iter().map(|row| (row.session, row.i, format!("{:?}", row.op), row.hot_schema)).collect();
        rows.sort();
        rows
    };
    let one_by_one = simulate(&plan, SimOptions::default());
    let all = key(&one_by_one);
    assert_eq!(all.len(), 3000);
    for operations in [1, 7, 64, 5000] {
        let ran = simulate(&plan, sliced(operations));
        assert!(key(&ran) == all, "{operations} a slice");
        assert_eq!(ops(&ran.data.drained.driver), 3000);
    }
}

#[test]
fn the_way_to_the_target_is_no_operations_time() {
    let plan = Plan { run_time_ns: 10 * NS_PER_S, ..Plan::plain(1, 1, 10_000) };
    let sim = SimOptions { select: Delay::Uniform(500_000, 1_500_000), slice_way_ns: 5_000_000, ..sliced(90) };
    let ran = simulate(&plan, sim);
    let driver = &ran.data.end.driver;
    let select = driver.ops.iter().find(|op| op.kind == SELECT);
    let service = &select.expect("there are selects").service;
    assert!(service.max_ns() <= Some(1_500_000) && service.min_ns() >= Some(500_000));
    assert_eq!(service.sum_ns(), driver.busy_ns);
    let waited = ran
        .data
        .end
        .stats
        .events
        .iter()
        .find(|event| event.name == "SQL*Net message from client")
        .expect("slices wait for their client");
    let last_way = 5_000_000;
    assert_eq!(
        driver.busy_ns + waited.waits.sum_ns() + last_way,
        ran.data.end.at_ns,
        "every instant is an operation's or the client's"
    );
}

#[test]
fn an_error_inside_a_slice_is_counted_and_the_rest_goes_on() {
    let plan = Plan { work_loop: 100, run_time_ns: 0, ..Plan::plain(1, 2, 10_000) };
    let fault = |i, attempts, retryable| Fault { session: 1, i, attempts, retryable };
    let sim = SimOptions { faults: vec![fault(10, 1, true), fault(20, 2, true), fault(30, 1, false)], ..sliced(64) };
    let ran = try_simulate(&plan, sim, Told::default()).map_err(|error| error.0.to_string()).expect("a run that ends");
    let driver = &ran.data.drained.driver;
    assert_eq!(ops(driver), 198, "two of 200 failed for good");
    assert_eq!(driver.retries, 2);
    assert_eq!(driver.errors.values().sum::<u64>(), 2);
    assert_eq!(ran.rows.len(), 200);
    assert_eq!(ran.data.drained.stats.get(counter_catalog::EXECUTE_COUNT), Some(198));
}
