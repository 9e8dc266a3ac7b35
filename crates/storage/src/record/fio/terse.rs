//! fio's terse output, version 3: one line per entry, fields separated by semicolons.

use super::entry::{Entry, entries, group_way};
use super::latency;
use super::latency::put;
use super::number::{percent, rate};
use super::options;
use super::percentile;
use super::text::{DiskFigures, shares};
use crate::readings::{JobLabel, LatencyReading, StorageReadings, Way};

/// Number of percentile fields, used or not.
const PERCENTILE_FIELDS: usize = 20;

/// One line per entry of the report.
#[must_use]
pub fn terse(readings: &StorageReadings) -> String {
    let entries = entries(readings);
    let mut text = String::new();
    for entry in &entries {
        put_line(&mut text, readings, &entries, entry);
        text.push('\n');
    }
    text
}

fn put_line(text: &mut String, readings: &StorageReadings, entries: &[Entry<'_>], entry: &Entry<'_>) {
    put(text, format_args!("3;{};{};{};{}", super::version(readings), entry.job.name, entry.job.group, entry.error.0));
    for way in [Way::Read, Way::Write] {
        put_way(text, entries, entry, way);
    }
    put(
        text,
        format_args!(
            ";{:.6}%;{:.6}%;{};{};{}",
            entry.user_percent(),
            entry.system_percent(),
            entry.context_switches,
            entry.major_faults,
            entry.minor_faults
        ),
    );
    for share in shares(&entry.depths) {
        put(text, format_args!(";{share:3.1}%"));
    }
    let [_, (_, usec), (_, msec)] = latency::families(&entry.families, entry.ios());
    // There are no fields for nanoseconds: all of those latencies are below 2 us.
    let below = percent(entry.families.counts[..10].iter().sum(), entry.ios());
    for (i, (_, share)) in usec.iter().chain(&msec).enumerate() {
        let share = if i == 0 { share + below } else { *share };
        put(text, format_args!(";{share:3.2}%"));
    }
    for disk in &readings.disks {
        let figures = DiskFigures::of(disk, readings.elapsed_ns);
        put(
            text,
            format_args!(
                ";{};{};{};{};{};{};{};{};{:3.2}%",
                disk.name,
                disk.reads,
                disk.writes,
                disk.read_merges,
                disk.write_merges,
                figures.read_ms,
                figures.write_ms,
                figures.in_queue_ms,
                figures.util
            ),
        );
    }
    if options::passes_errors(readings, entry) {
        put(text, format_args!(";{};{}", entry.errors_passed, entry.error.0));
    }
    if let Some(description) = &entry.label().description {
        put(text, format_args!(";{description}"));
    }
}

fn put_way(text: &mut String, entries: &[Entry<'_>], entry: &Entry<'_>, way: Way) {
    let figures = entry.way(way);
    let label = entry.label();
    put(
        text,
        format_args!(
            ";{};{};{};{}",
            figures.bytes / 1024,
            figures.bytes_per_s() / 1024,
            rate(figures.ios, figures.runtime_ms),
            figures.runtime_ms
        ),
    );
    put_latency(text, &figures.slat);
    put_latency(text, &figures.clat);
    let of = match (label.lat_percentiles, label.clat_percentiles) {
        (true, _) => Some(&figures.lat),
        (false, true) => Some(&figures.clat),
        (false, false) => None,
    };
    put_percentiles(text, label, of);
    put_latency(text, &figures.lat);
    let group = group_way(entries, entry.job.group, way);
    put(
        text,
        format_args!(
            ";{};{};{:.6}%;{:.6};{:.6}",
            figures.bw.min,
            figures.bw.max,
            group.terse_percent_of(figures.bw.mean),
            figures.bw.mean,
            figures.bw.stddev()
        ),
    );
}

/// Extremes in whole us, mean and deviation in us with decimals.
fn put_latency(text: &mut String, latency: &LatencyReading) {
    let histogram = &latency.histogram;
    put(
        text,
        format_args!(
            ";{};{};{:.6};{:.6}",
            histogram.min_ns().unwrap_or(0) / 1000,
            histogram.max_ns().unwrap_or(0) / 1000,
            histogram.mean_ns().unwrap_or(0.0) / 1000.0,
            latency.stddev_ns().unwrap_or(0.0) / 1000.0
        ),
    );
}

fn put_percentiles(text: &mut String, label: &JobLabel, latency: Option<&LatencyReading>) {
    let found = latency.map_or_else(Vec::new, |latency| {
        match percentile::percentiles(&latency.histogram, &label.percentiles) {
            found if found.is_empty() => label.percentiles.iter().map(|&p| (p, 0)).collect(),
            found => found,
        }
    });
    for i in 0..PERCENTILE_FIELDS {
        match found.get(i) {
            Some((percent, ns)) => put(text, format_args!(";{percent:.6}%={}", ns / 1000)),
            None => text.push_str(";0%=0"),
        }
    }
}
