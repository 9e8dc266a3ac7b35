//! Finds where the level of a per-second series changes.
//!
//! Binary segmentation keeps the split with the largest standardised difference of means, if noise alone would hardly
//! ever produce one so large, and then examines both sides again. Neighbouring seconds are not independent and every
//! split was tried, so a parametric bootstrap determines what noise alone produces: it draws series of the same length
//! and noise. If a straight line describes a series better than levels do (Schwarz's criterion), the series drifts and
//! has no levels.

use super::noise::{Noise, clipped, median};
use assay_measure::prng::{Purpose, Stream};
use assay_measure::statistics::mean;
use assay_measure::steady::{Fit, Sums, segments};

/// Shorter series allow no statement on levels.
pub(in crate::record) const LEAST_SECONDS: usize = 10;
/// Minimum length of a level in seconds.
const LEAST_LEVEL: usize = 4;
/// Number of series drawn per split.
const DRAWS: u32 = 199;
/// Maximum share of drawn series with a split as large.
const CHANCE: f64 = 0.01;
/// Smallest change of level worth reporting.
pub(in crate::record) const LEAST_CHANGE: f64 = 0.05;
/// Longer series are averaged to at most this many points.
const MOST_POINTS: usize = 1000;
/// A slope counts if it is at least this many standard errors.
const SLOPE_T: f64 = 4.0;

/// A split between two levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::record) struct Split {
    /// Number of seconds before it.
    pub(in crate::record) at: usize,
    /// Upper bound of the probability that noise alone produces such a split.
    pub(in crate::record) chance: f64,
}

/// The course of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::record) struct Shape {
    /// Changes of level, in order.
    pub(in crate::record) splits: Vec<Split>,
    /// Rise of a straight line from start to end relative to the mean, if the series drifts.
    pub(in crate::record) drift: Option<f64>,
}

/// Analyses a series of positive values, one per second. Fewer than ten yield neither changes nor drift.
pub(in crate::record) fn shape(values: &[f64]) -> Shape {
    if values.len() < LEAST_SECONDS {
        return Shape::default();
    }
    let stride = values.len().div_ceil(MOST_POINTS);
    let points: Vec<f64> = values.chunks(stride).map(mean).collect();
    // Levels differ by factors, so use logarithms; a second without any I/O is far below, not at minus infinity.
    let least = 1e-3 * median(&points).max(f64::MIN_POSITIVE);
    let logs: Vec<f64> = points.iter().map(|value| (value + least).ln()).collect();
    let border = best_split(&logs).map_or(0, |(at, _)| at);
    let logs = clipped(&logs, border);
    let noise = Noise::of(&logs, border);
    let mut search = Search { noise, random: Stream::new(logs.len() as u64, 0, Purpose::Resample) };
    let mut split = |from: usize, to| {
        let (at, chance) = search.split(&logs[from..to])?;
        Some((from + at, chance))
    };
    let found = segments((0, logs.len()), &mut split).into_iter();
    let mut splits: Vec<Split> = found.map(|(at, chance)| Split { at, chance }).collect();
    merge_alike(&points, &mut splits);
    let drift = drift(&logs, &splits, noise);
    if drift.is_some() {
        splits.clear();
    }
    for split in &mut splits {
        split.at *= stride;
    }
    Shape { splits, drift }
}

struct Search {
    noise: Noise,
    random: Stream,
}

impl Search {
    /// Splits a part, and returns the chance of a split as large, if it is small enough.
    fn split(&mut self, logs: &[f64]) -> Option<(usize, f64)> {
        let (at, score) = best_split(logs)?;
        // A part may be noisier than the whole; then use its own noise.
        let noise = self.noise.larger(Noise::of(logs, at));
        let chance = self.chance(noise, logs.len(), score / noise.long_run())?;
        Some((at, chance))
    }

    /// Share of drawn series with a split as large, if it is small enough.
    fn chance(&mut self, noise: Noise, length: usize, score: f64) -> Option<f64> {
        let most = (CHANCE * f64::from(DRAWS + 1)) as u32 - 1;
        let mut larger = 0;
        for _ in 0..DRAWS {
            let drawn = self.draw(noise.carry, length);
            let largest = best_split(&drawn).map_or(0.0, |(_, score)| score);
            // Innovations have unit variance, so the long-run deviation is 1 / (1 - carry).
            if largest * (1.0 - noise.carry) >= score {
                larger += 1;
            }
            if larger > most {
                return None;
            }
        }
        Some(f64::from(larger + 1) / f64::from(DRAWS + 1))
    }

    /// Draws a series with this noise and innovations of standard deviation 1.
    fn draw(&mut self, carry: f64, length: usize) -> Vec<f64> {
        let mut value = self.normal() / (1.0 - carry * carry).sqrt();
        let mut drawn = Vec::with_capacity(length);
        for _ in 0..length {
            drawn.push(value);
            value = carry * value + self.normal();
        }
        drawn
    }

    /// Sum of twelve uniform draws minus six: close enough to normal, and without logarithms.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.uniform_f64()).sum::<f64>() - 6.0
    }
}

/// The split with the largest difference of means, standardised for its position (not for the noise).
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    Sums::new(values).best_split((0, values.len()), LEAST_LEVEL, |sides| {
        let ((left, right), (a, b)) = (sides.counts, sides.means);
        (a - b).abs() * (left * right / (left + right)).sqrt()
    })
}

/// Drops splits whose sides differ too little to report.
fn merge_alike(points: &[f64], splits: &mut Vec<Split>) {
    loop {
        let levels = levels(points, splits);
        let change = |at: usize| {
            let (a, b) = (levels[at], levels[at + 1]);
            (a - b).abs() / a.max(b).max(f64::MIN_POSITIVE)
        };
        let weakest = (0..splits.len()).min_by(|a, b| change(*a).total_cmp(&change(*b)));
        match weakest {
            Some(at) if change(at) < LEAST_CHANGE => {
                splits.remove(at);
            }
            _ => return,
        }
    }
}

/// Medians between the splits.
fn levels(points: &[f64], splits: &[Split]) -> Vec<f64> {
    let ends = splits.iter().map(|split| split.at).chain([points.len()]);
    let mut from = 0;
    ends.map(|to| {
        let level = median(&points[from..to]);
        from = to;
        level
    })
    .collect()
}

/// The rise of a straight line relative to the mean, if the line is steep enough and describes the series better than
/// the levels do.
fn drift(logs: &[f64], splits: &[Split], noise: Noise) -> Option<f64> {
    let n = logs.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let Fit { mean: level, slope, .. } = Fit::of(logs)?;
    // Sum of squares of the steps 0, 1, 2, ... about their mean.
    let variance = n * (n * n - 1.0) / 12.0;
    let rise = (slope * (n - 1.0)).exp_m1();
    if rise.abs() < LEAST_CHANGE || slope.abs() < SLOPE_T * noise.long_run() / variance.sqrt() {
        return None;
    }
    let line = |at: usize| level + slope * (at as f64 - middle);
    let line_squares: f64 = (logs.iter().enumerate()).map(|(at, value)| (value - line(at)).powi(2)).sum();
    let mut step_squares = 0.0;
    let mut from = 0;
    for to in splits.iter().map(|split| split.at).chain([logs.len()]) {
        let level = mean(&logs[from..to]);
        let squares = logs[from..to].iter().map(|value| (value - level).powi(2));
        step_squares += squares.sum::<f64>();
        from = to;
    }
    // Correlated seconds count as fewer.
    let independent = n * (1.0 - noise.carry) / (1.0 + noise.carry);
    let least = n * 1e-6;
    let criterion =
        |squares: f64, parameters: usize| independent * (squares.max(least) / n).ln() + parameters as f64 * n.ln();
    let steps = criterion(step_squares, 2 * splits.len() + 1);
    (criterion(line_squares, 2) < steps).then_some(rise)
}
