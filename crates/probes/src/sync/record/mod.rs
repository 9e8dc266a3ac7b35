//! The durable-write curve: from raw steps to the record, and what follows from it.

mod advice;
mod charts;
mod headline;
mod info;
mod sections;

#[cfg(test)]
mod tests;

use super::reading::{SyncMethod, SyncPart, SyncReading, SyncReadings};
use crate::conditions::labelled;
pub(crate) use advice::{LEAST_US, PLATTER_US};
use assay_measure::cpu;
use assay_measure::figures::of_layer;
use assay_measure::kind::OwnKind;
use assay_measure::record::{Figure, Latency, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::statistics::median;
use info::{SafetyRow, SyncInfo, SyncStep};

const STOPPED: &str = "the probe was stopped before this step";
const NO_FLUSH: &str = "nothing is flushed";

/// The kind of its records.
pub(super) const KIND: OwnKind<SyncInfo> = OwnKind {
    rules: advice::rules,
    charts: charts::all,
    ..OwnKind::new(|info| of_layer(&info.layer, info), sections::render, headline::of)
};

/// Builds the record of a probe. `run` brings the labels and the host's facts; of the
/// measurements in it nothing is read.
#[must_use]
pub(super) fn build(run: &RunData, readings: &SyncReadings) -> Record {
    let mut run = run.clone();
    run.engine_facts.clone_from(&readings.facts);
    run.sessions = readings.steps.iter().map(|step| u64::from(step.streams)).max().unwrap_or(0);
    if readings.stopped && run.verdict == Verdict::Complete {
        run.verdict = Verdict::Incomplete(format!("stopped on request after {} steps", readings.steps.len()));
    }
    let mut record = labelled(&run, readings.elapsed_ns);
    let info = info(readings);
    record.advice = advice::advise(readings, &info, cpu::disturbed(&record).is_some());
    KIND.complete(record, &info)
}

fn seconds(ns: u64) -> Figure {
    Figure::decimal(ns as f64 / 1e9)
}

fn info(readings: &SyncReadings) -> SyncInfo {
    let median = |part: SyncPart| {
        let step = readings.steps.iter().find(|step| step.part == part);
        step.map_or_else(|| Figure::na(STOPPED), |step| Latency::of(&step.latency).us_p50)
    };
    let durable_write_us_p50 = median(SyncPart::Flush);
    let unsynced_write_us_p50 = median(SyncPart::Unsynced);
    let inverse = |factor: f64| match durable_write_us_p50.value() {
        Some(us) if us > 0.0 => Figure::decimal(factor * 1e6 / us),
        _ => durable_write_us_p50.clone(),
    };
    SyncInfo {
        path: readings.path.clone(),
        file_bytes: readings.file_bytes,
        direct: readings.direct,
        layer: "syscall".to_owned(),
        sync_over_unsynced_ratio: match unsynced_write_us_p50.value() {
            Some(us) => durable_write_us_p50.per(us, "the write took no time"),
            None => unsynced_write_us_p50.clone(),
        },
        commit_delay_limit_per_s: inverse(2.0),
        commits_asked_per_s: readings.commits_per_s.map_or_else(|| Figure::na("not asked for"), Figure::Count),
        durable_write_us_p50,
        unsynced_write_us_p50,
        steps: readings.steps.iter().map(step).collect(),
        safety: safety(readings),
    }
}

fn part(part: SyncPart) -> &'static str {
    match part {
        SyncPart::Flush => "flush",
        SyncPart::Unsynced => "unsynced",
        SyncPart::Curve => "curve",
        SyncPart::Sizes => "sizes",
        SyncPart::Safety => "safety",
    }
}

fn step(reading: &SyncReading) -> SyncStep {
    let writes = reading.latency.count();
    let (writes_count, flushes_count) = match (&reading.note, writes) {
        (Some(why), 0) => (Figure::na(why), Figure::na(why)),
        _ if reading.method == SyncMethod::WriteOnly => (writes.into(), Figure::na(NO_FLUSH)),
        _ => (writes.into(), reading.flushes.into()),
    };
    SyncStep {
        part: part(reading.part).to_owned(),
        method: reading.method.name().to_owned(),
        file: if reading.growing { "new" } else { "preallocated" }.to_owned(),
        streams_count: u64::from(reading.streams),
        bytes: reading.bytes,
        per_s: match median(&reading.rates).filter(|_| writes > 0) {
            Some(rate) => Figure::decimal(rate),
            None => writes_count.per(reading.elapsed_ns as f64 / 1e9, "no time passed"),
        },
        writes_count,
        flushes_count,
        elapsed_s: seconds(reading.elapsed_ns),
        per_s_ci95_pct: confidence(reading),
        latency: Latency::of(&reading.latency),
        device_write_bytes: reading
            .device_write_bytes
            .map_or_else(|| Figure::na("the kernel does not report it"), Figure::Count),
        note: reading.note.clone(),
    }
}

/// Half width of the 95 % interval of the rate, from its rounds, as a share of it.
fn confidence(reading: &SyncReading) -> Figure {
    reading.spread().map_or_else(|| Figure::na("fewer than three rounds"), |part| Figure::decimal(100.0 * part))
}

/// The levels, least safe first: name, method, meaning.
const LEVELS: [(&str, SyncMethod, &str); 4] = [
    (
        "none",
        SyncMethod::WriteOnly,
        "acknowledged when written, not flushed: a power failure may lose the last commits",
    ),
    ("group", SyncMethod::Group, "all waiting commits share one flush of one log: no acknowledged commit is lost"),
    (
        "sync",
        SyncMethod::OneByOne,
        "each commit makes its own flush, one after the other, in one log: no acknowledged commit is lost",
    ),
    (
        "sync, parallel",
        SyncMethod::Fdatasync,
        "each stream flushes its own log, all in parallel: no acknowledged commit is lost",
    ),
];

fn safety(readings: &SyncReadings) -> Vec<SafetyRow> {
    let steps: Vec<&SyncReading> = readings.steps.iter().filter(|step| step.part == SyncPart::Safety).collect();
    let find = |method: SyncMethod, many: bool| {
        let mut steps = steps.iter();
        steps.find(|step| step.method == method && (step.streams > 1) == many)
    };
    let rate = |method: SyncMethod, many: bool| {
        find(method, many).map_or_else(|| Figure::na(STOPPED), |found| step(found).per_s)
    };
    let cost = |method: SyncMethod, many: bool| {
        let none = rate(SyncMethod::WriteOnly, many);
        match (none.value(), rate(method, many).value()) {
            (Some(none), Some(this)) if none > 0.0 => Figure::decimal(100.0 * (1.0 - this / none).max(0.0)),
            _ => Figure::na(STOPPED),
        }
    };
    let row = |(level, method, meaning): (&str, SyncMethod, &str)| {
        let many = find(method, true);
        let latency = |many: bool| find(method, many).map_or_else(Default::default, |s| Latency::of(&s.latency));
        SafetyRow {
            level: level.to_owned(),
            meaning: meaning.to_owned(),
            single_commits_per_s: rate(method, false),
            many_commits_per_s: rate(method, true),
            many_streams_count: many.map_or(0, |step| u64::from(step.streams)),
            many_commits_per_flush: match many {
                Some(step) if step.flushes > 0 => Figure::decimal(step.latency.count() as f64 / step.flushes as f64),
                Some(_) => Figure::na(NO_FLUSH),
                None => Figure::na(STOPPED),
            },
            single_commit_us_p50: latency(false).us_p50,
            single_commit_us_p99: latency(false).us_p99,
            many_commit_us_p99: latency(true).us_p99,
            single_cost_pct: cost(method, false),
            many_cost_pct: cost(method, true),
        }
    };
    LEVELS.into_iter().map(row).collect()
}
