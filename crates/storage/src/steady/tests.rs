use super::*;
use proptest::prelude::*;

fn watch(metric: SteadyMetric, slope: bool, limit: f64, percent: bool, seconds: u64) -> SteadyWatch {
    let pace = PaceOptions {
        steady: Some(SteadyOptions { metric, slope, limit, percent, text: "as typed".to_owned() }),
        steady_duration_ns: seconds * 1_000_000_000,
        ..PaceOptions::default()
    };
    SteadyWatch::new(&pace).expect("it is asked for")
}

fn iops(value: f64) -> SteadySample {
    SteadySample { iops: value, bytes_per_s: value * 4096.0, lat_ns: Some(1e9 / value) }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

/// Windows that fio 3.33 printed with what it made of them.
#[test]
fn the_arithmetic_is_fios() {
    let fit = Fit::of(&[4_200_908.0, 4_194_402.0, 4_194_304.0]).unwrap();
    assert!(close(fit.slope, -3302.0), "{fit:?}");
    let fit = Fit::of(&[4_200_908.0, 4_194_402.0, 4_198_400.0]).unwrap();
    assert!((fit.deviation - 3_501.333_333).abs() < 1e-5, "{fit:?}");
    let fit = Fit::of(&[1025.0, 1024.0, 1025.0]).unwrap();
    assert!((percent(fit.deviation, fit.mean).unwrap() - 0.065_062).abs() < 1e-6);
    assert!(close(fit.slope, 0.0));
}

#[test]
fn by_hand_10_12_14_16_has_slope_2_mean_13_deviation_3() {
    let fit = Fit::of(&[10.0, 12.0, 14.0, 16.0]).unwrap();
    let expected = Fit { mean: 13.0, deviation: 3.0, excursion: 6.0, slope: 2.0 };
    assert_eq!(fit, expected);
    assert_eq!(Fit::of(&[7.0]).unwrap().slope, 0.0);
    assert_eq!(Fit::of(&[]), None);
}

#[test]
fn nothing_is_steady_before_the_window_is_full() {
    let mut watch = watch(SteadyMetric::Iops, false, 100.0, true, 4);
    let outcomes = [1.0; 6].map(|_| watch.second(iops(500.0)));
    assert_eq!(outcomes, [false, false, false, true, true, true]);
}

#[test]
fn a_device_that_settles_is_steady_when_the_outlier_has_left_the_window() {
    let mut watch = watch(SteadyMetric::Iops, false, 10.0, true, 3);
    let rows = [1000.0, 600.0, 505.0, 500.0, 495.0, 500.0];
    let outcomes = rows.map(|row| watch.second(iops(row)));
    // 600, 505, 500: mean 535, deviation 65 = 12.1 %; then 505, 500, 495: 1 %.
    assert_eq!(outcomes, [false, false, false, false, true, true]);
    let reading = watch.reading();
    assert!(reading.attained);
    assert_eq!(reading.iops, [505, 500, 495]);
    assert_eq!(reading.bw_kib_per_s, [2020, 2000, 1980]);
    assert!(close(reading.last.unwrap(), 1.0));
    assert!(close(reading.deviation_pct.unwrap(), 1.0));
    assert!(close(reading.slope.unwrap(), -5.0));
    assert_eq!(reading.criterion, "as typed");
}

#[test]
fn a_falling_slope_counts_like_a_rising_one() {
    for sign in [1.0, -1.0] {
        let mut watch = watch(SteadyMetric::Iops, true, 9.0, false, 3);
        let rows = [0.0, 10.0, 20.0, 28.0].map(|step| 1000.0 + sign * step);
        let outcomes = rows.map(|row| watch.second(iops(row)));
        assert_eq!(outcomes, [false, false, false, true], "{sign}");
    }
}

#[test]
fn the_ramp_is_no_part_of_the_window() {
    let mut pace = PaceOptions::default();
    assert!(SteadyWatch::new(&pace).is_none());
    pace.steady = Some(SteadyOptions { limit: 1.0, percent: true, ..SteadyOptions::default() });
    assert!(SteadyWatch::new(&pace).is_none(), "a window of 0 s is none");
    pace.steady_duration_ns = 2_000_000_000;
    pace.steady_ramp_ns = 1_500_000_000;
    let mut watch = SteadyWatch::new(&pace).unwrap();
    let outcomes = [9.0, 90.0, 100.0, 100.0].map(|row| watch.second(iops(row)));
    assert_eq!(outcomes, [false, false, false, true]);
    assert_eq!(watch.reading().ramp_s, 2);
    assert_eq!(watch.reading().iops, [100, 100]);
}

#[test]
fn stillness_is_not_steady() {
    let mut by_iops = watch(SteadyMetric::Iops, false, 50.0, true, 2);
    let none = SteadySample::default();
    assert!(!by_iops.second(none) && !by_iops.second(none));
    assert_eq!(by_iops.reading().last, None);
    let mut by_lat = watch(SteadyMetric::Latency, false, 1e9, false, 2);
    assert!(!by_lat.second(iops(5.0)) && !by_lat.second(none) && !by_lat.second(iops(5.0)));
    assert!(by_lat.second(iops(5.0)));
}

#[test]
fn five_rounds_alike_are_steady_and_25_are_the_end() {
    let mut fresh = SniaRounds::default();
    // A fresh drive slows down, then stays: 100, 60, 50, 48, 50, 51, 49.
    let more = [100.0, 60.0, 50.0, 48.0, 50.0, 51.0].map(|iops| fresh.round(iops));
    assert_eq!(more, [true; 6]);
    assert!(!fresh.is_steady());
    assert!(!fresh.round(49.0));
    assert!(fresh.is_steady());
    // 50, 48, 50, 51, 49: mean 49.6, excursion 3, slope (2 * (49 - 50) + 51 - 48) / 10 = 0.1.
    let window = fresh.window().unwrap();
    assert!(close(window.excursion_ratio, 3.0 / 49.6) && close(window.slope_ratio, 0.4 / 49.6), "{window:?}");
    let mut never = SniaRounds::default();
    let more = (0..SNIA_MOST_ROUNDS).map(|round| never.round(if round % 2 == 0 { 100.0 } else { 60.0 }));
    assert_eq!(more.filter(|more| *more).count(), SNIA_MOST_ROUNDS - 1);
    assert!(!never.is_steady());
    // Within 20 %, but falling by 12 % over the window.
    let mut falling = SniaRounds::default();
    for iops in [106.0, 103.0, 100.0, 97.0, 94.0] {
        falling.round(iops);
    }
    assert!(!falling.is_steady(), "{falling:?}");
    let mut dead = SniaRounds::default();
    assert!([0.0; 6].iter().all(|iops| dead.round(*iops)));
    assert!(!dead.is_steady());
}

proptest! {
    #[test]
    fn a_shift_moves_the_mean_alone_and_a_scale_moves_all(
        values in prop::collection::vec(1.0_f64..1e6, 1..40), shift in 0.0_f64..1e6, scale in 0.1_f64..100.0,
    ) {
        let fit = Fit::of(&values).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()) + shift);
        let shifted = Fit::of(&values.iter().map(|value| value + shift).collect::<Vec<_>>()).unwrap();
        prop_assert!(near(shifted.mean, fit.mean + shift));
        prop_assert!(near(shifted.deviation, fit.deviation) && near(shifted.slope, fit.slope));
        let scaled = Fit::of(&values.iter().map(|value| value * scale).collect::<Vec<_>>()).unwrap();
        prop_assert!(near(scaled.mean, fit.mean * scale) && near(scaled.excursion, fit.excursion * scale));
        prop_assert!(near(scaled.slope, fit.slope * scale));
    }

    #[test]
    fn a_line_has_its_own_slope(start in 0.0_f64..1e6, slope in -1e3_f64..1e3, n in 2_usize..50) {
        let values: Vec<f64> = (0..n).map(|x| start + slope * x as f64).collect();
        let fit = Fit::of(&values).unwrap();
        prop_assert!((fit.slope - slope).abs() <= 1e-6 * (1.0 + start));
        prop_assert!((fit.excursion - slope.abs() * (n - 1) as f64).abs() <= 1e-6 * (1.0 + start));
    }

    #[test]
    fn the_watch_agrees_with_a_look_at_the_last_window(
        rows in prop::collection::vec(1.0_f64..1000.0, 1..60), seconds in 1_u64..10, limit in 0.0_f64..60.0,
    ) {
        let mut watch = watch(SteadyMetric::Iops, false, limit, true, seconds);
        let window = seconds as usize;
        let mut before = false;
        for end in 1..=rows.len() {
            let attained = watch.second(iops(rows[end - 1]));
            let steady = end >= window && {
                let fit = Fit::of(&rows[end - window..end]).unwrap();
                fit.deviation * 100.0 / fit.mean <= limit
            };
            prop_assert_eq!(attained, before || steady);
            before = attained;
        }
        prop_assert!(watch.reading().iops.len() <= window);
    }
}
