//! Top events, wait classes, wait events and their histograms.

use super::header::percent;
use assay_measure::record::{EventRow, Figure, Record, SAMPLED};
use assay_measure::section::{Cell, Column, Sections, left, number, right};
use assay_measure::units::{fixed, many};
use std::collections::BTreeMap;

/// Rows of "Top Foreground Events".
const TOP: usize = 10;

pub(super) fn top_events(page: &mut Sections, record: &Record) {
    const COLUMNS: [Column; 8] = [
        left("Event", 44),
        right("Waits", 16),
        right("Total (s)", 14),
        right("Avg (us)", 12),
        right("Avg (ms)", 10),
        right("% DB", 7),
        left(" Wait Class", 16),
        left(" Source", 18),
    ];
    page.heading(&format!("Top {TOP} Foreground Events by Total Wait Time"));
    page.brief(5, &["Event", "Total (s)", "Avg (us)", "% DB"]);
    page.columns(&COLUMNS);
    let mut rows: Vec<(f64, [Cell; 8])> = record
        .instance
        .events
        .iter()
        .filter(|event| event.actor == "foreground" && event.class != "Idle")
        .map(|event| {
            let cells = [
                event.name.clone().into(),
                Cell::figure(&event.count, 0),
                Cell::figure(&event.total_us.scaled(1e-6), 3),
                Cell::figure(&event.us_avg, 0),
                Cell::figure(&event.us_avg.scaled(1e-3), 2),
                percent(&event.db_time_pct),
                format!(" {}", event.class).into(),
                format!(" {}", event.source).into(),
            ];
            (event.total_us.value().unwrap_or(0.0), cells)
        })
        .collect();
    let model = &record.instance.time_model;
    let db_time = model.db_time_us.value().unwrap_or(0.0);
    for (name, figure, key) in
        [("DB CPU", &model.db_cpu_us, "db_cpu_us"), ("run queue", &model.run_queue_us, "run_queue_us")]
    {
        let source = model.sources.get(key).map_or("", String::as_str);
        let Some(us) = figure.value().filter(|us| *us > 0.0) else {
            continue;
        };
        let cells = [
            name.into(),
            Cell::default(),
            fixed(us / 1e6, 3).into(),
            Cell::default(),
            Cell::default(),
            percent(&figure.scaled(100.0).per(db_time, "no DB time")),
            Cell::default(),
            format!(" {source}").into(),
        ];
        rows.push((us, cells));
    }
    if rows.is_empty() {
        page.line("n/a (no foreground time)");
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, cells) in rows.iter().take(TOP) {
        page.row(&COLUMNS, cells);
    }
    notes(page, record);
}

/// How sure a sampled time is, and what else is to be said of a row.
fn notes(page: &mut Sections, record: &Record) {
    let foreground = || record.instance.events.iter().filter(|e| e.actor == "foreground");
    let sampled: Vec<String> = foreground()
        .filter(|event| event.is_sampled())
        .map(|event| {
            let error = number(&event.total_error_us.scaled(1e-6), 3);
            format!("{} +/- {error}", event.name)
        })
        .collect();
    if !sampled.is_empty() {
        page.wrapped(
            "  ",
            &format!(
                "sampled: the share of ticks at which a session was in this wait, times the window; standard errors \
                 in s - {}.",
                sampled.join("; ")
            ),
        );
    }
    // What holds for several events is said once.
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for event in foreground().filter(|event| !event.note.is_empty()) {
        match said.iter_mut().find(|(note, _)| *note == event.note) {
            Some((_, names)) => names.push(&event.name),
            None => said.push((&event.note, vec![&event.name])),
        }
    }
    for (note, names) in said {
        page.wrapped("  ", &format!("{} - {note}.", names.join(", ")));
    }
}

pub(super) fn classes(page: &mut Sections, record: &Record) {
    const COLUMNS: [Column; 7] = [
        left("Wait Class", 24),
        right("Waits", 16),
        right("%Time-outs", 12),
        right("Total (s)", 16),
        right("Avg (ms)", 14),
        right("% DB Time", 12),
        left(" Source", 9),
    ];
    page.heading("Foreground Wait Class");
    if record.instance.wait_classes.is_empty() {
        page.line("n/a (no foreground time)");
        return;
    }
    page.columns(&COLUMNS);
    for row in &record.instance.wait_classes {
        page.row(
            &COLUMNS,
            &[
                row.class.clone().into(),
                blank(&row.waits_count, 0).into(),
                blank(&row.timeouts_pct, 0).into(),
                Cell::figure(&row.total_us.scaled(1e-6), 3),
                blank(&row.us_avg.scaled(1e-3), 3).into(),
                percent(&row.db_time_pct),
                format!(" {}", row.source).into(),
            ],
        );
    }
}

fn blank(figure: &Figure, decimals: usize) -> String {
    match figure.reason() {
        Some(_) => String::new(),
        None => number(figure, decimals),
    }
}

const EVENTS: [Column; 7] = [
    left("Event", 44),
    right("Waits", 16),
    right("%Time-outs", 12),
    right("Total (s)", 16),
    right("Avg (ms)", 14),
    right("Waits/txn", 14),
    right("% Time", 9),
];

pub(super) fn foreground(page: &mut Sections, record: &Record) {
    page.heading("Foreground Wait Events");
    page.line("% Time is the share of DB time; idle events are not part of DB time and have no share.");
    events(page, record, "foreground");
}

pub(super) fn background(page: &mut Sections, record: &Record) {
    page.heading("Background Wait Events");
    page.line("% Time is the share of background elapsed time, or of all background waits where these are longer.");
    events(page, record, "background");
}

/// Where the times come from: one line, or the events by their source.
fn origin(page: &mut Sections, rows: &[&EventRow], actor: &str) {
    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows {
        sources.entry(&row.source).or_default().push(&row.name);
    }
    let said = |source: &str| match source {
        "sysstat" => "sysstat (the engine's own stamps)".to_owned(),
        SAMPLED => "sampled (state at each tick; waits are not counted)".to_owned(),
        other => format!("{other} (totals only; single waits are not recorded)"),
    };
    let text: Vec<String> = match sources.len() {
        1 => sources.keys().map(|source| said(source)).collect(),
        _ => {
            let each = |(source, names): (&&str, &Vec<&str>)| format!("{}, of {}", said(source), names.join(", "));
            sources.iter().map(each).collect()
        }
    };
    page.wrapped(&format!("Sources of {actor} times: "), &format!("{}.", text.join("; ")));
}

/// Why events that were counted have no time.
fn untimed(page: &mut Sections, rows: &[&EventRow]) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows {
        if let (Some(reason), Some(_)) = (row.total_us.reason(), row.count.value()) {
            reasons.entry(reason).or_default().push(&row.name);
        }
    }
    for (reason, names) in reasons {
        page.wrapped(&format!("Time n/a ({reason}): "), &format!("{}.", names.join(", ")));
    }
}

fn events(page: &mut Sections, record: &Record, actor: &str) {
    let rows: Vec<&EventRow> = record.instance.events.iter().filter(|e| e.actor == actor).collect();
    if rows.is_empty() {
        page.line("n/a (no waits)");
        return;
    }
    origin(page, &rows, actor);
    untimed(page, &rows);
    page.columns(&EVENTS);
    let tx = record.interval.tx_count.value().filter(|tx| *tx > 0.0);
    for event in rows {
        let per_tx = match (event.count.value(), tx) {
            (Some(count), Some(tx)) => fixed(count / tx, 1),
            _ => "n/a".to_owned(),
        };
        let count = event.count.value().unwrap_or(0.0);
        let timeouts = event.timeouts_count.scaled(100.0).per(count, "no waits");
        page.row(
            &EVENTS,
            &[
                event.name.clone().into(),
                Cell::figure(&event.count, 0),
                Cell::figure(&timeouts, 0),
                Cell::figure(&event.total_us.scaled(1e-6), 3),
                Cell::figure(&event.us_avg.scaled(1e-3), 3),
                per_tx.into(),
                percent(&event.db_time_pct),
            ],
        );
    }
}

pub(super) fn histogram(page: &mut Sections, record: &Record) {
    page.heading("Wait Event Histogram");
    if record.instance.events.is_empty() {
        page.line("n/a (no waits)");
        return;
    }
    let all = record.instance.events.iter();
    let (known, others): (Vec<&EventRow>, Vec<&EventRow>) =
        all.partition(|event| event.hist_us.iter().any(|waits| *waits > 0));
    let others: Vec<String> = others.into_iter().map(row_name).collect();
    if !others.is_empty() {
        page.wrapped(
            "n/a (unknowable): ",
            &format!(
                "single waits of {} are not recorded. Driver Statistics has the distribution of operations.",
                others.join(", ")
            ),
        );
    }
    if known.is_empty() {
        return;
    }
    let timed: Vec<&EventRow> = known.iter().copied().filter(|event| event.is_timed_singly()).collect();
    if !timed.is_empty() {
        percentiles(page, &timed);
        page.line("");
    }
    for event in known.iter().filter(|event| !event.is_timed_singly() && !event.note.is_empty()) {
        page.wrapped(&format!("{}: ", event.name), &format!("{}.", event.note));
    }
    buckets(page, &known);
}

/// Waits by power-of-two bucket, from the first that holds any to the last.
pub(super) fn buckets(page: &mut Sections, events: &[&EventRow]) {
    const COLUMNS: [Column; 6] = [
        left("Event", 44),
        right("Below (us)", 14),
        right("Waits", 14),
        right("%", 8),
        right("Cum %", 8),
        left(" Upper Bound", 20),
    ];
    page.columns(&COLUMNS);
    for event in events {
        let total: u64 = event.hist_us.iter().sum();
        let used = |n: &u64| *n > 0;
        let first = event.hist_us.iter().position(used).unwrap_or(0);
        let last = event.hist_us.iter().rposition(used).unwrap_or(0);
        let mut below = 0_u64;
        for bucket in first..=last {
            let waits = event.hist_us.get(bucket).copied().unwrap_or(0);
            below += waits;
            let pct = |n: u64| Figure::Count(100 * n).per(total as f64, "no waits");
            page.row(
                &COLUMNS,
                &[
                    row_name(event).into(),
                    bound(bucket).into(),
                    Cell::figure(&Figure::Count(waits), 0),
                    percent(&pct(waits)),
                    percent(&pct(below)),
                    format!(" {}", readable(bucket)).into(),
                ],
            );
        }
    }
}

/// An event's name; background events say so, since the table mixes both.
pub(super) fn row_name(event: &EventRow) -> String {
    match event.actor.as_str() {
        "background" => format!("{} (bg)", event.name),
        _ => event.name.clone(),
    }
}

fn percentiles(page: &mut Sections, events: &[&EventRow]) {
    const COLUMNS: [Column; 8] = [
        left("Event (us)", 44),
        right("Waits", 14),
        right("Avg", 11),
        right("p50", 11),
        right("p90", 11),
        right("p99", 11),
        right("p99.9", 11),
        right("Max", 13),
    ];
    page.line("A percentile is the middle of a slot 1/64 octave wide; n/a with fewer than ten waits beyond it.");
    page.columns(&COLUMNS);
    for event in events {
        page.row(
            &COLUMNS,
            &[
                row_name(event).into(),
                Cell::figure(&event.count, 0),
                Cell::figure(&event.us_avg, 1),
                Cell::figure(&event.us_p50, 1),
                Cell::figure(&event.us_p90, 1),
                Cell::figure(&event.us_p99, 1),
                Cell::figure(&event.us_p999, 1),
                Cell::figure(&event.us_max, 1),
            ],
        );
    }
}

/// Upper bound of a bucket as `V$EVENT_HISTOGRAM_MICRO` labels it; the last has none.
fn bound(bucket: usize) -> String {
    match bucket {
        0..=32 => (1_u64 << bucket).to_string(),
        _ => "more".to_owned(),
    }
}

/// The bound in words: `128 microseconds`, `65 milliseconds`, `4 seconds`.
fn readable(bucket: usize) -> String {
    match bucket {
        0..=9 => many(1 << bucket, "microsecond"),
        10..=19 => many((1_u64 << bucket) / 1000, "millisecond"),
        20..=32 => many((1_u64 << bucket) / 1_000_000, "second"),
        _ => "no bound".to_owned(),
    }
}
