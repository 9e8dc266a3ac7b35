//! Weighted choices: directions, lengths, zones.
//!
//! A deck has as many cards of each kind as its weight says. Cards are drawn without replacement, and an empty deck is
//! reshuffled. So every hundred draws have exactly the requested shares, in random order, and a short run matches them
//! as well as a long one.

use super::super::spec::{BlockSizes, SpecError};
use super::invalid;
use assay_measure::prng::Stream;

/// A deck of cards of weighted kinds.
#[derive(Clone, Debug)]
pub(super) struct Deck {
    weights: Vec<u32>,
    left: Vec<u32>,
    sum: u64,
    sum_left: u64,
}

impl Deck {
    /// A deck with `weights[i]` cards of kind i.
    ///
    /// # Errors
    /// If there is no card at all.
    pub(super) fn new(weights: Vec<u32>) -> Result<Self, SpecError> {
        let sum: u64 = weights.iter().copied().map(u64::from).sum();
        if sum == 0 {
            return Err(invalid("all weights are 0".to_owned()));
        }
        Ok(Self { left: weights.clone(), weights, sum, sum_left: sum })
    }

    /// The kind of the next card.
    #[inline]
    pub(super) fn draw(&mut self, stream: &mut Stream) -> usize {
        if self.sum_left == 0 {
            self.left.copy_from_slice(&self.weights);
            self.sum_left = self.sum;
        }
        let mut nth = stream.below(self.sum_left);
        self.sum_left -= 1;
        for (kind, left) in self.left.iter_mut().enumerate() {
            if nth < u64::from(*left) {
                *left -= 1;
                return kind;
            }
            nth -= u64::from(*left);
        }
        unreachable!("a draw lies below the sum of all cards")
    }
}

/// The length of an I/O.
#[derive(Clone, Debug)]
pub(super) enum Lengths {
    /// A fixed length, bytes.
    Fixed(u32),
    /// A multiple of `min`: one of `steps` equally likely lengths.
    Range { min: u32, steps: u64 },
    /// A weighted choice of lengths, bytes.
    Split { lengths: Vec<u32>, deck: Deck },
}

impl Lengths {
    /// Lengths as the options request them. Every length is a multiple of the smallest: fio rounds others down.
    ///
    /// # Errors
    /// Sizes that cannot work.
    pub(super) fn new(sizes: &BlockSizes) -> Result<Self, SpecError> {
        let min = sizes.min;
        if min == 0 || sizes.max < min {
            return Err(invalid(format!(
                "block sizes from {min} to {} bytes: the smallest must be above 0 and not above the largest",
                sizes.max
            )));
        }
        if sizes.split.is_empty() {
            let steps = u64::from(sizes.max / min);
            return Ok(if steps == 1 { Self::Fixed(min) } else { Self::Range { min, steps } });
        }
        let lengths: Vec<u32> = sizes.split.iter().map(|(len, _)| len / min * min).collect();
        if lengths.contains(&0) {
            return Err(invalid(format!("bssplit names a block smaller than the smallest, {min} bytes")));
        }
        let deck = Deck::new(sizes.split.iter().map(|(_, weight)| *weight).collect())?;
        Ok(if lengths.iter().all(|len| *len == min) { Self::Fixed(min) } else { Self::Split { lengths, deck } })
    }

    /// The next length, bytes.
    #[inline]
    pub(super) fn draw(&mut self, stream: &mut Stream) -> u32 {
        match self {
            Self::Fixed(len) => *len,
            Self::Range { min, steps } => *min * (1 + stream.below(*steps) as u32),
            Self::Split { lengths, deck } => lengths[deck.draw(stream)],
        }
    }

    /// The length of every I/O, if all are equal.
    pub(super) fn fixed(&self) -> Option<u32> {
        match self {
            Self::Fixed(len) => Some(*len),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::prng::Purpose;

    #[test]
    fn every_hundred_draws_have_exactly_the_shares() {
        let mut stream = Stream::new(1, 1, Purpose::Test);
        let mut deck = Deck::new(vec![70, 0, 25, 5]).unwrap();
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let draws: Vec<usize> = (0..100).map(|_| deck.draw(&mut stream)).collect();
            let count = |kind| draws.iter().filter(|d| **d == kind).count();
            assert_eq!([count(0), count(1), count(2), count(3)], [70, 0, 25, 5]);
            orders.insert(draws);
        }
        assert_eq!(orders.len(), 50);
        assert!(Deck::new(vec![0, 0]).is_err());
    }

    #[test]
    fn lengths_are_multiples_of_the_smallest() {
        let mut stream = Stream::new(1, 2, Purpose::Test);
        let sizes = |min, max, split: &[(u32, u32)]| BlockSizes { min, max, split: split.to_vec() };
        let mut range = Lengths::new(&sizes(3072, 8192, &[])).unwrap();
        for _ in 0..100 {
            assert!([3072, 6144].contains(&range.draw(&mut stream)));
        }
        // 6k beside 4k: fio issues 4k only.
        let split = Lengths::new(&sizes(4096, 6144, &[(4096, 50), (6144, 50)])).unwrap();
        assert_eq!(split.fixed(), Some(4096));
        assert!(Lengths::new(&sizes(0, 4096, &[])).is_err());
        assert!(Lengths::new(&sizes(4096, 512, &[])).is_err());
        assert!(Lengths::new(&sizes(4096, 8192, &[(512, 100)])).is_err());
    }
}
