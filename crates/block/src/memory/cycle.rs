//! A pointer chain in an unpredictable order: each step depends on the one before, so its time is the memory latency.

use crate::mapping::Mapping;
use crate::{BlockError, Pages};

/// Spacing of the pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// One pointer per cache line of 64 bytes.
    Lines,
    /// One pointer per 4 KiB page, on varying lines, so that each step needs another page but few lines of each cache
    /// set.
    Pages,
}

const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;

impl Spacing {
    const fn bytes(self) -> usize {
        match self {
            Self::Lines => LINE_BYTES,
            Self::Pages => PAGE_BYTES,
        }
    }

    /// Byte offset of a node.
    const fn offset(self, node: usize) -> usize {
        match self {
            Self::Lines => node * LINE_BYTES,
            Self::Pages => node * PAGE_BYTES + (node * LINE_BYTES) % PAGE_BYTES,
        }
    }
}

/// One node of a [`Cycle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(usize);

/// Pointers in one area that form a single cycle through all of its nodes.
pub struct Cycle {
    mapping: Mapping,
    spacing: Spacing,
    /// Nodes in the cycle.
    nodes: usize,
}

/// The content of a node.
type Link = *const u8;

impl Cycle {
    /// Allocates room for a cycle of `bytes`, which starts with one node.
    ///
    /// # Errors
    /// If the kernel, or its pool of huge pages, cannot provide the memory.
    pub fn new(bytes: usize, pages: Pages, spacing: Spacing, what: &'static str) -> Result<Self, BlockError> {
        let mapping = Mapping::in_pages(bytes.max(PAGE_BYTES), pages, what)?;
        let mut cycle = Self { mapping, spacing, nodes: 0 };
        cycle.restart(spacing);
        Ok(cycle)
    }

    /// Starts over in the same memory, with one node.
    pub fn restart(&mut self, spacing: Spacing) {
        self.spacing = spacing;
        self.nodes = 1;
        let first = self.node(0);
        // SAFETY: the first node lies within the mapping, which `self` owns and borrows exclusively.
        unsafe { first.cast::<Link>().write(first) };
    }

    /// Extends the cycle to the first `bytes` of its area. Each new node goes behind one chosen by `below`, which draws
    /// uniformly below its argument. Every order of a single cycle is then equally likely, as with Sattolo's shuffle
    /// (1986), of which this is the inside-out form. It extends a smaller cycle instead of building it again.
    ///
    /// # Panics
    /// If `bytes` exceeds the area, or `below` returns a number not below its argument.
    pub fn grow(&mut self, bytes: usize, mut below: impl FnMut(u64) -> u64) {
        assert!(bytes <= self.mapping.len(), "a cycle within its area");
        let wanted = (bytes / self.spacing.bytes()).max(self.nodes);
        for new in self.nodes..wanted {
            let drawn = below(new as u64) as usize;
            assert!(drawn < new, "drawn below the bound");
            let (before, new) = (self.node(drawn).cast::<Link>(), self.node(new));
            // SAFETY: both nodes lie within the mapping (the bytes were compared above), aligned to a line; every node
            // below `new` was linked before, and `self` is borrowed exclusively.
            unsafe {
                new.cast::<Link>().write(before.read());
                before.write(new);
            }
        }
        self.nodes = wanted;
    }

    fn node(&self, node: usize) -> *mut u8 {
        self.mapping.base().wrapping_add(self.spacing.offset(node))
    }

    /// Nodes in the cycle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes
    }

    /// Always false: a cycle has at least one node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// The `nth` node in address order, wrapping around.
    #[must_use]
    pub fn place(&self, nth: usize) -> Place {
        Place(nth % self.nodes)
    }

    fn start(&self, place: Place) -> Link {
        self.node(place.0 % self.nodes)
    }

    fn end(&self, link: Link) -> Place {
        Place((link as usize - self.mapping.base() as usize) / self.spacing.bytes())
    }

    /// Follows `steps` links, each of which depends on the one before, and returns the node reached.
    #[must_use]
    pub fn walk(&self, from: Place, steps: u64) -> Place {
        let [end] = self.walk_together([from], steps);
        end
    }

    /// Follows this many links of each of several independent walks, interleaved.
    #[must_use]
    pub fn walk_together<const N: usize>(&self, from: [Place; N], steps: u64) -> [Place; N] {
        let mut links = from.map(|place| self.start(place));
        for _ in 0..steps {
            for link in &mut links {
                // SAFETY: a link is the address of a node of the cycle, and a node holds the link to another one. Only
                // `restart` and `grow` write here, and both borrow `self` exclusively.
                *link = unsafe { link.cast::<Link>().read() };
            }
        }
        links.map(|link| self.end(link))
    }

    /// Bytes that the kernel backs by huge pages; `None` if it does not report them.
    #[must_use]
    pub fn huge_bytes(&self) -> Option<u64> {
        self.mapping.huge_pages_bytes()
    }

    /// Requests pages on certain NUMA nodes; call this before the cycle grows.
    ///
    /// # Errors
    /// If there is no such node, or the kernel has no NUMA support.
    pub fn bind(&self, policy: super::Policy) -> Result<(), BlockError> {
        super::nodes::bind(&self.mapping, policy)
    }

    /// Pages per node, as [`super::Area::nodes`].
    #[must_use]
    pub fn nodes(&self) -> Vec<(u32, u64)> {
        super::nodes::of(&self.mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A generator that is good enough for a test (Marsaglia's xorshift).
    fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        }
    }

    #[test]
    fn memory_09_the_chase_visits_every_element_exactly_once_in_a_cycle() {
        for spacing in [Spacing::Lines, Spacing::Pages] {
            let mut random = random();
            let mut cycle = Cycle::new(64 * 4096, Pages::Base, spacing, "a test").unwrap();
            for pages in [1, 2, 7, 64] {
                cycle.grow(pages * 4096, &mut random);
                let nodes = pages * 4096 / spacing.bytes();
                assert_eq!(cycle.len(), nodes);
                let mut at = cycle.place(0);
                let mut seen = BTreeSet::new();
                for _ in 0..nodes {
                    assert!(seen.insert(at.0), "{at:?} twice");
                    at = cycle.walk(at, 1);
                }
                assert_eq!(at, cycle.place(0), "back at the beginning");
            }
        }
    }

    #[test]
    fn walks_side_by_side_go_where_each_goes_alone() {
        let mut cycle = Cycle::new(16 * 4096, Pages::Base, Spacing::Lines, "a test").unwrap();
        cycle.grow(16 * 4096, random());
        let from = [0, 100, 200].map(|nth| cycle.place(nth));
        let together = cycle.walk_together(from, 50);
        assert_eq!(together, from.map(|from| cycle.walk(from, 50)));
        // A position in a longer cycle is also one in a shorter.
        let last = cycle.place(1023);
        cycle.restart(Spacing::Pages);
        assert_eq!(cycle.walk(last, 3), cycle.place(0));
    }

    #[test]
    fn orders_are_drawn_evenly() {
        // Cycles of four nodes: (4 - 1)! = 6, identified by the order after the first node.
        let mut counts = std::collections::BTreeMap::new();
        let mut random = random();
        let mut cycle = Cycle::new(4096, Pages::Base, Spacing::Lines, "a test").unwrap();
        let rounds = if cfg!(miri) { 60 } else { 6000 };
        for _ in 0..rounds {
            cycle.restart(Spacing::Lines);
            cycle.grow(4 * 64, &mut random);
            let order: Vec<usize> = (1..4).map(|n| cycle.walk(cycle.place(0), n).0).collect();
            *counts.entry(order).or_insert(0_u64) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Six standard deviations of a count of 1000 are 173.
        let is_even = |count: &u64| cfg!(miri) || (827..=1173).contains(count);
        assert!(counts.values().all(is_even), "{counts:?}");
    }
}
