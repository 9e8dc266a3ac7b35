//! What samples of the sessions say about a server's events, whose waits have names of their own.

use super::words::{CPU, RUN_QUEUE};
use assay_measure::facts::WAITS_ARE;
use assay_measure::record::AshInfo;
use assay_measure::snapshot::Fact;
use std::collections::BTreeMap;

/// The event a sampled wait belongs to: itself unless the server told that it has its own name for it.
fn line_of<'a>(sampled: &'a str, facts: &'a [Fact]) -> &'a str {
    let lines = WAITS_ARE.find(facts).unwrap_or_default().split("; ");
    let mut lines = lines.filter_map(|line| line.split_once(" = "));
    let known = lines.find(|(_, names)| names.split(", ").any(|name| name == sampled));
    known.map_or(sampled, |(line, _)| line)
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

/// The samples of the events by their lines, as the facts of the engine name them, sessions on CPU or queued left out.
pub(crate) fn sampled<'a>(ash: &'a AshInfo, facts: &'a [Fact]) -> BTreeMap<&'a str, Sampled> {
    let mut lines: BTreeMap<&str, Sampled> = BTreeMap::new();
    for (name, row) in &ash.by_event {
        if row.class == CPU || row.class == RUN_QUEUE {
            continue;
        }
        let Some(active) = row.active_count.value() else {
            continue;
        };
        let line = line_of(name, facts);
        let is_new = !lines.contains_key(line);
        let sum = lines.entry(line).or_default();
        let variance = row.share_error_pct.value().map(|pct| (pct / 100.0).powi(2));
        sum.share_variance = if is_new { variance } else { sum.share_variance.zip(variance).map(|(a, b)| a + b) };
        sum.class.clone_from(&row.class);
        sum.active += active;
        if line != name {
            sum.names.push(name.clone());
        }
    }
    lines
}

/// What samples say of an event of the foreground, by the name of its line.
pub(crate) fn sampled_of(ash: &AshInfo, facts: &[Fact], event: &str) -> Option<Sampled> {
    sampled(ash, facts).remove(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_wait_is_the_event_that_the_server_tells() {
        let told = [WAITS_ARE.fact("log file sync = IO:WALSync, IO:WALWrite; data file sync = IO:Sync")];
        assert_eq!(line_of("IO:WALWrite", &told), "log file sync");
        assert_eq!(line_of("IO:Sync", &told), "data file sync");
        assert_eq!(line_of("IO:WAL", &told), "IO:WAL");
        assert_eq!(line_of("IO:WALWrite", &[]), "IO:WALWrite");
    }
}
