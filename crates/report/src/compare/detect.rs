//! How long two sides must be measured here until a difference shows: from identical runs, one after the other.
//!
//! Two levels of scatter add up: that of the seconds of a run, which a longer run averages out, and that between runs, which only
//! repeats do (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). With n repeats of L seconds on each side
//! the difference of means has the variance 2 (B + W / L) / n, where B is the variance between runs and W / L that of the mean of
//! one. A test at 5 % shows a difference with 80 % power that is (t_0.975 + t_0.8) standard errors (Bloom, Evaluation Review 19,
//! 1995).

use super::samples::{Batches, Figures, REPEATS, RunGroup};
use assay_measure::figures::figures;
use assay_measure::precision::{Portion, Statistic, Watch};
use assay_measure::record::{Figure, Record};
use assay_measure::statistics::{ALPHA, mean, t_quantile, variance};
use assay_measure::units::{duration, fixed, significant};

/// The chance of a true difference to be shown.
const POWER: f64 = 0.8;
/// The figure, by its key.
const KEY: &str = "ops_per_s";
/// Lengths of a run that are tried, s.
const LENGTHS_S: [f64; 7] = [15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];
/// Repeats on a side that are tried.
const MOST: usize = 200;
/// The warm-up of a run, of its length, at most 30 s; and what connecting and closing take, s.
const WARMUP: f64 = 0.1;
const AROUND_S: f64 = 2.0;
/// Nobody measures longer for one difference, s.
const DAY_S: f64 = 86_400.0;

/// What it takes to see a difference.
#[figures]
pub struct Detectable {
    /// The difference that is to be seen, %.
    pub wanted_pct: Figure,
    /// Key of the figure.
    pub figure: String,
    /// Its mean over the rounds.
    pub mean: Figure,
    /// It in each round, in order.
    pub rounds: Vec<f64>,
    /// Standard deviation between runs that the seconds of the runs do not explain, over the mean, %.
    pub between_pct: Figure,
    /// Standard deviation that a run of a minute would have of its seconds alone, over the mean, %.
    pub within_minute_pct: Figure,
    /// Repeats on each side.
    pub repeats_count: Figure,
    /// Seconds of each.
    pub repeat_s: Figure,
    /// Both sides in all, warm-ups and all, s.
    pub total_s: Figure,
    /// Length of one run on each side that would do if runs did not differ in level, s.
    pub one_run_s: Figure,
    /// Why no time would do; empty where one does.
    pub cannot: String,
}

impl Detectable {
    /// Of identical runs, at least three, in the order they ran.
    #[must_use]
    pub fn of(records: &[&Record], wanted: f64) -> Self {
        let refused = |why: &str| Self {
            wanted_pct: Figure::decimal(100.0 * wanted),
            figure: KEY.to_owned(),
            cannot: why.to_owned(),
            ..Self::default()
        };
        if records.len() < REPEATS {
            return refused("fewer than three rounds are complete");
        }
        let group = RunGroup { name: String::new(), records: records.to_vec() };
        let Ok(values) = Figures::of(&group, &[]).values(KEY) else { return refused("a round has no such figure") };
        if values.iter().any(|value| *value <= 0.0) {
            return refused("nothing was done in a round");
        }
        let Some(within) = within(records) else {
            return refused("the rounds stood still for seconds: too few tell their scatter");
        };
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let length_s = mean(&records.iter().filter_map(|of| of.interval.elapsed_s.value()).collect::<Vec<f64>>());
        let between = (variance(&logs) - within / length_s).max(0.0);
        let mut found = Self {
            mean: Figure::decimal(mean(&values)),
            between_pct: Figure::decimal(100.0 * between.sqrt()),
            within_minute_pct: Figure::decimal(100.0 * (within / 60.0).sqrt()),
            one_run_s: one_run_s(within, wanted).map_or_else(|| Figure::na("more than a day"), Figure::decimal),
            rounds: values.clone(),
            ..refused("")
        };
        match (drift(&values, wanted), cheapest(between, within, wanted)) {
            (Some(why), _) => found.cannot = why,
            (None, None) => {
                found.cannot = format!("more than {MOST} repeats of half an hour would be needed on each side")
            }
            (None, Some((repeats, each_s))) if total_s(repeats, each_s) > DAY_S => {
                let time = duration((total_s(repeats, each_s) * 1e9) as u64);
                found.cannot = format!("it would take {time} at the scatter of these runs");
            }
            (None, Some((repeats, each_s))) => {
                found.repeats_count = (repeats as u64).into();
                found.repeat_s = each_s.into();
                found.total_s = Figure::decimal(total_s(repeats, each_s));
            }
        }
        found
    }

    /// What it takes, in sentences: the answer first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let told = |figure: &Figure| figure.value().map_or("n/a".to_owned(), |value| fixed(value, 1));
        let time = |figure: &Figure| figure.value().map_or("n/a".to_owned(), |s| duration((s.round() * 1e9) as u64));
        let wanted = self.wanted_pct.value().map_or("n/a".to_owned(), |pct| ((pct * 1e3).round() / 1e3).to_string());
        let mut lines = vec![match (self.cannot.as_str(), self.repeats_count.value()) {
            ("", Some(count)) => format!(
                "A difference of {wanted} % in {} needs {count} repeats of {} on each side: {} in all.",
                self.figure,
                time(&self.repeat_s),
                time(&self.total_s)
            ),
            (why, _) => format!("A difference of {wanted} % in {} cannot be seen here now: {why}.", self.figure),
        }];
        if self.rounds.is_empty() {
            return lines;
        }
        let rounds: Vec<String> = self.rounds.iter().map(|value| significant(*value, 4)).collect();
        lines.push(format!("Identical runs, one after the other: {}.", rounds.join(" ")));
        lines.push(format!(
            "Runs differ by {} % (standard deviation) beyond what their seconds explain; the seconds of a minute leave {} %.",
            told(&self.between_pct),
            told(&self.within_minute_pct)
        ));
        let one_run = self.one_run_s.value().map(|_| time(&self.one_run_s));
        lines.extend(one_run.filter(|_| self.cannot.is_empty()).map(|one| match self.between_pct.value() {
            Some(pct) if pct > 0.0 => {
                format!(
                    "One long run on each side does not do, for it has one level: without that, {one} would suffice."
                )
            }
            _ => format!("One run of {one} on each side would do as well."),
        }));
        lines.push(format!(
            "At 5 % error, 4 of 5 such differences are shown. {} rounds know the scatter between runs to about a factor of two.",
            self.rounds.len()
        ));
        lines
    }
}

/// The parts of one run that a comparison would judge it by.
pub(super) fn batches(record: &Record, key: &str) -> Option<Batches> {
    let group = RunGroup { name: String::new(), records: vec![record] };
    Figures::of(&group, &[]).batches(key).ok()
}

/// The variance of the mean of a second, as the batches of each run tell it, their correlation allowed for.
fn within(records: &[&Record]) -> Option<f64> {
    let of_run =
        |record: &&Record| Some(batches(record, KEY)?.sample().mean_variance * record.interval.elapsed_s.value()?);
    // A round that stood still for a second has no logarithm of it.
    let all: Vec<f64> = records.iter().filter_map(of_run).collect();
    (all.len() >= REPEATS).then(|| mean(&all))
}

/// The rounds change their level, or drift, by more than what is to be seen.
fn drift(values: &[f64], wanted: f64) -> Option<String> {
    let mut watch = Watch::new(Statistic::Mean, wanted / 2.0, values.len().min(6));
    for value in values {
        watch.take(&Portion { amount: *value, weight: 1.0, ..Portion::default() });
    }
    let change = watch.look()?.change?;
    let (before, after) = change.levels;
    let how = change.at_step.map_or_else(
        || format!("drifted from {} to {}", significant(before, 4), significant(after, 4)),
        |at| format!("changed from {} to {} after round {at}", significant(before, 4), significant(after, 4)),
    );
    Some(format!("the host is not the same from round to round, {KEY} {how}; measure both sides in turns, or later"))
}

/// (t_0.975 + t_power) of so many degrees of freedom.
fn standard_errors(degrees: f64) -> f64 {
    t_quantile(1.0 - ALPHA / 2.0, degrees) + t_quantile(POWER, degrees)
}

/// A fall by this share, as a difference of logarithms.
fn distance(wanted: f64) -> f64 {
    -(1.0 - wanted).ln()
}

/// Repeats and length with the least time in all.
fn cheapest(between: f64, within: f64, wanted: f64) -> Option<(usize, f64)> {
    let repeats = |length: f64| {
        (REPEATS..=MOST).find(|n| {
            let error = (2.0 * (between + within / length) / *n as f64).sqrt();
            standard_errors(2.0 * (*n as f64 - 1.0)) * error <= distance(wanted)
        })
    };
    let tried = LENGTHS_S.iter().filter_map(|length| Some((repeats(*length)?, *length)));
    tried.min_by(|a, b| total_s(a.0, a.1).total_cmp(&total_s(b.0, b.1)))
}

fn total_s(repeats: usize, length: f64) -> f64 {
    2.0 * repeats as f64 * (length + (WARMUP * length).min(30.0) + AROUND_S)
}

/// The length of one run on each side, s, where runs do not differ in level: a comparison cuts each into 30 batches.
fn one_run_s(within: f64, wanted: f64) -> Option<f64> {
    let seconds = 2.0 * within * (standard_errors(58.0) / distance(wanted)).powi(2);
    (seconds <= DAY_S).then_some(seconds.max(60.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_of_the_formula() {
        // Only the seconds scatter: 10 % each, so 10 % / sqrt(60) a minute. 2 x 0.01 (2.0017 + 0.8481)^2 / 0.03046^2 = 175 s.
        assert_eq!(one_run_s(0.01, 0.03).map(f64::round), Some(175.0));
        let (repeats, each) = cheapest(0.0, 0.01, 0.03).expect("a time");
        assert!(repeats as f64 * each >= 175.0 && total_s(repeats, each) < 600.0, "{repeats} x {each}");
        // 2 % between runs: n >= 2 (1.96 + 0.84)^2 (0.02 / 0.03046)^2 = 6.8 for many degrees of freedom, so 8 for few.
        let (repeats, _) = cheapest(0.02_f64.powi(2), 0.0, 0.03).expect("a time");
        assert_eq!(repeats, 8);
        assert_eq!(cheapest(0.3_f64.powi(2), 0.01, 0.01), None);
    }

    #[test]
    fn rounds_that_drift_are_told_as_such() {
        let steady = [100.0, 101.0, 99.5, 100.5, 99.0, 100.0, 101.0, 99.8];
        assert_eq!(drift(&steady, 0.03), None);
        let falling = [100.0, 97.5, 94.0, 91.5, 88.0, 85.5, 82.0, 79.5];
        assert!(drift(&falling, 0.03).is_some_and(|why| why.contains("ops_per_s")));
    }
}
