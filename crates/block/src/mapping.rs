//! An anonymous memory mapping: aligned, zeroed, unmapped on drop.
//!
//! It exposes only raw addresses. The two owners, `pool` (leases) and `ring::slab` (buffers), decide which code may
//! touch which bytes; `memory` lends its mappings as slices.

use crate::BlockError;
use std::io;

/// Alignment in bytes of every mapping and of every piece used for direct I/O. Direct I/O needs the logical block size
/// of the device, which is at most a page on every supported platform.
pub(crate) const ALIGNMENT: usize = 4096;

/// Size of a transparent huge page on x86-64 and on arm64 with 4 KiB pages, in bytes.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Kinds of pages to request memory in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The base page size, 4 KiB on x86-64, never merged into huge pages (`MADV_NOHUGEPAGE`).
    Base,
    /// Transparent huge pages (`MADV_HUGEPAGE`): advice that the kernel may ignore.
    Transparent,
    /// 2 MiB pages of a reserved pool (`MAP_HUGETLB`).
    Pool2M,
    /// 1 GiB pages of a reserved pool.
    Pool1G,
}

/// An owned area of zeroed memory.
pub(crate) struct Mapping {
    /// First usable byte, aligned to `ALIGNMENT` or, with huge pages, to `HUGE_PAGE`.
    base: *mut u8,
    /// Usable bytes.
    len: usize,
    /// The whole mapping, larger than the usable part if alignment required it.
    mapped: *mut u8,
    mapped_len: usize,
}

// SAFETY: a mapping is plain memory that belongs to the process, not to a thread. It exposes raw addresses only; the
// owners that turn them into accesses bring their own exclusion.
unsafe impl Send for Mapping {}
// SAFETY: as above: no method of a shared reference touches the memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes for `what` (used in the error), with huge pages requested if `huge_pages` is set. That request
    /// is only advice: `/proc` shows whether the kernel followed it.
    pub(crate) fn new(len: usize, huge_pages: bool, what: &'static str) -> Result<Self, BlockError> {
        let alignment = if huge_pages { HUGE_PAGE } else { ALIGNMENT };
        Self::with(len, alignment, Origin::Host, true, what)
    }

    /// As [`Mapping::new`], but pages are allocated at their first touch.
    pub(crate) fn untouched(len: usize, what: &'static str) -> Result<Self, BlockError> {
        Self::with(len, ALIGNMENT, Origin::Host, false, what)
    }

    /// Maps untouched memory in pages of this kind. A pool request fails if the pool has no room for it. Everything
    /// else is advice, and [`Mapping::huge_pages_bytes`] shows the outcome.
    pub(crate) fn in_pages(len: usize, pages: Pages, what: &'static str) -> Result<Self, BlockError> {
        let (alignment, origin) = match pages {
            Pages::Base => (ALIGNMENT, Origin::Host),
            Pages::Transparent => (HUGE_PAGE, Origin::Host),
            Pages::Pool2M => (HUGE_PAGE, Origin::Pool(21)),
            Pages::Pool1G => (1 << 30, Origin::Pool(30)),
        };
        let mapping = Self::with(len, alignment, origin, false, what)?;
        mapping.advise(pages);
        Ok(mapping)
    }

    #[cfg(not(miri))]
    fn advise(&self, pages: Pages) {
        use rustix::mm::{Advice, madvise};
        let (advice, unit) = match pages {
            Pages::Base => (Advice::LinuxNoHugepage, ALIGNMENT),
            Pages::Transparent => (Advice::LinuxHugepage, HUGE_PAGE),
            Pages::Pool2M | Pages::Pool1G => return,
        };
        let whole = self.len.next_multiple_of(unit);
        // SAFETY: [base, base + whole) lies inside this mapping (its length was rounded up to the unit), and this
        // advice changes no content.
        let _ = unsafe { madvise(self.base.cast(), whole, advice) };
    }

    #[cfg(miri)]
    fn advise(&self, _pages: Pages) {}

    fn with(
        len: usize,
        alignment: usize,
        origin: Origin,
        populate: bool,
        what: &'static str,
    ) -> Result<Self, BlockError> {
        // The kernel aligns memory that it takes from a pool.
        let slack = match origin {
            Origin::Host => alignment - ALIGNMENT,
            Origin::Pool(_) => 0,
        };
        let mapped_len =
            len.max(1).checked_next_multiple_of(alignment).and_then(|size| size.checked_add(slack)).ok_or_else(
                || BlockError::Invalid {
                    what: format!("{len} bytes of memory for {what} is more than can be addressed"),
                },
            )?;
        let mapped =
            map(mapped_len, origin).map_err(|source| BlockError::Memory { what, bytes: mapped_len as u64, source })?;
        let skip = mapped.align_offset(alignment);
        let mapping = Self { base: mapped.wrapping_add(skip), len, mapped, mapped_len };
        if populate {
            mapping.populate(alignment == HUGE_PAGE);
        }
        Ok(mapping)
    }

    /// The first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Usable bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Allocates the pages now, so that no page fault falls into a measured interval. Both calls are advice: if the
    /// kernel does not know them (populate needs 5.14), pages are allocated at their first touch.
    #[cfg(not(miri))]
    fn populate(&self, huge_pages: bool) {
        use rustix::mm::{Advice, madvise};
        if self.len == 0 {
            return;
        }
        let base = self.base.cast::<core::ffi::c_void>();
        let touched = self.len.next_multiple_of(ALIGNMENT);
        if huge_pages {
            let whole = self.len.next_multiple_of(HUGE_PAGE);
            // SAFETY: [base, base + whole) lies inside this mapping (its length was rounded up for that), and
            // this advice changes no content.
            let _ = unsafe { madvise(base, whole, Advice::LinuxHugepage) };
        }
        // SAFETY: [base, base + touched) lies inside this mapping, which nobody else knows yet, and populating keeps
        // its content, zeroes.
        let _ = unsafe { madvise(base, touched, Advice::LinuxPopulateWrite) };
    }

    #[cfg(miri)]
    fn populate(&self, _huge_pages: bool) {}

    /// Bytes of this mapping that the kernel backs by huge pages, from `AnonHugePages` and, for a pool,
    /// `KernelPageSize` in `/proc/self/smaps`; `None` if that file cannot be read.
    pub(crate) fn huge_pages_bytes(&self) -> Option<u64> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let start = self.base as u64;
        huge_bytes_in(&smaps, start, start + self.len as u64)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is exactly what `map` returned, and the owners keep the mapping alive as long as anything, the
        // kernel included, may touch it.
        unsafe { unmap(self.mapped, self.mapped_len) };
    }
}

/// Where memory comes from: ordinary pages, or a pool of huge pages of 2^n bytes.
#[derive(Clone, Copy)]
enum Origin {
    Host,
    Pool(u32),
}

#[cfg(not(miri))]
fn map(len: usize, origin: Origin) -> io::Result<*mut u8> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let from = match origin {
        Origin::Host => MapFlags::empty(),
        // mmap(2): the flags hold the logarithm of the page size from bit MAP_HUGE_SHIFT (26) on.
        Origin::Pool(log2) => MapFlags::HUGETLB | MapFlags::from_bits_retain(log2 << 26),
    };
    // SAFETY: a new private mapping at an address of the kernel's choice replaces nothing.
    let address = unsafe {
        mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | from)
    }?;
    Ok(address.cast())
}

/// # Safety
/// `address` and `len` are what `map` returned and took; nothing uses the memory any more.
#[cfg(not(miri))]
unsafe fn unmap(address: *mut u8, len: usize) {
    // SAFETY: the caller passes what `map` returned, once.
    let outcome = unsafe { rustix::mm::munmap(address.cast(), len) };
    debug_assert!(outcome.is_ok(), "munmap of our own mapping: {outcome:?}");
}

#[cfg(miri)]
fn layout(len: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(len, ALIGNMENT).expect("the sizes of tests are small")
}

// Miri cannot emulate mmap with advice; the state machine and the accesses are the same over its allocator.
#[cfg(miri)]
fn map(len: usize, _origin: Origin) -> io::Result<*mut u8> {
    // SAFETY: `len` is not zero.
    Ok(unsafe { std::alloc::alloc_zeroed(layout(len)) })
}

/// # Safety
/// As above.
#[cfg(miri)]
unsafe fn unmap(address: *mut u8, len: usize) {
    // SAFETY: the caller passes what `map` returned, once.
    unsafe { std::alloc::dealloc(address, layout(len)) };
}

/// Sums `AnonHugePages` over the areas of an smaps text that overlap `[start, end)`. The kernel merges neighbouring
/// areas, so each counts at most up to its overlap.
fn huge_bytes_in(smaps: &str, start: u64, end: u64) -> Option<u64> {
    let mut total = 0;
    let mut overlap = 0;
    let mut found = false;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some((low, high)) = first
            .split_once('-')
            .and_then(|(low, high)| Some((u64::from_str_radix(low, 16).ok()?, u64::from_str_radix(high, 16).ok()?)))
        {
            overlap = high.min(end).saturating_sub(low.max(start));
            found |= overlap > 0;
        } else if first == "KernelPageSize:" && overlap > 0 {
            let kibibytes: u64 = words.next()?.parse().ok()?;
            // A pool page: such an area consists of huge pages only and reports no anonymous huge pages.
            if kibibytes * 1024 >= HUGE_PAGE as u64 {
                total += overlap;
            }
        } else if first == "AnonHugePages:" && overlap > 0 {
            let kibibytes: u64 = words.next()?.parse().ok()?;
            total += (kibibytes * 1024).min(overlap);
        }
    }
    found.then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_summed_over_the_areas_of_the_mapping_only() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0\nSize: 8 kB\nAnonHugePages:         4 kB\n\
                     3000-9000 rw-p 00000000 00:00 0\nAnonHugePages:        24 kB\n\
                     9000-a000 rw-p 00000000 00:00 0\nAnonHugePages:         4 kB\n";
        assert_eq!(huge_bytes_in(smaps, 0x2000, 0x9000), Some(4096 + 24 * 1024));
        assert_eq!(huge_bytes_in(smaps, 0x4000, 0x5000), Some(0x1000), "a merged area counts up to the overlap");
        assert_eq!(huge_bytes_in(smaps, 0xb000, 0xc000), None);
        let pool = "200000-600000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)\nSize: 4096 kB\n\
                    KernelPageSize:     2048 kB\nAnonHugePages:         0 kB\n";
        assert_eq!(huge_bytes_in(pool, 0x20_0000, 0x60_0000), Some(4 << 20));
    }

    #[test]
    fn a_mapping_is_aligned_and_zeroed() {
        for (len, huge) in [(1, false), (8192, false), (3 << 20, true)] {
            let mapping = Mapping::new(len, huge, "a test").unwrap();
            assert_eq!(mapping.base().align_offset(ALIGNMENT), 0);
            assert_eq!(mapping.len(), len);
            // SAFETY: the test owns the mapping and no reference to its bytes is kept.
            let bytes = unsafe { std::slice::from_raw_parts(mapping.base(), len) };
            // Miri is slow, so check only one byte per page.
            let step = if cfg!(miri) { ALIGNMENT } else { 1 };
            assert!(bytes.iter().step_by(step).all(|&byte| byte == 0));
        }
    }
}
