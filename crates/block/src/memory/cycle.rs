//! A chain of pointers in an order that nobody can foresee: each step needs the one before, so that its time is that of the
//! memory.

use crate::mapping::Mapping;
use crate::{BlockError, Pages};

/// How far apart pointers lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// One in each cache line of 64 bytes.
    Lines,
    /// One in each 4 KiB, on lines that differ, so that a step needs another page and few lines of each set of the caches.
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

    /// Where a node lies.
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

/// What a node holds.
type Link = *const u8;

impl Cycle {
    /// Room for a cycle of `bytes`, of one node so far.
    ///
    /// # Errors
    /// More than the kernel gives, or than its pool of huge pages holds.
    pub fn new(bytes: usize, pages: Pages, spacing: Spacing, what: &'static str) -> Result<Self, BlockError> {
        let mapping = Mapping::in_pages(bytes.max(PAGE_BYTES), pages, what)?;
        let mut cycle = Self { mapping, spacing, nodes: 0 };
        cycle.restart(spacing);
        Ok(cycle)
    }

    /// Begins again in the same memory, with one node.
    pub fn restart(&mut self, spacing: Spacing) {
        self.spacing = spacing;
        self.nodes = 1;
        let first = self.node(0);
        // SAFETY: the first node lies within the mapping, which `self` owns and borrows alone.
        unsafe { first.cast::<Link>().write(first) };
    }

    /// Extends the cycle to the first `bytes` of its area. Each new node goes behind one chosen by `below`, which draws
    /// evenly below its argument: every order of a single cycle is then equally likely, as by Sattolo's shuffle (1986), of
    /// which this is the inside-out form; a smaller cycle is extended and not made again.
    ///
    /// # Panics
    /// Where `bytes` exceed the area, or a number drawn its bound.
    pub fn grow(&mut self, bytes: usize, mut below: impl FnMut(u64) -> u64) {
        assert!(bytes <= self.mapping.len(), "a cycle within its area");
        let wanted = (bytes / self.spacing.bytes()).max(self.nodes);
        for new in self.nodes..wanted {
            let drawn = below(new as u64) as usize;
            assert!(drawn < new, "drawn below the bound");
            let (before, new) = (self.node(drawn).cast::<Link>(), self.node(new));
            // SAFETY: both nodes lie within the mapping (the bytes were compared above), aligned to a line; every node
            // below `new` was linked before, and `self` is borrowed alone.
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

    /// Whether it has no node: never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// The `nth` node in the order of addresses, counted round.
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

    /// So many steps, each of which needs the one before; where they end.
    #[must_use]
    pub fn walk(&self, from: Place, steps: u64) -> Place {
        let [end] = self.walk_together([from], steps);
        end
    }

    /// This many steps of each of several independent walks side by side.
    #[must_use]
    pub fn walk_together<const N: usize>(&self, from: [Place; N], steps: u64) -> [Place; N] {
        let mut links = from.map(|place| self.start(place));
        for _ in 0..steps {
            for link in &mut links {
                // SAFETY: a link is the address of a node of the cycle, and a node holds the link to another one, set by
                // `restart` and `grow`, which alone write here and borrow `self` alone.
                *link = unsafe { link.cast::<Link>().read() };
            }
        }
        links.map(|link| self.end(link))
    }

    /// Bytes that the kernel backs by huge pages; `None` where it does not tell.
    #[must_use]
    pub fn huge_bytes(&self) -> Option<u64> {
        self.mapping.huge_pages_bytes()
    }

    /// Requests pages of certain NUMA nodes; to be called before the cycle grows.
    ///
    /// # Errors
    /// No such node, or a kernel without NUMA.
    pub fn bind(&self, policy: super::Policy) -> Result<(), BlockError> {
        super::nodes::bind(&self.mapping, policy)
    }

    /// Pages by node, as [`super::Area::nodes`].
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
        // A place of a longer cycle is still one of a shorter.
        let last = cycle.place(1023);
        cycle.restart(Spacing::Pages);
        assert_eq!(cycle.walk(last, 3), cycle.place(0));
    }

    #[test]
    fn orders_are_drawn_evenly() {
        // Cycles of four nodes: (4 - 1)! = 6, by the order after the first node.
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
