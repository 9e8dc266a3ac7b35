//! The one latency histogram: log-linear, 64 slots per octave, 1 ns to 1 h.
//!
//! Slots equal fio's where fio has them (`stat.h`: values below 128 exact, then
//! 64 slots per power of two), so a midpoint is off by at most 1/128 = 0.78 %.
//! 1000 = 125 x 8, so every power-of-two microsecond is a slot border and the
//! view of `V$EVENT_HISTOGRAM_MICRO` is an exact sum of slots.

/// Slots per octave.
pub const SLOTS_PER_OCTAVE: usize = 64;
/// Slots in all: values 0..127 exactly, then octaves up to 2^42 ns (73 min).
pub const SLOTS: usize = 37 * SLOTS_PER_OCTAVE;
/// Buckets of the power-of-two microsecond view.
pub const POW2_US_BUCKETS: usize = 34;

/// Counts of durations in ns, with exact count, sum, minimum and maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    slots: Vec<u64>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// The slot that counts `ns`; durations of 2^42 ns and more share the last one.
#[inline]
#[must_use]
pub fn slot_of(ns: u64) -> usize {
    if ns < 128 {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() as usize - 6;
    let slot = (shift + 1) * SLOTS_PER_OCTAVE + ((ns >> shift) as usize & (SLOTS_PER_OCTAVE - 1));
    slot.min(SLOTS - 1)
}

/// Lowest value of a slot and the width of the slot, both in ns.
#[must_use]
pub fn slot_range_ns(slot: usize) -> (u64, u64) {
    if slot < 128 {
        return (slot as u64, 1);
    }
    let shift = slot / SLOTS_PER_OCTAVE - 1;
    let low = (SLOTS_PER_OCTAVE + slot % SLOTS_PER_OCTAVE) as u64;
    (low << shift, 1 << shift)
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: vec![0; SLOTS],
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` equal durations.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        self.slots[slot_of(ns)] += n;
        self.count += n;
        self.sum_ns += ns * n;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Durations counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of all durations, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Smallest duration, ns; `None` while empty.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// Largest duration, ns; `None` while empty.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Sum over count, ns; `None` while empty.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}
