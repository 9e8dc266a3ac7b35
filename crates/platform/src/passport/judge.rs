//! Whether one box does what another did, figure by figure.
//!
//! What disturbs a round makes it slower, never faster. So a figure is worse only where even good rounds here are: the rounds of
//! both sides hardly overlap (Mann-Whitney's U of at most 1), and the second best of them is behind the middle of the passport by
//! more than boxes of one kind differ.

use super::rounds::Row;
use assay_measure::statistics::median;

/// Pairs in the wrong order that two rows of rounds may have and still be apart: one disturbed round.
const OVERLAP: usize = 1;
/// Fewer rounds on a side tell nothing.
const LEAST_ROUNDS: usize = 4;

/// What a figure is, compared with the passport's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Worse,
    Same,
    Better,
    /// A side has too few rounds.
    Unknown,
}

/// The change from the passport's rounds to those here.
pub(super) fn change(row: &Row, theirs: &[f64], ours: &[f64]) -> Change {
    if theirs.len().min(ours.len()) < LEAST_ROUNDS {
        return Change::Unknown;
    }
    // As rates: more is better.
    let better = |value: &f64| if row.is_higher_better { *value } else { -*value };
    let (theirs, ours) = (sorted(theirs, better), sorted(ours, better));
    let wrong = |a: &[f64], b: &[f64]| a.iter().map(|a| b.iter().filter(|b| *b <= a).count()).sum::<usize>();
    let beyond = |value: f64, middle: f64| (value - middle).abs() > row.least * middle.abs();
    let middle = |of: &[f64]| median(of).unwrap_or_default();
    // The second best here against the middle there, and the other way round.
    if wrong(&ours, &theirs) <= OVERLAP && beyond(ours[ours.len() - 2], middle(&theirs)) {
        return Change::Worse;
    }
    if wrong(&theirs, &ours) <= OVERLAP && beyond(theirs[theirs.len() - 2], middle(&ours)) {
        return Change::Better;
    }
    Change::Same
}

fn sorted(values: &[f64], better: impl Fn(&f64) -> f64) -> Vec<f64> {
    let mut all: Vec<f64> = values.iter().map(better).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// From which change on it would have been told, %: beyond the least one, and below the passport's own worst but one.
pub(super) fn told_from_pct(row: &Row, theirs: &[f64]) -> f64 {
    let better = |value: &f64| if row.is_higher_better { *value } else { -*value };
    let all = sorted(theirs, better);
    let (middle, low) = (median(&all).unwrap_or_default(), all.get(1).copied().unwrap_or_default());
    let noise = if middle == 0.0 { 0.0 } else { (middle - low).abs() / middle.abs() };
    100.0 * row.least.max(noise)
}
