use super::*;
use assay_measure::prng::{Purpose, Stream};
use proptest::prelude::*;

/// Seeded series: `level(second)` times the exponential of noise with this carry-over and this
/// standard deviation as a whole.
fn series(n: usize, seed: u64, carry: f64, sigma: f64, level: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut random = Stream::new(seed, 1, Purpose::Test);
    let mut normal = || ((0..12).map(|_| random.uniform_f64()).sum::<f64>() - 6.0) * (1.0 - carry * carry).sqrt();
    let mut noise = normal() / (1.0 - carry * carry).sqrt();
    (0..n)
        .map(|second| {
            let value = level(second) * (sigma * noise).exp();
            noise = carry * noise + normal();
            value
        })
        .collect()
}

fn seconds(values: &[f64]) -> Vec<Second> {
    let second = |(at, value): (usize, &f64)| Second {
        end_s: (at + 1) as f64,
        value: *value,
        bytes_per_s: value * 8192.0,
        read_bytes: 0,
        written_bytes: (values[..=at].iter().sum::<f64>() * 8192.0) as u64,
    };
    values.iter().enumerate().map(second).collect()
}

fn splits(values: &[f64]) -> Vec<usize> {
    let found = change::shape(values).splits;
    found.iter().map(|split| split.at).collect()
}

/// Share of seeded series without any change for which one is named.
fn false_alarms(n: usize, carry: f64, sigma: f64, tries: u64) -> f64 {
    let alarms = (0..tries).filter(|seed| {
        let shape = change::shape(&series(n, *seed, carry, sigma, |_| 1000.0));
        !shape.splits.is_empty() || shape.drift.is_some()
    });
    alarms.count() as f64 / tries as f64
}

#[test]
fn io_false_alarms_are_rare_on_white_and_on_carried_noise() {
    for (n, carry, sigma) in [
        (30, 0.0, 0.1),
        (60, 0.0, 0.02),
        (60, 0.0, 0.2),
        (60, 0.5, 0.1),
        (120, 0.3, 0.1),
        (120, 0.7, 0.1),
        (300, 0.5, 0.2),
    ] {
        let share = false_alarms(n, carry, sigma, 200);
        assert!(share <= 0.05, "n {n}, carry {carry}, sigma {sigma}: {share}");
    }
}

#[test]
fn io_a_drop_is_found_where_it_is() {
    for (n, at, to, sigma, carry) in [
        (60, 30, 0.8, 0.03, 0.0),
        (60, 6, 0.5, 0.05, 0.0),
        (60, 50, 0.5, 0.05, 0.3),
        (120, 40, 0.7, 0.05, 0.5),
        (30, 10, 0.3, 0.1, 0.0),
        (600, 100, 0.85, 0.05, 0.3),
        (3000, 2000, 0.8, 0.1, 0.3),
    ] {
        let level = |second: usize| if second < at { 1000.0 } else { 1000.0 * to };
        let hits = (0..40).filter(|seed| {
            let found = splits(&series(n, *seed, carry, sigma, level));
            let near = (n / 100).max(2);
            found.len() == 1 && found[0].abs_diff(at) <= near
        });
        let share = hits.count() as f64 / 40.0;
        assert!(share >= 0.9, "n {n}, at {at}, to {to}: {share}");
    }
}

#[test]
fn io_a_hard_cap_after_a_noisy_burst_is_a_level_and_no_drift() {
    // A throttle holds the rate to the last I/O, so one side has noise and the other none.
    for (seed, burst, cap) in [(1, 12, 12), (2, 13, 11), (3, 20, 40), (4, 40, 20), (5, 6, 30)] {
        let noisy = series(burst, seed, 0.3, 0.1, |_| 70_000.0);
        let held: Vec<f64> = (0..cap).map(|s| 2000.0 + (s % 3) as f64).collect();
        let shape = change::shape(&[noisy, held].concat());
        let found: Vec<usize> = shape.splits.iter().map(|split| split.at).collect();
        assert_eq!((found, shape.drift), (vec![burst], None), "seed {seed}");
    }
}

#[test]
fn io_two_changes_are_two_and_a_pulse_is_found() {
    let stairs = |second: usize| [3000.0, 2000.0, 500.0][second / 40];
    let found = splits(&series(120, 7, 0.2, 0.05, stairs));
    assert_eq!(found, [40, 80]);
    let pulse = |second: usize| {
        if (40..55).contains(&second) { 300.0 } else { 1000.0 }
    };
    assert_eq!(splits(&series(120, 8, 0.0, 0.05, pulse)), [40, 55]);
}

#[test]
fn io_single_stalls_are_no_level() {
    let stall = |second: usize| if second % 23 == 11 { 10.0 } else { 1000.0 };
    assert_eq!(splits(&series(120, 3, 0.2, 0.03, stall)), Vec::<usize>::new());
}

#[test]
fn io_false_alarms_are_rare_where_seconds_stall_now_and_then() {
    for (n, carry, share) in [(60, 0.0, 0.05), (120, 0.3, 0.05), (300, 0.0, 0.05)] {
        let alarms = (0..200).filter(|seed| {
            let mut random = Stream::new(*seed, 2, Purpose::Test);
            let mut values = series(n, *seed, carry, 0.05, |_| 1000.0);
            for value in &mut values {
                if random.uniform_f64() < share {
                    *value *= 0.2;
                }
            }
            let shape = change::shape(&values);
            !shape.splits.is_empty() || shape.drift.is_some()
        });
        let count = alarms.count();
        assert!(count <= 10, "n {n}, carry {carry}, stalls {share}: {count} of 200");
    }
}

#[test]
fn io_a_ramp_drifts_and_has_no_levels() {
    let ramp = |second: usize| 1000.0 + 10.0 * second as f64;
    let shape = change::shape(&series(60, 5, 0.0, 0.02, ramp));
    assert_eq!(shape.splits, []);
    let drift = shape.drift.unwrap();
    assert!((drift - 0.6).abs() < 0.1, "{drift}");
}

#[test]
fn io_a_flat_line_and_too_short_a_series_have_no_changes() {
    assert_eq!(change::shape(&[3000.0; 60]), change::Shape::default());
    assert_eq!(change::shape(&[1.0, 9.0, 1.0]), change::Shape::default());
    let reason = analyse(&seconds(&[5.0; 9])).unwrap_err();
    assert_eq!(reason, "9 whole seconds, 10 are needed");
    assert!(analyse(&seconds(&[0.0; 20])).is_err());
}

#[test]
fn io_a_sharp_step_in_a_flat_line_is_exact_and_says_what_was_moved() {
    let values: Vec<f64> = (0..40).map(|s| if s < 12 { 3000.0 } else { 1000.0 }).collect();
    let found = analyse(&seconds(&values)).unwrap();
    assert_eq!(found.changes.len(), 1);
    let change = &found.changes[0];
    assert_eq!(change.at_s, Figure::Decimal(12.0));
    assert_eq!(change.written_bytes, 12 * 3000 * 8192);
    assert!((change.ratio.value().unwrap() - 1.0 / 3.0).abs() < 1e-9);
    assert!(change.chance_ratio.value().unwrap() <= 0.01);
    let level = |at: usize| {
        let level = &found.levels[at];
        [&level.from_s, &level.to_s, &level.median].map(|f| f.value().unwrap())
    };
    assert_eq!(level(0), [0.0, 12.0, 3000.0]);
    assert_eq!(level(1), [12.0, 40.0, 1000.0]);
}

#[test]
fn io_dips_at_regular_distances_have_a_period_and_others_have_not() {
    let dips = |second: usize| if second % 10 == 4 { 300.0 } else { 1000.0 };
    let found = analyse(&seconds(&series(60, 2, 0.2, 0.05, dips))).unwrap();
    let period = found.period.unwrap();
    assert_eq!(period.seconds, 10);
    assert!((period.left - 0.3).abs() < 0.1, "{}", period.left);
    let irregular = |second: usize| {
        if [3, 8, 21, 24, 41, 55].contains(&second) { 300.0 } else { 1000.0 }
    };
    let found = analyse(&seconds(&series(60, 2, 0.2, 0.05, irregular))).unwrap();
    assert_eq!(found.period, None);
}

#[test]
fn io_a_period_is_hardly_ever_named_in_noise() {
    let named = (0..300).filter(|seed| {
        let values = series(90, *seed, 0.5, 0.1, |_| 1000.0);
        period::period(&values, &[1000.0; 90]).is_some()
    });
    let count = named.count();
    assert!(count <= 9, "{count} of 300");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn io_any_series_has_levels_that_cover_it(values in prop::collection::vec(0.0_f64..1e6, 0..200)) {
        let seconds = seconds(&values);
        let Ok(found) = analyse(&seconds) else { return Ok(()); };
        prop_assert_eq!(found.levels.len(), found.changes.len() + 1);
        prop_assert_eq!(&found.levels[0].from_s, &Figure::Decimal(0.0));
        for pair in found.levels.windows(2) {
            prop_assert_eq!(&pair[0].to_s, &pair[1].from_s);
        }
        prop_assert_eq!(&found.levels.last().unwrap().to_s, &Figure::Decimal(values.len() as f64));
    }

    #[test]
    fn io_the_unit_does_not_matter(seed in 0_u64..50, factor in 1e-3_f64..1e6) {
        let level = |second: usize| if second < 25 { 1000.0 } else { 700.0 };
        let values = series(60, seed, 0.0, 0.05, level);
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        prop_assert_eq!(splits(&values), splits(&scaled));
    }
}
