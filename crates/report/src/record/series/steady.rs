//! How steady ops/s was: scatter, drift, and where the level changed.

use assay_measure::record::{Figure, Series, Steadiness};

/// Standard deviation over mean (of the sample, n - 1).
pub(crate) fn variation(values: &[f64]) -> Figure {
    let n = values.len() as f64;
    if values.len() < 2 {
        return Figure::na("fewer than two values");
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Figure::decimal((squares / (n - 1.0)).sqrt()).per(mean, "nothing moved")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

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
    let mut change_points_s = Vec::new();
    change_points(&t, &Sums::new(&rates), 0, rates.len(), &mut change_points_s);
    Steadiness {
        steps_count: (rates.len() as u64).into(),
        mean_per_s: mean(&rates).into(),
        min_per_s: rates.iter().copied().fold(f64::INFINITY, f64::min).into(),
        max_per_s: rates.iter().copied().fold(0.0, f64::max).into(),
        variation_ratio: variation(&rates),
        last_over_first_ratio: Figure::decimal(last).per(first, "nothing moved"),
        change_points_s,
    }
}

/// Fewest seconds on either side of a change of level.
const LEVEL_SECONDS: usize = 5;
/// Smallest change of level worth a word.
const LEVEL_RATIO: f64 = 0.1;
/// Difference of means over its standard error from which a split counts. High, since
/// neighbouring seconds are correlated and every split of the window is tried.
const LEVEL_T: f64 = 6.0;

/// Sums from the left, so that mean and scatter of any stretch cost two look-ups.
struct Sums {
    /// Sum of the first i values, each less the mean of all: squares of small numbers keep their digits.
    sum: Vec<f64>,
    square: Vec<f64>,
    middle: f64,
}

impl Sums {
    fn new(rates: &[f64]) -> Self {
        let middle = mean(rates);
        let (mut sum, mut square) = (vec![0.0], vec![0.0]);
        let (mut s, mut q) = (0.0, 0.0);
        for rate in rates {
            let off = rate - middle;
            s += off;
            q += off * off;
            sum.push(s);
            square.push(q);
        }
        Self {
            sum,
            square,
            middle,
        }
    }

    /// Mean and sum of squared distances from it, of the values from `from` up to `to`.
    fn of(&self, from: usize, to: usize) -> (f64, f64) {
        let n = (to - from) as f64;
        let off = (self.sum[to] - self.sum[from]) / n;
        let square = self.square[to] - self.square[from];
        (self.middle + off, (square - n * off * off).max(0.0))
    }
}

/// Binary segmentation: splits where the means of both sides differ most, relative to
/// the scatter inside the sides, and looks again inside both.
fn change_points(t: &[f64], sums: &Sums, from: usize, to: usize, found: &mut Vec<f64>) {
    let mut best = (0, 0.0);
    for split in from + LEVEL_SECONDS..(to + 1).saturating_sub(LEVEL_SECONDS) {
        let (left, right) = ((split - from) as f64, (to - split) as f64);
        let ((a, below), (b, above)) = (sums.of(from, split), sums.of(split, to));
        let within = (below + above) / ((to - from) - 2) as f64;
        let error = (within * (1.0 / left + 1.0 / right)).sqrt();
        // Perfectly flat sides have no scatter: a tenth of a percent stands in for it.
        let score = (a - b).abs() / error.max(1e-3 * a.max(b));
        if (a - b).abs() >= LEVEL_RATIO * a.max(b) && score > best.1 {
            best = (split, score);
        }
    }
    if best.1 >= LEVEL_T {
        let split = best.0;
        change_points(t, sums, from, split, found);
        found.push(t[split - 1]);
        change_points(t, sums, split, to, found);
    }
}
