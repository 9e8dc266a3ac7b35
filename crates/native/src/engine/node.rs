//! Reading an index node in its frame.
//!
//! The node may change under an optimistic reader, which finds out afterwards; so no value read here may lead outside
//! the frame.

use crate::layout::Page;
use assay_block::Pool;

const ENTRIES_WORD: usize = 8;
const FIRST_ENTRY_WORD: usize = 10;

/// A view of one index node.
pub(crate) struct Node<'p> {
    pub(crate) pool: &'p Pool,
    pub(crate) frame: u32,
}

impl Node<'_> {
    fn entries(&self) -> usize {
        let said = (self.pool.word(self.frame, ENTRIES_WORD) & 0xffff_ffff) as usize;
        said.min((self.pool.frame_bytes() / 8 - FIRST_ENTRY_WORD) / 2)
    }

    fn key(&self, i: usize) -> u64 {
        self.pool.word(self.frame, FIRST_ENTRY_WORD + 2 * i)
    }

    fn value(&self, i: usize) -> u64 {
        self.pool.word(self.frame, FIRST_ENTRY_WORD + 2 * i + 1)
    }

    /// The last entry whose key is not above `key`: where it is in a full node, whose keys stand at equal distances, else by
    /// binary search.
    fn position(&self, key: u64) -> Option<usize> {
        let entries = self.entries();
        if entries > 1 {
            let first = self.key(0);
            let apart = self.key(1).wrapping_sub(first).max(1);
            let at = (key.wrapping_sub(first) / apart) as usize;
            if at < entries && self.key(at) <= key && (at + 1 == entries || key < self.key(at + 1)) {
                return Some(at);
            }
        }
        let (mut low, mut high) = (0, entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) <= key { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    /// The child that covers `key`.
    pub(crate) fn child_of(&self, key: u64) -> Option<u64> {
        self.position(key).map(|i| self.value(i))
    }

    /// Appends the pages of up to `most` rows from `key` on; whether the leaf holds `key`.
    pub(crate) fn rows_from(&self, key: u64, most: usize, out: &mut Vec<Page>) -> bool {
        out.clear();
        let Some(first) = self.position(key) else {
            return false;
        };
        if self.key(first) != key {
            return false;
        }
        let last = self.entries().min(first + most);
        out.extend((first..last).map(|i| Page(self.value(i))));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_block::PoolOptions;
    use proptest::prelude::*;

    proptest! {
        /// Full nodes have keys at equal distances, the last one of a level may not, and a node under change has any.
        #[test]
        fn a_position_is_the_last_key_not_above(
            first in 0u64..50,
            gaps in prop_oneof![
                proptest::collection::vec(1u64..2, 0..40),
                proptest::collection::vec(7u64..8, 0..40),
                proptest::collection::vec(1u64..9, 0..40),
            ],
            key in 0u64..400,
        ) {
            let mut keys = vec![first];
            keys.extend(gaps.iter().scan(first, |at, gap| { *at += gap; Some(*at) }));
            let pool = Pool::new(&PoolOptions { frames: 1, frame_bytes: 4096, huge_pages: false }).unwrap();
            let mut lease = pool.try_exclusive(0).unwrap();
            pool.write_word(&mut lease, ENTRIES_WORD, keys.len() as u64);
            for (i, key) in keys.iter().enumerate() {
                pool.write_word(&mut lease, FIRST_ENTRY_WORD + 2 * i, *key);
            }
            pool.release(lease);
            let node = Node { pool: &pool, frame: 0 };
            prop_assert_eq!(node.position(key), keys.iter().rposition(|of| *of <= key));
        }
    }
}
