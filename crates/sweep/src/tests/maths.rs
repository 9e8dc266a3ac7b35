//! The maths on curves whose answer is known.

use crate::auto::{Limits, next};
use crate::knee::{self, Kept, Knee, Point};
use crate::usl::{self, Law, Redrawn};
use assay_measure::prng::{Purpose, Stream};
use proptest::prelude::*;

const DOUBLINGS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

fn curve(loads: &[u64], rate: impl Fn(f64) -> f64) -> Vec<Point> {
    let point = |load: &u64| Point { load: *load, rate: rate(*load as f64), us_p99: None };
    loads.iter().map(point).collect()
}

fn measured(points: &[Point], error: f64) -> Vec<usl::Point> {
    let point = |point: &Point| usl::Point { load: point.load as f64, rate: point.rate, error };
    points.iter().map(point).collect()
}

fn knee_load(points: &[Point]) -> Option<u64> {
    match knee::knee(points) {
        Knee::At(at) => Some(points[at].load),
        _ => None,
    }
}

#[test]
fn the_knee_of_doublings_is_the_last_step_with_five_percent() {
    let rates = [100.0, 195.0, 360.0, 500.0, 524.0, 540.0, 530.0];
    let points = curve(&DOUBLINGS, |n| rates[n.log2() as usize]);
    assert_eq!(knee_load(&points), Some(8));
    // 525 is 5 % over 500: the border itself is a gain.
    let rates = [100.0, 195.0, 360.0, 500.0, 525.0, 540.0, 530.0];
    let points = curve(&DOUBLINGS, |n| rates[n.log2() as usize]);
    assert_eq!(knee_load(&points), Some(16));
}

#[test]
fn the_range_of_a_knee_grows_with_the_scatter_of_the_steps() {
    let points = curve(&DOUBLINGS, |n| 1000.0 * n.min(8.0));
    let range = |error| knee::range(&points, &vec![error; points.len()], 7);
    assert_eq!(range(0.0), Some((8, 8)));
    assert_eq!(range(0.005), Some((8, 8)));
    let (low, high) = range(0.05).expect("a curve");
    assert!(low <= 8 && high > 8, "{low} to {high}");
    assert_eq!(knee::range(&[], &[], 7), None);
}

#[test]
fn a_plateau_with_noise_has_its_knee_where_it_begins() {
    let mut random = Stream::new(7, 0, Purpose::Test);
    for _ in 0..200 {
        let noise: Vec<f64> = (0..64).map(|_| 1.0 + 0.01 * usl::normal(&mut random)).collect();
        let points = curve(&DOUBLINGS, |n| 1000.0 * n.min(8.0) * noise[n as usize - 1]);
        assert_eq!(knee_load(&points), Some(8));
    }
}

#[test]
fn small_steps_do_not_end_a_straight_line() {
    let loads: Vec<u64> = (1..=100).collect();
    assert_eq!(knee::knee(&curve(&loads, |n| 10.0 * n)), Knee::Beyond);
    let points = curve(&loads, |n| 10.0 * n.min(40.0));
    assert_eq!(knee_load(&points), Some(40));
}

#[test]
fn a_blip_after_a_fall_is_no_gain() {
    let rates = [100.0, 200.0, 400.0, 390.0, 300.0, 360.0, 320.0];
    let points = curve(&DOUBLINGS, |n| rates[n.log2() as usize]);
    assert_eq!(knee_load(&points), Some(4));
    assert!(knee::gains(&points)[5].is_some_and(|gain| gain < 0.0));
}

#[test]
fn where_there_is_no_knee_it_says_which_way_it_lies() {
    assert_eq!(knee::knee(&curve(&DOUBLINGS, |n| n)), Knee::Beyond);
    assert_eq!(knee::knee(&curve(&DOUBLINGS, |_| 5.0)), Knee::AtOrBelowFirst);
    assert_eq!(knee::knee(&curve(&[4], |n| n)), Knee::TooFew);
    assert_eq!(knee::knee(&[]), Knee::TooFew);
}

fn with_p99(p99: &[Option<f64>]) -> Vec<Point> {
    let mut points = curve(&DOUBLINGS[..p99.len()], |n| n);
    for (point, p99) in points.iter_mut().zip(p99) {
        point.us_p99 = *p99;
    }
    points
}

#[test]
fn the_goal_is_kept_up_to_the_first_step_that_breaks_it() {
    let kept = |p99: &[Option<f64>]| knee::kept(&with_p99(p99), 5000.0);
    assert_eq!(kept(&[Some(1e3), Some(5e3), Some(6e3), Some(4e3)]), Kept::Until(1));
    assert_eq!(kept(&[Some(1e3), None, Some(4e3)]), Kept::Throughout(2));
    assert_eq!(kept(&[Some(1e3), None, Some(6e3)]), Kept::Until(0));
    assert_eq!(kept(&[Some(6e3), Some(1e3)]), Kept::Never);
    assert_eq!(kept(&[None, None]), Kept::Unknown);
}

#[test]
fn usl_recovers_the_law_it_was_drawn_from() {
    for law in [
        Law { lambda: 1000.0, sigma: 0.05, kappa: 0.001 },
        Law { lambda: 3.5, sigma: 0.0, kappa: 0.0 },
        Law { lambda: 80_000.0, sigma: 1.0, kappa: 0.0 },
        Law { lambda: 10.0, sigma: 0.2, kappa: 0.0 },
        Law { lambda: 10.0, sigma: 0.0, kappa: 0.02 },
        Law { lambda: 10.0, sigma: 1.0, kappa: 0.02 },
    ] {
        let points = curve(&DOUBLINGS, |n| law.at(n));
        let found = usl::fit(&measured(&points, 0.0)).expect("a fit");
        assert!((found.lambda / law.lambda - 1.0).abs() < 1e-6, "{law:?} {found:?}");
        assert!((found.sigma - law.sigma).abs() < 1e-6, "{law:?} {found:?}");
        assert!((found.kappa - law.kappa).abs() < 1e-6, "{law:?} {found:?}");
    }
}

#[test]
fn the_peak_is_where_the_law_is_highest() {
    let law = Law { lambda: 100.0, sigma: 0.04, kappa: 0.0015 };
    let peak = law.peak();
    assert!(law.at(peak) > law.at(peak - 0.5) && law.at(peak) > law.at(peak + 0.5));
    assert_eq!(Law { kappa: 0.0, ..law }.peak(), f64::INFINITY);
}

#[test]
fn intervals_hold_the_truth_about_as_often_as_they_say() {
    let law = Law { lambda: 1000.0, sigma: 0.08, kappa: 0.002 };
    let mut random = Stream::new(11, 0, Purpose::Test);
    let (mut sigma, mut projected) = (0, 0);
    const CURVES: u64 = 60;
    for seed in 0..CURVES {
        let mut points = measured(&curve(&DOUBLINGS, |n| law.at(n)), 0.02);
        for point in &mut points {
            point.rate *= 1.0 + 0.02 * usl::normal(&mut random);
        }
        let fitted = usl::fit(&points).expect("a fit");
        let redrawn = Redrawn::new(fitted, &points, seed);
        let holds = |interval: usl::Interval, truth: f64| usize::from(interval.low <= truth && truth <= interval.high);
        sigma += holds(redrawn.interval(|law| law.sigma), law.sigma);
        projected += holds(redrawn.interval(|law| law.at(128.0)), law.at(128.0));
    }
    // 95 of 100 are meant; 60 curves allow a look, not a proof.
    assert!(sigma >= 51, "sigma: {sigma} of {CURVES}");
    assert!(projected >= 51, "projected: {projected} of {CURVES}");
}

proptest! {
    /// No law within the bounds comes closer than the fit.
    #[test]
    fn the_fit_is_the_best_there_is(
        rates in prop::collection::vec(1.0_f64..1000.0, 4..10),
        sigma in 0.0_f64..1.0,
        kappa in 0.0_f64..0.1,
        scale in 0.2_f64..5.0,
    ) {
        let loads: Vec<u64> = (1..=rates.len() as u64).collect();
        let points = measured(&curve(&loads, |n| rates[n as usize - 1]), 0.0);
        let squares = |law: &Law| usl::deviations(law, &points).iter().map(|d| d * d).sum::<f64>();
        let Some(fitted) = usl::fit(&points) else {
            // Every law is beaten by one that begins higher and only falls.
            let falls = |point: &usl::Point| point.rate * (point.load - 1.0);
            let sum: f64 = points.iter().map(falls).sum();
            let squared: f64 = points.iter().map(|point| falls(point).powi(2)).sum();
            let high = Law { lambda: 1e9, sigma: 0.0, kappa: 1e9 * sum / squared };
            let other = squares(&Law { lambda: rates[0] * scale, sigma, kappa });
            prop_assert!(squares(&high) <= other + 1e-5, "{} {other}", squares(&high));
            return Ok(());
        };
        prop_assert!(fitted.lambda > 0.0 && fitted.kappa >= 0.0);
        prop_assert!((0.0..=1.0).contains(&fitted.sigma));
        let other = Law { lambda: rates[0] * scale, sigma, kappa };
        prop_assert!(squares(&fitted) <= squares(&other) * (1.0 + 1e-9) + 1e-9);
        let nearby = Law {
            lambda: fitted.lambda * (1.0 + 0.01 * (scale - 2.0)),
            sigma: (fitted.sigma + 0.01 * (sigma - 0.5)).clamp(0.0, 1.0),
            kappa: (fitted.kappa * (0.98 + 0.4 * kappa)).max(0.0),
        };
        prop_assert!(squares(&fitted) <= squares(&nearby) * (1.0 + 1e-9) + 1e-9);
    }

    /// With noise of 1 % the law is found within a few percent of its throughput.
    #[test]
    fn noise_moves_the_fit_a_little(
        sigma in 0.0_f64..0.5,
        kappa in 0.0_f64..0.01,
        lambda in 1.0_f64..1e6,
        seed in any::<u64>(),
    ) {
        let law = Law { lambda, sigma, kappa };
        let mut random = Stream::new(seed, 0, Purpose::Test);
        let mut points = measured(&curve(&DOUBLINGS, |n| law.at(n)), 0.01);
        for point in &mut points {
            point.rate *= 1.0 + 0.01 * usl::normal(&mut random).clamp(-3.0, 3.0);
        }
        let fitted = usl::fit(&points).expect("a fit");
        for load in DOUBLINGS {
            let ratio = fitted.at(load as f64) / law.at(load as f64);
            prop_assert!((ratio - 1.0).abs() < 0.05, "{load}: {ratio} of {law:?}: {fitted:?}");
        }
    }

    /// An automatic sweep ends, never repeats a load, and never passes its bound.
    #[test]
    fn auto_ends_on_any_curve(
        rates in prop::collection::vec(0.0_f64..1000.0, 1..50),
        p99 in prop::collection::vec(prop::option::of(0.0_f64..10_000.0), 1..50),
        (least_load, max_load) in (1_u64..8).prop_flat_map(|least| (Just(least), least..2000)),
        goal in prop::option::of(0.0_f64..10_000.0),
        refuse_above in prop::option::of(1_u64..2000),
    ) {
        let limits = Limits { least_load, max_load, goal_us: goal };
        let mut points: Vec<Point> = Vec::new();
        let mut refused: Option<u64> = None;
        while let Some(load) = next(&points, refused, &limits) {
            prop_assert!(load >= least_load && load <= max_load);
            prop_assert!(points.iter().all(|point| point.load != load));
            prop_assert!(refused.is_none_or(|refused| load < refused));
            if refuse_above.is_some_and(|above| load > above) {
                refused = Some(load);
                continue;
            }
            let pick = load as usize;
            points.push(Point { load, rate: rates[pick % rates.len()], us_p99: p99[pick % p99.len()] });
            prop_assert!(points.len() < 40);
        }
    }
}

/// The loads an automatic sweep measures on a curve, in their order.
fn visited(limits: &Limits, rate: impl Fn(f64) -> f64, p99: impl Fn(f64) -> f64) -> Vec<u64> {
    let mut points: Vec<Point> = Vec::new();
    while let Some(load) = next(&points, None, limits) {
        points.push(Point { load, rate: rate(load as f64), us_p99: Some(p99(load as f64)) });
    }
    points.iter().map(|point| point.load).collect()
}

#[test]
fn auto_doubles_until_two_steps_gain_nothing_and_fills_in_around_the_knee() {
    let limits = Limits { least_load: 1, max_load: 1024, goal_us: None };
    let loads = visited(&limits, |n| n.min(16.0), |_| 1.0);
    assert_eq!(loads, [1, 2, 4, 8, 16, 32, 64, 12, 24]);
    // One flat step is no end: 4 gains nothing over 2, 8 does.
    let loads = visited(&limits, |n| if n == 4.0 { 2.0 } else { n.min(8.0) }, |_| 1.0);
    assert_eq!(loads[..6], [1, 2, 4, 8, 16, 32]);
    let bounded = Limits { least_load: 1, max_load: 6, goal_us: None };
    assert_eq!(visited(&bounded, |n| n, |_| 1.0), [1, 2, 4, 6]);
    // Of three hosts each has a session.
    let of_hosts = Limits { least_load: 3, max_load: 1024, goal_us: None };
    assert_eq!(visited(&of_hosts, |n| n.min(48.0), |_| 1.0), [3, 6, 12, 24, 48, 96, 192, 36, 72]);
}

#[test]
fn auto_narrows_the_highest_load_that_keeps_a_goal() {
    let limits = Limits { least_load: 1, max_load: 1024, goal_us: Some(5000.0) };
    // Beyond 4 sessions each costs latency alone: 100 us a session.
    let loads = visited(&limits, |n| n.min(4.0), |n| 100.0 * n);
    let highest = loads.iter().filter(|load| **load <= 50).max();
    assert!(highest.is_some_and(|load| *load >= 46), "{loads:?}");
    let broken = loads.iter().filter(|load| **load > 50).min();
    assert!(broken.is_some_and(|load| *load <= 52), "{loads:?}");
}
