//! Non-uniform random distributions: which of n slots comes next.
//!
//! Each is exact for any n and needs no table. Comments beside the formulas name the sources.

use super::super::spec::{Distribution, SpecError};
use super::choice::Deck;
use super::invalid;
use assay_measure::permutation::Permutation;
use assay_measure::prng::Stream;

/// Maximum number of slots that can be scattered; 4 PiB in blocks of 4 KiB.
const MOST_SCATTERED: u64 = 1 << 40;

/// Draws slots 0..n.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    slots: u64,
    law: Law,
    /// Scatters popular slots everywhere, to the same places for every clone; `None`: they are adjacent, starting at
    /// `first`.
    scatter: Option<Permutation>,
    first: u64,
}

#[derive(Clone, Debug)]
enum Law {
    Zipf(Zipf),
    SelfSimilar { power: f64 },
    Normal { mean: f64, deviation: f64 },
    Zoned { deck: Deck, zones: Vec<(u64, u64)> },
}

impl Sampler {
    /// A sampler over `slots` slots (at least 1) of a file; `None` for the uniform distribution.
    ///
    /// # Errors
    /// Parameters outside their range.
    pub(super) fn new(
        distribution: &Distribution,
        slots: u64,
        seed: u64,
        file: u16,
    ) -> Result<Option<Self>, SpecError> {
        let (law, center) = match distribution {
            Distribution::Random => return Ok(None),
            Distribution::Zipf(theta, center) => {
                if !(theta.is_finite() && *theta > 0.0) {
                    return Err(invalid(format!("zipf theta {theta} must be above 0")));
                }
                (Law::Zipf(Zipf::new(slots, *theta)), Some(*center))
            }
            Distribution::Pareto(h, center) => {
                if !(*h > 0.0 && *h < 1.0) {
                    return Err(invalid(format!("pareto h {h} must lie between 0 and 1")));
                }
                // Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (1994), self-similar
                // distribution: 1 - h of the accesses go to the first h of the slots, and so on recursively.
                let power = h.ln() / (1.0 - h).ln();
                (Law::SelfSimilar { power }, Some(*center))
            }
            Distribution::Normal(percent, center) => {
                if !(0.0..=100.0).contains(percent) {
                    return Err(invalid(format!("normal deviation {percent} must lie between 0 and 100 percent")));
                }
                let law = Law::Normal {
                    mean: slots as f64 * center.unwrap_or(0.5),
                    deviation: slots as f64 * percent / 100.0,
                };
                (law, None)
            }
            Distribution::Zoned(zones) => (zoned(zones, slots)?, None),
        };
        if let Some(Some(center)) = center
            && !(0.0..=1.0).contains(&center)
        {
            return Err(invalid(format!("center {center} must lie between 0 and 1")));
        }
        let scatter = match center {
            Some(None) if slots > MOST_SCATTERED => {
                return Err(invalid(format!(
                    "{slots} blocks are too many for this distribution: use larger blocks or give it a center"
                )));
            }
            Some(None) => Some(Permutation::new(seed, u32::from(file) + 1, slots)),
            _ => None,
        };
        let first = (center.flatten().unwrap_or(0.0) * slots as f64) as u64;
        Ok(Some(Self { slots, law, scatter, first }))
    }

    /// The next slot.
    #[inline]
    pub(super) fn draw(&mut self, stream: &mut Stream) -> u64 {
        let rank = match &mut self.law {
            Law::Zipf(zipf) => zipf.draw(stream) - 1,
            Law::SelfSimilar { power } => {
                let at = stream.uniform_f64().powf(*power) * self.slots as f64;
                (at as u64).min(self.slots - 1)
            }
            Law::Normal { mean, deviation } => {
                return normal_below(self.slots, *mean, *deviation, stream);
            }
            Law::Zoned { deck, zones } => {
                let (first, slots) = zones[deck.draw(stream)];
                return first + stream.below(slots);
            }
        };
        match &self.scatter {
            Some(permutation) => permutation.slot_of_key(rank + 1),
            None => (rank + self.first) % self.slots,
        }
    }
}

/// Consecutive zones: percent of the draws, percent of the slots.
fn zoned(zones: &[(u32, u32)], slots: u64) -> Result<Law, SpecError> {
    let share = |of: fn(&(u32, u32)) -> u32| zones.iter().map(|z| u64::from(of(z))).sum::<u64>();
    if share(|z| z.0) != 100 || share(|z| z.1) > 100 {
        return Err(invalid(format!(
            "zones have {} % of the I/Os and {} % of the region: the I/Os must add up to 100 %, the region to at \
             most 100 %",
            share(|z| z.0),
            share(|z| z.1)
        )));
    }
    let at = |percent: u64| (u128::from(slots) * u128::from(percent) / 100) as u64;
    let mut begin = 0;
    let mut places = Vec::with_capacity(zones.len());
    for (_, percent) in zones {
        let end = begin + u64::from(*percent);
        // A zone too small for a slot of its own uses the one in which it begins.
        let first = at(begin).min(slots - 1);
        places.push((first, at(end).saturating_sub(first).max(1)));
        begin = end;
    }
    let deck = Deck::new(zones.iter().map(|zone| zone.0).collect())?;
    Ok(Law::Zoned { deck, zones: places })
}

/// A normal variate by Marsaglia's polar method (1964), drawn again until it lies in 0..slots.
fn normal_below(slots: u64, mean: f64, deviation: f64, stream: &mut Stream) -> u64 {
    loop {
        let x = 2.0 * stream.uniform_f64() - 1.0;
        let y = 2.0 * stream.uniform_f64() - 1.0;
        let square = x * x + y * y;
        if square >= 1.0 || square == 0.0 {
            continue;
        }
        let factor = (-2.0 * square.ln() / square).sqrt() * deviation;
        for at in [mean + x * factor, mean + y * factor] {
            if at >= 0.0 && (at as u64) < slots {
                return at as u64;
            }
        }
        if deviation == 0.0 {
            // The mean at the very end.
            return slots - 1;
        }
    }
}

/// P(k) proportional to k^-theta for k in 1..=n, by rejection-inversion (Hoermann and Derflinger,
/// "Rejection-Inversion to Generate Variates from Monotone Discrete Distributions", 1996): exact, no sum over n.
#[derive(Clone, Debug)]
struct Zipf {
    n: u64,
    theta: f64,
    /// Integral of x^-theta up to 1.5, less the first term.
    low: f64,
    /// The integral up to n + 1/2.
    high: f64,
    /// Variates this close below their integer are accepted immediately.
    sure: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self { n, theta, low: 0.0, high: 0.0, sure: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n as f64 + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u = self.high + stream.uniform_f64() * (self.low - self.high);
            let x = self.inverse(u);
            let k = (x.round().max(1.0) as u64).min(self.n);
            let at = k as f64;
            if at - x <= self.sure || u >= self.integral(at + 0.5) - self.density(at) {
                return k;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integral of the density from 1 to x; also accurate if theta is 1 or close to it.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.theta) * log;
        if power.abs() > 1e-8 { power.exp_m1() / power * log } else { log * (1.0 + power / 2.0) }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.theta)).max(-1.0);
        if power.abs() > 1e-8 { (power.ln_1p() / power * area).exp() } else { (area * (1.0 - power / 2.0)).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::prng::Purpose;

    const DRAWS: u32 = 200_000;

    fn counts(distribution: &Distribution, slots: u64) -> Vec<f64> {
        let mut sampler = Sampler::new(distribution, slots, 5, 0).unwrap().unwrap();
        let mut stream = Stream::new(5, 1, Purpose::Test);
        let mut counts = vec![0.0; slots as usize];
        for _ in 0..DRAWS {
            counts[sampler.draw(&mut stream) as usize] += 1.0;
        }
        counts
    }

    /// Pearson's statistic of counts against probabilities, less its mean, in standard deviations.
    fn surprise(counts: &[f64], probabilities: &[f64]) -> f64 {
        let chi_square: f64 = counts
            .iter()
            .zip(probabilities)
            .map(|(n, p)| (n - p * f64::from(DRAWS)).powi(2) / (p * f64::from(DRAWS)))
            .sum();
        let freedom = counts.len() as f64 - 1.0;
        (chi_square - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn zipf_draws_have_the_closed_form_at_any_exponent() {
        for theta in [0.3, 0.9, 1.0, 1.2, 2.5] {
            // With a center the ranks start there, in order.
            let slots = 100;
            let counts = counts(&Distribution::Zipf(theta, Some(0.25)), slots);
            let weights: Vec<f64> =
                (0..slots).map(|i| ((i + slots - 25) % slots + 1) as f64).map(|rank| rank.powf(-theta)).collect();
            let sum: f64 = weights.iter().sum();
            let probabilities: Vec<f64> = weights.iter().map(|w| w / sum).collect();
            let surprise = surprise(&counts, &probabilities);
            assert!(surprise < 4.0, "theta {theta}: {surprise} deviations");
        }
    }

    #[test]
    fn without_a_center_popular_slots_are_scattered() {
        let mut sorted = counts(&Distribution::Zipf(1.1, None), 64);
        let straight = counts(&Distribution::Zipf(1.1, Some(0.0)), 64);
        assert_ne!(sorted, straight);
        let hottest = sorted.iter().position(|n| *n == straight[0]);
        assert!(hottest.is_some_and(|at| at > 0), "{sorted:?}");
        sorted.sort_by(|a, b| b.total_cmp(a));
        let mut expected = straight;
        expected.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(sorted, expected);
    }

    #[test]
    fn pareto_is_self_similar() {
        for h in [0.2, 0.3] {
            let counts = counts(&Distribution::Pareto(h, Some(0.0)), 1000);
            let share = |part: f64| {
                let hot: f64 = counts[..(1000.0 * part) as usize].iter().sum();
                hot / f64::from(DRAWS)
            };
            // h of the slots have 1 - h of the draws, and the same holds within them.
            assert!((share(h) - (1.0 - h)).abs() < 0.005, "{}", share(h));
            assert!((share(h * h) - (1.0 - h).powi(2)).abs() < 0.01, "{}", share(h * h));
        }
    }

    #[test]
    fn normal_has_its_mean_and_its_deviation() {
        let moments = |counts: &[f64]| {
            let each = || counts.iter().enumerate().map(|(i, n)| (i as f64 + 0.5, n / f64::from(DRAWS)));
            let mean: f64 = each().map(|(x, p)| x * p).sum();
            let variance: f64 = each().map(|(x, p)| (x - mean).powi(2) * p).sum();
            (mean, variance.sqrt())
        };
        let (mean, deviation) = moments(&counts(&Distribution::Normal(5.0, None), 1000));
        assert!((mean - 500.0).abs() < 0.6 && (deviation - 50.0).abs() < 0.5, "{mean} {deviation}");
        let (mean, _) = moments(&counts(&Distribution::Normal(2.0, Some(0.2)), 1000));
        assert!((mean - 200.0).abs() < 0.6, "{mean}");
        // With the mean at an end: half of a bell curve, all inside.
        let half = counts(&Distribution::Normal(10.0, Some(1.0)), 1000);
        let expected = 1000.0 - 100.0 * (2.0 / std::f64::consts::PI).sqrt();
        assert!((moments(&half).0 - expected).abs() < 1.5);
        assert_eq!(counts(&Distribution::Normal(0.0, Some(1.0)), 10)[9], f64::from(DRAWS));
    }

    #[test]
    fn zones_have_their_shares_and_nothing_falls_outside() {
        let zones = Distribution::Zoned(vec![(60, 10), (30, 20), (8, 30), (2, 40)]);
        let counts = counts(&zones, 1000);
        let share = |from: usize, to: usize| counts[from..to].iter().sum::<f64>() / f64::from(DRAWS);
        let shares = [share(0, 100), share(100, 300), share(300, 600), share(600, 1000)];
        for (found, wanted) in shares.iter().zip([0.60, 0.30, 0.08, 0.02]) {
            assert!((found - wanted).abs() < 0.0005, "{shares:?}");
        }
        for tiny in 1..5 {
            let sampler = Sampler::new(&zones, tiny, 1, 0).unwrap();
            let (mut sampler, mut stream) = (sampler.unwrap(), Stream::new(1, 1, Purpose::Test));
            assert!((0..500).all(|_| sampler.draw(&mut stream) < tiny));
        }
    }

    #[test]
    fn parameters_that_cannot_be_are_refused() {
        for (bad, names) in [
            (Distribution::Zipf(0.0, None), "zipf theta 0"),
            (Distribution::Zipf(f64::NAN, None), "zipf theta NaN"),
            (Distribution::Zipf(1.2, Some(1.5)), "center 1.5"),
            (Distribution::Pareto(1.0, None), "pareto h 1"),
            (Distribution::Normal(101.0, None), "normal deviation 101"),
            (Distribution::Zoned(vec![(50, 50)]), "50 % of the I/Os"),
            (Distribution::Zoned(vec![(100, 101)]), "101 % of the region"),
        ] {
            let error = Sampler::new(&bad, 100, 1, 0).unwrap_err();
            assert!(error.to_string().contains(names), "{error}");
        }
    }
}
