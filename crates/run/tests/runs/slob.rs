//! Whole runs on the simulated engine: exact, in milliseconds (slob-method 8; the
//! numbers in the names are its items).

use crate::common::{Ran, Told, ops, ops_of, simulate, try_simulate};
use assay_measure::clock::NS_PER_S;
use assay_measure::counter_catalog;
use assay_measure::snapshot::{SCAN, SELECT, UPDATE, Verdict};
use assay_run::engine::Op;
use assay_run::plan::{Compat, HotSpot, Mix, Plan, Think};
use assay_run::{Mark, trace};
use assay_testkit::sim_engine::{Delay, SimOptions};

const MS: u64 = 1_000_000;

fn sim() -> SimOptions {
    SimOptions {
        select: Delay::Exponential(MS),
        update: Delay::Uniform(MS, 3 * MS),
        scan: Delay::PerRow(10_000),
        ..SimOptions::default()
    }
}

/// The trace with all that time decides left out.
fn decisions(rows: &[trace::Row]) -> Vec<(u32, u64, Op)> {
    rows.iter().map(|row| (row.session, row.i, row.op)).collect()
}

#[test]
fn slob_03_05_the_mix_of_a_whole_run_is_exact() {
    let plan = Plan { update_pct: 20, scan_pct: 50, scan_blocks: 128, work_loop: 2_500, ..Plan::plain(4, 1, 20_000) };
    let ran = simulate(&plan, sim());
    let driver = &ran.data.end.driver;
    assert_eq!(ops_of(driver, UPDATE), 2_000);
    assert_eq!(ops_of(driver, SELECT), 4_000);
    assert_eq!(ops_of(driver, SCAN), 4_000);
    for window in ran.rows.chunks(100) {
        let updates = window.iter().filter(|row| Op::KINDS[row.op.kind()] == UPDATE);
        assert_eq!(updates.count(), 20);
    }
}

#[test]
fn slob_10_hot_spot_hits_are_counted_as_traced() {
    let plan = Plan {
        hot_spot: Some(HotSpot { offset_blocks: 2_048, size_blocks: 1_024, frequency: 3 }),
        work_loop: 3_000,
        ..Plan::plain(2, 1, 20_000)
    };
    let ran = simulate(&plan, sim());
    assert_eq!(ran.data.end.driver.hot_spot_hits, 2_000);
    assert_eq!(ran.rows.iter().filter(|row| row.hot_spot).count(), 2_000);
}

#[test]
fn slob_14_hot_schema_hits_are_counted_as_traced() {
    let plan = Plan { hot_schema_frequency: 4, work_loop: 4_000, ..Plan::plain(8, 1, 20_000) };
    let ran = simulate(&plan, sim());
    assert_eq!(ran.data.end.driver.hot_schema_hits, 8_000);
    for session in 1..=8 {
        let mine = ran.rows.iter().filter(|row| row.session == session);
        assert_eq!(mine.filter(|row| row.hot_schema).count(), 1_000);
    }
}

#[test]
fn slob_17_think_time_is_taken_and_is_no_part_of_an_operation() {
    let plan = Plan {
        think: Some(Think { frequency: 5, min_ns: 100 * MS, max_ns: 500 * MS }),
        work_loop: 1_000,
        ..Plan::plain(3, 1, 20_000)
    };
    let fixed = SimOptions { select: Delay::Fixed(MS), ..SimOptions::default() };
    let ran = simulate(&plan, fixed);
    let end = &ran.data.end;
    assert_eq!(end.driver.think_count, 600);
    let mean_ns = end.driver.think_ns as f64 / 600.0;
    assert!((mean_ns - 300e6).abs() < 30e6, "{mean_ns}");
    let service = &end.driver.ops[0].service;
    assert_eq!((service.min_ns(), service.max_ns()), (Some(MS), Some(MS)));
    // Pauses and operations fill each session's time without a gap.
    for session in &ran.data.per_session {
        assert_eq!(session.busy_ns + session.think_ns, session.last_op_ns.expect("it worked"));
        let pauses = ran.rows.iter().filter(|row| u64::from(row.session) == session.session);
        assert_eq!(pauses.filter(|row| row.think_ns.is_some()).count(), 200);
    }
    let idle = end.stats.events.iter().find(|event| event.name == "PL/SQL lock timer");
    assert_eq!(idle.map(|event| event.waits.sum_ns()), Some(end.driver.think_ns));
}

#[test]
fn slob_23_no_operation_starts_after_the_end_and_the_window_is_run_time() {
    for (run_time_s, warmup_ns) in [(10, 0), (1, 0), (10, 2_500 * MS)] {
        let plan = Plan { run_time_ns: run_time_s * NS_PER_S, warmup_ns, ..Plan::plain(4, 2, 20_000) };
        let ran = simulate(&plan, sim());
        let end_ns = warmup_ns + run_time_s * NS_PER_S;
        assert_eq!(ran.data.verdict, Verdict::Complete);
        assert_eq!(ran.data.begin.at_ns, warmup_ns);
        assert_eq!(ran.data.end.at_ns, end_ns);
        assert!(ran.rows.iter().all(|row| row.start_ns < end_ns));
        // At the end instant every session is in an operation, which then still ends.
        let late = |row: &&trace::Row| row.start_ns + row.service_ns > end_ns;
        assert_eq!(ran.rows.iter().filter(late).count(), 8);
        assert_eq!(ops(&ran.data.drained.driver), ops(&ran.data.end.driver) + 8);
    }
}

#[test]
fn slob_24_work_loop_gives_exactly_so_many_operations() {
    let plan = Plan { work_loop: 500, run_time_ns: NS_PER_S, ..Plan::plain(4, 1, 20_000) };
    let ran = simulate(&plan, sim());
    assert_eq!(ran.rows.len(), 2_000);
    assert_eq!(ops(&ran.data.end.driver), 2_000);
    assert!(ran.data.fixed_iterations);
    assert_eq!(ran.data.verdict, Verdict::Complete);
    assert_eq!(ran.data.begin, ran.data.gate);
    // The window ends with the last session; the first one's end can be told from it.
    let ends = ran.data.per_session.iter().filter_map(|session| session.last_op_ns);
    assert_eq!(Some(ran.data.end.at_ns), ends.clone().max());
    assert!(ends.min() < Some(ran.data.end.at_ns));
    assert!(ran.data.per_session.iter().all(|session| session.ops == 500));
}

#[test]
fn slob_24_a_cap_ends_fixed_iterations_as_incomplete() {
    let plan = Plan { work_loop: 5_000, max_run_time_ns: Some(NS_PER_S), ..Plan::plain(4, 1, 20_000) };
    let ran = simulate(&plan, sim());
    let Verdict::Incomplete(reason) = &ran.data.verdict else {
        panic!("{:?}", ran.data.verdict);
    };
    assert!(reason.contains("MAX_RUN_TIME") && reason.contains("4 sessions"), "{reason}");
    let generous = Plan { max_run_time_ns: Some(100 * NS_PER_S), ..plan };
    assert_eq!(simulate(&generous, sim()).data.verdict, Verdict::Complete);
}

#[test]
fn slob_26_snapshots_see_every_session_at_work_and_the_series_adds_up() {
    let plan = Plan {
        run_time_ns: 20 * NS_PER_S,
        warmup_ns: 2 * NS_PER_S + NS_PER_S / 2,
        update_pct: 30,
        ..Plan::plain(5, 3, 20_000)
    };
    let ran = simulate(&plan, sim());
    let data = &ran.data;
    assert_eq!(data.begin.driver.sessions_active, 15);
    assert_eq!(data.end.driver.sessions_active, 15);
    assert_eq!(data.drained.driver.sessions_active, 0);
    // Seconds 1..22, the begin at 2.5 s and the end at 22.5 s.
    assert_eq!(data.series.len(), 24);
    let inside: Vec<_> =
        data.series.iter().filter(|snapshot| (data.begin.at_ns..=data.end.at_ns).contains(&snapshot.at_ns)).collect();
    let summed: u64 = inside.windows(2).map(|pair| ops(&pair[1].driver) - ops(&pair[0].driver)).sum();
    assert_eq!(summed, ops(&data.end.driver) - ops(&data.begin.driver));
    // The trace agrees: an operation counts in the second in which it ends.
    for snapshot in &data.series {
        let ended = ran.rows.iter().filter(|row| row.start_ns + row.service_ns <= snapshot.at_ns);
        assert_eq!(ops(&snapshot.driver), ended.count() as u64, "at {}", snapshot.at_ns);
    }
    let marks: Vec<Mark> = ran.told.marks.iter().map(|(mark, _)| *mark).collect();
    assert_eq!(marks.first(), Some(&Mark::Gate));
    assert_eq!(marks.last(), Some(&Mark::Drained));
    assert_eq!(marks.iter().filter(|&&mark| mark == Mark::Second).count(), 22);
    assert_eq!(ran.told.phases, ["connect", "warm-up", "measure", "drain", "close"]);
    assert_eq!(ran.closes, 1);
}

#[test]
fn session_time_adds_up_at_every_snapshot() {
    let plan = Plan {
        run_time_ns: 5 * NS_PER_S,
        think: Some(Think { frequency: 3, min_ns: MS, max_ns: 40 * MS }),
        ..Plan::plain(4, 4, 20_000)
    };
    let ran = simulate(&plan, sim());
    for snapshot in &ran.data.series {
        let driver = &snapshot.driver;
        let accounted = driver.busy_ns + driver.in_flight_ns + driver.think_ns;
        let elapsed = 16 * snapshot.at_ns;
        // What is missing are the pauses under way: at most one each.
        assert!(accounted <= elapsed && elapsed - accounted <= 16 * 40 * MS);
        assert_eq!(snapshot.stats.get(counter_catalog::DB_TIME), Some(driver.busy_ns));
    }
    let drained = &ran.data.drained;
    let summed: u64 = ran.data.per_session.iter().map(|session| session.busy_ns).sum();
    assert_eq!(drained.driver.busy_ns, summed);
    let thought: u64 = ran.data.per_session.iter().map(|session| session.think_ns).sum();
    assert_eq!(drained.driver.think_ns, thought);
}

#[test]
fn slob_27_only_the_schemas_asked_for_are_touched() {
    let plan = Plan { run_time_ns: NS_PER_S, update_pct: 50, ..Plan::plain(4, 3, 20_000) };
    let ran = simulate(&plan, sim());
    assert_eq!(ran.data.sessions, 12);
    for schema in 1..=4 {
        let sessions = ran.data.per_session.iter();
        assert_eq!(sessions.filter(|session| session.schema == schema).count(), 3);
    }
    assert!(ran.rows.iter().all(|row| row.op.schema() <= 4));
}

#[test]
fn slob_38_histograms_count_what_was_done_and_busy_time_fits_the_window() {
    let plan = Plan { run_time_ns: 10 * NS_PER_S, update_pct: 25, ..Plan::plain(6, 2, 20_000) };
    let ran = simulate(&plan, sim());
    let driver = &ran.data.drained.driver;
    for op in &driver.ops {
        let traced = ran.rows.iter().filter(|row| Op::KINDS[row.op.kind()] == op.kind);
        let (count, sum) = traced.fold((0, 0), |(count, sum), row| (count + 1, sum + row.service_ns));
        assert_eq!((op.service.count(), op.service.sum_ns()), (count, sum));
        let percentile = |q| op.service.percentile_ns(q);
        assert!(percentile(0.5) <= percentile(0.99));
        assert!(percentile(0.99) <= op.service.max_ns());
        // A closed loop starts when it means to.
        assert_eq!(op.service, op.response);
    }
    assert!(ran.data.end.driver.busy_ns <= 12 * ran.data.end.at_ns);
}

#[test]
fn slob_44_the_same_seed_replays_and_another_does_not() {
    let plan = Plan {
        update_pct: 30,
        scan_pct: 10,
        scan_blocks: 128,
        hot_schema_frequency: 4,
        work_loop: 300,
        ..Plan::plain(4, 2, 20_000)
    };
    let first = decisions(&simulate(&plan, sim()).rows);
    // Other delays, other order of events, same decisions: time has no say in them.
    let slower = SimOptions { seed: 99, select: Delay::Uniform(MS, 90 * MS), ..sim() };
    assert_eq!(first, decisions(&simulate(&plan, slower).rows));
    let other = Plan { seed: 2, ..plan };
    assert_ne!(first, decisions(&simulate(&other, sim()).rows));
}

#[test]
fn compat_changes_the_operations_but_neither_window_nor_stamps() {
    let plan = Plan {
        update_pct: 20,
        compat: Compat::Slob253,
        mix: Mix::Slob253,
        run_time_ns: 5 * NS_PER_S,
        warmup_ns: NS_PER_S,
        ..Plan::plain(2, 2, 20_000)
    };
    let ran = simulate(&plan, sim());
    assert_eq!(ran.data.verdict, Verdict::Complete);
    assert_eq!(ran.data.end.at_ns - ran.data.begin.at_ns, 5 * NS_PER_S);
    assert!(ran.rows.iter().all(|row| row.rows == Some(63)));
    let mut stamps: Vec<u64> = ran
        .rows
        .iter()
        .filter_map(|row| match row.op {
            Op::Update { stamp, .. } => Some(stamp),
            _ => None,
        })
        .collect();
    let updates = stamps.len();
    assert!(updates > 100);
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(stamps.len(), updates);
}

#[test]
fn slob_20_commits_are_updates_or_every_tenth_of_them() {
    for (commit_every, commits) in [(1, 2_000), (10, 200)] {
        let plan = Plan { update_pct: 100, commit_every, work_loop: 500, ..Plan::plain(4, 1, 20_000) };
        let ran = simulate(&plan, sim());
        assert_eq!(ran.data.end.stats.get(counter_catalog::USER_COMMITS), Some(commits));
        assert_eq!(ran.data.end.stats.get(counter_catalog::EXECUTE_COUNT), Some(2_000));
    }
}

#[test]
fn a_long_run_keeps_a_bounded_series_that_still_adds_up() {
    let plan = Plan { run_time_ns: 7_200 * NS_PER_S, warmup_ns: 30 * NS_PER_S, ..Plan::plain(1, 1, 20_000) };
    let slow = SimOptions { select: Delay::Fixed(300 * MS), ..SimOptions::default() };
    let ran = simulate(&plan, slow);
    let data = &ran.data;
    assert!((450..=901).contains(&data.series.len()), "{}", data.series.len());
    let seconds = ran.told.marks.iter();
    assert_eq!(seconds.filter(|(mark, _)| *mark == Mark::Second).count(), 7_229);
    let steps: Vec<u64> = data.series.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect();
    assert!(steps.iter().all(|&ns| (NS_PER_S..=16 * NS_PER_S).contains(&ns)));
    let last = data.series.last().map(|snapshot| ops(&snapshot.driver));
    assert_eq!(last, Some(ops(&data.end.driver)));
}

#[test]
fn snapshots_that_an_observer_makes_a_series_of_are_not_kept() {
    let plan = Plan { work_loop: 500, ..Plan::plain(1, 1, 20_000) };
    let slow = || SimOptions { select: Delay::Fixed(100 * MS), ..SimOptions::default() };
    let told = Told { makes_series: true, ..Told::default() };
    let kept = simulate(&plan, slow());
    let ran = try_simulate(&plan, slow(), told).expect("a run that ends");
    assert!(kept.data.series.len() >= 49, "{}", kept.data.series.len());
    assert_eq!(ran.data.series.len(), 0);
    let seconds = |ran: &Ran| -> Vec<(Mark, u64)> {
        let marks = ran.told.marks.iter();
        marks.map(|(mark, now)| (*mark, ops(&now.driver))).collect()
    };
    assert_eq!(seconds(&ran), seconds(&kept));
    assert_eq!(ops(&ran.data.end.driver), 500);
}

#[test]
fn slob_25_all_sessions_begin_at_the_gate() {
    let plan = Plan { work_loop: 5, ..Plan::plain(256, 1, 20_000) };
    let ran = simulate(&plan, sim());
    assert_eq!(ran.data.per_session.len(), 256);
    assert!(ran.data.per_session.iter().all(|session| session.first_op_ns == Some(0)));
}
