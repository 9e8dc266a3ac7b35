//! Random streams by (seed, session, purpose).
//!
//! A stream depends on nothing else, neither on threads nor on CPUs nor on the use of other streams, so a run can be
//! replayed. The generator is named and fixed: a replay may not change from one release to the next.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream is drawn for. The numbers are part of every replay: new purposes get new numbers, and no number is
/// ever reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u64)]
#[non_exhaustive]
pub enum Purpose {
    /// First keys of ranges.
    Keys = 1,
    /// Which operations of a window are updates.
    Mix = 2,
    /// Which selects are scans.
    Scan = 3,
    /// Which operations of a group go to the hot spot.
    HotSpot = 4,
    /// Which operations of a group go to schema 1.
    HotSchema = 5,
    /// Which operations of a group are preceded by think time.
    Think = 6,
    /// How long a think time is.
    ThinkLength = 7,
    /// Content of obfuscated columns.
    Obfuscate = 8,
    /// Content and order of loaded rows.
    Load = 9,
    /// What is sampled.
    Sample = 10,
    /// Delays and faults of the simulated engine.
    Simulation = 11,
    /// Tests only.
    Test = 12,
    /// When randomly arriving transactions are due.
    Arrivals = 13,
    /// Redraws of a bootstrap.
    Resample = 21,
    /// Offsets of a storage job.
    StorageOffsets = 31,
    /// Directions of a storage job.
    StorageWays = 32,
    /// Lengths of a storage job's I/Os.
    StorageLengths = 33,
    /// Which file of a storage job comes next.
    StorageFiles = 34,
    /// What a storage job writes.
    StoragePayload = 35,
}

/// One random stream: xoshiro256++ (Blackman and Vigna), seeded by SplitMix64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of a session (from 1; 0 for what belongs to none) for one purpose.
    #[must_use]
    pub fn new(seed: u64, session: u64, purpose: Purpose) -> Self {
        let mut state = SplitMix64(seed).next_u64();
        state = SplitMix64(state ^ session).next_u64();
        state = SplitMix64(state ^ purpose as u64).next_u64();
        let mut bytes = [0_u8; 32];
        SplitMix64(state).fill(&mut bytes);
        Self(Xoshiro256PlusPlus::from_seed(bytes))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number from 0 to below `n`, each equally likely (Lemire, "Fast Random
    /// Integer Generation in an Interval", 2019). 0 for `n` = 0, at the cost of a draw.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            // The low word is below n in about n of 2^64 draws only: the division is rare.
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A number from 0 to below 1 with 53 random bits.
    #[inline]
    pub fn uniform_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Fills `bytes` with random content.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// 2^64 divided by the golden ratio, odd: SplitMix64's step.
pub const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014; constants of Vigna's
/// version). Any state is as good as any other, so meaningful numbers can seed it.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        scramble(self.0)
    }

    /// 0 to `n` - 1, by the remainder: for tests, where its bias of n in 2^64 does not matter. 0 for `n` = 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next_u64() % n.max(1)
    }

    /// One of the choices.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Fills `bytes` with random content.
    #[inline]
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// SplitMix64's finaliser: a bijection of 64 bits, by which every bit of the result depends on every bit of `z`.
#[inline]
#[must_use]
pub fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn first(stream: &mut Stream) -> [u64; 3] {
        std::array::from_fn(|_| stream.next_u64())
    }

    /// Computed apart from this code, from the published definitions of SplitMix64
    /// and xoshiro256++. If this test fails, no recorded run can be replayed.
    #[test]
    fn a_replay_does_not_change() {
        let golden = [
            ((0, 0, Purpose::Test), [0xeb3d_ca4e_ed23_ba01, 0xc674_a134_8554_6c67, 0xbe30_cd4a_3f4d_985c]),
            ((42, 1, Purpose::Keys), [0xa31d_959e_999e_f7f6, 0xf949_2402_4e19_8ddd, 0xbbd3_e10b_b21c_3406]),
            ((42, 2, Purpose::Keys), [0xd61c_20f1_01d2_a7d9, 0x741b_df7b_7563_07ae, 0xa512_204f_7c91_8a00]),
            ((42, 1, Purpose::Mix), [0x5012_f188_14f6_9ef8, 0x2274_a815_4f95_ab44, 0x64c3_c54e_9b86_916f]),
            (
                (u64::MAX, 1000, Purpose::ThinkLength),
                [0x5599_3560_1ec1_3ed6, 0xfe7a_c370_e239_1a12, 0xc0cb_6e74_0385_c88a],
            ),
        ];
        for ((seed, session, purpose), outputs) in golden {
            let mut stream = Stream::new(seed, session, purpose);
            assert_eq!(first(&mut stream), outputs, "{seed} {session} {purpose:?}");
        }
    }

    #[test]
    fn purposes_keep_their_numbers() {
        let numbers = [
            (Purpose::Keys, 1),
            (Purpose::Mix, 2),
            (Purpose::Scan, 3),
            (Purpose::HotSpot, 4),
            (Purpose::HotSchema, 5),
            (Purpose::Think, 6),
            (Purpose::ThinkLength, 7),
            (Purpose::Obfuscate, 8),
            (Purpose::Load, 9),
            (Purpose::Sample, 10),
            (Purpose::Simulation, 11),
            (Purpose::Test, 12),
            (Purpose::Resample, 21),
            (Purpose::StorageOffsets, 31),
            (Purpose::StorageWays, 32),
            (Purpose::StorageLengths, 33),
            (Purpose::StorageFiles, 34),
            (Purpose::StoragePayload, 35),
        ];
        for (purpose, number) in numbers {
            assert_eq!(purpose as u64, number, "{purpose:?}");
        }
    }

    #[test]
    fn sessions_and_purposes_share_no_outputs() {
        let mut seen = HashSet::new();
        for session in 0..500 {
            for purpose in [Purpose::Keys, Purpose::Mix, Purpose::Scan, Purpose::Think] {
                let mut stream = Stream::new(7, session, purpose);
                assert!(first(&mut stream).into_iter().all(|n| seen.insert(n)));
            }
        }
    }

    #[test]
    fn below_reaches_every_value_equally_often() {
        // 100 bins, 99 degrees of freedom: chi-square exceeds 148.2 once in a thousand.
        let mut stream = Stream::new(1, 1, Purpose::Test);
        let mut bins = [0_u32; 100];
        for _ in 0..100_000 {
            bins[stream.below(100) as usize] += 1;
        }
        let chi_square: f64 = bins.iter().map(|&n| (f64::from(n) - 1e3).powi(2) / 1e3).sum();
        assert!(chi_square < 148.2, "{chi_square}");
    }

    #[test]
    fn below_is_unbiased_where_the_range_does_not_divide_two_to_the_64() {
        // Of 3 x 2^62, four draws share three values: without rejection every third
        // value would come up twice as often as the others.
        let range = 3 << 62;
        let mut stream = Stream::new(1, 2, Purpose::Test);
        let mut thirds = [0_u32; 3];
        for _ in 0..30_000 {
            thirds[(stream.below(range) % 3) as usize] += 1;
        }
        for n in thirds {
            assert!((9_700..10_300).contains(&n), "{thirds:?}");
        }
    }

    #[test]
    fn uniform_f64_fills_the_unit_interval() {
        let mut stream = Stream::new(1, 3, Purpose::Test);
        let draws: Vec<f64> = (0..100_000).map(|_| stream.uniform_f64()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        // Standard deviation of the mean is 0.0009.
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        assert!(draws.iter().any(|&draw| draw < 0.001) && draws.iter().any(|&draw| draw > 0.999));
    }

    proptest! {
        #[test]
        fn below_stays_below(seed in any::<u64>(), n in 1_u64..) {
            let mut stream = Stream::new(seed, 1, Purpose::Test);
            for _ in 0..20 {
                prop_assert!(stream.below(n) < n);
            }
            prop_assert_eq!(stream.below(1), 0);
            prop_assert_eq!(stream.below(0), 0);
        }

        #[test]
        fn a_stream_is_a_function_of_its_arguments(seed in any::<u64>(), session in any::<u64>()) {
            let mut left = Stream::new(seed, session, Purpose::Load);
            let mut right = Stream::new(seed, session, Purpose::Load);
            prop_assert_eq!(first(&mut left), first(&mut right));
            let (mut left_bytes, mut right_bytes) = ([0; 100], [0; 100]);
            left.fill(&mut left_bytes);
            right.fill(&mut right_bytes);
            prop_assert_eq!(left_bytes, right_bytes);
            let mut other = Stream::new(seed.wrapping_add(1), session, Purpose::Load);
            prop_assert_ne!(first(&mut Stream::new(seed, session, Purpose::Load)), first(&mut other));
        }
    }
}
