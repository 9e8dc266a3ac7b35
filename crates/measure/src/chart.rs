//! A chart as data: what is drawn, with its units, before anything knows how it is drawn.

pub mod buckets;

/// One chart and all its figures, at full resolution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Unique within its page; the element's id.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Where the figures come from and how to read them, in sentences.
    pub note: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// Rows shared by the traces without their own.
    pub rows: Rows,
    /// What is drawn.
    pub traces: Vec<Trace>,
    /// A heat map instead of traces.
    pub heat: Option<Heat>,
    /// Vertical lines: instants and loads of note.
    pub marks: Vec<ChartMark>,
    /// Horizontal lines: goals and limits.
    pub limits: Vec<ChartMark>,
}

/// One axis of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it shows.
    pub title: String,
    /// In which unit; empty for names.
    pub unit: String,
    /// Logarithmic.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn of(title: &str, unit: &str) -> Self {
        Self { title: title.to_owned(), unit: unit.to_owned(), log: false }
    }

    /// A logarithmic axis.
    pub fn log(title: &str, unit: &str) -> Self {
        Self { log: true, ..Self::of(title, unit) }
    }

    /// An axis of these values: logarithmic where they span more than two decades, which a linear one would crowd at 0.
    pub fn spanning(title: &str, unit: &str, values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if low > 0.0 && high > 100.0 * low { Self::log(title, unit) } else { Self::of(title, unit) }
    }

    /// Title with unit.
    pub fn label(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{} ({})", self.title, self.unit) }
    }
}

/// The positions of a trace's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// At these numbers, ascending.
    Numbers(Vec<f64>),
    /// At these names, in this order.
    Names(Vec<String>),
}

impl Default for Rows {
    fn default() -> Self {
        Self::Numbers(Vec::new())
    }
}

impl Rows {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Names(names) => names.len(),
        }
    }
}

/// How a trace is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// A solid line.
    Line,
    /// A dashed line.
    Dashed,
    /// A dotted line.
    Dotted,
    /// An area on top of the areas before it.
    Stacked,
    /// Bars beside those of other traces.
    Bar,
    /// Horizontal bars, one below the other, each starting where its part begins.
    Span,
    /// Points, not joined.
    Points,
    /// Points joined by lines.
    Joined,
    /// Hollow points: computed, not measured.
    Hollow,
}

/// One line, area, set of bars or of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// In the legend and in the table.
    pub name: String,
    /// How it is drawn.
    pub kind: Stroke,
    /// `#rrggbb`, or `ink` for the colour of the page's text.
    pub color: &'static str,
    /// One value a row; none where it is n/a.
    pub y: Vec<Option<f64>>,
    /// Rows of its own instead of the chart's.
    pub x: Option<Rows>,
    /// Where each bar of [`Stroke::Span`] begins.
    pub begins: Vec<f64>,
    /// How far the true value may lie below and above each value.
    pub error: Option<(Vec<f64>, Vec<f64>)>,
}

impl Trace {
    /// A trace over the chart's rows.
    pub fn new(name: &str, kind: Stroke, color: &'static str, y: Vec<Option<f64>>) -> Self {
        Self { name: name.to_owned(), kind, color, y, x: None, begins: Vec::new(), error: None }
    }

    /// A trace over rows of its own.
    pub fn at(self, x: Vec<f64>) -> Self {
        Self { x: Some(Rows::Numbers(x)), ..self }
    }

    /// Whether it has a single value.
    pub fn has_data(&self) -> bool {
        self.y.iter().any(Option::is_some)
    }
}

/// Values by column and row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// In which unit they are; empty for counts.
    pub unit: &'static str,
    /// Where each column ends on the chart's x axis, s after the gate for counts; or the names of the columns.
    pub columns: Rows,
    /// Names of the rows from below.
    pub rows: Vec<String>,
    /// By row, then by column; none where it is n/a.
    pub values: Vec<Vec<Option<f64>>>,
    /// The same in words; empty for counts.
    pub texts: Vec<Vec<String>>,
}

/// A line across the chart with a few words.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartMark {
    /// Where, in the axis' unit.
    pub at: f64,
    /// What it is.
    pub text: String,
}

/// A chart, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// It is there.
    Chart(Box<Chart>),
    /// It would be empty.
    Missing {
        /// Its heading.
        title: String,
        /// Why.
        reason: String,
    },
}

impl Drawn {
    /// No chart of this title, for this reason.
    pub fn missing(title: &str, reason: &str) -> Self {
        Self::Missing { title: title.to_owned(), reason: reason.to_owned() }
    }

    /// The chart without its empty traces; missing for this reason if none is left.
    pub fn or(mut chart: Chart, reason: &str) -> Self {
        chart.traces.retain(Trace::has_data);
        if chart.traces.is_empty() && chart.heat.is_none() {
            Self::missing(&chart.title, reason)
        } else {
            Self::Chart(Box::new(chart))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_logarithmic_beyond_two_decades_and_never_with_a_zero() {
        let is_log = |values: &[f64]| Axis::spanning("load", "", values).log;
        assert!(!is_log(&[1.0, 2.0, 100.0]));
        assert!(is_log(&[1.0, 2.0, 128.0]));
        assert!(!is_log(&[0.0, 2.0, 1000.0]));
        assert!(!is_log(&[]));
    }
}
