//! The per-second series as CSV: one row per second, one column per metric.

use super::{Format, FormatError, PLAIN, Written};
use crate::kinds;
use assay_measure::plain::csv_field;
use assay_measure::record::{Figure, Record};
use std::io::Write;

pub(super) const CSV: Format = Format {
    name: super::CSV,
    help: "The per-second series, for spreadsheets",
    media_type: "text/csv",
    write: |input, out| {
        let record = input.record()?;
        if kinds::stands_above_runs(record) {
            return Err(FormatError::Several);
        }
        series(record, out)
    },
    ..PLAIN
};

/// The series with a header line; names carry their units, n/a is an empty field.
fn series(record: &Record, out: &mut dyn Write) -> Written {
    let series = &record.series;
    write!(out, "t_s,in_window")?;
    for name in series.metrics.keys() {
        write!(out, ",{}", csv_field(name))?;
    }
    writeln!(out)?;
    for (row, (t_s, inside)) in series.t_s.iter().zip(&series.in_window).enumerate() {
        write!(out, "{t_s},{}", u8::from(*inside))?;
        for column in series.metrics.values() {
            match column.get(row) {
                Some(Figure::Count(count)) => write!(out, ",{count}")?,
                Some(Figure::Decimal(value)) => write!(out, ",{value}")?,
                Some(Figure::Na(_)) | None => write!(out, ",")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_every_column_and_rates_are_those_of_the_second() {
        let record = assay_awr::record::build(&assay_testkit::fixtures::run());
        let text = CSV.text(&crate::formats::Input::of(&[&record])).unwrap();
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let ops = header.iter().position(|name| *name == "ops_count_per_s").unwrap();
        let p99 = header.iter().position(|name| *name == "db_file_sequential_read_us_p99");
        assert!(p99.is_some(), "{header:?}");
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), record.series.t_s.len());
        assert!(rows.iter().all(|row| row.len() == header.len()));
        assert!(rows.iter().all(|row| row[ops] == "100"), "{text}");
    }
}
