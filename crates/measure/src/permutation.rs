//! Which slot of a table holds which key; in which order the blocks of a region come.
//!
//! A bijection that is computed, not stored: physical position is independent
//! of the key, at no memory and a few nanoseconds. It is the generalised
//! Feistel network with cycle walking of Black and Rogaway, "Ciphers with
//! Arbitrary Finite Domains" (2002): a position is split as `high * b + low`
//! with a * b the smallest such grid of at least n cells, so that only about
//! one position in the square root of n has to be walked on. (Over the next
//! power of two nearly half would, and each costs a mispredicted branch.)

use crate::prng::{GOLDEN_GAMMA, SplitMix64};

/// Rounds. Four with this round function give rank correlations distributed as
/// a random permutation's; fewer, or a round of one multiplication, do not.
const ROUNDS: usize = 4;

/// The bijection between keys `1..=n` and slots `0..n` of one schema.
#[derive(Clone, Debug)]
pub struct Permutation {
    rows: u64,
    /// Rows of the grid: values of the high half.
    a: u64,
    /// Columns of the grid: values of the low half; 2 or more.
    b: u64,
    /// ceil(2^64 / b): a division by `b` is a multiplication by this, exact
    /// below 2^64 / b, and every position is below 2^41.
    reciprocal: u64,
    round_keys: [u64; ROUNDS],
}

impl Permutation {
    /// For `n` rows of schema `schema` (from 1) under the data set's `seed`.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^40, which no data set can hold.
    #[must_use]
    pub fn new(seed: u64, schema: u32, n: u64) -> Self {
        assert!((1..=1 << 40).contains(&n), "{n} rows cannot be permuted");
        let b = ((n - 1).isqrt() + 1).max(2);
        let mut keys = SplitMix64(seed ^ u64::from(schema).wrapping_mul(GOLDEN_GAMMA));
        Self {
            rows: n,
            a: n.div_ceil(b),
            b,
            reciprocal: u64::MAX / b + 1,
            round_keys: std::array::from_fn(|_| keys.next_u64()),
        }
    }

    /// Rows permuted.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The slot, `0..n`, of `key`, `1..=n`.
    #[must_use]
    #[inline]
    pub fn slot_of_key(&self, key: u64) -> u64 {
        debug_assert!((1..=self.rows).contains(&key), "key {key} out of range");
        let mut at = self.forward(key - 1);
        while at >= self.rows {
            at = self.forward(at);
        }
        at
    }

    /// The key, `1..=n`, at `slot`, `0..n`.
    #[must_use]
    #[inline]
    pub fn key_of_slot(&self, slot: u64) -> u64 {
        debug_assert!(slot < self.rows, "slot {slot} out of range");
        let mut at = self.backward(slot);
        while at >= self.rows {
            at = self.backward(at);
        }
        at + 1
    }

    #[inline]
    fn forward(&self, at: u64) -> u64 {
        let (mut high, mut low) = self.split(at);
        let [k0, k1, k2, k3] = self.round_keys;
        high = add(high, mix(low, k0, self.a), self.a);
        low = add(low, mix(high, k1, self.b), self.b);
        high = add(high, mix(low, k2, self.a), self.a);
        low = add(low, mix(high, k3, self.b), self.b);
        high * self.b + low
    }

    #[inline]
    fn backward(&self, at: u64) -> u64 {
        let (mut high, mut low) = self.split(at);
        let [k0, k1, k2, k3] = self.round_keys;
        low = subtract(low, mix(high, k3, self.b), self.b);
        high = subtract(high, mix(low, k2, self.a), self.a);
        low = subtract(low, mix(high, k1, self.b), self.b);
        high = subtract(high, mix(low, k0, self.a), self.a);
        high * self.b + low
    }

    #[inline]
    fn split(&self, at: u64) -> (u64, u64) {
        let high = ((u128::from(at) * u128::from(self.reciprocal)) >> 64) as u64;
        (high, at - high * self.b)
    }
}

#[inline]
fn add(x: u64, y: u64, modulus: u64) -> u64 {
    let sum = x + y;
    if sum >= modulus { sum - modulus } else { sum }
}

#[inline]
fn subtract(x: u64, y: u64, modulus: u64) -> u64 {
    if x >= y { x - y } else { x + modulus - y }
}

/// The round function: `half` under `key` to a number below `range` (at most 2^21).
/// Two multiplications with a fold between, whose upper 32 bits are then scaled.
#[inline]
fn mix(half: u64, key: u64, range: u64) -> u64 {
    const ODD: u64 = 0xd6e8_feb8_6659_fd93;
    let product = (half ^ key).wrapping_mul(ODD);
    let folded = (product ^ (product >> 32)).wrapping_mul(ODD);
    ((folded >> 32) * range) >> 32
}

/// Pearson correlation of key and slot over all rows: both are permutations of
/// a range, so this is Spearman's rank correlation. Near 0 when position is
/// independent of the key.
#[must_use]
pub fn rank_correlation(pairs: impl Iterator<Item = (u64, u64)>) -> f64 {
    let (mut n, mut mean_x, mut mean_y) = (0.0f64, 0.0f64, 0.0f64);
    let (mut xx, mut yy, mut xy) = (0.0f64, 0.0f64, 0.0f64);
    for (x, y) in pairs {
        // Welford's update: sums of squares of 40-bit values would lose the digits that matter.
        n += 1.0;
        let (x, y) = (x as f64, y as f64);
        let (dx, dy) = (x - mean_x, y - mean_y);
        mean_x += dx / n;
        mean_y += dy / n;
        xx += dx * (x - mean_x);
        yy += dy * (y - mean_y);
        xy += dx * (y - mean_y);
    }
    if xx > 0.0 && yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_bijection(p: &Permutation) {
        let n = p.rows();
        let mut seen = vec![false; n as usize];
        for key in 1..=n {
            let slot = p.slot_of_key(key);
            assert!(slot < n && !seen[slot as usize], "key {key} slot {slot}");
            seen[slot as usize] = true;
            assert_eq!(p.key_of_slot(slot), key);
        }
    }

    #[test]
    fn tiny_tables_are_permuted_too() {
        for n in 1..=40 {
            is_bijection(&Permutation::new(7, 1, n));
        }
    }

    #[test]
    fn slob_09_neighbouring_keys_lie_far_apart() {
        for (seed, scale) in [(1, 20_000u64), (42, 32_768), (99, 100_003)] {
            let p = Permutation::new(seed, 1, scale);
            let mut distances = Vec::new();
            let mut adjacent = 0;
            for first in (1..scale - 64).step_by(97) {
                for key in first..first + 63 {
                    let distance = p.slot_of_key(key).abs_diff(p.slot_of_key(key + 1));
                    adjacent += usize::from(distance == 1);
                    distances.push(distance);
                }
            }
            distances.sort_unstable();
            let median = distances[distances.len() / 2];
            assert!(median > scale / 10, "median {median} of {scale}");
            assert!(adjacent * 100 < distances.len(), "{adjacent} adjacent");
        }
    }

    #[test]
    fn slob_31_a_prefix_of_the_keys_is_spread_over_the_segment() {
        let p = Permutation::new(5, 1, 20_000);
        let mut slots: Vec<u64> = (1..=10_000).map(|key| p.slot_of_key(key)).collect();
        slots.sort_unstable();
        let span = slots[slots.len() - 1] - slots[0];
        assert!(span > 20_000 * 9 / 10, "span {span}");
        // Evenly: each tenth of the segment holds about a tenth of the keys.
        for tenth in 0..10u64 {
            let range = tenth * 2000..(tenth + 1) * 2000;
            let inside = slots.iter().filter(|slot| range.contains(slot)).count();
            assert!((850..=1150).contains(&inside), "tenth {tenth}: {inside}");
        }
    }

    #[test]
    fn slob_32_position_is_independent_of_the_key_and_differs_by_schema() {
        for scale in [10_000u64, 10_240, 32_768, 131_072, 140_001] {
            for schema in [1, 2, 255] {
                for seed in [0, 1, 0xffff_ffff_ffff_ffff] {
                    let p = Permutation::new(seed, schema, scale);
                    let r = rank_correlation((1..=scale).map(|k| (k, p.slot_of_key(k))));
                    assert!(r.abs() < 0.05, "{scale} {schema} {seed}: {r}");
                }
            }
            let (a, b) = (Permutation::new(3, 1, scale), Permutation::new(3, 2, scale));
            let same = (1..=scale).filter(|key| a.slot_of_key(*key) == b.slot_of_key(*key)).count();
            assert!(same < 20, "{same} keys of {scale} share a slot");
            let r = rank_correlation((1..=scale).map(|k| (a.slot_of_key(k), b.slot_of_key(k))));
            assert!(r.abs() < 0.05, "schemas correlate: {r}");
        }
    }

    #[test]
    fn rank_correlation_knows_order() {
        assert!((rank_correlation((1..100).map(|x| (x, x))) - 1.0).abs() < 1e-12);
        assert!((rank_correlation((1..100).map(|x| (x, 100 - x))) + 1.0).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_seed_and_size_is_a_bijection(seed: u64, schema in 1u32..5000, n in 1u64..20_000) {
            is_bijection(&Permutation::new(seed, schema, n));
        }

        #[test]
        fn large_tables_invert(seed: u64, n in 1u64<<32..1 << 40, at: u64) {
            let p = Permutation::new(seed, 1, n);
            let key = at % n + 1;
            let slot = p.slot_of_key(key);
            prop_assert!(slot < n);
            prop_assert_eq!(p.key_of_slot(slot), key);
        }
    }
}
