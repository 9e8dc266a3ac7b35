//! The figures of a record as one list with stable keys: comparison, cost, history, gates, briefs and exports name a
//! figure by its key.
//!
//! A key is lower case and ends in unit and statistic (`reads_per_s`, `op_us_p99`, `db_file_sequential_read_us_p99`).
//! It is the same for a run, an import and a probe, so that equal figures can be compared. Owns names, units and the
//! better direction; knows nothing about how figures are shown.

use super::figure::Figure;
use super::series::Series;
use crate::figures::figures;
use crate::plain::slug;
use crate::statistics::{batch_means, half_width};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One figure of a record.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metric {
    /// Stable name, unit and statistic last.
    pub key: String,
    /// What it belongs to where a record has several of its kind (a job, a stream, a transaction); empty otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Name for people, as the report prints it.
    pub name: String,
    /// Where in a report it belongs.
    pub group: Group,
    /// Unit of `value`: `1/s`, `us`, `bytes/s`, `%`, ...
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// One of the few that a comparison is judged by; the others are shown.
    #[serde(rename = "primary", skip_serializing_if = "std::ops::Not::not")]
    pub is_primary: bool,
    /// The figure: per second for a counter, else as it is.
    pub value: Figure,
    /// The 95 % interval of its mean, from the spread within this run alone; none if unknown.
    #[serde(rename = "interval_95", skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// A counter's columns; none for a latency or a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<Counted>,
    /// Key of [`Series::metrics`](crate::record::Series::metrics) with the same figure by step.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "super::spelling::optional")]
    pub series: Option<String>,
    /// `client`, `engine`, `syscall`, `device`, `network`.
    pub layer: String,
}

/// The columns of a counter, window deltas.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counted {
    /// Over the window.
    pub total: Figure,
    /// Per second.
    pub per_s: Figure,
    /// Per transaction.
    pub per_tx: Figure,
    /// Per operation.
    pub per_op: Figure,
}

/// Where a metric belongs, in report order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The few that a comparison is judged by.
    Primary,
    /// Load profile.
    LoadProfile,
    /// Operations of the load generator.
    Operation,
    /// Wait events.
    Event,
    /// I/O profile.
    IoProfile,
    /// Storage probe.
    Storage,
    /// What another tool measured and does not fit another group.
    #[default]
    Imported,
    /// Efficiency percentages.
    Efficiency,
    /// CPU of the host.
    Host,
    /// Instance statistics.
    Statistic,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More work done.
    Higher,
    /// Less time, less cost.
    Lower,
    /// Neither: it describes.
    #[default]
    Neither,
}

/// The metrics of a record as they are kept: primary ones first, then in report order; a later metric with an existing
/// name is the same figure and is dropped. Each gets its interval where its steps give one.
///
/// A primary metric appears once, under its short key; the row it comes from keeps its own long key.
#[must_use]
pub fn ordered(mut all: Vec<Metric>, series: &Series) -> Vec<Metric> {
    all.sort_by_key(|metric| metric.group);
    let mut names = BTreeSet::new();
    all.retain(|metric| names.insert(metric.full_key()));
    for metric in &mut all {
        metric.series.take_if(|name| !series.metrics.contains_key(name));
        if metric.interval.is_none() {
            metric.interval = interval(metric, series);
        }
    }
    all
}

/// Steps of a window below which their spread says too little.
const STEPS_MIN: usize = 20;

/// Of a rate: its value and how far the means of ten equal parts of the window spread around it (batch means).
fn interval(metric: &Metric, series: &Series) -> Option<(f64, f64)> {
    let steps = series.metrics.get(metric.series.as_ref()?)?;
    if !metric.unit.ends_with("/s") {
        return None;
    }
    let inside = series.in_window.iter().zip(steps);
    let inside: Option<Vec<f64>> =
        inside.filter(|(is_inside, _)| **is_inside).map(|(_, figure)| figure.value()).collect();
    let inside = inside?;
    if inside.len() < STEPS_MIN {
        return None;
    }
    let half = half_width(&batch_means(&inside))?;
    let value = metric.value.value()?;
    Some(((value - half).max(0.0), value + half))
}

/// The metric of this name: a key, or `scope.key` where a record has several.
#[must_use]
pub fn find<'a>(metrics: &'a [Metric], name: &str) -> Option<&'a Metric> {
    metrics.iter().find(|metric| metric.full_key() == name)
}

impl Metric {
    /// `key`, or `scope.key` with the scope as a slug.
    #[must_use]
    pub fn full_key(&self) -> String {
        if self.scope.is_empty() {
            return self.key.clone();
        }
        format!("{}.{}", slug(&self.scope), self.key)
    }
}

/// A metric with nothing but a name and a figure.
#[must_use]
pub fn plain(group: Group, key: &str, name: &str, unit: &str, better: Better, value: Figure) -> Metric {
    Metric {
        key: key.to_owned(),
        scope: String::new(),
        name: name.to_owned(),
        group,
        unit: unit.to_owned(),
        better,
        is_primary: group == Group::Primary,
        value,
        interval: None,
        counter: None,
        series: None,
        layer: "engine".to_owned(),
    }
}

/// A time of which less is better, us.
#[must_use]
pub fn lower(group: Group, key: &str, name: &str, figure: &Figure) -> Metric {
    plain(group, key, name, "us", Better::Lower, figure.clone())
}

/// `read_us` of `read_us_p995`.
fn without_percentile(key: &str) -> &str {
    let is_digits = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let split = key.rsplit_once("_p");
    let found = split.filter(|(_, percent)| is_digits(percent));
    found.map_or(key, |(stem, _)| stem)
}

/// A key without its statistic: `read_us` of `read_us_p99`, `read_us_avg` and `read_us`.
#[must_use]
pub fn stem(key: &str) -> &str {
    const STATISTICS: [&str; 7] = ["_avg", "_mean", "_min", "_max", "_stddev", "_mdev", "_sum"];
    let mut statistics = STATISTICS.iter();
    let stem = statistics.find_map(|statistic| key.strip_suffix(statistic));
    stem.unwrap_or_else(|| without_percentile(key))
}

/// Unit and better direction of a key, by its ending without the statistic.
#[must_use]
pub fn of_key(key: &str) -> (&'static str, Better) {
    const UNITS: [(&str, &str, Better); 19] = [
        ("_kib_per_s", "KiB/s", Better::Higher),
        ("_bits_per_s", "bits/s", Better::Higher),
        ("_bytes_per_s", "bytes/s", Better::Higher),
        ("_mib_per_s", "MiB/s", Better::Higher),
        ("_mb_per_s", "MB/s", Better::Higher),
        ("_gb_per_s", "GB/s", Better::Higher),
        ("_blocks_per_s", "blocks/s", Better::Higher),
        ("_per_min", "1/min", Better::Higher),
        ("_per_s", "1/s", Better::Higher),
        ("_mhz", "MHz", Better::Higher),
        ("_us", "us", Better::Lower),
        ("_ms", "ms", Better::Lower),
        ("_ns", "ns", Better::Lower),
        ("_s", "s", Better::Neither),
        ("_pct", "%", Better::Neither),
        ("_bytes", "bytes", Better::Neither),
        ("_blocks", "blocks", Better::Neither),
        ("_count", "count", Better::Neither),
        ("_ratio", "ratio", Better::Neither),
    ];
    let stem = stem(key);
    let found = UNITS.iter().find(|(ending, ..)| stem.ends_with(ending) || *stem == ending[1..]);
    found.map_or(("", Better::Neither), |(_, unit, better)| (unit, *better))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_its_unit_and_which_way_is_better() {
        assert_eq!(of_key("tcp_throughput_bits_per_s_mean"), ("bits/s", Better::Higher));
        assert_eq!(of_key("read_bw_kib_per_s_min"), ("KiB/s", Better::Higher));
        assert_eq!(of_key("rtt_us_mdev"), ("us", Better::Lower));
        assert_eq!(of_key("loss_pct"), ("%", Better::Neither));
        assert_eq!(of_key("nonsense"), ("", Better::Neither));
    }

    #[test]
    fn a_rate_with_steps_has_an_interval_that_half_its_spread_makes_half_as_wide() {
        let rate = Metric {
            series: Some("x".to_owned()),
            ..plain(Group::Primary, "x_per_s", "x", "1/s", Better::Higher, Figure::Count(100))
        };
        let series = |spread: f64, steps: usize| Series {
            in_window: vec![true; steps],
            t_s: (0..steps).map(|at| at as f64).collect(),
            metrics: [(
                "x".to_owned(),
                (0..steps).map(|at| Figure::decimal(100.0 + spread * ((at / 3) % 2) as f64)).collect(),
            )]
            .into(),
            ..Series::default()
        };
        let half = |spread, steps| {
            let all = ordered(vec![rate.clone()], &series(spread, steps));
            all[0].interval.map(|(low, high)| (high - low) / 2.0)
        };
        let wide = half(20.0, 30).unwrap();
        assert!((half(10.0, 30).unwrap() - wide / 2.0).abs() < 1e-9);
        // Ten means, five of 100 and five of 120: t(9) * sqrt(1000/9) / sqrt(10).
        assert!((wide - 2.262 * (1000.0_f64 / 90.0).sqrt()).abs() < 1e-2, "{wide}");
        assert_eq!(half(10.0, 19), None, "too few steps");
    }

    #[test]
    fn what_stands_twice_stays_once_and_primary_ones_come_first() {
        let metric = |group, value| plain(group, "a_per_s", "a", "1/s", Better::Higher, Figure::Count(value));
        let all = ordered(vec![metric(Group::Statistic, 2), metric(Group::Primary, 1)], &Series::default());
        assert_eq!(all, [metric(Group::Primary, 1)]);
    }
}
