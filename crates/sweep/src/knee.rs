//! Where more load stops to bring more throughput, and where it costs too much latency.

use crate::usl::{REDRAWS, TAIL, normal};
use assay_measure::prng::{Purpose, Stream};

/// A doubling of the load that brings less than this part more is no gain.
pub(crate) const GAIN: f64 = 0.05;

/// One step of a curve as the rules see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Sessions, CPUs or operations per s asked for: what the curve is drawn over.
    pub load: u64,
    /// Throughput, per s.
    pub rate: f64,
    /// 99th percentile of the operation latency, us, if there were enough operations.
    pub us_p99: Option<f64>,
}

/// Throughput over the best of all smaller loads, less 1, by step; the first has none.
///
/// Points are in ascending order of load.
pub(crate) fn gains(points: &[Point]) -> Vec<Option<f64>> {
    (0..points.len())
        .map(|at| {
            let best = best_of(&points[..at])?;
            (best.rate > 0.0).then(|| points[at].rate / best.rate - 1.0)
        })
        .collect()
}

/// The first of the points with the most throughput.
fn best_of(points: &[Point]) -> Option<&Point> {
    let mut best: Option<&Point> = None;
    for point in points {
        if best.is_none_or(|best| point.rate > best.rate) {
            best = Some(point);
        }
    }
    best
}

/// What a step has to bring over the best of the smaller loads: 5 %, and for a step of less
/// than a doubling the same rate of growth, so that small steps do not end a straight line.
fn needed(best: u64, load: u64) -> f64 {
    let doublings = (load as f64 / best.max(1) as f64).log2().clamp(0.0, 1.0);
    (1.0 + GAIN).powf(doublings) - 1.0
}

/// Whether each step gained; the first counts as a gain over nothing.
pub(crate) fn gained(points: &[Point]) -> Vec<bool> {
    let gains = gains(points);
    (0..points.len())
        .map(|at| match (best_of(&points[..at]), gains[at]) {
            (Some(best), Some(gain)) => gain >= needed(best.load, points[at].load),
            // Anything is a gain over nothing.
            _ => points[at].rate > 0.0,
        })
        .collect()
}

/// The knee of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knee {
    /// Index of the last step that gained; a later one did not.
    At(usize),
    /// The last step still gained: the knee is beyond it.
    Beyond,
    /// No step gained over the first: the knee is at it or below.
    AtOrBelowFirst,
    /// Fewer than two steps.
    TooFew,
}

/// Last step with a gain.
pub(crate) fn knee(points: &[Point]) -> Knee {
    if points.len() < 2 {
        return Knee::TooFew;
    }
    match gained(points).iter().rposition(|gained| *gained) {
        Some(at) if at + 1 == points.len() => Knee::Beyond,
        Some(0) | None => Knee::AtOrBelowFirst,
        Some(at) => Knee::At(at),
    }
}

/// The lowest and the highest load at which 95 % of redrawn curves have their knee: every step is drawn anew around its
/// rate with its own standard error (`errors`, over the rate). A curve that still gains has it at its last load.
pub(crate) fn range(points: &[Point], errors: &[f64], seed: u64) -> Option<(u64, u64)> {
    let mut random = Stream::new(seed, 1, Purpose::Resample);
    let last = points.len().checked_sub(1)?;
    let mut loads: Vec<u64> = (0..REDRAWS)
        .map(|_| {
            let noisy = points.iter().zip(errors).map(|(point, error)| Point {
                rate: point.rate * (1.0 + error * normal(&mut random)).max(0.0),
                ..*point
            });
            let noisy: Vec<Point> = noisy.collect();
            let at = match knee(&noisy) {
                Knee::At(at) => at,
                Knee::Beyond => last,
                Knee::AtOrBelowFirst | Knee::TooFew => 0,
            };
            points[at].load
        })
        .collect();
    loads.sort_unstable();
    let rank = (TAIL * REDRAWS as f64) as usize;
    Some((loads[rank], loads[REDRAWS - 1 - rank]))
}

/// The highest load that keeps a latency goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Index of the last step before the first that breaks the goal.
    Until(usize),
    /// Every step keeps it: index of the last.
    Throughout(usize),
    /// The first step breaks it.
    Never,
    /// No step had enough operations for a 99th percentile.
    Unknown,
}

/// Steps without a percentile are passed over.
pub(crate) fn kept(points: &[Point], goal_us: f64) -> Kept {
    let mut last = None;
    for (at, point) in points.iter().enumerate() {
        match point.us_p99 {
            Some(p99) if p99 <= goal_us => last = Some(at),
            Some(_) => return last.map_or(Kept::Never, Kept::Until),
            None => {}
        }
    }
    last.map_or(Kept::Unknown, Kept::Throughout)
}
