//! Page to frame: a hash table read without locks.
//!
//! A bucket is one cache line: seven entries and an overflow count. An entry packs the page (40 bits, plus one so that
//! 0 is empty) and the frame (24 bits), so a lookup costs one line and no pointer chase. A thread that changes the
//! table holds the page's shard of the cache; readers may see an entry that is about to be removed and therefore check
//! the frame itself.

use crate::layout::Page;
use assay_block::{BlockError, Words};
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a bucket: one cache line.
const BUCKET: usize = 8;
const ENTRIES: usize = 7;
const OVERFLOW: usize = 7;
const FRAME_BITS: u32 = 24;
const PAGE_BITS: u32 = 64 - FRAME_BITS;
/// Frames an entry can name: 16.7 million, 128 GiB of 8 KiB blocks.
pub(crate) const MAX_FRAMES: usize = 1 << FRAME_BITS;
/// How far an entry may stray from its home bucket before the table counts as full.
const MAX_PROBES: usize = 64;

/// The table. Sized for a given number of frames, never grows.
pub(crate) struct PageTable {
    words: Words,
    mask: usize,
}

fn entry(page: Page, frame: u32) -> u64 {
    ((page.0 + 1) << FRAME_BITS) | u64::from(frame)
}

/// Mixes a page number (Stafford's variant 13 of the splitmix finaliser).
#[inline]
pub(crate) fn mix(page: Page) -> u64 {
    let mut z = page.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

impl PageTable {
    /// A table for up to `frames` entries, at most five of seven places used on average: the smaller it is, the more of it
    /// the processor's caches and translation buffers hold.
    ///
    /// # Errors
    /// [`BlockError::Memory`] where the system has too little.
    pub(crate) fn new(frames: usize, huge_pages: bool) -> Result<Self, BlockError> {
        let buckets = (frames / 5).max(1).next_power_of_two();
        Ok(Self { words: Words::zeroed(buckets * BUCKET, huge_pages, "the page table")?, mask: buckets - 1 })
    }

    #[inline]
    fn bucket(&self, at: usize) -> &[AtomicU64; BUCKET] {
        let (buckets, _) = self.words.as_chunks::<BUCKET>();
        &buckets[at]
    }

    #[inline]
    fn home(&self, page: Page) -> usize {
        mix(page) as usize & self.mask
    }

    /// Asks the memory for the bucket of `page`.
    #[inline]
    pub(crate) fn prefetch(&self, page: Page) {
        self.words.prefetch(self.home(page) * BUCKET);
    }

    /// The frame that may hold `page`.
    #[inline]
    pub(crate) fn lookup(&self, page: Page) -> Option<u32> {
        let mut at = self.home(page);
        let wanted = page.0 + 1;
        for _ in 0..MAX_PROBES {
            let bucket = self.bucket(at);
            // All places, without a branch on which it is: that cannot be foretold, and a wrong guess costs more than the line.
            let mut found = 0;
            for slot in &bucket[..ENTRIES] {
                let value = slot.load(Ordering::Acquire);
                found = if value >> FRAME_BITS == wanted { value } else { found };
            }
            if found != 0 {
                return Some((found & (MAX_FRAMES as u64 - 1)) as u32);
            }
            if bucket[OVERFLOW].load(Ordering::Relaxed) == 0 {
                return None;
            }
            at = (at + 1) & self.mask;
        }
        None
    }

    /// Adds an entry; the page must not be in the table. The caller holds the page's shard.
    pub(crate) fn insert(&self, page: Page, frame: u32) -> bool {
        debug_assert!(
            page.0 < (1 << PAGE_BITS) - 1 && (frame as usize) < MAX_FRAMES,
            "C8: an entry holds page and frame; page {}, frame {frame}",
            page.0
        );
        let home = self.home(page);
        for probe in 0..MAX_PROBES {
            let at = (home + probe) & self.mask;
            for slot in &self.bucket(at)[..ENTRIES] {
                // Other shards may overflow into this bucket at the same time.
                if slot.load(Ordering::Relaxed) == 0
                    && slot.compare_exchange(0, entry(page, frame), Ordering::AcqRel, Ordering::Relaxed).is_ok()
                {
                    return true;
                }
            }
            self.bucket(at)[OVERFLOW].fetch_add(1, Ordering::AcqRel);
        }
        for probe in 0..MAX_PROBES {
            self.bucket((home + probe) & self.mask)[OVERFLOW].fetch_sub(1, Ordering::AcqRel);
        }
        false
    }

    /// Removes an entry. The caller holds the page's shard.
    pub(crate) fn remove(&self, page: Page, frame: u32) {
        let home = self.home(page);
        let value = entry(page, frame);
        for probe in 0..MAX_PROBES {
            let at = (home + probe) & self.mask;
            for slot in &self.bucket(at)[..ENTRIES] {
                if slot.load(Ordering::Relaxed) == value {
                    slot.store(0, Ordering::Release);
                    for passed in 0..probe {
                        self.bucket((home + passed) & self.mask)[OVERFLOW].fetch_sub(1, Ordering::AcqRel);
                    }
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// 32 buckets.
    const FRAMES: usize = 160;

    proptest! {
        /// As full as a table gets: five of seven places.
        #[test]
        fn the_table_agrees_with_a_map(steps in proptest::collection::vec((0u64..400, proptest::bool::weighted(0.7)), 1..2000)) {
            let table = PageTable::new(FRAMES, false).unwrap();
            let mut model: HashMap<u64, u32> = HashMap::new();
            for (n, (page, add)) in steps.into_iter().enumerate() {
                let frame = n as u32;
                if add && model.len() < FRAMES && !model.contains_key(&page) {
                    prop_assert!(table.insert(Page(page), frame));
                    model.insert(page, frame);
                } else if let Some(frame) = model.remove(&page) {
                    table.remove(Page(page), frame);
                }
                prop_assert_eq!(table.lookup(Page(page)), model.get(&page).copied());
            }
            for page in 0..400 {
                prop_assert_eq!(table.lookup(Page(page)), model.get(&page).copied());
            }
        }
    }

    #[test]
    fn a_page_at_the_end_of_the_number_space_keeps_its_identity() {
        let table = PageTable::new(8, false).unwrap();
        let last = Page((1 << 40) - 2);
        assert!(table.insert(last, MAX_FRAMES as u32 - 1));
        assert_eq!(table.lookup(last), Some(MAX_FRAMES as u32 - 1));
    }
}
