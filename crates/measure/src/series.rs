//! One JSON object per line, source and second, from which a killed run is rebuilt.
//!
//! A line holds the snapshot's scalars as they are (cumulative) and of each
//! histogram the slots that changed since the line before of the same source.
//! A line that was cut off by a kill is recognised and left out; everything
//! before it is rebuilt exactly.
//!
//! Between the snapshots there are lines that begin with their `kind`: what the sessions did since the previous line
//! (`activity`), events on the time line (`event`) and what a fleet's hosts are at (`hosts`).

use crate::figures::figures;
use crate::fleet::HostHeard;
use crate::histogram::{Histogram, HistogramError};
use crate::history::ActivityHistory;
use crate::snapshot::{
    Actor, BucketReading, Direction, DriverReading, EventReading, HostReading, IoReading, Mark, OpReading, PathReading,
    Reading, RequestReading, Snapshot, StatSet, TimedReading, WaitClass,
};
use crate::timeline::{self, TimelineEvent};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One snapshot relative to the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesLine {
    /// Monotonic instant, ns since the gate opened.
    pub t_ns: u64,
    /// Why it was taken.
    pub mark: Mark,
    /// Who measured: `run`, later a host of a fleet.
    pub source: String,
    /// RFC 3339 wall time, a label only.
    #[serde(default)]
    pub wall: String,
    /// See [`Snapshot::skew_ns`].
    #[serde(default)]
    pub skew_ns: u64,
    /// Counters by name, cumulative.
    #[serde(default)]
    pub counters: BTreeMap<String, Reading>,
    /// Gauges by name.
    #[serde(default)]
    pub gauges: BTreeMap<String, u64>,
    /// See [`StatSet::resets`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub resets: BTreeSet<String>,
    /// Events.
    #[serde(default)]
    pub events: Vec<EventStep>,
    /// See [`StatSet::buckets`], cumulative.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketReading>,
    /// See [`StatSet::timed`], cumulative.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timed: Vec<TimedReading>,
    /// See [`StatSet::sources`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// I/O rows, cumulative.
    #[serde(default)]
    pub io: Vec<IoReading>,
    /// I/O by path, cumulative.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathReading>,
    /// Requests at the layer below the waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestStep>,
    /// Operations by kind.
    #[serde(default)]
    pub ops: Vec<OpStep>,
    /// Lateness of starts under a RATE.
    #[serde(default)]
    pub schedule_lag: HistogramStep,
    /// The load generator's scalars, cumulative; operations and lateness are above.
    #[serde(default)]
    pub driver: DriverReading,
    /// The host, cumulative.
    #[serde(default)]
    pub host: HostReading,
}

/// An event of a [`SeriesLine`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventStep {
    /// Event name.
    pub name: String,
    /// Wait class.
    pub class: WaitClass,
    /// Foreground or background.
    pub actor: Actor,
    /// Waits that ended by a timer, cumulative.
    pub timeouts: u64,
    /// The waits.
    pub waits: HistogramStep,
}

/// A kind of request of a [`SeriesLine`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestStep {
    /// See [`RequestReading::event`].
    pub event: String,
    /// Reads or writes.
    pub direction: Direction,
    /// Bytes moved, cumulative.
    pub bytes: u64,
    /// See [`RequestReading::completions`].
    pub completions: HistogramStep,
}

/// A kind of operation of a [`SeriesLine`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpStep {
    /// The kind.
    pub kind: String,
    /// Rows touched, cumulative.
    pub rows: u64,
    /// See [`OpReading::service`].
    pub service: HistogramStep,
    /// See [`OpReading::response`].
    pub response: HistogramStep,
}

/// A histogram relative to the one of the line before.
#[figures]
#[derive(Eq)]
pub struct HistogramStep {
    /// The slots are complete, not an increase: the source was reset.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// Durations counted, cumulative.
    pub count: u64,
    /// Their sum, ns, cumulative.
    pub sum_ns: u64,
    /// The smallest so far, ns; 0 while empty.
    pub min_ns: u64,
    /// The largest so far, ns; 0 while empty.
    pub max_ns: u64,
    /// Slots and how much they grew since the line before.
    pub slots: Vec<(u32, u64)>,
}

/// Why a line is not one of a series.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// Not the JSON of a line.
    #[error("not a line of a series: {0}")]
    Json(#[from] serde_json::Error),
    /// A histogram contradicts itself or the line before.
    #[error("{of}: {source}")]
    Histogram {
        /// Event or kind of operation.
        of: String,
        /// What is wrong with it.
        source: HistogramError,
    },
}

impl SeriesLine {
    /// `now` relative to `prev`, the snapshot of the line before of the same source.
    #[must_use]
    pub fn encode(prev: Option<&Snapshot>, now: &Snapshot, mark: Mark, source: &str) -> Self {
        let stats = &now.stats;
        let events = stats.events.iter().map(|event| EventStep {
            name: event.name.clone(),
            class: event.class,
            actor: event.actor,
            timeouts: event.timeouts,
            waits: HistogramStep::encode(waits_of(prev, &event.name, event.actor), &event.waits),
        });
        let requests = stats.requests.iter().map(|row| RequestStep {
            event: row.event.clone(),
            direction: row.direction,
            bytes: row.bytes,
            completions: HistogramStep::encode(requests_of(prev, &row.event, row.direction), &row.completions),
        });
        let ops = now.driver.ops.iter().map(|op| {
            let before = op_of(prev, &op.kind);
            OpStep {
                kind: op.kind.clone(),
                rows: op.rows,
                service: HistogramStep::encode(before.map(|op| &op.service), &op.service),
                response: HistogramStep::encode(before.map(|op| &op.response), &op.response),
            }
        });
        let lag = prev.map(|prev| &prev.driver.schedule_lag);
        Self {
            t_ns: now.at_ns,
            mark,
            source: source.to_owned(),
            wall: now.wall.clone(),
            skew_ns: now.skew_ns,
            counters: stats.counters.clone(),
            gauges: stats.gauges.clone(),
            resets: stats.resets.clone(),
            events: events.collect(),
            timed: stats.timed.clone(),
            buckets: stats.buckets.clone(),
            sources: stats.sources.clone(),
            io: stats.io.clone(),
            paths: stats.paths.clone(),
            requests: requests.collect(),
            ops: ops.collect(),
            schedule_lag: HistogramStep::encode(lag, &now.driver.schedule_lag),
            driver: DriverReading { ops: Vec::new(), schedule_lag: Histogram::default(), ..now.driver.clone() },
            host: now.host.clone(),
        }
    }

    /// The snapshot, given that of the line before of the same source.
    ///
    /// # Errors
    /// When a histogram's slots do not add up, alone or with those of `prev`.
    pub fn decode(&self, prev: Option<&Snapshot>) -> Result<Snapshot, SeriesError> {
        let rebuild = |of: &str, base: Option<&Histogram>, step: &HistogramStep| {
            step.decode(base).map_err(|source| SeriesError::Histogram { of: of.to_owned(), source })
        };
        let mut events = Vec::with_capacity(self.events.len());
        for event in &self.events {
            let base = waits_of(prev, &event.name, event.actor);
            events.push(EventReading {
                name: event.name.clone(),
                class: event.class,
                actor: event.actor,
                timeouts: event.timeouts,
                waits: rebuild(&event.name, base, &event.waits)?,
            });
        }
        let mut requests = Vec::with_capacity(self.requests.len());
        for row in &self.requests {
            let base = requests_of(prev, &row.event, row.direction);
            requests.push(RequestReading {
                event: row.event.clone(),
                direction: row.direction,
                bytes: row.bytes,
                completions: rebuild(&row.event, base, &row.completions)?,
            });
        }
        let mut ops = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            let before = op_of(prev, &op.kind);
            ops.push(OpReading {
                kind: op.kind.clone(),
                rows: op.rows,
                service: rebuild("service time", before.map(|op| &op.service), &op.service)?,
                response: rebuild("response time", before.map(|op| &op.response), &op.response)?,
            });
        }
        let lag = prev.map(|prev| &prev.driver.schedule_lag);
        let schedule_lag = rebuild("schedule lag", lag, &self.schedule_lag)?;
        Ok(Snapshot {
            at_ns: self.t_ns,
            wall: self.wall.clone(),
            skew_ns: self.skew_ns,
            stats: StatSet {
                counters: self.counters.clone(),
                events,
                timed: self.timed.clone(),
                buckets: self.buckets.clone(),
                sources: self.sources.clone(),
                io: self.io.clone(),
                paths: self.paths.clone(),
                requests,
                gauges: self.gauges.clone(),
                resets: self.resets.clone(),
            },
            driver: DriverReading { ops, schedule_lag, ..self.driver.clone() },
            host: self.host.clone(),
        })
    }
}

impl HistogramStep {
    fn encode(before: Option<&Histogram>, now: &Histogram) -> Self {
        let (full, slots) = match before {
            None => (false, now.sparse()),
            Some(before) => match now.difference(before) {
                Some(grown) => (false, grown.sparse()),
                None => (true, now.sparse()),
            },
        };
        Self {
            full,
            count: now.count(),
            sum_ns: now.sum_ns(),
            min_ns: now.min_ns().unwrap_or(0),
            max_ns: now.max_ns().unwrap_or(0),
            slots,
        }
    }

    fn decode(&self, before: Option<&Histogram>) -> Result<Histogram, HistogramError> {
        let base = before.filter(|_| !self.full).map(Histogram::sparse);
        let mut slots: BTreeMap<u32, u64> = base.unwrap_or_default().into_iter().collect();
        for &(slot, grown) in &self.slots {
            let n = slots.entry(slot).or_default();
            *n = n.checked_add(grown).ok_or(HistogramError::Overflow)?;
        }
        let slots: Vec<_> = slots.into_iter().collect();
        let histogram = Histogram::from_sparse(&slots, self.sum_ns, self.min_ns, self.max_ns)?;
        if histogram.count() != self.count {
            return Err(HistogramError::Count { count: self.count, slots: histogram.count() });
        }
        Ok(histogram)
    }
}

/// A line that is not a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideLine {
    /// `activity`, `event` or `hosts`.
    pub kind: String,
    /// Who measured.
    pub source: String,
    /// What the sessions did since the line of this kind before: new keys and ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityHistory>,
    /// An event on the time line, or an update of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<TimelineEvent>,
    /// The hosts of a fleet, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostHeard>,
}

impl SideLine {
    /// What the sessions did.
    #[must_use]
    pub fn activity(source: &str, activity: ActivityHistory) -> Self {
        Self { activity: Some(activity), ..Self::of("activity", source) }
    }

    /// An event.
    #[must_use]
    pub fn event(source: &str, event: TimelineEvent) -> Self {
        Self { event: Some(event), ..Self::of("event", source) }
    }

    /// The hosts of a fleet.
    #[must_use]
    pub fn hosts(source: &str, hosts: Vec<HostHeard>) -> Self {
        Self { hosts, ..Self::of("hosts", source) }
    }

    fn of(kind: &str, source: &str) -> Self {
        Self { kind: kind.to_owned(), source: source.to_owned(), ..Self::default() }
    }

    /// The line, its end (`\n`) included.
    #[must_use]
    pub fn line(&self) -> String {
        let mut text = serde_json::to_string(self).expect("every map of a line has text keys");
        text.push('\n');
        text
    }
}

/// Turns the snapshots of one source into the lines of a file.
#[derive(Clone, Debug)]
pub struct SeriesWriter {
    source: String,
    prev: Option<Snapshot>,
}

impl SeriesWriter {
    /// A writer that has written nothing; `source` names who measures.
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), prev: None }
    }

    /// The snapshot of the last line.
    #[must_use]
    pub fn last(&self) -> Option<&Snapshot> {
        self.prev.as_ref()
    }

    /// The next line, its end (`\n`) included. It must be appended completely, or the lines after it cannot be read.
    pub fn line(&mut self, mark: Mark, now: &Snapshot) -> String {
        let line = SeriesLine::encode(self.prev.as_ref(), now, mark, &self.source);
        self.prev = Some(now.clone());
        let mut text = serde_json::to_string(&line).expect("every map of a line has text keys");
        text.push('\n');
        text
    }
}

/// One snapshot read back.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesReading {
    /// Who measured.
    pub source: String,
    /// Why it was taken.
    pub mark: Mark,
    /// The snapshot, cumulative.
    pub snapshot: Snapshot,
}

/// Reads lines one after the other and keeps only the last snapshot of each source.
#[derive(Debug, Default)]
pub struct SeriesReader {
    latest: BTreeMap<String, Snapshot>,
}

/// The content of a line of a series.
#[derive(Debug)]
pub enum SeriesEntry {
    /// A snapshot, whole again; boxed, since it is much larger than the others.
    Snapshot(Box<SeriesReading>),
    /// What the sessions did since the line of this kind before.
    Activity(ActivityHistory),
    /// An event on the time line, or an update of one.
    Event(TimelineEvent),
    /// The hosts of a fleet.
    Hosts(Vec<HostHeard>),
    /// A kind that a later version writes; the snapshots are complete without it.
    Unknown,
}

impl SeriesReader {
    /// The next line, without its end.
    ///
    /// # Errors
    /// When it is not whole, or contradicts the lines before.
    pub fn line(&mut self, text: &[u8]) -> Result<SeriesEntry, SeriesError> {
        let kind: Kind = serde_json::from_slice(text)?;
        if kind.kind.is_some() {
            let line: SideLine = serde_json::from_slice(text)?;
            return Ok(match (line.activity, line.event) {
                (Some(activity), _) => SeriesEntry::Activity(activity),
                (None, Some(event)) => SeriesEntry::Event(event),
                (None, None) if line.hosts.is_empty() => SeriesEntry::Unknown,
                (None, None) => SeriesEntry::Hosts(line.hosts),
            });
        }
        let line: SeriesLine = serde_json::from_slice(text)?;
        let snapshot = line.decode(self.latest.get(&line.source))?;
        self.latest.insert(line.source.clone(), snapshot.clone());
        Ok(SeriesEntry::Snapshot(Box::new(SeriesReading { source: line.source, mark: line.mark, snapshot })))
    }
}

/// A series read back, as far as it is whole.
#[derive(Debug, Default)]
pub struct Series {
    /// Snapshots in the order of their lines.
    pub readings: Vec<SeriesReading>,
    /// What the sessions did, if they were sampled.
    pub activity: Option<ActivityHistory>,
    /// Events on the time line, in order.
    pub timeline: Vec<TimelineEvent>,
    /// Where reading stopped, if not at the end of the text.
    pub stopped: Option<Stopped>,
}

/// The first line that could not be read.
#[derive(Debug)]
pub struct Stopped {
    /// Its number, from 1.
    pub line: usize,
    /// It is the last one: a killed run leaves such a line, and nothing else is lost.
    pub last: bool,
    /// What is wrong with it.
    pub error: SeriesError,
}

impl Series {
    /// Reads lines up to the first that is not whole; the first of them is number
    /// `first_line` of its file (from 1; more where a header stands before).
    /// Empty lines are skipped.
    #[must_use]
    pub fn read(text: &[u8], first_line: usize) -> Self {
        let mut series = Self::default();
        let mut reader = SeriesReader::default();
        let mut rest = text;
        let mut line = first_line;
        while !rest.is_empty() {
            let end = rest.iter().position(|&byte| byte == b'\n');
            let (this, after) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &rest[rest.len()..]),
            };
            rest = after;
            if !this.trim_ascii().is_empty() {
                match reader.line(this) {
                    Ok(line) => series.take(line),
                    Err(error) => {
                        let last = rest.trim_ascii().is_empty();
                        series.stopped = Some(Stopped { line, last, error });
                        break;
                    }
                }
            }
            line += 1;
        }
        series
    }

    fn take(&mut self, line: SeriesEntry) {
        match line {
            SeriesEntry::Snapshot(reading) => self.readings.push(*reading),
            SeriesEntry::Activity(part) => self.activity.get_or_insert_default().append(part),
            SeriesEntry::Event(event) => timeline::note(&mut self.timeline, event),
            SeriesEntry::Hosts(_) | SeriesEntry::Unknown => {}
        }
    }
}

/// What kind of line it is; snapshots have none.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    kind: Option<String>,
}

fn waits_of<'a>(prev: Option<&'a Snapshot>, name: &str, actor: Actor) -> Option<&'a Histogram> {
    let mut events = prev?.stats.events.iter();
    let event = events.find(|event| event.name == name && event.actor == actor)?;
    Some(&event.waits)
}

fn requests_of<'a>(prev: Option<&'a Snapshot>, event: &str, direction: Direction) -> Option<&'a Histogram> {
    let mut rows = prev?.stats.requests.iter();
    let row = rows.find(|row| row.event == event && row.direction == direction)?;
    Some(&row.completions)
}

fn op_of<'a>(prev: Option<&'a Snapshot>, kind: &str) -> Option<&'a OpReading> {
    prev?.driver.ops.iter().find(|op| op.kind == kind)
}

#[cfg(test)]
mod tests;
