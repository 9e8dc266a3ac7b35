//! Memory as a subject of measurement: areas in a chosen kind of page, loops over them with a chosen kind of store, and
//! a pointer chain through them.
//!
//! The loops are here because non-temporal stores, and a pointer chain that costs only the memory access, cannot be
//! written without `unsafe`. The caller decides what to measure, when and how often.

mod cycle;
mod nodes;
mod stream;

pub use cycle::{Cycle, Place, Spacing};
pub use nodes::Policy;
pub use stream::{Kernel, LANES, Stores, has_streaming_stores, path, sum, write};

use crate::mapping::Mapping;
use crate::{BlockError, Pages};

/// Zeroed memory of this process whose pages are allocated at their first touch.
pub struct Area {
    mapping: Mapping,
}

impl Area {
    /// Maps `bytes` in pages of a kind, for `what` (used in the error), without touching them.
    ///
    /// # Errors
    /// If the kernel, or its pool of huge pages, cannot provide the memory.
    pub fn new(bytes: usize, pages: Pages, what: &'static str) -> Result<Self, BlockError> {
        let mapping = Mapping::in_pages(bytes, pages, what)?;
        Ok(Self { mapping })
    }

    /// Requests pages on certain NUMA nodes; call this before touching any page.
    ///
    /// # Errors
    /// If there is no such node, or the kernel has no NUMA support.
    pub fn place(&self, policy: Policy) -> Result<(), BlockError> {
        nodes::bind(&self.mapping, policy)
    }

    /// Pages per node, from a sample of at most 1024 spread over the area: `(node, pages)`; empty if the kernel does
    /// not report it.
    #[must_use]
    pub fn nodes(&self) -> Vec<(u32, u64)> {
        nodes::of(&self.mapping)
    }

    /// The whole area as numbers, without an incomplete last one.
    #[must_use]
    pub fn words(&mut self) -> &mut [u64] {
        let (base, count) = self.of::<u64>();
        // SAFETY: the mapping is zeroed or holds what was written here; any bit pattern is a valid `u64` and `f64`. It
        // is aligned to a page and lives as long as `self`, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(base, count) }
    }

    /// The whole area as floating-point numbers.
    #[must_use]
    pub fn floats(&mut self) -> &mut [f64] {
        let (base, count) = self.of::<f64>();
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(base, count) }
    }

    fn of<T>(&self) -> (*mut T, usize) {
        (self.mapping.base().cast(), self.mapping.len() / size_of::<T>())
    }

    /// Bytes that the kernel reports as backed by huge pages; `None` if it does not report them.
    #[must_use]
    pub fn huge_bytes(&self) -> Option<u64> {
        self.mapping.huge_pages_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_zeroed_and_holds_what_is_written() {
        for pages in [Pages::Base, Pages::Transparent] {
            let mut area = Area::new(3 * 4096 + 5, pages, "a test").unwrap();
            assert_eq!(area.words().len(), (3 * 4096 + 5) / 8);
            assert!(area.words().iter().all(|word| *word == 0));
            area.floats()[7] = 1.0;
            assert_eq!(area.words()[7], 1.0_f64.to_bits());
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn small_pages_are_never_huge_and_an_empty_pool_says_so() {
        let mut area = Area::new(8 << 20, Pages::Base, "a test").unwrap();
        area.words().fill(1);
        assert_eq!(area.huge_bytes(), Some(0));
        let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages");
        if free.is_ok_and(|free| free.trim() == "0") {
            let refused = Area::new(1 << 30, Pages::Pool1G, "a test");
            assert!(matches!(refused, Err(BlockError::Memory { .. })));
        }
    }
}
