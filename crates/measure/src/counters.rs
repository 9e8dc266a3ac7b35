//! Counters that one thread writes and others may read while it works.
//!
//! Writers share nothing: every set has its own cache lines, and a count is one plain load and store, without a locked
//! instruction. The type system excludes a second writer: [`Writer`] cannot be cloned.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A value alone on its cache lines: 128 bytes, because x86 fetches lines in
/// pairs and some arm64 machines have lines of 128.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Pads a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

type Cells<const N: usize> = Arc<CachePadded<[AtomicU64; N]>>;

/// The writing end of `N` counters; there is one.
#[derive(Debug)]
pub struct Writer<const N: usize>(Cells<N>);

/// A reading end of `N` counters.
#[derive(Clone, Debug)]
pub struct Reader<const N: usize>(Cells<N>);

/// `N` counters at 0, cumulative; they start at 0 and wrap at 2^64.
#[must_use]
pub fn counters<const N: usize>() -> (Writer<N>, Reader<N>) {
    let cells: Cells<N> = Arc::new(CachePadded::new([const { AtomicU64::new(0) }; N]));
    (Writer(Arc::clone(&cells)), Reader(cells))
}

impl<const N: usize> Writer<N> {
    /// Adds `n` to counter `index`.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn add(&mut self, index: usize, n: u64) {
        let cell = &self.0[index];
        // The only writer is here, so nothing is lost between load and store.
        let sum = cell.load(Ordering::Relaxed).wrapping_add(n);
        cell.store(sum, Ordering::Relaxed);
    }

    /// Replaces counter `index`: for values that are kept elsewhere and published.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn set(&mut self, index: usize, value: u64) {
        self.0[index].store(value, Ordering::Relaxed);
    }
}

impl<const N: usize> Reader<N> {
    /// A recent value of counter `index`.
    ///
    /// # Panics
    /// If there is no such counter.
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.0[index].load(Ordering::Relaxed)
    }

    /// All counters, each read separately: they need not belong to one instant.
    #[must_use]
    pub fn all(&self) -> [u64; N] {
        std::array::from_fn(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_of_counters_has_cache_lines_of_its_own() {
        assert_eq!(align_of::<CachePadded<AtomicU64>>(), 128);
        assert_eq!(size_of::<CachePadded<AtomicU64>>(), 128);
        assert_eq!(size_of::<CachePadded<[AtomicU64; 17]>>(), 256);
        let (writer, _) = counters::<3>();
        let address = std::ptr::from_ref::<CachePadded<_>>(&writer.0).addr();
        assert_eq!(address % 128, 0);
    }

    #[test]
    fn a_reader_sees_what_was_written() {
        let (mut writer, reader) = counters::<3>();
        assert_eq!(reader.all(), [0, 0, 0]);
        writer.add(0, 5);
        writer.add(0, 6);
        writer.set(2, 9);
        assert_eq!(reader.clone().all(), [11, 0, 9]);
        writer.add(2, u64::MAX);
        assert_eq!(reader.get(2), 8);
    }

    #[test]
    fn no_count_is_lost_or_seen_falling_by_another_thread() {
        let (mut writer, reader) = counters::<2>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..100_000 {
                    writer.add(1, 3);
                }
            });
            let mut last = 0;
            while last < 300_000 {
                let now = reader.get(1);
                assert!(now >= last && now % 3 == 0, "{now} after {last}");
                last = now;
            }
        });
        assert_eq!(reader.all(), [0, 300_000]);
    }
}
