//! Figures that are defined once: what the attribute [`figures`] makes from the fields of a struct, and the code that
//! draws and lists them.

pub use crate::record::Metric;
pub use crate::record::metric::{Better, Group};
pub use crate::section::{Align, Cell};
pub use assay_derive::figures;

use crate::record::Figure;
use crate::record::metric::{of_key, plain};
use crate::section::{Sections, number_or_reason};
use crate::units::size;

/// A struct whose fields are figures: a row of a table, and what compares.
pub trait Figures {
    /// The columns of its table, in the order of the fields.
    fn columns() -> Vec<(&'static str, Align)>;
    /// A cell for each column.
    fn cells(&self) -> Vec<Cell>;
    /// Its metrics, in the order of the fields.
    fn metrics(&self) -> Vec<Metric>;
}

/// What can stand in a column.
pub trait Shown {
    /// Figures stand at the right.
    const ALIGN: Align = Align::Right;
    /// As it is shown.
    fn cell(&self, decimals: usize) -> Cell;
}

impl Shown for Figure {
    fn cell(&self, decimals: usize) -> Cell {
        Cell::figure(self, decimals)
    }
}

impl Shown for u64 {
    fn cell(&self, _decimals: usize) -> Cell {
        self.to_string().into()
    }
}

impl Shown for u32 {
    fn cell(&self, _decimals: usize) -> Cell {
        self.to_string().into()
    }
}

impl Shown for bool {
    const ALIGN: Align = Align::Left;

    fn cell(&self, _decimals: usize) -> Cell {
        if *self { "yes" } else { "" }.into()
    }
}

/// An empty word is shown as `-`: a cell without anything looks like a mistake.
impl Shown for String {
    const ALIGN: Align = Align::Left;

    fn cell(&self, _decimals: usize) -> Cell {
        if self.is_empty() { "-" } else { self.as_str() }.into()
    }
}

impl Shown for Option<String> {
    const ALIGN: Align = Align::Left;

    fn cell(&self, _decimals: usize) -> Cell {
        self.as_deref().unwrap_or_default().into()
    }
}

/// Rows have the metrics of each.
impl<T: Figures> Figures for Vec<T> {
    fn columns() -> Vec<(&'static str, Align)> {
        T::columns()
    }

    fn cells(&self) -> Vec<Cell> {
        self.iter().flat_map(T::cells).collect()
    }

    fn metrics(&self) -> Vec<Metric> {
        self.iter().flat_map(T::metrics).collect()
    }
}

/// A size in a cell.
#[must_use]
pub fn sized(bytes: &u64) -> String {
    size(*bytes)
}

/// A whole figure in a cell, or why there is none.
#[must_use]
pub fn or_reason(figure: &Figure) -> String {
    number_or_reason(figure, 0)
}

/// The words of a text, one blank apart.
#[must_use]
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A metric whose key gives unit and better direction.
#[must_use]
pub fn metric(group: Group, key: &str, name: &str, scope: &str, value: Figure) -> Metric {
    let (unit, better) = of_key(key);
    Metric { scope: scope.to_owned(), ..plain(group, key, name, unit, better, value) }
}

/// A metric with the half-width of the 95 % interval of its mean.
#[must_use]
pub fn between(metric: Metric, half_width: &Figure) -> Metric {
    let interval = metric.value.value().zip(half_width.value());
    Metric { interval: interval.map(|(value, half)| ((value - half).max(0.0), value + half)), ..metric }
}

/// The metrics of a part of a record, measured at this layer.
#[must_use]
pub fn of_layer(layer: &str, part: &impl Figures) -> Vec<Metric> {
    let of_layer = |metric| Metric { layer: layer.to_owned(), ..metric };
    part.metrics().into_iter().map(of_layer).collect()
}

impl Sections {
    /// A table with a column for each figure that has one; empty columns are left out.
    pub fn rows<'a, T: Figures + 'a>(&mut self, rows: impl IntoIterator<Item = &'a T>) {
        let mut rows: Vec<Vec<Cell>> = rows.into_iter().map(T::cells).collect();
        let mut columns = T::columns();
        for at in (0..columns.len()).rev() {
            if !rows.is_empty() && rows.iter().all(|cells| cells[at].text.is_empty()) {
                columns.remove(at);
                rows.iter_mut().for_each(|cells| drop(cells.remove(at)));
            }
        }
        self.fitted(&columns, rows);
    }

    /// Its section: a heading, a sentence and the table; the reason, where there is no row.
    pub fn table_of<T: Figures>(&mut self, title: &str, about: &str, rows: &[T], otherwise: &str) {
        if rows.is_empty() {
            self.missing(title, otherwise);
            return;
        }
        self.heading(title);
        self.wrapped("", about);
        self.rows(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a level.
    #[figures(group = Storage, scope = "{level} {threads_count} cpu")]
    struct Row {
        #[column("Level")]
        level: String,
        #[column("threads")]
        threads_count: u64,
        #[column("size", with = sized)]
        bytes: u64,
        /// The median.
        #[column("GB/s", 1)]
        #[metric("read", half_width = half_width)]
        gb_per_s_p50: Figure,
        half_width: Figure,
        #[columns]
        inner: Inner,
    }

    #[figures]
    struct Inner {
        #[column("note")]
        note: Option<String>,
    }

    #[figures(group = Host)]
    struct Part {
        #[metric("errors", Primary, Lower)]
        errors_count: u64,
        #[metrics]
        rows: Vec<Row>,
    }

    fn row() -> Row {
        Row {
            level: "L1 ".to_owned(),
            threads_count: 2,
            bytes: 4096,
            gb_per_s_p50: Figure::decimal(2.5),
            half_width: Figure::Count(1),
            ..Row::default()
        }
    }

    #[test]
    fn a_figure_that_is_written_once_is_column_cell_and_metric() {
        let titles: Vec<_> = Row::columns().into_iter().map(|(title, _)| title).collect();
        assert_eq!(titles, ["Level", "threads", "size", "GB/s", "note"]);
        let cells: Vec<_> = row().cells().into_iter().map(|cell| cell.text).collect();
        assert_eq!(cells, ["L1 ", "2", "4 KiB", "2.5", ""]);
        let part = Part { errors_count: 3, rows: vec![row(), Row::default()] };
        let all = of_layer("cpu", &part);
        let told: Vec<_> = all.iter().map(|m| (m.full_key(), m.name.as_str(), m.unit.as_str(), m.interval)).collect();
        assert_eq!(told[0], ("errors_count".to_owned(), "errors", "count", None));
        assert_eq!(told[1], ("l1_2_cpu.gb_per_s_p50".to_owned(), "read", "GB/s", Some((1.5, 3.5))));
        assert_eq!((all[0].is_primary, all[1].group, all[2].interval), (true, Group::Storage, None));
        assert_eq!((all[0].better, all[1].better), (Better::Lower, Better::Higher));
        assert!(all.iter().all(|metric| metric.layer == "cpu"));
    }

    #[test]
    fn what_a_record_lacks_is_not_available_and_nothing_is_lost_on_the_way() {
        let read: Part = serde_json::from_str(r#"{"errors_count": 3, "later": 1}"#).unwrap();
        assert_eq!(read, Part { errors_count: 3, ..Part::default() });
        let text = serde_json::to_string(&row()).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row());
    }
}
