//! Which load to measure next by default: doubles it until there is no gain, then fills in.

use crate::knee::{Kept, Knee, Point, gained, kept, knee};

/// Two doublings in a row without a gain: one may have been a bad moment.
const FLAT: usize = 2;
/// Throughput this far below the best ends the rise at once.
const FALLEN: f64 = 0.8;
/// Steps spent on narrowing a latency goal.
const GOAL_STEPS: u64 = 4;
/// The goal's border is known well enough within this ratio of loads.
const GOAL_RATIO: f64 = 1.125;

/// What bounds an automatic sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The first load, which is doubled: 1, or the number of hosts; at most the greatest.
    pub least_load: u64,
    /// No load above this; at least 1.
    pub max_load: u64,
    /// 99th percentile to keep, us, if one was asked for.
    pub goal_us: Option<f64>,
}

impl Limits {
    /// Steps of an automatic sweep at most: doublings, both sides of the knee, the narrowing of a goal.
    #[must_use]
    pub fn most_steps(&self) -> u64 {
        let times = self.max_load.div_ceil(self.least_load.max(1)).max(1);
        let doublings = u64::from(times.next_power_of_two().ilog2()) + 1;
        doublings + 2 + self.goal_us.map_or(0, |_| GOAL_STEPS)
    }
}

/// The next load, or `None` when the curve is known. `measured` is in any order;
/// `refused` is the smallest load that could not be run.
#[must_use]
pub fn next(measured: &[Point], refused: Option<u64>, limits: &Limits) -> Option<u64> {
    let mut points = measured.to_vec();
    points.sort_by_key(|point| point.load);
    points.dedup_by_key(|point| point.load);
    let Some(last) = points.last() else {
        return refused.is_none().then_some(limits.least_load);
    };
    if refused.is_none() && last.load < limits.max_load && !topped(&points, limits) {
        return Some((last.load * 2).min(limits.max_load));
    }
    let unmeasured = |load: &u64| points.iter().all(|point| point.load != *load);
    around_knee(&points, refused).or_else(|| around_goal(&points, limits)).filter(unmeasured)
}

/// Whether a higher load would tell nothing new.
fn topped(points: &[Point], limits: &Limits) -> bool {
    let last = points[points.len() - 1];
    let best = points.iter().map(|point| point.rate).fold(0.0, f64::max);
    let flat = gained(points).iter().rev().take_while(|g| !**g).count();
    let no_gain = flat >= FLAT || last.rate < FALLEN * best;
    let Some(goal) = limits.goal_us else {
        return no_gain;
    };
    // More load costs latency: once the goal is broken, the way up tells no more of it. Two in a row, for the same reason.
    let breaks = |point: &&Point| point.us_p99.is_some_and(|p99| p99 > goal);
    let broken = points.iter().rev().take_while(breaks).count();
    broken >= FLAT || (no_gain && (broken > 0 || last.us_p99.is_none()))
}

/// Half a step on either side of the knee.
fn around_knee(points: &[Point], refused: Option<u64>) -> Option<u64> {
    let at = match knee(points) {
        Knee::At(at) => at,
        Knee::Beyond if refused.is_some() => points.len() - 1,
        _ => return None,
    };
    let load = points[at].load;
    let below = at.checked_sub(1).map(|below| points[below].load);
    let above = points.get(at + 1).map(|point| point.load).or(refused);
    let between = |low: u64, high: u64| (high >= low * 2 && high - low > 1).then(|| low.midpoint(high));
    let lower = below.and_then(|below| between(below, load));
    let upper = above.and_then(|above| between(load, above));
    lower.or(upper).filter(|load| refused.is_none_or(|refused| *load < refused))
}

/// Halves the gap between the highest load that keeps the goal and the lowest that breaks it.
fn around_goal(points: &[Point], limits: &Limits) -> Option<u64> {
    let Kept::Until(at) = kept(points, limits.goal_us?) else {
        return None;
    };
    let low = points[at].load;
    // A step without a percentile may lie between: it is no border.
    let high = points[at + 1..].iter().find(|point| point.us_p99.is_some())?.load;
    let is_doubled = |load: u64| load.is_multiple_of(limits.least_load) && (load / limits.least_load).is_power_of_two();
    let spent = points.iter().filter(|point| !is_doubled(point.load));
    let known = high - low <= 1 || high as f64 <= GOAL_RATIO * low as f64;
    (!known && (spent.count() as u64) < 2 + GOAL_STEPS).then(|| low.midpoint(high))
}
