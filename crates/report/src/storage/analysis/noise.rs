//! The noise of a per-second series: how large, and how much one second carries over to the next.
//!
//! Neighbouring seconds of a device resemble each other, so the noise is taken as first-order
//! autoregressive. Both parameters come from differences of neighbours, which a change of level
//! touches at a single place (Chakar, Lebarbier, Levy-Leduc, Robin, "A robust approach for
//! estimating change-points in the mean of an AR(1) process", Bernoulli 23, 2017), with the scale
//! Qn of Rousseeuw and Croux (1993).

/// Values further from the median of their neighbourhood than this many standard deviations are
/// drawn in to it (Hampel's filter): one stalled second is no level.
const CLIP_SIGMA: f64 = 4.0;
/// Seconds of a neighbourhood; fewer than half of them may be stalled.
const NEIGHBOURS: usize = 7;
/// Smallest noise taken for real: the granularity of counting a second.
const LEAST_SIGMA: f64 = 1e-3;
/// The estimate of the carry-over from n seconds is off by about this over the square root of n;
/// so much is added to stay on the safe side.
const CARRY_ERROR: f64 = 1.0;
/// A series with more carry-over than this wanders, and nothing can be said of its levels.
const MOST_CARRY: f64 = 0.9;

/// First-order autoregressive noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// Share of a second's deviation that the next one inherits, an upper estimate, 0 to 0.9.
    pub(super) carry: f64,
    /// Standard deviation of what each second adds.
    pub(super) sigma: f64,
}

impl Noise {
    /// From a series in its own order.
    pub(super) fn of(series: &[f64]) -> Self {
        let one = qn(&differences(series, 1));
        let two = qn(&differences(series, 2));
        let carry = match one > 0.0 {
            true => (two * two / (one * one) - 1.0).clamp(0.0, MOST_CARRY),
            false => 0.0,
        };
        // A change of level is one difference; clipped, it hardly counts.
        let bound = CLIP_SIGMA * step_sigma(series);
        let steps = differences(series, 1);
        let squares = steps.iter().map(|step| step.abs().min(bound).powi(2));
        let square = squares.sum::<f64>() / steps.len().max(1) as f64;
        // Var(y[t] - y[t-1]) = 2 sigma^2 / (1 + carry).
        let sigma = (square * (1.0 + carry) / 2.0).sqrt().max(LEAST_SIGMA);
        let safe = carry + CARRY_ERROR / (series.len().max(1) as f64).sqrt();
        Self {
            carry: safe.min(MOST_CARRY),
            sigma,
        }
    }

    /// Standard deviation of a long mean times the root of its length.
    pub(super) fn long_run(self) -> f64 {
        self.sigma / (1.0 - self.carry)
    }
}

/// Standard deviation of the differences of neighbours, whatever the levels.
fn step_sigma(series: &[f64]) -> f64 {
    let steps: Vec<f64> = differences(series, 1).iter().map(|d| d.abs()).collect();
    // 1.4826: the median deviation of a normal distribution as its standard deviation.
    (1.4826 * median(&steps)).max(LEAST_SIGMA)
}

/// The series with values far from their neighbours drawn in.
pub(super) fn clipped(series: &[f64]) -> Vec<f64> {
    let bound = CLIP_SIGMA * step_sigma(series);
    let width = NEIGHBOURS.min(series.len());
    let draw_in = |(at, value): (usize, &f64)| {
        let from = at.saturating_sub(width / 2).min(series.len() - width);
        let centre = median(&series[from..from + width]);
        value.clamp(centre - bound, centre + bound)
    };
    series.iter().enumerate().map(draw_in).collect()
}

/// The middle value; the mean of the two middle ones; 0 of nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

fn differences(series: &[f64], lag: usize) -> Vec<f64> {
    let later = series.iter().skip(lag);
    later.zip(series).map(|(now, then)| now - then).collect()
}

/// About the first quartile of the distances of all pairs: a scale that half of the values may
/// spoil. Without its constant, since only ratios of two are used.
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
