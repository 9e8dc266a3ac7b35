//! Per-second figures and steadiness.

use assay_measure::record::{Figure, Record};
use assay_measure::section::{Column, Sections, left, number, number_or_reason, right};
use assay_measure::statistics;
use assay_measure::units::fixed;

/// A longer run is shown in so many steps, each the mean of its seconds.
const ROWS: usize = 60;

const METRICS: [(&str, Column, usize); 9] = [
    ("ops_count_per_s", right("Ops/s", 14), 1),
    ("logical_reads_blocks_per_s", right("Log. reads/s", 15), 0),
    ("read_io_requests_count_per_s", right("Read req/s", 13), 0),
    ("write_io_requests_count_per_s", right("Write req/s", 13), 0),
    ("read_mib_per_s", right("Read MB/s", 11), 1),
    ("write_mib_per_s", right("Write MB/s", 12), 1),
    ("redo_mib_per_s", right("Redo MB/s", 11), 1),
    ("op_us_avg", right("Op avg (us)", 13), 1),
    ("op_us_p99", right("Op p99 (us)", 13), 1),
];

pub(super) fn per_second(page: &mut Sections, record: &Record) {
    page.heading("Per-Second Steadiness");
    let series = &record.series;
    if series.t_s.is_empty() {
        page.line("n/a (no series)");
        return;
    }
    summary(page, record);
    let mut columns = vec![left("Second", 10)];
    columns.extend(METRICS.iter().map(|(_, column, _)| column.clone()));
    if !record.timeline.is_empty() {
        columns.push(left("Events", 7));
    }
    page.line("");
    page.columns(&columns);
    let step = series.t_s.len().div_ceil(ROWS);
    for start in (0..series.t_s.len()).step_by(step) {
        let end = (start + step).min(series.t_s.len());
        let inside = series.in_window[start..end].iter().all(|inside| *inside);
        let mark = if inside { "" } else { " -" };
        let mut cells = vec![format!("{}{mark}", fixed(series.t_s[end - 1], 1))];
        for (name, _, decimals) in METRICS {
            let column = series.metrics.get(name);
            let values = column.map_or(&[][..], |column| &column[start..end]);
            cells.push(number(&mean(values), decimals));
        }
        if !record.timeline.is_empty() {
            let from_s = start.checked_sub(1).map_or(0.0, |before| series.t_s[before]);
            cells.push(super::history::marks(record, from_s, series.t_s[end - 1]));
        }
        page.row(&columns, &cells);
    }
    let span_s = series.step_s.value().unwrap_or(1.0) * step as f64;
    let span =
        if span_s > 1.0 { format!(" Each line is the mean of {} seconds.", fixed(span_s, 0)) } else { String::new() };
    page.line(&format!("Seconds after the gate; - marks seconds outside the measured window.{span}"));
}

/// Mean of the known values: a second without operations has no latency.
fn mean(values: &[Figure]) -> Figure {
    let known: Vec<f64> = values.iter().filter_map(Figure::value).collect();
    match (known.len(), values.first()) {
        (0, Some(first)) => first.clone(),
        (0, None) => Figure::default(),
        _ => Figure::decimal(statistics::mean(&known)),
    }
}

fn summary(page: &mut Sections, record: &Record) {
    let s = &record.checks.steadiness;
    page.line(&format!(
        "Operations/s over {} steps of {} s in the window: mean {}, lowest {}, highest {}.",
        number(&s.steps_count, 0),
        number(&record.series.step_s, 0),
        number_or_reason(&s.mean_per_s, 1),
        number_or_reason(&s.min_per_s, 1),
        number_or_reason(&s.max_per_s, 1),
    ));
    page.line(&format!(
        "Coefficient of variation {} %; last quarter over first quarter {} %.",
        number_or_reason(&s.variation_ratio.scaled(100.0), 1),
        number_or_reason(&s.last_over_first_ratio.scaled(100.0), 1),
    ));
    let changes: Vec<String> = s.change_points_s.iter().map(|at| fixed(*at, 0)).collect();
    if s.mean_per_s.value().is_some() {
        page.line(&if changes.is_empty() {
            "No change of level found.".to_owned()
        } else {
            format!("Changes of level after second {}.", changes.join(", "))
        });
    }
}
