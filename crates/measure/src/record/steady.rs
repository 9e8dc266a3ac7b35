//! Whether throughput had settled by the end of a step.
//!
//! The rule of [`crate::steady`], for seconds instead of hours.

use super::{Figure, Record};
use crate::figures::figures;
use crate::statistics::{batch_means, mean, variance};
use crate::steady::{ROUNDS, Window};

/// The rule in words.
pub const RULE: &str = "over the last half of the measured window (at least 5 s), divided into five rounds, \
    operations per second range over at most 20 % of their mean and their fitted line moves by at most 10 %; a step \
    that reaches this only inside its measured window is late";

/// Whether a step settled, and how the last window looked.
#[figures]
pub struct Steady {
    /// `yes`, `late` (only inside the measured window), `no`, or `n/a` (too few seconds).
    pub state: String,
    /// Length of the window looked at, s.
    pub window_s: Figure,
    /// Largest less smallest round over the mean.
    pub range_ratio: Figure,
    /// Rise of the fitted line over the window, over the mean; negative if it falls.
    pub slope_ratio: Figure,
    /// The instant from which every window keeps the rule, s after the gate.
    pub from_s: Figure,
}

impl Steady {
    /// Not judged, and why.
    #[must_use]
    pub fn unknown(reason: &str) -> Self {
        let none = || Figure::na(reason);
        Self { state: "n/a".to_owned(), window_s: none(), range_ratio: none(), slope_ratio: none(), from_s: none() }
    }
}

/// One second (or longer step) of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Second {
    /// Its end, s after the gate.
    pub(crate) end_s: f64,
    pub(crate) rate: f64,
    pub(crate) in_window: bool,
}

/// Whole steps of a record's series from the gate to the end of the window.
pub(crate) fn seconds(record: &Record) -> Vec<Second> {
    let series = &record.series;
    let Some(rates) = series.metrics.get("ops_count_per_s") else {
        return Vec::new();
    };
    let step = series.step_s.value().unwrap_or(1.0);
    let until = record.interval.end_s.value().unwrap_or(f64::INFINITY);
    let mut previous = 0.0;
    let mut out = Vec::new();
    let rows = series.t_s.iter().zip(rates).zip(&series.in_window);
    for ((end_s, rate), in_window) in rows {
        // The step before the begin or the end may be a fraction: too short to judge.
        let whole = end_s - previous > 0.5 * step;
        previous = *end_s;
        if let (true, Some(rate)) = (whole && *end_s <= until + 0.5 * step, rate.value()) {
            out.push(Second { end_s: *end_s, rate, in_window: *in_window });
        }
    }
    out
}

/// Five rounds; `None` if nothing happened.
fn judge(seconds: &[Second]) -> Option<Window> {
    let rounds: Vec<f64> = seconds
        .chunks_exact(seconds.len() / ROUNDS)
        .take(ROUNDS)
        .map(|round| round.iter().map(|s| s.rate).sum::<f64>() / round.len() as f64)
        .collect();
    Window::of(&rounds)
}

/// Sums of rates from the first second on: a day has as many windows as seconds, and each looks at half a day.
struct Sums(Vec<f64>);

impl Sums {
    fn of(seconds: &[Second]) -> Self {
        let rising = seconds.iter().scan(0.0, |sum, second| {
            *sum += second.rate;
            Some(*sum)
        });
        Self(std::iter::once(0.0).chain(rising).collect())
    }

    /// Five rounds of the seconds `from .. from + length`; `None` if nothing happened.
    fn judge(&self, from: usize, length: usize) -> Option<Window> {
        let each = length / ROUNDS;
        let sum = |round: usize| {
            let begin = from + round * each;
            self.0[begin + each] - self.0[begin]
        };
        let rounds: Vec<f64> = (0..ROUNDS).map(|round| sum(round) / each as f64).collect();
        Window::of(&rounds)
    }
}

/// Judges a record by the rule.
#[must_use]
pub fn steady(record: &Record) -> Steady {
    let all = seconds(record);
    let measured = all.iter().filter(|second| second.in_window).count();
    if measured < ROUNDS {
        return Steady::unknown("fewer than five whole seconds");
    }
    let length = (measured / 2 / ROUNDS).max(1) * ROUNDS;
    let last = &all[all.len() - length..];
    let Some(found) = judge(last) else {
        return Steady::unknown("no operations");
    };
    let begin_of = |from: usize| match from {
        0 => 0.0,
        from => all[from - 1].end_s,
    };
    // Back from the end, as long as the windows keep the rule.
    let sums = Sums::of(&all);
    let keeps = |from: &usize| {
        let window = sums.judge(*from, length);
        window.is_some_and(|window| window.is_steady())
    };
    let at_the_end = all.len() - length;
    let earlier = || (0..at_the_end).rev().take_while(keeps).last();
    let from = (found.is_steady()).then(|| earlier().unwrap_or(at_the_end));
    let first_measured = all.iter().position(|second| second.in_window).unwrap_or(0);
    let state = match from {
        Some(from) if from <= first_measured => "yes",
        Some(_) => "late",
        None => "no",
    };
    Steady {
        state: state.to_owned(),
        window_s: Figure::decimal(last[length - 1].end_s - begin_of(all.len() - length)),
        range_ratio: Figure::decimal(found.excursion_ratio),
        slope_ratio: Figure::decimal(found.slope_ratio),
        from_s: from.map_or_else(|| Figure::na("never"), |from| Figure::decimal(begin_of(from))),
    }
}

/// Standard error of the window's throughput over its size, from at most ten batch means
/// of its seconds; `None` for fewer than five seconds.
#[must_use]
pub fn standard_error(record: &Record) -> Option<f64> {
    let rates: Vec<f64> = seconds(record).iter().filter(|second| second.in_window).map(|second| second.rate).collect();
    if rates.len() < ROUNDS {
        return None;
    }
    let batches = batch_means(&rates);
    let (count, mean) = (batches.len() as f64, mean(&batches));
    (mean > 0.0 && count > 1.0).then(|| (variance(&batches) / count).sqrt() / mean)
}

#[cfg(test)]
pub(crate) mod testing {
    use crate::record::{Record, Series};

    /// A record whose seconds are these; the first `warmup` are before the window.
    pub(crate) fn record(rates: &[f64], warmup: usize) -> Record {
        let mut record = Record::default();
        let series = Series {
            step_s: 1.0.into(),
            t_s: (1..=rates.len()).map(|s| s as f64).collect(),
            in_window: (0..rates.len()).map(|s| s >= warmup).collect(),
            metrics: [("ops_count_per_s".to_owned(), rates.iter().map(|rate| (*rate).into()).collect())].into(),
            ..Series::default()
        };
        record.interval.end_s = (rates.len() as f64).into();
        Record { series, ..record }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::record;
    use super::*;

    #[test]
    fn steady_late_never_and_unknown() {
        let state = |rates: &[f64], warmup| steady(&record(rates, warmup));
        let level = state(&[100.0; 12], 2);
        assert_eq!((level.state.as_str(), level.from_s.value()), ("yes", Some(0.0)));
        assert_eq!(level.window_s.value(), Some(5.0));

        let filling: Vec<f64> = (0..30).map(|s| f64::from(s.min(10)) * 10.0).collect();
        let late = state(&filling, 2);
        assert_eq!(late.state, "late");
        // Windows of 10 s: from the 8th second on the rise within one is small enough.
        assert_eq!(late.from_s.value(), Some(9.0));
        assert_eq!(state(&filling, 15).state, "yes");

        let falling: Vec<f64> = (0..30).map(|s| 1000.0 - 30.0 * f64::from(s)).collect();
        let never = state(&falling, 0);
        assert_eq!((never.state.as_str(), never.from_s.reason()), ("no", Some("never")));
        assert!(never.slope_ratio.value().is_some_and(|slope| slope < -0.1));

        let swinging: Vec<f64> = (0..30).map(|s| if s / 3 % 2 == 0 { 100.0 } else { 40.0 }).collect();
        let never = state(&swinging, 0);
        assert_eq!(never.state, "no");
        assert!(never.range_ratio.value().is_some_and(|range| range > 0.2));

        assert_eq!(state(&[100.0; 4], 0).state, "n/a");
        assert_eq!(state(&[0.0; 9], 0).state, "n/a");
        assert_eq!(steady(&Record::default()).state, "n/a");
    }

    #[test]
    fn the_standard_error_is_that_of_batch_means() {
        let rates: Vec<f64> = (0..20).map(|s| if s / 2 % 2 == 0 { 90.0 } else { 110.0 }).collect();
        // Ten batches of 90 and 110 in turn: sd = 10 sqrt(10/9), error = sd / sqrt(10) = 10/3.
        let error = standard_error(&record(&rates, 0)).expect("enough seconds");
        assert!((error - 1.0 / 30.0).abs() < 1e-12, "{error}");
        assert_eq!(standard_error(&record(&[1.0; 4], 0)), None);
    }
}
