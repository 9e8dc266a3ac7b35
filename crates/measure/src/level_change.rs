//! Where throughput changed its level most, and whether a cap did it.

use crate::cap::{self, Cap};
use crate::record::Record;
use crate::record::steady::{Second, seconds};
use crate::statistics::mean;
use crate::units::fixed;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Figure;
    use crate::record::steady::testing::record;

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
}
