//! One test on several hosts: what each read, as the data of a run, and all of it as one test's readings.
//!
//! Every host makes all steps with streams of its own, at about the same time: a step's rates and counts are those of all hosts
//! together, its times in one histogram.

use super::reading::{SyncReading, SyncReadings};
use super::record;
use assay_measure::histogram::Histogram;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, Verdict};
use assay_run::probe::{self, OfHost};
use serde_json::Value;

/// A host's readings as the data of a run: its operations are the writes of all steps.
pub(super) fn data(labels: &RunData, readings: &SyncReadings) -> RunData {
    let mut writes = Histogram::default();
    readings.steps.iter().for_each(|step| writes.merge(&step.latency));
    let stopped = || Verdict::Incomplete(format!("stopped on request after {} steps", readings.steps.len()));
    let host = OfHost {
        window_ns: readings.elapsed_ns,
        sessions: readings.steps.iter().map(|step| u64::from(step.streams)).max().unwrap_or(0),
        ops: vec![("write", writes)],
        verdict: if readings.stopped { stopped() } else { Verdict::Complete },
    };
    host.data(labels, readings)
}

/// The record of all hosts' readings.
pub(super) fn record(labels: &RunData, parts: &[&Value]) -> Option<Record> {
    Some(record::build(labels, &probe::added(parts, added)?))
}

/// Two hosts' readings as one's; steps that only one of them made are left out.
fn added(mut all: SyncReadings, more: SyncReadings) -> SyncReadings {
    let key = |step: &SyncReading| (step.part, step.method, step.growing, step.streams, step.bytes);
    all.steps.retain_mut(|mine| {
        let other = more.steps.iter().find(|other| key(other) == key(mine));
        other.is_some_and(|other| {
            beside(mine, other);
            true
        })
    });
    all.direct &= more.direct;
    all.is_memory |= more.is_memory;
    all.facts.extend(more.facts.into_iter().filter(|fact| !all.facts.contains(fact)).collect::<Vec<_>>());
    all.elapsed_ns = all.elapsed_ns.max(more.elapsed_ns);
    all.stopped |= more.stopped;
    all
}

/// Takes in the same step of a host that made it at the same time.
fn beside(mine: &mut SyncReading, other: &SyncReading) {
    mine.elapsed_ns = mine.elapsed_ns.max(other.elapsed_ns);
    mine.latency.merge(&other.latency);
    mine.flushes += other.flushes;
    mine.rates = mine.rates.iter().zip(&other.rates).map(|(mine, more)| mine + more).collect();
    let both = mine.device_write_bytes.zip(other.device_write_bytes);
    mine.device_write_bytes = both.map(|(mine, more)| mine + more);
}

#[cfg(test)]
mod tests {
    use super::super::reading::{SyncMethod, SyncPart};
    use super::*;

    fn step(part: SyncPart, times: &[u64], rates: &[f64]) -> SyncReading {
        let mut latency = Histogram::new();
        times.iter().for_each(|ns| latency.record(*ns));
        SyncReading {
            part,
            method: SyncMethod::Fdatasync,
            growing: false,
            streams: 1,
            bytes: 4096,
            elapsed_ns: 1_000_000_000,
            latency,
            flushes: times.len() as u64,
            rates: rates.to_vec(),
            device_write_bytes: Some(4096),
            note: None,
        }
    }

    #[test]
    fn steps_of_two_hosts_add_their_rates_and_buckets_and_one_that_a_host_lacks_is_left_out() {
        let a = SyncReadings {
            steps: vec![step(SyncPart::Flush, &[100, 200], &[2.0, 3.0]), step(SyncPart::Sizes, &[1], &[1.0])],
            ..SyncReadings::default()
        };
        let b = SyncReadings { steps: vec![step(SyncPart::Flush, &[400], &[1.0, 1.0])], ..SyncReadings::default() };
        let both = added(a.clone(), b.clone());
        let [flush] = &both.steps[..] else { panic!("{:?}", both.steps) };
        assert_eq!((flush.latency.count(), flush.flushes, &flush.rates), (3, 3, &vec![3.0, 4.0]));
        assert_eq!((flush.elapsed_ns, flush.device_write_bytes), (1_000_000_000, Some(8192)));
        let labels = RunData { workload: "sync".to_owned(), ..RunData::default() };
        let of = |readings: &SyncReadings| data(&labels, readings).part.expect("it travels");
        let record = record(&labels, &[&of(&a), &of(&b)]).expect("they add up");
        assert_eq!(record.run.workload, "sync");
        assert_eq!(data(&labels, &a).end.driver.ops_ended(), 3);
    }
}
