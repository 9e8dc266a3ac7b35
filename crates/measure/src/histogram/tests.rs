use super::*;
use crate::testing::{durations, histogram};
use proptest::prelude::*;

fn of(durations: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for &ns in durations {
        histogram.record(ns);
    }
    histogram
}

fn merged(left: &Histogram, right: &Histogram) -> Histogram {
    let mut sum = left.clone();
    sum.merge(right);
    sum
}

/// fio's `plat_val_to_idx` with 6 bits, from its description in `stat.h`.
fn fio_slot(ns: u64) -> usize {
    let msb = if ns == 0 { 0 } else { ns.ilog2() };
    if msb <= 6 {
        return ns as usize;
    }
    let error_bits = msb - 6;
    ((error_bits as usize + 1) << 6) + ((ns >> error_bits) & 63) as usize
}

#[test]
fn slots_are_those_of_fio_at_every_border() {
    for exponent in 0..42 {
        for sixty_fourth in 0..64 {
            let border = (1_u64 << exponent) + (sixty_fourth << exponent) / 64;
            for ns in border.saturating_sub(1)..=border + 1 {
                assert_eq!(slot_of(ns), fio_slot(ns).min(SLOTS - 1), "{ns} ns");
            }
        }
    }
}

#[test]
fn slots_cover_every_duration_once() {
    let mut next = 0;
    for slot in 0..SLOTS {
        let (low, width) = slot_low_and_width_ns(slot);
        assert_eq!(low, next, "slot {slot} begins where the one before ends");
        assert_eq!(slot_of(low), slot);
        assert_eq!(slot_of(low + width - 1), slot);
        next = low + width;
    }
    assert_eq!(next, 1 << 42);
    assert_eq!(slot_of(u64::MAX), SLOTS - 1);
}

#[test]
fn pow2_us_is_exact_at_every_border() {
    for (ns, bucket) in [(0, 0), (999, 0), (1000, 1), (1001, 1), (1999, 1), (2000, 2)] {
        assert_eq!(pow2_us_bucket_of(ns), bucket, "{ns} ns");
    }
    for i in 1..=33_usize {
        let border = 1000_u64 << (i - 1);
        for (ns, bucket) in [(border - 1, i - 1), (border, i), (border + 1, i)] {
            let mut want = [0; POW2_US_BUCKETS];
            want[bucket] = 1;
            assert_eq!(of(&[ns]).pow2_us(), want, "{ns} ns");
            assert_eq!(pow2_us_bucket_of(ns), bucket, "{ns} ns");
        }
    }
    assert_eq!(of(&[u64::MAX]).pow2_us()[33], 1);
}

#[test]
fn a_median_is_told_of_however_few() {
    let of_few = |all: &[u64]| {
        let mut histogram = Histogram::new();
        all.iter().for_each(|ns| histogram.record(*ns));
        histogram.median_ns()
    };
    assert_eq!(of_few(&[]), None);
    assert_eq!(of_few(&[24_700]), Some(24_700));
    let middle = of_few(&[10_000, 24_700, 90_000]).unwrap() as f64;
    assert!((middle / 24_700.0 - 1.0).abs() < 0.008, "{middle}");
}

#[test]
fn percentiles_need_ten_samples_beyond() {
    let n_equal = |n| {
        let mut histogram = Histogram::new();
        histogram.record_n(5_000, n);
        histogram
    };
    assert_eq!(n_equal(0).percentile_ns(0.5), None);
    assert_eq!(n_equal(19).percentile_ns(0.5), None);
    assert_eq!(n_equal(20).percentile_ns(0.5), Some(5_000));
    assert_eq!(n_equal(999).percentile_ns(0.99), None);
    assert_eq!(n_equal(1_000).percentile_ns(0.99), Some(5_000));
    assert_eq!(n_equal(9_999).percentile_ns(0.999), None);
    assert_eq!(n_equal(10_000).percentile_ns(0.999), Some(5_000));
    assert_eq!(n_equal(10_000).percentile_ns(1.0), None);
}

#[test]
fn ranks_are_exact_where_floats_are_not() {
    for (q, count, rank) in [
        (0.5, 3, 2),
        (0.999, 10_000, 9_990),
        (0.99, 100, 99),
        (0.0, 5, 1),
        (1.0, u64::MAX, u64::MAX),
        (0.999_999_999, 10_000_000_000, 9_999_999_990),
        (-1.0, 5, 1),
        (f64::NAN, 5, 1),
        (0.5, 0, 0),
    ] {
        assert_eq!(rank_of(q, count), rank, "{q} of {count}");
    }
}

#[test]
fn a_midpoint_never_leaves_the_extremes() {
    // 1000 and 1007 share a slot whose midpoint is 1004.
    let mut low = Histogram::new();
    low.record_n(1_001, 100);
    assert_eq!(low.percentile_ns(0.5), Some(1_001));
    low.record_n(1_007, 100);
    assert_eq!(low.percentile_ns(0.5), Some(1_004));
}

#[test]
fn an_empty_histogram_knows_no_extremes() {
    for empty in [Histogram::new(), Histogram::default()] {
        assert_eq!((empty.min_ns(), empty.max_ns()), (None, None));
        assert_eq!(empty.mean_ns(), None);
        assert_eq!(empty.pow2_us(), [0; POW2_US_BUCKETS]);
        assert_eq!(empty, Histogram::default());
    }
}

#[test]
fn a_difference_keeps_extremes_that_moved_and_bounds_the_others() {
    let earlier = of(&[1_000_000, 50_000]);
    let later = merged(&earlier, &of(&[70_001, 2_000_001]));
    let since = later.difference(&earlier).unwrap();
    assert_eq!(since.max_ns(), Some(2_000_001));
    let min = since.min_ns().unwrap();
    assert!(min <= 70_001 && 70_001 - min < 70_001 / 64, "{min}");

    // Bounded by the extremes of all time too: 1000 and 1001 share a slot to 1007.
    let again = merged(&of(&[1_001]), &of(&[1_001]));
    let since = again.difference(&of(&[1_001])).unwrap();
    assert_eq!((since.min_ns(), since.max_ns()), (Some(1_001), Some(1_001)));

    let quiet = later.difference(&later).unwrap();
    assert!(quiet.is_empty());
    assert_eq!(quiet, Histogram::default());
}

#[test]
fn a_difference_to_something_else_is_refused() {
    let earlier = of(&[10, 500]);
    assert_eq!(of(&[10]).difference(&earlier), None);
    assert_eq!(of(&[10, 10, 10]).difference(&earlier), None);
    assert_eq!(of(&[500, 500, 500]).difference(&earlier), None);
    // Reset and filled again with larger values, or with more of them.
    assert_eq!(of(&[10, 490, 490]).difference(&earlier), None);
    assert_eq!(of(&[10, 800, 900]).difference(&earlier), None);
}

#[test]
fn json_names_count_sum_extremes_and_slots() {
    let text = serde_json::to_string(&of(&[5, 5, 1000])).unwrap();
    assert_eq!(text, r#"{"count":3,"sum_ns":1010,"min_ns":5,"max_ns":1000,"slots":[[5,2],[317,1]]}"#);
    let empty = serde_json::to_string(&Histogram::new()).unwrap();
    assert_eq!(empty, r#"{"count":0,"sum_ns":0,"slots":[]}"#);
    let read: Histogram = serde_json::from_str(&empty).unwrap();
    assert!(read.is_empty());
}

#[test]
fn json_that_contradicts_itself_is_refused() {
    for (text, why) in [
        (r#"{"count":1,"sum_ns":5,"min_ns":5,"max_ns":5,"slots":[[2368,1]]}"#, "slot 2368 does not exist"),
        (r#"{"count":2,"sum_ns":9,"min_ns":4,"max_ns":5,"slots":[[5,1],[4,1]]}"#, "out of order"),
        (r#"{"count":2,"sum_ns":10,"min_ns":5,"max_ns":5,"slots":[[5,1],[5,1]]}"#, "out of order"),
        (
            r#"{"count":2,"sum_ns":5,"min_ns":5,"max_ns":5,"slots":[[5,1]]}"#,
            "the count is 2, the sum of the slots is 1",
        ),
        (r#"{"count":1,"sum_ns":6,"min_ns":5,"max_ns":5,"slots":[[5,1]]}"#, "cannot come from the slots"),
        (r#"{"count":0,"sum_ns":6,"slots":[]}"#, "cannot come from"),
        (r#"{"count":1,"sum_ns":5,"min_ns":5,"max_ns":6,"slots":[[5,1]]}"#, "are not in the outer slots"),
        (r#"{"count":1,"sum_ns":5,"slots":[[5,1]]}"#, "are not in the outer slots"),
        (r#"{"count":0,"sum_ns":5,"min_ns":5,"max_ns":6,"slots":[[5,18446744073709551615],[6,1]]}"#, "more than 2^64"),
    ] {
        let error = serde_json::from_str::<Histogram>(text).unwrap_err();
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}

#[test]
fn json_of_a_later_version_is_read() {
    let text = r#"{"count":1,"sum_ns":5,"min_ns":5,"max_ns":5,"slots":[[5,1]],"unit":"ns"}"#;
    assert_eq!(serde_json::from_str::<Histogram>(text).unwrap(), of(&[5]));
}

/// The value of rank ceil(q x n), by sorting.
fn exact_percentile(durations: &[u64], q_per_mille: u64) -> u64 {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() as u64 * q_per_mille).div_ceil(1000).max(1);
    sorted[rank as usize - 1]
}

fn assert_close(got: u64, want: u64, share: f64) {
    let error = got.abs_diff(want) as f64;
    assert!(error <= want as f64 * share, "{got} instead of {want}");
}

proptest! {
    #[test]
    fn merge_is_associative_commutative_and_has_an_identity(
        a in histogram(), b in histogram(), c in histogram(),
    ) {
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&a, &Histogram::new()), a.clone());
        prop_assert_eq!(merged(&Histogram::default(), &a), a);
    }

    #[test]
    fn merging_is_recording_both(left in durations(0..50), right in durations(0..50)) {
        let all: Vec<u64> = left.iter().chain(&right).copied().collect();
        prop_assert_eq!(merged(&of(&left), &of(&right)), of(&all));
        let mut dense = of(&left);
        dense.merge(&of(&right));
        prop_assert_eq!(dense, of(&all));
    }

    #[test]
    fn a_compact_copy_records_on(left in durations(0..50), right in durations(0..50)) {
        let mut copy = of(&left).clone();
        right.iter().for_each(|&ns| copy.record(ns));
        let all: Vec<u64> = left.iter().chain(&right).copied().collect();
        prop_assert_eq!(copy, of(&all));
    }

    #[test]
    fn recording_n_is_recording_n_times(ns in 0_u64..1 << 42, n in 0_u64..50) {
        let mut at_once = Histogram::default();
        at_once.record_n(ns, n);
        prop_assert_eq!(at_once, of(&vec![ns; n as usize]));
    }

    #[test]
    fn a_difference_is_what_was_merged_in(a in histogram(), b in histogram()) {
        let since = merged(&a, &b).difference(&a).unwrap();
        prop_assert_eq!(since.count(), b.count());
        prop_assert_eq!(since.sum_ns(), b.sum_ns());
        prop_assert_eq!(since.sparse(), b.sparse());
        if !b.is_empty() {
            let (min, max) = (since.min_ns().unwrap(), since.max_ns().unwrap());
            let (b_min, b_max) = (b.min_ns().unwrap(), b.max_ns().unwrap());
            prop_assert!(min <= b_min && slot_of(min) == slot_of(b_min));
            prop_assert!(max >= b_max && slot_of(max) == slot_of(b_max));
        }
    }

    #[test]
    fn count_and_mean_stand_between_the_extremes(h in histogram()) {
        let slots: u64 = h.sparse().iter().map(|&(_, n)| n).sum();
        prop_assert_eq!(slots, h.count());
        prop_assert_eq!(h.pow2_us().iter().sum::<u64>(), h.count());
        if let (Some(min), Some(max), Some(mean)) = (h.min_ns(), h.max_ns(), h.mean_ns()) {
            prop_assert!(min as f64 <= mean * (1.0 + 1e-12) && mean <= max as f64 * (1.0 + 1e-12));
        }
    }

    #[test]
    fn identity_i16_the_sum_lies_between_the_slot_borders(h in histogram()) {
        prop_assume!(!h.is_empty());
        let sum_of = |value: fn((u64, u64)) -> u64| -> u64 {
            let slots = h.sparse();
            slots.iter().map(|&(slot, n)| n * value(slot_low_and_width_ns(slot as usize))).sum()
        };
        prop_assert!(sum_of(|(low, _)| low) <= h.sum_ns());
        prop_assert!(h.sum_ns() < sum_of(|(low, width)| low + width));
        let us = h.pow2_us();
        let lower = |i: usize| if i == 0 { 0 } else { 1000_u64 << (i - 1) };
        let buckets = us.iter().enumerate();
        let (low, high) = buckets.fold((0, 0), |(low, high), (i, n)| {
            (low + n * lower(i), high + n * lower(i + 1))
        });
        prop_assert!(low <= h.sum_ns() && h.sum_ns() < high);
    }

    #[test]
    fn percentiles_are_within_eight_in_a_thousand_of_a_sort(durations in durations(20..3000)) {
        let h = of(&durations);
        for q_per_mille in [1, 10, 250, 500, 750, 900, 950, 990] {
            if let Some(got) = h.percentile_ns(q_per_mille as f64 / 1000.0) {
                assert_close(got, exact_percentile(&durations, q_per_mille), 0.0079);
            }
        }
    }

    #[test]
    fn percentiles_agree_with_hdrhistogram(durations in durations(1000..3000)) {
        let mut oracle = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 42, 4).unwrap();
        // hdrhistogram counts from 1.
        durations.iter().for_each(|&ns| oracle.record(ns.max(1)).unwrap());
        let h = of(&durations.iter().map(|&ns| ns.max(1)).collect::<Vec<_>>());
        for q in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99] {
            let got = h.percentile_ns(q).unwrap();
            assert_close(got, oracle.value_at_quantile(q), 0.008);
        }
        prop_assert_eq!(h.count(), oracle.len());
        assert_close(h.max_ns().unwrap(), oracle.max(), 0.001);
        let mean_error = h.mean_ns().unwrap() / oracle.mean() - 1.0;
        prop_assert!(mean_error.abs() < 0.001);
    }

    #[test]
    fn percentiles_are_monotone(durations in durations(20..2000)) {
        let h = of(&durations);
        let percentiles: Vec<u64> = (0..=99)
            .map_while(|q| h.percentile_ns(f64::from(q) / 100.0))
            .collect();
        prop_assert!(percentiles.is_sorted());
        prop_assert!(percentiles.last().copied() <= h.max_ns());
    }

    #[test]
    fn sparse_and_json_round_trip(h in histogram()) {
        let (min, max) = (h.min_ns().unwrap_or(0), h.max_ns().unwrap_or(0));
        let back = Histogram::from_sparse(&h.sparse(), h.sum_ns(), min, max).unwrap();
        prop_assert_eq!(&back, &h);
        let text = serde_json::to_string(&h).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), h);
    }

    #[test]
    fn overflowing_durations_are_counted_and_never_panic(
        durations in prop::collection::vec(any::<u64>(), 0..40),
    ) {
        let h = of(&durations);
        prop_assert_eq!(h.count(), durations.len() as u64);
        prop_assert_eq!(h.max_ns(), durations.iter().copied().max());
        let text = serde_json::to_string(&merged(&h, &h)).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), merged(&h, &h));
    }

    #[test]
    fn any_sparse_form_is_read_or_refused(
        slots in prop::collection::vec((0_u32..2400, any::<u64>()), 0..6),
        sum in any::<u64>(), min in any::<u64>(), max in any::<u64>(),
    ) {
        if let Ok(h) = Histogram::from_sparse(&slots, sum, min, max) {
            let _ = (h.percentile_ns(0.5), h.pow2_us(), merged(&h, &h));
            prop_assert!(h.difference(&h).is_some());
        }
    }
}
