//! An array of words that threads share: data beside a pool's frames that is read as often as the frames.

use crate::BlockError;
use crate::mapping::Mapping;
use crate::prefetch::prefetch_line;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// Zeroed words of 8 bytes in a separate area, so that the kernel can back them with huge pages. With small pages
/// almost every lookup in a table of many megabytes misses the TLB.
pub struct Words {
    memory: Mapping,
    len: usize,
}

impl Words {
    /// Maps `len` words for `what` (used in the error) and allocates their pages. `huge_pages` is advice.
    ///
    /// # Errors
    /// [`BlockError::Memory`] if the system has too little, [`BlockError::Invalid`] for more than can be addressed.
    pub fn zeroed(len: usize, huge_pages: bool, what: &'static str) -> Result<Self, BlockError> {
        let bytes =
            len.checked_mul(size_of::<AtomicU64>()).filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or_else(
                || BlockError::Invalid { what: format!("{len} words for {what} are more than can be addressed") },
            )?;
        let memory = Mapping::new(bytes, huge_pages, what)?;
        Ok(Self { memory, len })
    }

    /// Prefetches the cache line of a word. Out of range is ignored.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        if index < self.len {
            prefetch_line(self.memory.base().wrapping_add(index * size_of::<AtomicU64>()));
        }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        let first = self.memory.base().cast::<AtomicU64>();
        // SAFETY: the mapping holds `len` words, is aligned to 4096 bytes and zeroed, and lives as long as `self`;
        // nothing but this slice gives access to it, so every access is atomic.
        unsafe { std::slice::from_raw_parts(first, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn words_are_zero_and_each_keeps_its_own_value() {
        for huge_pages in [false, true] {
            let words = Words::zeroed(1000, huge_pages, "a test").unwrap();
            assert_eq!(words.len(), 1000);
            for (value, word) in words.iter().enumerate() {
                assert_eq!(word.swap(value as u64, Ordering::Relaxed), 0);
            }
            assert_eq!(words[999].load(Ordering::Relaxed), 999);
        }
    }

    #[test]
    fn more_words_than_can_be_addressed_are_refused() {
        let refused = Words::zeroed(usize::MAX / 4, false, "a test");
        assert!(matches!(refused, Err(BlockError::Invalid { .. })));
    }
}
