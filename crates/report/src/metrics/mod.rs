//! The figures of a record as one list with stable keys: what comparison, cost, history, gates, one-page reports and
//! exports name a figure by.
//!
//! A key is lower case and ends in unit and statistic (`reads_per_s`, `op_us_p99`, `db_file_sequential_read_us_p99`). It
//! is the same for a run, an import and a probe, so that what means the same compares. Owns names, units and which
//! way is better; knows nothing of how figures are shown.

mod recovery;
mod rows;
mod sync;

pub(crate) use rows::of_key;

#[cfg(test)]
mod tests;

use assay_measure::record::{Figure, Record};
use std::collections::BTreeSet;

/// One figure of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Stable name, unit and statistic last.
    pub key: String,
    /// What it is of where a record has several of the kind (a job, a stream, a transaction); empty else.
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
    pub is_primary: bool,
    /// The figure: per second for a counter, else as it is.
    pub value: Figure,
    /// A counter's columns; none for a latency or a share.
    pub counter: Option<Counted>,
    /// Key of [`assay_measure::record::Series::metrics`] with the same figure by step.
    pub series: Option<String>,
    /// `client`, `engine`, `syscall`, `device`, `network`.
    pub layer: String,
}

/// The columns of a counter, window deltas.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// What another tool measured and no other group has.
    Imported,
    /// Efficiency percentages.
    Efficiency,
    /// CPU of the host.
    Host,
    /// Instance statistics.
    Statistic,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More work done.
    Higher,
    /// Less time, less cost.
    Lower,
    /// Neither: it describes.
    Neither,
}

/// Every metric of a record that has a figure or a reason for none, primary ones first, then in report order.
///
/// A primary metric stands once, under its short key; the row it is taken from keeps its own long key.
#[must_use]
pub fn of(record: &Record) -> Vec<Metric> {
    let mut all = rows::primary(record);
    all.extend(sync::sync(record));
    all.extend(recovery::recovery(record));
    all.extend(rows::load_profile(record));
    all.extend(rows::operations(record));
    all.extend(rows::events(record));
    all.extend(rows::io_profile(record));
    all.extend(rows::storage(record));
    all.extend(rows::imported(record));
    all.extend(rows::efficiency(record));
    all.extend(rows::host(record));
    all.extend(rows::statistics(record));
    // What a later part says under a name that stands already is the same figure.
    let mut names = BTreeSet::new();
    all.retain(|metric| names.insert(metric.full_key()));
    let by_step = &record.series.metrics;
    for metric in &mut all {
        metric.series.take_if(|name| !by_step.contains_key(name));
    }
    all
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
        format!("{}.{}", crate::record::slug(&self.scope), self.key)
    }
}
