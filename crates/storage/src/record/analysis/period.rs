//! Finds periodic dips of throughput.

use super::noise::{clipped, median};
use assay_measure::statistics;

/// Probability of a false period.
const CHANCE: f64 = 0.01;
/// Smallest correlation worth reporting.
const LEAST_CORRELATION: f64 = 0.3;
/// A dip that leaves more than this of the usual rate does not count.
const DIP: f64 = 0.9;

/// A period found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::record) struct Period {
    /// Seconds from dip to dip.
    pub(in crate::record) seconds: usize,
    /// Rate in the dips relative to the usual one.
    pub(in crate::record) left: f64,
}

/// Searches for dips at regular intervals in the seconds of levels; `levels` holds the level of each second. It takes
/// the residual of each second without the part inherited from the one before. The autocorrelation of these residuals
/// must exceed what chance produces at any of the lags examined (Bartlett's 1 / sqrt(n), Bonferroni over the lags),
/// over at least three periods.
pub(in crate::record) fn period(values: &[f64], levels: &[f64]) -> Option<Period> {
    let n = values.len();
    let relative: Vec<f64> =
        (values.iter().zip(levels)).map(|(value, level)| if *level > 0.0 { value / level } else { 1.0 }).collect();
    let rest = whitened(&clipped(&relative, 0));
    let lags = 2..=n / 3;
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    if lags.is_empty() || squares <= 0.0 {
        return None;
    }
    let correlation = |lag: usize| {
        let products = rest.iter().zip(&rest[lag.min(rest.len())..]);
        products.map(|(a, b)| a * b).sum::<f64>() / squares
    };
    let tried = lags.clone().count() as f64;
    // The normal quantile of p is at most sqrt(2 ln(1 / p)).
    let bound = (2.0 * (tried / CHANCE).ln()).sqrt() / (n as f64).sqrt();
    let found: Vec<(usize, f64)> = lags.map(|lag| (lag, correlation(lag))).collect();
    let largest = found.iter().map(|(_, r)| *r).fold(0.0, f64::max);
    if largest < bound.max(LEAST_CORRELATION) {
        return None;
    }
    // Twice the period correlates nearly as well, so the shortest is the period.
    let (seconds, _) = *found.iter().find(|(_, r)| *r >= 0.8 * largest)?;
    let left = (0..seconds)
        .map(|phase| {
            let of: Vec<f64> = relative.iter().skip(phase).step_by(seconds).copied().collect();
            median(&of)
        })
        .fold(f64::INFINITY, f64::min)
        / median(&relative).max(f64::MIN_POSITIVE);
    (left <= DIP).then_some(Period { seconds, left })
}

/// Each value minus its mean and minus its prediction from the one before.
fn whitened(values: &[f64]) -> Vec<f64> {
    let mean = statistics::mean(values);
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let pairs = || centred.windows(2);
    let squares: f64 = pairs().map(|pair| pair[0] * pair[0]).sum();
    let carry = if squares > 0.0 { pairs().map(|pair| pair[0] * pair[1]).sum::<f64>() / squares } else { 0.0 };
    pairs().map(|pair| pair[1] - carry * pair[0]).collect()
}
