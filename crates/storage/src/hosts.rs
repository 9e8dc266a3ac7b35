//! One test on several hosts: what each read, as the data of a run, and all of it as one test's readings.
//!
//! Every host does the whole of what was asked; its clones are further clones of the same jobs. Counts, buckets and seconds of one
//! number are added, percentiles never.

use crate::readings::{CloneReading, LatencyReading, SecondReading, StorageReadings, Way};
use crate::record;
use assay_measure::clock::NS_PER_S;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, merge_rows};
use assay_run::probe::{self, OfHost};
use serde_json::Value;

/// A host's readings as the data of a run.
pub(crate) fn data(labels: &RunData, readings: &StorageReadings) -> RunData {
    let times = |way: Way| {
        let mut latency = LatencyReading::default();
        readings.clones.iter().for_each(|clone| latency.merge(&clone.ways[way.index()].lat));
        (way.name(), latency.histogram)
    };
    let host = OfHost {
        window_ns: readings.clones.iter().map(|clone| clone.runtime_ns).max().unwrap_or(0),
        sessions: readings.clones.len() as u64,
        ops: Way::ALL.map(times).into(),
        verdict: record::verdict(readings),
    };
    host.data(labels, readings)
}

/// The record of all hosts' readings.
pub(crate) fn record(labels: &RunData, parts: &[&Value]) -> Option<Record> {
    Some(record::build(labels, &probe::added(parts, added)?))
}

/// Two hosts' readings as one's.
fn added(mut all: StorageReadings, more: StorageReadings) -> StorageReadings {
    let clones = more.clones.into_iter().map(|clone| CloneReading {
        clone: clone.clone + all.jobs.get(clone.job).map_or(0, |job| job.label.numjobs),
        ..clone
    });
    all.clones.extend(clones);
    all.clones.sort_by_key(|clone| (clone.job, clone.clone));
    for (job, other) in all.jobs.iter_mut().zip(more.jobs) {
        job.label.numjobs += other.label.numjobs;
        job.region_bytes += other.region_bytes;
        job.notes.extend(other.notes.into_iter().filter(|note| !job.notes.contains(note)).collect::<Vec<_>>());
        job.refused.extend(other.refused.into_iter().filter(|one| !job.refused.contains(one)).collect::<Vec<_>>());
        // A steady state is one of all hosts.
        job.steady = job.steady.take().zip(other.steady).map(|(mut steady, other)| {
            steady.attained &= other.attained;
            steady
        });
    }
    for second in more.seconds {
        let number = |one: &SecondReading| (one.group, one.end_ns.div_ceil(NS_PER_S));
        match all.seconds.iter_mut().find(|mine| number(mine) == number(&second)) {
            Some(mine) => add_second(mine, &second),
            None => all.seconds.push(second),
        }
    }
    all.seconds.sort_by_key(|second| (second.group, second.end_ns));
    merge_rows(&mut all.disks, &more.disks);
    all.host = all.host.zip(more.host).map(|(mut host, other)| {
        host.merge(&other);
        host
    });
    all.facts.extend(more.facts.into_iter().filter(|fact| !all.facts.contains(fact)).collect::<Vec<_>>());
    all.precondition.extend(more.precondition);
    all.timestamp_ms = all.timestamp_ms.max(more.timestamp_ms);
    all.started_ms = all.started_ms.min(more.started_ms);
    all.elapsed_ns = all.elapsed_ns.max(more.elapsed_ns);
    all.process_cpu_ns += more.process_cpu_ns;
    all.stopped |= more.stopped;
    all
}

fn add_second(mine: &mut SecondReading, other: &SecondReading) {
    mine.end_ns = mine.end_ns.max(other.end_ns);
    mine.length_ns = mine.length_ns.max(other.length_ns);
    for way in Way::ALL.map(Way::index) {
        mine.ios[way] += other.ios[way];
        mine.bytes[way] += other.bytes[way];
        mine.lat[way].merge(&other.lat[way]);
    }
    if let (Some(mine), Some(other)) = (&mut mine.response, &other.response) {
        mine.merge(other);
    }
    mine.syncs += other.syncs;
    merge_rows(&mut mine.disks, &other.disks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use assay_measure::record::Truth;

    #[test]
    fn two_hosts_are_one_test_with_twice_the_clones() {
        let one = fixture::readings();
        let labels = RunData { workload: "io".to_owned(), ..RunData::default() };
        let part = data(&labels, &one).part.expect("it travels");
        let both = added(one.clone(), one.clone());
        assert_eq!((both.ended(), both.clones.len()), (2 * one.ended(), 2 * one.clones.len()));
        assert_eq!(both.seconds.len(), one.seconds.len());
        let numbers: std::collections::BTreeSet<_> = both.clones.iter().map(|clone| (clone.job, clone.clone)).collect();
        assert_eq!(numbers.len(), both.clones.len(), "no two clones have one number");
        let record = record(&labels, &[&part, &part]).expect("they add up");
        let violated = record.integrity.iter().filter(|one| one.ok == Truth::Violated);
        let alone = record::build(&labels, &one);
        assert_eq!(violated.count(), alone.integrity.iter().filter(|one| one.ok == Truth::Violated).count());
        assert!(super::record(&labels, &[&part, &Value::from(1)]).is_none());
    }
}
