//! Activity history and the events on the time line.

use crate::deltas::{CPU, RUN_QUEUE, class_name};
use assay_measure::record::{AshRow, Figure, Record, TimelineRow};
use assay_measure::section::{Cell, Column, Sections, left, number, number_or_reason, right, wrapped};
use assay_measure::snapshot::WaitClass;
use assay_measure::statistics;
use assay_measure::units::fixed;

/// A longer run is shown in so many lines, each the mean of its seconds.
const ROWS: usize = 60;
/// Width of the chart, characters.
const CHART: usize = 60;

/// Class, its letter in the chart, its metric in the series; drawn from left to right.
const LETTERS: [(&str, char, &str); 10] = [
    (CPU, 'C', "active_cpu_count"),
    (RUN_QUEUE, 'q', "active_run_queue_count"),
    (class_name(WaitClass::UserIo), 'U', "active_user_io_count"),
    (class_name(WaitClass::Commit), 'M', "active_commit_count"),
    (class_name(WaitClass::Configuration), 'F', "active_configuration_count"),
    (class_name(WaitClass::Concurrency), 'X', "active_concurrency_count"),
    (class_name(WaitClass::Application), 'A', "active_application_count"),
    (class_name(WaitClass::SystemIo), 'S', "active_system_io_count"),
    (class_name(WaitClass::Network), 'N', "active_network_count"),
    (class_name(WaitClass::Other), 'o', "active_other_count"),
];

pub(super) fn history(page: &mut Sections, record: &Record) {
    let ash = &record.instance.ash;
    if let Some(reason) = ash.ticks_count.reason() {
        page.missing("Activity History", reason);
        return;
    }
    page.heading("Activity History");
    page.line(&format!(
        "Sessions inside a call, sampled every {} ms: {} of {} expected ticks, {} s without a sample.",
        number(&ash.interval_achieved_ms, 1),
        number(&ash.ticks_count, 0),
        number(&ash.ticks_expected_count, 0),
        number(&ash.holes_s, 1),
    ));
    let allowed = match ash.db_time_allowed_ratio.reason() {
        Some(reason) => reason.to_owned(),
        None => format!("{} % difference is allowed", number(&ash.db_time_allowed_ratio.scaled(100.0), 1)),
    };
    page.line(&format!(
        "Active sessions: {} on average, at most {}. DB time by samples {} s, measured {} s; \
         {allowed}.",
        number(&ash.active_count, 2),
        number(&ash.max_active_count, 0),
        number(&ash.db_time_s, 1),
        number_or_reason(&ash.db_time_measured_s, 1),
    ));
    page.line(&format!(
        "Of the sessions on CPU or queued, {} used a CPU according to the CPU clocks; run queue: {}.",
        number_or_reason(&ash.cpu_used_count, 2),
        number_or_reason(&ash.run_queue_count, 2),
    ));
    page.line("");
    table(page, record);
    chart(page, record);
}

fn table(page: &mut Sections, record: &Record) {
    const COLUMNS: [Column; 5] = [
        left("Class / Event", 44),
        right("Samples", 14),
        right("Active Sessions", 17),
        right("% Activity", 12),
        right("+/- % (1 sigma)", 17),
    ];
    page.columns(&COLUMNS);
    let mut line = |name: String, row: &AshRow| {
        page.row(
            &COLUMNS,
            &[
                name.into(),
                Cell::figure(&row.samples_count, 0),
                Cell::figure(&row.active_count, 2),
                Cell::figure(&row.share_pct, 1),
                Cell::figure(&row.share_error_pct, 1),
            ],
        );
    };
    for (class, row) in by_activity(&record.instance.ash.by_class) {
        line(class.clone(), row);
        let events = by_activity(&record.instance.ash.by_event);
        for (event, row) in events.filter(|(event, row)| row.class == *class && *event != class) {
            line(format!("  {event}"), row);
        }
    }
}

/// The most active first.
fn by_activity(rows: &std::collections::BTreeMap<String, AshRow>) -> impl Iterator<Item = (&String, &AshRow)> {
    let mut rows: Vec<_> = rows.iter().collect();
    let active = |row: &AshRow| row.active_count.value().unwrap_or(0.0);
    rows.sort_by(|a, b| active(b.1).total_cmp(&active(a.1)));
    rows.into_iter()
}

/// One line a second: a letter for each share of a session, by class.
fn chart(page: &mut Sections, record: &Record) {
    let series = &record.series;
    let step = series.t_s.len().div_ceil(ROWS).max(1);
    let mean = |name: &str, from: usize, to: usize| {
        let column = series.metrics.get(name).map_or(&[][..], |c| &c[from..to]);
        let known: Vec<f64> = column.iter().filter_map(Figure::value).collect();
        (!known.is_empty()).then(|| statistics::mean(&known))
    };
    let rows: Vec<(usize, [f64; LETTERS.len()])> = (0..series.t_s.len())
        .step_by(step)
        .filter_map(|from| {
            let to = (from + step).min(series.t_s.len());
            mean("active_max_count", from, to)?;
            let active = LETTERS.map(|(_, _, name)| mean(name, from, to).unwrap_or(0.0));
            Some((to - 1, active))
        })
        .collect();
    let most = rows.iter().map(|(_, active)| active.iter().sum::<f64>());
    let scale = most.fold(0.0, f64::max);
    if scale == 0.0 {
        return;
    }
    let used = LETTERS.iter().enumerate().filter(|(i, _)| rows.iter().any(|row| row.1[*i] > 0.0));
    let legend: Vec<String> = used.map(|(_, (class, letter, _))| format!("{letter} {class}")).collect();
    page.line("");
    page.line(&format!(
        "Average active sessions: {}; one letter stands for {} sessions.",
        legend.join(", "),
        fixed(scale / CHART as f64, 3),
    ));
    const COLUMNS: [Column; 4] =
        [left("Second", 10), right("Active", 9), right("CPUs", 7), left("By Class", CHART + 1)];
    page.columns(&COLUMNS);
    for (row, active) in rows {
        let cpus = series.metrics.get("usable_cpus_count").and_then(|c| c.get(row));
        let cpus = cpus.and_then(Figure::value);
        let cells = [
            fixed(series.t_s[row], 1),
            fixed(active.iter().sum(), 2),
            cpus.map_or_else(|| "n/a".to_owned(), |cpus| fixed(cpus, 1)),
            bar(&active, scale),
        ];
        page.row(&COLUMNS, &cells);
    }
}

/// Letters up to each class's share of the scale, rounded at their sums so that the length is right.
fn bar(active: &[f64; LETTERS.len()], scale: f64) -> String {
    let (mut text, mut sum) = (String::new(), 0.0);
    for ((_, letter, _), active) in LETTERS.iter().zip(active) {
        sum += active;
        let upto = (sum / scale * CHART as f64).round() as usize;
        while text.len() < upto {
            text.push(*letter);
        }
    }
    text
}

pub(super) fn timeline(page: &mut Sections, record: &Record) {
    page.heading("Events on the Time Line");
    if record.timeline.is_empty() {
        page.line("None: no command was planned, no script was called, and the CPUs did not change.");
        return;
    }
    const COLUMNS: [Column; 5] =
        [right("No", 3), right("After Gate", 13), left("", 3), left("UTC", 9), wrapped("What")];
    page.untitled(&COLUMNS);
    for (i, row) in record.timeline.iter().enumerate() {
        let cells = [
            (i + 1).to_string(),
            number(&row.at_s, 3),
            "s".to_owned(),
            row.wall.chars().skip(11).take(8).collect(),
            sentence(row),
        ];
        page.row(&COLUMNS, &cells);
    }
    page.line("Seconds after the gate; the per-second table shows the event numbers.");
}

fn sentence(row: &TimelineRow) -> String {
    if !row.from.is_empty() {
        return format!("{} {}: {} -> {}", row.kind, row.text, row.from, row.to);
    }
    let mut text = format!("{}: {}", row.kind, row.text);
    if !row.status.is_empty() {
        text.push_str(&format!("; {}", row.status));
    }
    if row.took_s.value().is_some() {
        text.push_str(&format!(" after {} s", number(&row.took_s, 2)));
    }
    if !row.output.is_empty() {
        text.push_str(&format!(", output in {}", row.output));
    }
    text
}

/// Numbers of the events that fell into a step of the series, for its line.
pub(super) fn marks(record: &Record, from_s: f64, to_s: f64) -> String {
    let inside = record.timeline.iter().enumerate().filter(|(_, row)| {
        let at_s = row.at_s.value();
        // What came before the gate is not of its first second.
        at_s.is_some_and(|at_s| at_s > from_s && at_s <= to_s)
    });
    let numbers: Vec<String> = inside.map(|(i, _)| format!("{}", i + 1)).collect();
    numbers.join(",")
}
