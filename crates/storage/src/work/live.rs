//! The state of a run for the progress line: states, rates, time left.

use super::wave::Wave;
use crate::readings::{DIRECTIONS, StorageLive, Way};
use crate::spec::{Amount, JobOptions};
use assay_measure::clock::{NS_PER_S, Ns};
use std::sync::atomic::Ordering;

/// What the progress line must know about earlier and later waves.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// One letter for each clone, over all waves.
    states: Vec<u8>,
    /// Expected duration of each wave, if its options determine it.
    expected_ns: Vec<Option<Ns>>,
    wave: usize,
    spent_ns: Ns,
    last_ns: Ns,
    last: [(u64, u64); DIRECTIONS],
}

impl Live {
    pub(super) fn new(clones: usize, expected_ns: Vec<Option<Ns>>) -> Self {
        Self { states: vec![b'P'; clones], expected_ns, ..Self::default() }
    }

    /// Records the end of a wave.
    pub(super) fn passed(&mut self, wave: &Wave<'_>) {
        for task in wave.tasks {
            self.states[wave.first_clone + task.index] = b'_';
        }
        self.spent_ns += self.expected_ns.get(self.wave).copied().flatten().unwrap_or(0);
        self.wave += 1;
        self.last_ns = 0;
        self.last = Default::default();
    }

    pub(super) fn now(&mut self, wave: &Wave<'_>, now: Ns) -> StorageLive {
        let mut moved = [(0_u64, 0_u64); DIRECTIONS];
        let mut goes = [false; DIRECTIONS];
        let (mut running, mut files, mut passed_ns) = (0, 0, 0);
        let mut left_ns = Some(0);
        let mut done = 1.0_f64;
        for task in wave.tasks {
            let card = &wave.board.cards[task.index];
            self.states[wave.first_clone + task.index] = card.state.load(Ordering::Relaxed);
            for way in Way::ALL {
                let index = way.index();
                goes[index] |= task.options.pattern.mode.goes(way);
                moved[index].0 += card.bytes[index].load(Ordering::Relaxed);
                moved[index].1 += card.ios[index].load(Ordering::Relaxed);
            }
            if card.has_ended() {
                continue;
            }
            running += 1;
            files += task.regions.len() as u32;
            let elapsed_ns = now.saturating_sub(card.started_ns.load(Ordering::Relaxed).max(1));
            let left = left_of(task.options, region_bytes(task), elapsed_ns, card.moved.load(Ordering::Relaxed));
            passed_ns = elapsed_ns.max(passed_ns);
            done = done.min(left.map_or(0.0, |left| share(elapsed_ns, left)));
            left_ns = left_ns.zip(left).map(|(all, left)| left.max(all));
        }
        let rates = self.rates(moved, goes, now);
        let later: Option<Ns> = self.expected_ns.iter().skip(self.wave + 1).copied().sum();
        let left_ns = left_ns.zip(later).map(|(left, later)| left + later);
        StorageLive {
            states: String::from_utf8_lossy(&self.states).into_owned(),
            running,
            files,
            done: left_ns.map(|left| match self.expected_ns.len() {
                1 => done,
                _ => share(self.spent_ns + passed_ns, left),
            }),
            eta_s: left_ns.map(|left| left.div_ceil(NS_PER_S)),
            bytes_per_s: rates.map(|rate| rate.map(|(bytes, _)| bytes)),
            ios_per_s: rates.map(|rate| rate.map(|(_, ios)| ios)),
        }
    }

    /// Bytes and I/Os per second since the last call, for the directions in use.
    fn rates(
        &mut self,
        moved: [(u64, u64); DIRECTIONS],
        goes: [bool; DIRECTIONS],
        now: Ns,
    ) -> [Option<(f64, f64)>; DIRECTIONS] {
        let since_ns = match self.last_ns {
            0 => NS_PER_S,
            last => now.saturating_sub(last).max(1),
        };
        let before = std::mem::replace(&mut self.last, moved);
        self.last_ns = now;
        let seconds = since_ns as f64 / NS_PER_S as f64;
        std::array::from_fn(|way| {
            let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            goes[way].then(|| (per_s(moved[way].0, before[way].0), per_s(moved[way].1, before[way].1)))
        })
    }
}

fn share(done_ns: Ns, left_ns: Ns) -> f64 {
    match done_ns + left_ns {
        0 => 1.0,
        all => done_ns as f64 / all as f64,
    }
}

fn region_bytes(task: &super::worker::CloneTask<'_>) -> u64 {
    task.regions.iter().map(|region| region.bytes).sum()
}

/// How long a clone with these options still needs; `None` while this is unknown.
fn left_of(options: &JobOptions, region_bytes: u64, elapsed_ns: Ns, moved: u64) -> Option<Ns> {
    let pace = &options.pace;
    let by_time = pace.runtime_ns.map(|ns| (ns + pace.ramp_ns).saturating_sub(elapsed_ns));
    if pace.time_based && by_time.is_some() {
        return by_time;
    }
    let total = amount_bytes(options, region_bytes);
    let by_amount = (moved > 0).then(|| {
        let left = total.saturating_sub(moved);
        (u128::from(elapsed_ns) * u128::from(left) / u128::from(moved)) as Ns
    });
    match (by_time, by_amount) {
        (Some(time), Some(amount)) => Some(time.min(amount)),
        (time, amount) => time.or(amount),
    }
}

/// Total bytes that a clone moves, unless its time ends first.
pub(super) fn amount_bytes(options: &JobOptions, region_bytes: u64) -> u64 {
    let pattern = &options.pattern;
    let once = match pattern.io_size {
        Some(Amount::Bytes(bytes)) => bytes,
        Some(Amount::Percent(percent)) => region_bytes / 100 * u64::from(percent),
        None => region_bytes,
    };
    // Blocks that are trimmed and written count twice.
    let times = 1 + u64::from(pattern.mode.trims_and_writes());
    let all = once.saturating_mul(pattern.loops.max(1)).saturating_mul(times);
    match pattern.number_ios {
        Some(ios) => all.min(ios.saturating_mul(times * u64::from(super::thread::most_block(options)))),
        None => all,
    }
}

/// The duration of a job, if its options determine it.
pub(super) fn expected_ns(options: &JobOptions) -> Option<Ns> {
    let pace = &options.pace;
    pace.runtime_ns.map(|ns| ns + pace.ramp_ns + pace.start_delay_ns.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_the_nearer_of_time_and_amount() {
        let mut options = JobOptions::default();
        options.pace.runtime_ns = Some(10 * NS_PER_S);
        let left = |options: &JobOptions, moved| left_of(options, 1000, 2 * NS_PER_S, moved);
        assert_eq!(left(&options, 0), Some(8 * NS_PER_S));
        assert_eq!(left(&options, 500), Some(2 * NS_PER_S));
        options.pace.time_based = true;
        assert_eq!(left(&options, 500), Some(8 * NS_PER_S));
        options.pace = crate::spec::PaceOptions::default();
        assert_eq!(left(&options, 0), None);
        assert_eq!(left(&options, 250), Some(6 * NS_PER_S));
    }

    #[test]
    fn loops_and_counts_change_the_amount() {
        let mut options = JobOptions::default();
        options.pattern.loops = 3;
        assert_eq!(amount_bytes(&options, 1 << 20), 3 << 20);
        options.pattern.number_ios = Some(10);
        assert_eq!(amount_bytes(&options, 1 << 20), 40_960);
        options.pattern.io_size = Some(Amount::Bytes(8192));
        options.pattern.loops = 1;
        assert_eq!(amount_bytes(&options, 1 << 20), 8192);
    }
}
