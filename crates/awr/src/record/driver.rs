//! What the load generator itself measured: operations, sessions, errors, its own cost.

use crate::deltas::{Deltas, NO_WINDOW, micros, seconds};
use assay_measure::record::{DriverInfo, Figure, Latency, OpRow, SessionRow, SessionSpread};
use assay_measure::snapshot::SessionReading;

pub(super) fn driver(deltas: &Deltas<'_>) -> DriverInfo {
    let (data, w) = (deltas.data, &deltas.window);
    let d = &w.driver;
    let thread_s = w.elapsed_s * data.end.driver.threads as f64;
    let cpu_per_op_ns = Figure::Count(d.thread_cpu_ns).per(w.ops() as f64, "no operations");
    DriverInfo {
        threads_count: data.end.driver.threads,
        ops: ops(deltas),
        errors_count: d.errors.clone(),
        errors_whole_run_count: data.drained.driver.errors.values().sum(),
        retries_count: d.retries,
        retries_by_class_count: d.retried.clone(),
        hot_spot_hits_count: d.hot_spot_hits,
        hot_schema_hits_count: d.hot_schema_hits,
        think_count: d.think_count,
        think_s: seconds(d.think_ns).into(),
        busy_s: seconds(d.busy_ns).into(),
        in_flight_begin_count: data.begin.driver.in_flight,
        in_flight_end_count: data.end.driver.in_flight,
        in_flight_begin_us: micros(data.begin.driver.in_flight_ns),
        in_flight_end_us: micros(data.end.driver.in_flight_ns),
        schedule_lag: if d.schedule_lag.count() == 0 { Latency::default() } else { Latency::of(&d.schedule_lag) },
        thread_cpu_s: seconds(d.thread_cpu_ns).into(),
        thread_cpu_pct: Figure::decimal(100.0 * seconds(d.thread_cpu_ns)).per(thread_s, NO_WINDOW),
        thread_run_delay_s: seconds(d.thread_run_delay_ns).into(),
        floor_ns_per_op: optional(data.floor_ns_per_op),
        floor_pct: match (data.floor_ns_per_op, cpu_per_op_ns.value()) {
            (Some(floor), Some(cpu)) => Figure::decimal(100.0 * floor).per(cpu, "no CPU counted"),
            (None, _) => Figure::na("not measured"),
            (_, None) => cpu_per_op_ns,
        },
        clock_read_ns: optional(data.clock_read_ns),
        session_spread: spread(&data.per_session),
        per_session: data.per_session.iter().map(session_row).collect(),
    }
}

fn optional(value: Option<f64>) -> Figure {
    value.map_or_else(|| Figure::na("not measured"), Figure::decimal)
}

fn ops(deltas: &Deltas<'_>) -> Vec<OpRow> {
    let w = &deltas.window;
    let mut rows: Vec<OpRow> = w
        .driver
        .ops
        .iter()
        .filter(|op| op.service.count() > 0)
        .map(|op| OpRow {
            kind: op.kind.clone(),
            count: op.service.count(),
            per_s: Figure::Count(op.service.count()).per(w.elapsed_s, NO_WINDOW),
            rows_count: op.rows,
            service: Latency::of(&op.service),
            response: Latency::of(&op.response),
        })
        .collect();
    rows.sort_by(|a, b| a.kind.cmp(&b.kind));
    rows
}

fn session_row(session: &SessionReading) -> SessionRow {
    let instant = |ns: Option<u64>| ns.map_or_else(|| Figure::na("no operations"), |ns| Figure::decimal(seconds(ns)));
    SessionRow {
        session: session.session,
        schema: session.schema,
        ops_count: session.ops,
        rows_count: session.rows,
        busy_s: seconds(session.busy_ns).into(),
        think_s: seconds(session.think_ns).into(),
        first_op_s: instant(session.first_op_ns),
        last_op_s: instant(session.last_op_ns),
    }
}

fn spread(sessions: &[SessionReading]) -> SessionSpread {
    let mut ops: Vec<u64> = sessions.iter().map(|session| session.ops).collect();
    ops.sort_unstable();
    let (Some(min), Some(max)) = (ops.first(), ops.last()) else {
        let none = || Figure::na("no per-session readings");
        return SessionSpread { min_count: none(), median_count: none(), max_count: none(), variation_ratio: none() };
    };
    let as_f64: Vec<f64> = ops.iter().map(|ops| *ops as f64).collect();
    SessionSpread {
        min_count: (*min).into(),
        median_count: ops[ops.len() / 2].into(),
        max_count: (*max).into(),
        variation_ratio: crate::deltas::variation(&as_f64),
    }
}
