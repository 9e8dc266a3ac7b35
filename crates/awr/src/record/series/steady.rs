//! How steady ops/s was: scatter, drift, and where the level changed.

use crate::deltas::variation;
use assay_measure::record::{Figure, Series, Steadiness};
use assay_measure::statistics::mean;
use assay_measure::steady::{SplitSides, Sums, segments};

/// Ops/s over the whole steps of the window.
pub(crate) fn steadiness(series: &Series) -> Steadiness {
    let ops = series.metrics.get("ops_count_per_s");
    let (mut t, mut rates) = (Vec::new(), Vec::new());
    let step = series.step_s.value().unwrap_or(1.0);
    let mut previous = 0.0;
    for (row, now) in series.t_s.iter().enumerate() {
        // The step before the begin or the end may be a fraction: too short to judge.
        let whole = now - previous > 0.5 * step;
        previous = *now;
        let rate = ops.and_then(|ops| ops.get(row)).and_then(Figure::value);
        if let (true, true, Some(rate)) = (series.in_window[row], whole, rate) {
            t.push(*now);
            rates.push(rate);
        }
    }
    of(&t, &rates)
}

/// Of rates one step apart, and when each step ended, s.
#[must_use]
pub fn of(t: &[f64], rates: &[f64]) -> Steadiness {
    if rates.len() < 4 {
        let none = || Figure::na("fewer than four steps");
        return Steadiness {
            steps_count: (rates.len() as u64).into(),
            mean_per_s: none(),
            min_per_s: none(),
            max_per_s: none(),
            variation_ratio: none(),
            last_over_first_ratio: none(),
            change_points_s: Vec::new(),
        };
    }
    let quarter = rates.len() / 4;
    let first = mean(&rates[..quarter]);
    let last = mean(&rates[rates.len() - quarter..]);
    Steadiness {
        steps_count: (rates.len() as u64).into(),
        mean_per_s: mean(rates).into(),
        min_per_s: rates.iter().copied().fold(f64::INFINITY, f64::min).into(),
        max_per_s: rates.iter().copied().fold(0.0, f64::max).into(),
        variation_ratio: variation(rates),
        last_over_first_ratio: Figure::decimal(last).per(first, "nothing moved"),
        change_points_s: change_points(t, rates),
    }
}

/// Fewest seconds on either side of a change of level.
const LEVEL_SECONDS: usize = 5;
/// Smallest change of level worth a word.
const LEVEL_RATIO: f64 = 0.1;
/// Difference of means over its standard error from which a split counts. High, since
/// neighbouring seconds are correlated and every split of the window is tried.
const LEVEL_T: f64 = 6.0;

/// When the level changed, s.
fn change_points(t: &[f64], rates: &[f64]) -> Vec<f64> {
    let sums = Sums::new(rates);
    let score = |sides: &SplitSides| {
        let ((left, right), (a, b)) = (sides.counts, sides.means);
        let within = sides.squares / (left + right - 2.0);
        let error = (within * (1.0 / left + 1.0 / right)).sqrt();
        // Perfectly flat sides have no scatter: a tenth of a percent stands in for it.
        let score = (a - b).abs() / error.max(1e-3 * a.max(b));
        if (a - b).abs() >= LEVEL_RATIO * a.max(b) { score } else { 0.0 }
    };
    let mut split = |from, to| {
        let best = sums.best_split((from, to), LEVEL_SECONDS, score);
        best.filter(|(_, score)| *score >= LEVEL_T)
    };
    let splits = segments((0, rates.len()), &mut split).into_iter();
    splits.map(|(at, _)| t[at - 1]).collect()
}
