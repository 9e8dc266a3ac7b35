//! The readings of a run as differences: what every derived figure and every identity starts from.

mod host;
mod rises;
mod sampled;
mod span;
mod words;

pub(crate) use host::{busy_pct, cpu_delta_ns, cpu_total_ns, disk_deltas};
pub(crate) use rises::Rises;
pub(crate) use sampled::{Sampled, sampled, sampled_of};
pub(crate) use span::{
    Deltas, NO_OPS, NO_SOURCE, NO_TX, NO_WINDOW, Span, UNSUPPORTED, counter, delta, micros, seconds,
};
pub(crate) use words::{CPU, CPU_COLUMNS, RUN_QUEUE, actor_name, class_name};

use assay_measure::facts;
use assay_measure::record::{Figure, Record};
use assay_measure::statistics::{mean, stddev};

/// Standard deviation over mean (of the sample, n - 1).
pub(crate) fn variation(values: &[f64]) -> Figure {
    if values.len() < 2 {
        return Figure::na("fewer than two values");
    }
    Figure::decimal(stddev(values)).per(mean(values), "nothing moved")
}

/// What makes the reads of the record's engine reach the devices.
pub(crate) fn device_reads(record: &Record) -> String {
    let more = "data several times larger than this host's memory";
    match facts::DEVICE_READS.find(&record.plan.engine_facts) {
        Some(way) => format!("{way}, or {more}"),
        None => more.to_owned(),
    }
}

/// What sizes the cache of the record's server; records from before its fact are of one server alone.
pub(crate) fn cache_parameter(record: &Record) -> &str {
    let named = facts::CACHE_PARAMETER.find(&record.plan.engine_facts);
    named.unwrap_or("shared_buffers")
}
