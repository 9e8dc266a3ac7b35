//! The buffer of a log: threads append to it at once, and what is complete is read out in order.

use crate::BlockError;
use crate::mapping::Mapping;
use std::sync::atomic::{AtomicU64, Ordering};

/// The thread appends nothing.
const NONE: u64 = u64::MAX;

#[repr(align(128))]
struct Padded(AtomicU64);

/// A ring of bytes by address, which only rises: released <= taken <= complete <= tail <= released + capacity.
///
/// A range is reserved by one exchange of `tail`, and copied without a lock: no other thread has it. Each thread announces
/// the lowest address that it may still be copying to, so that only finished bytes are taken. What is taken keeps its place
/// until it is released.
pub struct LogRing {
    memory: Mapping,
    tail: Padded,
    taken: Padded,
    released: Padded,
    copying: Vec<Padded>,
}

/// A range that was appended and is not complete before [`LogRing::publish`].
#[derive(Debug)]
#[must_use = "nothing from here on is complete before it is published"]
pub struct Appended {
    thread: usize,
    /// Its first address and the one behind it.
    pub range: (u64, u64),
}

/// A range that was taken out, still in its place until [`LogRing::release`].
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    range: (u64, u64),
}

impl Taken {
    /// Its first address and the one behind it.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        self.range
    }
}

impl LogRing {
    /// Maps a ring of `bytes`, a power of two, for so many threads; the first address is `begin`. `huge_pages` is advice.
    ///
    /// # Errors
    /// [`BlockError::Memory`] if the system has too little, [`BlockError::Invalid`] for no power of two or an address of
    /// 2^62 or more.
    pub fn new(bytes: usize, begin: u64, threads: usize, huge_pages: bool) -> Result<Self, BlockError> {
        if !bytes.is_power_of_two() || begin >= 1 << 62 {
            return Err(BlockError::Invalid { what: format!("a log buffer of {bytes} bytes from address {begin} on") });
        }
        let at = |address| Padded(AtomicU64::new(address));
        Ok(Self {
            memory: Mapping::new(bytes, huge_pages, "the log buffer")?,
            tail: at(begin),
            taken: at(begin),
            released: at(begin),
            copying: (0..threads).map(|_| at(NONE)).collect(),
        })
    }

    /// Bytes it holds.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.memory.len() as u64
    }

    /// End of everything appended.
    #[inline]
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail.0.load(Ordering::SeqCst)
    }

    /// End of everything taken.
    #[inline]
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.0.load(Ordering::SeqCst)
    }

    /// End of everything released.
    #[inline]
    #[must_use]
    pub fn released(&self) -> u64 {
        self.released.0.load(Ordering::SeqCst)
    }

    /// Everything below is published.
    #[must_use]
    pub fn complete(&self) -> u64 {
        let tail = self.tail();
        self.copying.iter().map(|copying| copying.0.load(Ordering::SeqCst)).fold(tail, u64::min)
    }

    /// Whether `bytes` have room at `begin`. A thread that lost its core has a `begin` that others have long gone past: it
    /// has room, and the exchange that follows tells it where the tail is now.
    fn has_room(&self, begin: u64, bytes: u64) -> bool {
        (begin + bytes).saturating_sub(self.released()) <= self.capacity()
    }

    /// Copies `bytes` behind everything appended; `None` without room for them.
    ///
    /// # Panics
    /// If what the thread appended last is not published, or there is no such thread.
    pub fn append(&self, thread: usize, bytes: &[u8]) -> Option<Appended> {
        let copying = &self.copying[thread].0;
        let mut begin = self.tail();
        // Announced before it is reserved, with a lower bound: `complete` must not pass it in between.
        let free = copying.compare_exchange(NONE, begin, Ordering::SeqCst, Ordering::SeqCst);
        assert!(free.is_ok(), "thread {thread} appends while it has something unpublished");
        let len = bytes.len() as u64;
        loop {
            if !self.has_room(begin, len) {
                copying.store(NONE, Ordering::SeqCst);
                return None;
            }
            match self.tail.0.compare_exchange(begin, begin + len, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => begin = now,
            }
            copying.store(begin, Ordering::SeqCst);
        }
        let (at, first) = self.place(begin, bytes.len());
        let base = self.memory.base();
        // SAFETY: both parts lie in the mapping (`place`), which `bytes` cannot overlap, as it lends no slice of itself. The
        // exchange gave the addresses to this call alone, and with `has_room` they end at most one capacity behind
        // what is released, which only rises: the same bytes under other addresses are released. Nobody reads them
        // before they are taken, and `copying` keeps them from that until they are published, which happens after this.
        unsafe {
            base.add(at).copy_from_nonoverlapping(bytes.as_ptr(), first);
            base.copy_from_nonoverlapping(bytes.as_ptr().add(first), bytes.len() - first);
        }
        Some(Appended { thread, range: (begin, begin + len) })
    }

    /// The range counts as complete.
    pub fn publish(&self, appended: Appended) {
        self.copying[appended.thread].0.store(NONE, Ordering::SeqCst);
    }

    /// Takes everything up to `end` that is not taken.
    ///
    /// # Panics
    /// If that is not complete, or somebody else takes at the same time.
    pub fn take(&self, end: u64) -> Taken {
        let begin = self.taken();
        let complete = self.complete();
        assert!(begin <= end && end <= complete, "{begin} to {end} is taken, and {complete} is complete");
        let mine = self.taken.0.compare_exchange(begin, end, Ordering::SeqCst, Ordering::SeqCst);
        assert!(mine.is_ok(), "two take from address {begin} on");
        Taken { range: (begin, end) }
    }

    /// Copies the bytes from address `begin` on out of what was taken.
    ///
    /// # Panics
    /// If they are not part of it.
    pub fn read(&self, taken: &Taken, begin: u64, into: &mut [u8]) {
        let (low, high) = taken.range;
        let is_part = low <= begin && begin <= high && into.len() as u64 <= high - begin;
        assert!(is_part && low >= self.released(), "{} bytes at {begin} are read of {taken:?}", into.len());
        let (at, first) = self.place(begin, into.len());
        let base = self.memory.base();
        // SAFETY: both parts lie in the mapping (`place`), which `into` cannot overlap. The range is published, so nobody
        // writes it, and not released before the one token that says so is given back, which is borrowed here: no append
        // gets its bytes.
        unsafe {
            base.add(at).copy_to_nonoverlapping(into.as_mut_ptr(), first);
            base.copy_to_nonoverlapping(into.as_mut_ptr().add(first), into.len() - first);
        }
    }

    /// Gives the place of the oldest range taken back to be appended to.
    ///
    /// # Panics
    /// If it is not the oldest.
    pub fn release(&self, taken: Taken) {
        let (begin, end) = taken.range;
        let oldest = self.released.0.compare_exchange(begin, end, Ordering::SeqCst, Ordering::SeqCst);
        assert!(oldest.is_ok(), "{begin} to {end} is released, and {oldest:?} is the oldest");
    }

    /// Where an address lies, and how many of `len` bytes fit behind it; the rest is at the beginning.
    fn place(&self, address: u64, len: usize) -> (usize, usize) {
        assert!(len <= self.memory.len(), "{len} bytes of a log buffer of {}", self.memory.len());
        let at = (address & (self.capacity() - 1)) as usize;
        (at, len.min(self.memory.len() - at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn ring(threads: usize) -> LogRing {
        LogRing::new(4096, 4096, threads, false).unwrap()
    }

    #[test]
    fn what_is_appended_is_read_back_across_the_end() {
        let ring = ring(1);
        let mut out = [0; 3000];
        for round in 0..5u8 {
            let appended = ring.append(0, &[round; 3000]).unwrap();
            assert_eq!(ring.complete(), appended.range.0, "it is not published");
            assert!(ring.complete() < ring.tail());
            ring.publish(appended);
            let taken = ring.take(ring.complete());
            ring.read(&taken, taken.range().0, &mut out);
            assert_eq!(out, [round; 3000]);
            ring.release(taken);
        }
        assert_eq!((ring.tail(), ring.released()), (4096 + 15_000, 4096 + 15_000));
    }

    #[test]
    fn there_is_room_for_what_was_released_and_no_more() {
        let ring = ring(1);
        ring.publish(ring.append(0, &[1; 4096]).unwrap());
        let taken = ring.take(4096 + 1000);
        assert!(ring.append(0, &[2; 8]).is_none(), "what is taken keeps its place");
        ring.release(taken);
        assert!(ring.append(0, &[2; 1001]).is_none());
        ring.publish(ring.append(0, &[2; 1000]).unwrap());
        assert!(ring.append(0, &[2; 1]).is_none());
        // A thread that lost its core looks from where the tail was.
        assert!(ring.has_room(4096, 8) && !ring.has_room(ring.tail(), 8));
    }

    #[test]
    fn no_power_of_two_and_no_address_that_ends_are_refused() {
        assert!(LogRing::new(3 << 20, 0, 1, false).is_err());
        assert!(LogRing::new(4096, u64::MAX - 4096, 1, false).is_err());
    }

    fn misused(what: impl FnOnce(&LogRing)) -> bool {
        let ring = ring(1);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| what(&ring))).is_err()
    }

    #[test]
    fn who_does_not_keep_to_the_order_is_stopped() {
        assert!(misused(|ring| {
            let _mine = ring.append(0, &[1; 8]);
            let _ = ring.append(0, &[1; 8]);
        }));
        assert!(misused(|ring| {
            let _mine = ring.append(0, &[1; 8]);
            ring.take(ring.tail());
        }));
        assert!(misused(|ring| {
            ring.publish(ring.append(0, &[1; 16]).unwrap());
            let (_first, second) = (ring.take(4096 + 8), ring.take(4096 + 16));
            ring.release(second);
        }));
        assert!(misused(|ring| {
            ring.publish(ring.append(0, &[1; 16]).unwrap());
            ring.read(&ring.take(4096 + 8), 4096 + 4, &mut [0; 8]);
        }));
    }

    /// Records of several threads, as long as their first byte says and filled with it, come out whole and in order.
    #[test]
    fn threads_append_at_once_and_each_record_comes_out_whole() {
        const THREADS: usize = 3;
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let (ring, start) = (ring(THREADS), Barrier::new(THREADS + 1));
        let longest = THREADS * 8;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (ring, start) = (&ring, &start);
                scope.spawn(move || {
                    start.wait();
                    let record = vec![(thread as u8 + 1) * 8; (thread + 1) * 8];
                    for _ in 0..rounds {
                        let appended = loop {
                            match ring.append(thread, &record) {
                                Some(appended) => break appended,
                                None => std::thread::yield_now(),
                            }
                        };
                        ring.publish(appended);
                    }
                });
            }
            start.wait();
            let (mut left, mut bytes) = (rounds * THREADS, Vec::new());
            while left > 0 {
                let taken = ring.take(ring.complete());
                let (begin, end) = taken.range();
                let kept = bytes.len();
                bytes.resize(kept + (end - begin) as usize, 0);
                ring.read(&taken, begin, &mut bytes[kept..]);
                ring.release(taken);
                let mut at = 0;
                while let Some(len) = bytes.get(at).map(|byte| usize::from(*byte))
                    && at + len <= bytes.len()
                {
                    assert!(len <= longest && bytes[at..at + len].iter().all(|byte| usize::from(*byte) == len));
                    (at, left) = (at + len, left - 1);
                }
                bytes.drain(..at);
                std::thread::yield_now();
            }
        });
    }
}
