//! Counts the latencies below each of fio's bounds exactly, for the `lat (usec) : ...` lines of its report and
//! `latency_us` of its JSON.
//!
//! Most of the bounds (750 ns, 10 us, ...) lie inside a bucket of the histogram, so the histogram only allows a guess.

use assay_measure::clock::Ns;
use assay_measure::figures::figures;

/// Ranges counted: ten of nanoseconds, ten of microseconds, twelve of milliseconds.
pub const FAMILIES: usize = 32;

/// Exclusive upper bounds of all ranges except the last, ns. fio's report names them in the unit of the family: 2 4 10
/// 20 50 100 250 500 750 1000, for milliseconds also 2000.
pub const FAMILY_BOUNDS_NS: [Ns; FAMILIES - 1] = bounds();

/// Exact counts of latencies by range.
#[figures]
#[derive(Copy, Eq)]
pub struct FamilyCounts {
    /// `[i]`: at least bound i - 1 and below bound i of [`FAMILY_BOUNDS_NS`]; the last: 2 s and more.
    pub counts: [u64; FAMILIES],
}

impl FamilyCounts {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, ns: Ns) {
        self.counts[family_of(ns)] += 1;
    }

    /// Counts `n` equal latencies.
    #[inline]
    pub fn record_n(&mut self, ns: Ns, n: u64) {
        self.counts[family_of(ns)] += n;
    }

    /// Adds the counts of another: associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        for (mine, other) in self.counts.iter_mut().zip(other.counts) {
            *mine = mine.saturating_add(other);
        }
    }

    /// Number of latencies counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }
}

/// The range of a latency: a lookup by its highest bit, then at most two comparisons, because no octave has more than
/// two bounds.
#[inline]
#[must_use]
pub fn family_of(ns: Ns) -> usize {
    const FIRST: [u8; 65] = first_of_octaves();
    let first = FIRST[64 - ns.leading_zeros() as usize] as usize;
    // Above the last bound there is nothing to compare with.
    let passed = |i: usize| usize::from(FAMILY_BOUNDS_NS.get(i).is_some_and(|&bound| ns >= bound));
    first + passed(first) + passed(first + 1)
}

const fn bounds() -> [Ns; FAMILIES - 1] {
    const STEPS: [Ns; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let mut bounds = [0; FAMILIES - 1];
    let mut i = 0;
    let mut unit = 1;
    while i < 30 {
        bounds[i] = STEPS[i % 10] * unit;
        i += 1;
        if i % 10 == 0 {
            unit *= 1000;
        }
    }
    bounds[30] = 2_000_000_000;
    bounds
}

/// For each bit length, the number of bounds at or below the smallest value of that length.
const fn first_of_octaves() -> [u8; 65] {
    let bounds = bounds();
    let mut first = [0_u8; 65];
    let mut bits = 1;
    while bits < 65 {
        let smallest: Ns = 1 << (bits - 1);
        let mut passed = 0;
        while passed < bounds.len() && bounds[passed] <= smallest {
            passed += 1;
        }
        first[bits] = passed as u8;
        bits += 1;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_search(ns: Ns) -> usize {
        FAMILY_BOUNDS_NS.iter().filter(|&&bound| bound <= ns).count()
    }

    #[test]
    fn each_bound_is_exclusive() {
        assert_eq!(FAMILY_BOUNDS_NS[9], 1000);
        assert_eq!(FAMILY_BOUNDS_NS[19], 1_000_000);
        assert_eq!(FAMILY_BOUNDS_NS[29], 1_000_000_000);
        for (i, &bound) in FAMILY_BOUNDS_NS.iter().enumerate() {
            assert_eq!(family_of(bound - 1), i, "below {bound}");
            assert_eq!(family_of(bound), i + 1, "at {bound}");
        }
        assert_eq!(family_of(0), 0);
        assert_eq!(family_of(u64::MAX), FAMILIES - 1);
    }

    proptest! {
        #[test]
        fn the_look_up_agrees_with_a_search(bits in 0_u32..64, low in any::<u64>()) {
            let ns = low >> bits;
            prop_assert_eq!(family_of(ns), by_search(ns));
        }

        #[test]
        fn counts_merge_by_addition(a in prop::collection::vec(0_u64..1 << 34, 0..40), b in prop::collection::vec(0_u64..1 << 34, 0..40)) {
            let of = |values: &[u64]| {
                let mut counts = FamilyCounts::default();
                values.iter().for_each(|&ns| counts.record(ns));
                counts
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged, of(&all));
            prop_assert_eq!(merged.total(), all.len() as u64);
        }
    }
}
