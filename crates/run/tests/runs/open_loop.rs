//! Open loop against closed forms: response time counts from the intended start, so a
//! stall is charged to every operation it held up.

use crate::common::{Ran, ops, simulate};
use assay_measure::clock::NS_PER_S;
use assay_measure::counter_catalog::ARRIVALS_WAITING;
use assay_measure::snapshot::{Snapshot, Verdict};
use assay_run::Mark;
use assay_run::plan::{Arrivals, Plan};
use assay_testkit::sim_engine::{Delay, SimOptions, Stall};

const MS: u64 = 1_000_000;

fn stalled(from_ns: u64, until_ns: u64) -> SimOptions {
    SimOptions { select: Delay::Fixed(MS), stalls: vec![Stall { from_ns, until_ns }], ..SimOptions::default() }
}

/// Relative error of `found` against `expected`.
fn error(found: Option<u64>, expected: f64) -> f64 {
    (found.expect("enough samples") as f64 - expected).abs() / expected
}

#[test]
fn a_stall_shows_in_every_percentile_as_its_closed_form_says() {
    // 1000 operations/s over 2000 sessions for 20 s, each 1 ms; the target stands still
    // for 1 s. Every session starts one operation in 2 s, so none waits for its own.
    let plan = Plan { rate_per_s: 1_000, run_time_ns: 20 * NS_PER_S, ..Plan::plain(1, 2_000, 20_000) };
    let ran = simulate(&plan, stalled(8 * NS_PER_S, 9 * NS_PER_S));
    assert_eq!(ran.data.verdict, Verdict::Complete);
    let op = &ran.data.drained.driver.ops[0];
    let total = 20_000.0;
    assert_eq!(op.service.count(), 20_000);
    // 1000 of them were meant to start inside the stall; at time t of it their response
    // is (1 s - t) + 1 ms. Above the share of undisturbed ones the distribution is linear.
    for q in [0.96, 0.98, 0.99, 0.999] {
        let rank_from_top = (1.0 - q) * total;
        let expected = 1e9 - rank_from_top * 1e6 + 1e6;
        let found = op.response.percentile_ns(q);
        assert!(error(found, expected) < 0.03, "{q}: {found:?} against {expected}");
    }
    assert!(error(op.response.percentile_ns(0.5), 1e6) < 0.03);
    assert_eq!(op.response.max_ns(), Some(1_001 * MS));
    // Every session was free at its start, so nothing started late.
    assert_eq!(ran.data.drained.driver.schedule_lag.max_ns(), Some(0));
}

#[test]
fn a_backlog_of_one_session_drains_as_lindley_says() {
    // One session at 500/s with 1 ms of work: a stall of 100 ms leaves a queue that
    // shrinks by one operation each 2 ms. Lindley's recursion gives every response.
    let plan = Plan { rate_per_s: 500, run_time_ns: 10 * NS_PER_S, ..Plan::plain(1, 1, 20_000) };
    let (from_ns, until_ns) = (2 * NS_PER_S, 2 * NS_PER_S + 100 * MS);
    let ran = simulate(&plan, stalled(from_ns, until_ns));
    let mut free_at = 0;
    let mut expected = Vec::new();
    for i in 0..5_000_u64 {
        let intended = i * 2 * MS;
        let start = intended.max(free_at);
        let mut end = start + MS;
        if until_ns > start && from_ns < end {
            end += until_ns - from_ns.max(start);
        }
        free_at = end;
        expected.push(end - intended);
    }
    let found: Vec<u64> = ran.rows.iter().map(|row| row.response_ns).collect();
    assert_eq!(found, expected);
    let service: Vec<u64> = ran.rows.iter().map(|row| row.service_ns).collect();
    assert_eq!(service.iter().filter(|&&ns| ns > MS).count(), 1, "one real stall");
    expected.sort_unstable();
    for q in [0.5, 0.9, 0.99, 0.998] {
        let exact = expected[((q * 5_000.0) as usize).min(4_999)] as f64;
        let histogram = &ran.data.drained.driver.ops[0].response;
        assert!(error(histogram.percentile_ns(q), exact) < 0.03, "{q}");
    }
    assert!(ran.data.drained.driver.schedule_lag.max_ns() > Some(90 * MS));
}

#[test]
fn a_rate_that_cannot_be_kept_makes_the_run_invalid() {
    let plan = Plan { rate_per_s: 5_000, run_time_ns: 10 * NS_PER_S, warmup_ns: NS_PER_S, ..Plan::plain(1, 4, 20_000) };
    let ran = simulate(&plan, SimOptions::default());
    let Verdict::Invalid(reasons) = &ran.data.verdict else {
        panic!("{:?}", ran.data.verdict);
    };
    assert!(reasons[0].contains("RATE=5000"), "{reasons:?}");
    let kept = Plan { rate_per_s: 3_000, ..plan };
    let ran = simulate(&kept, SimOptions::default());
    assert_eq!(ran.data.verdict, Verdict::Complete);
    let ended = ops(&ran.data.end.driver) - ops(&ran.data.begin.driver);
    assert!((29_900..=30_100).contains(&ended), "{ended}");
}

/// Four sessions at 1000/s, of which one needs half a second for its third operation.
fn with_one_slow_session(arrivals: Option<Arrivals>) -> Ran {
    let plan = Plan { rate_per_s: 1_000, run_time_ns: NS_PER_S, arrivals, ..Plan::plain(1, 4, 20_000) };
    let sim = SimOptions { select: Delay::Fixed(MS), slow: Some((2, 2, 500 * MS)), ..SimOptions::default() };
    simulate(&plan, sim)
}

#[test]
fn what_waits_in_a_shared_queue_is_taken_over_from_a_slow_session() {
    let late = |ran: &Ran| {
        let late = ran.rows.iter().filter(|row| row.response_ns > 2 * MS);
        late.count()
    };
    let own = with_one_slow_session(None);
    assert!(late(&own) > 100, "the arrivals of the slow session wait for it");
    let queue = Arrivals { at_random: false, shared: true, waiting_max: 0 };
    let shared = with_one_slow_session(Some(queue));
    assert_eq!(late(&shared), 1, "none but the slow operation itself");
    assert_eq!(shared.data.verdict, Verdict::Complete);
    // What a session does is its own, whoever performs how many.
    for session in 1..=4 {
        let ops = |ran: &Ran| {
            let of = ran.rows.iter().filter(|row| row.session == session);
            of.map(|row| row.op).collect::<Vec<_>>()
        };
        let (own, shared) = (ops(&own), ops(&shared));
        let both = own.len().min(shared.len());
        assert!(both > 50);
        assert_eq!(own[..both], shared[..both]);
    }
}

#[test]
fn arrivals_that_find_a_full_queue_are_counted_and_the_rest_performed() {
    // Two sessions of 1 ms each take 2000/s of 3000/s.
    let plan = Plan {
        rate_per_s: 3_000,
        run_time_ns: 2 * NS_PER_S,
        arrivals: Some(Arrivals { at_random: false, shared: true, waiting_max: 10 }),
        ..Plan::plain(1, 2, 20_000)
    };
    let ran = simulate(&plan, SimOptions::default());
    let end = &ran.data.end.driver;
    let begun = ops(end) + end.in_flight;
    // All that came are performed, under way, waiting or dropped.
    assert!((5_988..=6_000).contains(&(begun + end.dropped)), "{begun} {}", end.dropped);
    assert!((1_980..=2_000).contains(&end.dropped), "{}", end.dropped);
    let Verdict::Invalid(reasons) = &ran.data.verdict else {
        panic!("{:?}", ran.data.verdict);
    };
    assert!(reasons[0].contains("arrivals found no room"), "{reasons:?}");
    // Nobody waits longer than the queue is.
    let longest = ran.data.drained.driver.ops[0].response.max_ns();
    assert!(longest < Some(8 * MS), "{longest:?}");
}

#[test]
fn arrivals_at_random_are_not_missed_because_fewer_came_than_on_average() {
    for seed in 1..=20 {
        let plan = Plan {
            rate_per_s: 100,
            run_time_ns: 4 * NS_PER_S,
            seed,
            arrivals: Some(Arrivals { at_random: true, shared: true, waiting_max: 0 }),
            ..Plan::plain(1, 4, 20_000)
        };
        let ran = simulate(&plan, SimOptions::default());
        assert_eq!(ran.data.verdict, Verdict::Complete, "seed {seed}");
    }
}

#[test]
fn each_second_tells_how_many_arrivals_wait() {
    // Four sessions perform 4000/s of 5000/s: the queue grows by 1000 a second.
    let plan = Plan {
        rate_per_s: 5_000,
        run_time_ns: 5 * NS_PER_S,
        arrivals: Some(Arrivals { shared: true, at_random: false, waiting_max: 0 }),
        ..Plan::plain(1, 4, 20_000)
    };
    let waiting = |plan: &Plan| -> Vec<Option<u64>> {
        let ran = simulate(plan, SimOptions::default());
        let seconds = ran.told.marks.iter().filter(|(mark, _)| *mark == Mark::Second);
        let gauge = |now: &Snapshot| now.stats.gauges.get(ARRIVALS_WAITING).copied();
        seconds.map(|(_, now)| gauge(now)).collect()
    };
    let grown = waiting(&plan);
    assert!(grown.len() >= 4, "{grown:?}");
    for (second, waiting) in (1_u64..).zip(&grown) {
        let waiting = waiting.expect("the queue is told");
        assert!(waiting.abs_diff(second * 1_000) <= 10, "{grown:?}");
    }
    let kept = Plan { rate_per_s: 3_000, ..plan.clone() };
    assert!(waiting(&kept).iter().all(|waiting| *waiting <= Some(4)));
    let none = Plan { arrivals: None, ..plan };
    assert!(waiting(&none).iter().all(Option::is_none));
}
