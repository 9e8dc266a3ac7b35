//! Random streams by (seed, session, purpose).
//!
//! A stream depends on nothing else, neither on threads nor on CPUs nor on what
//! other streams were asked for, so a run can be replayed. The generator is
//! named and fixed: a replay may not change from one release to the next.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream is drawn for. The numbers are part of every replay: new
/// purposes get new numbers, and none is ever used again.
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
}

/// One random stream: xoshiro256++ (Blackman and Vigna), seeded by SplitMix64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of a session (from 1; 0 for what belongs to none) for one purpose.
    #[must_use]
    pub fn new(seed: u64, session: u64, purpose: Purpose) -> Self {
        let mut state = split_mix(seed);
        state = split_mix(state ^ session);
        state = split_mix(state ^ purpose as u64);
        let mut bytes = [0_u8; 32];
        for word in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(GOLDEN_GAMMA);
            word.copy_from_slice(&finalise(state).to_le_bytes());
        }
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
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// One output of SplitMix64 (Steele, Lea, Flood 2014; constants of Vigna's version).
fn split_mix(state: u64) -> u64 {
    finalise(state.wrapping_add(GOLDEN_GAMMA))
}

fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
