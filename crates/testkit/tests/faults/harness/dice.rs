//! The one stream of chance of a seed.

use assay_measure::prng::SplitMix64;

/// What a seed decides, in the order in which it is asked.
#[derive(Clone, Debug)]
pub(super) struct Dice(SplitMix64);

impl Dice {
    /// The stream `purpose` of a seed.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let mut dice = Self(SplitMix64(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ purpose << 56));
        dice.next();
        dice
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 0 to `n` - 1.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0.pick(choices)
    }
}
