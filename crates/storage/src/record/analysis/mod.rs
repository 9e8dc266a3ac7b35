//! The course of a group's per-second series: levels, drift, periodic stalls, variation.
//!
//! Pure arithmetic over seconds; `advice` interprets the results.

mod change;
mod noise;
mod period;

#[cfg(test)]
mod tests;

use crate::record::info::{StorageChange, StorageLevel};
use assay_measure::record::Figure;
use assay_measure::statistics::{mean, stddev};
pub(super) use change::LEAST_CHANGE;
use change::LEAST_SECONDS;
use noise::median;
use period::Period;

/// One whole second of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Second {
    /// End of the second since the group's first measured time, s.
    pub(super) end_s: f64,
    /// The analysed value: I/Os per second, or response latency in us.
    pub(super) value: f64,
    /// Bytes per second.
    pub(super) bytes_per_s: f64,
    /// Bytes read from the start of the group to the end of this second.
    pub(super) read_bytes: u64,
    /// Bytes written from the start of the group to the end of this second.
    pub(super) written_bytes: u64,
}

/// The result of the analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Analysis {
    /// Changes of level.
    pub(super) changes: Vec<StorageChange>,
    /// Levels between them.
    pub(super) levels: Vec<StorageLevel>,
    /// Rise of the line relative to the mean, if the series drifts.
    pub(super) drift: Option<f64>,
    /// Periodic dips.
    pub(super) period: Option<Period>,
}

/// Analyses the whole seconds of a group.
///
/// # Errors
/// The reason why the series cannot be analysed.
pub(super) fn analyse(seconds: &[Second]) -> Result<Analysis, String> {
    if seconds.len() < LEAST_SECONDS {
        return Err(format!("{} whole seconds, {LEAST_SECONDS} are needed", seconds.len()));
    }
    let values: Vec<f64> = seconds.iter().map(|second| second.value).collect();
    if median(&values) <= 0.0 {
        return Err("most seconds have no I/O".to_owned());
    }
    let shape = change::shape(&values);
    let mut levels = Vec::new();
    let mut level_of = Vec::with_capacity(values.len());
    let mut from = 0;
    for to in shape.splits.iter().map(|s| s.at).chain([values.len()]) {
        let level = level(seconds, from, to);
        level_of.extend(vec![median(&values[from..to]); to - from]);
        levels.push(level);
        from = to;
    }
    let changes = (shape.splits.iter().zip(levels.windows(2)))
        .map(|(split, pair)| {
            let last = seconds[split.at - 1];
            let before = pair[0].median.value().unwrap_or(0.0);
            StorageChange {
                at_s: last.end_s.into(),
                ratio: pair[1].median.per(before, "there was no I/O before"),
                chance_ratio: split.chance.into(),
                read_bytes: last.read_bytes,
                written_bytes: last.written_bytes,
            }
        })
        .collect();
    Ok(Analysis { changes, levels, drift: shape.drift, period: period::period(&values, &level_of) })
}

fn level(seconds: &[Second], from: usize, to: usize) -> StorageLevel {
    let part = &seconds[from..to];
    let values: Vec<f64> = part.iter().map(|second| second.value).collect();
    let bytes: Vec<f64> = part.iter().map(|second| second.bytes_per_s).collect();
    let begin = match from {
        0 => 0.0,
        from => seconds[from - 1].end_s,
    };
    StorageLevel {
        from_s: begin.into(),
        to_s: part.last().map_or(begin, |second| second.end_s).into(),
        median: median(&values).into(),
        mib_per_s: (median(&bytes) / 1_048_576.0).into(),
        variation_ratio: variation(&values),
    }
}

/// Standard deviation divided by the mean.
pub(super) fn variation(values: &[f64]) -> Figure {
    let mean = mean(values);
    if values.len() < 2 || mean <= 0.0 {
        return Figure::na("fewer than two seconds with I/O");
    }
    Figure::decimal(stddev(values) / mean)
}
