//! Probes of an open-addressing hash table, as of a hash join.

use super::Work;
use assay_measure::prng::{GOLDEN_GAMMA, SplitMix64, scramble};

/// Probes of one call.
pub(super) const PROBES: u64 = 2048;
const CHUNKS: usize = 128;
const SLOT_BYTES: usize = 16;

/// Linear probing, half full; a key of 0 is a free slot.
struct Table {
    slots: Vec<(u64, u64)>,
    /// Rows of the build side.
    rows: u64,
    shift: u32,
}

pub(super) fn small() -> Box<dyn Work> {
    Box::new(Table::new(256 << 10))
}

pub(super) fn medium() -> Box<dyn Work> {
    Box::new(Table::new(16 << 20))
}

pub(super) fn large() -> Box<dyn Work> {
    Box::new(Table::new(1 << 30))
}

fn key(row: u64) -> u64 {
    scramble(row) | 1
}

impl Table {
    fn new(bytes: usize) -> Self {
        let size = bytes / SLOT_BYTES;
        let mut table = Self { slots: vec![(0, 0); size], rows: size as u64 / 2, shift: 64 - size.ilog2() };
        for row in 0..table.rows {
            let key = key(row);
            let mut at = table.home(key);
            while table.slots[at].0 != 0 && table.slots[at].0 != key {
                at = (at + 1) % size;
            }
            table.slots[at] = (key, row);
        }
        table
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(GOLDEN_GAMMA) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, key: u64) -> Option<u64> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key);
        loop {
            match self.slots[at & mask] {
                (0, _) => return None,
                (found, row) if found == key => return Some(row),
                _ => at += 1,
            }
        }
    }
}

impl Work for Table {
    fn chunks(&self) -> usize {
        CHUNKS
    }

    /// Half of the probed keys are in the table. Probes do not wait for each other: a hash join knows its next keys.
    fn call(&self, chunk: usize, _: &mut [u8]) -> u64 {
        let mut random = SplitMix64(!(chunk as u64));
        let mut sum = 0_u64;
        for _ in 0..PROBES {
            let drawn = (u128::from(random.next_u64()) * u128::from(2 * self.rows)) >> 64;
            if let Some(row) = self.find(key(drawn as u64)) {
                sum = sum.wrapping_add(row).rotate_left(1);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_is_found_and_what_was_not_is_not() {
        let table = Table::new(256 << 10);
        for row in 0..table.rows {
            assert_eq!(table.find(key(row)), Some(row));
            assert_eq!(table.find(key(row + table.rows)), None);
        }
    }
}
