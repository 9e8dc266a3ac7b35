//! Lookups in a B-tree of 8 KiB pages with 16-byte keys.

use super::Work;
use assay_measure::prng::{SplitMix64, scramble};

/// Lookups of one call.
pub(super) const LOOKUPS: u64 = 512;
/// Calls until the lookups repeat themselves: a hundred thousand rows, so that 16 MiB do not shrink to what fits in a cache.
const CHUNKS: usize = 256;
const PAGE_BYTES: usize = 8192;
const WORDS: usize = PAGE_BYTES / 8;
/// Entries of a page: a key of two words and a word beside it, behind the count.
const FANOUT: usize = 340;
const VALUES_AT: usize = 1 + 2 * FANOUT;

type Page = [u64; WORDS];
type Key = (u64, u64);

struct Tree {
    pages: Vec<Page>,
    root: usize,
    levels: usize,
    rows: u64,
}

pub(super) fn small() -> Box<dyn Work> {
    Box::new(Tree::new(256 << 10))
}

pub(super) fn medium() -> Box<dyn Work> {
    Box::new(Tree::new(16 << 20))
}

pub(super) fn large() -> Box<dyn Work> {
    Box::new(Tree::new(1 << 30))
}

/// Keys rise with the row, and no two are at the same distance.
fn key(row: u64) -> Key {
    let mixed = scramble(row);
    (row << 20 | mixed & 0xF_FFFF, mixed)
}

fn value(row: u64) -> u64 {
    scramble(!row)
}

fn page(entries: &[(Key, u64)]) -> Page {
    let mut page = [0; WORDS];
    page[0] = entries.len() as u64;
    for (at, ((high, low), value)) in entries.iter().enumerate() {
        page[1 + 2 * at] = *high;
        page[2 + 2 * at] = *low;
        page[VALUES_AT + at] = *value;
    }
    page
}

/// Entries of a page whose keys are at most `wanted`.
#[inline]
fn position(page: &Page, wanted: Key) -> usize {
    let (mut from, mut to) = (0, page[0] as usize);
    while from < to {
        let middle = (from + to) / 2;
        let found = (page[1 + 2 * middle], page[2 + 2 * middle]);
        if found <= wanted {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

impl Tree {
    /// Leaves of so many bytes, all full, and branches above them until there is one.
    fn new(bytes: usize) -> Self {
        let leaves = bytes / PAGE_BYTES;
        let rows = (leaves * FANOUT) as u64;
        let mut pages = Vec::with_capacity(leaves + leaves / 4 + 8);
        let mut below: Vec<(Key, u64)> = Vec::new();
        for first in (0..rows).step_by(FANOUT) {
            let entries: Vec<(Key, u64)> = (first..first + FANOUT as u64).map(|row| (key(row), value(row))).collect();
            below.push((entries[0].0, pages.len() as u64));
            pages.push(page(&entries));
        }
        // Branches as many as each has children, so that a small tree has the levels of a large one.
        let children = ((leaves as f64).sqrt().ceil() as usize).clamp(2, FANOUT);
        let mut levels = 1;
        while below.len() > 1 {
            let mut above = Vec::new();
            for entries in below.chunks(children) {
                above.push((entries[0].0, pages.len() as u64));
                pages.push(page(entries));
            }
            below = above;
            levels += 1;
        }
        Self { root: pages.len() - 1, pages, levels, rows }
    }

    fn find(&self, wanted: Key) -> Option<u64> {
        let mut at = self.root;
        for _ in 1..self.levels {
            let page = &self.pages[at];
            let position = position(page, wanted).checked_sub(1)?;
            at = page[VALUES_AT + position] as usize;
        }
        let page = &self.pages[at];
        let position = position(page, wanted).checked_sub(1)?;
        let found = (page[1 + 2 * position], page[2 + 2 * position]);
        (found == wanted).then(|| page[VALUES_AT + position])
    }
}

impl Work for Tree {
    fn chunks(&self) -> usize {
        CHUNKS
    }

    /// Each lookup waits for the row before: a nested-loops join cannot know its next key sooner.
    fn call(&self, chunk: usize, _: &mut [u8]) -> u64 {
        let mut random = SplitMix64(chunk as u64);
        let (mut last, mut sum) = (0, 0_u64);
        for _ in 0..LOOKUPS {
            let drawn = random.next_u64() ^ last;
            let row = ((u128::from(drawn) * u128::from(self.rows)) >> 64) as u64;
            last = self.find(key(row)).unwrap_or(0);
            sum = sum.wrapping_add(last);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_and_nothing_else_in_three_levels() {
        for bytes in [256 << 10, 16 << 20] {
            let tree = Tree::new(bytes);
            assert_eq!(tree.levels, 3, "{bytes}");
            for row in (0..tree.rows).step_by(97) {
                assert_eq!(tree.find(key(row)), Some(value(row)), "{row}");
                let (high, low) = key(row);
                assert_eq!(tree.find((high, low ^ 1)), None, "{row}");
            }
            assert_eq!(tree.find((u64::MAX, 0)), None);
        }
    }
}
