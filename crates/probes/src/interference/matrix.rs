//! The matrix: what becomes of each role beside each other one, in multiples of alone, and whether that is more than noise.

use super::info::{CLOSE, FASTER, NOISE, SLOWER, UNKNOWN};
use super::role::ROLES;
use assay_measure::histogram::Histogram;
use assay_measure::statistics::{ALPHA, Difference, holm, mean, stddev};
use std::collections::BTreeMap;

/// Rounds below which their spread says nothing.
pub(super) const LEAST_ROUNDS: usize = 4;
/// Less than this factor either way is no news, however sure it is. Decided here.
pub(super) const NEWS_RATIO: f64 = 1.2;
/// The rate says it where it fell by so much more than the percentile rose. Decided here.
const BY_RATE: f64 = 2.0;

/// A role in a slice.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) round: u32,
    pub(super) role: usize,
    pub(super) beside: Option<usize>,
    pub(super) latency: Histogram,
}

/// What a role did in several slices.
#[derive(Clone, Debug, Default)]
pub(super) struct Pooled {
    pub(super) latency: Histogram,
    pub(super) slices: u64,
}

impl Pooled {
    fn add(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.slices += other.slices;
    }

    fn without(&self, part: &Self) -> Option<Self> {
        let latency = self.latency.difference(&part.latency)?;
        Some(Self { latency, slices: self.slices - part.slices })
    }

    /// Operations a slice.
    pub(super) fn per_slice(&self) -> Option<f64> {
        (self.slices > 0).then(|| self.latency.count() as f64 / self.slices as f64)
    }

    /// The same for a quotient: half an operation a slice more, so that a role that came to nothing has a logarithm.
    fn for_ratio(&self) -> f64 {
        self.latency.count() as f64 / self.slices as f64 + HALF
    }

    pub(super) fn us(&self, quantile: f64) -> Option<f64> {
        Some(self.latency.percentile_ns(quantile)? as f64 / 1000.0)
    }
}

/// What a role did in each round, alone or beside another.
pub(super) fn rounds(readings: &[Reading], role: usize, beside: Option<usize>) -> BTreeMap<u32, Pooled> {
    let mut rounds: BTreeMap<u32, Pooled> = BTreeMap::new();
    for reading in readings.iter().filter(|reading| (reading.role, reading.beside) == (role, beside)) {
        rounds.entry(reading.round).or_default().add(&Pooled { latency: reading.latency.clone(), slices: 1 });
    }
    rounds
}

pub(super) fn pooled<'a>(rounds: impl Iterator<Item = &'a Pooled>) -> Pooled {
    rounds.fold(Pooled::default(), |mut whole, round| {
        whole.add(round);
        whole
    })
}

/// A figure beside another role over that alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Multiple {
    pub(super) alone: f64,
    pub(super) beside: f64,
    /// The quotient, and its 95 % interval.
    pub(super) times: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    p_value: f64,
}

/// An ordered pair.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) role: usize,
    pub(super) beside: usize,
    pub(super) rounds: usize,
    pub(super) p99: Option<Multiple>,
    pub(super) p90: Option<Multiple>,
    pub(super) rate: Option<Multiple>,
    /// One of the words of `info`.
    pub(super) verdict: &'static str,
    /// Whether the rate says it rather than the percentile, which understates it or is not known.
    pub(super) is_by_rate: bool,
}

/// Of an operation, added to the rates of a quotient.
const HALF: f64 = 0.5;

impl Cell {
    /// The 99th percentile; where too few operations are beyond it, the 90th.
    pub(super) fn judged(&self) -> Option<Multiple> {
        self.p99.or(self.p90)
    }

    /// Judges by what the corrected probabilities of the percentile and of the rate are. A role that is stopped for long has few
    /// operations that wait, and its percentiles miss them: then its rate says it.
    fn judge(&mut self, corrected: &mut impl Iterator<Item = f64>) {
        let mut verdict = |multiple: Option<Multiple>, times: fn(f64) -> f64| match multiple {
            None => UNKNOWN,
            Some(_) if corrected.next().is_none_or(|p_value| p_value >= ALPHA) => NOISE,
            Some(multiple) if times(multiple.times) >= NEWS_RATIO => SLOWER,
            Some(multiple) if times(multiple.times) <= 1.0 / NEWS_RATIO => FASTER,
            Some(_) => CLOSE,
        };
        let latency = verdict(self.judged(), |times| times);
        let rate = verdict(self.rate, |times| 1.0 / times);
        let fewer = self.rate.map_or(1.0, |rate| 1.0 / rate.times);
        let waits = self.judged().map_or(1.0, |multiple| multiple.times);
        let is_worse = rate == SLOWER && (latency != SLOWER || fewer > BY_RATE * waits);
        self.is_by_rate = is_worse || latency == UNKNOWN && self.rate.is_some();
        self.verdict = if self.is_by_rate { rate } else { latency };
    }
}

/// All ordered pairs, row by row. In no more than a share of [`ALPHA`] of all runs is any of them expected to be called slower or
/// faster where none is (Holm's correction over the percentiles and the rates of all).
pub(super) fn matrix(readings: &[Reading]) -> Vec<Cell> {
    let all = 0..ROLES.len();
    let pairs = all.clone().flat_map(|role| all.clone().filter(move |other| *other != role).map(move |o| (role, o)));
    let mut cells: Vec<Cell> = pairs.map(|(role, beside)| cell(readings, role, beside)).collect();
    let known = cells.iter().flat_map(|cell| [cell.judged(), cell.rate]).flatten().map(|multiple| multiple.p_value);
    let mut corrected = holm(&known.collect::<Vec<_>>()).into_iter();
    cells.iter_mut().for_each(|cell| cell.judge(&mut corrected));
    cells
}

fn cell(readings: &[Reading], role: usize, beside: usize) -> Cell {
    let (mut alone, mut together) = (rounds(readings, role, None), rounds(readings, role, Some(beside)));
    // Only rounds that have both: what drifts from round to round is in both or in neither.
    alone.retain(|round, _| together.contains_key(round));
    together.retain(|round, _| alone.contains_key(round));
    let (alone, together): (Vec<Pooled>, Vec<Pooled>) = alone.into_values().zip(together.into_values()).unzip();
    let rates = [&alone, &together].map(|rounds| rounds.iter().map(Pooled::for_ratio).collect());
    let sides = [alone, together].map(Side::of);
    Cell {
        role,
        beside,
        rounds: sides[0].as_ref().map_or(0, |side| side.without.len()),
        p99: multiple(&sides, 0.99),
        p90: multiple(&sides, 0.9),
        rate: rate(&rates),
        verdict: UNKNOWN,
        is_by_rate: false,
    }
}

/// All rounds of one side, and all but each.
struct Side {
    whole: Pooled,
    without: Vec<Pooled>,
}

impl Side {
    fn of(rounds: Vec<Pooled>) -> Option<Self> {
        let whole = pooled(rounds.iter());
        let without = rounds.iter().map(|round| whole.without(round)).collect::<Option<_>>()?;
        Some(Self { whole, without })
    }
}

/// The quotient of a percentile of both sides, of all their operations, with its interval: by the grouped jackknife over the rounds of its
/// logarithm (Miller, Biometrika 61, 1974), so that a percentile with few operations beyond it in a slice still has its value, and a
/// round that stands out widens the interval.
fn multiple(sides: &[Option<Side>; 2], quantile: f64) -> Option<Multiple> {
    let [Some(alone), Some(beside)] = sides else { return None };
    let n = alone.without.len() as f64;
    let [before, after] = [alone.whole.us(quantile)?, beside.whole.us(quantile)?];
    let whole = (after / before).ln();
    let pseudo = |(alone, beside): (&Pooled, &Pooled)| {
        Some(n * whole - (n - 1.0) * (beside.us(quantile)? / alone.us(quantile)?).ln())
    };
    let pseudo: Option<Vec<f64>> = alone.without.iter().zip(&beside.without).map(pseudo).collect();
    told(before, after, &pseudo?)
}

/// The quotient of the rates, by round: a round in which a role goes on counts no more than one in which it stands still.
fn rate([alone, beside]: &[Vec<f64>; 2]) -> Option<Multiple> {
    let logarithms: Vec<f64> = alone.iter().zip(beside).map(|(alone, beside)| (beside / alone).ln()).collect();
    let mean_rate = |rates: &[f64]| mean(&rates.iter().map(|rate| rate.ln()).collect::<Vec<_>>()).exp();
    let multiple = told(mean_rate(alone), mean_rate(beside), &logarithms)?;
    Some(Multiple { alone: multiple.alone - HALF, beside: multiple.beside - HALF, ..multiple })
}

/// The quotient of two figures, of whose logarithm each round has its own value.
fn told(alone: f64, beside: f64, by_round: &[f64]) -> Option<Multiple> {
    if by_round.len() < LEAST_ROUNDS {
        return None;
    }
    let n = by_round.len() as f64;
    let times = beside / alone;
    let standard_error = stddev(by_round) / n.sqrt();
    let difference = Difference { estimate: times.ln(), standard_error, degrees: n - 1.0 };
    let (low, high) = difference.interval(0.95);
    Some(Multiple { alone, beside, times, low: low.exp(), high: high.exp(), p_value: difference.p_value() })
}
