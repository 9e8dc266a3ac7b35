//! Time across: the axis, the columns of a series and what happened when.

use assay_measure::chart::{Axis, Chart, ChartMark, Rows, Stroke, Trace};
use assay_measure::record::{Figure, Record, Series};

/// A run beyond this is shown in hours.
const HOURS_FROM_S: f64 = 7200.0;
/// Why a chart over time is not there.
pub(super) const NO_SERIES: &str = "no series: the record has no figures per step";

/// Seconds of a unit of the axis.
fn unit_s(t_s: &[f64]) -> f64 {
    match t_s.last() {
        Some(last) if *last > HOURS_FROM_S => 3600.0,
        _ => 1.0,
    }
}

/// A chart over the steps of a series, without traces yet.
pub(super) fn chart(record: &Record, id: &str, title: &str, y: Axis, note: &str) -> Chart {
    let t_s = &record.series.t_s;
    let unit = unit_s(t_s);
    let mut marks: Vec<ChartMark> = (record.timeline.iter())
        .filter_map(|row| {
            let at = row.at_s.value()?;
            let change = if row.from.is_empty() && row.to.is_empty() {
                String::new()
            } else {
                format!(" from {} to {}", row.from, row.to)
            };
            let text = format!("{at:.1} s: {}: {}{change}", row.kind, row.text);
            Some(ChartMark { at: at / unit, text })
        })
        .collect();
    for at in &record.checks.steadiness.change_points_s {
        let text = format!("{at:.0} s: the level of operations/s changes");
        marks.push(ChartMark { at: at / unit, text });
    }
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        note: format!("{note}{}", window(&record.series)),
        x: axis(t_s),
        y,
        rows: Rows::Numbers(t_s.iter().map(|t| t / unit).collect()),
        marks,
        ..Chart::default()
    }
}

/// Time, in the unit that suits its length.
pub(super) fn axis(t_s: &[f64]) -> Axis {
    if unit_s(t_s) > 1.0 { Axis::of("time after the gate", "h") } else { Axis::of("time after the gate", "s") }
}

/// Which steps the figures of the report are of.
fn window(series: &Series) -> String {
    let first = series.in_window.iter().position(|inside| *inside);
    let last = series.in_window.iter().rposition(|inside| *inside);
    match (first, last) {
        (Some(first), Some(last)) if first > 0 || last + 1 < series.t_s.len() => {
            let from = first.checked_sub(1).map_or(0.0, |before| series.t_s[before]);
            format!(
                " The measured window is from {from:.1} s to {:.1} s; the time outside it is warm-up or drain.",
                series.t_s[last]
            )
        }
        _ => String::new(),
    }
}

/// A column of the series, if there is one.
pub(super) fn column(record: &Record, key: &str) -> Option<Vec<Option<f64>>> {
    let column = record.series.metrics.get(key)?;
    Some(column.iter().map(Figure::value).collect())
}

/// Traces of the columns that are there: key, name, kind, colour.
pub(super) fn traces(record: &Record, columns: &[(&str, &str, Stroke, &'static str)]) -> Vec<Trace> {
    let there = columns
        .iter()
        .filter_map(|(key, name, kind, color)| Some(Trace::new(name, *kind, color, column(record, key)?)));
    there.collect()
}
