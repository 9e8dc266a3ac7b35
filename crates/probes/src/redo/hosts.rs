//! One test from several hosts: what each read, as the data of a run, and all of it as one test's readings.
//!
//! Every host opens all connections that were asked for: those of the other hosts are further connections to the same standbys.

use super::reading::{Readings, StandbyReading};
use super::record;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, Verdict};
use assay_run::probe::{self, OfHost};
use serde_json::Value;

/// A host's readings as the data of a run: its operations are the messages.
pub(super) fn data(labels: &RunData, readings: &Readings) -> RunData {
    let stopped = || Verdict::Incomplete("stopped on request".to_owned());
    let host = OfHost {
        window_ns: readings.ended_ns.saturating_sub(readings.begun_ns),
        sessions: readings.ask.as_ref().map_or(0, |ask| ask.connections as u64),
        ops: vec![("message", readings.stream.parts.total.clone())],
        verdict: match (readings.failed.as_str(), readings.is_stopped) {
            ("", false) => Verdict::Complete,
            ("", true) => stopped(),
            (why, _) => Verdict::Invalid(vec![why.to_owned()]),
        },
    };
    host.data(labels, readings)
}

/// The record of all hosts' readings.
pub(super) fn record(labels: &RunData, parts: &[&Value]) -> Option<Record> {
    Some(record::build(labels, &probe::added(parts, added)?))
}

/// Two hosts' readings as one's.
fn added(mut all: Readings, more: Readings) -> Readings {
    if let (Some(ask), Some(other)) = (&mut all.ask, &more.ask) {
        ask.connections += other.connections;
    }
    for standby in more.standbys {
        match all.standbys.iter_mut().find(|mine| mine.name == standby.name) {
            Some(mine) => beside(mine, standby),
            None => all.standbys.push(standby),
        }
    }
    all.stream.merge(&more.stream);
    for (rule, times) in more.rules {
        if let Some((_, mine)) = all.rules.iter_mut().find(|(mine, _)| *mine == rule) {
            mine.merge(&times);
        }
    }
    let modes = std::mem::take(&mut all.modes).into_iter().zip(more.modes);
    all.modes = modes.map(|((mode, mine), (_, other))| (mode, added(mine, other))).collect();
    all.host.0.merge(&more.host.0);
    all.host.1.merge(&more.host.1);
    // Each host's instants are of its own clock.
    let took_ns = more.ended_ns.saturating_sub(more.begun_ns);
    all.ended_ns = all.ended_ns.max(all.begun_ns + took_ns);
    all.is_stopped |= more.is_stopped;
    if all.failed.is_empty() {
        all.failed = more.failed;
    }
    all
}

fn beside(mine: &mut StandbyReading, other: StandbyReading) {
    mine.parts.merge(&other.parts);
    match (&mut mine.found, &other.found) {
        (Some(mine), Some(other)) => record::merge(mine, other),
        // What some of its connections told is not the whole.
        (found, _) => *found = None,
    }
    mine.sent += other.sent;
    mine.consumed = (mine.consumed.0 + other.consumed.0, mine.consumed.1 + other.consumed.1);
    mine.elapsed_ns = mine.elapsed_ns.max(other.elapsed_ns);
    if mine.lost.is_empty() {
        (mine.lost, mine.lost_s) = (other.lost, other.lost_s);
    }
}
