//! What went to which path of the target.

use super::Figure;
use crate::figures::figures;

/// One row of "I/O by Path", window deltas.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathRow {
    /// Directory or block device.
    pub path: String,
    /// `Data File`, `Undo File`, `Log File`, `Control File`.
    pub file_type: String,
    /// Read requests completed; layer `syscall`.
    pub read_requests_count: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Write requests completed; layer `syscall`.
    pub write_requests_count: u64,
    /// Bytes of them.
    pub write_bytes: u64,
    /// Kernel name of the disk below the path; empty if unknown.
    pub device: String,
    /// Reads that this disk completed for all processes (layer `device`): the same in every row of the disk.
    pub device_reads_count: Figure,
    /// Bytes of them.
    pub device_read_bytes: Figure,
    /// Writes that this disk completed for all processes.
    pub device_writes_count: Figure,
    /// Bytes of them.
    pub device_write_bytes: Figure,
}
