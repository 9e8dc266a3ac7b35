//! Steady state: decides whether the last seconds are alike enough to end a job.
//!
//! Pure arithmetic over one sample per second, as fio documents `steadystate`. The window is the last
//! `steadystate_duration` seconds. The criterion is the largest deviation of a second from the mean of the window, or
//! the slope of a least-squares line through it, per second. The limit is absolute or a percentage of the mean. An
//! absolute limit has the unit of the samples: I/Os per second, bytes per second, nanoseconds. The work loop feeds it;
//! preconditioning uses the same arithmetic.

use super::spec::{PaceOptions, SteadyMetric, SteadyOptions};
use crate::readings::SteadyReading;
use assay_measure::steady::{Fit, ROUNDS, Window};
use std::collections::VecDeque;

/// The work of all clones of a job in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SteadySample {
    /// I/Os completed per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency of the completed I/Os, ns; `None` if there were none.
    pub lat_ns: Option<f64>,
}

/// Watches a job for its steady state.
#[derive(Clone, Debug)]
pub struct SteadyWatch {
    steady: SteadyOptions,
    duration_s: u64,
    ramp_s: u64,
    /// Number of ramp samples still to come.
    ramp_left: u64,
    window: VecDeque<SteadySample>,
    attained: bool,
}

impl SteadyWatch {
    /// The watch that a job requests; `None` without `steadystate` or with a window of 0 s, which fio treats as none.
    #[must_use]
    pub fn new(pace: &PaceOptions) -> Option<Self> {
        let steady = pace.steady.clone()?;
        let seconds = |ns: u64| ns.div_ceil(1_000_000_000);
        let duration_s = seconds(pace.steady_duration_ns);
        if duration_s == 0 {
            return None;
        }
        let ramp_s = seconds(pace.steady_ramp_ns);
        Some(Self { steady, duration_s, ramp_s, ramp_left: ramp_s, window: VecDeque::new(), attained: false })
    }

    /// Takes the sample of one whole second after the job's own ramp. Returns true, which ends the job, once the
    /// criterion is met, and from then on.
    pub fn second(&mut self, sample: SteadySample) -> bool {
        if self.attained {
            return true;
        }
        if self.ramp_left > 0 {
            self.ramp_left -= 1;
            return false;
        }
        if self.window.len() as u64 == self.duration_s {
            self.window.pop_front();
        }
        self.window.push_back(sample);
        self.attained = self.is_full() && self.judge().is_some_and(|met| met);
        self.attained
    }

    /// The current state of the watch.
    #[must_use]
    pub fn reading(&self) -> SteadyReading {
        let values = self.values();
        let fit = values.as_deref().and_then(Fit::of);
        SteadyReading {
            criterion: self.steady.text.clone(),
            duration_s: self.duration_s,
            ramp_s: self.ramp_s,
            attained: self.attained,
            last: fit.and_then(|fit| self.criterion(fit)),
            slope: fit.map(|fit| fit.slope),
            deviation_pct: fit.and_then(|fit| percent(fit.deviation, fit.mean)),
            iops: self.each(|sample| sample.iops.round() as u64),
            bw_kib_per_s: self.each(|sample| (sample.bytes_per_s / 1024.0).round() as u64),
            lat_ns: self.each(|sample| sample.lat_ns.unwrap_or(0.0)),
        }
    }

    fn each<T>(&self, of: impl Fn(&SteadySample) -> T) -> Vec<T> {
        self.window.iter().map(of).collect()
    }

    fn is_full(&self) -> bool {
        self.window.len() as u64 == self.duration_s
    }

    /// The watched quantity of each second; `None` if a second has none, which cannot be steady.
    fn values(&self) -> Option<Vec<f64>> {
        self.window
            .iter()
            .map(|sample| match self.steady.metric {
                SteadyMetric::Iops => Some(sample.iops),
                SteadyMetric::Bandwidth => Some(sample.bytes_per_s),
                SteadyMetric::Latency => sample.lat_ns,
            })
            .collect()
    }

    /// The criterion in the unit of the limit; `None` for a percentage of zero.
    fn criterion(&self, fit: Fit) -> Option<f64> {
        let value = if self.steady.slope { fit.slope } else { fit.deviation };
        if self.steady.percent { percent(value, fit.mean) } else { Some(value) }
    }

    fn judge(&self) -> Option<bool> {
        let fit = Fit::of(&self.values()?)?;
        // A window without any I/O is perfectly even, but says nothing about the device.
        if fit.mean == 0.0 {
            return Some(false);
        }
        Some(self.criterion(fit)?.abs() <= self.steady.limit)
    }
}

fn percent(value: f64, mean: f64) -> Option<f64> {
    (mean != 0.0).then(|| value * 100.0 / mean)
}

/// Maximum number of rounds.
pub const SNIA_MOST_ROUNDS: usize = 25;
/// Rounds of random writes, judged by the definition of Steady State in the SNIA Solid State Storage Performance Test
/// Specification ([`Window`]), with at most 25 rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SniaRounds {
    rounds: Vec<f64>,
}

impl SniaRounds {
    /// Takes the IOPS of a round; returns true while another one is needed.
    pub fn round(&mut self, iops: f64) -> bool {
        self.rounds.push(iops);
        !self.is_steady() && self.rounds.len() < SNIA_MOST_ROUNDS
    }

    /// IOPS of each round so far.
    #[must_use]
    pub fn rounds(&self) -> &[f64] {
        &self.rounds
    }

    /// Whether the last window is steady.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.window().is_some_and(|window| window.is_steady())
    }

    /// The last full window; `None` before it is full or if nothing was written in it.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        let from = self.rounds.len().checked_sub(ROUNDS)?;
        Window::of(&self.rounds[from..])
    }
}

#[cfg(test)]
mod tests;
