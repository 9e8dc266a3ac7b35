//! Per-second figures and how steady they were.
//!
//! A [`SeriesBuilder`] takes one pair of snapshots after the other and keeps a row of figures of each, so that a day of
//! seconds needs no day of snapshots. The observer feeds it during a run, `recover` from the lines of a killed run, and
//! this module from the snapshots that a run keeps in memory.

mod builder;
mod columns;
mod heat;
mod steady;
mod step;

#[cfg(test)]
mod tests;

pub use builder::SeriesBuilder;
pub use steady::of as steadiness_of;
pub(crate) use steady::steadiness;

use crate::deltas::Deltas;
use assay_measure::record::Series;

/// The series of the snapshots that the run kept.
pub(super) fn series(deltas: &Deltas<'_>) -> Series {
    let data = deltas.data;
    let mut builder = SeriesBuilder::default();
    if let Some(activity) = &data.activity {
        builder.activity(activity.clone());
    }
    let mut last = &data.gate;
    for snapshot in &data.series {
        if snapshot.at_ns > last.at_ns {
            builder.push(last, snapshot);
            last = snapshot;
        }
    }
    builder.finish(data)
}
