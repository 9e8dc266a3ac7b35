//! The monitor runs beside the clones: it samples their rates, collects the seconds of their groups and the devices'
//! counters, gives orders to end, and reports progress and intermediate readings. It only reads what clones publish.

use super::board::{Card, SecondPart};
use super::live::Live;
use super::steadiness::Steadiness;
use super::wave::Wave;
use super::worker::CloneTask;
use crate::readings::{CloneReading, DIRECTIONS, Samples, SecondReading, SteadyReading};
use crate::spec::PaceOptions;
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_measure::snapshot::{DiskReading, HostReading};
use assay_run::host::text;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum sleep of the monitor.
const TICK_NS: Ns = 50_000_000;
/// How long to wait for copies of readings before using the last ones.
const COPY_PATIENCE_NS: Ns = 500_000_000;

/// Rate samples of one clone.
#[derive(Clone, Debug, Default)]
pub(super) struct CloneSamples {
    pub(super) bw: [Samples; DIRECTIONS],
    pub(super) iops: [Samples; DIRECTIONS],
}

/// The next sample of one quantity of one clone.
#[derive(Clone, Copy, Debug, Default)]
struct Sampling {
    every_ns: Ns,
    /// 0 until the clone measures.
    since_ns: Ns,
    before: [u64; DIRECTIONS],
}

impl Sampling {
    fn every(ns: Ns) -> Self {
        Self { every_ns: ns.max(1_000_000), ..Self::default() }
    }

    /// Takes a sample if one is due; returns the rates per second of each direction that moved.
    fn take(&mut self, first_ns: Ns, now: Ns, counts: [u64; DIRECTIONS]) -> Option<[f64; DIRECTIONS]> {
        if self.since_ns == 0 {
            self.since_ns = first_ns;
        }
        let spent_ns = now.saturating_sub(self.since_ns);
        if spent_ns < self.every_ns {
            return None;
        }
        let seconds = spent_ns as f64 / NS_PER_S as f64;
        let rates = std::array::from_fn(|way| counts[way].saturating_sub(self.before[way]) as f64 / seconds);
        // The delay of a late sample is not added to the next interval.
        self.since_ns = now;
        self.before = counts;
        Some(rates)
    }

    fn due_ns(&self) -> Ns {
        match self.since_ns {
            0 => Ns::MAX,
            since => since + self.every_ns,
        }
    }
}

/// The figures that the clones of all waves have left so far.
#[derive(Debug)]
pub(super) struct Monitor<'a> {
    clock: Clock,
    stop: &'a Stop,
    /// Kernel names of the devices below the files.
    disks: Vec<String>,
    seconds: BTreeMap<(u32, u64), SecondReading>,
    /// By job and clone.
    samples: BTreeMap<(usize, u32), CloneSamples>,
    /// By job.
    steady: BTreeMap<usize, SteadyReading>,
    copies: u32,
    next_live_ns: Ns,
    next_status_ns: Ns,
    status_every_ns: Option<Ns>,
    live: Live,
}

/// The seconds of a group seen so far.
#[derive(Clone, Debug, Default)]
struct GroupTicks {
    first_ns: Ns,
    seconds: u64,
    disks: Vec<DiskReading>,
}

impl<'a> Monitor<'a> {
    pub(super) fn new(stop: &'a Stop, disks: Vec<String>, status_every_ns: Option<Ns>, live: Live) -> Self {
        Self {
            clock: Clock::real(),
            stop,
            disks,
            seconds: BTreeMap::new(),
            samples: BTreeMap::new(),
            steady: BTreeMap::new(),
            copies: 0,
            next_live_ns: 0,
            next_status_ns: 0,
            status_every_ns,
            live,
        }
    }

    /// Watches a wave until all of its clones have ended. Calls `status` with the clones' readings at the requested
    /// interval, if any.
    pub(super) fn watch(&mut self, wave: &Wave<'_>, steps: &dyn Steps, status: &dyn Fn(&Self, Vec<CloneReading>)) {
        let clones = wave.tasks.len();
        let mut samplings: Vec<[Sampling; 2]> = (0..clones)
            .map(|clone| {
                let measure = &wave.options(clone).measure;
                [measure.bw_average_ns, measure.iops_average_ns].map(Sampling::every)
            })
            .collect();
        let mut groups = vec![GroupTicks::default(); wave.groups.len()];
        let started = self.clock.now_ns();
        self.next_live_ns = self.next_live_ns.max(started + NS_PER_S);
        if self.next_status_ns == 0 {
            self.next_status_ns = started + self.status_every_ns.unwrap_or(Ns::MAX / 2);
        }
        let at_start = self.read_disks();
        let mut steadiness = Steadiness::of(wave);
        loop {
            let now = self.clock.now_ns();
            let due_ns = self.next_due(&samplings, &groups).min(steadiness.due_ns());
            let sleep_ns = due_ns.saturating_sub(now);
            let sleep = Duration::from_nanos(sleep_ns.clamp(100_000, TICK_NS));
            let ended = wave.board.wait_ended(clones, sleep);
            let now = self.clock.now_ns();
            self.sample(wave, &mut samplings, now);
            self.tick_groups(wave, &mut groups, &at_start, now);
            self.collect(wave);
            steadiness.tick(wave, now);
            self.steady.extend(steadiness.readings());
            give_orders(wave);
            if now >= self.next_live_ns {
                self.next_live_ns = now + NS_PER_S;
                steps.live(&self.live.now(wave, now));
            }
            if !ended && now >= self.next_status_ns {
                self.next_status_ns += self.status_every_ns.unwrap_or(Ns::MAX / 4);
                let copies = self.copies(wave);
                status(self, copies);
            }
            if ended {
                self.finish(wave, &groups);
                return;
            }
        }
    }

    fn next_due(&self, samplings: &[[Sampling; 2]], groups: &[GroupTicks]) -> Ns {
        let samples = samplings.iter().flatten().map(Sampling::due_ns).min();
        let seconds = groups
            .iter()
            .filter(|group| group.first_ns > 0)
            .map(|group| group.first_ns + (group.seconds + 1) * NS_PER_S)
            .min();
        [samples, seconds, Some(self.next_live_ns), Some(self.next_status_ns)].into_iter().flatten().min().unwrap_or(0)
    }

    /// Takes the samples of each clone that are due.
    fn sample(&mut self, wave: &Wave<'_>, samplings: &mut [[Sampling; 2]], now: Ns) {
        for (clone, samplings) in samplings.iter_mut().enumerate() {
            let card = &wave.board.cards[clone];
            let first_ns = card.first_ns.load(Ordering::Acquire);
            if first_ns == 0 {
                continue;
            }
            let ended_ns = card.ended_ns.load(Ordering::Acquire);
            let now = if ended_ns > 0 { now.min(ended_ns) } else { now };
            let counts = |counters: &[std::sync::atomic::AtomicU64; DIRECTIONS]| {
                std::array::from_fn(|way| counters[way].load(Ordering::Relaxed))
            };
            let task = &wave.tasks[clone];
            let samples = self.samples.entry((task.job, task.clone)).or_default();
            let measure = &wave.options(clone).measure;
            let bw = samplings[0].take(first_ns, now, counts(&card.bytes));
            let iops = samplings[1].take(first_ns, now, counts(&card.ios));
            // An interval without I/O in a direction yields no sample for it, as in fio; the seconds of the group show
            // such stalls.
            for (rates, samples, unit) in [(bw, &mut samples.bw, 1024.0), (iops, &mut samples.iops, 1.0)] {
                let moved = rates.into_iter().flatten().enumerate();
                for (way, rate) in moved.filter(|&(_, rate)| rate > 0.0 && !measure.no_bw) {
                    samples[way].take(rate / unit);
                }
            }
        }
    }

    /// Records the devices' activity in each finished second of each group.
    fn tick_groups(&mut self, wave: &Wave<'_>, groups: &mut [GroupTicks], at_start: &[DiskReading], now: Ns) {
        for (index, group) in groups.iter_mut().enumerate() {
            if group.first_ns == 0 {
                group.first_ns = wave.board.groups[index].load(Ordering::Acquire);
                if group.first_ns == 0 {
                    continue;
                }
                let ramped = wave.tasks.iter().any(|task| task.group == index && begins_late(&task.options.pace));
                group.disks = if ramped { self.read_disks() } else { at_start.to_vec() };
            }
            let passed = now.saturating_sub(group.first_ns) / NS_PER_S;
            let running =
                wave.tasks.iter().any(|task| task.group == index && !wave.board.cards[task.index].has_ended());
            if passed <= group.seconds || !running {
                continue;
            }
            let disks = self.read_disks();
            let second = self.second(wave.groups[index], passed - 1);
            second.disks = difference(&disks, &group.disks);
            group.seconds = passed;
            group.disks = disks;
        }
    }

    fn second(&mut self, group: u32, second: u64) -> &mut SecondReading {
        self.seconds.entry((group, second)).or_insert_with(|| SecondReading {
            group,
            end_ns: (second + 1) * NS_PER_S,
            length_ns: NS_PER_S,
            ..SecondReading::default()
        })
    }

    /// Collects the seconds that clones have handed over.
    fn collect(&mut self, wave: &Wave<'_>) {
        for task in wave.tasks {
            for part in wave.board.cards[task.index].take_seconds() {
                let second = self.second(wave.groups[task.group], part.second);
                add(second, &part);
            }
        }
    }

    /// At the end of the wave: adds the seconds without completions, and sets the length of the last one.
    fn finish(&mut self, wave: &Wave<'_>, groups: &[GroupTicks]) {
        for (index, group) in groups.iter().enumerate() {
            let ends = wave
                .tasks
                .iter()
                .filter(|task| task.group == index)
                .map(|task| wave.board.cards[task.index].ended_ns.load(Ordering::Acquire));
            let first_ns = wave.board.groups[index].load(Ordering::Acquire);
            let Some(end_ns) = ends.max().filter(|_| first_ns > 0) else {
                continue;
            };
            let number = wave.groups[index];
            let length_ns = end_ns.saturating_sub(first_ns);
            let last = length_ns / NS_PER_S;
            for second in 0..last {
                self.second(number, second);
            }
            let disks = difference(&self.read_disks(), &group.disks);
            let part = length_ns - last * NS_PER_S;
            let touched = self.seconds.contains_key(&(number, last));
            if touched || part > 0 {
                let second = self.second(number, last);
                second.length_ns = part.max(1);
                second.end_ns = last * NS_PER_S + part.max(1);
                second.disks = disks;
            }
        }
    }

    /// The current readings of the clones; clones that do not answer in time contribute their last one.
    fn copies(&mut self, wave: &Wave<'_>) -> Vec<CloneReading> {
        self.copies += 1;
        let number = self.copies;
        wave.board.orders.iter().for_each(|orders| orders.ask_copy(number));
        let until = self.clock.now_ns() + COPY_PATIENCE_NS;
        let answered = |clone: usize| {
            let card = &wave.board.cards[clone];
            card.has_ended() || card.first_ns.load(Ordering::Acquire) == 0 || card.copy().0 == number
        };
        while self.clock.now_ns() < until && !(0..wave.tasks.len()).all(answered) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let cards = wave.board.cards.iter().zip(wave.tasks);
        let reading = |(card, task): (&Card, &CloneTask<'_>)| {
            card.copy().1.unwrap_or_else(|| CloneReading {
                job: task.job,
                clone: task.clone,
                ..CloneReading::default()
            })
        };
        cards.map(reading).collect()
    }

    /// Adds the samples of a clone, numbered over all waves, to its reading.
    pub(super) fn add_samples(&self, reading: &mut CloneReading) {
        let Some(samples) = self.samples.get(&(reading.job, reading.clone)) else {
            return;
        };
        for (way, reading) in reading.ways.iter_mut().enumerate() {
            reading.bw = samples.bw[way];
            reading.iops = samples.iops[way];
        }
    }

    /// Steady state of a job, if it watches for it.
    pub(super) fn steady(&self, job: usize) -> Option<SteadyReading> {
        self.steady.get(&job).cloned()
    }

    /// All seconds so far, by group.
    pub(super) fn seconds(&self) -> Vec<SecondReading> {
        self.seconds.values().cloned().collect()
    }

    /// The current counters of the devices.
    pub(super) fn read_disks(&self) -> Vec<DiskReading> {
        if self.disks.is_empty() {
            return Vec::new();
        }
        text::diskstats(&std::fs::read_to_string("/proc/diskstats").unwrap_or_default())
            .into_iter()
            .filter(|disk| self.disks.contains(&disk.name))
            .collect()
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.requested()
    }

    /// Records the end of a wave for the progress line.
    pub(super) fn passed(&mut self, wave: &Wave<'_>) {
        self.live.passed(wave);
    }
}

/// Whether a clone's I/O before its first measured time is more than its first batch.
fn begins_late(pace: &PaceOptions) -> bool {
    pace.ramp_ns > 0 || pace.latency.target_ns.is_some() && !pace.latency.adapts
}

/// Ends clones because of others: `exitall`, `exitall_on_error`.
fn give_orders(wave: &Wave<'_>) {
    let ends_all = wave.tasks.iter().any(|task| {
        let card = &wave.board.cards[task.index];
        let pace = &task.options.pace;
        let failed = card.failed.load(Ordering::Acquire);
        card.has_ended() && (pace.exit_all || pace.exit_all_on_error && failed)
    });
    if ends_all {
        wave.board.end_all();
    }
}

fn add(second: &mut SecondReading, part: &SecondPart) {
    for way in 0..DIRECTIONS {
        second.ios[way] += part.ios[way];
        second.bytes[way] += part.bytes[way];
        second.lat[way].merge(&part.lat[way]);
    }
    if let Some(response) = &part.response {
        second.response.get_or_insert_default().merge(response);
    }
    second.syncs += part.syncs;
}

/// The devices' activity between two readings.
pub(super) fn difference(now: &[DiskReading], before: &[DiskReading]) -> Vec<DiskReading> {
    let host = |disks: &[DiskReading]| HostReading { disks: disks.to_vec(), ..HostReading::default() };
    host(now).difference(&host(before)).disks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_rates_over_the_time_that_passed() {
        let mut sampling = Sampling::every(500_000_000);
        assert_eq!(sampling.due_ns(), Ns::MAX);
        assert_eq!(sampling.take(1000, 400_000_000, [5, 0, 0]), None);
        let rates = sampling.take(1000, 500_001_000, [100, 0, 0]).unwrap();
        assert_eq!(rates, [200.0, 0.0, 0.0]);
        assert_eq!(sampling.due_ns(), 1_000_001_000);
        // A late sample is a rate over its actual, longer interval.
        let rates = sampling.take(1000, 1_500_001_000, [600, 50, 0]).unwrap();
        assert_eq!(rates, [500.0, 50.0, 0.0]);
    }

    #[test]
    fn parts_of_a_second_add_up() {
        let mut second = SecondReading::default();
        let part = SecondPart {
            ios: [1, 2, 0],
            bytes: [10, 20, 0],
            syncs: 3,
            response: Some(assay_measure::histogram::Histogram::default()),
            ..SecondPart::default()
        };
        add(&mut second, &part);
        add(&mut second, &part);
        assert_eq!((second.ios, second.bytes, second.syncs), ([2, 4, 0], [20, 40, 0], 6));
        assert!(second.response.is_some());
    }
}
