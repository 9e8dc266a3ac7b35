//! The counters of a clone. One writer, no lock; they count whole groups of equal I/Os at a time.
//!
//! Identities: each I/O queued while measuring is counted once, when it is reaped. Its `lat` is exactly `slat + clat`,
//! because all three come from the same three timestamps. The time in flight is integrated from the same timestamps but
//! independently of all latencies, so that Little's law can be checked.

use super::board::{Card, SecondPart};
use crate::readings::{
    BatchCounts, CloneReading, DIRECTIONS, DepthCounts, FamilyCounts, LatencyReading, Way, WayReading, batch_slot,
    depth_slot,
};
use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::histogram::Histogram;
use std::sync::atomic::Ordering;

/// The latencies to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamps {
    pub(super) slat: bool,
    pub(super) clat: bool,
    pub(super) lat: bool,
}

impl Stamps {
    /// Whether any timestamp is needed.
    pub(super) fn any(self) -> bool {
        self.slat || self.clat || self.lat
    }
}

/// I/Os of one direction that share their timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) way: Way,
    pub(super) start_ns: Ns,
    pub(super) issue_ns: Ns,
    pub(super) ios: u64,
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct WayTally {
    ios: u64,
    bytes: u64,
    short_ios: u64,
    slat: LatencyReading,
    clat: LatencyReading,
    /// Latencies of finished seconds; `second` has the current one.
    lat: LatencyReading,
    second: LatencyReading,
    /// Sum of `lat` over all I/Os.
    lat_sum_ns: u64,
    response: Option<(LatencyReading, LatencyReading)>,
    /// `ios` and `bytes` at the last second boundary.
    at_border: (u64, u64),
}

impl WayTally {
    fn new(used: bool, rated: bool, stamps: Stamps) -> Self {
        let latency = |wanted: bool| if wanted && used { LatencyReading::new() } else { LatencyReading::default() };
        Self {
            ios: 0,
            bytes: 0,
            short_ios: 0,
            slat: latency(stamps.slat),
            clat: latency(stamps.clat),
            lat: latency(stamps.lat),
            second: latency(stamps.lat),
            lat_sum_ns: 0,
            response: rated.then(|| (latency(true), latency(true))),
            at_border: (0, 0),
        }
    }

    fn reading(&self) -> WayReading {
        let mut lat = self.lat.clone();
        lat.merge(&self.second);
        WayReading {
            bytes: self.bytes,
            ios: self.ios,
            short_ios: self.short_ios,
            slat: self.slat.clone(),
            clat: self.clat.clone(),
            lat,
            response: self.response.as_ref().map(|(before, second)| {
                let mut all = before.clone();
                all.merge(second);
                all
            }),
            ..WayReading::default()
        }
    }
}

/// The counters of one clone since its first measured time.
#[derive(Debug)]
pub(super) struct Tally {
    stamps: Stamps,
    used: [bool; DIRECTIONS],
    rated: [bool; DIRECTIONS],
    ways: [WayTally; DIRECTIONS],
    /// `clat` by fio's bounds, which do not coincide with the buckets of a histogram.
    clat_families: FamilyCounts,
    sync: LatencyReading,
    syncs_at_border: u64,
    depths: DepthCounts,
    submits: BatchCounts,
    completes: BatchCounts,
    pub(super) errors_passed: u64,
    pub(super) verified_ios: u64,
    first_ns: Ns,
    group_first_ns: Ns,
    second: u64,
    in_flight: u32,
    in_flight_since_ns: Ns,
    in_flight_ns: u128,
}

impl Tally {
    pub(super) fn new(used: [bool; DIRECTIONS], rated: [bool; DIRECTIONS], stamps: Stamps) -> Self {
        Self {
            stamps,
            used,
            rated,
            ways: std::array::from_fn(|way| WayTally::new(used[way], rated[way], stamps)),
            clat_families: FamilyCounts::default(),
            sync: LatencyReading::default(),
            syncs_at_border: 0,
            depths: DepthCounts::default(),
            submits: BatchCounts::default(),
            completes: BatchCounts::default(),
            errors_passed: 0,
            verified_ios: 0,
            first_ns: 0,
            group_first_ns: 0,
            second: 0,
            in_flight: 0,
            in_flight_since_ns: 0,
            in_flight_ns: 0,
        }
    }

    /// Starts measuring at zero.
    pub(super) fn begin(&mut self, now: Ns, group_first_ns: Ns) {
        *self = Self::new(self.used, self.rated, self.stamps);
        self.first_ns = now;
        self.group_first_ns = group_first_ns;
        self.second = now.saturating_sub(group_first_ns) / NS_PER_S;
        self.in_flight_since_ns = now;
    }

    /// End of the current second of the group.
    pub(super) fn second_ends_ns(&self) -> Ns {
        self.group_first_ns + (self.second + 1) * NS_PER_S
    }

    /// Records that `ios` I/Os were prepared at `now` and are submitted in one call.
    #[inline]
    pub(super) fn submitted(&mut self, now: Ns, ios: u32) {
        self.flow(now);
        self.in_flight += ios;
        self.submits[batch_slot(ios)] += 1;
        self.depths[depth_slot(self.in_flight)] += u64::from(ios);
    }

    /// Records that a reaping call ended at `now` with this many I/Os, `counted` of them prepared while measuring.
    #[inline]
    pub(super) fn reaped(&mut self, now: Ns, ios: u32, counted: u32) {
        self.flow(now);
        self.in_flight -= counted;
        self.completes[batch_slot(ios)] += 1;
    }

    #[inline]
    fn flow(&mut self, now: Ns) {
        let since = now.saturating_sub(self.in_flight_since_ns);
        self.in_flight_ns += u128::from(self.in_flight) * u128::from(since);
        self.in_flight_since_ns = now;
    }

    /// Counts I/Os that completed at `now`.
    #[inline]
    pub(super) fn ended(&mut self, run: &Run, now: Ns) {
        let way = &mut self.ways[run.way.index()];
        way.ios += run.ios;
        way.bytes += run.bytes;
        if self.stamps.lat {
            let lat_ns = now - run.start_ns;
            way.second.record_n(lat_ns, run.ios);
            way.lat_sum_ns += lat_ns * run.ios;
        }
        // A trim is submitted and completed in one call.
        if self.stamps.slat && run.way != Way::Trim {
            way.slat.record_n(run.issue_ns - run.start_ns, run.ios);
        }
        if self.stamps.clat {
            way.clat.record_n(now - run.issue_ns, run.ios);
            self.clat_families.record_n(now - run.issue_ns, run.ios);
        }
    }

    /// Counts a completion that moved less than requested; the I/O continues.
    pub(super) fn short(&mut self, way: Way) {
        self.ways[way.index()].short_ios += 1;
    }

    /// Counts an I/O that was due at `due_ns` and completed at `now`.
    #[inline]
    pub(super) fn responded(&mut self, way: Way, due_ns: Ns, now: Ns) {
        if let Some((_, second)) = &mut self.ways[way.index()].response {
            second.record(now.saturating_sub(due_ns));
        }
    }

    /// Counts a sync from `start_ns` to `now`.
    pub(super) fn synced(&mut self, start_ns: Ns, now: Ns) {
        self.sync.record(now.saturating_sub(start_ns));
    }

    /// Bytes and I/Os of one direction so far.
    pub(super) fn moved(&self, way: Way) -> (u64, u64) {
        let way = &self.ways[way.index()];
        (way.bytes, way.ios)
    }

    /// Publishes the counters.
    #[inline]
    pub(super) fn publish(&self, card: &Card) {
        let mut lat_sum_ns = 0;
        for (index, way) in self.ways.iter().enumerate() {
            if self.used[index] {
                card.ios[index].store(way.ios, Ordering::Relaxed);
                card.bytes[index].store(way.bytes, Ordering::Relaxed);
                lat_sum_ns += way.lat_sum_ns;
            }
        }
        card.lat_sum_ns.store(lat_sum_ns, Ordering::Relaxed);
    }

    /// Hands over the current second and starts the one that contains `now`.
    pub(super) fn turn_second(&mut self, now: Ns, card: &Card) {
        let mut part = SecondPart { second: self.second, ..SecondPart::default() };
        for (index, way) in self.ways.iter_mut().enumerate() {
            part.ios[index] = way.ios - way.at_border.0;
            part.bytes[index] = way.bytes - way.at_border.1;
            way.at_border = (way.ios, way.bytes);
            if way.second.histogram.count() > 0 {
                part.lat[index] = way.second.histogram.clone();
                way.lat.merge(&way.second);
                way.second = LatencyReading::new();
            }
            if let Some((before, second)) = &mut way.response
                && second.histogram.count() > 0
            {
                part.response.get_or_insert_with(Histogram::default).merge(&second.histogram);
                before.merge(second);
                *second = LatencyReading::new();
            }
        }
        let syncs = self.sync.histogram.count();
        part.syncs = syncs - self.syncs_at_border;
        self.syncs_at_border = syncs;
        card.syncs.store(syncs, Ordering::Relaxed);
        self.second = now.saturating_sub(self.group_first_ns) / NS_PER_S;
        card.hand_second(part);
    }

    /// The counts up to `now`.
    pub(super) fn reading(&mut self, now: Ns) -> CloneReading {
        self.flow(now);
        let runtime_ns = now.saturating_sub(self.first_ns);
        let mut ways: [WayReading; DIRECTIONS] = std::array::from_fn(|way| self.ways[way].reading());
        for way in ways.iter_mut().filter(|way| way.ios > 0) {
            way.runtime_ns = runtime_ns;
        }
        CloneReading {
            ways,
            clat_families: self.clat_families,
            sync: self.sync.clone(),
            depths: self.depths,
            submits: self.submits,
            completes: self.completes,
            errors_passed: self.errors_passed,
            verified_ios: self.verified_ios,
            runtime_ns,
            in_flight_ns: self.in_flight_ns,
            ..CloneReading::default()
        }
    }
}
