//! I/O by function and file type, and the I/O profile.

use super::Figure;
use crate::figures::figures;

/// One row of "IOStat by function and file type", window deltas.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IoRow {
    /// `Buffer Cache Reads`, `Direct Reads`, `DBWR`, `Direct Writes`, `LGWR`, `Others`.
    pub function: String,
    /// `Data File`, `Undo File`, `Log File`, `Control File`.
    pub file_type: String,
    /// Read requests of any size.
    pub read_requests_count: Figure,
    /// Read requests below 128 KiB.
    pub small_read_requests_count: Figure,
    /// Read requests of 128 KiB and more.
    pub large_read_requests_count: Figure,
    /// Bytes read.
    pub read_bytes: Figure,
    /// Write requests of any size.
    pub write_requests_count: Figure,
    /// Write requests below 128 KiB.
    pub small_write_requests_count: Figure,
    /// Write requests of 128 KiB and more.
    pub large_write_requests_count: Figure,
    /// Bytes written.
    pub write_bytes: Figure,
    /// Requests that were waited for one by one.
    pub waits_count: Figure,
    /// Time of those waits, us.
    pub wait_us: Figure,
    /// How it was obtained: `sysstat`, `pg_stat_io`, ...
    pub source: String,
}

/// One row of "IO Profile", per second of the window.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IoProfileRow {
    /// The report's label without its colon, e.g. `Total Requests`.
    pub name: String,
    /// `count`, `mib` or `blocks`.
    pub unit: String,
    /// Both directions.
    pub read_write_per_s: Figure,
    /// Reads.
    pub read_per_s: Figure,
    /// Writes.
    pub write_per_s: Figure,
}
