//! How often the interval holds the truth, and whether what is not steady is told, on simulated series.

use super::*;
use crate::prng::{Purpose, Stream};

const TRUTH: f64 = 1000.0;
const SERIES: u64 = 200;

struct Noise(Stream);

impl Noise {
    fn new(seed: u64) -> Self {
        Self(Stream::new(seed, 0, Purpose::Test))
    }

    /// As good as normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.0.uniform_f64()).sum::<f64>() - 6.0
    }

    /// Of mean 1.
    fn lognormal(&mut self, sigma: f64) -> f64 {
        (sigma * self.normal() - sigma * sigma / 2.0).exp()
    }
}

type Series = Box<dyn FnMut(usize) -> f64>;

/// Of variation `cv`, neighbours with this correlation (a first-order autoregressive series).
fn correlated(phi: f64, cv: f64, seed: u64) -> Series {
    let mut noise = Noise::new(seed);
    let mut state = noise.normal();
    Box::new(move |_| {
        let value = TRUTH * (1.0 + cv * state);
        state = phi * state + (1.0 - phi * phi).sqrt() * noise.normal();
        value
    })
}

fn heavy(sigma: f64, seed: u64) -> Series {
    let mut noise = Noise::new(seed);
    Box::new(move |_| TRUTH * noise.lognormal(sigma))
}

/// A level that others change.
fn moved(seed: u64, factor: impl Fn(usize) -> f64 + 'static) -> Series {
    let mut steady = correlated(0.3, 0.05, seed);
    Box::new(move |at| steady(at) * factor(at))
}

fn followed(watch: &mut Watch, most: usize, mut next: impl FnMut(usize) -> Portion) -> End {
    (0..most).find_map(|at| watch.take(&next(at))).unwrap_or_else(|| watch.over())
}

/// Of all series: how they ended (reached, changed, time over), and how many that reached it hold the truth in the
/// interval, and within what was asked.
#[derive(Debug, Default)]
struct Trial {
    ends: [u64; 3],
    held: u64,
    within: u64,
}

impl Trial {
    fn of(least: usize, ratio: f64, most: usize, make: impl Fn(u64) -> Series) -> Self {
        let mut trial = Self::default();
        for seed in 0..SERIES {
            let mut watch = Watch::new(Statistic::Mean, ratio, least);
            let mut next = make(seed);
            let end = followed(&mut watch, most, |at| Portion { amount: next(at), weight: 1.0, ..Portion::default() });
            trial.ends[end as usize] += 1;
            if end == End::Reached {
                let look = watch.last().expect("a look that agreed");
                trial.held += u64::from((look.value - TRUTH).abs() <= look.half);
                trial.within += u64::from((look.value - TRUTH).abs() <= ratio * look.value);
            }
        }
        trial
    }

    /// The interval holds the truth at its rate (give or take what 200 series scatter), and what was asked is true.
    fn is_honest(&self) -> bool {
        let share = |count: u64| count as f64 / self.ends[0] as f64;
        share(self.held) >= 0.92 && share(self.within) >= 0.95
    }
}

#[test]
fn the_interval_holds_the_truth_at_its_rate_however_often_it_was_looked_at() {
    let seconds = SECONDS_LEAST;
    let trials = [
        ("white", Trial::of(seconds, 0.05, 600, |seed| correlated(0.0, 0.1, seed))),
        ("white, narrow", Trial::of(seconds, 0.02, 600, |seed| correlated(0.0, 0.1, seed))),
        ("correlated", Trial::of(seconds, 0.05, 600, |seed| correlated(0.5, 0.1, seed))),
        ("much correlated", Trial::of(seconds, 0.05, 1200, |seed| correlated(0.8, 0.1, seed))),
        ("heavy tails", Trial::of(seconds, 0.05, 4000, |seed| heavy(0.8, seed))),
        ("rounds", Trial::of(ROUNDS_LEAST, 0.05, 80, |seed| correlated(0.0, 0.1, seed))),
        ("quiet rounds", Trial::of(ROUNDS_LEAST, 0.05, 80, |seed| correlated(0.0, 0.03, seed))),
    ];
    for (name, trial) in trials {
        assert!(trial.ends[0] > SERIES * 8 / 10 && trial.is_honest(), "{name}: {trial:?}");
        // Steady series are hardly ever told as changed.
        assert!(trial.ends[1] <= SERIES / 40, "{name}: {trial:?}");
    }
}

#[test]
fn a_step_a_drift_and_a_burst_that_ends_are_not_measurable_now() {
    let trials = [
        ("step", Trial::of(SECONDS_LEAST, 0.05, 300, |seed| moved(seed, |at| if at < 25 { 1.0 } else { 0.8 }))),
        ("burst", Trial::of(SECONDS_LEAST, 0.05, 300, |seed| moved(seed, |at| if at < 15 { 1.0 } else { 0.4 }))),
        ("drift", Trial::of(SECONDS_LEAST, 0.05, 120, |seed| moved(seed, |at| 1.0 - 0.6 * at as f64 / 120.0))),
        ("rounds", Trial::of(ROUNDS_LEAST, 0.05, 20, |seed| moved(seed, |at| if at < 5 { 1.0 } else { 0.6 }))),
    ];
    for (name, trial) in trials {
        assert!(trial.ends[1] >= SERIES * 9 / 10, "{name}: {trial:?}");
    }
}

#[test]
fn a_correlation_that_outlasts_the_time_is_not_taken_for_knowledge() {
    let trial = Trial::of(SECONDS_LEAST, 0.02, 300, |seed| correlated(0.95, 0.1, seed));
    assert!(trial.ends[0] <= SERIES / 20, "{trial:?}");
}

#[test]
fn a_percentile_is_that_of_all_and_its_interval_holds_the_truth() {
    let (mut held, mut reached) = (0, 0);
    // Exponential durations of mean 100 us: the p99 is 100 ln 100 = 460.5 us.
    let truth = 100.0 * 100.0_f64.ln();
    for seed in 0..60 {
        let mut stream = Stream::new(seed, 1, Purpose::Test);
        let mut watch = Watch::new(Statistic::Quantile(0.99), 0.05, SECONDS_LEAST);
        let end = followed(&mut watch, 400, |_| {
            let mut durations = Histogram::new();
            (0..1100).for_each(|_| durations.record((-1e5 * (1.0 - stream.uniform_f64()).ln()) as u64));
            Portion { weight: 1.0, durations, ..Portion::default() }
        });
        if end == End::Reached {
            let look = watch.last().expect("a look that agreed");
            reached += 1;
            held += u32::from((look.value - truth).abs() <= look.half);
        }
    }
    assert!(reached == 60 && held >= 54, "{held} of {reached}");
}

#[test]
fn nothing_is_known_of_too_few_steps_or_of_nothing() {
    let mut watch = Watch::new(Statistic::Mean, 0.05, SECONDS_LEAST);
    let idle = Portion { weight: 1.0, ..Portion::default() };
    assert_eq!(followed(&mut watch, 3, |_| idle.clone()), End::TimeOver);
    assert_eq!(watch.last(), None);
    assert_eq!(followed(&mut watch, 100, |_| idle.clone()), End::TimeOver);
    let mut watch = Watch::new(Statistic::Quantile(0.5), 0.05, SECONDS_LEAST);
    assert_eq!(followed(&mut watch, 100, |_| idle.clone()), End::TimeOver);
}

#[test]
fn a_goal_is_a_figure_and_a_share() {
    for text in ["p99=\u{b1}5%", "p99=5%", " p99 = +-5 %"] {
        assert_eq!(Goal::parse(text), Ok(Goal { figure: "p99".to_owned(), ratio: 0.05 }), "{text}");
    }
    for text in ["p99", "p99=\u{b1}0%", "p99=-5%", "=5%", "p99=5", "p99=\u{b1}60%", "p99=NaN%"] {
        assert!(Goal::parse(text).unwrap_err().starts_with("give "), "{text}");
    }
}
