//! What the harness costs by itself: the null engine's time per operation, as printed in every record.

use super::assay::{DataSet, settings};
use super::table::{figure, median};
use super::{Options, warn};
use anyhow::Result;

/// The floor of a short run on a small data set.
pub(crate) fn run(options: &Options) -> Result<()> {
    let small = [("SCALE", "16M"), ("REDO_LOG_MB", "8"), ("UNDO_MB", "16")];
    let (set, _) = DataSet::prepare(options, "floor", 1, &settings(&small))?;
    let (mut floor, mut clock) = (Vec::new(), Vec::new());
    for _ in 0..options.pairs {
        let (record, _) = set.run(1, &settings(&[("UPDATE_PCT", "0")]), 0, 3)?;
        warn(&record);
        floor.push(record.number(&["driver", "floor_ns_per_op"]));
        clock.push(record.number(&["driver", "clock_read_ns"]));
    }
    println!("null engine        {:>10} ns per operation", figure(median(&floor)));
    println!("one clock reading  {:>10} ns", figure(median(&clock)));
    Ok(())
}
