//! A latency distribution in a record.

use super::figure::Figure;
use crate::figures::figures;
use crate::histogram::Histogram;

/// A latency distribution with its usual percentiles; a percentile with fewer
/// than ten samples beyond it is n/a.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// Mean, us.
    pub avg_us: Figure,
    /// Smallest, us.
    pub min_us: Figure,
    /// Median, us.
    #[column("p50 us", 1)]
    pub p50_us: Figure,
    /// 90th percentile, us.
    #[column("p90 us", 1)]
    pub p90_us: Figure,
    /// 99th percentile, us.
    #[column("p99 us", 1)]
    pub p99_us: Figure,
    /// 99.9th percentile, us.
    #[column("p99.9 us", 1)]
    pub p999_us: Figure,
    /// Largest, us.
    #[column("max us", 1)]
    pub max_us: Figure,
    /// All of it.
    pub hist_ns: Histogram,
}

impl Latency {
    /// An unknown distribution.
    #[must_use]
    pub fn na(reason: &str) -> Self {
        let na = || Figure::na(reason);
        Self {
            avg_us: na(),
            min_us: na(),
            p50_us: na(),
            p90_us: na(),
            p99_us: na(),
            p999_us: na(),
            max_us: na(),
            hist_ns: Histogram::default(),
        }
    }
}

/// Percentile `q` (0..1) in us; n/a with fewer than ten samples beyond it.
#[must_use]
pub fn percentile_us(histogram: &Histogram, q: f64) -> Figure {
    match histogram.percentile_ns(q) {
        Some(ns) => Figure::decimal(ns as f64 / 1000.0),
        None if histogram.count() == 0 => Figure::na("nothing counted"),
        None => Figure::na("too few samples"),
    }
}

/// The mean in us.
#[must_use]
pub fn mean_us(histogram: &Histogram) -> Figure {
    match histogram.mean_ns() {
        Some(ns) => Figure::decimal(ns / 1000.0),
        None => Figure::na("nothing counted"),
    }
}

impl Latency {
    /// The usual percentiles of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let extreme = |ns: Option<u64>| match ns {
            Some(ns) => Figure::decimal(ns as f64 / 1000.0),
            None => Figure::na("nothing counted"),
        };
        Self {
            avg_us: mean_us(histogram),
            min_us: extreme(histogram.min_ns()),
            p50_us: percentile_us(histogram, 0.5),
            p90_us: percentile_us(histogram, 0.9),
            p99_us: percentile_us(histogram, 0.99),
            p999_us: percentile_us(histogram, 0.999),
            max_us: extreme(histogram.max_ns()),
            hist_ns: histogram.clone(),
        }
    }
}
