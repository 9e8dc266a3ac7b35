//! How much is cold, from blocks that were read twice. Pure arithmetic.
//!
//! A read is slow if it takes much longer than the median of the second reads of its region. Three reads follow one another: first, second,
//! beside. A cold block is slow at the first of them alone, or at the first and at the one beside. Noise of the host and the tail of the
//! medium have no direction in time: they make the last read slow about as often as the first. So what is slow at the end alone is the control, and
//! a moment in which all three are slow counts for neither.

use super::sample::{Doubled, Touch};
use assay_measure::clock::Ns;
use assay_measure::statistics::{beta_inc, median};

/// A slow read takes so many times the median second read, and so much longer. Decided here.
pub(super) const SLOW_TIMES: f64 = 3.0;
pub(super) const SLOW_US: f64 = 500.0;
/// Blocks below which nothing is judged.
pub(super) const LEAST_PAIRS: usize = 32;
/// Part of the second reads that may be slow.
pub(super) const MOST_NOISE: f64 = 0.2;
/// First reads are slow everywhere from this part on; and then a cache is ruled out if fewer blocks beside them are slow.
pub(super) const EVERYWHERE: f64 = 0.95;
pub(super) const BESIDE: f64 = 0.1;
/// Noise alone makes at most this part of what is slow at one end alone slow at the begin: 0.57 was seen on a busy host. Decided here.
const UNEVEN: f64 = 0.6;
/// Chance of noise that is taken for coldness: of all, of a region that is called cold, and of one that is read in advance to be safe.
pub(super) const CHANCE: f64 = 1e-4;
const CHANCE_OF_REGION: f64 = 1e-3;
const CHANCE_OF_SAFETY: f64 = 0.05;
/// The normal quantile of a 95 % interval.
const Z: f64 = 1.959_964;

/// What the reads say.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Cold,
    /// At most the upper end of the interval.
    NoneFound,
    /// Why it cannot be told.
    Unknown(String),
}

/// Some of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slow {
    pub(super) slow: u64,
    pub(super) of: u64,
}

impl Slow {
    fn count(&mut self, is_slow: bool) {
        self.slow += u64::from(is_slow);
        self.of += 1;
    }

    pub(super) fn share(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.slow as f64 / self.of as f64 }
    }
}

/// What was seen in one region, or in all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Blocks, those in the page cache among them.
    pub(super) first: Slow,
    pub(super) second: Slow,
    /// Blocks beside one whose first read was quick, and beside one whose first read was slow.
    pub(super) beside_quick: Slow,
    pub(super) beside_slow: Slow,
    /// Blocks that were slow as cold ones are, and those that were slow the other way round in time.
    pub(super) as_cold: u64,
    pub(super) reversed: u64,
    /// Blocks that were slow at all reads but the first, whatever that was: had they been cold, it would not show.
    pub(super) later: u64,
    pub(super) cached: u64,
}

impl Seen {
    fn count(&mut self, touch: &Touch, is_slow: impl Fn(Ns) -> bool) {
        let Some(read) = touch.read else {
            self.first.count(false);
            self.cached += 1;
            return;
        };
        let [first, second] = [read.first_ns, read.second_ns].map(&is_slow);
        self.first.count(first);
        self.second.count(second);
        let beside = read.beside_ns.map(is_slow);
        if let Some(beside) = beside {
            let of = if first { &mut self.beside_slow } else { &mut self.beside_quick };
            of.count(beside);
        }
        let last = beside.unwrap_or(second);
        self.as_cold += u64::from(first && !(second && last));
        self.reversed += u64::from(!first && last);
        self.later += u64::from(second && last);
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.first.of.max(1) as f64
    }

    /// The chance that noise alone is slow at the begin so much more often than at the end (sign test, of noise that is a little uneven).
    fn chance(&self) -> f64 {
        if self.as_cold == 0 { 1.0 } else { beta_inc(self.as_cold as f64, self.reversed as f64 + 1.0, UNEVEN) }
    }
}

/// A region.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Region {
    pub(super) seen: Seen,
    pub(super) first_us: Option<f64>,
    pub(super) second_us: Option<f64>,
    /// First over second read of the same block: the median and its 95 % interval.
    pub(super) ratio: Option<[f64; 3]>,
    pub(super) state: State,
}

/// A region beside the others, where something is cold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Half of its blocks at least.
    Cold,
    PartlyCold,
    /// More slow first reads than noise usually makes.
    SomeSlow,
    #[default]
    Warm,
}

/// What follows for all of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) verdict: Verdict,
    pub(super) seen: Seen,
    /// The cold part of all and its 95 % interval.
    pub(super) share: [f64; 3],
    pub(super) regions: Vec<Region>,
    /// Medians, us: of slow first reads, of all first reads, of second reads.
    pub(super) cold_us: Option<f64>,
    pub(super) first_us: Option<f64>,
    pub(super) second_us: Option<f64>,
}

impl Estimate {
    pub(super) fn of(touches: &[Touch], regions: usize) -> Self {
        let mut by_region: Vec<Vec<&Touch>> = vec![Vec::new(); regions];
        touches.iter().for_each(|touch| by_region[touch.region].push(touch));
        let limits: Vec<f64> = by_region.iter().map(|touches| slow_from(touches)).collect();
        let mut seen = Seen::default();
        touches.iter().for_each(|touch| seen.count(touch, |ns| us(ns) > limits[touch.region]));
        let noise = (seen.reversed as f64).max(1.0) / (seen.first.of - seen.as_cold).max(1) as f64;
        let region = |(touches, limit): (&Vec<&Touch>, &f64)| region(touches, *limit, noise);
        let regions: Vec<Region> = by_region.iter().zip(&limits).map(region).collect();
        let reads = || touches.iter().filter_map(|touch| Some((touch.region, touch.read?)));
        let of = |get: &dyn Fn((usize, Doubled)) -> Option<f64>| median(&reads().filter_map(get).collect::<Vec<f64>>());
        Self {
            verdict: verdict(&seen),
            share: share(&seen, &regions),
            cold_us: of(&|(region, read)| Some(us(read.first_ns)).filter(|us| *us > limits[region])),
            first_us: of(&|(_, read)| Some(us(read.first_ns))),
            second_us: of(&|(_, read)| Some(us(read.second_ns))),
            seen,
            regions,
        }
    }

    pub(super) fn is_cold(&self) -> bool {
        self.verdict == Verdict::Cold
    }

    /// Regions that have to be read before nothing is cold.
    pub(super) fn hydrated(&self) -> Vec<usize> {
        let slow = |(at, region): (usize, &Region)| (region.state != State::Warm).then_some(at);
        if self.is_cold() { self.regions.iter().enumerate().filter_map(slow).collect() } else { Vec::new() }
    }
}

fn us(ns: Ns) -> f64 {
    ns as f64 / 1e3
}

/// From how many us on a read of this region is slow.
fn slow_from(touches: &[&Touch]) -> f64 {
    let seconds: Vec<f64> = touches.iter().filter_map(|touch| Some(us(touch.read?.second_ns))).collect();
    let usual = median(&seconds).unwrap_or(0.0);
    (SLOW_TIMES * usual).max(usual + SLOW_US)
}

/// `noise` is the share of blocks that it makes look cold.
fn region(touches: &[&Touch], limit: f64, noise: f64) -> Region {
    let mut seen = Seen::default();
    touches.iter().for_each(|touch| seen.count(touch, |ns| us(ns) > limit));
    let reads = || touches.iter().filter_map(|touch| touch.read);
    let of = |get: fn(Doubled) -> Ns| median(&reads().map(|read| us(get(read))).collect::<Vec<f64>>());
    let ratios = reads().map(|read| read.first_ns as f64 / read.second_ns.max(1) as f64);
    Region {
        first_us: of(|read| read.first_ns),
        second_us: of(|read| read.second_ns),
        ratio: median_interval(ratios.collect()),
        state: state(&seen, noise),
        seen,
    }
}

fn state(seen: &Seen, noise: f64) -> State {
    let (slow, of) = (seen.as_cold as f64, seen.first.of as f64);
    let chance = if slow == 0.0 { 1.0 } else { beta_inc(slow, of - slow + 1.0, noise.min(1.0)) };
    match chance {
        chance if chance >= CHANCE_OF_SAFETY => State::Warm,
        chance if chance >= CHANCE_OF_REGION => State::SomeSlow,
        _ if 2.0 * slow < of => State::PartlyCold,
        _ => State::Cold,
    }
}

/// The median with its 95 % interval by order statistics; the ends are the extremes where there are few values.
fn median_interval(mut values: Vec<f64>) -> Option<[f64; 3]> {
    let middle = median(&values)?;
    values.sort_by(f64::total_cmp);
    let below = ((values.len() as f64 - Z * (values.len() as f64).sqrt()) / 2.0).floor().max(0.0) as usize;
    Some([middle, values[below], values[values.len() - 1 - below]])
}

fn verdict(seen: &Seen) -> Verdict {
    let pct = |share: f64| format!("{:.0} %", 100.0 * share);
    if (seen.first.of as usize) < LEAST_PAIRS {
        let why = format!("only {} blocks were read; use a longer --time", seen.first.of);
        return Verdict::Unknown(why);
    }
    if seen.second.share() > MOST_NOISE {
        let why = format!(
            "{} of the second reads were slow too: the host or the device is too busy",
            pct(seen.second.share())
        );
        return Verdict::Unknown(why);
    }
    if seen.chance() >= CHANCE {
        return Verdict::NoneFound;
    }
    let is_cache =
        seen.share(seen.as_cold) >= EVERYWHERE && (seen.beside_slow.of == 0 || seen.beside_slow.share() > BESIDE);
    if is_cache {
        let why = "every first read was slow, and so were the blocks beside: all of it is cold, or a cache below answers second reads";
        return Verdict::Unknown(why.to_owned());
    }
    Verdict::Cold
}

/// The cold share with its 95 % interval: the difference of two shares by the limits of each (Newcombe 1998, method 10), where that of
/// cold blocks counts for as many blocks as its variance by regions is worth; over the share of which it would show.
fn share(seen: &Seen, regions: &[Region]) -> [f64; 3] {
    let of = seen.first.of as f64;
    let (cold, control) = (seen.share(seen.as_cold), seen.share(seen.reversed));
    let touched: Vec<&Seen> = regions.iter().map(|region| &region.seen).filter(|seen| seen.first.of > 0).collect();
    // One more of each kind, since a region of which all or none were slow may still have others.
    let variance = touched.iter().map(|seen| {
        let share = (seen.as_cold as f64 + 1.0) / (seen.first.of as f64 + 2.0);
        share * (1.0 - share) / (seen.first.of as f64 + 3.0)
    });
    let variance = variance.sum::<f64>() / (touched.len() as f64).powi(2).max(1.0);
    let (least, most) = wilson(cold, (cold * (1.0 - cold) / variance).max(of));
    let (control_least, control_most) = wilson(control, of);
    let difference = cold - control;
    let low = difference - (cold - least).hypot(control_most - control);
    let high = difference + (most - cold).hypot(control - control_least);
    let shows = 1.0 - seen.share(seen.later);
    // However few were slow, what was not read may be.
    [difference, low, high.max(wilson(0.0, of).1)].map(|share| (share / shows).clamp(0.0, 1.0))
}

/// Wilson's 95 % limits of a share of so many.
fn wilson(share: f64, of: f64) -> (f64, f64) {
    if of <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = Z * Z;
    let middle = share + z2 / (2.0 * of);
    let half = Z * (share * (1.0 - share) / of + z2 / (4.0 * of * of)).sqrt();
    let scale = 1.0 + z2 / of;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}
