//! One entry of fio's report: a clone, or with `group_reporting` the combined clones of a group.

use super::number;
use crate::readings::{
    BatchCounts, CloneReading, DIRECTIONS, DepthCounts, FAMILIES, FamilyCounts, JobLabel, JobReading, LatencyReading,
    Samples, StorageReadings, Way, WayReading, family_of,
};
use assay_measure::histogram::slot_low_and_width_ns;

/// One direction of an entry, summed over its clones.
#[derive(Clone, Debug, Default)]
pub(super) struct WayEntry {
    pub(super) bytes: u64,
    pub(super) ios: u64,
    pub(super) short_ios: u64,
    /// Runtime of its longest clone, whole ms.
    pub(super) runtime_ms: u64,
    pub(super) slat: LatencyReading,
    pub(super) clat: LatencyReading,
    pub(super) lat: LatencyReading,
    pub(super) bw: SampleSum,
    pub(super) iops: SampleSum,
}

/// Samples of several clones, combined as in fio: it adds up minima, maxima, means and squares although they were never
/// observed at the same time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampleSum {
    pub(super) count: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    squares: f64,
}

impl SampleSum {
    fn add(&mut self, samples: &Samples) {
        if samples.count == 0 {
            return;
        }
        self.count += samples.count;
        self.min += samples.min.max(0.0) as u64;
        self.max += samples.max.max(0.0) as u64;
        self.mean += samples.mean;
        self.squares += samples.deviation_squares;
    }

    pub(super) fn stddev(&self) -> f64 {
        match self.count {
            0 | 1 => 0.0,
            n => (self.squares / (n - 1) as f64).sqrt(),
        }
    }
}

/// The content of one block of the report.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The job of the first clone: fio names a grouped entry after it.
    pub(super) job: &'a JobReading,
    pub(super) clones: u64,
    pub(super) pid: u32,
    /// The first error of a clone: errno and text.
    pub(super) error: (i32, Option<&'a str>),
    pub(super) errors_passed: u64,
    pub(super) ways: [WayEntry; DIRECTIONS],
    pub(super) sync: LatencyReading,
    pub(super) depths: DepthCounts,
    pub(super) submits: BatchCounts,
    pub(super) completes: BatchCounts,
    pub(super) families: FamilyCounts,
    /// Sum over clones, ms.
    pub(super) job_runtime_ms: u64,
    runtime_ns: u64,
    user_ns: u64,
    system_ns: u64,
    pub(super) context_switches: u64,
    pub(super) major_faults: u64,
    pub(super) minor_faults: u64,
    /// Depth of the last clone, as in fio.
    depth: u32,
}

/// fio's output on `latency_target`; without one, its defaults and the requested depth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) target_ns: u64,
    pub(super) window_us: u64,
    pub(super) percentile: f64,
    pub(super) depth: u32,
}

impl<'a> Entry<'a> {
    fn new(job: &'a JobReading, pid: u32) -> Self {
        Self {
            job,
            pid,
            clones: 0,
            error: (0, None),
            errors_passed: 0,
            ways: Default::default(),
            sync: LatencyReading::default(),
            depths: Default::default(),
            submits: Default::default(),
            completes: Default::default(),
            families: FamilyCounts::default(),
            job_runtime_ms: 0,
            runtime_ns: 0,
            user_ns: 0,
            system_ns: 0,
            context_switches: 0,
            depth: job.label.iodepth,
            major_faults: 0,
            minor_faults: 0,
        }
    }

    pub(super) fn label(&self) -> &'a JobLabel {
        &self.job.label
    }

    pub(super) fn way(&self, way: Way) -> &WayEntry {
        &self.ways[way.index()]
    }

    /// Number of I/Os of all directions.
    pub(super) fn ios(&self) -> u64 {
        self.ways.iter().map(|way| way.ios).sum()
    }

    /// Percentage of its clones' time in user mode: an average over clones.
    pub(super) fn user_percent(&self) -> f64 {
        number::percent(self.user_ns, self.runtime_ns)
    }

    /// Percentage of its clones' time in the kernel: an average over clones.
    pub(super) fn system_percent(&self) -> f64 {
        number::percent(self.system_ns, self.runtime_ns)
    }

    fn add(&mut self, clone: &'a CloneReading) {
        self.clones += 1;
        if self.error.0 == 0 {
            self.error = (clone.error, clone.error_text.as_deref());
        }
        self.errors_passed += clone.errors_passed;
        for (mine, way) in self.ways.iter_mut().zip(&clone.ways) {
            mine.add(way);
        }
        self.sync.merge(&clone.sync);
        add_counts(&mut self.depths, &clone.depths);
        add_counts(&mut self.submits, &clone.submits);
        add_counts(&mut self.completes, &clone.completes);
        self.families.merge(&families_of(clone));
        self.job_runtime_ms += clone.runtime_ns / 1_000_000;
        self.runtime_ns += clone.runtime_ns;
        self.user_ns += clone.user_ns;
        self.system_ns += clone.system_ns;
        self.context_switches += clone.context_switches;
        self.depth = clone.search.map_or(self.depth, |search| search.depth);
        self.major_faults += clone.major_faults;
        self.minor_faults += clone.minor_faults;
    }
}

impl Entry<'_> {
    pub(super) fn goal(&self) -> Goal {
        let goal = self.label().latency_goal;
        Goal {
            target_ns: goal.map_or(0, |goal| goal.target_ns),
            window_us: goal.map_or(0, |goal| goal.window_ns / 1000),
            percentile: goal.map_or(100.0, |goal| goal.percentile),
            depth: self.depth,
        }
    }
}

impl WayEntry {
    fn add(&mut self, way: &WayReading) {
        self.bytes += way.bytes;
        self.ios += way.ios;
        self.short_ios += way.short_ios;
        self.runtime_ms = self.runtime_ms.max(runtime_ms(way));
        self.slat.merge(&way.slat);
        self.clat.merge(&way.clat);
        self.lat.merge(&way.lat);
        self.bw.add(&way.bw);
        self.iops.add(&way.iops);
    }

    /// Whole bytes per second.
    pub(super) fn bytes_per_s(&self) -> u64 {
        number::rate(self.bytes, self.runtime_ms)
    }
}

/// Whole ms; at least 1 if any data moved.
fn runtime_ms(way: &WayReading) -> u64 {
    (way.runtime_ns / 1_000_000).max(u64::from(way.ios > 0))
}

fn add_counts<const N: usize>(mine: &mut [u64; N], other: &[u64; N]) {
    for (mine, other) in mine.iter_mut().zip(other) {
        *mine += other;
    }
}

/// The clone's own exact counts or, if it kept none, the buckets of its histograms, distributed in proportion to the
/// ranges they overlap.
fn families_of(clone: &CloneReading) -> FamilyCounts {
    if clone.clat_families.total() > 0 {
        return clone.clat_families;
    }
    let mut counts = FamilyCounts::default();
    for way in &clone.ways {
        for (slot, n) in way.clat.histogram.sparse() {
            let (low, width) = slot_low_and_width_ns(slot as usize);
            deal(&mut counts, low, width, n);
        }
    }
    counts
}

fn deal(counts: &mut FamilyCounts, low: u64, width: u64, n: u64) {
    let (first, last) = (family_of(low), family_of(low + (width - 1)));
    let mut left = n;
    for (family, &bound) in
        crate::readings::FAMILY_BOUNDS_NS.iter().enumerate().take(last.min(FAMILIES - 1)).skip(first)
    {
        let below = u128::from(n) * u128::from(bound - low) / u128::from(width);
        let here = (below as u64).saturating_sub(n - left);
        counts.counts[family] += here;
        left -= here;
    }
    counts.counts[last] += left;
}

/// The entries of a report in order. A clone with `group_reporting` joins the entry before it if that is of the same
/// group, whatever that entry's own setting, as in fio.
pub(super) fn entries(readings: &StorageReadings) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for clone in &readings.clones {
        let Some(job) = readings.jobs.get(clone.job) else {
            continue;
        };
        let joins = job.label.group_reporting && (entries.last()).is_some_and(|last| last.job.group == job.group);
        if !joins {
            entries.push(Entry::new(job, clone.pid));
        }
        if let Some(entry) = entries.last_mut() {
            entry.add(clone);
        }
    }
    entries
}

/// One direction of a report group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupWay {
    pub(super) bytes: u64,
    /// Shortest and longest runtime of its entries, ms; 0 if the direction was not used.
    pub(super) runtime_ms: (u64, u64),
    /// Lowest and highest bytes per second of its entries.
    pub(super) bytes_per_s: (u64, u64),
}

impl GroupWay {
    /// Total bytes divided by the longest runtime, bytes per second.
    pub(super) fn total_bytes_per_s(&self) -> u64 {
        number::rate(self.bytes, self.runtime_ms.1)
    }

    /// A mean of `kib_per_s` as a percentage of the group's bandwidth, at most 100. fio uses the whole KiB of the mean
    /// here.
    pub(super) fn percent_of(&self, kib_per_s: f64) -> f64 {
        capped_percent(kib_per_s.floor(), self.total_bytes_per_s() as f64 / 1024.0)
    }

    /// The same for terse output, where fio uses the whole KiB of the bandwidth instead.
    pub(super) fn terse_percent_of(&self, kib_per_s: f64) -> f64 {
        capped_percent(kib_per_s, (self.total_bytes_per_s() / 1024) as f64)
    }
}

fn capped_percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 {
        return 0.0;
    }
    (part * 100.0 / whole).min(100.0)
}

/// Sums up one direction of a report group.
pub(super) fn group_way(entries: &[Entry<'_>], group: u32, way: Way) -> GroupWay {
    let mut total = GroupWay::default();
    let of_group = entries.iter().filter(|entry| entry.job.group == group);
    for entry in of_group.map(|entry| entry.way(way)) {
        if entry.runtime_ms == 0 {
            continue;
        }
        let rate = entry.bytes_per_s();
        let first = total.runtime_ms.1 == 0;
        let least = |least: u64, value: u64| if first { value } else { least.min(value) };
        total.runtime_ms = (least(total.runtime_ms.0, entry.runtime_ms), total.runtime_ms.1.max(entry.runtime_ms));
        total.bytes_per_s = (least(total.bytes_per_s.0, rate), total.bytes_per_s.1.max(rate));
        total.bytes += entry.bytes;
    }
    total
}

/// Numbers of the groups, ascending.
pub(super) fn groups(readings: &StorageReadings) -> Vec<u32> {
    let mut groups: Vec<u32> = readings.jobs.iter().map(|job| job.group).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}
