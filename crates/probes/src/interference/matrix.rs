//! The matrix: what becomes of each role beside each other one, in multiples of alone, and whether that is more than noise.

use super::role::ROLES;
use assay_measure::histogram::Histogram;
use assay_measure::statistics::{ALPHA, Difference, holm, stddev};
use std::collections::BTreeMap;

/// Rounds below which their spread says nothing.
pub(super) const LEAST_ROUNDS: usize = 4;
/// Less than this factor either way is no news, however sure it is. Decided here.
pub(super) const NEWS_RATIO: f64 = 1.2;

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
        (!self.latency.is_empty()).then(|| self.latency.count() as f64 / self.slices as f64)
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
    pub(super) verdict: Verdict,
}

/// What is said of an ordered pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Unknown,
    Noise,
    /// Told apart, by less than [`NEWS_RATIO`].
    Close,
    Slower,
    Faster,
}

impl Cell {
    /// The 99th percentile; where too few operations are beyond it, the 90th.
    pub(super) fn judged(&self) -> Option<Multiple> {
        self.p99.or(self.p90)
    }
}

/// All ordered pairs, row by row. Of all of them together no more than [`ALPHA`] are expected to be called slower or faster where
/// none is (Holm's correction).
pub(super) fn matrix(readings: &[Reading]) -> Vec<Cell> {
    let all = 0..ROLES.len();
    let pairs = all.clone().flat_map(|role| all.clone().filter(move |other| *other != role).map(move |o| (role, o)));
    let mut cells: Vec<Cell> = pairs.map(|(role, beside)| cell(readings, role, beside)).collect();
    let known = || cells.iter().filter_map(|cell| Some(cell.judged()?.p_value));
    let mut corrected = holm(&known().collect::<Vec<_>>()).into_iter();
    for cell in &mut cells {
        let Some(multiple) = cell.judged() else { continue };
        cell.verdict = match corrected.next() {
            Some(p_value) if p_value >= ALPHA => Verdict::Noise,
            _ if multiple.times >= NEWS_RATIO => Verdict::Slower,
            _ if multiple.times <= 1.0 / NEWS_RATIO => Verdict::Faster,
            _ => Verdict::Close,
        };
    }
    cells
}

fn cell(readings: &[Reading], role: usize, beside: usize) -> Cell {
    let (mut alone, mut together) = (rounds(readings, role, None), rounds(readings, role, Some(beside)));
    // Only rounds that have both: what drifts from round to round is in both or in neither.
    alone.retain(|round, _| together.contains_key(round));
    together.retain(|round, _| alone.contains_key(round));
    let (alone, together): (Vec<Pooled>, Vec<Pooled>) = alone.into_values().zip(together.into_values()).unzip();
    let sides = [alone, together].map(Side::of);
    Cell {
        role,
        beside,
        rounds: sides[0].as_ref().map_or(0, |side| side.without.len()),
        p99: multiple(&sides, |pooled| pooled.us(0.99)),
        p90: multiple(&sides, |pooled| pooled.us(0.9)),
        rate: multiple(&sides, Pooled::per_slice),
        verdict: Verdict::Unknown,
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

/// The quotient of a figure of both sides with its interval, by the grouped jackknife over the rounds of its logarithm (Miller,
/// Biometrika 61, 1974): percentiles of all operations, so that one with few of them beyond it in a slice still has its value, and a
/// round that stands out widens the interval.
fn multiple(sides: &[Option<Side>; 2], of: impl Fn(&Pooled) -> Option<f64>) -> Option<Multiple> {
    let [Some(alone), Some(beside)] = sides else { return None };
    let count = alone.without.len();
    if count < LEAST_ROUNDS {
        return None;
    }
    let [before, after] = [of(&alone.whole)?, of(&beside.whole)?];
    let whole = (after / before).ln();
    let n = count as f64;
    let pseudo = |(alone, beside): (&Pooled, &Pooled)| Some(n * whole - (n - 1.0) * (of(beside)? / of(alone)?).ln());
    let pseudo: Vec<f64> = alone.without.iter().zip(&beside.without).map(pseudo).collect::<Option<_>>()?;
    let difference = Difference { estimate: whole, standard_error: stddev(&pseudo) / n.sqrt(), degrees: n - 1.0 };
    let (low, high) = difference.interval(0.95);
    Some(Multiple {
        alone: before,
        beside: after,
        times: whole.exp(),
        low: low.exp(),
        high: high.exp(),
        p_value: difference.p_value(),
    })
}
