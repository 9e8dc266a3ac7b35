//! Medians and the tables the benches print.

use super::Options;
use anyhow::Result;

/// The middle of the values; the mean of the two middle ones when there is an even number.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// One quantity of ours beside theirs, pair by pair.
#[derive(Clone)]
pub(crate) struct Pairs {
    /// What it is, with its unit.
    pub(crate) name: &'static str,
    /// Ours, in order of measurement.
    pub(crate) ours: Vec<f64>,
    /// The yardstick's.
    pub(crate) theirs: Vec<f64>,
    /// The ratio asked for, in words.
    pub(crate) goal: &'static str,
}

impl Pairs {
    /// Nothing measured yet.
    pub(crate) fn new(name: &'static str, goal: &'static str) -> Self {
        Self { name, ours: Vec::new(), theirs: Vec::new(), goal }
    }

    /// Ours divided by theirs, pair by pair: drift of the machine falls out of it.
    pub(crate) fn ratios(&self) -> Vec<f64> {
        let pairs = self.ours.iter().zip(&self.theirs);
        pairs.map(|(ours, theirs)| ours / theirs).collect()
    }
}

/// Adds what one pair of measurements found, ours and theirs of each row.
pub(crate) fn push(rows: &mut [Pairs], figures: &[(f64, f64)]) {
    assert_eq!(rows.len(), figures.len(), "a figure for every row");
    for (row, (ours, theirs)) in rows.iter_mut().zip(figures) {
        row.ours.push(*ours);
        row.theirs.push(*theirs);
    }
}

/// Who goes first changes from pair to pair, so that neither always finds the device warm.
pub(crate) fn alternate<A, B>(
    pair: usize,
    ours: impl FnOnce() -> Result<A>,
    theirs: impl FnOnce() -> Result<B>,
) -> Result<(A, B)> {
    if pair.is_multiple_of(2) {
        let ours = ours()?;
        Ok((ours, theirs()?))
    } else {
        let theirs = theirs()?;
        Ok((ours()?, theirs))
    }
}

/// Prints medians, the ratio with its spread over the pairs, and the goal; keeps the ratios. `part` tells apart
/// the tables of one bench.
pub(crate) fn print_pairs(options: &Options, part: &str, [ours, theirs]: [&str; 2], rows: &[Pairs]) {
    let place = match (options.bench.get(), part) {
        (bench, "") => bench.to_owned(),
        (bench, part) => format!("{bench}, {part}"),
    };
    let kept = rows.iter().map(|row| (place.clone(), row.clone()));
    options.kept.borrow_mut().extend(kept);
    println!("{:<30} {ours:>14} {theirs:>14} {:>7} {:>15}  goal", "median", "ratio", "of the pairs");
    for row in rows {
        let ratios = row.ratios();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        let (ratio, spread) = if ratios.is_empty() {
            ("n/a".to_owned(), String::new())
        } else {
            (format!("{:.3}", median(&ratios)), format!("{low:.3} - {high:.3}"))
        };
        println!(
            "{:<30} {:>14} {:>14} {ratio:>7} {spread:>15}  {}",
            row.name,
            figure(median(&row.ours)),
            figure(median(&row.theirs)),
            row.goal
        );
    }
}

/// Four significant digits or thousands separators.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    if value.abs() < 1000.0 {
        return format!("{value:.3}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_order_and_outliers() {
        assert_eq!(median(&[3.0, 1.0, 1000.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 1000.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_ratio_is_taken_pair_by_pair() {
        let pairs = Pairs { name: "x", ours: vec![1.0, 20.0, 300.0], theirs: vec![2.0, 20.0, 200.0], goal: "" };
        assert_eq!(pairs.ratios(), [0.5, 1.0, 1.5]);
    }

    #[test]
    fn figures_are_grouped_by_thousands() {
        assert_eq!(figure(1_234_567.4), "1,234,567");
        assert_eq!(figure(999.5), "999.500");
        assert_eq!(figure(f64::NAN), "n/a");
    }
}
