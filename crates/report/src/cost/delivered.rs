//! What a run delivered, as far as it can be paid for: sustained rates, with what they were taken from.

use crate::metrics;
use assay_measure::record::{Figure, Record, StorageGroup};
use assay_measure::units::{fixed, thousands};
use serde::{Deserialize, Serialize};

const MIB: f64 = 1_048_576.0;
const MB: f64 = 1e6;
/// A last quarter below this share of the first is a fall that a month would not average away.
const FELL: f64 = 0.9;

/// Rates of the measured window; of a probe whose level fell, those of its last level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delivered {
    /// Read requests per second.
    pub reads_per_s: Figure,
    /// Write requests per second.
    pub writes_per_s: Figure,
    /// Both; the reads alone where nothing is known of writes.
    pub ios_per_s: Figure,
    /// Bytes both ways per second, 10^6.
    pub mb_per_s: Figure,
    /// Operations per second.
    pub ops_per_s: Figure,
    /// Transactions per second.
    pub transactions_per_s: Figure,
    /// Executions per second.
    pub executes_per_s: Figure,
    /// The window they hold for, s.
    pub window_s: Figure,
    /// What has to be said of them, in sentences.
    pub notes: Vec<String>,
}

impl Delivered {
    /// What a record delivered.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let mut found = match &record.storage {
            Some(info) if !info.groups.is_empty() => probe(&info.groups),
            _ => workload(record),
        };
        found.ios_per_s = match (found.reads_per_s.value(), found.writes_per_s.value()) {
            (Some(_), None) => found.reads_per_s.clone(),
            (None, Some(_)) => found.writes_per_s.clone(),
            _ => found.reads_per_s.plus(&found.writes_per_s),
        };
        found
    }
}

fn workload(record: &Record) -> Delivered {
    let metrics = metrics::of(record);
    let known = |key: &str| {
        let metric = metrics::find(&metrics, key);
        metric.map_or_else(Figure::default, |metric| metric.value.clone())
    };
    let some_mib = |key: &str| known(key).value().map(|mib| mib * MIB / MB);
    let mb = match (some_mib("read_io_mb_per_s"), some_mib("write_io_mb_per_s")) {
        (None, None) => known("read_io_mb_per_s"),
        (read, write) => Figure::decimal(read.unwrap_or(0.0) + write.unwrap_or(0.0)),
    };
    let mut notes = Vec::new();
    let trend = record.checks.steadiness.last_over_first_ratio.value();
    if let Some(trend) = trend.filter(|trend| *trend < FELL && *trend > 0.0) {
        notes.push(format!(
            "The rate fell over the window (last quarter {} % of the first): what lasts costs more per unit than stated here. Run longer before it is quoted.",
            fixed(100.0 * trend, 0)
        ));
    }
    Delivered {
        reads_per_s: known("reads_per_s"),
        writes_per_s: known("writes_per_s"),
        mb_per_s: mb,
        ops_per_s: known("ops_per_s"),
        transactions_per_s: known("transactions_per_s"),
        executes_per_s: known("executes_sql_per_s"),
        window_s: record.interval.elapsed_s.clone(),
        notes,
        ..Delivered::default()
    }
}

/// The best of a probe's groups, each at the level it ended at: a burst that was spent is not delivered.
fn probe(groups: &[StorageGroup]) -> Delivered {
    let mut notes = Vec::new();
    let factors: Vec<f64> = groups
        .iter()
        .map(|group| sustained(group, &mut notes, groups.len()))
        .collect();
    let best = |of: &dyn Fn(&StorageGroup) -> Option<f64>| {
        let rates = groups.iter().zip(&factors);
        rates
            .filter_map(|(group, factor)| Some((of(group)? * factor, group)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let way = |name: &'static str| {
        move |group: &StorageGroup| {
            let row = group.ways.iter().find(|row| row.way == name)?;
            row.ios_per_s.value()
        }
    };
    let bytes = |group: &StorageGroup| {
        let rates: Vec<f64> = group
            .ways
            .iter()
            .filter_map(|row| row.mb_per_s.value())
            .collect();
        (!rates.is_empty()).then(|| rates.iter().sum())
    };
    let (reads, writes, moved) = (best(&way("read")), best(&way("write")), best(&bytes));
    if groups.len() > 1 {
        let of = |what: &str, found: &Option<(f64, &StorageGroup)>| {
            let (_, group) = found.as_ref()?;
            Some(format!(
                "{what} of group {} ({})",
                group.group,
                group.jobs.join(", ")
            ))
        };
        let parts = [
            of("reads", &reads),
            of("writes", &writes),
            of("MB/s", &moved),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        notes.push(format!(
            "The best of {} groups: {}.",
            groups.len(),
            parts.join("; ")
        ));
    }
    let figure = |found: Option<(f64, &StorageGroup)>, none: &str| {
        found.map_or_else(|| Figure::na(none), |(rate, _)| Figure::decimal(rate))
    };
    let window = groups
        .iter()
        .filter_map(|group| group.ways.iter().find_map(|row| row.runtime_s.value()));
    let none = "a storage probe has none";
    Delivered {
        window_s: window
            .reduce(f64::min)
            .map_or_else(Figure::default, Figure::decimal),
        reads_per_s: figure(reads, "no reads"),
        writes_per_s: figure(writes, "no writes"),
        mb_per_s: figure(moved, "absent"),
        ops_per_s: Figure::na(none),
        transactions_per_s: Figure::na(none),
        executes_per_s: Figure::na(none),
        notes,
        ..Delivered::default()
    }
}

/// Share of a group's mean that its last level is, where it fell; 1 else.
fn sustained(group: &StorageGroup, notes: &mut Vec<String>, groups: usize) -> f64 {
    let mean: f64 = group
        .ways
        .iter()
        .filter_map(|row| row.ios_per_s.value())
        .sum();
    let last = group.levels.last().and_then(|level| level.median.value());
    let (Some(last), true) = (last, group.analysed == "IOPS" && !group.changes.is_empty()) else {
        return 1.0;
    };
    let factor = last / mean.max(f64::MIN_POSITIVE);
    if factor >= FELL {
        return 1.0;
    }
    let lead = match groups {
        1 => String::new(),
        _ => format!("Group {}: ", group.group),
    };
    notes.push(format!(
        "{lead}throughput fell during the probe: counted is its last level of {} I/Os per second, not the mean of {}, since a burst is not there all month.",
        thousands(last as u64),
        thousands(mean as u64)
    ));
    factor
}
