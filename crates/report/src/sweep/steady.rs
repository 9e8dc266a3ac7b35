//! Whether throughput had settled by the end of a step.
//!
//! The rule of the SNIA Solid State Storage Performance Test Specification (section
//! "steady state"), for seconds instead of hours: over a window of five rounds the
//! largest and smallest round differ by at most 20 % of the mean, and the straight line
//! fitted to them moves by at most 10 % of the mean.

use assay_measure::record::{Figure, Record};
use serde::{Deserialize, Serialize};

/// Rounds of a window.
pub(super) const ROUNDS: usize = 5;
/// Most that the rounds may differ, of their mean.
pub(super) const RANGE: f64 = 0.20;
/// Most that the fitted line may move over the window, of the mean.
pub(super) const SLOPE: f64 = 0.10;

/// The rule in words.
pub(crate) const RULE: &str = "over the last half of the measured window (at least 5 s), cut into five rounds, \
     operations per second range over at most 20 % of their mean and their fitted line moves by at most 10 %; \
     a step that gets there only inside its measured window is late";

/// Whether a step settled, and how the last window looked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steady {
    /// `yes`, `late` (only inside the measured window), `no`, or `n/a` (too few seconds).
    pub state: String,
    /// Length of the window looked at, s.
    pub window_s: Figure,
    /// Largest less smallest round over the mean.
    pub range_ratio: Figure,
    /// Rise of the fitted line over the window, over the mean; negative if it falls.
    pub slope_ratio: Figure,
    /// From when on every window keeps the rule, s after the gate.
    pub from_s: Figure,
}

impl Steady {
    pub(super) fn unknown(reason: &str) -> Self {
        let none = || Figure::na(reason);
        Self {
            state: "n/a".to_owned(),
            window_s: none(),
            range_ratio: none(),
            slope_ratio: none(),
            from_s: none(),
        }
    }
}

/// One second (or longer step) of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Second {
    /// Its end, s after the gate.
    end_s: f64,
    rate: f64,
    in_window: bool,
}

/// Whole steps of a record's series from the gate to the end of the window.
fn seconds(record: &Record) -> Vec<Second> {
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
            out.push(Second {
                end_s: *end_s,
                rate,
                in_window: *in_window,
            });
        }
    }
    out
}

/// Range and slope of five rounds, each over the mean; `None` if nothing happened.
fn judge(seconds: &[Second]) -> Option<(f64, f64)> {
    let rounds: Vec<f64> = seconds
        .chunks_exact(seconds.len() / ROUNDS)
        .take(ROUNDS)
        .map(|round| round.iter().map(|s| s.rate).sum::<f64>() / round.len() as f64)
        .collect();
    let mean = rounds.iter().sum::<f64>() / rounds.len() as f64;
    if mean <= 0.0 {
        return None;
    }
    let most = rounds.iter().copied().fold(0.0, f64::max);
    let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = (ROUNDS - 1) as f64 / 2.0;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (at, round) in rounds.iter().enumerate() {
        let x = at as f64 - middle;
        covariance += x * (round - mean);
        variance += x * x;
    }
    let rise = covariance / variance * (ROUNDS - 1) as f64;
    Some(((most - least) / mean, rise / mean))
}

fn holds((range, slope): (f64, f64)) -> bool {
    range <= RANGE && slope.abs() <= SLOPE
}

/// Judges a record by the rule.
pub(crate) fn steady(record: &Record) -> Steady {
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
    let settled = holds(found);
    // Back from the end, as long as the windows keep the rule.
    let from = (0..=all.len() - length)
        .rev()
        .take_while(|from| judge(&all[*from..*from + length]).is_some_and(holds))
        .last();
    let first_measured = all.iter().position(|second| second.in_window).unwrap_or(0);
    let state = match from {
        Some(from) if from <= first_measured => "yes",
        Some(_) => "late",
        None => "no",
    };
    debug_assert_eq!(settled, from.is_some());
    Steady {
        state: state.to_owned(),
        window_s: Figure::decimal(last[length - 1].end_s - begin_of(all.len() - length)),
        range_ratio: Figure::decimal(found.0),
        slope_ratio: Figure::decimal(found.1),
        from_s: from.map_or_else(
            || Figure::na("never"),
            |from| Figure::decimal(begin_of(from)),
        ),
    }
}

/// Standard error of the window's throughput over its size, from at most ten batch means
/// of its seconds; `None` for fewer than five seconds.
pub(super) fn standard_error(record: &Record) -> Option<f64> {
    const BATCHES: usize = 10;
    let rates: Vec<f64> = seconds(record)
        .iter()
        .filter(|second| second.in_window)
        .map(|second| second.rate)
        .collect();
    if rates.len() < ROUNDS {
        return None;
    }
    let length = rates.len().div_ceil(BATCHES);
    let batches: Vec<f64> = rates
        .chunks_exact(length)
        .map(|batch| batch.iter().sum::<f64>() / length as f64)
        .collect();
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    (mean > 0.0 && count > 1.0).then(|| (squares / (count - 1.0) / count).sqrt() / mean)
}
