//! Rows of the record that several parsers fill: load profile, operations, steps of the series.

use super::draft::{CELLS_MAX, Draft, Reading};
use super::number::{self, Printed};
use assay_measure::record::{Figure, Latency, LoadRow, OpRow};
use assay_measure::snapshot::SettingLine;

const NOT_PRINTED: &str = "not printed";
/// Rows that a list of the record takes at most: tools print fewer, and each is looked for among the others.
const ROWS_MAX: usize = 1000;

/// Jobs of a record at most: fio itself takes 4096, and each takes kilobytes in the record.
pub(crate) const JOBS_MAX: usize = 10_000;

/// Place of the row of the load profile with this name; added where it is not there yet.
pub(crate) fn load_row(draft: &mut Draft, name: &str, unit: &str) -> usize {
    let rows = &mut draft.record.instance.load_profile;
    let found = rows.iter().position(|row| row.name == name);
    let found = found.or_else(|| last_of_many(rows.len(), &mut draft.is_full));
    found.unwrap_or_else(|| {
        let na = || Figure::na(NOT_PRINTED);
        rows.push(LoadRow {
            name: name.to_owned(),
            unit: unit.to_owned(),
            total: na(),
            per_s: na(),
            per_tx: na(),
            per_exec: na(),
            per_call: na(),
            per_op: na(),
            source: "imported".to_owned(),
        });
        rows.len() - 1
    })
}

/// Place of the operation of this kind; added where it is not there yet.
pub(crate) fn op_row(draft: &mut Draft, kind: &str) -> usize {
    let ops = &mut draft.record.driver.ops;
    let found = ops.iter().position(|op| op.kind == kind);
    let found = found.or_else(|| last_of_many(ops.len(), &mut draft.is_full));
    found.unwrap_or_else(|| {
        ops.push(OpRow {
            kind: kind.to_owned(),
            per_s: Figure::na(NOT_PRINTED),
            service: Latency::na(NOT_PRINTED),
            response: Latency::na(NOT_PRINTED),
            ..OpRow::default()
        });
        ops.len() - 1
    })
}

/// The last row of a list that takes no more: what goes there goes nowhere, as the import fails.
fn last_of_many(rows: usize, is_full: &mut bool) -> Option<usize> {
    *is_full |= rows >= ROWS_MAX;
    is_full.then(|| rows.checked_sub(1)).flatten()
}

/// Rows of the load profile that figures of tools go into, by what their keys begin with.
const LOAD: [(&str, &str, &str); 11] = [
    ("transactions", "Transactions", "count"),
    ("ops", "Operations", "count"),
    ("read_io_requests", "Read IO requests", "count"),
    ("write_io_requests", "Write IO requests", "count"),
    ("physical_read_blocks", "Physical read (blocks)", "blocks"),
    ("executes_sql", "Executes (SQL)", "count"),
    ("logical_read_blocks", "Logical read (blocks)", "blocks"),
    ("read_io_mb", "Read IO (MB)", "mib"),
    ("write_io_mb", "Write IO (MB)", "mib"),
    ("redo_size_bytes", "Redo size (bytes)", "bytes"),
    ("db_cpu_s", "DB CPU(s)", "s"),
];

/// Puts a figure where its key says: the run, the load profile, the operation that its key begins with; else into the
/// list alone.
pub(crate) fn file(draft: &mut Draft, reading: Reading, op: &str) {
    let key = reading.key().to_owned();
    if reading.is_scoped() {
        return draft.alone(reading);
    }
    let load = LOAD.iter().find_map(|(stem, row, unit)| Some(((*row, *unit), key.strip_prefix(stem)?)));
    match (key.as_str(), load) {
        ("sessions_count" | "connections_count", _) => put!(draft, reading, run.sessions),
        ("threads_count", _) => put!(draft, reading, driver.threads_count),
        ("elapsed_s", _) => put!(draft, reading, interval.elapsed_s),
        ("schedule_lag_us_avg", _) => put!(draft, reading, driver.schedule_lag.us_avg),
        ("schedule_lag_us_max", _) => put!(draft, reading, driver.schedule_lag.us_max),
        (_, Some(((name, unit), "_count"))) => {
            let row = load_row(draft, name, unit);
            put!(draft, reading, instance.load_profile[row].total);
        }
        (_, Some(((name, unit), "_per_s"))) => {
            let row = load_row(draft, name, unit);
            put!(draft, reading, instance.load_profile[row].per_s);
        }
        ("events_count" | "packets_received_count", _) if !op.is_empty() => operation(draft, reading, op, "_count"),
        _ => match key.strip_prefix(op).filter(|_| !op.is_empty()) {
            Some(statistic) => operation(draft, reading, op, statistic),
            None => draft.alone(reading),
        },
    }
}

/// A statistic of an operation.
fn operation(draft: &mut Draft, reading: Reading, op: &str, statistic: &str) {
    const KEPT: [&str; 8] = ["_count", "_per_s", "_us_avg", "_us_min", "_us_max", "_us_p50", "_us_p90", "_us_p99"];
    if !KEPT.contains(&statistic) {
        return draft.alone(reading);
    }
    let row = op_row(draft, op);
    match statistic {
        "_count" => put!(draft, reading, driver.ops[row].count),
        "_per_s" => put!(draft, reading, driver.ops[row].per_s),
        "_us_avg" => put!(draft, reading, driver.ops[row].service.us_avg),
        "_us_min" => put!(draft, reading, driver.ops[row].service.us_min),
        "_us_max" => put!(draft, reading, driver.ops[row].service.us_max),
        "_us_p50" => put!(draft, reading, driver.ops[row].service.us_p50),
        "_us_p90" => put!(draft, reading, driver.ops[row].service.us_p90),
        _ => put!(draft, reading, driver.ops[row].service.us_p99),
    }
}

/// Where an operation is a transaction: the row `Operations` is the row `Transactions`.
pub(crate) fn operations_are_transactions(draft: &mut Draft) {
    let rows = &draft.record.instance.load_profile;
    let Some(row) = rows.iter().find(|row| row.name == "Transactions").cloned() else {
        return;
    };
    let at = load_row(draft, "Operations", "count");
    let name = "Operations".to_owned();
    draft.record.instance.load_profile[at] = LoadRow { name, ..row };
    let series = &mut draft.record.series.metrics;
    if let Some(steps) = series.get("commits_count_per_s").cloned() {
        series.entry("ops_count_per_s".to_owned()).or_insert(steps);
    }
}

/// The row `Transactions` or `Operations` is of this operation, too.
pub(crate) fn is_of(draft: &mut Draft, row: &str, op: &str) {
    let rows = &draft.record.instance.load_profile;
    let Some(LoadRow { total, per_s, .. }) = rows.iter().find(|known| known.name == row).cloned() else {
        return;
    };
    let at = op_row(draft, op);
    let op = &mut draft.record.driver.ops[at];
    if per_s.value().is_some() {
        op.per_s = per_s;
    }
    if let Some(total) = total.value().filter(|_| op.count == 0) {
        op.count = total as u64;
    }
}

/// A setting of the tool, as it said it.
pub(crate) fn setting(draft: &mut Draft, name: &str, value: &str) {
    draft.record.plan.settings.push(SettingLine {
        name: name.to_owned(),
        value: value.to_owned(),
        origin: "imported".to_owned(),
    });
}

/// Place of the step that ends at this time; a later one is added, an earlier one that is not there is none of a series.
pub(crate) fn step(draft: &mut Draft, end_s: f64) -> Option<usize> {
    let series = &mut draft.record.series;
    match series.t_s.last() {
        Some(last) if *last == end_s => return Some(series.t_s.len() - 1),
        Some(last) if end_s < *last || !end_s.is_finite() => {
            // Several files of one run have the same steps.
            return series.t_s.binary_search_by(|t| t.total_cmp(&end_s)).ok();
        }
        _ => {}
    }
    if (series.t_s.len() + 1) * (series.metrics.len() + 1) > CELLS_MAX {
        draft.is_full = true;
        return None;
    }
    series.t_s.push(end_s);
    series.in_window.push(true);
    for figures in series.metrics.values_mut() {
        figures.push(Figure::na(NOT_PRINTED));
    }
    if let [first, second] = series.t_s[..] {
        series.step_s = Figure::decimal(second - first);
    }
    Some(series.t_s.len() - 1)
}

/// A figure of a step; its scope is the step, so that all have one key.
pub(crate) fn put_step(draft: &mut Draft, reading: Reading, name: &str, step: usize) {
    let steps = draft.record.series.t_s.len();
    let metrics = &mut draft.record.series.metrics;
    if !metrics.contains_key(name) {
        if steps * (metrics.len() + 1) > CELLS_MAX {
            draft.is_full = true;
            return;
        }
        let none = vec![Figure::na(NOT_PRINTED); steps];
        metrics.insert(name.to_owned(), none);
    }
    let base = format!("/series/metrics/{name}");
    if let (Some(figure), Some(figures)) =
        (draft.keep(reading, format!("{base}/{step}")), draft.record.series.metrics.get_mut(name))
    {
        figures[step] = figure;
    }
}

/// `1:02:03.456`, `02:03` in s.
pub(crate) fn clock_s(token: &str) -> Option<Printed> {
    let parts: Vec<&str> = token.trim().split(':').collect();
    let (last, whole) = parts.split_last()?;
    if whole.is_empty() || whole.len() > 2 {
        return None;
    }
    let mut seconds = 0.0;
    for part in whole {
        seconds = (seconds + f64::from(part.parse::<u32>().ok()?)) * 60.0;
    }
    let last = number::measure(last)?;
    Some(Printed {
        value: Figure::decimal(seconds + last.number()?),
        rounding: last.rounding,
        text: token.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::At;
    use super::*;

    #[test]
    fn clocks_are_seconds() {
        let seconds = |token| clock_s(token).map(|printed| (printed.number(), printed.rounding));
        assert_eq!(seconds("0:02:58.752"), Some((Some(178.752), 0.0005)));
        assert_eq!(seconds("0:10:00"), Some((Some(600.0), 0.5)));
        assert_eq!(seconds("12"), None);
        assert_eq!(seconds("a:b"), None);
    }

    #[test]
    fn steps_pad_what_was_not_there() {
        let mut draft = Draft::default();
        let printed = || number::measure("2.5").expect("a number");
        let at = At { file: 0, line: 1 };
        let first = step(&mut draft, 1.0).expect("a step");
        put_step(&mut draft, Reading::new(at, "a", printed()).scope("1"), "a", first);
        let second = step(&mut draft, 2.0).expect("a step");
        put_step(&mut draft, Reading::new(at, "b", printed()).scope("2"), "b", second);
        assert_eq!(step(&mut draft, 1.5), None);
        let series = &draft.record.series;
        assert_eq!(series.metrics["a"].len(), 2);
        assert_eq!(series.metrics["b"][0].value(), None);
        assert_eq!(series.metrics["b"][1].value(), Some(2.5));
    }
}
