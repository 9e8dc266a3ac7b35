//! Rates of the load profile against the totals of statistics, as one identity of all rows.

use super::{MIB, Printed, Side, Tally};
use assay_measure::counter_catalog::{
    DB_BLOCK_CHANGES, EXECUTE_COUNT, LOGONS, PHYSICAL_READ_BYTES, PHYSICAL_READ_REQUESTS, PHYSICAL_READS,
    PHYSICAL_WRITE_BYTES, PHYSICAL_WRITE_REQUESTS, PHYSICAL_WRITES, REDO_SIZE, SESSION_LOGICAL_READS, Stat, USER_CALLS,
    USER_ROLLBACKS,
};
use assay_measure::record::Identity;

/// Rows of the load profile, the statistic that counts the same, and how many of it are one of the row.
const ROWS: [(&str, Stat, f64); 13] = [
    ("Redo size (bytes)", REDO_SIZE, 1.0),
    ("Logical read (blocks)", SESSION_LOGICAL_READS, 1.0),
    ("Block changes", DB_BLOCK_CHANGES, 1.0),
    ("Physical read (blocks)", PHYSICAL_READS, 1.0),
    ("Physical write (blocks)", PHYSICAL_WRITES, 1.0),
    ("Read IO requests", PHYSICAL_READ_REQUESTS, 1.0),
    ("Write IO requests", PHYSICAL_WRITE_REQUESTS, 1.0),
    ("Read IO (MB)", PHYSICAL_READ_BYTES, MIB),
    ("Write IO (MB)", PHYSICAL_WRITE_BYTES, MIB),
    ("User calls", USER_CALLS, 1.0),
    ("Executes (SQL)", EXECUTE_COUNT, 1.0),
    ("Logons", LOGONS, 1.0),
    ("Rollbacks", USER_ROLLBACKS, 1.0),
];

/// What a printed rate per second comes to over the window.
fn over_window(p: &Printed<'_>, name: &str) -> Option<Side> {
    let rate = p.printed_load(name)?.twice_rounded();
    let elapsed = p.elapsed()?;
    Some(rate.by(Side { off: elapsed.off + 0.01, ..elapsed }))
}

/// AWR8.
pub(super) fn totals(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let mut tally = Tally::default();
    for (name, stat, unit) in ROWS {
        let total = p.total(stat).map(|total| total.times(1.0 / unit));
        if let Some((product, total)) = over_window(p, name).zip(total) {
            let off = product.off + total.off;
            tally.count(name, (product.value - total.value).abs() <= off);
        }
    }
    let text = "load profile per second x elapsed time = total of the statistic, of every row";
    tally.judge(all, "AWR8", text);
}
