//! Whether throughput had settled by the end of a step.
//!
//! The rule of [`crate::steady`], for seconds instead of hours.

use super::{Figure, Record};
use crate::cap::{self, Cap};
use crate::figures::figures;
use crate::statistics::{batch_means, mean, variance};
use crate::steady::{ROUNDS, Window};
use crate::units::fixed;

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

/// A cap that begins so near a change of level is what changed it, s.
const NEAR_S: f64 = 2.0;

/// The largest of the changes of level that the search for change points found in a record.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelChange {
    /// When, s after the gate.
    pub at_s: f64,
    /// Operations per second from the change before it, or the begin of the window, on.
    pub before_per_s: f64,
    /// The same up to the next change, or the end.
    pub after_per_s: f64,
    /// After a fall to a cap: its rate with the unit.
    pub level: Option<String>,
}

impl LevelChange {
    /// Of a record; `None` if its throughput kept its level.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let points = &record.checks.steadiness.change_points_s;
        let all: Vec<Second> = seconds(record).into_iter().filter(|second| second.in_window).collect();
        let end = all.last()?.end_s;
        let bounds: Vec<f64> = [&[0.0], &points[..], &[end]].concat();
        let rate = |from: f64, to: f64| {
            let within = all.iter().filter(|second| second.end_s > from && second.end_s <= to);
            let rates: Vec<f64> = within.map(|second| second.rate).collect();
            (!rates.is_empty()).then(|| mean(&rates))
        };
        let cap = cap::of(record);
        let changes = bounds.windows(3).filter_map(|three| {
            let (before, after) = (rate(three[0], three[1])?, rate(three[1], three[2])?);
            let level = cap.as_ref().filter(|cap| after < before && (cap.begins_s.1 - three[1]).abs() <= NEAR_S);
            Some(Self { at_s: three[1], before_per_s: before, after_per_s: after, level: level.map(Cap::rate) })
        });
        let size = |change: &Self| (change.after_per_s / change.before_per_s.max(f64::MIN_POSITIVE)).ln().abs();
        changes.max_by(|a, b| size(a).total_cmp(&size(b)))
    }

    /// `fell 86 % at 18 s, then level at 2,000 reads/s: looks like a cap`.
    #[must_use]
    pub fn words(&self) -> String {
        let level = self.level.as_ref();
        self.moved() + &level.map_or_else(String::new, |rate| format!(", then level at {rate}: looks like a cap"))
    }

    /// `fell 86 % at 18 s`.
    #[must_use]
    pub fn moved(&self) -> String {
        if self.before_per_s <= 0.0 {
            return format!("began at {} s", fixed(self.at_s, 0));
        }
        let pct = 100.0 * (self.after_per_s / self.before_per_s - 1.0);
        let moved = if pct < 0.0 { "fell" } else { "rose" };
        format!("{moved} {} % at {} s", fixed(pct.abs(), 0), fixed(self.at_s, 0))
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
mod tests {
    use super::*;
    use crate::record::Series;

    #[test]
    fn a_fall_to_a_level_of_reads_looks_like_a_cap_and_a_rise_or_a_restless_fall_does_not() {
        let mut capped = record(&[[241.0; 18].as_slice(), &[32.0; 12]].concat(), 0);
        capped.checks.steadiness.change_points_s = vec![18.0];
        let reads: Vec<Figure> =
            (0..30).map(|s| if s < 18 { 15_000.0 } else { [2000.0, 1936.0][s % 2] }.into()).collect();
        let column = "read_io_requests_count_per_s".to_owned();
        capped.series.metrics.insert(column.clone(), reads);
        let found = LevelChange::of(&capped).unwrap();
        assert_eq!(found.words(), "fell 87 % at 18 s, then level at 1,968 reads/s: looks like a cap");
        let restless = |s: usize| Figure::from(f64::from(s as u32 % 3 + 1) * 1000.0);
        capped.series.metrics.insert(column, (0..30).map(restless).collect());
        let ops = capped.series.metrics.get_mut("ops_count_per_s").unwrap();
        *ops =
            ops.iter().enumerate().map(|(s, rate)| (rate.value().unwrap() * [1.0, 1.4, 0.9][s % 3]).into()).collect();
        assert_eq!(LevelChange::of(&capped).unwrap().words(), "fell 87 % at 18 s");
        let mut warm = record(&[[100.0; 20].as_slice(), &[250.0; 10], &[200.0; 10]].concat(), 20);
        warm.checks.steadiness.change_points_s = vec![30.0];
        assert!(LevelChange::of(&warm).unwrap().words().starts_with("fell 20 % at 30 s"), "a warm-up is no level");
        let mut stalled = record(&[[0.0; 5].as_slice(), &[1000.0; 10]].concat(), 0);
        stalled.checks.steadiness.change_points_s = vec![5.0];
        assert_eq!(LevelChange::of(&stalled).unwrap().words(), "began at 5 s");
        let mut rising = record(&[[100.0; 10].as_slice(), &[150.0; 10]].concat(), 0);
        assert_eq!(LevelChange::of(&rising), None);
        rising.checks.steadiness.change_points_s = vec![10.0];
        assert_eq!(LevelChange::of(&rising).unwrap().words(), "rose 50 % at 10 s");
    }

    /// A record whose seconds are these; the first `warmup` are before the window.
    fn record(rates: &[f64], warmup: usize) -> Record {
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
