//! Formats latencies: unit, extremes, percentiles and shares.

use super::number::{Step, share, short};
use super::options;
use super::percentile;
use crate::readings::{FamilyCounts, JobLabel, JobReading, LatencyReading, StorageReadings};
use std::fmt::Write as _;

/// Units of the text report, with ns per unit.
const NSEC: (&str, u64) = ("nsec", 1);
const USEC: (&str, u64) = ("usec", 1000);
const MSEC: (&str, u64) = ("msec", 1_000_000);

/// Appends text; writing to a string cannot fail.
pub(super) fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all");
}

/// The percentiles to show, and their number of decimals.
pub(super) struct Percentiles<'a> {
    pub(super) label: &'a JobLabel,
    /// As many decimals as the list was typed with, 2 by default.
    pub(super) decimals: usize,
}

impl<'a> Percentiles<'a> {
    pub(super) fn of(readings: &StorageReadings, job: &'a JobReading) -> Self {
        let typed = options::value(readings, job, "percentile_list");
        let decimals = typed.map_or(2, |list| {
            let decimals = |entry: &str| entry.split_once('.').map_or(0, |(_, d)| d.trim().len());
            list.split(':').map(decimals).max().unwrap_or(2)
        });
        Self { label: &job.label, decimals }
    }
}

/// The unit for a range in ns: a larger unit only if the small end stays readable.
fn unit_of(min_ns: u64, max_ns: u64, stddev_ns: f64) -> (&'static str, u64) {
    if min_ns > 2_000_000 && max_ns > 99_999_999 && stddev_ns > 1_000_000.0 {
        MSEC
    } else if min_ns > 2000 && max_ns > 99_999 && stddev_ns > 1000.0 {
        USEC
    } else {
        NSEC
    }
}

/// `    clat (usec): min=48, max=339, avg=57.39, stdev=12.64`; nothing for an empty distribution.
pub(super) fn line(text: &mut String, name: &str, latency: &LatencyReading) {
    let histogram = &latency.histogram;
    let (Some(min), Some(max), Some(mean), Some(stddev)) =
        (histogram.min_ns(), histogram.max_ns(), histogram.mean_ns(), latency.stddev_ns())
    else {
        return;
    };
    let (unit, scale) = unit_of(min, max, stddev);
    let extreme = |ns: u64| short(ns / scale, 6, Step::Decimal, "");
    put(
        text,
        format_args!(
            "    {name:>4} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}\n",
            extreme(min),
            extreme(max),
            mean / scale as f64,
            stddev / scale as f64
        ),
    );
}

/// The block of percentiles: as many per line of 80 characters as fit.
pub(super) fn percentiles(text: &mut String, name: &str, latency: &LatencyReading, list: &Percentiles<'_>) {
    let found = percentile::percentiles(&latency.histogram, &list.label.percentiles);
    let (Some(&(_, least)), Some(&(_, most))) =
        (found.iter().min_by_key(|(_, ns)| *ns), found.iter().max_by_key(|(_, ns)| *ns))
    else {
        return;
    };
    let (unit, scale) = unit_of(least, most, f64::INFINITY);
    // Rounded up at each step, as in fio.
    let scaled = |ns: u64| match scale {
        1 => ns,
        1000 => ns.div_ceil(1000),
        _ => ns.div_ceil(1000).div_ceil(1000),
    };
    let digits = scaled(most).checked_ilog10().unwrap_or(0) as usize + 1;
    let (width, decimals) = (digits.max(5), list.decimals);
    let to_a_line = ((80 - 7) / (decimals + 10 + width)).max(1);
    put(text, format_args!("    {name} percentiles ({unit}):\n"));
    let lines = found.chunks(to_a_line);
    let last = lines.len().saturating_sub(1);
    for (i, line) in lines.enumerate() {
        let values: Vec<String> = line
            .iter()
            .map(|&(percent, ns)| {
                let wide = decimals + 3;
                format!(" {percent:wide$.decimals$}th=[{:width$}]", scaled(ns))
            })
            .collect();
        let comma = if i == last { "" } else { "," };
        put(text, format_args!("     |{}{comma}\n", values.join(",")));
    }
}

/// Names of the bounds in a family.
const BOUNDS: [&str; 12] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];

/// The name of a bound with its share in percent.
pub(super) type Share = (&'static str, f64);

/// Shares of all `ios` by family: nsec, usec, msec.
pub(super) fn families(counts: &FamilyCounts, ios: u64) -> [(&'static str, Vec<Share>); 3] {
    let of = |first: usize, bounds: usize| {
        let counts = &counts.counts[first..first + bounds];
        let shares = BOUNDS.iter().zip(counts);
        shares.map(|(&bound, &count)| (bound, share(count, ios))).collect()
    };
    [("nsec", of(0, 10)), ("usec", of(10, 10)), ("msec", of(20, 12))]
}
