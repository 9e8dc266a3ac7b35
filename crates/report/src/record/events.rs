//! Wait events and wait classes of the window.

use super::deltas::{Deltas, micros};
use assay_measure::histogram::Histogram;
use assay_measure::record::{EventRow, Figure, Latency, WaitClassRow};
use assay_measure::snapshot::{Actor, EventReading, WaitClass};
use assay_measure::stats;
use std::collections::BTreeMap;

/// A wait class as `V$EVENT_NAME` spells it.
pub(crate) const fn class_name(class: WaitClass) -> &'static str {
    match class {
        WaitClass::UserIo => "User I/O",
        WaitClass::SystemIo => "System I/O",
        WaitClass::Commit => "Commit",
        WaitClass::Configuration => "Configuration",
        WaitClass::Concurrency => "Concurrency",
        WaitClass::Application => "Application",
        WaitClass::Network => "Network",
        WaitClass::Idle => "Idle",
        WaitClass::Other => "Other",
    }
}

pub(crate) fn actor_name(actor: Actor) -> &'static str {
    match actor {
        Actor::Foreground => "foreground",
        Actor::Background => "background",
    }
}

/// Percentile `q` (0..1) in us; n/a with fewer than ten samples beyond it.
pub(crate) fn percentile_us(histogram: &Histogram, q: f64) -> Figure {
    match histogram.percentile_ns(q) {
        Some(ns) => Figure::decimal(ns as f64 / 1000.0),
        None if histogram.count() == 0 => Figure::na("nothing counted"),
        None => Figure::na("too few samples"),
    }
}

pub(crate) fn mean_us(histogram: &Histogram) -> Figure {
    match histogram.mean_ns() {
        Some(ns) => Figure::decimal(ns / 1000.0),
        None => Figure::na("nothing counted"),
    }
}

fn extreme_us(ns: Option<u64>) -> Figure {
    ns.map_or_else(|| Figure::na("nothing counted"), micros)
}

/// The usual percentiles of a histogram.
pub(crate) fn latency(histogram: &Histogram) -> Latency {
    Latency {
        avg_us: mean_us(histogram),
        min_us: extreme_us(histogram.min_ns()),
        p50_us: percentile_us(histogram, 0.5),
        p90_us: percentile_us(histogram, 0.9),
        p99_us: percentile_us(histogram, 0.99),
        p999_us: percentile_us(histogram, 0.999),
        max_us: extreme_us(histogram.max_ns()),
        hist_ns: histogram.clone(),
    }
}

/// `ns` as a share of `whole` (ns), 0..100.
pub(super) fn share_pct(ns: u64, whole: &Figure) -> Figure {
    match whole.value() {
        Some(0.0) => Figure::na("no time counted"),
        Some(whole) => Figure::decimal(100.0 * ns as f64 / whole),
        None => whole.clone(),
    }
}

pub(super) fn events(deltas: &Deltas<'_>) -> Vec<EventRow> {
    let w = &deltas.window;
    let db_time = w.db_time_ns();
    // A session that leads a log write does background work on its own thread: then the
    // waits add up to more than the background threads' time.
    let waits = w.wait_ns(Actor::Background);
    let elapsed = w.count(stats::BACKGROUND_TIME).unwrap_or(0);
    let background = Figure::Count(elapsed.max(waits));
    let mut waited: Vec<&EventReading> = w
        .stats
        .events
        .iter()
        .filter(|event| event.waits.count() > 0)
        .collect();
    waited.sort_by(|a, b| {
        let key = |e: &EventReading| (e.class == WaitClass::Idle, e.actor);
        (key(a), b.waits.sum_ns(), &a.name).cmp(&(key(b), a.waits.sum_ns(), &b.name))
    });
    waited
        .into_iter()
        .map(|event| event_row(event, &db_time, &background))
        .collect()
}

fn event_row(event: &EventReading, db_time: &Figure, background: &Figure) -> EventRow {
    let spread = latency(&event.waits);
    let whole = match event.actor {
        Actor::Foreground => db_time,
        Actor::Background => background,
    };
    EventRow {
        name: event.name.clone(),
        class: class_name(event.class).to_owned(),
        actor: actor_name(event.actor).to_owned(),
        count: event.waits.count().into(),
        timeouts_count: event.timeouts.into(),
        total_us: micros(event.waits.sum_ns()),
        avg_us: spread.avg_us,
        max_us: spread.max_us,
        db_time_pct: if event.class == WaitClass::Idle {
            Figure::na("idle")
        } else {
            share_pct(event.waits.sum_ns(), whole)
        },
        hist_us: event.waits.pow2_us().to_vec(),
        hist_ns: event.waits.clone(),
        p50_us: spread.p50_us,
        p90_us: spread.p90_us,
        p99_us: spread.p99_us,
        p999_us: spread.p999_us,
        source: "sysstat".to_owned(),
    }
}

pub(super) fn wait_classes(deltas: &Deltas<'_>) -> Vec<WaitClassRow> {
    let w = &deltas.window;
    let db_time = w.db_time_ns();
    let mut classes: BTreeMap<WaitClass, (u64, u64, u64)> = BTreeMap::new();
    for event in w.busy_events(Actor::Foreground) {
        let sums = classes.entry(event.class).or_default();
        sums.0 += event.waits.count();
        sums.1 += event.timeouts;
        sums.2 += event.waits.sum_ns();
    }
    let mut rows: Vec<(u64, WaitClassRow)> = classes
        .into_iter()
        .filter(|(_, (waits, _, _))| *waits > 0)
        .map(|(class, (waits, timeouts, ns))| {
            let row = WaitClassRow {
                class: class_name(class).to_owned(),
                waits_count: waits.into(),
                timeouts_pct: Figure::decimal(100.0 * timeouts as f64 / waits as f64),
                total_us: micros(ns),
                avg_us: Figure::decimal(ns as f64 / 1000.0 / waits as f64),
                db_time_pct: share_pct(ns, &db_time),
            };
            (ns, row)
        })
        .collect();
    if let Some(ns) = w.count(stats::DB_CPU) {
        let row = WaitClassRow {
            class: "DB CPU".to_owned(),
            waits_count: Figure::na("not a wait"),
            timeouts_pct: Figure::na("not a wait"),
            total_us: micros(ns),
            avg_us: Figure::na("not a wait"),
            db_time_pct: share_pct(ns, &db_time),
        };
        rows.push((ns, row));
    }
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.class.cmp(&b.1.class)));
    rows.into_iter().map(|(_, row)| row).collect()
}
