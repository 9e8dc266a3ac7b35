//! The noise of a per-second series: its size, and how much one second carries over to the next.
//!
//! Neighbouring seconds of a device resemble each other, so the noise is modelled as first-order autoregressive. Both
//! parameters are estimated from differences of neighbours, which a change of level affects at a single place (Chakar,
//! Lebarbier, Levy-Leduc, Robin, "A robust approach for estimating change-points in the mean of an AR(1) process",
//! Bernoulli 23, 2017), with the scale estimator Qn of Rousseeuw and Croux (1993).

use assay_measure::statistics;

/// Values further than this many standard deviations from the median of their neighbourhood are clipped to that
/// distance (Hampel's filter): one stalled second is not a level.
const CLIP_SIGMA: f64 = 4.0;
/// Size of a neighbourhood in seconds; fewer than half of them may be stalled.
const NEIGHBOURS: usize = 7;
/// Minimum number of seconds for a side to have its own scale.
const LEAST_SIDE: usize = 8;
/// Two sides are unlike if their scales differ by this factor.
const UNLIKE: f64 = 3.0;
/// Smallest noise: the granularity of counting a second.
const LEAST_SIGMA: f64 = 1e-3;
/// The standard error of the carry-over estimated from n seconds is about this value divided by the square root of n;
/// it is added as a safety margin.
const CARRY_ERROR: f64 = 1.0;
/// A series with more carry-over than this wanders, so it has no levels.
const MOST_CARRY: f64 = 0.9;

/// First-order autoregressive noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// Share of a second's deviation that the next one inherits, estimated upwards, 0 to 0.9.
    pub(super) carry: f64,
    /// Standard deviation of the innovation of each second.
    pub(super) sigma: f64,
}

impl Noise {
    /// Estimates the noise of a series in its own order with a border of levels, real or not, after `at` values. Each
    /// side is scaled by its own noise: a throttled level hardly varies, the one before does.
    pub(super) fn of(series: &[f64], at: usize) -> Self {
        let (mut one, mut two, mut squares, mut steps) = (Vec::new(), Vec::new(), 0.0, 0);
        for side in sides(series, at) {
            let scale = step_sigma(side);
            one.extend(differences(side, 1).iter().map(|step| step / scale));
            two.extend(differences(side, 2).iter().map(|step| step / scale));
            // A change of level inside is one difference; clipped, it hardly matters.
            let bound = CLIP_SIGMA * scale;
            let clipped = differences(side, 1).into_iter().map(|step| step.abs().min(bound));
            squares += clipped.map(|step| step * step).sum::<f64>();
            steps += side.len() - 1;
        }
        let (one, two) = (qn(&one), qn(&two));
        let carry = if one > 0.0 { (two * two / (one * one) - 1.0).clamp(0.0, MOST_CARRY) } else { 0.0 };
        // Var(y[t] - y[t-1]) = 2 sigma^2 / (1 + carry).
        let square = squares / steps.max(1) as f64;
        let sigma = (square * (1.0 + carry) / 2.0).sqrt().max(LEAST_SIGMA);
        let safe = carry + CARRY_ERROR / (series.len().max(1) as f64).sqrt();
        Self { carry: safe.min(MOST_CARRY), sigma }
    }

    /// The larger of two, by the effect on a mean.
    pub(super) fn larger(self, other: Self) -> Self {
        if other.long_run() > self.long_run() { other } else { self }
    }

    /// Standard deviation of a long mean times the square root of its length.
    pub(super) fn long_run(self) -> f64 {
        self.sigma / (1.0 - self.carry)
    }
}

/// Standard deviation of the differences of neighbours, independent of levels.
fn step_sigma(series: &[f64]) -> f64 {
    let steps: Vec<f64> = differences(series, 1).iter().map(|d| d.abs()).collect();
    // 1.4826 converts the median absolute deviation of a normal distribution to its standard deviation.
    (1.4826 * median(&steps)).max(LEAST_SIGMA)
}

/// The sides of a border if both are long enough to have a scale and the scales are unlike; otherwise the whole series,
/// since one estimate from more values is better than two.
fn sides(series: &[f64], at: usize) -> Vec<&[f64]> {
    let (left, right) = series.split_at(at.min(series.len()));
    let apart = || {
        let (a, b) = (step_sigma(left), step_sigma(right));
        a.max(b) >= UNLIKE * a.min(b)
    };
    if left.len().min(right.len()) >= LEAST_SIDE && apart() { vec![left, right] } else { vec![series] }
}

/// Clips values far from their neighbours, on each side of a border separately.
pub(super) fn clipped(series: &[f64], at: usize) -> Vec<f64> {
    let each = sides(series, at).into_iter();
    each.flat_map(|side| clipped_side(side, step_sigma(side))).collect()
}

fn clipped_side(series: &[f64], sigma: f64) -> Vec<f64> {
    let bound = CLIP_SIGMA * sigma;
    let width = NEIGHBOURS.min(series.len());
    let draw_in = |(at, value): (usize, &f64)| {
        let from = at.saturating_sub(width / 2).min(series.len() - width);
        let centre = median(&series[from..from + width]);
        value.clamp(centre - bound, centre + bound)
    };
    series.iter().enumerate().map(draw_in).collect()
}

/// The median; 0 for an empty series.
pub(super) fn median(values: &[f64]) -> f64 {
    statistics::median(values).unwrap_or(0.0)
}

fn differences(series: &[f64], lag: usize) -> Vec<f64> {
    let later = series.iter().skip(lag);
    later.zip(series).map(|(now, then)| now - then).collect()
}

/// Roughly the first quartile of all pairwise distances: a scale estimate that tolerates up to half of the values being
/// outliers. Without the normalising constant, since only ratios of two are used.
fn qn(values: &[f64]) -> f64 {
    let half = values.len() / 2 + 1;
    let rank = half * (half - 1) / 2;
    let mut distances = Vec::with_capacity(values.len() * values.len().saturating_sub(1) / 2);
    for (at, value) in values.iter().enumerate() {
        distances.extend(values[at + 1..].iter().map(|other| (value - other).abs()));
    }
    if rank == 0 || rank > distances.len() {
        return 0.0;
    }
    *distances.select_nth_unstable_by(rank - 1, f64::total_cmp).1
}
