//! Events of a server: totals of its views, and the waits in which samples found its sessions.
//!
//! A server keeps no single waits. Some events have a count and a time, most have only samples of the sessions' states;
//! an event that has both is one row, never two.

use crate::deltas::{Deltas, Sampled, actor_name, class_name, sampled};
use assay_measure::record::{AshInfo, EventRow, Figure, SAMPLED};
use assay_measure::snapshot::{Actor, BucketReading, Reading, TimedReading, WaitClass};

/// Adds the rows of totals and, beside a server, of samples.
pub(super) fn add(deltas: &Deltas<'_>, ash: &AshInfo, rows: &mut Vec<EventRow>) {
    let timed = deltas.window.stats.timed.iter();
    rows.extend(timed.filter_map(total_row));
    for event in &deltas.window.stats.buckets {
        bucketed(event, rows);
    }
    if !deltas.is_server() {
        return;
    }
    let foreground = actor_name(Actor::Foreground);
    for (line, sampled) in sampled(ash, &deltas.data.engine_facts) {
        let mut mine = rows.iter_mut();
        match mine.find(|row| row.name == line && row.actor == foreground) {
            Some(row) => row.joined(deltas, ash, &sampled),
            None => rows.push(sampled_row(deltas, ash, line, &sampled)),
        }
    }
    // A count without a time, never found by a sample, is kept: it says that the event was there.
    rows.retain(|row| row.total_us.value().is_some() || row.count.value().is_some());
}

fn figure(reading: &Reading) -> Figure {
    match reading {
        Reading::Count(count) => Figure::Count(*count),
        Reading::Na(reason) => Figure::na(reason),
    }
}

/// An event without any distribution.
fn bare(name: &str, class: &str, actor: Actor) -> EventRow {
    let unknowable = || Figure::na("unknowable");
    EventRow {
        name: name.to_owned(),
        class: class.to_owned(),
        actor: actor_name(actor).to_owned(),
        count: unknowable(),
        timeouts_count: unknowable(),
        total_us: unknowable(),
        us_avg: unknowable(),
        us_max: unknowable(),
        us_p50: unknowable(),
        us_p90: unknowable(),
        us_p99: unknowable(),
        us_p999: unknowable(),
        total_error_us: Figure::na("not sampled"),
        ..EventRow::default()
    }
}

/// The row of a total; none where nothing was counted.
fn total_row(timed: &TimedReading) -> Option<EventRow> {
    if matches!(timed.waits, Reading::Count(0)) {
        return None;
    }
    let (count, total_us) = (figure(&timed.waits), figure(&timed.wait_ns).scaled(1e-3));
    let us_avg = match count.value() {
        Some(waits) => total_us.per(waits, "no waits"),
        None => count.clone(),
    };
    Some(EventRow {
        count,
        total_us,
        us_avg,
        source: timed.source.clone(),
        ..bare(&timed.name, class_name(timed.class), timed.actor)
    })
}

/// Gives an event its buckets: the row of the foreground where both waited, and the row says so.
fn bucketed(event: &BucketReading, rows: &mut [EventRow]) {
    if event.waits.iter().all(|waits| *waits == 0) {
        return;
    }
    let mut mine: Vec<&mut EventRow> = rows.iter_mut().filter(|row| row.name == event.name).collect();
    let foreground = actor_name(Actor::Foreground);
    let both = mine.len() > 1;
    mine.sort_by_key(|row| row.actor != foreground);
    if let Some(row) = mine.into_iter().next() {
        row.hist_us.clone_from(&event.waits);
        if both {
            row.note = format!("buckets from {}: they include those of the background", event.source);
        }
    }
}

/// Time and its standard error over the window, us.
fn estimate(deltas: &Deltas<'_>, ash: &AshInfo, sampled: &Sampled) -> (Figure, Figure) {
    let window_us = deltas.window.elapsed_s * 1e6;
    let error = match (sampled.share_variance, ash.active_count.value()) {
        (Some(variance), Some(active)) => Figure::decimal(variance.sqrt() * active * window_us),
        _ => Figure::na("fewer than ten ticks"),
    };
    (Figure::decimal(sampled.active * window_us), error)
}

fn seen_as(sampled: &Sampled) -> String {
    if sampled.class == class_name(WaitClass::Network) {
        return "inside an operation of assay: the answer or the next request is in transit, or the driver has no CPU"
            .to_owned();
    }
    if sampled.names.is_empty() { String::new() } else { format!("seen as {}", sampled.names.join(", ")) }
}

fn sampled_row(deltas: &Deltas<'_>, ash: &AshInfo, line: &str, sampled: &Sampled) -> EventRow {
    let (total_us, total_error_us) = estimate(deltas, ash, sampled);
    EventRow {
        total_us,
        total_error_us,
        source: SAMPLED.to_owned(),
        note: seen_as(sampled),
        ..bare(line, &sampled.class, Actor::Foreground)
    }
}

trait Joined {
    /// Joins what samples say of the same event: they give the time where nothing else does.
    fn joined(&mut self, deltas: &Deltas<'_>, ash: &AshInfo, sampled: &Sampled);
}

impl Joined for EventRow {
    fn joined(&mut self, deltas: &Deltas<'_>, ash: &AshInfo, sampled: &Sampled) {
        let (total_us, total_error_us) = estimate(deltas, ash, sampled);
        let seconds = total_us.scaled(1e-6).value().unwrap_or(0.0);
        let seen = match seen_as(sampled).as_str() {
            "" => String::new(),
            seen => format!(", {seen}"),
        };
        let own = self.total_us.reason().map(str::to_owned);
        match own {
            None => self.note = format!("also sampled, not added: {seconds:.3} s{seen}"),
            Some(reason) => {
                self.note = format!(
                    "count from {}, which does not report time ({reason}); the time is sampled{seen}",
                    self.source
                );
                self.total_us = total_us;
                self.total_error_us = total_error_us;
                self.us_avg = Figure::na("count and time come from different sources");
                self.source = SAMPLED.to_owned();
            }
        }
    }
}
