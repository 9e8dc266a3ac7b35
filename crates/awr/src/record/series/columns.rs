//! The figures of a series while it grows: 8 bytes each, reasons once.

use assay_measure::record::Figure;
use std::collections::BTreeMap;

/// Significant digits of a decimal: a rate of a second is not known better, and a day of them is read and written.
const DIGITS: i32 = 7;

/// Columns of equal length by name; a name that appears late is n/a (absent) before.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    rows: usize,
    by_name: BTreeMap<String, Column>,
    /// Reasons for no figure; a cell holds an index into them.
    reasons: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Column {
    /// Numbers; a quiet NaN with an index into the reasons where there is none.
    cells: Vec<f64>,
    /// A decimal was among the numbers; else all are counts.
    is_decimal: bool,
}

/// Bits of a NaN below its quiet bit and above the index.
const NA: u64 = 0x7ff8_0000_0000_0000;

impl Columns {
    /// Adds a row; names it does not have are n/a (absent) in it.
    pub(super) fn push(&mut self, row: Vec<(String, Figure)>) {
        let absent = self.reason("absent");
        for (name, figure) in row {
            let cell = match &figure {
                Figure::Count(count) => *count as f64,
                Figure::Decimal(value) => *value,
                Figure::Na(reason) => self.reason(reason),
            };
            let rows = self.rows;
            let column = self.by_name.entry(name).or_default();
            column.is_decimal |= matches!(figure, Figure::Decimal(_));
            column.cells.resize(rows, absent);
            column.cells.push(cell);
        }
        self.rows += 1;
    }

    fn reason(&mut self, reason: &str) -> f64 {
        let at = self.reasons.iter().position(|known| known == reason);
        let at = at.unwrap_or_else(|| {
            self.reasons.push(reason.to_owned());
            self.reasons.len() - 1
        });
        f64::from_bits(NA | at as u64)
    }

    /// Puts 0 where `known` rows of the columns with this prefix have nothing.
    pub(super) fn zero_where(&mut self, known: &[bool], prefix: &str) {
        let absent = self.reason("absent").to_bits();
        for (_, column) in self.by_name.iter_mut().filter(|(name, _)| name.starts_with(prefix)) {
            column.cells.resize(self.rows, f64::from_bits(absent));
            for (cell, known) in column.cells.iter_mut().zip(known) {
                if *known && cell.to_bits() == absent {
                    *cell = 0.0;
                }
            }
        }
    }

    /// The figures, decimals to seven significant digits.
    pub(super) fn finish(self) -> BTreeMap<String, Vec<Figure>> {
        let Self { rows, by_name, reasons } = self;
        let figures = |column: Column| {
            let Column { cells, is_decimal } = column;
            let mut figures = Vec::with_capacity(rows);
            figures.extend(cells.into_iter().map(|cell| {
                if cell.is_nan() {
                    let at = (cell.to_bits() & !NA) as usize;
                    return reasons.get(at).map_or_else(Figure::default, |r| Figure::na(r));
                }
                if is_decimal { Figure::Decimal(rounded(cell)) } else { Figure::Count(cell as u64) }
            }));
            figures.resize(rows, Figure::default());
            figures
        };
        let columns = by_name.into_iter();
        columns.map(|(name, column)| (name, figures(column))).collect()
    }
}

/// The nearest number of [`DIGITS`] significant digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let shift = DIGITS - 1 - value.abs().log10().floor() as i32;
    // Powers of ten up to 22 are exact, so the quotient is the double nearest to the decimal.
    match shift {
        0..=22 => (value * 10_f64.powi(shift)).round() / 10_f64.powi(shift),
        -22..0 => (value / 10_f64.powi(-shift)).round() * 10_f64.powi(-shift),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_back_and_late_columns_are_absent_before() {
        let mut columns = Columns::default();
        let row = |cells: &[(&str, Figure)]| cells.iter().map(|(n, f)| ((*n).to_owned(), f.clone())).collect();
        columns.push(row(&[("a", Figure::Count(7)), ("b", Figure::na("reset"))]));
        columns.push(row(&[("b", Figure::decimal(1.0 / 3.0)), ("c", 5_u64.into())]));
        columns.push(row(&[("a", Figure::Count(1 << 50))]));
        let all = columns.finish();
        let absent = Figure::default;
        assert_eq!(all["a"], [Figure::Count(7), absent(), Figure::Count(1 << 50)]);
        assert_eq!(all["b"], [Figure::na("reset"), 0.3333333.into(), absent()]);
        assert_eq!(all["c"], [absent(), Figure::Count(5), absent()]);
    }

    #[test]
    fn decimals_have_seven_significant_digits_and_print_short() {
        assert_eq!(rounded(12_345.678_912_3).to_string(), "12345.68");
        assert_eq!(rounded(0.000_123_456_789).to_string(), "0.0001234568");
        assert_eq!(rounded(-98_765_432_109.0).to_string(), "-98765430000");
        assert_eq!(rounded(1e300), 1e300);
        assert_eq!(rounded(0.0), 0.0);
    }
}
