//! The per-second series as CSV: one row per second, one column per metric.

use assay_measure::plain::csv_field;
use assay_measure::record::{Figure, Record};
use std::fmt::Write as _;

/// The series with a header line; names carry their units, n/a is an empty field.
#[must_use]
pub fn series(record: &Record) -> String {
    let series = &record.series;
    let mut text = String::from("t_s,in_window");
    for name in series.metrics.keys() {
        text.push(',');
        text.push_str(&csv_field(name));
    }
    text.push('\n');
    for (row, (t_s, inside)) in series.t_s.iter().zip(&series.in_window).enumerate() {
        // Writing into a text cannot fail; a day of seconds is millions of fields.
        let _ = write!(text, "{t_s},{}", u8::from(*inside));
        for column in series.metrics.values() {
            text.push(',');
            match column.get(row) {
                Some(Figure::Count(count)) => {
                    let _ = write!(text, "{count}");
                }
                Some(Figure::Decimal(value)) => {
                    let _ = write!(text, "{value}");
                }
                Some(Figure::Na(_)) | None => {}
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_every_column_and_rates_are_those_of_the_second() {
        let record = assay_awr::record::build(&assay_testkit::fixtures::run());
        let text = series(&record);
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let ops = header.iter().position(|name| *name == "ops_count_per_s").unwrap();
        let p99 = header.iter().position(|name| *name == "db_file_sequential_read_p99_us");
        assert!(p99.is_some(), "{header:?}");
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), record.series.t_s.len());
        assert!(rows.iter().all(|row| row.len() == header.len()));
        assert!(rows.iter().all(|row| row[ops] == "100"), "{text}");
    }
}
