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
    #[serde(alias = "avg_us")]
    pub us_avg: Figure,
    /// Smallest, us.
    #[serde(alias = "min_us")]
    pub us_min: Figure,
    /// Median, us.
    #[column("p50 us", 1)]
    #[serde(alias = "p50_us")]
    pub us_p50: Figure,
    /// 90th percentile, us.
    #[column("p90 us", 1)]
    #[serde(alias = "p90_us")]
    pub us_p90: Figure,
    /// 99th percentile, us.
    #[column("p99 us", 1)]
    #[serde(alias = "p99_us")]
    pub us_p99: Figure,
    /// 99.9th percentile, us.
    #[column("p99.9 us", 1)]
    #[serde(alias = "p999_us")]
    pub us_p999: Figure,
    /// Largest, us.
    #[column("max us", 1)]
    #[serde(alias = "max_us")]
    pub us_max: Figure,
    /// All of it.
    pub hist_ns: Histogram,
}

impl Latency {
    /// An unknown distribution.
    #[must_use]
    pub fn na(reason: &str) -> Self {
        let na = || Figure::na(reason);
        Self {
            us_avg: na(),
            us_min: na(),
            us_p50: na(),
            us_p90: na(),
            us_p99: na(),
            us_p999: na(),
            us_max: na(),
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
pub fn us_mean(histogram: &Histogram) -> Figure {
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
            us_avg: us_mean(histogram),
            us_min: extreme(histogram.min_ns()),
            us_p50: percentile_us(histogram, 0.5),
            us_p90: percentile_us(histogram, 0.9),
            us_p99: percentile_us(histogram, 0.99),
            us_p999: percentile_us(histogram, 0.999),
            us_max: extreme(histogram.max_ns()),
            hist_ns: histogram.clone(),
        }
    }
}
