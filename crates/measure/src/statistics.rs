//! Statistics of samples: mean, variance, median; Student's t, Welch's test, Holm's correction, the smallest detectable
//! effect, and means of correlated readings.
//!
//! Pure arithmetic: knows nothing about records or texts.

/// Two-sided error allowed in one family of figures: 5 %.
pub const ALPHA: f64 = 0.05;

/// The arithmetic mean; NaN for no values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample variance (divisor n - 1); 0 for fewer than two values.
#[must_use]
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    squares / (values.len() - 1) as f64
}

/// The sample standard deviation (divisor n - 1); 0 for fewer than two values.
#[must_use]
pub fn stddev(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// Means of at most ten batches of equal length of values that follow one another in time; the last few that fill no
/// batch are left out. A correlation over few steps does not narrow what is concluded from them (Law, *Simulation
/// Modeling and Analysis*, 9.5.3).
#[must_use]
pub fn batch_means(values: &[f64]) -> Vec<f64> {
    const BATCHES: usize = 10;
    let length = values.len().div_ceil(BATCHES).max(1);
    values.chunks_exact(length).map(mean).collect()
}

/// Half the width of the 95 % interval of the mean of independent values, by Student's t; `None` for fewer than two.
#[must_use]
pub fn half_width(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let error = stddev(values) / count.sqrt();
    (values.len() > 1).then(|| t_quantile(0.975, count - 1.0) * error)
}

/// The middle value, of an even number the mean of the two middle ones; `None` for no values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        1 => Some(upper),
        _ => Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper)),
    }
}

/// The autocorrelation at lag 1 (the usual estimate, divisor n); 0 where nothing varies.
#[must_use]
pub fn lag_1(values: &[f64]) -> f64 {
    let middle = mean(values);
    let whole: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    if whole <= 0.0 {
        return 0.0;
    }
    let next: f64 = values.windows(2).map(|pair| (pair[0] - middle) * (pair[1] - middle)).sum();
    next / whole
}

/// The natural logarithm of the gamma function for x > 0, by Lanczos' series (SIAM J. Numer. Anal. B 1, 1964; the
/// coefficients for g = 7 and nine terms); relative error below 1e-13.
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + G + 0.5;
    let series = (1..C.len()).fold(C[0], |sum, i| sum + C[i] / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// The regularised incomplete beta function I_x(a, b) for a, b > 0 and 0 <= x <= 1: DLMF 8.17.22, the continued
/// fraction evaluated as Lentz did (Appl. Optics 15, 1976), on the side where it converges fast.
#[must_use]
pub fn beta_inc(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() * fraction(a, b, x) / a
    } else {
        1.0 - front.exp() * fraction(b, a, 1.0 - x) / b
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const ENOUGH: f64 = 1e-15;
    const STEPS: usize = 500;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..STEPS {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        let factor = d * c;
        result *= factor;
        if (factor - 1.0).abs() < ENOUGH {
            break;
        }
    }
    result
}

/// The probability that |T| of `df` degrees of freedom is at least |t|: I_(df/(df+t^2))(df/2, 1/2) (Abramowitz and
/// Stegun 26.7.1 and 26.5.27).
#[must_use]
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    beta_inc(df / 2.0, 0.5, df / (df + t * t))
}

/// The quantile of Student's t: the t that a share `p` (0 < p < 1) of the distribution lies below.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, df);
    }
    // Bisection: the distribution is monotone and a report asks for a few hundred quantiles, not for millions.
    let beyond = |t: f64| 0.5 * t_two_sided(t, df);
    let (mut low, mut high) = (0.0, 1.0);
    while beyond(high) > 1.0 - p && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if beyond(middle) > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// One side of a comparison: a mean and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of values.
    pub count: usize,
    /// Effective number of independent values: fewer than `count` if neighbours are correlated.
    pub effective_count: f64,
    /// Their mean.
    pub mean: f64,
    /// Variance of that mean: the square of its standard error.
    pub mean_variance: f64,
    /// The lag-1 autocorrelation that was allowed for, 0 to 0.9.
    pub correlation: f64,
}

impl Sample {
    /// Independent values, at least two.
    #[must_use]
    pub fn independent(values: &[f64]) -> Self {
        let count = values.len();
        Self {
            count,
            effective_count: count as f64,
            mean: mean(values),
            mean_variance: variance(values) / count as f64,
            correlation: 0.0,
        }
    }

    /// Values in order of time, at least four, whose neighbours may be correlated.
    ///
    /// The lag-1 autocorrelation is freed of its bias towards the negative, r + (1 + 4r) / n (Marriott and Pope,
    /// Biometrika 41, 1954), and a positive result shrinks the count to n (1 - r) / (1 + r), the value of n first-order
    /// autoregressive readings (Bayley and Hammersley, J. R. Stat. Soc. Suppl. 8, 1946). The sample variance, too small
    /// by then, is brought up with it. A negative one is ignored: with ten values its own error is 0.3, and using it
    /// would make a verdict too confident.
    #[must_use]
    pub fn in_order(values: &[f64]) -> Self {
        let count = values.len();
        let n = count as f64;
        let raw = lag_1(values);
        let correlation = (raw + (1.0 + 4.0 * raw) / n).clamp(0.0, 0.9);
        let effective_count = (n * (1.0 - correlation) / (1.0 + correlation)).max(2.0);
        let level_variance = variance(values) * ((n - 1.0) / n) / (1.0 - 1.0 / effective_count);
        Self {
            count,
            effective_count,
            mean: mean(values),
            mean_variance: level_variance / effective_count,
            correlation,
        }
    }

    fn degrees(&self) -> f64 {
        (self.effective_count - 1.0).max(1.0)
    }
}

/// The difference of two means, with its distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean of the second side less that of the first.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Degrees of freedom of Student's t that it follows.
    pub degrees: f64,
}

impl Difference {
    /// Welch's difference of means of unequal variances (Biometrika 34, 1947) with Satterthwaite's degrees of freedom
    /// (Biometrics Bulletin 2, 1946).
    #[must_use]
    pub fn welch(from: &Sample, to: &Sample) -> Self {
        let (a, b) = (from.mean_variance, to.mean_variance);
        let whole = a + b;
        let degrees = if whole > 0.0 {
            whole * whole / (a * a / from.degrees() + b * b / to.degrees())
        } else {
            from.degrees() + to.degrees()
        };
        Self { estimate: to.mean - from.mean, standard_error: whole.sqrt(), degrees }
    }

    /// The two-sided probability of a difference at least as large if there were none.
    #[must_use]
    pub fn p_value(&self) -> f64 {
        if self.standard_error > 0.0 {
            return t_two_sided(self.estimate / self.standard_error, self.degrees);
        }
        // Nothing varies: a difference is certain, or there is none. What rounding leaves is none.
        if self.estimate.abs() < 1e-12 { 1.0 } else { 0.0 }
    }

    /// The interval that holds the true difference with the given confidence, e.g. 0.95.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let reach = if self.standard_error > 0.0 {
            self.standard_error * t_quantile(0.5 + confidence / 2.0, self.degrees)
        } else {
            0.0
        };
        (self.estimate - reach, self.estimate + reach)
    }

    /// The smallest true difference that a two-sided test at `alpha` would have shown with probability `power`:
    /// (t_(1 - alpha/2) + t_power) standard errors (Bloom, Evaluation Review 19, 1995).
    #[must_use]
    pub fn detectable(&self, alpha: f64, power: f64) -> f64 {
        if self.standard_error > 0.0 {
            let multiplier = t_quantile(1.0 - alpha / 2.0, self.degrees) + t_quantile(power, self.degrees);
            return multiplier * self.standard_error;
        }
        0.0
    }
}

/// Holm's step-down correction (Scand. J. Stat. 6, 1979): each p as if it had been the only one, in the given order.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        least = least.max((p_values[at] * factor).min(1.0));
        corrected[at] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() <= by, "{found} is not {wanted}");
    }

    /// The two-sided 5 % and 1 % points of the tables every statistics book prints.
    #[test]
    fn t_quantiles_are_those_of_the_published_table() {
        for (df, p, t) in [
            (1.0, 0.975, 12.706),
            (2.0, 0.975, 4.303),
            (3.0, 0.975, 3.182),
            (4.0, 0.975, 2.776),
            (5.0, 0.995, 4.032),
            (10.0, 0.975, 2.228),
            (18.0, 0.975, 2.101),
            (30.0, 0.995, 2.750),
            (120.0, 0.975, 1.980),
            (1e7, 0.975, 1.960),
        ] {
            close(t_quantile(p, df), t, 6e-4);
            close(t_quantile(1.0 - p, df), -t, 6e-4);
            close(t_two_sided(t_quantile(p, df), df), 2.0 * (1.0 - p), 1e-9);
        }
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middle_ones() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(stddev(&[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(stddev(&[1.0]), 0.0);
    }

    #[test]
    fn gamma_and_beta_have_their_known_values() {
        close(ln_gamma(1.0), 0.0, 1e-12);
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-12);
        close(ln_gamma(11.0), 3_628_800.0_f64.ln(), 1e-10);
        close(beta_inc(2.0, 3.0, 0.4), 0.5248, 1e-12);
        close(beta_inc(0.5, 0.5, 0.5), 0.5, 1e-12);
        close(beta_inc(5.0, 1.0, 0.9), 0.9_f64.powi(5), 1e-12);
    }

    /// Every part is worked out by hand beside it.
    #[test]
    fn welch_is_the_quotient_of_its_definition() {
        let (a, b) = ([10.0, 12.0, 11.0, 13.0], [14.0, 18.0, 16.0]);
        let found = Difference::welch(&Sample::independent(&a), &Sample::independent(&b));
        // Means 11.5 and 16; variances 5/3 and 4; squared errors 5/12 and 4/3.
        close(found.estimate, 4.5, 1e-12);
        close(found.standard_error, (5.0 / 12.0 + 4.0 / 3.0_f64).sqrt(), 1e-12);
        let degrees = 1.75_f64.powi(2) / ((25.0 / 144.0) / 3.0 + (16.0 / 9.0) / 2.0);
        close(found.degrees, degrees, 1e-12);
        let (low, high) = found.interval(0.95);
        close((low + high) / 2.0, 4.5, 1e-9);
        assert!(low > 0.0 && found.p_value() < 0.05);
    }

    #[test]
    fn holm_keeps_the_order_and_multiplies_the_smallest_most() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            close(*found, wanted, 1e-12);
        }
        assert_eq!(holm(&[0.7, 0.9]), vec![1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn alike_neighbours_make_a_mean_less_sure() {
        let steady = [1.0, 3.0, 2.0, 1.5, 2.5, 1.2, 2.8, 2.1, 1.9, 2.4];
        let mut drifting = steady;
        drifting.sort_by(f64::total_cmp);
        let (steady, drifting) = (Sample::in_order(&steady), Sample::in_order(&drifting));
        assert_eq!(steady.correlation, 0.0);
        assert!(drifting.correlation > 0.5 && drifting.effective_count < 4.0);
        assert!(drifting.mean_variance > 3.0 * steady.mean_variance);
    }

    #[test]
    fn what_would_have_been_seen_grows_with_the_power_asked_for() {
        let side = Sample::independent(&[1.0, 1.1, 0.9, 1.05]);
        let found = Difference::welch(&side, &side);
        assert_eq!(found.p_value(), 1.0);
        let (likely, surely) = (found.detectable(ALPHA, 0.8), found.detectable(ALPHA, 0.95));
        assert!(0.0 < likely && likely < surely);
        let (low, high) = found.interval(0.95);
        close(low, -high, 1e-15);
    }
}
