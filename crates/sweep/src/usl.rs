//! The Universal Scalability Law, fitted to a curve of throughput over load.
//!
//! X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), N. J. Gunther, "A General
//! Theory of Computational Scalability Based on Rational Functions" (2008): lambda is
//! the throughput of one, sigma the part that waits in line (contention), kappa the
//! price of agreement between pairs (coherency).
//!
//! With a = 1/lambda, b = sigma/lambda and c = kappa/lambda the law says
//! (X/N) (a + b (N-1) + c N(N-1)) = 1. The least squares of that equation are those of
//! the relative deviation X/law - 1, linear in a, b and c and convex, so the bounded
//! optimum is found exactly, by trying every set of bounds that may be active.

use assay_measure::prng::{Purpose, Stream};

/// Fewer distinct loads leave nothing over to judge three coefficients by.
pub(crate) const LEAST_POINTS: usize = 4;
/// A fit that is further off than this on average (root mean square, of the law) is none,
/// unless the steps themselves are that uncertain ...
pub(crate) const WORST_RMS: f64 = 0.05;
/// ... but never beyond this.
pub(crate) const NOISY_RMS: f64 = 0.10;
/// A fit that misses one step by more than this is none.
pub(crate) const WORST_MISS: f64 = 0.20;
/// Redraws of the bootstrap.
pub(crate) const REDRAWS: usize = 1000;
/// Half of what the 95 % interval leaves out.
pub(crate) const TAIL: f64 = 0.025;

/// One measured point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Sessions or CPUs, at least 1.
    pub load: f64,
    /// Throughput, per s, above 0.
    pub rate: f64,
    /// Its standard error over its size; 0 if unknown.
    pub error: f64,
}

/// The law with its coefficients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Law {
    /// Throughput at load 1, per s; above 0.
    pub lambda: f64,
    /// Contention, 0..1.
    pub sigma: f64,
    /// Coherency, 0 or more.
    pub kappa: f64,
}

impl Law {
    /// Throughput at a load, per s.
    pub(crate) fn at(&self, load: f64) -> f64 {
        let others = load - 1.0;
        self.lambda * load / (1.0 + self.sigma * others + self.kappa * load * others)
    }

    /// The load with the most throughput; infinite if it never falls.
    pub(crate) fn peak(&self) -> f64 {
        if self.kappa <= 0.0 {
            return f64::INFINITY;
        }
        ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0)
    }
}

/// Relative deviations of the points from the law: rate / law - 1.
pub(crate) fn deviations(law: &Law, points: &[Point]) -> Vec<f64> {
    let of = |point: &Point| point.rate / law.at(point.load) - 1.0;
    points.iter().map(of).collect()
}

/// What a solution means as a, b and c.
type Spread = fn(&[f64]) -> [f64; 3];

/// What the fit may be off: a deviation that the steps' own standard errors explain
/// twice over is no misfit.
pub(crate) fn tolerated_rms(points: &[Point]) -> f64 {
    let squares: f64 = points.iter().map(|point| point.error.powi(2)).sum();
    let noise = (squares / points.len().max(1) as f64).sqrt();
    (2.0 * noise).clamp(WORST_RMS, NOISY_RMS)
}

/// The bounded least squares fit; `None` without points, and where no law is the best
/// because the deviations shrink as long as lambda grows.
pub(crate) fn fit(points: &[Point]) -> Option<Law> {
    let column = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
        let term = |point: &Point| point.rate / point.load * of(point.load);
        points.iter().map(term).collect()
    };
    let a = column(&|_| 1.0);
    let b = column(&|n| n - 1.0);
    let c = column(&|n| n * (n - 1.0));
    // Sigma at its upper bound: b = a, so that both share the column N.
    let ab = column(&|n| n);
    let sets: [(&[&[f64]], Spread); 7] = [
        (&[&a], |x| [x[0], 0.0, 0.0]),
        (&[&a, &b], |x| [x[0], x[1], 0.0]),
        (&[&a, &c], |x| [x[0], 0.0, x[1]]),
        (&[&a, &b, &c], |x| [x[0], x[1], x[2]]),
        (&[&ab], |x| [x[0], x[0], 0.0]),
        (&[&ab, &c], |x| [x[0], x[0], x[1]]),
        // Lambda without a limit: no law, but what a law must beat.
        (&[&c], |x| [0.0, 0.0, x[0]]),
    ];
    let mut best: Option<(f64, Option<Law>)> = None;
    for (columns, spread) in sets {
        let Some(solution) = least_squares(columns) else {
            continue;
        };
        let [a, b, c] = spread(&solution);
        if !(a >= 0.0 && b >= 0.0 && c >= 0.0 && b <= a) {
            continue;
        }
        let off = |point: &Point| {
            let others = point.load - 1.0;
            point.rate / point.load * (a + b * others + c * point.load * others) - 1.0
        };
        let squares: f64 = points.iter().map(|point| off(point).powi(2)).sum();
        let law = (a > 0.0).then(|| Law { lambda: 1.0 / a, sigma: b / a, kappa: c / a });
        if squares.is_finite() && best.as_ref().is_none_or(|(least, _)| squares < *least) {
            best = Some((squares, law));
        }
    }
    best.and_then(|(_, law)| law)
}

/// Coefficients that bring the sum of the columns closest to 1 in every row.
fn least_squares(columns: &[&[f64]]) -> Option<Vec<f64>> {
    // Columns of like size: N(N-1) is far larger than 1.
    let norms: Vec<f64> = columns.iter().map(|column| column.iter().map(|v| v * v).sum::<f64>().sqrt()).collect();
    if norms.iter().any(|norm| *norm <= 0.0 || !norm.is_finite()) {
        return None;
    }
    let unit = |i: usize, row: usize| columns[i][row] / norms[i];
    let rows = columns[0].len();
    let size = columns.len();
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for (i, line) in matrix.iter_mut().enumerate() {
        for (j, cell) in line.iter_mut().enumerate() {
            *cell = (0..rows).map(|row| unit(i, row) * if j < size { unit(j, row) } else { 1.0 }).sum();
        }
    }
    let solution = eliminate(matrix)?;
    Some(solution.iter().zip(&norms).map(|(x, norm)| x / norm).collect())
}

/// Gauss with the largest pivot; `None` if the columns do not differ enough to be told apart.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    const SINGULAR: f64 = 1e-12;
    let size = matrix.len();
    for pivot in 0..size {
        let largest = (pivot..size).max_by(|i, j| matrix[*i][pivot].abs().total_cmp(&matrix[*j][pivot].abs()))?;
        matrix.swap(pivot, largest);
        if matrix[pivot][pivot].abs() < SINGULAR {
            return None;
        }
        let line = matrix[pivot].clone();
        for other in &mut matrix[pivot + 1..] {
            let factor = other[pivot] / line[pivot];
            for (cell, above) in other.iter_mut().zip(&line) {
                *cell -= factor * above;
            }
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|j| matrix[row][j] * solution[j]).sum();
        solution[row] = (matrix[row][size] - known) / matrix[row][row];
    }
    Some(solution)
}

/// A coefficient with its 95 % interval; an end may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// From the fit itself.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Laws of redrawn curves, for intervals of whatever is computed from a law.
pub(crate) struct Redrawn {
    law: Law,
    laws: Vec<Law>,
}

impl Redrawn {
    /// Parametric bootstrap: every step is redrawn around the fitted law with the larger of
    /// the fit's residual standard error and the step's own standard error, and fitted anew.
    pub(crate) fn new(law: Law, points: &[Point], seed: u64) -> Self {
        let squares: f64 = deviations(&law, points).iter().map(|d| d * d).sum();
        let free = points.len().saturating_sub(3).max(1) as f64;
        let residual = (squares / free).sqrt();
        let mut random = Stream::new(seed, 0, Purpose::Resample);
        let laws = (0..REDRAWS)
            .filter_map(|_| {
                let redrawn: Vec<Point> = points
                    .iter()
                    .map(|point| {
                        let noise = residual.max(point.error) * normal(&mut random);
                        // A throughput stays one, however large the noise.
                        let rate = law.at(point.load) * (1.0 + noise).max(0.01);
                        Point { rate, ..*point }
                    })
                    .collect();
                fit(&redrawn)
            })
            .collect();
        Self { law, laws }
    }

    /// What `of` says of the fitted law, with the range that 95 % of the redrawn laws give it.
    pub(crate) fn interval(&self, of: impl Fn(&Law) -> f64) -> Interval {
        let mut all: Vec<f64> = self.laws.iter().map(&of).collect();
        all.sort_by(f64::total_cmp);
        let value = of(&self.law);
        let at = |q: f64| {
            let rank = (q * all.len() as f64) as usize;
            all.get(rank.min(all.len().saturating_sub(1))).copied().unwrap_or(value)
        };
        Interval { value, low: at(TAIL).min(value), high: at(1.0 - TAIL).max(value) }
    }
}

/// A draw from the standard normal distribution (Box and Muller, 1958).
pub(crate) fn normal(random: &mut Stream) -> f64 {
    // 1 - u is above 0, so that its logarithm is finite.
    let radius = (-2.0 * (1.0 - random.uniform_f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.uniform_f64()).cos()
}
