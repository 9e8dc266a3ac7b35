//! Report groups: jobs that ran concurrently, combined, and their course over time.

use super::analysis::{self, Second, variation};
use super::options::goes;
use super::rows::{way_rows, ways};
use crate::readings::{DIRECTIONS, SecondReading, StorageReadings, Way};
use crate::record::info::{StorageGroup, StorageSpread};
use assay_measure::record::{Figure, Steadiness};
use assay_measure::statistics::mean;
use std::collections::BTreeSet;

const NS_PER_S: f64 = 1e9;
const MIB: f64 = 1_048_576.0;
/// A second shorter than this share is not a sample.
const WHOLE: f64 = 0.9;

pub(super) fn groups(readings: &StorageReadings) -> Vec<StorageGroup> {
    let ids: BTreeSet<u32> = readings.jobs.iter().map(|job| job.group).collect();
    ids.into_iter().map(|id| group(readings, id)).collect()
}

/// Whole seconds of a group, in order.
fn whole(readings: &StorageReadings, id: u32) -> Vec<&SecondReading> {
    let seconds = readings.seconds.iter();
    seconds.filter(|second| second.group == id && second.length_ns as f64 >= WHOLE * NS_PER_S).collect()
}

/// Whether a rate fixes the number of I/Os, so that only the response can change.
fn rated(readings: &StorageReadings, id: u32) -> bool {
    let mut jobs = readings.jobs.iter().filter(|job| job.group == id);
    jobs.all(|job| job.label.rate_iops.iter().any(Option::is_some))
}

fn group(readings: &StorageReadings, id: u32) -> StorageGroup {
    let jobs = || readings.jobs.iter().filter(move |job| job.group == id);
    let merged = ways(readings, |clone| readings.jobs.get(clone.job).is_some_and(|job| job.group == id));
    let mut targets: [Option<f64>; DIRECTIONS] = [None; DIRECTIONS];
    for (way, target) in targets.iter_mut().enumerate() {
        let rates = jobs().filter(|job| {
            let (reads, writes) = goes(&job.label.rw);
            way == Way::Trim.index() || [reads, writes][way.min(1)]
        });
        // The group has a target only if every job of this direction has one.
        let all: Option<Vec<f64>> =
            rates.map(|job| Some(job.label.rate_iops[way]? * f64::from(job.label.numjobs.max(1)))).collect();
        *target = all.filter(|all| !all.is_empty()).map(|all| all.iter().sum());
    }
    let whole = whole(readings, id);
    let rate = |second: &&SecondReading, amounts: &[u64; DIRECTIONS]| {
        amounts.iter().sum::<u64>() as f64 * NS_PER_S / second.length_ns as f64
    };
    let iops: Vec<f64> = whole.iter().map(|s| rate(s, &s.ios)).collect();
    let bytes: Vec<f64> = whole.iter().map(|s| rate(s, &s.bytes)).collect();
    let mib: Vec<f64> = bytes.iter().map(|bytes| bytes / MIB).collect();
    let rated = rated(readings, id);
    let values = if rated { response_us(&whole) } else { iops.clone() };
    let mut found = StorageGroup {
        group: id,
        jobs: jobs().map(|job| job.name.clone()).collect(),
        ways: way_rows(merged, targets, Default::default()),
        bw_total_mib_per_s: spread(&mib),
        iops_total_per_s: spread(&iops),
        steadiness: steadiness(&iops),
        analysed: if rated { "response latency" } else { "IOPS" }.to_owned(),
        drift_ratio: Figure::na("no drift"),
        stall_period_s: Figure::na("no period"),
        device_busy_pct: busy(&whole),
        ..StorageGroup::default()
    };
    if readings.running {
        found.not_analysed = Some("the group still runs".to_owned());
        return found;
    }
    match analysis::analyse(&table(&whole, &values, &bytes)) {
        Err(reason) => found.not_analysed = Some(reason),
        Ok(analysis) => {
            let at = analysis.changes.iter().filter_map(|c| c.at_s.value());
            found.steadiness.change_points_s = at.collect();
            found.changes = analysis.changes;
            found.levels = analysis.levels;
            if let Some(drift) = analysis.drift {
                found.drift_ratio = drift.into();
            }
            if let Some(period) = analysis.period {
                found.stall_period_s = (period.seconds as u64).into();
            }
        }
    }
    found
}

/// Mean response of each second, us.
fn response_us(whole: &[&SecondReading]) -> Vec<f64> {
    let mean = |second: &&SecondReading| {
        let mean_ns = second.response.as_ref().and_then(|all| all.mean_ns());
        mean_ns.unwrap_or(0.0) / 1e3
    };
    whole.iter().map(mean).collect()
}

fn table(whole: &[&SecondReading], values: &[f64], bytes: &[f64]) -> Vec<Second> {
    let (mut read_bytes, mut written_bytes) = (0, 0);
    let rows = whole.iter().zip(values).zip(bytes);
    rows.map(|((second, value), bytes_per_s)| {
        read_bytes += second.bytes[Way::Read.index()];
        written_bytes += second.bytes[Way::Write.index()];
        Second {
            end_s: second.end_ns as f64 / NS_PER_S,
            value: *value,
            bytes_per_s: *bytes_per_s,
            read_bytes,
            written_bytes,
        }
    })
    .collect()
}

const FEW: &str = "fewer than two whole seconds";

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn spread(values: &[f64]) -> StorageSpread {
    let figure = |value: f64| match values.len() {
        0 | 1 => Figure::na(FEW),
        _ => Figure::decimal(value),
    };
    let variation_ratio = variation(values);
    StorageSpread {
        samples_count: values.len() as u64,
        min: figure(least(values)),
        max: figure(most(values)),
        mean: figure(mean(values)),
        stddev: figure(variation_ratio.value().unwrap_or(0.0) * mean(values)),
        variation_ratio,
    }
}

/// First against last quarter and the spread; the analysis adds changes of level.
fn steadiness(iops: &[f64]) -> Steadiness {
    let quarter = iops.len() / 4;
    let enough = |figure: Figure| match quarter {
        0 => Figure::na("fewer than four whole seconds"),
        _ => figure,
    };
    let last = mean(&iops[iops.len() - quarter..]);
    Steadiness {
        steps_count: (iops.len() as u64).into(),
        mean_per_s: enough(mean(iops).into()),
        min_per_s: enough(Figure::decimal(least(iops))),
        max_per_s: enough(most(iops).into()),
        variation_ratio: enough(variation(iops)),
        last_over_first_ratio: enough(Figure::decimal(last).per(mean(&iops[..quarter]), "nothing moved")),
        change_points_s: Vec::new(),
    }
}

/// Time with a request at the busiest device relative to the group's time.
fn busy(whole: &[&SecondReading]) -> Figure {
    let elapsed_ns: u64 = whole.iter().map(|second| second.length_ns).sum();
    let names: BTreeSet<&str> =
        (whole.iter()).flat_map(|second| second.disks.iter().map(|disk| disk.name.as_str())).collect();
    let busy_ns = |name: &str| -> u64 {
        let disks = whole.iter().flat_map(|second| &second.disks);
        disks.filter(|disk| disk.name == name).map(|disk| disk.busy_ns).sum()
    };
    match names.iter().map(|name| busy_ns(name)).max() {
        None => Figure::na("the device below the files is unknown"),
        Some(most) => Figure::decimal((100.0 * most as f64).min(100.0 * elapsed_ns as f64)).per(elapsed_ns as f64, FEW),
    }
}
