//! fio's percentiles and bins, bit for bit: 1856 buckets, and the midpoint of the first bucket whose cumulative count
//! reaches the share. The share is computed as by the distributions' builds of fio, in x86's 80-bit floats.
//!
//! Unlike the record's own percentiles, these exist for any number of samples and may exceed the maximum by half a
//! bucket: programs that read fio's output expect its values.

use assay_measure::histogram::{Histogram, slot_low_and_width_ns};

/// Number of fio's buckets; the last holds everything from 2^34 ns on.
const BUCKETS: u32 = 1856;

/// Midpoints and counts of the buckets in use, ascending.
pub(super) fn bins(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut bins: Vec<(u32, u64)> = Vec::new();
    for (slot, n) in histogram.sparse() {
        let bucket = slot.min(BUCKETS - 1);
        match bins.last_mut() {
            Some((last, count)) if *last == bucket => *count += n,
            _ => bins.push((bucket, n)),
        }
    }
    let midpoint = |bucket: u32| {
        let (low, width) = slot_low_and_width_ns(bucket as usize);
        low + width / 2
    };
    bins.into_iter().map(|(bucket, n)| (midpoint(bucket), n)).collect()
}

/// The percentiles of `list` (percent, ascending), ns; empty for an empty histogram.
pub(super) fn percentiles(histogram: &Histogram, list: &[f64]) -> Vec<(f64, u64)> {
    let bins = bins(histogram);
    let mut found = Vec::with_capacity(list.len());
    let mut seen = 0_u64;
    let mut next = bins.iter();
    let mut here = None;
    for &percent in list {
        while here.is_none() || !reaches(seen, percent, histogram.count()) {
            match next.next() {
                Some(&(midpoint, n)) => {
                    seen += n;
                    here = Some(midpoint);
                }
                None => break,
            }
        }
        if let Some(midpoint) = here {
            found.push((percent, midpoint));
        }
    }
    found
}

/// Whether `seen` reaches `percent` of `count`, by fio's arithmetic.
///
/// fio's source has `percent / 100 * count`, but `-ffast-math` lets the compiler reorder it: Debian's fio 3.33 for
/// x86-64 computes `count * 0.01` once and multiplies it by each percentile. Both operands are floats with 64-bit
/// mantissas, and each step rounds to nearest even. The results differ if the share is whole: 60 of 100 reach 60 % only
/// this way. Exact arithmetic would not match either: 999 of 1000 do not reach 99.9, which as a double is slightly more
/// than that.
fn reaches(seen: u64, percent: f64, count: u64) -> bool {
    let Some(percent) = Extended::of(percent) else {
        return true;
    };
    let Some(count) = Extended::whole(count) else {
        return true;
    };
    let needed = count.times(Extended::HUNDREDTH).times(percent);
    Extended::whole(seen).is_some_and(|seen| seen.at_least(needed))
}

/// A positive number with a mantissa of 64 bits: `mantissa x 2^exponent`, the top bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extended {
    mantissa: u64,
    exponent: i32,
}

impl Extended {
    /// 0.01, rounded.
    const HUNDREDTH: Self = Self { mantissa: 0xa3d7_0a3d_70a3_d70a, exponent: -70 };

    /// `None` unless the value is above 0.
    fn of(value: f64) -> Option<Self> {
        if !value.is_normal() || value < 0.0 {
            return None;
        }
        let bits = value.to_bits();
        let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
        let exponent = (bits >> 52) as i32 - 1075;
        Some(Self::rounded(u128::from(mantissa), exponent))
    }

    fn whole(value: u64) -> Option<Self> {
        (value > 0).then(|| Self::rounded(u128::from(value), 0))
    }

    /// Rounds to nearest, ties to even.
    fn rounded(value: u128, exponent: i32) -> Self {
        let spare = 64 - value.leading_zeros() as i32;
        if spare <= 0 {
            return Self { mantissa: (value << -spare) as u64, exponent: exponent + spare };
        }
        let rest = value & ((1 << spare) - 1);
        let half = 1 << (spare - 1);
        let kept = (value >> spare) as u64;
        let up = rest > half || (rest == half && kept & 1 == 1);
        match kept.checked_add(u64::from(up)) {
            Some(mantissa) => Self { mantissa, exponent: exponent + spare },
            None => Self { mantissa: 1 << 63, exponent: exponent + spare + 1 },
        }
    }

    fn times(self, other: Self) -> Self {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        Self::rounded(product, self.exponent + other.exponent)
    }

    fn at_least(self, other: Self) -> bool {
        // With the top bit set the larger exponent is the larger number.
        (self.exponent, self.mantissa) >= (other.exponent, other.mantissa)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::prng::SplitMix64;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    /// fio's index and value arithmetic as documented, written independently of ours.
    fn oracle(values: &[u64], percent: f64) -> u64 {
        let mut buckets = vec![0_u64; 1856];
        for &ns in values {
            let msb = 63 - ns.max(1).leading_zeros();
            let bucket = if msb <= 6 {
                ns
            } else {
                let error = msb - 6;
                u64::from((error + 1) * 64) + ((ns >> error) & 63)
            };
            buckets[bucket.min(1855) as usize] += 1;
        }
        let needed = percent / 100.0 * values.len() as f64;
        let mut seen = 0;
        for (bucket, n) in buckets.iter().enumerate() {
            seen += n;
            if seen as f64 >= needed {
                if bucket < 128 {
                    return bucket as u64;
                }
                let error = bucket / 64 - 1;
                let base = 1_u64 << (error + 6);
                let k = (bucket % 64) as f64;
                return base + ((k + 0.5) * (1_u64 << error) as f64) as u64;
            }
        }
        unreachable!("the last bucket reaches every share")
    }

    #[test]
    fn io_05_percentiles_of_a_million_latencies_are_fios() {
        let mut random = SplitMix64(1);
        let mut values: Vec<u64> = (0..1_000_000)
            .map(|_| {
                let drawn = random.next_u64();
                (drawn >> 20) >> (drawn % 41)
            })
            .collect();
        let histogram = of(&values);
        // Shares whose product with the count is not whole, so that rounding cannot decide.
        let list = [0.00013, 1.00003, 25.00007, 50.00001, 75.3333333, 99.00001, 99.90003, 99.99007];
        let ours = percentiles(&histogram, &list);
        let expected: Vec<_> = list.iter().map(|&p| (p, oracle(&values, p))).collect();
        assert_eq!(ours, expected);
        values.sort_unstable();
        for (percent, ns) in ours {
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            let exact = values[rank - 1] as f64;
            let error = (ns as f64 - exact).abs();
            assert!(error <= exact / 128.0 + 0.5 || exact >= (1_u64 << 34) as f64);
        }
    }

    #[test]
    fn a_share_is_judged_as_long_doubles_judge_it() {
        // 99.9 as a double is above 99.9; 50 and 1 % of 100 are whole.
        assert!(!reaches(999, 99.9, 1000));
        assert!(reaches(500, 50.0, 1000));
        assert!(reaches(1, 1.0, 100));
        assert!(!reaches(0, 1.0, 100));
        assert!(reaches(100, 100.0, 100));
    }

    #[test]
    fn a_whole_share_is_reached_where_fios_program_reaches_it() {
        // Results of fio's function, called with one bucket of `seen` and one of the rest.
        for (seen, percent, count) in [
            (15, 60.0, 25),
            (15, 30.0, 50),
            (60, 60.0, 100),
            (30_720, 30.0, 102_400),
            (61_440, 60.0, 102_400),
            (8_641_969, 7.0, 123_456_700),
            (71_604_886, 58.0, 123_456_700),
        ] {
            assert!(reaches(seen, percent, count), "{percent} % of {count}");
            assert!(!reaches(seen - 1, percent, count), "{percent} % of {count}");
        }
        let mut histogram = of(&[302; 15]);
        histogram.record_n(310, 10);
        assert_eq!(percentiles(&histogram, &[60.0]), [(60.0, 302)]);
    }

    #[test]
    fn the_hundredth_is_the_nearest_to_it() {
        // 100 x 2^70 / 100 lies between the mantissa and the next one, nearer to the mantissa.
        let exact = 1_u128 << 70;
        let below = u128::from(Extended::HUNDREDTH.mantissa) * 100;
        assert!(below < exact && exact - below < 50);
    }

    #[test]
    fn everything_beyond_the_last_bucket_is_in_it() {
        let histogram = of(&[1 << 34, 1 << 36, u64::MAX]);
        assert_eq!(bins(&histogram), [(17_112_760_320, 3)]);
        assert_eq!(percentiles(&histogram, &[50.0]), [(50.0, 17_112_760_320)]);
        assert_eq!(percentiles(&Histogram::new(), &[50.0]), []);
    }

    proptest! {
        #[test]
        fn extended_floats_are_exact_where_doubles_are(a in 1_u64..1 << 26, b in 1_u64..1 << 26) {
            let (x, y) = (Extended::whole(a).unwrap(), Extended::whole(b).unwrap());
            prop_assert_eq!(x.times(y), Extended::whole(a * b).unwrap());
            prop_assert_eq!(x.at_least(y), a >= b);
            prop_assert_eq!(Extended::of(a as f64).unwrap(), x);
        }

        #[test]
        fn percentiles_ascend_and_end_in_the_last_bucket(values in prop::collection::vec(0_u64..1 << 40, 1..200)) {
            let histogram = of(&values);
            let found = percentiles(&histogram, &[0.1, 10.0, 50.0, 99.9, 100.0]);
            prop_assert_eq!(found.len(), 5);
            prop_assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            prop_assert_eq!(found[4].1, bins(&histogram).last().unwrap().0);
        }
    }
}
