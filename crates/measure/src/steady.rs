//! Whether a row of readings is steady, and where it changes its level. Pure arithmetic over values one step apart.
//!
//! The verdict is that of the SNIA Solid State Storage Performance Test Specification (2.0.1, "Steady State"): over
//! five consecutive rounds the excursion is at most 20 % of the mean, and that of the fitted line at most 10 %.

use crate::statistics::mean;

/// Rounds of a window.
pub const ROUNDS: usize = 5;
/// Largest minus smallest round of a steady window, of its mean.
pub const EXCURSION_RATIO: f64 = 0.20;
/// Rise or fall of the fitted line over a steady window, of its mean.
pub const SLOPE_RATIO: f64 = 0.10;

/// A straight line through a row of values, and how far they lie from their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Their mean.
    pub mean: f64,
    /// Largest distance of any from the mean.
    pub deviation: f64,
    /// Largest minus smallest.
    pub excursion: f64,
    /// Slope of the least-squares line, per step.
    pub slope: f64,
}

impl Fit {
    /// Mean, deviation, excursion, slope; `None` of nothing. One value has no slope: 0.
    ///
    /// Slope: sum((x - mean x)(y - mean y)) / sum((x - mean x)^2) with x = 0, 1, 2, ...
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let first = *values.first()?;
        let mean = mean(values);
        let middle = (values.len() as f64 - 1.0) / 2.0;
        let (mut products, mut squares, mut deviation) = (0.0, 0.0, 0.0_f64);
        let (mut least, mut most) = (first, first);
        for (index, value) in values.iter().enumerate() {
            let x = index as f64 - middle;
            products += x * (value - mean);
            squares += x * x;
            deviation = deviation.max((value - mean).abs());
            least = least.min(*value);
            most = most.max(*value);
        }
        let slope = if squares > 0.0 { products / squares } else { 0.0 };
        Some(Self { mean, deviation, excursion: most - least, slope })
    }
}

/// How far a window of rounds is from steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Largest less smallest round, of their mean.
    pub excursion_ratio: f64,
    /// Rise of the fitted line over the window, of the mean; negative if it falls.
    pub slope_ratio: f64,
}

impl Window {
    /// Of the rounds of one window; `None` if nothing happened in it.
    #[must_use]
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let fit = Fit::of(rounds).filter(|fit| fit.mean > 0.0)?;
        Some(Self {
            excursion_ratio: fit.excursion / fit.mean,
            slope_ratio: fit.slope * (rounds.len() - 1) as f64 / fit.mean,
        })
    }

    /// The rule holds.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.excursion_ratio <= EXCURSION_RATIO && self.slope_ratio.abs() <= SLOPE_RATIO
    }
}

/// Sums from the left, so that mean and scatter of any stretch cost two look-ups.
#[derive(Clone, Debug)]
pub struct Sums {
    /// Sum of the first i values, each less the mean of all: squares of small numbers keep their digits.
    sum: Vec<f64>,
    square: Vec<f64>,
    middle: f64,
}

/// The two sides of a split.
#[derive(Clone, Copy, Debug)]
pub struct SplitSides {
    /// Values on either side.
    pub counts: (f64, f64),
    /// Their means.
    pub means: (f64, f64),
    /// Sum of squared distances of all values from the mean of their side.
    pub squares: f64,
}

impl Sums {
    /// Of a row of values.
    #[must_use]
    pub fn new(values: &[f64]) -> Self {
        let middle = mean(values);
        let (mut sum, mut square) = (vec![0.0], vec![0.0]);
        let (mut s, mut q) = (0.0, 0.0);
        for value in values {
            let off = value - middle;
            s += off;
            q += off * off;
            sum.push(s);
            square.push(q);
        }
        Self { sum, square, middle }
    }

    /// Mean and sum of squared distances from it, of the values from `from` up to `to`.
    fn of(&self, from: usize, to: usize) -> (f64, f64) {
        let n = (to - from) as f64;
        let off = (self.sum[to] - self.sum[from]) / n;
        let square = self.square[to] - self.square[from];
        (self.middle + off, (square - n * off * off).max(0.0))
    }

    /// The split of a stretch with the largest score, and the score: the first value of its right side. `None` where
    /// there is no room for `least` values on either side.
    #[must_use]
    pub fn best_split(
        &self,
        (from, to): (usize, usize),
        least: usize,
        score: impl Fn(&SplitSides) -> f64,
    ) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        for at in from + least..(to + 1).saturating_sub(least) {
            let ((a, below), (b, above)) = (self.of(from, at), self.of(at, to));
            let score = score(&SplitSides {
                counts: ((at - from) as f64, (to - at) as f64),
                means: (a, b),
                squares: below + above,
            });
            if best.is_none_or(|(_, most)| score > most) {
                best = Some((at, score));
            }
        }
        best
    }
}

/// Binary segmentation (Scott and Knott 1974; Vostrikova 1981): where `split` finds one in a stretch, it is looked for
/// again on both sides. The splits found, in order, each with what `split` says of it.
pub fn segments<T>(
    (from, to): (usize, usize),
    split: &mut impl FnMut(usize, usize) -> Option<(usize, T)>,
) -> Vec<(usize, T)> {
    let Some((at, what)) = split(from, to) else {
        return Vec::new();
    };
    let mut found = segments((from, at), split);
    found.push((at, what));
    found.extend(segments((at, to), split));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_steady_within_20_and_10_percent() {
        let window = Window::of(&[50.0, 48.0, 50.0, 51.0, 49.0]).expect("something happened");
        // Mean 49.6, excursion 3, slope (2 * (49 - 50) + 51 - 48) / 10 = 0.1.
        assert!((window.excursion_ratio - 3.0 / 49.6).abs() < 1e-12);
        assert!((window.slope_ratio - 0.4 / 49.6).abs() < 1e-12);
        assert!(window.is_steady());
        let falling = Window::of(&[106.0, 103.0, 100.0, 97.0, 94.0]).expect("something happened");
        assert!(!falling.is_steady());
        assert_eq!(Window::of(&[0.0; 5]), None);
    }

    #[test]
    fn levels_are_split_where_they_meet() {
        let mut values = vec![10.0; 20];
        values[7..13].fill(20.0);
        let sums = Sums::new(&values);
        let apart = |sides: &SplitSides| (sides.means.0 - sides.means.1).abs();
        let mut split = |from, to| {
            let best = sums.best_split((from, to), 3, apart);
            best.filter(|(_, score)| *score > 4.0)
        };
        let found: Vec<usize> = segments((0, 20), &mut split).iter().map(|s| s.0).collect();
        assert_eq!(found, [7, 13]);
        assert_eq!(sums.best_split((0, 5), 3, apart), None);
    }
}
