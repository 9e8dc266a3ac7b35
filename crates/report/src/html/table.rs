//! Tables: of a report, and the one behind each chart.

use super::sample::buckets;
use super::spark::Spark;
use assay_measure::chart::{Chart, Heat, Rows, Trace};
use assay_measure::record::Figure;
use assay_measure::section::Head;
use assay_measure::units::{fixed, six, thousands};

/// Rows of a chart's table; beyond [`ROWS_WHOLE`] neighbouring rows are joined to about so many.
const ROWS_JOINED: usize = 240;
/// Rows of a chart's table that are not joined.
const ROWS_WHOLE: usize = 600;
/// Rows of the table of a heat map.
const ROWS_HEAT: usize = 120;

/// A table as the page shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// What it shows and in which units.
    pub(crate) caption: String,
    /// Titles across columns; empty if there are none.
    pub(crate) heads: Vec<Head>,
    /// Titles of the columns, units included.
    pub(crate) columns: Vec<String>,
    /// Cells by row; the first of a row is its heading.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Why there are no rows, if so.
    pub(crate) reason: String,
}

/// What stands in a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// As shown.
    pub(crate) text: String,
    /// Why there is no figure; empty if there is one.
    pub(crate) reason: String,
    /// Right-aligned.
    pub(crate) is_number: bool,
    /// Where it leads; empty if nowhere.
    pub(crate) link: String,
    /// `good`, `warn`, `bad`, or nothing.
    pub(crate) class: &'static str,
    /// A course in place of words.
    pub(crate) spark: Option<Spark>,
}

impl Cell {
    /// Words.
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The same as a link.
    pub(crate) fn linked(self, link: &str) -> Self {
        Self { link: link.to_owned(), ..self }
    }

    /// A figure with so many decimals; a value that is not zero does not look like zero.
    pub(crate) fn figure(figure: &Figure, decimals: usize) -> Self {
        let (text, reason) = match figure {
            Figure::Count(count) => (thousands(*count), ""),
            Figure::Decimal(value) => (fixed(*value, decimals), ""),
            Figure::Na(reason) => ("n/a".to_owned(), reason.as_str()),
        };
        Self { text, reason: reason.to_owned(), is_number: true, ..Self::default() }
    }

    /// A whole number.
    pub(crate) fn count(count: u64) -> Self {
        Self::figure(&Figure::Count(count), 0)
    }

    fn value(value: Option<f64>) -> Self {
        let (text, reason) = match value {
            Some(value) => (six(value), ""),
            None => ("n/a".to_owned(), "no value in this row"),
        };
        Self { text, reason: reason.to_owned(), is_number: true, ..Self::default() }
    }
}

impl Table {
    /// A table without rows yet.
    pub(crate) fn new(caption: &str, columns: &[&str]) -> Self {
        Self {
            caption: caption.to_owned(),
            columns: columns.iter().map(|title| (*title).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Whether a column, counted from 0, holds figures: its title stands as they do.
    pub(crate) fn is_of_numbers(&self, column: &usize) -> bool {
        let cell = |row: &Vec<Cell>| row.get(*column).is_some_and(|cell| cell.is_number);
        self.rows.iter().any(cell)
    }

    /// The table with these rows, or with the reason why there are none.
    pub(crate) fn with(self, rows: Vec<Vec<Cell>>, reason: &str) -> Self {
        Self { reason: if rows.is_empty() { reason } else { "" }.to_owned(), rows, ..self }
    }
}

/// The tables behind a chart: one of its shared rows, and one of the traces that have rows of their own.
pub(crate) fn behind(chart: &Chart) -> Vec<Table> {
    if let Some(heat) = &chart.heat {
        return vec![of_heat(chart, heat)];
    }
    let (own, shared): (Vec<&Trace>, Vec<&Trace>) = chart.traces.iter().partition(|trace| trace.x.is_some());
    let mut tables = Vec::new();
    if !shared.is_empty() {
        tables.push(match (&chart.rows, chart.rows.len() > ROWS_WHOLE) {
            (Rows::Numbers(x), true) => joined(chart, x, &shared),
            _ => whole(chart, &shared),
        });
    }
    if !own.is_empty() {
        tables.push(of_own(chart, &own));
    }
    tables
}

fn row_names(rows: &Rows) -> Vec<String> {
    match rows {
        Rows::Numbers(numbers) => numbers.iter().map(|x| six(*x)).collect(),
        Rows::Names(names) => names.clone(),
    }
}

fn whole(chart: &Chart, traces: &[&Trace]) -> Table {
    let mut columns = vec![chart.x.label()];
    for trace in traces {
        columns.push(trace.name.clone());
        if trace.error.is_some() {
            columns.push(format!("{}, low", trace.name));
            columns.push(format!("{}, high", trace.name));
        }
    }
    let rows = row_names(&chart.rows).into_iter().enumerate();
    let rows = rows.map(|(row, name)| {
        let mut cells = vec![Cell::words(name)];
        for trace in traces {
            let y = trace.y.get(row).copied().flatten();
            cells.push(Cell::value(y));
            if let Some((low, high)) = &trace.error {
                let off = |by: &[f64], sign: f64| Some(y? + sign * by.get(row)?);
                cells.push(Cell::value(off(low, -1.0)));
                cells.push(Cell::value(off(high, 1.0)));
            }
        }
        cells
    });
    Table {
        caption: format!("{}; values: {}", chart.title, chart.y.label()),
        columns,
        rows: rows.collect(),
        ..Table::default()
    }
}

/// Of a long series: neighbouring rows together with their lowest and highest value, so that no spike is lost.
fn joined(chart: &Chart, x: &[f64], traces: &[&Trace]) -> Table {
    let mut columns = vec![format!("until, {}", chart.x.label())];
    for trace in traces {
        columns.push(format!("{}, lowest", trace.name));
        columns.push(format!("{}, highest", trace.name));
    }
    let rows = buckets(x.len(), ROWS_JOINED).map(|(from, to)| {
        let mut cells = vec![Cell::words(six(x[to - 1]))];
        for trace in traces {
            let values = trace.y.get(from..to).unwrap_or_default();
            let known = || values.iter().filter_map(|value| *value);
            cells.push(Cell::value(known().min_by(f64::total_cmp)));
            cells.push(Cell::value(known().max_by(f64::total_cmp)));
        }
        cells
    });
    Table {
        caption: format!(
            "{}; values: {}. Each row covers about {} steps.",
            chart.title,
            chart.y.label(),
            x.len().div_ceil(ROWS_JOINED)
        ),
        columns,
        rows: rows.collect(),
        ..Table::default()
    }
}

fn of_own(chart: &Chart, traces: &[&Trace]) -> Table {
    let mut rows = Vec::new();
    for trace in traces {
        let names = row_names(trace.x.as_ref().unwrap_or(&chart.rows));
        let all: Vec<(String, Option<f64>)> = names.into_iter().zip(trace.y.iter().copied()).collect();
        // Of very many points every so manieth stands for the others.
        let step = all.len().div_ceil(ROWS_WHOLE).max(1);
        for (name, y) in all.into_iter().step_by(step) {
            rows.push(vec![Cell::words(trace.name.clone()), Cell::words(name), Cell::value(y)]);
        }
    }
    Table {
        caption: format!("{}, by series", chart.title),
        columns: vec!["series".to_owned(), chart.x.label(), chart.y.label()],
        rows,
        ..Table::default()
    }
}

fn of_heat(chart: &Chart, heat: &Heat) -> Table {
    let mut columns = vec![chart.x.label()];
    columns.extend(heat.rows.iter().cloned());
    let (caption, rows) = match &heat.columns {
        Rows::Numbers(t_s) => {
            let rows = buckets(t_s.len(), ROWS_HEAT).filter(|(from, to)| from < to).map(|(from, to)| {
                let mut cells = vec![Cell::words(six(t_s[to - 1]))];
                let count = |row: &Vec<Option<f64>>| row[from..to].iter().flatten().sum::<f64>() as u64;
                cells.extend(heat.values.iter().map(|row| Cell::count(count(row))));
                cells
            });
            let caption = match heat.unit {
                "" => format!("{}; counts per bucket up to each instant", chart.title),
                unit => format!("{}, {unit}", chart.title),
            };
            (caption, rows.collect())
        }
        Rows::Names(names) => {
            let rows = names.iter().enumerate().map(|(at, name)| {
                let texts = heat.texts.iter().filter_map(|row| row.get(at)).cloned().map(Cell::words);
                [Cell::words(name.clone())].into_iter().chain(texts).collect()
            });
            (chart.title.clone(), rows.collect())
        }
    };
    Table { caption, columns, rows, ..Table::default() }
}
