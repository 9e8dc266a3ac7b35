//! Whether the messages ran into a cap: a count per second that holds still from one second on.

use super::info::{Cap, SecondRow};
use assay_measure::sample::{mean, median};
use assay_measure::steady::{Sides, Sums, segments};

/// Fewest seconds on either side of a change of level.
const LEVEL_SECONDS: usize = 5;
/// Smallest fall that counts: a fifth.
const FALL_RATIO: f64 = 0.2;
/// Seconds under a cap lie within this part of their mean.
const STILL_RATIO: f64 = 0.01;
/// Difference of means over its standard error from which a split counts.
const LEVEL_T: f64 = 6.0;

/// The cap that the last level of the whole seconds looks like.
pub(super) fn find(seconds: &[SecondRow], elapsed_s: f64) -> Option<Cap> {
    // The last second is rarely a whole one.
    let whole = (elapsed_s.floor() as usize).min(seconds.len());
    let rates: Vec<f64> = seconds[..whole].iter().map(|second| second.messages_count as f64).collect();
    if rates.len() < 2 * LEVEL_SECONDS {
        return None;
    }
    let sums = Sums::new(&rates);
    let score = |sides: &Sides| {
        let ((left, right), (a, b)) = (sides.counts, sides.means);
        let within = sides.squares / (left + right - 2.0);
        let error = (within * (1.0 / left + 1.0 / right)).sqrt();
        match a - b >= FALL_RATIO * a {
            true => (a - b) / error.max(1e-3 * a),
            false => 0.0,
        }
    };
    // A burst may be over within a second or two; what follows has to last.
    let mut split = |from: usize, to: usize| {
        let best = sums.best_split((from, to), 1, score)?;
        (best.1 >= LEVEL_T && to - best.0 >= LEVEL_SECONDS).then_some(best)
    };
    let splits = segments((0, rates.len()), &mut split);
    // The second of the change itself is partly one, partly the other.
    let begins = splits.last()?.0;
    let after = (begins..(begins + 2).min(rates.len() - LEVEL_SECONDS + 1)).find_map(|from| {
        let level = &rates[from..];
        let middle = median(level)?;
        let still = level.iter().filter(|rate| (*rate - middle).abs() <= STILL_RATIO * middle);
        // One second in ten may be disturbed.
        (still.count() * 10 >= level.len() * 9 && middle > 0.0).then_some((from, middle))
    });
    let (from, per_s) = after?;
    let before = mean(&rates[..begins.max(1)]);
    if before - per_s < FALL_RATIO * before {
        return None;
    }
    let level = &rates[from..];
    let most = level.iter().copied().fold(0.0, f64::max);
    let least = level.iter().copied().fold(f64::INFINITY, f64::min);
    Some(Cap { per_s, before_per_s: before, at_s: begins as f64, spread_pct: 50.0 * (most - least) / per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rates: &[u64]) -> Vec<SecondRow> {
        let row = |messages_count: &u64| SecondRow { messages_count: *messages_count, ..SecondRow::default() };
        rates.iter().map(row).collect()
    }

    #[test]
    fn a_fall_to_a_still_count_is_a_cap_with_its_second() {
        let mut rates = vec![1074, 1060, 1081, 1070, 1066, 1079, 1075];
        rates.extend([300, 301, 300, 300, 299, 300, 300, 300]);
        let cap = find(&rows(&rates), 15.0).expect("a cap");
        assert_eq!((cap.per_s, cap.at_s), (300.0, 7.0));
        assert!((cap.before_per_s - 1072.0).abs() < 3.0);
        // A second that is half one, half the other.
        rates.insert(7, 640);
        let cap = find(&rows(&rates), 16.0).expect("a cap");
        assert_eq!(cap.per_s, 300.0);
        assert!((7.0..=8.0).contains(&cap.at_s), "{}", cap.at_s);
    }

    #[test]
    fn a_level_that_moves_a_rise_and_a_short_test_are_none() {
        let falls_unsteadily = [900, 910, 905, 890, 900, 900, 310, 280, 350, 300, 260, 330, 300];
        assert_eq!(find(&rows(&falls_unsteadily), 13.0), None);
        let rises = [300, 300, 300, 300, 300, 300, 900, 900, 900, 900, 900, 900];
        assert_eq!(find(&rows(&rises), 12.0), None);
        let steady = [500; 20];
        assert_eq!(find(&rows(&steady), 20.0), None);
        assert_eq!(find(&rows(&[900, 900, 300, 300]), 4.0), None);
    }
}
