//! A figure in large digits.

use super::spark::Spark;
use assay_measure::record::{Figure, Metric};
use assay_measure::units::{fixed, readable, significant, thousands};

/// A figure of the headline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tile {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) unit: String,
    /// Its course over the window; none where the record has no steps of it.
    pub(crate) spark: Option<Spark>,
}

/// A figure with its name, without its course.
pub(crate) fn tile(metric: &Metric) -> Tile {
    // Some names say whose figure it is.
    let scope = if metric.scope.is_empty() || metric.name.contains(&metric.scope) {
        String::new()
    } else {
        format!("{}: ", metric.scope)
    };
    let unit = match metric.value.value() {
        Some(value) => readable(value, &metric.unit),
        None => (1.0, String::new()),
    };
    Tile {
        name: format!("{scope}{}", metric.name),
        value: match &metric.value {
            Figure::Na(reason) => format!("n/a ({reason})"),
            Figure::Count(count) if unit.0 == 1.0 => thousands(*count),
            figure => headline(figure.value().unwrap_or_default() / unit.0),
        },
        unit: unit.1,
        spark: None,
    }
}

/// Four digits, all whole digits kept.
pub(crate) fn headline(value: f64) -> String {
    if value.abs() >= 1000.0 || value == 0.0 { fixed(value, 0) } else { significant(value, 4) }
}
