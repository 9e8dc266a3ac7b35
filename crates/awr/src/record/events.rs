//! Wait events and wait classes of the window.

use crate::deltas::{Deltas, actor_name, class_name, micros};
use assay_measure::counter_catalog;
use assay_measure::record::{AshInfo, EventRow, Figure, Latency, WaitClassRow};
use assay_measure::snapshot::{Actor, EventReading, WaitClass};
use std::collections::{BTreeMap, BTreeSet};

/// `us` as a share of `whole` (us), 0..100.
fn share_pct(us: &Figure, whole: &Figure) -> Figure {
    match whole.value() {
        Some(0.0) => Figure::na("no time counted"),
        Some(whole) => us.scaled(100.0).per(whole, "no time counted"),
        None => whole.clone(),
    }
}

/// Every event that waited, idle ones last, the actors apart, the largest first.
pub(super) fn events(deltas: &Deltas<'_>, ash: &AshInfo) -> Vec<EventRow> {
    let w = &deltas.window;
    let waited = w.stats.events.iter().filter(|e| e.waits.count() > 0);
    let mut rows: Vec<EventRow> = waited.map(measured).collect();
    super::totals::add(deltas, ash, &mut rows);
    let idle = class_name(WaitClass::Idle);
    let background = actor_name(Actor::Background);
    let is_waiting = |row: &&EventRow| row.actor == background && row.class != idle;
    let waits_us = rows.iter().filter(is_waiting);
    let waits_us: f64 = waits_us.filter_map(|row| row.total_us.value()).sum();
    let elapsed_us = w.count(counter_catalog::BACKGROUND_TIME).unwrap_or(0) as f64 / 1000.0;
    let background_us = Figure::decimal(elapsed_us.max(waits_us));
    let db_time_us = w.db_time_ns().scaled(1e-3);
    for row in &mut rows {
        row.db_time_pct = match (row.class == idle, row.actor == background) {
            (true, _) => Figure::na("idle"),
            (false, true) => share_pct(&row.total_us, &background_us),
            (false, false) => share_pct(&row.total_us, &db_time_us),
        };
    }
    let total = |row: &EventRow| row.total_us.value().unwrap_or(-1.0);
    rows.sort_by(|a, b| {
        let key = |row: &EventRow| (row.class == idle, row.actor == background);
        let order = key(a).cmp(&key(b)).then(total(b).total_cmp(&total(a)));
        order.then_with(|| a.name.cmp(&b.name))
    });
    rows
}

/// The row of an event whose every wait was timed; its share comes later.
fn measured(event: &EventReading) -> EventRow {
    let spread = Latency::of(&event.waits);
    EventRow {
        name: event.name.clone(),
        class: class_name(event.class).to_owned(),
        actor: actor_name(event.actor).to_owned(),
        count: event.waits.count().into(),
        timeouts_count: event.timeouts.into(),
        total_us: micros(event.waits.sum_ns()),
        us_avg: spread.us_avg,
        us_max: spread.us_max,
        hist_us: event.waits.pow2_us().to_vec(),
        hist_ns: event.waits.clone(),
        us_p50: spread.us_p50,
        us_p90: spread.us_p90,
        us_p99: spread.us_p99,
        us_p999: spread.us_p999,
        source: "sysstat".to_owned(),
        total_error_us: Figure::na("not sampled"),
        ..EventRow::default()
    }
}

/// The sources of some rows that have a time, each once, joined by `+`.
pub(super) fn sources<'a>(rows: impl Iterator<Item = &'a EventRow>) -> String {
    let timed = rows.filter(|row| row.total_us.value().is_some());
    let sources: BTreeSet<&str> = timed.map(|row| row.source.as_str()).collect();
    sources.into_iter().collect::<Vec<_>>().join("+")
}

/// Foreground time by class: sums of the events' rows, and DB CPU.
pub(super) fn wait_classes(deltas: &Deltas<'_>, events: &[EventRow]) -> Vec<WaitClassRow> {
    let idle = class_name(WaitClass::Idle);
    let db_time_us = deltas.window.db_time_ns().scaled(1e-3);
    let mut classes: BTreeMap<&str, Vec<&EventRow>> = BTreeMap::new();
    let foreground = actor_name(Actor::Foreground);
    for event in events {
        let is_timed = event.total_us.value().is_some();
        if event.actor == foreground && event.class != idle && is_timed {
            classes.entry(&event.class).or_default().push(event);
        }
    }
    let mut rows: Vec<WaitClassRow> =
        classes.into_iter().map(|(class, events)| class_row(class, &events, &db_time_us)).collect();
    let cpu = deltas.window.get(counter_catalog::DB_CPU);
    if cpu.value().is_some() {
        let total_us = cpu.scaled(1e-3);
        rows.push(WaitClassRow {
            class: "DB CPU".to_owned(),
            waits_count: Figure::na("not a wait"),
            timeouts_pct: Figure::na("not a wait"),
            us_avg: Figure::na("not a wait"),
            db_time_pct: share_pct(&total_us, &db_time_us),
            source: deltas.source(counter_catalog::DB_CPU),
            total_us,
        });
    }
    let total = |row: &WaitClassRow| row.total_us.value().unwrap_or(0.0);
    rows.sort_by(|a, b| {
        let order = total(b).total_cmp(&total(a));
        order.then_with(|| a.class.cmp(&b.class))
    });
    rows
}

fn class_row(class: &str, events: &[&EventRow], db_time_us: &Figure) -> WaitClassRow {
    let sum = |of: fn(&EventRow) -> &Figure| {
        let parts = events.iter().map(|event| of(event));
        parts.fold(Figure::Count(0), |sum, part| sum.plus(part))
    };
    let waits_count = sum(|event| &event.count);
    let total_us = sum(|event| &event.total_us);
    let per_wait = |figure: Figure| match waits_count.value() {
        Some(waits) => figure.per(waits, "no waits"),
        None => waits_count.clone(),
    };
    WaitClassRow {
        class: class.to_owned(),
        timeouts_pct: per_wait(sum(|event| &event.timeouts_count).scaled(100.0)),
        us_avg: per_wait(total_us.clone()),
        db_time_pct: share_pct(&total_us, db_time_us),
        source: sources(events.iter().copied()),
        waits_count,
        total_us,
    }
}
