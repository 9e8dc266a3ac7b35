//! The work itself: operations over time, the cache behind them, and how evenly the sessions got along.

use super::time::{self, NO_SERIES};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::counter_catalog::ARRIVALS_WAITING;
use assay_measure::palette::{BLUE, GREEN, INK, ORANGE, PURPLE};
use assay_measure::record::Record;

/// Sessions shown one by one, at most.
const SESSIONS: usize = 128;
/// Bars of more sessions than that.
const BINS: usize = 40;

pub(super) fn throughput(record: &Record) -> Drawn {
    let note = "Operations that ended in each step (layer client) and commits (layer engine).";
    let y = Axis::of("rate", "1/s");
    let mut chart = time::chart(record, "c-operations", "Operations per second", y, note);
    let columns = [
        ("ops_count_per_s", "operations", Stroke::Line, BLUE),
        ("commits_count_per_s", "commits", Stroke::Line, PURPLE),
    ];
    chart.traces = time::traces(record, &columns);
    Drawn::or(chart, NO_SERIES)
}

/// What was due and waited for a free session; only where arrivals have a queue.
pub(super) fn queue(record: &Record) -> Option<Drawn> {
    let waiting = time::column(record, ARRIVALS_WAITING)?;
    let note = "Arrivals waiting for a session, at the end of each step (layer client). It grows while operations come \
        faster than they are performed.";
    let y = Axis::of("arrivals waiting", "count");
    let mut chart = time::chart(record, "c-queue", "Queue of arrivals", y, note);
    chart.traces = vec![Trace::new("waiting", Stroke::Line, ORANGE, waiting)];
    Some(Drawn::or(chart, NO_SERIES))
}

/// Dirty buffers and checkpoint age, with log switches and checkpoints where they happened.
pub(super) fn cache(record: &Record) -> Vec<Drawn> {
    let gauges = [
        ("c-dirty", "Dirty buffers", "dirty_buffers_blocks", "dirty buffers", "blocks", ORANGE),
        ("c-checkpoint", "Checkpoint age", "checkpoint_age_bytes", "redo since the checkpoint", "bytes", GREEN),
    ];
    let mut all = Vec::new();
    for (id, title, key, name, unit, color) in gauges {
        let Some(y) = time::column(record, key) else {
            let reason =
                if record.series.t_s.is_empty() { NO_SERIES } else { "this target does not report it per step" };
            all.push(Drawn::missing(title, reason));
            continue;
        };
        let note = "At the end of each step (layer engine); points mark steps with a log switch or the end of a \
            checkpoint.";
        let mut chart = time::chart(record, id, title, Axis::of(name, unit), note);
        for (key, name, color) in [("log_switches_count", "log switch", INK), ("checkpoints_count", "checkpoint", BLUE)]
        {
            let happened = time::column(record, key).unwrap_or_default();
            let points: Vec<Option<f64>> = (happened.iter().zip(&y))
                .map(|(count, value)| (*count > Some(0.0)).then_some(*value).flatten())
                .collect();
            if points.iter().any(Option::is_some) {
                chart.traces.push(Trace::new(name, Stroke::Points, color, points));
            }
        }
        chart.traces.insert(0, Trace::new(name, Stroke::Line, color, y));
        all.push(Drawn::or(chart, NO_SERIES));
    }
    all
}

/// Operations of each session over the whole run.
pub(super) fn per_session(record: &Record) -> Drawn {
    const TITLE: &str = "Operations per session";
    let mut ops: Vec<(u64, u64)> = (record.driver.per_session.iter()).map(|row| (row.ops_count, row.session)).collect();
    if ops.is_empty() {
        return Drawn::missing(TITLE, "the record has no figures for single sessions");
    }
    ops.sort_unstable();
    let mut chart = Chart {
        id: "c-per-session".to_owned(),
        title: TITLE.to_owned(),
        y: Axis::of("operations", "count"),
        ..Chart::default()
    };
    if ops.len() <= SESSIONS {
        chart.note = "Whole run, slowest session first (layer client).".to_owned();
        chart.x = Axis::of("session", "");
        chart.rows = Rows::Names(ops.iter().map(|(_, session)| format!("s{session}")).collect());
        let y = ops.iter().map(|(count, _)| Some(*count as f64)).collect();
        chart.traces = vec![Trace::new("operations", Stroke::Bar, BLUE, y)];
        return Drawn::or(chart, "no sessions");
    }
    let (low, high) = (ops[0].0, ops[ops.len() - 1].0);
    let width = ((high - low) / BINS as u64).max(1);
    let mut bins = vec![0.0; ((high - low) / width) as usize + 1];
    for (count, _) in &ops {
        bins[((count - low) / width) as usize] += 1.0;
    }
    chart.note =
        format!("Whole run (layer client): the number of sessions by completed operations, in steps of {width}.");
    chart.x = Axis::of("operations from", "count");
    chart.y = Axis::of("sessions", "count");
    let names = (0..bins.len()).map(|bin| (low + bin as u64 * width).to_string());
    chart.rows = Rows::Names(names.collect());
    let y = bins.into_iter().map(Some).collect();
    chart.traces = vec![Trace::new("sessions", Stroke::Bar, BLUE, y)];
    Drawn::or(chart, "no sessions")
}
