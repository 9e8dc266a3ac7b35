//! What samples of the sessions say of the events of a server, whose waits have names of its own.

use super::words::{CPU, RUN_QUEUE};
use assay_measure::record::AshInfo;
use std::collections::BTreeMap;

/// Waits as a server names them, and the event each of them is one of.
const LINES: &[(&str, &str)] = &[
    ("IO:DataFileRead", "db file sequential read"),
    ("IO:AioIoCompletion", "db file sequential read"),
    ("IO:AioIoUringExecution", "db file sequential read"),
    ("IO:AioIoUringSubmit", "db file sequential read"),
    ("IPC:BufferIO", "read by other session"),
    ("IPC:BufferIo", "read by other session"),
    ("LWLock:BufferIO", "read by other session"),
    ("LWLock:BufferContent", "buffer busy waits"),
    ("BufferPin:BufferPin", "buffer busy waits"),
    ("IO:WALSync", "log file sync"),
    ("IO:WalSync", "log file sync"),
    ("IO:WALWrite", "log file sync"),
    ("IO:WalWrite", "log file sync"),
    ("LWLock:WALWrite", "log file sync"),
    ("LWLock:WALBufMapping", "log buffer space"),
    ("IO:WALInitWrite", "log file switch completion"),
    ("IO:WalInitWrite", "log file switch completion"),
    ("IO:WALInitSync", "log file switch completion"),
    ("IO:WalInitSync", "log file switch completion"),
    ("IO:DataFileWrite", "backend writes"),
    ("IO:DataFileExtend", "data file extend"),
    ("IO:DataFileSync", "data file sync"),
    ("IO:DataFileImmediateSync", "data file sync"),
    ("Lock:transactionid", "enq: TX - row lock contention"),
    ("Lock:tuple", "enq: TX - row lock contention"),
];

/// The event a sampled wait belongs to: itself unless a server has its own name for it.
fn line_of(sampled: &str) -> &str {
    let known = LINES.iter().find(|(name, _)| *name == sampled);
    known.map_or(sampled, |(_, line)| line)
}

/// What samples say of one event, all its names together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    /// Wait class.
    pub(crate) class: String,
    /// Average active sessions.
    pub(crate) active: f64,
    /// Variance of the event's share of the activity, as a part of 1.
    pub(crate) share_variance: Option<f64>,
    /// The server's own names, where they are others.
    pub(crate) names: Vec<String>,
}

/// The samples of the events by their lines, sessions on CPU or queued left out.
pub(crate) fn sampled(ash: &AshInfo) -> BTreeMap<&str, Sampled> {
    let mut lines: BTreeMap<&str, Sampled> = BTreeMap::new();
    for (name, row) in &ash.by_event {
        if row.class == CPU || row.class == RUN_QUEUE {
            continue;
        }
        let Some(active) = row.active_count.value() else {
            continue;
        };
        let line = line_of(name);
        let is_new = !lines.contains_key(line);
        let sum = lines.entry(line).or_default();
        let variance = row.share_error_pct.value().map(|pct| (pct / 100.0).powi(2));
        sum.share_variance = match is_new {
            true => variance,
            false => sum.share_variance.zip(variance).map(|(a, b)| a + b),
        };
        sum.class.clone_from(&row.class);
        sum.active += active;
        if line != name {
            sum.names.push(name.clone());
        }
    }
    lines
}

/// What samples say of an event of the foreground, by the name of its line.
pub(crate) fn sampled_of(ash: &AshInfo, event: &str) -> Option<Sampled> {
    sampled(ash).remove(event)
}
