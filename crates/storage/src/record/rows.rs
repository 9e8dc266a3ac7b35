//! The combined readings of jobs, and their rows in the record.

use super::info::{StorageLatency, StorageWay};
use crate::readings::{CloneReading, DIRECTIONS, JobReading, LatencyReading, StorageReadings, Way, WayReading};
use assay_measure::histogram::Histogram;
use assay_measure::record::{Figure, percentile_us};

pub(super) const NS_PER_S: f64 = 1e9;
const MB: f64 = 1e6;
const MIB: f64 = 1_048_576.0;
/// Why a rate is missing.
pub(super) const NO_TIME: &str = "no time passed";
const NO_RATE: &str = "no rate was requested";

/// Why latencies of a job are missing, by kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Missing {
    lat: Option<&'static str>,
    clat: Option<&'static str>,
    slat: Option<&'static str>,
}

impl Missing {
    pub(super) fn of(job: &JobReading) -> Self {
        const ASKED: &str = "not taken, as requested";
        let label = &job.label;
        Self {
            lat: label.no_lat.then_some(ASKED),
            clat: label.no_clat.then_some(ASKED),
            slat: if label.synchronous {
                Some("submission and completion are one call")
            } else {
                label.no_slat.then_some(ASKED)
            },
        }
    }
}

/// Number of I/Os of a clone in all directions.
pub(super) fn ios_of(clone: &CloneReading) -> u64 {
    clone.ways.iter().map(|way| way.ios).sum()
}

/// Directions merged over the clones that `is_it` selects, each with the longest runtime.
pub(super) fn ways(
    readings: &StorageReadings,
    is_it: impl Fn(&CloneReading) -> bool,
) -> [(WayReading, u64); DIRECTIONS] {
    let mut merged: [(WayReading, u64); DIRECTIONS] = Default::default();
    for clone in readings.clones.iter().filter(|clone| is_it(clone)) {
        for (way, (into, runtime_ns)) in clone.ways.iter().zip(&mut merged) {
            into.bytes += way.bytes;
            into.ios += way.ios;
            into.short_ios += way.short_ios;
            into.slat.merge(&way.slat);
            into.clat.merge(&way.clat);
            into.lat.merge(&way.lat);
            if let Some(response) = &way.response {
                into.response.get_or_insert_default().merge(response);
            }
            *runtime_ns = (*runtime_ns).max(way.runtime_ns);
        }
    }
    merged
}

/// The directions used, as rows of the record.
pub(super) fn way_rows(
    ways: [(WayReading, u64); DIRECTIONS],
    targets: [Option<f64>; DIRECTIONS],
    missing: Missing,
) -> Vec<StorageWay> {
    let row = |(way, (reading, runtime_ns)): (Way, (WayReading, u64))| {
        let elapsed_s = runtime_ns as f64 / NS_PER_S;
        let rate = |amount: f64| Figure::decimal(amount).per(elapsed_s, NO_TIME);
        StorageWay {
            way: way.name().to_owned(),
            ios_count: reading.ios,
            moved_bytes: reading.bytes,
            short_ios_count: reading.short_ios,
            runtime_s: seconds(runtime_ns),
            ios_per_s: rate(reading.ios as f64),
            mb_per_s: rate(reading.bytes as f64 / MB),
            mib_per_s: rate(reading.bytes as f64 / MIB),
            target_ios_per_s: Figure::known(targets[way.index()], NO_RATE),
            lat: latency(&reading.lat, missing.lat),
            clat: latency(&reading.clat, missing.clat),
            slat: latency(&reading.slat, missing.slat),
            response: match &reading.response {
                Some(response) => latency(response, None),
                None => latency(&LatencyReading::default(), Some(NO_RATE)),
            },
        }
    };
    Way::ALL.into_iter().zip(ways).filter(|(_, (reading, _))| reading.ios > 0).map(row).collect()
}

/// A distribution as figures; `missing` is the reason for an empty one.
pub(super) fn latency(latency: &LatencyReading, missing: Option<&str>) -> StorageLatency {
    let histogram: &Histogram = &latency.histogram;
    let reason = missing.unwrap_or("nothing counted");
    let or_reason = |figure: Figure| if histogram.is_empty() { Figure::na(reason) } else { figure };
    let us = |ns: Option<f64>| or_reason(Figure::decimal(ns.unwrap_or(0.0) / 1e3));
    let percentile = |q: f64| or_reason(percentile_us(histogram, q));
    StorageLatency {
        count: histogram.count(),
        us_avg: us(histogram.mean_ns()),
        us_stddev: us(latency.stddev_ns()),
        us_min: us(histogram.min_ns().map(|ns| ns as f64)),
        us_p50: percentile(0.5),
        us_p90: percentile(0.9),
        us_p95: percentile(0.95),
        us_p99: percentile(0.99),
        us_p999: percentile(0.999),
        us_p9999: percentile(0.9999),
        us_p99999: percentile(0.999_99),
        us_max: us(histogram.max_ns().map(|ns| ns as f64)),
        hist_ns: histogram.clone(),
    }
}

/// Converts ns to seconds.
pub(super) fn seconds(ns: u64) -> Figure {
    Figure::decimal(ns as f64 / NS_PER_S)
}
