//! What single sessions do, checked without clock or engine (slob-method 8).

use super::*;
use assay_run::plan::{HotSpot, Think};
use proptest::prelude::*;

fn steps(plan: &Plan, session: u32, n: usize) -> Vec<Step> {
    let mut source = Session::new(plan, session, plan.home_schema(session));
    (0..n).map(|_| source.next(plan)).collect()
}

fn is_update(step: &Step) -> bool {
    matches!(step.op, Op::Update { .. })
}

fn is_scan(step: &Step) -> bool {
    matches!(step.op, Op::Scan { .. })
}

/// (first key, width) of a range.
fn range(step: &Step) -> Option<(u64, u64)> {
    match step.op {
        Op::Select { first_key, width, .. } | Op::Update { first_key, width, .. } => {
            Some((first_key, u64::from(width)))
        }
        Op::Scan { .. } | Op::Call { .. } => None,
    }
}

fn schema(step: &Step) -> u32 {
    step.op.schema()
}

fn hot(offset_blocks: u64, size_blocks: u64, frequency: u64) -> Option<HotSpot> {
    Some(HotSpot { offset_blocks, size_blocks, frequency })
}

#[test]
fn slob_03_every_window_of_100_holds_exactly_update_pct_updates() {
    for update_pct in [5, 10, 25, 50, 60, 75, 95] {
        let plan = Plan { update_pct, ..Plan::plain(1, 4, 20_000) };
        for session in 1..=4 {
            for window in steps(&plan, session, 5_000).chunks(100) {
                let updates = window.iter().filter(|step| is_update(step)).count();
                assert_eq!(updates, update_pct as usize, "session {session}");
            }
        }
    }
}

#[test]
fn slob_04_update_positions_are_not_bunched() {
    let plan = Plan { update_pct: 20, ..Plan::plain(1, 1, 20_000) };
    let steps = steps(&plan, 1, 100_000);
    let positions: Vec<f64> = (0..steps.len()).filter(|&i| is_update(&steps[i])).map(|i| (i % 100) as f64).collect();
    let mean = positions.iter().sum::<f64>() / positions.len() as f64;
    assert!((mean - 49.5).abs() <= 1.5, "mean position {mean}");
}

#[test]
fn slob_05_scans_are_an_exact_share_of_selects() {
    let plan = Plan { update_pct: 20, scan_pct: 50, scan_blocks: 128, ..Plan::plain(1, 1, 20_000) };
    let steps = steps(&plan, 1, 10_000);
    let updates = steps.iter().filter(|step| is_update(step)).count();
    let scans = steps.iter().filter(|step| is_scan(step)).count();
    assert_eq!((updates, steps.len() - updates - scans, scans), (2000, 4000, 4000));
}

#[test]
fn slob_06_ranges_are_work_unit_keys_inside_the_table() {
    for work_unit in [1, 3, 64, 255, 1024] {
        let plan = Plan { work_unit, ..Plan::plain(1, 1, 20_000) };
        for step in steps(&plan, 1, 2_000) {
            let (first, width) = range(&step).expect("no scans were asked for");
            assert_eq!(width, u64::from(work_unit));
            assert!(first >= 1 && first + width - 1 <= 20_000);
        }
    }
}

/// Upper 0.1 % point of chi-square with 99 degrees of freedom.
const CHI_SQUARE_99: f64 = 148.23;

fn chi_square(values: impl Iterator<Item = u64>, low: u64, count: u64) -> f64 {
    let mut bins = [0_u64; 100];
    let mut n = 0_u64;
    for value in values {
        bins[((value - low) * 100 / count) as usize] += 1;
        n += 1;
    }
    // Bins of a range that 100 does not divide differ by one value.
    (0..100_u64)
        .map(|bin| {
            let values = (0..count).len_of_bin(bin);
            let expected = n as f64 * values as f64 / count as f64;
            (bins[bin as usize] as f64 - expected).powi(2) / expected
        })
        .sum()
}

trait Bins {
    fn len_of_bin(&self, bin: u64) -> u64;
}

impl Bins for std::ops::Range<u64> {
    /// Values v of 0..end with v * 100 / end = bin.
    fn len_of_bin(&self, bin: u64) -> u64 {
        let first = |bin: u64| (bin * self.end).div_ceil(100);
        first(bin + 1) - first(bin)
    }
}

#[test]
fn slob_07_start_keys_are_uniform_and_reach_both_ends() {
    let plan = Plan::plain(1, 1, 20_000);
    let starts: Vec<u64> =
        steps(&plan, 1, 100_000).iter().filter_map(|step| range(step).map(|(first, _)| first)).collect();
    let chi = chi_square(starts.iter().copied(), 1, 20_000 - 64 + 1);
    assert!(chi < CHI_SQUARE_99, "chi-square {chi}");
    // A small table shows that the ends are reached.
    let small = Plan::plain(1, 1, 1_000);
    let starts: Vec<u64> =
        steps(&small, 1, 20_000).iter().filter_map(|step| range(step).map(|(first, _)| first)).collect();
    assert!(starts.contains(&1));
    assert!(starts.contains(&(1_000 - 64 + 1)));
}

#[test]
fn slob_07_wrapped_ranges_visit_every_key_alike() {
    let plan = Plan { edge: Edge::Wrap, ..Plan::plain(1, 1, 1_000) };
    let starts: Vec<u64> =
        steps(&plan, 1, 100_000).iter().filter_map(|step| range(step).map(|(first, _)| first)).collect();
    assert_eq!(starts.iter().min(), Some(&1));
    assert_eq!(starts.iter().max(), Some(&1_000));
    assert!(chi_square(starts.into_iter(), 1, 1_000) < CHI_SQUARE_99);
}

#[test]
fn slob_08_updates_have_a_work_unit_of_their_own() {
    let plan = Plan { update_pct: 50, work_unit: 255, update_work_unit: 8, ..Plan::plain(1, 1, 20_000) };
    for step in steps(&plan, 1, 1_000) {
        let (_, width) = range(&step).expect("no scans were asked for");
        assert_eq!(width, if is_update(&step) { 8 } else { 255 });
    }
}

#[test]
fn slob_10_one_operation_of_each_group_goes_to_the_hot_window() {
    let plan = Plan { hot_spot: hot(2_048, 1_024, 3), ..Plan::plain(1, 1, 20_000) };
    let steps = steps(&plan, 1, 3_000);
    for group in steps.chunks(3) {
        assert_eq!(group.iter().filter(|step| step.hot_spot).count(), 1);
    }
    for step in steps.iter().filter(|step| step.hot_spot) {
        let (first, width) = range(step).expect("no scans were asked for");
        assert!(first > 2_048 && first + width - 1 <= 2_048 + 1_024);
    }
    let cold = steps.iter().filter(|step| !step.hot_spot);
    let cold = cold.filter_map(|step| range(step).map(|(first, _)| first));
    assert!(chi_square(cold, 1, 20_000 - 64 + 1) < CHI_SQUARE_99);
    let always = Plan { hot_spot: hot(2_048, 1_024, 1), ..plan };
    assert!(self::steps(&always, 1, 100).iter().all(|step| step.hot_spot));
}

#[test]
fn slob_11_hot_windows_at_the_ends_stay_legal_and_are_reached_whole() {
    for offset in [0, 20_000 - 128] {
        let plan = Plan { hot_spot: hot(offset, 128, 1), ..Plan::plain(1, 1, 20_000) };
        let starts: Vec<u64> =
            steps(&plan, 1, 5_000).iter().filter_map(|step| range(step).map(|(first, _)| first)).collect();
        assert_eq!(starts.iter().min(), Some(&(offset + 1)));
        assert_eq!(starts.iter().max(), Some(&(offset + 128 - 64 + 1)));
    }
}

#[test]
fn slob_14_one_operation_of_each_group_goes_to_schema_1() {
    let plan = Plan { hot_schema_frequency: 4, ..Plan::plain(8, 1, 20_000) };
    for session in 1..=8 {
        let steps = steps(&plan, session, 4_000);
        assert_eq!(steps.iter().filter(|step| step.hot_schema).count(), 1_000);
        let in_first = steps.iter().filter(|step| schema(step) == 1).count();
        assert_eq!(in_first, if session == 1 { 4_000 } else { 1_000 });
        assert!(steps.iter().all(|step| schema(step) == 1 || schema(step) == session));
    }
}

#[test]
fn slob_15_features_do_not_fall_into_step() {
    let plan = Plan { hot_schema_frequency: 2, scan_pct: 50, scan_blocks: 128, ..Plan::plain(2, 1, 20_000) };
    let steps = steps(&plan, 2, 10_000);
    let scans: Vec<&Step> = steps.iter().filter(|step| is_scan(step)).collect();
    let share = scans.iter().filter(|step| schema(step) == 1).count() as f64 / scans.len() as f64;
    assert!((share - 0.5).abs() <= 0.03, "{share}");

    let plan = Plan { hot_schema_frequency: 2, hot_spot: hot(0, 1_024, 4), ..Plan::plain(2, 1, 20_000) };
    let steps = self::steps(&plan, 2, 10_000);
    let joint = steps.iter().filter(|step| step.hot_spot && step.hot_schema).count();
    let share = joint as f64 / steps.len() as f64;
    assert!((share - 0.125).abs() <= 0.015, "{share}");
}

#[test]
fn slob_16_first_operations_do_not_hit_the_hot_schema_together() {
    let plan = Plan { hot_schema_frequency: 8, ..Plan::plain(64, 1, 20_000) };
    let hits = (1..=64).filter(|&session| steps(&plan, session, 1)[0].hot_schema).count();
    assert!((1..=16).contains(&hits), "{hits} of 64");
}

#[test]
fn slob_17_one_pause_in_each_group_within_its_limits() {
    let think = Think { frequency: 5, min_ns: 100_000_000, max_ns: 500_000_000 };
    let plan = Plan { think: Some(think), ..Plan::plain(1, 2, 20_000) };
    for session in 1..=2 {
        let pauses: Vec<u64> = steps(&plan, session, 1_000).iter().filter_map(|step| step.think_ns).collect();
        assert_eq!(pauses.len(), 200);
        assert!(pauses.iter().all(|ns| (think.min_ns..=think.max_ns).contains(ns)));
        let mean = pauses.iter().sum::<u64>() as f64 / 200.0;
        assert!((mean - 300e6).abs() <= 30e6, "{mean}");
    }
    let never = Plan { think: None, ..plan };
    assert!(steps(&never, 1, 100).iter().all(|step| step.think_ns.is_none()));
}

#[test]
fn slob_44_a_seed_fixes_every_session_and_no_two_share_keys() {
    let plan =
        Plan { update_pct: 30, hot_spot: hot(100, 500, 3), hot_schema_frequency: 5, ..Plan::plain(4, 2, 20_000) };
    let other_seed = Plan { seed: 2, ..plan.clone() };
    for session in 1..=8 {
        let once = steps(&plan, session, 500);
        assert_eq!(once, steps(&plan, session, 500));
        assert_ne!(once, steps(&other_seed, session, 500));
    }
    let keys = |session| -> Vec<_> { steps(&plan, session, 500).iter().map(range).collect() };
    for one in 1..=8 {
        for other in one + 1..=8 {
            assert_ne!(keys(one), keys(other), "sessions {one} and {other}");
        }
    }
}

#[test]
fn stamps_differ_for_every_session_operation_and_run() {
    let mut seen = std::collections::HashSet::new();
    for run_stamp in 1..=4 {
        let plan = Plan { update_pct: 100, run_stamp, ..Plan::plain(1, 4, 20_000) };
        for session in 1..=4 {
            for step in steps(&plan, session, 2_000) {
                let Op::Update { stamp, .. } = step.op else {
                    panic!("not an update: {step:?}");
                };
                assert!(seen.insert(stamp), "stamp {stamp:x} twice");
            }
        }
    }
}

#[test]
fn update_hot_spot_confines_updates_alone() {
    let plan = Plan { update_pct: 50, update_keys: 2_000, ..Plan::plain(1, 1, 20_000) };
    let last = |update: bool| {
        steps(&plan, 1, 20_000)
            .iter()
            .filter(|step| is_update(step) == update)
            .filter_map(|step| range(step).map(|(first, width)| first + width - 1))
            .max()
    };
    assert_eq!(last(true), Some(2_000));
    assert!(last(false) > Some(19_000));
}

#[test]
fn commit_every_tenth_update() {
    let plan = Plan { update_pct: 50, commit_every: 10, ..Plan::plain(1, 1, 20_000) };
    let commits: Vec<bool> = steps(&plan, 1, 1_000)
        .iter()
        .filter_map(|step| match step.op {
            Op::Update { commit, .. } => Some(commit),
            _ => None,
        })
        .collect();
    assert_eq!(commits.iter().filter(|&&commit| commit).count(), 50);
    assert!(commits.chunks(10).all(|ten| ten[9] && !ten[..9].contains(&true)));
}

#[test]
fn bernoulli_keeps_the_share_but_not_the_window() {
    let plan = Plan { update_pct: 25, mix: Mix::Bernoulli, ..Plan::plain(1, 1, 20_000) };
    let steps = steps(&plan, 1, 100_000);
    let updates = steps.iter().filter(|step| is_update(step)).count();
    assert!((24_000..=26_000).contains(&updates), "{updates}");
    let windows: std::collections::HashSet<usize> =
        steps.chunks(100).map(|window| window.iter().filter(|step| is_update(step)).count()).collect();
    assert!(windows.len() > 5);
}

fn slob253(plan: Plan) -> Plan {
    Plan { compat: Compat::Slob253, mix: Mix::Slob253, ..plan }
}

#[test]
fn compat_bunches_updates_and_falls_short_as_published() {
    // Delivered shares published for the quota window: 40 -> 39.97, 45 -> 44.6, 50 -> 48.1.
    for (asked, delivered) in [(10, 10.0), (40, 39.97), (45, 44.6), (50, 48.1)] {
        let plan = slob253(Plan { update_pct: asked, ..Plan::plain(1, 1, 20_000) });
        let steps = steps(&plan, 1, 400_000);
        let updates = steps.iter().filter(|step| is_update(step)).count();
        let share = updates as f64 / 4_000.0;
        assert!((share - delivered).abs() < 0.1, "{asked} -> {share}");
    }
}

#[test]
fn compat_touches_one_row_less_and_never_key_1() {
    let plan = slob253(Plan::plain(1, 1, 1_000));
    let ranges: Vec<(u64, u64)> = steps(&plan, 1, 50_000).iter().filter_map(range).collect();
    assert!(ranges.iter().all(|&(_, width)| width == 63));
    let first = ranges.iter().map(|&(first, _)| first).min();
    let last = ranges.iter().map(|&(first, width)| first + width - 1).max();
    // Keys 1 and the top WORK_UNIT+1 are never touched.
    assert_eq!((first, last), (Some(2), Some(1_000 - 64 - 1)));
}

#[test]
fn compat_counts_hot_features_by_the_loop_counter() {
    let plan = slob253(Plan { hot_schema_frequency: 4, hot_spot: hot(0, 1_024, 2), ..Plan::plain(8, 1, 20_000) });
    for session in 2..=8 {
        for (i, step) in steps(&plan, session, 1_000).iter().enumerate() {
            assert_eq!(step.hot_schema, i % 4 == 0);
            assert_eq!(step.hot_spot, i % 2 == 0);
            let (first, width) = range(step).expect("no scans were asked for");
            assert!(first >= 1 && first + width - 1 <= 20_000);
        }
    }
}

#[test]
fn compat_thinks_by_the_key_drawn_before() {
    let plan = slob253(Plan {
        think: Some(Think { frequency: 7, min_ns: 100_000_000, max_ns: 200_000_000 }),
        ..Plan::plain(1, 1, 20_000)
    });
    let steps = steps(&plan, 1, 20_000);
    let mut last_key = 1;
    for step in &steps {
        assert_eq!(step.think_ns.is_some(), last_key % 7 == 0);
        let (first, width) = range(step).expect("no scans were asked for");
        last_key = first + width;
    }
    let pauses: Vec<u64> = steps.iter().filter_map(|step| step.think_ns).collect();
    assert!(pauses.iter().all(|ns| ns % 10_000_000 == 0));
    assert!(pauses.iter().all(|ns| (100_000_000..=200_000_000).contains(ns)));
}

#[test]
fn compat_sends_every_scan_of_an_even_hot_schema_to_schema_1() {
    // The published aliasing: both features look at the same counter.
    let plan = slob253(Plan { hot_schema_frequency: 2, scan_pct: 50, scan_blocks: 128, ..Plan::plain(2, 1, 20_000) });
    let steps = steps(&plan, 2, 2_000);
    assert!(steps.iter().any(is_scan));
    assert!(steps.iter().filter(|step| is_scan(step)).all(|step| schema(step) == 1));
}

proptest! {
    #[test]
    fn every_range_is_legal_under_every_rule(
        seed in any::<u64>(),
        scale in 200_u64..5_000,
        work_unit in 3_u32..90,
        update_pct in 0_u32..=50,
        offset in 0_u64..50,
        size in 90_u64..150,
        compat in any::<bool>(),
        bernoulli in any::<bool>(),
    ) {
        let plan = Plan {
            seed,
            work_unit,
            update_work_unit: work_unit,
            update_pct,
            scan_pct: 10,
            scan_blocks: 4,
            hot_spot: hot(offset, size, 3),
            compat: if compat { Compat::Slob253 } else { Compat::None },
            mix: match (compat, bernoulli) {
                (_, true) => Mix::Bernoulli,
                (true, _) => Mix::Slob253,
                _ => Mix::Exact,
            },
            ..Plan::plain(3, 1, scale)
        };
        for step in steps(&plan, 2, 300) {
            if let Some((first, width)) = range(&step) {
                prop_assert!(first >= 1 && first + width - 1 <= scale);
                prop_assert_eq!(width, plan.rows_expected(&step.op));
            }
        }
    }
}
