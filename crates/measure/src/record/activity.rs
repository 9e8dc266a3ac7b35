//! What the sessions did over time, and the events of the time line.

use super::Figure;
use crate::figures::figures;
use std::collections::BTreeMap;

/// Active session history over the measured window: sessions inside a call, sampled at ticks.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AshInfo {
    /// Nominal distance of two ticks, ms.
    pub interval_ms: Figure,
    /// Mean distance of the ticks achieved, ms.
    pub interval_achieved_ms: Figure,
    /// Ticks.
    pub ticks_count: Figure,
    /// Ticks that fit the window.
    pub ticks_expected_count: Figure,
    /// Unsampled time, s: gaps beyond five nominal intervals.
    pub holes_s: Figure,
    /// Sessions found active, summed over the ticks.
    pub samples_count: Figure,
    /// Most sessions active in one tick.
    pub max_active_count: Figure,
    /// Average active sessions.
    pub active_count: Figure,
    /// Average active sessions x elapsed time, s.
    pub db_time_s: Figure,
    /// DB time measured, s.
    pub db_time_measured_s: Figure,
    /// Share by which the two may differ: the larger of 5 % and 3 / sqrt(the lesser of ticks and samples to be
    /// expected); n/a below nine samples.
    pub db_time_allowed_ratio: Figure,
    /// Sessions on CPU by the threads' CPU clocks: DB CPU over elapsed time.
    pub cpu_used_count: Figure,
    /// Active sessions that neither waited nor used CPU: those found on CPU or queued for
    /// their thread, less `cpu_used_count`.
    pub run_queue_count: Figure,
    /// By `CPU`, `Run queue` and wait class.
    pub by_class: BTreeMap<String, AshRow>,
    /// By `CPU`, `Run queue` and event.
    pub by_event: BTreeMap<String, AshRow>,
    /// By kind of operation.
    pub by_op: BTreeMap<String, AshRow>,
    /// Samples by the schema the operation worked on, from 1, over the whole run.
    pub by_schema_samples_count: BTreeMap<u64, u64>,
}

/// One class, event or kind of operation of the history.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AshRow {
    /// `CPU`, `Run queue` or the wait class; empty for a kind of operation.
    pub class: String,
    /// Sessions found so, summed over the ticks.
    pub samples_count: Figure,
    /// Average active sessions.
    pub active_count: Figure,
    /// Share of the activity, 0..100.
    pub share_pct: Figure,
    /// Standard error of the share, points: of independent samples, times the root of the
    /// inflation that ten batches of the window show.
    pub share_error_pct: Figure,
}

/// One event on the time line.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimelineRow {
    /// Its instant, s after the gate.
    pub at_s: Figure,
    /// RFC 3339 wall time, a label.
    pub wall: String,
    /// `command`, `external script`, `online CPUs`, `CPU quota` or `CPU affinity`.
    pub kind: String,
    /// The command, or what changed, in words.
    pub text: String,
    /// The value before a change, else empty.
    pub from: String,
    /// The value after it, else empty.
    pub to: String,
    /// How a command ended, else empty.
    pub status: String,
    /// How long a command took, s.
    pub took_s: Figure,
    /// File in the run directory with a command's output, else empty.
    pub output: String,
}
