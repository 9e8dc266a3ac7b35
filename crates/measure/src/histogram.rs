//! The one latency histogram: log-linear, 64 slots per octave, 1 ns to 1 h.
//!
//! Slots equal fio's where fio has them (`stat.h`: values below 128 exact, then
//! 64 slots per power of two), so a midpoint is off by at most 1/128 = 0.78 %.
//! 1000 = 125 x 8, so every power-of-two microsecond is a slot border and the
//! view of `V$EVENT_HISTOGRAM_MICRO` is an exact sum of slots.
//!
//! A histogram that is recorded into keeps all slots side by side (18.5 KiB);
//! one that is only read, merged or differenced keeps the slots in use, so that
//! a snapshot a second stays small. Identity: the count is the sum of the slots.

mod json;

/// Slots per octave.
pub const SLOTS_PER_OCTAVE: usize = 64;
/// Slots in all: values 0..127 exactly, then octaves up to 2^42 ns (73 min).
pub const SLOTS: usize = 37 * SLOTS_PER_OCTAVE;
/// Buckets of the power-of-two microsecond view.
pub const POW2_US_BUCKETS: usize = 34;
/// Samples a percentile needs beyond it before it means anything.
pub const SAMPLES_BEYOND: u64 = 10;

/// Counts of durations in ns, with exact count, sum, minimum and maximum.
///
/// [`Histogram::new`] is ready to record without allocating; a default one, a
/// clone and a difference are compact and grow at the first [`Histogram::record`].
#[derive(Debug)]
pub struct Histogram {
    slots: Slots,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

#[derive(Debug)]
enum Slots {
    /// All of them, to record into.
    Dense(Box<[u64; SLOTS]>),
    /// Those that are not zero, ascending, to keep.
    Sparse(Vec<(u32, u64)>),
}

/// Why a sparse form is not a histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// A slot beyond the last.
    #[error("slot {slot} does not exist, the last is {}", SLOTS - 1)]
    Slot {
        /// The slot as given.
        slot: u32,
    },
    /// Slots must ascend, each once.
    #[error("slot {slot} is out of order")]
    Order {
        /// The slot as given.
        slot: u32,
    },
    /// More than 2^64 durations.
    #[error("the slots hold more than 2^64 durations")]
    Overflow,
    /// The count is redundant; it must be the sum of the slots.
    #[error("the count is {count}, the sum of the slots is {slots}")]
    Count {
        /// The count as given.
        count: u64,
        /// What the slots add up to.
        slots: u64,
    },
    /// The sum of durations cannot come from these slots.
    #[error("the sum of {sum_ns} ns cannot come from the slots")]
    Sum {
        /// The sum as given, ns.
        sum_ns: u64,
    },
    /// Minimum or maximum lies outside the first or last slot in use.
    #[error("the extremes {min_ns} ns and {max_ns} ns are not in the outer slots")]
    Extremes {
        /// The minimum as given, ns.
        min_ns: u64,
        /// The maximum as given, ns.
        max_ns: u64,
    },
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
pub fn slot_low_and_width_ns(slot: usize) -> (u64, u64) {
    if slot < 128 {
        return (slot as u64, 1);
    }
    let shift = slot / SLOTS_PER_OCTAVE - 1;
    let low = (SLOTS_PER_OCTAVE + slot % SLOTS_PER_OCTAVE) as u64;
    (low << shift, 1 << shift)
}

/// The bucket of [`Histogram::pow2_us`] a duration belongs to: the bit length of
/// its whole microseconds, at most 33.
#[must_use]
pub fn pow2_us_bucket_of(ns: u64) -> usize {
    let us = ns / 1000;
    (64 - us.leading_zeros() as usize).min(POW2_US_BUCKETS - 1)
}

impl Default for Histogram {
    /// An empty, compact histogram.
    fn default() -> Self {
        Self::compact(Vec::new(), 0, 0, u64::MAX, 0)
    }
}

impl Clone for Histogram {
    /// A compact copy: it takes the space of the slots in use.
    fn clone(&self) -> Self {
        let slots = self.sparse();
        Self::compact(slots, self.count, self.sum_ns, self.min_ns, self.max_ns)
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let scalars = |h: &Self| (h.count, h.sum_ns, h.min_ns, h.max_ns);
        scalars(self) == scalars(other) && self.slots_used().eq(other.slots_used())
    }
}

impl Eq for Histogram {}

/// Recording and reading.
impl Histogram {
    /// An empty histogram with room for every slot, so that recording never allocates.
    #[must_use]
    pub fn new() -> Self {
        Self { slots: Slots::Dense(no_slots()), ..Self::default() }
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let slot = slot_of(ns);
        match &mut self.slots {
            Slots::Dense(slots) => slots[slot] += 1,
            Slots::Sparse(_) => self.dense()[slot] += 1,
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts `n` equal durations.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        let slot = &mut self.dense()[slot_of(ns)];
        *slot = slot.saturating_add(n);
        self.count = self.count.saturating_add(n);
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(n));
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Durations counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
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

    /// The duration that the share `q` (0 to 1) of all durations does not exceed:
    /// the midpoint of the slot of rank ceil(q x count), kept within the exact
    /// extremes, so off by less than 0.8 % below 2^42 ns.
    ///
    /// `None` with fewer than [`SAMPLES_BEYOND`] durations of higher rank: such a
    /// percentile is n/a, not small. The largest duration is [`Histogram::max_ns`].
    #[must_use]
    pub fn percentile_ns(&self, q: f64) -> Option<u64> {
        let rank = rank_of(q, self.count);
        if self.count - rank < SAMPLES_BEYOND {
            return None;
        }
        self.value_of_rank(rank)
    }

    /// The median, however few values were counted: it says nothing about the tail.
    #[must_use]
    pub fn median_ns(&self) -> Option<u64> {
        self.value_of_rank(self.count.div_ceil(2))
    }

    /// The middle of the slot of a rank from 1, within what was counted.
    fn value_of_rank(&self, rank: u64) -> Option<u64> {
        let mut seen = 0_u64;
        let (slot, _) = self.slots_used().find(|&(_, n)| {
            seen = seen.saturating_add(n);
            seen >= rank
        })?;
        let (low, width) = slot_low_and_width_ns(slot as usize);
        Some((low + width / 2).clamp(self.min_ns, self.max_ns))
    }

    /// Counts by powers of two of a microsecond, as `V$EVENT_HISTOGRAM_MICRO` has
    /// them: bucket 0 holds durations below 1 us, bucket i those from 2^(i-1) us to
    /// below 2^i us, bucket 33 those of 2^32 us and more. An exact sum of slots.
    #[must_use]
    pub fn pow2_us(&self) -> [u64; POW2_US_BUCKETS] {
        let mut buckets = [0_u64; POW2_US_BUCKETS];
        for (slot, n) in self.slots_used() {
            let bucket = &mut buckets[pow2_us_bucket_of(slot_low_and_width_ns(slot as usize).0)];
            *bucket = bucket.saturating_add(n);
        }
        buckets
    }

    /// The slots in use with their counts, ascending.
    #[must_use]
    pub fn sparse(&self) -> Vec<(u32, u64)> {
        match &self.slots {
            Slots::Dense(_) => self.slots_used().collect(),
            Slots::Sparse(slots) => slots.clone(),
        }
    }

    /// The histogram of a sparse form, as [`Histogram::sparse`] and the scalars give
    /// it; `min_ns` and `max_ns` are ignored where there are no slots.
    ///
    /// # Errors
    /// When slots are unknown or out of order, or the scalars cannot belong to them.
    pub fn from_sparse(slots: &[(u32, u64)], sum_ns: u64, min_ns: u64, max_ns: u64) -> Result<Self, HistogramError> {
        let mut count = 0_u64;
        let mut before = None;
        for &(slot, n) in slots {
            if slot as usize >= SLOTS {
                return Err(HistogramError::Slot { slot });
            }
            if before.is_some_and(|before| before >= slot) {
                return Err(HistogramError::Order { slot });
            }
            before = Some(slot);
            count = count.checked_add(n).ok_or(HistogramError::Overflow)?;
        }
        let used: Vec<_> = slots.iter().copied().filter(|&(_, n)| n > 0).collect();
        check_scalars(&used, sum_ns, min_ns, max_ns)?;
        if count == 0 {
            return Ok(Self::default());
        }
        Ok(Self::compact(used, count, sum_ns, min_ns, max_ns))
    }
}

/// Merging and differencing.
impl Histogram {
    /// Adds what another histogram counted. Associative and commutative; an empty
    /// histogram changes nothing. Past 2^64 a value stays at 2^64 - 1.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        match &mut self.slots {
            Slots::Dense(slots) => {
                for (slot, n) in other.slots_used() {
                    let mine = &mut slots[slot as usize];
                    *mine = mine.saturating_add(n);
                }
            }
            Slots::Sparse(mine) => {
                let joined = join(mine.iter().copied(), other.slots_used());
                self.slots = Slots::Sparse(joined);
            }
        }
    }

    /// What was counted since `earlier`, a reading of the same histogram; `None` if
    /// it is not one, because something went backwards (the source was reset).
    ///
    /// Count, sum and slots are exact. An extreme that moved since `earlier` is
    /// exact as well; otherwise the border of the outermost slot stands for it,
    /// which is off by at most 1/64 of its value.
    #[must_use]
    pub fn difference(&self, earlier: &Self) -> Option<Self> {
        let count = self.count.checked_sub(earlier.count)?;
        let sum_ns = self.sum_ns.checked_sub(earlier.sum_ns)?;
        let mut before = earlier.slots_used().peekable();
        let mut slots = Vec::new();
        for (slot, n) in self.slots_used() {
            let gone = before.next_if(|&(earlier_slot, _)| earlier_slot <= slot);
            let old = match gone {
                Some((earlier_slot, _)) if earlier_slot < slot => return None,
                Some((_, old)) => old,
                None => 0,
            };
            let new = n.checked_sub(old)?;
            if new > 0 {
                slots.push((slot, new));
            }
        }
        if before.next().is_some() {
            return None;
        }
        let (Some(&(first, _)), Some(&(last, _))) = (slots.first(), slots.last()) else {
            return (count == 0 && sum_ns == 0).then(Self::default);
        };
        let min_ns = if self.min_ns < earlier.min_ns {
            self.min_ns
        } else {
            slot_low_and_width_ns(first as usize).0.max(self.min_ns)
        };
        let max_ns = if self.max_ns > earlier.max_ns { self.max_ns } else { highest_of(last).min(self.max_ns) };
        Some(Self::compact(slots, count, sum_ns, min_ns, max_ns))
    }
}

impl Histogram {
    fn compact(slots: Vec<(u32, u64)>, count: u64, sum_ns: u64, min_ns: u64, max_ns: u64) -> Self {
        Self { slots: Slots::Sparse(slots), count, sum_ns, min_ns, max_ns }
    }

    /// The slots in use, ascending.
    fn slots_used(&self) -> impl Iterator<Item = (u32, u64)> {
        let (dense, sparse): (&[u64], &[(u32, u64)]) = match &self.slots {
            Slots::Dense(slots) => (slots.as_slice(), &[]),
            Slots::Sparse(slots) => (&[], slots),
        };
        let dense = dense.iter().enumerate().map(|(i, &n)| (i as u32, n));
        dense.filter(|&(_, n)| n > 0).chain(sparse.iter().copied())
    }

    /// All slots, unfolded if they were compact.
    #[cold]
    #[inline(never)]
    fn dense(&mut self) -> &mut [u64; SLOTS] {
        if let Slots::Sparse(sparse) = &self.slots {
            let mut slots = no_slots();
            for &(slot, n) in sparse {
                slots[slot as usize] = n;
            }
            self.slots = Slots::Dense(slots);
        }
        match &mut self.slots {
            Slots::Dense(slots) => slots,
            Slots::Sparse(_) => unreachable!("the slots were unfolded above"),
        }
    }
}

/// The rank of a quantile among `count`, from 1: ceil(q x count) with q taken to
/// nine decimals, so that 0.999 x 10000 is 9990 and not the float's 9991.
fn rank_of(q: f64, count: u64) -> u64 {
    let billionths = (q.clamp(0.0, 1.0) * 1e9).round() as u128;
    let rank = (billionths * u128::from(count)).div_ceil(1_000_000_000);
    // At most `count`, so it fits; an empty histogram has rank 0.
    (rank as u64).max(1).min(count)
}

/// The highest value a slot counts, ns.
fn highest_of(slot: u32) -> u64 {
    if slot as usize == SLOTS - 1 {
        return u64::MAX;
    }
    let (low, width) = slot_low_and_width_ns(slot as usize);
    low + (width - 1)
}

fn no_slots() -> Box<[u64; SLOTS]> {
    let slots = vec![0; SLOTS].into_boxed_slice();
    slots.try_into().expect("the vector has SLOTS elements")
}

/// Adds two ascending lists of slots.
fn join(left: impl Iterator<Item = (u32, u64)>, right: impl Iterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
    let mut left = left.peekable();
    let mut right = right.peekable();
    let mut joined = Vec::with_capacity(left.size_hint().0 + right.size_hint().0);
    while let (Some(&(l, l_n)), Some(&(r, r_n))) = (left.peek(), right.peek()) {
        if l <= r {
            left.next();
        }
        if r <= l {
            right.next();
        }
        joined.push(match l.cmp(&r) {
            std::cmp::Ordering::Less => (l, l_n),
            std::cmp::Ordering::Equal => (l, l_n.saturating_add(r_n)),
            std::cmp::Ordering::Greater => (r, r_n),
        });
    }
    joined.extend(left);
    joined.extend(right);
    joined
}

/// Whether sum and extremes can belong to these slots (ascending, none zero).
fn check_scalars(slots: &[(u32, u64)], sum_ns: u64, min_ns: u64, max_ns: u64) -> Result<(), HistogramError> {
    let (Some(&(first, _)), Some(&(last, _))) = (slots.first(), slots.last()) else {
        return match sum_ns {
            0 => Ok(()),
            _ => Err(HistogramError::Sum { sum_ns }),
        };
    };
    let outer = slot_of(min_ns) == first as usize && slot_of(max_ns) == last as usize;
    if !outer || min_ns > max_ns {
        return Err(HistogramError::Extremes { min_ns, max_ns });
    }
    let sum_with = |value: fn(u32) -> u64| {
        let products = slots.iter();
        products.fold(0_u128, |sum, &(slot, n)| sum.saturating_add(u128::from(value(slot)) * u128::from(n)))
    };
    let least = sum_with(|slot| slot_low_and_width_ns(slot as usize).0);
    let most = sum_with(highest_of);
    // A sum that reached its end stays there, whatever the slots say.
    let ended = sum_ns == u64::MAX && least >= u128::from(u64::MAX);
    if ended || (least..=most).contains(&u128::from(sum_ns)) { Ok(()) } else { Err(HistogramError::Sum { sum_ns }) }
}

#[cfg(test)]
mod tests;
