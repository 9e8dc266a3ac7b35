//! The buffer cache: which page is in which frame, who may reuse a frame, and
//! which frames must be written.
//!
//! One pool for all threads. Readers look up a page without locks and check a version instead of pinning. The first
//! session that misses claims the page in its shard and owns the read; later sessions queue there, and their wait is
//! `read by other session`. Replacement is a clock per partition. Dirty frames are in a queue ordered by the redo
//! address of their first change, which gives the checkpoint position.

use super::counters::{C, Counters};
use super::page_table::{PageTable, mix};
use crate::block_format::word;
use crate::crash_rules::{CrashRule, CrashRules};
use crate::layout::Page;
use assay_block::{BlockError, Exclusive, Pool, Shared};
use assay_measure::locked::locked;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A session anywhere in the engine, and which of its waits is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionRef {
    pub(crate) thread: u16,
    pub(crate) tag: u32,
    pub(crate) wait: u32,
}

const DIRTY: u32 = 1;
/// Changed by a transaction whose redo is not yet in the log buffer: must not be written.
const PENDING: u32 = 2;
const WRITING: u32 = 4;
/// Already in the write list.
const LISTED: u32 = 8;
/// The checksum in the frame is older than its content.
const STALE_SUM: u32 = 16;
/// A writer has it in hand; no other takes it until [`Cache::untake`].
const TAKEN: u32 = 32;

const SHARDS: usize = 256;
const PARTITIONS: usize = 16;
const NO_PAGE: u64 = u64::MAX;
/// A seek may walk a partition twice: the first lap clears the touched marks that would spare every frame.
const SEEK_LAPS: usize = 2;
/// The writer is posted when one frame in this many is dirty.
const DIRTY_POST_SHARE: u64 = 4;

struct Meta {
    page: AtomicU64,
    /// Start of the redo of the first change since the frame was clean; 0 while clean.
    first_lsn: AtomicU64,
    /// End of the redo of the last published change.
    last_lsn: AtomicU64,
    flags: AtomicU32,
}

/// What [`Cache::claim`] found.
pub(crate) enum Claim {
    /// Resident and pinned for the caller.
    Resident(Shared),
    /// The caller must read the page into this frame, then call `finish_read` or `fail_read`.
    Read(Exclusive),
    /// Another session reads it; the caller is queued and will be woken.
    InFlight,
    /// No frame can be reused now.
    NoFrame,
    /// Resident but locked by a change: try again.
    Busy,
}

/// A dirty frame copied for writing.
pub(crate) struct Copied {
    pub(crate) frame: u32,
    pub(crate) page: Page,
    pub(crate) lsn: u64,
    /// The header word of the copy's checksum, once it is sealed.
    pub(crate) crc_word: u64,
    change: u64,
}

/// Pages being read, and who waits for them.
type Reads = HashMap<Page, Vec<SessionRef>, BuildHasherDefault<PageHasher>>;

/// Hashes page numbers only: nobody outside chooses them, so no secret is needed.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(Page(self.0 ^ number));
    }
}

/// The cache.
pub(crate) struct Cache {
    pub(crate) pool: Arc<Pool>,
    table: PageTable,
    shards: Vec<Mutex<Reads>>,
    meta: Vec<Meta>,
    hands: Vec<Mutex<usize>>,
    free: Mutex<Vec<u32>>,
    free_count: AtomicUsize,
    dirty: AtomicU64,
    write_list: Mutex<VecDeque<u32>>,
    queue: Mutex<BTreeMap<u64, Vec<u32>>>,
    /// Sessions that wait for a free buffer and are to be posted.
    pub(crate) free_waiters: Mutex<Vec<SessionRef>>,
    /// CACHE_MB=0: a block is dropped when its reader is done with it.
    pub(crate) drop_on_unpin: bool,
    /// A seek gives up once this percentage of a partition turned out dirty.
    scan_pct: usize,
    rules: CrashRules,
}

impl Cache {
    /// `scan_pct`: a seek gives up once so many percent of a partition turned out dirty (Oracle: 40 % of a
    /// working set). `huge_pages` is advice for the page table.
    ///
    /// # Errors
    /// Where the system has too little memory.
    pub(crate) fn new(
        pool: Arc<Pool>,
        drop_on_unpin: bool,
        scan_pct: usize,
        huge_pages: bool,
        rules: CrashRules,
    ) -> Result<Self, BlockError> {
        let frames = pool.frames();
        let meta = || Meta {
            page: AtomicU64::new(NO_PAGE),
            first_lsn: AtomicU64::new(0),
            last_lsn: AtomicU64::new(0),
            flags: AtomicU32::new(0),
        };
        Ok(Self {
            table: PageTable::new(frames, huge_pages)?,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            meta: (0..frames).map(|_| meta()).collect(),
            hands: (0..PARTITIONS.min(frames)).map(|_| Mutex::new(0)).collect(),
            free: Mutex::new((0..frames as u32).rev().collect()),
            free_count: AtomicUsize::new(frames),
            dirty: AtomicU64::new(0),
            write_list: Mutex::new(VecDeque::new()),
            queue: Mutex::new(BTreeMap::new()),
            free_waiters: Mutex::new(Vec::new()),
            drop_on_unpin,
            scan_pct,
            rules,
            pool,
        })
    }

    fn shard(&self, page: Page) -> &Mutex<Reads> {
        // The table uses the low bits of the same hash; the shard uses high ones.
        &self.shards[(mix(page) >> 48) as usize % SHARDS]
    }

    /// Asks the memory for what [`Cache::lookup`] of this page reads.
    #[inline]
    pub(crate) fn prefetch_lookup(&self, page: Page) {
        self.table.prefetch(page);
    }

    /// Asks the memory for what marks a frame as changed.
    #[inline]
    pub(crate) fn prefetch_change(&self, frame: u32) {
        self.pool.prefetch_state(frame);
        if let Some(meta) = self.meta.get(frame as usize) {
            assay_block::prefetch_of(meta);
        }
    }

    /// The frame that may hold `page`; verify before use.
    #[inline]
    pub(crate) fn lookup(&self, page: Page) -> Option<u32> {
        self.table.lookup(page)
    }

    /// Whether the frame belongs to `page` at this instant.
    pub(crate) fn holds(&self, frame: u32, page: Page) -> bool {
        self.meta[frame as usize].page.load(Ordering::Acquire) == page.0
    }

    /// Notes a second touch.
    #[inline]
    pub(crate) fn touch(&self, frame: u32) {
        self.pool.mark(frame);
    }

    /// Frames that hold changes not yet on disk.
    pub(crate) fn dirty_frames(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Whether so much is dirty that the writer should begin before anybody must wait.
    pub(crate) fn wants_writing(&self) -> bool {
        self.dirty_frames() * DIRTY_POST_SHARE > self.meta.len() as u64
    }

    /// Whether so much is dirty that somebody may soon have to wait.
    pub(crate) fn is_half_dirty(&self) -> bool {
        self.dirty_frames() * 2 > self.meta.len() as u64
    }

    /// Whether the frame holds such changes.
    pub(crate) fn is_dirty(&self, frame: u32) -> bool {
        self.meta[frame as usize].flags.load(Ordering::Acquire) & (DIRTY | WRITING) != 0
    }

    /// Pins the page if it is resident.
    pub(crate) fn pin(&self, page: Page) -> Option<Result<Shared, ()>> {
        let frame = self.table.lookup(page)?;
        let Some(pin) = self.pool.try_shared(frame) else {
            return Some(Err(()));
        };
        if self.holds(frame, page) {
            return Some(Ok(pin));
        }
        self.pool.unpin(pin);
        None
    }

    /// Finds the page or makes the caller its reader.
    pub(crate) fn claim(&self, page: Page, who: SessionRef, c: &Counters) -> Claim {
        match self.pin(page) {
            Some(Ok(pin)) => return Claim::Resident(pin),
            Some(Err(())) => return Claim::Busy,
            None => {}
        }
        if let Some(waiters) = locked(self.shard(page)).get_mut(&page) {
            waiters.push(who);
            return Claim::InFlight;
        }
        let Some(frame) = self.free_frame(usize::from(who.thread), c) else {
            return Claim::NoFrame;
        };
        let mut reads = locked(self.shard(page));
        // Between the look-up and here another session may have read it or begun to.
        if let Some(waiters) = reads.get_mut(&page) {
            waiters.push(who);
            drop(reads);
            self.give_back(frame);
            return Claim::InFlight;
        }
        if self.table.lookup(page).is_some() {
            drop(reads);
            self.give_back(frame);
            return Claim::Busy;
        }
        reads.insert(page, Vec::new());
        self.meta[frame.frame() as usize].page.store(page.0, Ordering::Release);
        Claim::Read(frame)
    }

    /// Makes the caller the reader of the page only if it is neither resident nor being read.
    pub(crate) fn claim_absent(&self, page: Page, thread: usize, c: &Counters) -> Option<Exclusive> {
        if self.table.lookup(page).is_some() || locked(self.shard(page)).contains_key(&page) {
            return None;
        }
        let frame = self.free_frame(thread, c)?;
        let mut reads = locked(self.shard(page));
        if reads.contains_key(&page) || self.table.lookup(page).is_some() {
            drop(reads);
            self.give_back(frame);
            return None;
        }
        reads.insert(page, Vec::new());
        self.meta[frame.frame() as usize].page.store(page.0, Ordering::Release);
        Some(frame)
    }

    /// The page a frame was claimed for.
    pub(crate) fn page_of(&self, frame: u32) -> Page {
        Page(self.meta[frame as usize].page.load(Ordering::Acquire))
    }

    /// The read arrived and was verified: publishes the page, leaves one pin, returns who waited.
    pub(crate) fn finish_read(&self, page: Page, frame: Exclusive) -> (Shared, Vec<SessionRef>) {
        let number = frame.frame();
        self.pool.unmark(number);
        self.meta[number as usize].flags.fetch_and(!STALE_SUM, Ordering::AcqRel);
        let mut reads = locked(self.shard(page));
        let waiters = reads.remove(&page);
        assert!(
            waiters.is_some() && self.holds(number, page),
            "C2: page {} is published by its reader alone; frame {number} is claimed for page {}",
            page.0,
            self.page_of(number).0
        );
        debug_assert_eq!(
            self.table.lookup(page),
            None,
            "C1: page {} is in one frame, and comes in frame {number}",
            page.0
        );
        // Should the table's probe limit be reached, this reader still has its pin and nobody else finds the frame.
        self.table.insert(page, number);
        let pin = self.pool.downgrade(frame);
        drop(reads);
        (pin, waiters.unwrap_or_default())
    }

    /// The read failed: forgets the claim and frees the frame.
    pub(crate) fn fail_read(&self, page: Page, frame: Exclusive) -> Vec<SessionRef> {
        let waiters = locked(self.shard(page)).remove(&page).unwrap_or_default();
        self.give_back(frame);
        waiters
    }

    /// A frame for a page that needs no read (a new undo block), locked, entered in the table.
    /// A resident copy of the page is taken over. `Err(true)` means busy, `Err(false)` no frame.
    pub(crate) fn claim_new(&self, page: Page, thread: usize, c: &Counters) -> Result<Exclusive, bool> {
        if let Some(frame) = self.table.lookup(page) {
            let lease = self.pool.try_exclusive(frame).ok_or(true)?;
            if self.holds(frame, page) {
                return Ok(lease);
            }
            self.pool.release_unchanged(lease);
            return Err(true);
        }
        let lease = self.free_frame(thread, c).ok_or(false)?;
        let number = lease.frame();
        let reads = locked(self.shard(page));
        if reads.contains_key(&page) || self.table.lookup(page).is_some() || !self.table.insert(page, number) {
            drop(reads);
            self.give_back(lease);
            return Err(true);
        }
        self.meta[number as usize].page.store(page.0, Ordering::Release);
        drop(reads);
        Ok(lease)
    }

    /// Returns an unused frame to the free list.
    fn give_back(&self, frame: Exclusive) {
        let number = frame.frame();
        self.assert_clean(number);
        self.meta[number as usize].page.store(NO_PAGE, Ordering::Release);
        self.pool.release(frame);
        let mut free = locked(&self.free);
        free.push(number);
        self.free_count.store(free.len(), Ordering::Release);
    }

    fn pop_free(&self) -> Option<Exclusive> {
        if self.free_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut free = locked(&self.free);
        let number = free.pop();
        self.free_count.store(free.len(), Ordering::Release);
        drop(free);
        // A reader with a stale look-up may hold a pin for a moment; it lets go as soon as it sees another page.
        let number = number?;
        loop {
            if let Some(lease) = self.pool.try_exclusive(number) {
                return Some(lease);
            }
            std::hint::spin_loop();
        }
    }

    /// A frame to read into: a free one, else the clock's victim.
    fn free_frame(&self, thread: usize, c: &Counters) -> Option<Exclusive> {
        c.add(C::FreeRequested, 1);
        if let Some(lease) = self.pop_free() {
            return Some(lease);
        }
        let parts = self.hands.len();
        // A thread goes from partition to partition: in one that it searched just before, the
        // frames are those being read now.
        let first = thread + c.get(C::FreeRequested) as usize;
        for step in 0..parts {
            if let Some(lease) = self.seek((first + step) % parts, c) {
                return Some(lease);
            }
        }
        None
    }

    /// Walks one partition's clock until a frame can be reused.
    fn seek(&self, part: usize, c: &Counters) -> Option<Exclusive> {
        let parts = self.hands.len();
        let frames = self.meta.len();
        let begin = part * frames / parts;
        let size = (part + 1) * frames / parts - begin;
        // Another session walking the same partition makes this one go to the next.
        let mut hand = self.hands[part].try_lock().ok()?;
        let dirty_before = c.get(C::DirtyInspected);
        for _ in 0..size * SEEK_LAPS {
            if (c.get(C::DirtyInspected) - dirty_before) as usize * 100 > size * self.scan_pct {
                return None;
            }
            let number = (begin + *hand) as u32;
            *hand = (*hand + 1) % size;
            if let Some(lease) = self.try_reuse(number, c) {
                return Some(lease);
            }
        }
        None
    }

    fn try_reuse(&self, number: u32, c: &Counters) -> Option<Exclusive> {
        let meta = &self.meta[number as usize];
        c.add(C::FreeInspected, 1);
        if meta.page.load(Ordering::Acquire) == NO_PAGE {
            return None;
        }
        if self.pool.is_pinned(number) || self.pool.is_exclusive(number) {
            c.add(C::PinnedInspected, 1);
            return None;
        }
        let flags = meta.flags.load(Ordering::Acquire);
        if flags & (DIRTY | WRITING) != 0 {
            c.add(C::DirtyInspected, 1);
            self.list_for_writing(number);
            return None;
        }
        if self.pool.unmark(number) {
            c.add(C::HotSpared, 1);
            return None;
        }
        let lease = self.pool.try_exclusive(number)?;
        if meta.flags.load(Ordering::Acquire) & (DIRTY | WRITING) != 0 || !self.unmap(number) {
            self.pool.release_unchanged(lease);
            return None;
        }
        Some(lease)
    }

    /// Takes the frame's page out of the table. The caller holds the frame exclusively.
    fn unmap(&self, number: u32) -> bool {
        let meta = &self.meta[number as usize];
        let page = Page(meta.page.load(Ordering::Acquire));
        if page.0 == NO_PAGE {
            return false;
        }
        let reads = locked(self.shard(page));
        self.table.remove(page, number);
        meta.page.store(NO_PAGE, Ordering::Release);
        drop(reads);
        self.assert_clean(number);
        true
    }

    /// The caller holds the frame exclusively: so nobody changes it meanwhile.
    fn assert_clean(&self, number: u32) {
        let meta = &self.meta[number as usize];
        let flags = meta.flags.load(Ordering::Acquire);
        assert!(
            flags & (DIRTY | PENDING | WRITING) == 0,
            "C3: only a clean frame loses its page; frame {number} has the flags {flags:#x} and changes since LSN {}",
            meta.first_lsn.load(Ordering::Acquire)
        );
    }

    /// Puts a cold dirty frame on the writers' list.
    pub(crate) fn list_for_writing(&self, number: u32) {
        let before = self.meta[number as usize].flags.fetch_or(LISTED, Ordering::AcqRel);
        if before & LISTED == 0 {
            locked(&self.write_list).push_back(number);
        }
    }

    /// Drops a clean page at once (CACHE_MB=0); a dirty one goes to the writers instead.
    pub(crate) fn discard(&self, number: u32, page: Page) {
        let flags = self.meta[number as usize].flags.load(Ordering::Acquire);
        if flags & (DIRTY | WRITING) != 0 {
            self.list_for_writing(number);
            return;
        }
        let Some(lease) = self.pool.try_exclusive(number) else {
            return;
        };
        let clean = self.meta[number as usize].flags.load(Ordering::Acquire) & (DIRTY | WRITING) == 0;
        if clean && self.holds(number, page) && self.unmap(number) {
            self.give_back(lease);
        } else {
            self.pool.release_unchanged(lease);
        }
    }

    /// Marks a frame changed by a transaction whose redo is still private. The caller holds it exclusively.
    /// Returns whether this is the transaction's first change of it since its redo was last published.
    pub(crate) fn mark_changed(&self, lease: &Exclusive, c: &Counters) -> bool {
        let number = lease.frame();
        let before = self.meta[number as usize].flags.fetch_or(DIRTY | PENDING | STALE_SUM, Ordering::AcqRel);
        self.touch(number);
        if before & DIRTY == 0 {
            self.dirty.fetch_add(1, Ordering::Relaxed);
            c.add(C::Dirtied, 1);
        }
        before & PENDING == 0
    }

    /// The change's redo is in the log buffer: the frame may be written once the log is durable up to `end_lsn`.
    /// Returns whether the frame is to be entered in the checkpoint queue.
    pub(crate) fn mark_published(&self, frame: u32, start_lsn: u64, end_lsn: u64) -> bool {
        let meta = &self.meta[frame as usize];
        let before = meta.last_lsn.swap(end_lsn, Ordering::AcqRel);
        debug_assert!(
            start_lsn < end_lsn && before <= start_lsn,
            "C4: changes of a frame are published in their order; frame {frame} has {start_lsn} to {end_lsn} after {before}"
        );
        let entered = meta.first_lsn.compare_exchange(0, start_lsn, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        meta.flags.fetch_and(!PENDING, Ordering::AcqRel);
        entered
    }

    /// Enters frames in the checkpoint queue.
    pub(crate) fn enqueue(&self, start_lsn: u64, frames: Vec<u32>) {
        if !frames.is_empty() {
            locked(&self.queue).entry(start_lsn).or_default().extend(frames);
        }
    }

    /// The oldest redo address some published dirty frame still needs; `None` without such frames.
    pub(crate) fn checkpoint_floor(&self) -> Option<u64> {
        let mut queue = locked(&self.queue);
        while let Some(mut first) = queue.first_entry() {
            let lsn = *first.key();
            first.get_mut().retain(|frame| self.needs(*frame, lsn));
            if first.get().is_empty() {
                first.remove();
            } else {
                return Some(lsn);
            }
        }
        None
    }

    /// Looks at every frame: none may need redo older than `position`, which recovery would not read.
    pub(crate) fn assert_floor(&self, position: u64) {
        if !self.rules.are_whole() {
            return;
        }
        for (frame, meta) in self.meta.iter().enumerate() {
            // Set before the frame may be written, and 0 before it counts as clean.
            let first = meta.first_lsn.load(Ordering::Acquire);
            assert!(
                first == 0 || first >= position,
                "K2: the checkpoint passes no change that is not on disk; frame {frame} of page {} has changes since LSN {first}, and the checkpoint would be {position}",
                meta.page.load(Ordering::Acquire)
            );
        }
    }

    /// The mark that keeps a frame from being written.
    fn pending(&self) -> u32 {
        if self.rules.keep(CrashRule::PrivateRedoStays) { PENDING } else { 0 }
    }

    fn needs(&self, frame: u32, lsn: u64) -> bool {
        let meta = &self.meta[frame as usize];
        meta.flags.load(Ordering::Acquire) & DIRTY != 0 && meta.first_lsn.load(Ordering::Acquire) == lsn
    }

    /// Takes up to `most` frames from the write list (cold and dirty) for the calling writer.
    pub(crate) fn take_listed(&self, most: usize, out: &mut Vec<u32>) {
        let mut list = locked(&self.write_list);
        while out.len() < most {
            let Some(frame) = list.pop_front() else { break };
            self.meta[frame as usize].flags.fetch_and(!LISTED, Ordering::AcqRel);
            if self.take(frame) {
                out.push(frame);
            }
        }
    }

    /// Whether the write list holds anything.
    pub(crate) fn has_listed(&self) -> bool {
        !locked(&self.write_list).is_empty()
    }

    /// Makes the calling writer the only one that has this frame in hand.
    fn take(&self, frame: u32) -> bool {
        let flags = &self.meta[frame as usize].flags;
        if flags.load(Ordering::Acquire) & WRITING != 0 {
            return false;
        }
        flags.fetch_or(TAKEN, Ordering::AcqRel) & TAKEN == 0
    }

    /// Lets go of frames that were taken; those copied meanwhile are marked as being written.
    pub(crate) fn untake(&self, frames: &[u32]) {
        for frame in frames {
            self.meta[*frame as usize].flags.fetch_and(!TAKEN, Ordering::AcqRel);
        }
    }

    /// Takes up to `most` frames in the order of their first change, none younger than `below`.
    pub(crate) fn take_oldest(&self, below: u64, most: usize, out: &mut Vec<u32>) {
        let queue = locked(&self.queue);
        for (lsn, frames) in queue.range(..below) {
            for frame in frames {
                let flags = self.meta[*frame as usize].flags.load(Ordering::Acquire);
                if flags & (WRITING | self.pending() | TAKEN) == 0 && self.needs(*frame, *lsn) && self.take(*frame) {
                    out.push(*frame);
                    if out.len() >= most {
                        return;
                    }
                }
            }
        }
    }

    /// Copies a dirty frame that the caller has taken and marks it as being written; `None` if it cannot be
    /// written now.
    pub(crate) fn copy_for_write(&self, number: u32, out: &mut [u8]) -> Option<Copied> {
        let meta = &self.meta[number as usize];
        let pin = self.pool.try_shared(number)?;
        let flags = meta.flags.load(Ordering::Acquire);
        if flags & DIRTY == 0 || flags & (self.pending() | WRITING) != 0 {
            self.pool.unpin(pin);
            return None;
        }
        meta.flags.fetch_or(WRITING, Ordering::AcqRel);
        out.copy_from_slice(self.pool.bytes(&pin));
        let copied = Copied {
            frame: number,
            page: Page(meta.page.load(Ordering::Acquire)),
            lsn: meta.last_lsn.load(Ordering::Acquire),
            crc_word: 0,
            change: self.pool.word(number, word::CHANGE),
        };
        // The pin keeps changes away.
        let flags = meta.flags.load(Ordering::Acquire);
        assert!(
            !self.rules.are_whole() || flags & PENDING == 0 && copied.lsn > 0,
            "C5: what is written has its redo in the log buffer; page {} has the flags {flags:#x} and LSN {}",
            copied.page.0,
            copied.lsn
        );
        self.pool.unpin(pin);
        // The address is known only once the redo is in the log buffer, so the copy gets it here.
        out[word::LSN * 8..][..8].copy_from_slice(&copied.lsn.to_le_bytes());
        Some(copied)
    }

    /// The copy could not be written after all.
    pub(crate) fn abandon_write(&self, copied: &Copied) {
        self.meta[copied.frame as usize].flags.fetch_and(!WRITING, Ordering::AcqRel);
    }

    /// The copy is on disk: the frame is clean unless it changed meanwhile. Returns whether it is clean.
    ///
    /// A pin is enough: changes need the frame exclusively. Waiting for that here could wait for a session
    /// that holds a pin while it waits for a free buffer, that is for this writer.
    pub(crate) fn finish_write(&self, copied: &Copied) -> bool {
        let meta = &self.meta[copied.frame as usize];
        let pin = loop {
            if let Some(pin) = self.pool.try_shared(copied.frame) {
                break pin;
            }
            // A change holds its frame for less than a microsecond.
            std::thread::yield_now();
        };
        let flags = meta.flags.load(Ordering::Acquire);
        assert!(
            flags & (DIRTY | WRITING) == DIRTY | WRITING && self.holds(copied.frame, copied.page),
            "C6: a frame under write stays dirty and keeps its page; frame {} of page {} has page {} and the flags {flags:#x}",
            copied.frame,
            copied.page.0,
            self.page_of(copied.frame).0
        );
        let clean = self.pool.word(copied.frame, word::CHANGE) == copied.change
            && meta.flags.load(Ordering::Acquire) & PENDING == 0;
        if clean {
            meta.first_lsn.store(0, Ordering::Release);
            meta.flags.fetch_and(!(DIRTY | WRITING), Ordering::AcqRel);
            let dirty = self.dirty.fetch_sub(1, Ordering::Relaxed);
            assert!(dirty > 0, "C7: no more frames become clean than were dirty");
        } else {
            // What is on disk covers all changes up to the copy's LSN. Under the queue's lock: between a new
            // address and a new place another writer could find the checkpoint free to pass this frame.
            let mut queue = locked(&self.queue);
            meta.first_lsn.store(copied.lsn, Ordering::Release);
            queue.entry(copied.lsn).or_default().push(copied.frame);
            meta.flags.fetch_and(!WRITING, Ordering::AcqRel);
        }
        self.pool.unpin(pin);
        if clean {
            self.settle(copied);
        }
        clean
    }

    /// If nobody uses the frame: gives it the header words of the block on disk, or drops it without a cache.
    fn settle(&self, copied: &Copied) {
        let Some(mut lease) = self.pool.try_exclusive(copied.frame) else {
            return;
        };
        let meta = &self.meta[copied.frame as usize];
        if self.is_dirty(copied.frame) || !self.holds(copied.frame, copied.page) {
            self.pool.release_unchanged(lease);
            return;
        }
        if self.drop_on_unpin && copied.page.0 < crate::layout::UNDO_BASE && self.unmap(copied.frame) {
            self.give_back(lease);
            return;
        }
        self.pool.write_word(&mut lease, word::LSN, copied.lsn);
        self.pool.write_word(&mut lease, word::CRC, copied.crc_word);
        meta.flags.fetch_and(!STALE_SUM, Ordering::AcqRel);
        self.pool.release(lease);
    }

    /// Whether the checksum in the frame belongs to its content.
    pub(crate) fn has_checksum(&self, frame: u32) -> bool {
        self.meta[frame as usize].flags.load(Ordering::Acquire) & (DIRTY | WRITING | STALE_SUM) == 0
    }
}

#[cfg(test)]
mod tests;
