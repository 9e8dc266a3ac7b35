//! What holds for every run, whatever the plan and however the target behaves.

use crate::common::{Ran, Told, ops, try_simulate};
use assay_measure::clock::NS_PER_S;
use assay_measure::counter_catalog;
use assay_measure::snapshot::{RunData, Snapshot};
use assay_run::plan::{HotSpot, Plan, Think};
use assay_testkit::sim_engine::{Delay, Fault, SimOptions, Stall};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn delay() -> impl Strategy<Value = Delay> {
    prop_oneof![
        (1_u64..20 * MS).prop_map(Delay::Fixed),
        (1_u64..5 * MS, 5 * MS..30 * MS).prop_map(|(low, high)| Delay::Uniform(low, high)),
        (10_000_u64..10 * MS).prop_map(Delay::Exponential),
        (100_u64..100_000).prop_map(Delay::PerRow),
    ]
}

fn target() -> impl Strategy<Value = SimOptions> {
    let faults = prop::collection::vec((1_u32..6, 0_u64..30, 1_u32..3, any::<bool>()), 0..5);
    let stall = (0_u64..3 * NS_PER_S, 1_u64..2 * NS_PER_S);
    (delay(), delay(), delay(), faults, stall, 0_usize..4, any::<bool>()).prop_map(
        |(select, update, scan, faults, (from_ns, length_ns), room, blocking)| SimOptions {
            select,
            update,
            scan,
            faults: faults
                .into_iter()
                .map(|(session, i, attempts, retryable)| Fault { session, i, attempts, retryable })
                .collect(),
            stalls: vec![Stall { from_ns, until_ns: from_ns + length_ns }],
            room,
            blocking,
            ..SimOptions::default()
        },
    )
}

/// A third of the plans each: closed loop, with think time, under a rate.
fn plans() -> impl Strategy<Value = Plan> {
    let shape = (1_u32..4, 1_u32..4, 0_u32..=100, 0_u32..=100);
    let time = (1_u64..5 * NS_PER_S, 0_u64..3 * NS_PER_S, 0_u64..40, 0_u64..3);
    let pace = (0_u32..3, 1_u64..6, 1_u64..400);
    (shape, time, pace, any::<u64>()).prop_map(|(shape, time, pace, seed)| {
        let (schemas, threads, update_pct, scan_pct) = shape;
        let (run_time_ns, warmup_ns, work_loop, cap_s) = time;
        let (pace, frequency, per_s) = pace;
        let fixed = work_loop >= 30;
        let think = Think { frequency, min_ns: MS, max_ns: 50 * MS };
        Plan {
            update_pct,
            scan_pct,
            scan_blocks: 16,
            run_time_ns,
            warmup_ns: if fixed { 0 } else { warmup_ns },
            work_loop: if fixed { work_loop } else { 0 },
            max_run_time_ns: (fixed && cap_s > 0).then_some(cap_s * NS_PER_S),
            think: (pace == 1).then_some(think),
            rate_per_s: if pace == 2 { per_s } else { 0 },
            hot_schema_frequency: frequency - 1,
            hot_spot: (frequency > 3).then_some(HotSpot { offset_blocks: 5, size_blocks: 200, frequency }),
            seed,
            ..Plan::plain(schemas, threads, 5_000)
        }
    })
}

fn check_counts(plan: &Plan, ran: &Ran) -> Result<(), TestCaseError> {
    let drained = &ran.data.drained.driver;
    let failed = ran.rows.iter().filter(|row| row.rows.is_none()).count() as u64;
    prop_assert_eq!(ops(drained) + failed, ran.rows.len() as u64);
    prop_assert_eq!(drained.errors.values().sum::<u64>(), failed);
    prop_assert_eq!(drained.in_flight, 0);
    prop_assert_eq!(drained.sessions_active, 0);
    prop_assert_eq!(ran.data.drained.stats.get(counter_catalog::EXECUTE_COUNT), Some(ops(drained)));
    let traced: u64 = ran.rows.iter().map(|row| row.service_ns).sum();
    prop_assert_eq!(drained.busy_ns, traced);
    // Each session's operations are numbered without a gap and follow each other in time.
    for session in &ran.data.per_session {
        let mine = ran.rows.iter().filter(|row| u64::from(row.session) == session.session);
        let mut free_at = 0;
        for (i, row) in mine.enumerate() {
            prop_assert_eq!(row.i, i as u64);
            prop_assert!(row.start_ns >= free_at);
            free_at = row.start_ns + row.service_ns;
        }
        prop_assert!(plan.work_loop == 0 || session.ops <= plan.work_loop);
    }
    Ok(())
}

fn check_time(plan: &Plan, data: &RunData, ran: &Ran) -> Result<(), TestCaseError> {
    prop_assert!(data.begin.at_ns <= data.end.at_ns && data.end.at_ns <= data.drained.at_ns);
    if plan.work_loop == 0 {
        prop_assert!(data.end.at_ns >= plan.warmup_ns + plan.run_time_ns);
        let end_ns = plan.warmup_ns + plan.run_time_ns;
        prop_assert!(ran.rows.iter().all(|row| row.start_ns < end_ns));
    }
    if plan.rate_per_s == 0 {
        // Operations and pauses fill a session's time from its first to its last operation.
        for session in &data.per_session {
            let first = session.first_op_ns.unwrap_or(0);
            let last = session.last_op_ns.unwrap_or(0);
            prop_assert!(session.busy_ns + session.think_ns >= last.saturating_sub(first));
        }
    } else {
        for op in &data.drained.driver.ops {
            prop_assert!(op.response.sum_ns() >= op.service.sum_ns());
            prop_assert_eq!(op.response.count(), op.service.count());
        }
    }
    Ok(())
}

fn check_series(data: &RunData) -> Result<(), TestCaseError> {
    let all: Vec<&Snapshot> = [&data.gate].into_iter().chain(&data.series).chain([&data.drained]).collect();
    for pair in all.windows(2) {
        prop_assert!(pair[0].at_ns <= pair[1].at_ns);
        prop_assert!(ops(&pair[0].driver) <= ops(&pair[1].driver));
        prop_assert!(pair[0].driver.busy_ns <= pair[1].driver.busy_ns);
        prop_assert!(pair[0].driver.think_ns <= pair[1].driver.think_ns);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_run_adds_up(plan in plans(), sim in target()) {
        let ran = try_simulate(&plan, sim, Told::default());
        let ran = ran.map_err(|error| TestCaseError::fail(error.0.to_string()))?;
        check_counts(&plan, &ran)?;
        check_time(&plan, &ran.data, &ran)?;
        check_series(&ran.data)?;
        prop_assert_eq!(ran.closes, 1);
    }
}
