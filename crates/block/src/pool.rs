//! Frames of memory shared by threads, with leases.
//!
//! A pool owns one aligned area cut into frames of equal size, and one state word per frame, separate from the frames
//! so that reading states does not touch block contents. Only an [`Exclusive`] lease allows changes to the bytes of a
//! frame: by [`Pool::write`] and its kin, or by the kernel while a [`Ring`](crate::Ring) holds the lease. Hence there
//! are two ways to read:
//!
//! - with an [`Exclusive`] or a [`Shared`] lease, as a plain byte slice: no writer can exist meanwhile;
//! - without a lease, word by word, between [`Pool::version`] and [`Pool::validate`] (a sequence lock): readers write
//!   nothing shared, so any number of threads can read one hot frame without disturbing one another. The data is valid
//!   only once `validate` says so.
//!
//! Who calls it: engines, for their buffer cache. It knows nothing about the content of a frame.

use crate::BlockError;
use crate::mapping::{ALIGNMENT, Mapping};
use crate::prefetch;
use crate::words::Words;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// State bit: the exclusive lease is held.
const EXCLUSIVE: u64 = 1;
/// State unit of the shared count, which takes 16 bits.
const SHARED_ONE: u64 = 1 << 1;
/// State bits of the shared count.
const SHARED_MASK: u64 = 0xffff << 1;
/// State bit: the frame is marked; see [`Pool::mark`].
const MARKED: u64 = 1 << 17;
/// Where the version starts; it takes the upper 32 bits and wraps.
const VERSION_SHIFT: u32 = 32;
/// State unit of the version.
const VERSION_ONE: u64 = 1 << VERSION_SHIFT;

/// Size and kind of a [`Pool`].
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// Number of frames, at least 1 and below 2^32.
    pub frames: usize,
    /// Bytes per frame: a multiple of 4096, so that direct I/O can use it.
    pub frame_bytes: usize,
    /// Ask the kernel for transparent huge pages. Advice; see [`Pool::huge_pages_bytes`].
    pub huge_pages: bool,
}

/// The right to change one frame. There is at most one per frame, and none while [`Shared`] leases exist.
///
/// It deliberately has no destructor: releasing it needs the pool. A lost lease leaves its frame locked.
#[derive(Debug)]
#[must_use = "a lost lease leaves its frame locked for good"]
pub struct Exclusive {
    frame: u32,
    pool: u32,
    /// Whether anything, the kernel included, may have changed the frame under this lease.
    written: bool,
}

/// The right to read one frame as plain bytes: a pin. A lost lease leaves the frame pinned.
#[derive(Debug)]
#[must_use = "a lost lease leaves its frame pinned for good"]
pub struct Shared {
    frame: u32,
    pool: u32,
}

/// The version of a frame's content, for optimistic reading. It changes each time an [`Exclusive`] lease under which
/// the frame may have changed is released, and wraps after 2^32 changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u32);

impl Exclusive {
    /// The index of the frame in its pool.
    #[inline]
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// Marks the frame as changed: called when the lease goes to the kernel as the target of a read.
    pub(crate) fn mark_written(&mut self) {
        self.written = true;
    }
}

impl Shared {
    /// The index of the frame in its pool.
    #[inline]
    pub fn frame(&self) -> u32 {
        self.frame
    }
}

mod sealed {
    /// What [`super::Lease`] requires and only this module may implement.
    pub trait Held {
        /// Index of the frame.
        fn frame_index(&self) -> u32;
        /// Identity of the pool.
        fn pool_id(&self) -> u32;
    }

    impl Held for super::Exclusive {
        #[inline]
        fn frame_index(&self) -> u32 {
            self.frame
        }
        #[inline]
        fn pool_id(&self) -> u32 {
            self.pool
        }
    }

    impl Held for super::Shared {
        #[inline]
        fn frame_index(&self) -> u32 {
            self.frame
        }
        #[inline]
        fn pool_id(&self) -> u32 {
            self.pool
        }
    }
}

/// A lease that keeps writers away: [`Exclusive`] or [`Shared`]. Cannot be implemented elsewhere.
pub trait Lease: sealed::Held {}
impl Lease for Exclusive {}
impl Lease for Shared {}

/// Frames shared by threads; the module documentation states who may read and write what.
pub struct Pool {
    id: u32,
    frames: usize,
    frame_bytes: usize,
    words: usize,
    states: Words,
    memory: Mapping,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Pool")
            .field("frames", &self.frames)
            .field("frame_bytes", &self.frame_bytes)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Maps and zeroes the frames and allocates their pages.
    ///
    /// # Errors
    /// [`BlockError::Invalid`] for sizes that cannot work, [`BlockError::Memory`] if the system has too little.
    pub fn new(options: &PoolOptions) -> Result<Arc<Pool>, BlockError> {
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        let PoolOptions { frames, frame_bytes, huge_pages } = *options;
        if frames == 0 || u32::try_from(frames).is_err() {
            return Err(BlockError::Invalid { what: format!("a pool has 1 to {} frames, not {frames}", u32::MAX) });
        }
        if frame_bytes == 0 || frame_bytes % ALIGNMENT != 0 {
            return Err(BlockError::Invalid {
                what: format!("a frame is a multiple of {ALIGNMENT} bytes, not {frame_bytes}"),
            });
        }
        let bytes =
            frames.checked_mul(frame_bytes).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| {
                BlockError::Invalid {
                    what: format!("{frames} frames of {frame_bytes} bytes are more than can be addressed"),
                }
            })?;
        let memory = Mapping::new(bytes, huge_pages, "the frame pool")?;
        let states = Words::zeroed(frames, huge_pages, "the states of frames")?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Pool { id, frames, frame_bytes, words: frame_bytes / 8, states, memory }))
    }

    /// Number of frames.
    #[inline]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Bytes per frame.
    #[inline]
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Bytes of the frames that huge pages back now (`AnonHugePages` of `/proc/self/smaps`); `None` if the kernel does
    /// not report it. Reads a file: not for the hot path.
    pub fn huge_pages_bytes(&self) -> Option<u64> {
        self.memory.huge_pages_bytes()
    }

    /// Takes the exclusive lease; `None` while anyone holds a lease of the frame.
    #[inline]
    pub fn try_exclusive(&self, frame: u32) -> Option<Exclusive> {
        let state = &self.states[frame as usize];
        let mut seen = state.load(Ordering::Relaxed);
        while seen & (EXCLUSIVE | SHARED_MASK) == 0 {
            match state.compare_exchange_weak(seen, seen | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    // The writer's half of the sequence lock: no store to the frame may become visible before
                    // the exclusive bit, or an optimistic reader could validate a half-written frame.
                    fence(Ordering::Release);
                    return Some(Exclusive { frame, pool: self.id, written: false });
                }
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Takes a shared lease; `None` while the exclusive one is held (or 65,535 shared ones are).
    #[inline]
    pub fn try_shared(&self, frame: u32) -> Option<Shared> {
        let state = &self.states[frame as usize];
        let mut seen = state.load(Ordering::Relaxed);
        while seen & EXCLUSIVE == 0 && seen & SHARED_MASK != SHARED_MASK {
            match state.compare_exchange_weak(seen, seen + SHARED_ONE, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    return Some(Shared { frame, pool: self.id });
                }
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Releases the exclusive lease after a change: the version advances.
    #[inline]
    pub fn release(&self, lease: Exclusive) {
        self.end_exclusive(&lease, true, 0);
    }

    /// Releases the exclusive lease without a change: the version stays. If something was written after all, the
    /// version advances as with [`Pool::release`].
    #[inline]
    pub fn release_unchanged(&self, lease: Exclusive) {
        self.end_exclusive(&lease, lease.written, 0);
    }

    /// Turns the exclusive lease into a shared one in one step; the version advances.
    #[inline]
    pub fn downgrade(&self, lease: Exclusive) -> Shared {
        self.end_exclusive(&lease, true, SHARED_ONE);
        Shared { frame: lease.frame, pool: lease.pool }
    }

    /// Releases a shared lease.
    #[inline]
    pub fn unpin(&self, lease: Shared) {
        self.assert_own(lease.pool);
        let before = self.states[lease.frame as usize].fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert!(before & SHARED_MASK != 0, "frame {} had no pin to give back", lease.frame);
    }

    /// Whether any shared lease exists at this moment. A hint: it may be out of date on return.
    #[inline]
    pub fn is_pinned(&self, frame: u32) -> bool {
        self.states[frame as usize].load(Ordering::Relaxed) & SHARED_MASK != 0
    }

    /// Whether the exclusive lease is held at this moment. A hint: it may be out of date on return.
    #[inline]
    pub fn is_exclusive(&self, frame: u32) -> bool {
        self.states[frame as usize].load(Ordering::Relaxed) & EXCLUSIVE != 0
    }

    /// Marks a frame as used. Writes only if the mark is not set, so that a hot frame's state stays shared between
    /// processors. A hint for the frame's owner: a mark set while the frame's exclusive lease ends may get lost.
    #[inline]
    pub fn mark(&self, frame: u32) {
        let state = &self.states[frame as usize];
        if state.load(Ordering::Relaxed) & MARKED == 0 {
            state.fetch_or(MARKED, Ordering::Relaxed);
        }
    }

    /// Clears the mark and returns whether it was set.
    #[inline]
    pub fn unmark(&self, frame: u32) -> bool {
        let state = &self.states[frame as usize];
        state.load(Ordering::Relaxed) & MARKED != 0 && state.fetch_and(!MARKED, Ordering::Relaxed) & MARKED != 0
    }

    /// The bytes of a leased frame.
    ///
    /// # Panics
    /// If the lease belongs to another pool.
    #[inline]
    pub fn bytes<'a>(&'a self, lease: &'a impl Lease) -> &'a [u8] {
        self.assert_own(lease.pool_id());
        let start = self.address(lease.frame_index());
        // SAFETY: the frame lies inside `memory`, which lives as long as `self`, and is initialised (zeroed at first).
        // No writer exists while the slice lives: writing needs `&mut Exclusive` or giving the Exclusive away to a
        // ring, which the borrow of the lease forbids; with a Shared lease the state word prevents any Exclusive from
        // being created. Optimistic readers only load.
        unsafe { std::slice::from_raw_parts(start, self.frame_bytes) }
    }

    /// Copies `data` into the frame at byte `offset`, in whole words, so that optimistic readers may read concurrently.
    ///
    /// # Panics
    /// If the lease belongs to another pool or the range is outside the frame.
    pub fn write(&self, lease: &mut Exclusive, offset: usize, data: &[u8]) {
        self.assert_own(lease.pool);
        assert!(
            offset <= self.frame_bytes && data.len() <= self.frame_bytes - offset,
            "{} bytes at {offset} are outside a frame of {} bytes",
            data.len(),
            self.frame_bytes
        );
        lease.written = true;
        let mut word = offset / 8;
        let mut rest = data;
        let skew = offset % 8;
        if skew != 0 && !rest.is_empty() {
            let taken = rest.len().min(8 - skew);
            self.patch_word(lease.frame, word, skew, &rest[..taken]);
            rest = &rest[taken..];
            word += 1;
        }
        let (words, tail) = rest.as_chunks::<8>();
        for chunk in words {
            self.word_cell(lease.frame, word).store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
            word += 1;
        }
        if !tail.is_empty() {
            self.patch_word(lease.frame, word, 0, tail);
        }
    }

    /// Stores one word of 8 bytes, native endian; `word` counts in words from the start of the frame.
    ///
    /// # Panics
    /// If the lease belongs to another pool or the word is outside the frame.
    #[inline]
    pub fn write_word(&self, lease: &mut Exclusive, word: usize, value: u64) {
        self.assert_own(lease.pool);
        lease.written = true;
        self.word_cell(lease.frame, word).store(value, Ordering::Relaxed);
    }

    /// Sets the whole frame to zero.
    ///
    /// # Panics
    /// If the lease belongs to another pool.
    pub fn fill_zero(&self, lease: &mut Exclusive) {
        self.assert_own(lease.pool);
        lease.written = true;
        for word in 0..self.words {
            self.word_cell(lease.frame, word).store(0, Ordering::Relaxed);
        }
    }

    /// Starts an optimistic read: returns the version of the frame, or `None` while it may be changing.
    #[inline]
    pub fn version(&self, frame: u32) -> Option<Version> {
        let state = self.states[frame as usize].load(Ordering::Acquire);
        (state & EXCLUSIVE == 0).then_some(Version((state >> VERSION_SHIFT) as u32))
    }

    /// Loads one word of 8 bytes, native endian, without a lease. The value is valid only after [`Pool::validate`] has
    /// confirmed the version taken before.
    ///
    /// # Panics
    /// If the frame or the word is out of range.
    #[inline]
    pub fn word(&self, frame: u32, word: usize) -> u64 {
        self.word_cell(frame, word).load(Ordering::Relaxed)
    }

    /// Loads consecutive words starting at `first` without a lease, as [`Pool::word`] does.
    ///
    /// # Panics
    /// If the frame or a word is out of range.
    pub fn words(&self, frame: u32, first: usize, out: &mut [u64]) {
        for (index, value) in out.iter_mut().enumerate() {
            *value = self.word(frame, first + index);
        }
    }

    /// Ends an optimistic read: whether everything loaded since [`Pool::version`] is one consistent content.
    #[inline]
    pub fn validate(&self, frame: u32, version: Version) -> bool {
        // The reader's half of the sequence lock: the loads before it must not move below the state load.
        fence(Ordering::Acquire);
        let state = self.states[frame as usize].load(Ordering::Relaxed);
        state & EXCLUSIVE == 0 && (state >> VERSION_SHIFT) as u32 == version.0
    }

    /// Prefetches the cache line at byte `offset` of a frame. Out of range is ignored.
    #[inline]
    pub fn prefetch(&self, frame: u32, offset: usize) {
        if (frame as usize) < self.frames && offset < self.frame_bytes {
            prefetch::prefetch_line(self.memory.base().wrapping_add(frame as usize * self.frame_bytes + offset));
        }
    }

    /// Prefetches parts of a frame that will soon be read whole. Out of range is ignored.
    #[inline]
    pub(crate) fn prefetch_frame(&self, frame: u32) {
        for offset in prefetch::beginnings(self.frame_bytes) {
            self.prefetch(frame, offset);
        }
    }

    /// Prefetches the state word of a frame. Out of range is ignored.
    #[inline]
    pub fn prefetch_state(&self, frame: u32) {
        self.states.prefetch(frame as usize);
    }

    /// The number that leases of this pool carry.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The number of the pool a lease belongs to.
    pub(crate) fn id_of(lease: &Exclusive) -> u32 {
        lease.pool
    }

    /// Start address of a frame. Access is subject to the rules in the module documentation.
    #[inline]
    pub(crate) fn address(&self, frame: u32) -> *mut u8 {
        assert!((frame as usize) < self.frames, "frame {frame} of a pool of {} frames", self.frames);
        self.memory.base().wrapping_add(frame as usize * self.frame_bytes)
    }

    #[inline]
    fn assert_own(&self, pool: u32) {
        assert!(pool == self.id, "a lease of pool {pool} was used with pool {}", self.id);
    }

    #[inline]
    fn end_exclusive(&self, lease: &Exclusive, changed: bool, pins: u64) {
        self.assert_own(lease.pool);
        let state = &self.states[lease.frame as usize];
        // While the exclusive bit is set nobody else changes a state word, except for the mark, which may get lost. So
        // a load and a store suffice.
        let before = state.load(Ordering::Relaxed);
        debug_assert!(before & EXCLUSIVE != 0 && before & SHARED_MASK == 0, "frame {} is not exclusive", lease.frame);
        let version = if changed { before.wrapping_add(VERSION_ONE) } else { before } >> VERSION_SHIFT;
        let mark = before & MARKED;
        state.store(version << VERSION_SHIFT | mark | pins, Ordering::Release);
    }

    /// The atomic view of one word of a frame.
    #[inline]
    fn word_cell(&self, frame: u32, word: usize) -> &AtomicU64 {
        assert!(word < self.words, "word {word} of a frame of {} words", self.words);
        let address = self.address(frame).cast::<u64>().wrapping_add(word);
        // SAFETY: the word lies inside `memory` (both indices are checked), which lives as long as `self`, and is
        // aligned to 8 because frames are aligned to 4096. Threads of this process change it only by atomic
        // stores of this very size, and plain slices over it exist only while no writer can (see `bytes`).
        unsafe { AtomicU64::from_ptr(address) }
    }

    /// Replaces some bytes of a word, always by whole words: concurrent accesses of different sizes to one address are
    /// undefined between threads. The caller holds the exclusive lease, so no store gets lost.
    fn patch_word(&self, frame: u32, word: usize, skew: usize, bytes: &[u8]) {
        let cell = self.word_cell(frame, word);
        let mut content = cell.load(Ordering::Relaxed).to_ne_bytes();
        content[skew..skew + bytes.len()].copy_from_slice(bytes);
        cell.store(u64::from_ne_bytes(content), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
