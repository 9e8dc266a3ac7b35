//! The server the sessions worked on.

use super::{Figure, PercentRow};
use crate::figures::figures;

/// What only a database server's run has.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerInfo {
    /// Its version as it reports it; empty if unknown.
    pub version: String,
    /// Name of the database the sessions worked in; empty if unknown.
    pub database: String,
    /// `client` or `server`: where the loop of operations ran; empty if unknown.
    pub loop_place: String,
    /// Schemas that had sessions.
    pub schemas_count: Figure,
    /// Sessions of each schema; n/a where they differ.
    pub threads_per_schema_count: Figure,
    /// Blocks the server asked the operating system for, per second of the window (RIOPS).
    pub reads_blocks_per_s: Figure,
    /// Blocks it found in its own cache, per second of the window (CACHE_HITS/s).
    pub cache_hits_blocks_per_s: Figure,
    /// Its counters at the start and at the end of the window, absolute: `BEFORE`, `AFTER`.
    pub rows: Vec<ServerRow>,
    /// Shares of the server's work for the workload, each 0..100: heap-only updates, hits by kind of block, ...
    pub shares: Vec<PercentRow>,
    /// By how much the two ends of a counter may be off, 0..100: sessions that publish late, and the snapshots' length.
    pub end_point_error_pct: Figure,
    /// The server's sessions publish on their own schedule, up to a second late, instead of at every mark.
    pub published_late: bool,
    /// CPU of the driver threads over all CPU time of this host, 0..100.
    pub driver_of_host_pct: Figure,
}

/// Counters of one instant, as the server keeps them since its own reset.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerRow {
    /// `BEFORE` or `AFTER` the window.
    pub when: String,
    /// Blocks found in its cache.
    pub hits_blocks: Figure,
    /// Blocks read from the operating system.
    pub reads_blocks: Figure,
    /// Rows its scans went through.
    pub tuples_returned_count: Figure,
    /// Rows fetched through indexes.
    pub tuples_fetched_count: Figure,
    /// Rows updated.
    pub tuples_updated_count: Figure,
}
