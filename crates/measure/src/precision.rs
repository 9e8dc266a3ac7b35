//! Precision instead of duration: when is a figure known to within a share of its value, and can it be known at all now?
//!
//! A [`Watch`] takes what each step of a measurement brought (a second of a run, a round of a probe), and looks now and
//! then. Pure arithmetic: knows no clock and no kind of test.
//!
//! - **The interval** is that of batch means, or of batch quantiles around the quantile of all ("sectioning", Asmussen and
//!   Glynn, *Stochastic Simulation*, III.5a), of 20 to 39 equal batches; two become one when there are 40 (Fishman,
//!   *Discrete-Event Simulation*, 6.5). What correlation the batches still have is allowed for ([`Sample::in_order`]).
//! - **Looking often** would end when the scatter happens to be small (Anscombe, J. R. Stat. Soc. B 15, 1953). So there is
//!   a least number of batches, the time grows by a factor from look to look, batches that are alike do not count (Law and
//!   Carson, Operations Research 27, 1979), two looks one after the other must agree, and the interval is somewhat wider than its
//!   name. `tests.rs` counts how often it holds the truth: 93 to 98 of 100 series whose correlation is gone within 20 steps.
//! - **A change of level** makes any interval a lie: the split with the largest difference of means, against the scatter
//!   around both levels and its correlation, at 1 % over all splits (Bonferroni). So does a drift: the
//!   slope of the fitted line, in the same way. Either counts where one of its ends is outside of what was asked.

use crate::histogram::Histogram;
use crate::statistics::{Sample, lag_1, mean, t_quantile, t_two_sided};
use crate::steady::{Fit, Sums};

/// Batches of a run's seconds at the first look.
pub const SECONDS_LEAST: usize = 20;
/// Rounds of a probe at the first look, each with all of it set up anew (Kalibera and Jones, ISMM 2013: repeat at the level
/// where the variation arises): as many as a passport has.
pub const ROUNDS_LEAST: usize = 6;
/// So many batches become half as many.
const BATCHES_MOST: usize = 40;
/// The measured time grows by this from look to look.
const GROWTH: f64 = std::f64::consts::SQRT_2;
/// Looks one after the other that must find the figure known.
const AGREEING: usize = 2;
/// Fewer values tell nothing of the correlation of neighbours.
const CORRELATED_LEAST: usize = 4;
/// After so many looks with a change of level, over which the time has become several times as long, more time will not help.
const CHANGED_LOOKS: usize = 4;
/// The chance at which steady batches show a change of level.
const CHANCE: f64 = 0.01;
/// The interval is told as that of 95 %. It is made wider, for the correlation of few batches is known badly and many looks are
/// taken: so it holds the truth 95 times of 100 (`tests.rs`).
const CONFIDENCE: f64 = 0.98;
/// Batches more alike than that are too short to tell how a longer time would scatter (Law and Carson, Operations Research 27,
/// 1979).
pub(crate) const CORRELATION_MOST: f64 = 0.4;

/// What was asked: a figure, and how well it is to be known.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The figure's name as it was given.
    pub figure: String,
    /// The share of its value to either side.
    pub ratio: f64,
}

impl Goal {
    /// `p99=5%`; `p99=5%` and `p99=+-5%` are the same.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "give FIGURE=\u{b1}P%, such as p99=\u{b1}5%";
        let (figure, share) = text.split_once('=').ok_or(form)?;
        let ratio = share_of(share.trim().trim_start_matches('\u{b1}').trim_start_matches("+-")).ok_or(form)?;
        if figure.trim().is_empty() {
            return Err(form.to_owned());
        }
        // Below that the slots of a histogram are wider than what is asked; above, nothing is known.
        if !(0.001..=0.5).contains(&ratio) {
            return Err("give \u{b1}0.1% to \u{b1}50%".to_owned());
        }
        Ok(Self { figure: figure.trim().to_owned(), ratio })
    }
}

/// `5%` as a share.
#[must_use]
pub fn share_of(text: &str) -> Option<f64> {
    let percent: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    percent.is_finite().then_some(percent / 100.0)
}

/// A figure that can be followed step by step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// What happened over how long it took; the mean of rounds.
    Mean,
    /// The duration that this share does not exceed.
    Quantile(f64),
}

/// What one step, or several together, brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Portion {
    /// What happened; the value of a round.
    pub amount: f64,
    /// How long it took, s; 1 of a round.
    pub weight: f64,
    /// The durations, of a quantile.
    pub durations: Histogram,
}

impl Portion {
    fn add(&mut self, other: &Self) {
        self.amount += other.amount;
        self.weight += other.weight;
        self.durations.merge(&other.durations);
    }

    /// The figure of this part, in the unit of a duration: us.
    fn value(&self, of: Statistic) -> Option<f64> {
        match of {
            Statistic::Mean => (self.weight > 0.0).then(|| self.amount / self.weight),
            Statistic::Quantile(q) => self.durations.percentile_ns(q).map(|ns| ns as f64 / 1e3),
        }
    }
}

/// A change of level, or a drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Steps before a change of level; none of a drift from the first step to the last.
    pub at_step: Option<usize>,
    /// The figure before and after.
    pub levels: (f64, f64),
}

/// What a look finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// The figure.
    pub value: f64,
    /// Half of its 95 % interval.
    pub half: f64,
    /// The correlation of neighbouring batches that was allowed for.
    pub correlation: f64,
    /// A change of level that the interval does not allow for.
    pub change: Option<Change>,
}

impl Look {
    /// Half of the interval over the figure.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.half == 0.0 { 0.0 } else { self.half / self.value.abs() }
    }

    /// Whether the figure is known to within this share of it. Nothing is known of one that is 0: nothing happened.
    fn is_within(&self, ratio: f64) -> bool {
        self.value > 0.0 && self.change.is_none() && self.correlation <= CORRELATION_MOST && self.ratio() <= ratio
    }
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The figure is known as well as was asked.
    Reached,
    /// Its level changed: no interval tells where it will be.
    Changed,
    /// The time that it may take has passed.
    TimeOver,
}

/// Follows one figure.
#[derive(Clone, Debug)]
pub struct Watch {
    statistic: Statistic,
    ratio: f64,
    least: usize,
    batches: Vec<Portion>,
    /// Steps of each.
    length: usize,
    open: Portion,
    open_steps: usize,
    steps: usize,
    next_look: usize,
    agreeing: usize,
    changed: usize,
    last: Option<Look>,
}

impl Watch {
    /// To know the figure to within `ratio` of its value, from `least` batches on.
    #[must_use]
    pub fn new(statistic: Statistic, ratio: f64, least: usize) -> Self {
        Self {
            statistic,
            ratio,
            least,
            batches: Vec::new(),
            length: 1,
            open: Portion::default(),
            open_steps: 0,
            steps: 0,
            next_look: least,
            agreeing: 0,
            changed: 0,
            last: None,
        }
    }

    /// Takes a step, and looks if it is time for that; how the measurement is to end, if it is.
    pub fn take(&mut self, step: &Portion) -> Option<End> {
        self.open.add(step);
        self.open_steps += 1;
        self.steps += 1;
        if self.open_steps == self.length {
            self.batches.push(std::mem::take(&mut self.open));
            self.open_steps = 0;
        }
        if self.batches.len() == BATCHES_MOST {
            self.batches = self.batches.chunks(2).map(joined).collect();
            self.length *= 2;
        }
        if self.steps < self.next_look || self.open_steps > 0 {
            return None;
        }
        self.next_look = (self.steps as f64 * GROWTH).ceil() as usize;
        let look = self.look();
        let is_known = look.as_ref().is_some_and(|look| look.is_within(self.ratio));
        let is_changed = look.as_ref().is_some_and(|look| look.change.is_some());
        self.agreeing = if is_known { self.agreeing + 1 } else { 0 };
        self.changed = if is_changed { self.changed + 1 } else { 0 };
        self.last = look;
        match () {
            () if self.agreeing >= AGREEING => Some(End::Reached),
            () if self.changed >= CHANGED_LOOKS => Some(End::Changed),
            () => None,
        }
    }

    /// How a measurement ends that may take no longer: one look more, at all steps there are.
    pub fn over(&mut self) -> End {
        self.last = self.look_at(CORRELATED_LEAST);
        match &self.last {
            Some(look) if look.change.is_some() => End::Changed,
            Some(look) if look.is_within(self.ratio) && self.batches.len() >= self.least => End::Reached,
            _ => End::TimeOver,
        }
    }

    /// What is known; nothing before there are enough batches, or where one of them has no figure.
    #[must_use]
    pub fn look(&self) -> Option<Look> {
        self.look_at(self.least)
    }

    fn look_at(&self, least: usize) -> Option<Look> {
        if self.batches.len() < least {
            return None;
        }
        let values = self.values()?;
        let whole = joined(&self.batches).value(self.statistic)?;
        let sample = Sample::in_order(&values);
        // Around the figure of all, which the mean of quantiles of parts is not.
        let bias = sample.mean - whole;
        let n = sample.effective_count;
        let variance = sample.mean_variance + bias * bias / (n - 1.0).max(1.0);
        let half = t_quantile(0.5 + CONFIDENCE / 2.0, (n - 1.0).max(1.0)) * variance.sqrt();
        let change = change(&values).filter(|change| {
            let away = |level: f64| (level - whole).abs() > self.ratio * whole.abs();
            away(change.levels.0) || away(change.levels.1)
        });
        let change = change.map(|change| Change { at_step: change.at_step.map(|at| at * self.length), ..change });
        Some(Look { value: whole, half, correlation: sample.correlation, change })
    }

    fn values(&self) -> Option<Vec<f64>> {
        self.batches.iter().map(|batch| batch.value(self.statistic)).collect()
    }

    /// The figure of each batch, and the steps of a batch; none where a batch has none.
    #[must_use]
    pub fn batches(&self) -> (Vec<f64>, usize) {
        (self.batches.iter().filter_map(|batch| batch.value(self.statistic)).collect(), self.length)
    }

    /// Steps taken.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The last look.
    #[must_use]
    pub fn last(&self) -> Option<&Look> {
        self.last.as_ref()
    }
}

fn joined(parts: &[Portion]) -> Portion {
    parts.iter().fold(Portion::default(), |mut whole, part| {
        whole.add(part);
        whole
    })
}

/// Fewest batches of a level.
const LEVEL_LEAST: usize = 3;

/// The change of level, or the drift, that steady batches would hardly show.
fn change(values: &[f64]) -> Option<Change> {
    let n = values.len();
    let (at, score) = Sums::new(values).best_split((0, n), LEVEL_LEAST, |sides| {
        let ((left, right), (a, b)) = (sides.counts, sides.means);
        (a - b).abs() * (left * right / (left + right)).sqrt()
    })?;
    let levels = (mean(&values[..at]), mean(&values[at..]));
    let level = |i: usize| if i < at { levels.0 } else { levels.1 };
    let splits = (n + 1).saturating_sub(2 * LEVEL_LEAST) as f64;
    let by_chance = splits * chance(values, level, score);
    let Fit { mean, slope, .. } = Fit::of(values)?;
    let middle = (n as f64 - 1.0) / 2.0;
    let line = |i: usize| mean + slope * (i as f64 - middle);
    // Square root of the sum of squares of the steps 0, 1, 2, ... about their mean.
    let spread = (n as f64 * ((n * n) as f64 - 1.0) / 12.0).sqrt();
    match () {
        () if by_chance < CHANCE => Some(Change { at_step: Some(at), levels }),
        () if chance(values, line, slope.abs() * spread) < CHANCE => {
            Some(Change { at_step: None, levels: (line(0), line(n - 1)) })
        }
        () => None,
    }
}

/// The chance of such a score, in standard errors of one value, where values scatter around a model of two parameters; neighbours may
/// be correlated, as [`Sample::in_order`] has it.
fn chance(values: &[f64], model: impl Fn(usize) -> f64, score: f64) -> f64 {
    let rest: Vec<f64> = values.iter().enumerate().map(|(i, value)| value - model(i)).collect();
    let count = rest.len() as f64;
    let raw = lag_1(&rest);
    let correlation = (raw + (1.0 + 4.0 * raw) / count).clamp(0.0, 0.9);
    let inflation = (1.0 + correlation) / (1.0 - correlation);
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    let error = (squares / (count - 2.0) * inflation).sqrt();
    if error <= 0.0 {
        return if score > 0.0 { 0.0 } else { 1.0 };
    }
    t_two_sided(score / error, (count / inflation - 2.0).max(1.0))
}

mod run;
#[cfg(test)]
mod tests;

pub use run::RunFigure;
