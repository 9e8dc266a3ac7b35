//! The blocks of a region that are still to be visited.
//!
//! A tree of bits with 64 children per node: finding the next free block examines only a few words, even when one block
//! of a billion is left.

use super::super::spec::SpecError;
use super::invalid;

/// Free blocks of one region; initially all.
#[derive(Clone, Debug)]
pub(super) struct FreeMap {
    /// Level 0 has one bit per block, set while the block is free. A bit of a higher level is set while its word below
    /// has any bit set.
    levels: Vec<Vec<u64>>,
    blocks: u64,
}

impl FreeMap {
    /// A map of `blocks` blocks.
    ///
    /// # Errors
    /// If there is not enough memory: a bit per block and a little more for the upper levels.
    pub(super) fn new(blocks: u64) -> Result<Self, SpecError> {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = usize::try_from(bits.div_ceil(64)).unwrap_or(usize::MAX);
            let mut level: Vec<u64> = Vec::new();
            level.try_reserve_exact(words).map_err(|_| {
                invalid(format!(
                    "no memory for a random map of {blocks} blocks: use norandommap (never a map) or softrandommap \
                     (no map if there is no memory)"
                ))
            })?;
            level.resize(words, 0);
            levels.push(level);
            if words <= 1 {
                break;
            }
            bits = words as u64;
        }
        let mut map = Self { levels, blocks };
        map.clear();
        Ok(map)
    }

    /// Total number of blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Makes every block free again.
    pub(super) fn clear(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(u64::MAX);
            let rest = bits % 64;
            if rest != 0
                && let Some(last) = level.last_mut()
            {
                *last = (1 << rest) - 1;
            }
            bits = level.len() as u64;
        }
    }

    /// The first free block at or after `from`, wrapping around; `None` if all are taken.
    #[inline]
    pub(super) fn next_free(&self, from: u64) -> Option<u64> {
        self.at_or_after(from).or_else(|| self.at_or_after(0))
    }

    fn at_or_after(&self, from: u64) -> Option<u64> {
        if from >= self.blocks {
            return None;
        }
        let mut at = from;
        let mut level = 0;
        loop {
            let word = *self.levels.get(level)?.get((at / 64) as usize)?;
            let ahead = word & (u64::MAX << (at % 64));
            if ahead != 0 {
                at = at / 64 * 64 + u64::from(ahead.trailing_zeros());
                break;
            }
            // No free block ahead in this word: ask the next level for the next word that has one.
            at = at / 64 + 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            let word = self.levels[level][at as usize];
            at = at * 64 + u64::from(word.trailing_zeros());
        }
        Some(at)
    }

    /// Whether the block is free.
    #[inline]
    pub(super) fn is_free(&self, block: u64) -> bool {
        block < self.blocks && self.levels[0][(block / 64) as usize] >> (block % 64) & 1 != 0
    }

    /// Number of consecutive free blocks from `block` on, at most `most`.
    pub(super) fn run(&self, block: u64, most: u64) -> u64 {
        (0..most).take_while(|i| self.is_free(block + i)).count() as u64
    }

    /// Takes a block; taking it twice has no further effect.
    #[inline]
    pub(super) fn take(&mut self, block: u64) {
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[(at / 64) as usize];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_map_is_a_set_of_free_blocks(
            blocks in prop_oneof![1_u64..200, 4000_u64..5000, 262_100_u64..262_200],
            steps in prop::collection::vec((any::<u64>(), any::<bool>()), 1..300),
        ) {
            let mut map = FreeMap::new(blocks).unwrap();
            let mut free: BTreeSet<u64> = (0..blocks).collect();
            for (draw, clear) in steps {
                let from = draw % blocks;
                let expected = free.range(from..).next().or_else(|| free.first()).copied();
                prop_assert_eq!(map.next_free(from), expected);
                prop_assert_eq!(map.is_free(from), free.contains(&from));
                match expected {
                    Some(block) => {
                        let run = (block..block + 9).take_while(|b| free.contains(b)).count() as u64;
                        prop_assert_eq!(map.run(block, 9), run);
                        map.take(block);
                        free.remove(&block);
                    }
                    None if clear => {
                        map.clear();
                        free = (0..blocks).collect();
                    }
                    None => {}
                }
            }
        }
    }

    #[test]
    fn the_last_free_block_of_many_is_found_and_all_come_back() {
        let blocks = 64 * 64 * 64 + 5;
        let mut map = FreeMap::new(blocks).unwrap();
        for block in (0..blocks).filter(|b| *b != 77_777) {
            map.take(block);
        }
        for from in [0, 77_777, 77_778, blocks - 1] {
            assert_eq!(map.next_free(from), Some(77_777));
        }
        map.take(77_777);
        assert_eq!(map.next_free(3), None);
        map.clear();
        assert_eq!(map.next_free(blocks - 1), Some(blocks - 1));
        assert!(!map.is_free(blocks));
    }
}
