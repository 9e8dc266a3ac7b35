//! What verification of a data set reads and finds.

use assay_measure::config::Settings;
use assay_measure::record::Figure;
use assay_run::dataset::lines::{count, decimal, text};
use assay_run::engine::{EngineError, Line};

/// Fewest rows for which the rank correlation of key and row position is meaningful.
const SCATTER_ROWS: u64 = 10_000;
/// Highest absolute correlation of a scattered table.
const CORRELATION_MAX: f64 = 0.05;

/// How much a check reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Right after the load: read nothing in a way that dirties pages.
    Loaded,
    /// Definitions, the index, and the few other reads that each database adds.
    Sampled,
    /// Every row.
    Full,
}

impl Level {
    /// The level that the parameter `CHECK` sets.
    pub(crate) fn asked(settings: &Settings) -> Self {
        match settings.text("CHECK") {
            "sampled" => Self::Sampled,
            _ => Self::Full,
        }
    }
}

/// A figure of a check, with the key and label of its line.
#[derive(Clone, Debug)]
struct Found {
    name: (&'static str, &'static str),
    figure: Figure,
    over_schemas: fn(&Figure, &Figure) -> Figure,
}

/// Figures over all schemas, in the order in which a check reports them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Vec<Found>);

impl Findings {
    /// Adds a figure that is summed over schemas.
    pub(crate) fn sum(&mut self, key: &'static str, label: &'static str, figure: impl Into<Figure>) {
        self.put(key, label, figure.into(), Figure::plus);
    }

    /// Adds a figure whose minimum is kept.
    pub(crate) fn least(&mut self, key: &'static str, label: &'static str, figure: impl Into<Figure>) {
        self.put(key, label, figure.into(), |a, b| if a.value() <= b.value() { a.clone() } else { b.clone() });
    }

    /// Adds a figure whose largest absolute value is kept; n/a if any schema's value is n/a.
    pub(crate) fn most(&mut self, key: &'static str, label: &'static str, figure: impl Into<Figure>) {
        self.put(key, label, figure.into(), |a, b| match (a.value(), b.value()) {
            (Some(left), Some(right)) if left.abs() < right.abs() => b.clone(),
            (Some(_), None) => b.clone(),
            _ => a.clone(),
        });
    }

    fn put(&mut self, key: &'static str, label: &'static str, figure: Figure, over: fn(&Figure, &Figure) -> Figure) {
        self.0.push(Found { name: (key, label), figure, over_schemas: over });
    }

    /// Merges the figures of other schemas.
    pub(crate) fn merge(&mut self, more: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&more.0);
            return;
        }
        for (mine, other) in self.0.iter_mut().zip(&more.0) {
            mine.figure = (mine.over_schemas)(&mine.figure, &other.figure);
        }
    }

    /// Lines for text and JSON output.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let line = |Found { name: (key, label), figure, .. }: &Found| match figure {
            Figure::Count(value) => count(key, label, *value),
            Figure::Decimal(value) => decimal(key, label, *value),
            Figure::Na(reason) => text(key, label, format!("n/a ({reason})")),
        };
        self.0.iter().map(line).collect()
    }
}

/// The error for a table that differs from what was loaded.
pub(crate) fn damaged(table: &str, what: &str) -> EngineError {
    EngineError::Damaged(format!(
        "{table}: {what}; the data set differs from what assay loaded: run `assay destroy`, then `assay prepare`"
    ))
}

/// The server's rank correlation of key and row position, in a table of which all `rows` were read; n/a if the table
/// has too few rows for a meaningful value.
///
/// # Errors
/// `Damaged`: row positions follow the key order, or the correlation is unknown.
pub(crate) fn scattered(table: &str, rows: u64, correlation: Option<&str>) -> Result<Figure, EngineError> {
    let number = correlation.and_then(|text| text.trim().parse::<f64>().ok()).filter(|number| number.is_finite());
    let few = rows < SCATTER_ROWS;
    match number {
        Some(number) if few || number.abs() <= CORRELATION_MAX => Ok(Figure::decimal(number)),
        Some(number) => {
            let what = format!("rows are stored in key order: rank correlation {number:.3}");
            Err(damaged(table, &what))
        }
        None if few => Ok(Figure::na("too few rows")),
        None => {
            let said = correlation.unwrap_or("NULL");
            let what = format!("the server's rank correlation of key and place is not a number: {said}");
            Err(damaged(table, &what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_that_cannot_be_read_does_not_pass() {
        let of = |rows, said| scattered("cf1_1", rows, said).map(|figure| figure.value());
        assert_eq!(of(SCATTER_ROWS, Some(" .04 ")).unwrap(), Some(0.04));
        for said in [None, Some(""), Some("0,04"), Some("NaN"), Some("-.06"), Some("1")] {
            assert!(of(SCATTER_ROWS, said).is_err(), "{said:?}");
        }
        assert_eq!(of(SCATTER_ROWS - 1, Some("1")).unwrap(), Some(1.0), "by chance");
        assert_eq!(of(SCATTER_ROWS - 1, None).unwrap(), None);
    }

    #[test]
    fn figures_of_schemas_come_together_each_in_its_way() {
        let of = |rows: u64, pages: Figure, correlation: f64| {
            let mut found = Findings::default();
            found.sum("rows", "Rows", rows);
            found.sum("pages", "Pages", pages.clone());
            found.least("least", "Least", pages.clone());
            found.most("most", "Most", pages);
            found.most("correlation", "Correlation", correlation);
            found
        };
        let mut all = Findings::default();
        all.merge(&of(5, Figure::Count(7), -0.5));
        all.merge(&of(6, Figure::Count(9), 0.25));
        let values = |of: &Findings| of.0.iter().map(|found| found.figure.value()).collect::<Vec<_>>();
        assert_eq!(values(&all), [Some(11.0), Some(16.0), Some(7.0), Some(9.0), Some(-0.5)]);
        all.merge(&of(1, Figure::na("denied"), 0.0));
        assert_eq!(values(&all), [Some(12.0), None, None, None, Some(-0.5)]);
        assert!(format!("{:?}", all.lines()).contains("n/a (denied)"));
    }
}
