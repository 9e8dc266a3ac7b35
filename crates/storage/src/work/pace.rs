//! Decides when the next I/O is due, and whether the clone keeps up.
//!
//! The schedule consists of intended start times: the k-th I/O of a direction is due k/rate after the start, however
//! late the I/Os before it were. The clone catches up when late and never drains its requests in flight; the response
//! latency includes the delay that a stall causes to later I/Os.

use crate::readings::{DIRECTIONS, Way};
use crate::spec::PaceOptions;
use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::prng::{Purpose, Stream};

/// The schedule of one direction.
#[derive(Debug)]
struct Rate {
    per_s: u64,
    /// Whether the unit is bytes rather than I/Os.
    bytes: bool,
    /// I/Os or bytes queued.
    queued: u64,
    due_ns: Ns,
    /// With exponential gaps: the exact due time, ns.
    poisson: Option<f64>,
}

/// The schedules of a clone.
#[derive(Debug)]
pub(super) struct Pace {
    rates: [Option<Rate>; DIRECTIONS],
    base_ns: Ns,
    gaps: Stream,
}

impl Pace {
    pub(super) fn new(options: &PaceOptions, seed: u64, clone: u32) -> Self {
        let rate = |way: usize| {
            let by_ios = options.rate_iops[way].map(|n| (n, false));
            let (per_s, bytes) = by_ios.or(options.rate[way].map(|n| (n, true)))?;
            (per_s > 0).then_some(Rate {
                per_s,
                bytes,
                queued: 0,
                due_ns: 0,
                poisson: options.rate_poisson.then_some(0.0),
            })
        };
        Self { rates: std::array::from_fn(rate), base_ns: 0, gaps: Stream::new(seed, u64::from(clone), Purpose::Think) }
    }

    /// Directions with a rate.
    pub(super) fn rated(&self) -> [bool; DIRECTIONS] {
        std::array::from_fn(|way| self.rates[way].is_some())
    }

    /// Starts the schedule.
    pub(super) fn begin(&mut self, now: Ns) {
        self.base_ns = now;
        for rate in self.rates.iter_mut().flatten() {
            rate.due_ns = now;
        }
    }

    /// Removes think time from the schedule (`rate_ignore_thinktime`).
    pub(super) fn shift(&mut self, ns: Ns) {
        self.base_ns += ns;
        for rate in self.rates.iter_mut().flatten() {
            rate.due_ns += ns;
        }
    }

    /// When the next I/O of this direction is due; `None` without a rate.
    #[inline]
    pub(super) fn due(&self, way: Way) -> Option<Ns> {
        self.rates[way.index()].as_ref().map(|rate| rate.due_ns)
    }

    /// The direction that a mixed job must take to keep its rates; `None`: the mix decides.
    #[inline]
    pub(super) fn wanted(&self, now: Ns) -> Option<Way> {
        match (self.due(Way::Read), self.due(Way::Write)) {
            (Some(read), Some(write)) if read <= write => Some(Way::Read),
            (Some(_), Some(_)) => Some(Way::Write),
            (Some(read), None) => (read > now).then_some(Way::Write),
            (None, Some(write)) => (write > now).then_some(Way::Read),
            (None, None) => None,
        }
    }

    /// Records that an I/O of this direction was queued.
    #[inline]
    pub(super) fn queued(&mut self, way: Way, bytes: u32) {
        let Some(rate) = &mut self.rates[way.index()] else {
            return;
        };
        let step = if rate.bytes { u64::from(bytes) } else { 1 };
        rate.queued += step;
        rate.due_ns = match &mut rate.poisson {
            Some(at) => {
                let mean_ns = step as f64 * NS_PER_S as f64 / rate.per_s as f64;
                // 1 - u is in (0, 1], so its logarithm is finite.
                *at -= (1.0 - self.gaps.uniform_f64()).ln() * mean_ns;
                self.base_ns + *at as u64
            }
            None => {
                let ns = u128::from(rate.queued) * u128::from(NS_PER_S) / u128::from(rate.per_s);
                self.base_ns + u64::try_from(ns).unwrap_or(u64::MAX / 2)
            }
        };
    }
}

/// `rate_min`, `rate_iops_min`: checked once a cycle.
#[derive(Debug)]
pub(super) struct Minimum {
    bytes_per_s: [Option<u64>; DIRECTIONS],
    ios_per_s: [Option<u64>; DIRECTIONS],
    cycle_ns: Ns,
    since_ns: Ns,
    before: [(u64, u64); DIRECTIONS],
}

impl Minimum {
    /// `None` if no minimum is requested.
    pub(super) fn new(options: &PaceOptions) -> Option<Self> {
        let any = [options.rate_min, options.rate_iops_min].concat().iter().any(Option::is_some);
        any.then(|| Self {
            bytes_per_s: options.rate_min,
            ios_per_s: options.rate_iops_min,
            cycle_ns: options.rate_cycle_ns.max(1_000_000),
            since_ns: 0,
            before: [(0, 0); DIRECTIONS],
        })
    }

    pub(super) fn begin(&mut self, now: Ns) {
        self.since_ns = now;
        self.before = [(0, 0); DIRECTIONS];
    }

    /// When the next check is due.
    pub(super) fn due_ns(&self) -> Ns {
        self.since_ns + self.cycle_ns
    }

    /// Checks the rates since the last time; `moved` returns bytes and I/Os of a direction.
    pub(super) fn missed(&mut self, now: Ns, moved: impl Fn(Way) -> (u64, u64)) -> Option<String> {
        let seconds = now.saturating_sub(self.since_ns) as f64 / NS_PER_S as f64;
        self.since_ns = now;
        let mut missed = None;
        for way in Way::ALL {
            let (bytes, ios) = moved(way);
            let before = std::mem::replace(&mut self.before[way.index()], (bytes, ios));
            // A single minimum applies to all directions; a direction that the job does not use cannot miss it.
            if ios == 0 {
                continue;
            }
            let got = [
                (self.bytes_per_s[way.index()], bytes - before.0, "bytes/s", "rate_min"),
                (self.ios_per_s[way.index()], ios - before.1, "IOPS", "rate_iops_min"),
            ];
            for (wanted, done, unit, option) in got {
                let rate = done as f64 / seconds;
                if let Some(wanted) = wanted.filter(|&wanted| rate < wanted as f64) {
                    missed = Some(format!("{} at {rate:.0} {unit}, below {option}={wanted}", way.name()));
                }
            }
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(options: &PaceOptions) -> Pace {
        let mut pace = Pace::new(options, 1, 0);
        pace.begin(1000);
        pace
    }

    #[test]
    fn the_kth_io_is_due_k_over_the_rate_after_the_start() {
        let mut pace = pace(&PaceOptions { rate_iops: [Some(3), None, None], ..PaceOptions::default() });
        let due: Vec<Ns> = (0..4)
            .map(|_| {
                let due = pace.due(Way::Read).unwrap();
                pace.queued(Way::Read, 4096);
                due
            })
            .collect();
        assert_eq!(due, [1000, 333_334_333, 666_667_666, 1_000_001_000]);
        assert_eq!(pace.due(Way::Write), None);
    }

    #[test]
    fn the_direction_that_is_due_first_comes_first() {
        let mut pace = pace(&PaceOptions { rate_iops: [Some(300), Some(100), None], ..PaceOptions::default() });
        let mut taken = [0; 2];
        for _ in 0..400 {
            let way = pace.wanted(0).unwrap();
            taken[way.index()] += 1;
            pace.queued(way, 4096);
        }
        assert_eq!(taken, [300, 100]);
    }

    #[test]
    fn a_direction_without_a_rate_fills_the_gaps_of_the_other() {
        let mut pace = pace(&PaceOptions { rate_iops: [Some(10), None, None], ..PaceOptions::default() });
        assert_eq!(pace.wanted(1000), None);
        pace.queued(Way::Read, 4096);
        assert_eq!(pace.wanted(1000), Some(Way::Write));
        assert_eq!(pace.wanted(NS_PER_S), None);
    }

    #[test]
    fn a_rate_of_bytes_counts_bytes() {
        let mut pace = pace(&PaceOptions { rate: [None, Some(8192), None], ..PaceOptions::default() });
        pace.queued(Way::Write, 4096);
        pace.queued(Way::Write, 2048);
        assert_eq!(pace.due(Way::Write), Some(1000 + 750_000_000));
        assert_eq!(pace.rated(), [false, true, false]);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_their_law() {
        let mut pace =
            pace(&PaceOptions { rate_iops: [Some(1000), None, None], rate_poisson: true, ..PaceOptions::default() });
        let mut gaps = Vec::new();
        let mut before = pace.due(Way::Read).unwrap();
        for _ in 0..20_000 {
            pace.queued(Way::Read, 1);
            let due = pace.due(Way::Read).unwrap();
            gaps.push((due - before) as f64);
            before = due;
        }
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_minimum_is_judged_by_the_cycle() {
        let mut minimum =
            Minimum::new(&PaceOptions { rate_iops_min: [Some(100), None, None], ..PaceOptions::default() }).unwrap();
        minimum.begin(0);
        assert_eq!(minimum.due_ns(), NS_PER_S);
        assert_eq!(minimum.missed(NS_PER_S, |_| (0, 100)), None);
        let missed = minimum.missed(2 * NS_PER_S, |_| (0, 199)).unwrap();
        assert_eq!(missed, "read at 99 IOPS, below rate_iops_min=100");
        assert!(Minimum::new(&PaceOptions::default()).is_none());
    }

    #[test]
    fn a_direction_that_is_not_gone_misses_no_minimum() {
        let mut minimum =
            Minimum::new(&PaceOptions { rate_iops_min: [Some(100); DIRECTIONS], ..PaceOptions::default() }).unwrap();
        minimum.begin(0);
        let only_reads = |way: Way| match way {
            Way::Read => (100 * 4096, 100),
            _ => (0, 0),
        };
        assert_eq!(minimum.missed(NS_PER_S, only_reads), None);
    }
}
