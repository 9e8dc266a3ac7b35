//! Feeds the steady-state watch of each job once a second, and ends the job when it is steady.

use super::wave::Wave;
use crate::readings::SteadyReading;
use crate::steady::{SteadySample, SteadyWatch};
use assay_measure::clock::{NS_PER_S, Ns};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The watches of a wave.
#[derive(Debug, Default)]
pub(super) struct Steadiness {
    jobs: BTreeMap<usize, Watched>,
}

#[derive(Debug)]
struct Watched {
    watch: SteadyWatch,
    /// 0 until a clone of the job measures.
    since_ns: Ns,
    before: Sums,
}

/// I/Os, bytes and sum of latencies over all clones of a job.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    ios: u64,
    bytes: u64,
    lat_ns: u64,
}

impl Steadiness {
    pub(super) fn of(wave: &Wave<'_>) -> Self {
        let watched = wave.tasks.iter().filter_map(|task| {
            let watch = SteadyWatch::new(&task.options.pace)?;
            let watched = Watched { watch, since_ns: 0, before: Sums::default() };
            Some((task.job, watched))
        });
        Self { jobs: watched.collect() }
    }

    /// When the next second of any job ends.
    pub(super) fn due_ns(&self) -> Ns {
        let begun = self.jobs.values().filter(|job| job.since_ns > 0);
        begun.map(|job| job.since_ns + NS_PER_S).min().unwrap_or(Ns::MAX)
    }

    /// Processes the seconds that have passed.
    pub(super) fn tick(&mut self, wave: &Wave<'_>, now: Ns) {
        for (&job, watched) in &mut self.jobs {
            let (sums, first_ns, running) = sums(wave, job);
            if watched.since_ns == 0 {
                watched.since_ns = first_ns.unwrap_or(0);
            }
            let spent_ns = now.saturating_sub(watched.since_ns);
            if watched.since_ns == 0 || spent_ns < NS_PER_S || !running {
                continue;
            }
            let before = std::mem::replace(&mut watched.before, sums);
            watched.since_ns = now;
            let seconds = spent_ns as f64 / NS_PER_S as f64;
            let ios = sums.ios - before.ios;
            let sample = SteadySample {
                iops: ios as f64 / seconds,
                bytes_per_s: (sums.bytes - before.bytes) as f64 / seconds,
                lat_ns: (ios > 0).then(|| (sums.lat_ns - before.lat_ns) as f64 / ios as f64),
            };
            if watched.watch.second(sample) {
                let clones = wave.tasks.iter().filter(|task| task.job == job);
                clones.for_each(|task| wave.board.orders[task.index].end());
            }
        }
    }

    /// The steady-state reading of each watched job.
    pub(super) fn readings(&self) -> impl Iterator<Item = (usize, SteadyReading)> + '_ {
        let reading = |(&job, watched): (&usize, &Watched)| (job, watched.watch.reading());
        self.jobs.iter().map(reading)
    }
}

/// Sums over all clones of a job, when the first of them started to measure, and whether any still runs.
fn sums(wave: &Wave<'_>, job: usize) -> (Sums, Option<Ns>, bool) {
    let mut sums = Sums::default();
    let mut first_ns = None;
    let mut running = false;
    for task in wave.tasks.iter().filter(|task| task.job == job) {
        let card = &wave.board.cards[task.index];
        for way in 0..card.ios.len() {
            sums.ios += card.ios[way].load(Ordering::Relaxed);
            sums.bytes += card.bytes[way].load(Ordering::Relaxed);
        }
        sums.lat_ns += card.lat_sum_ns.load(Ordering::Relaxed);
        let first = card.first_ns.load(Ordering::Acquire);
        if first > 0 {
            first_ns = Some(first_ns.map_or(first, |ns: Ns| ns.min(first)));
        }
        running |= !card.has_ended();
    }
    (sums, first_ns, running)
}
