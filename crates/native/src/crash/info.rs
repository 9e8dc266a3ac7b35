//! Recovery as a figure in a record.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};

/// What `assay recovery` measured: kills of a data set under load and the recoveries.
#[figures]
pub struct RecoveryInfo {
    /// Sessions that updated, each in its own schema.
    pub sessions_count: u64,
    /// COMMIT_MODE: with `none` acknowledged commits may be lost.
    pub commit_mode: String,
    /// Bytes of one log block, which LOG_CHECKPOINT_INTERVAL counts in.
    pub log_block_bytes: u64,
    /// One kill each, by checkpoint distance.
    pub steps: Vec<RecoveryStep>,
    /// Wanted time from open to the first commit, s.
    pub rto_wanted_s: Figure,
    /// Part of that time that does not depend on the log, s (least squares over the steps).
    pub fixed_s: Figure,
    /// What each MiB of log adds to it, s.
    pub per_mib_s: Figure,
    /// Checkpoint distance that keeps the wanted time.
    pub recommended_distance_bytes: Figure,
    /// That distance as LOG_CHECKPOINT_INTERVAL.
    pub recommended_interval_blocks: Figure,
    /// The recommendation is beyond the measured range: a projection, untested.
    pub is_projection: bool,
}

/// One kill and its recovery.
#[figures]
pub struct RecoveryStep {
    /// Requested checkpoint distance, bytes of log.
    pub distance_bytes: u64,
    /// Load before the kill, s.
    pub load_s: Figure,
    /// Commits per second before the kill, its first second left out.
    pub old_commits_per_s: Figure,
    /// Redo since the checkpoint as it was last seen before the kill.
    pub age_at_kill_bytes: Figure,
    /// Redo replayed.
    pub replayed_bytes: Figure,
    /// Redo replayed per second of replay, 10^6 bytes.
    pub replay_mb_per_s: Figure,
    /// Data and undo blocks read.
    pub blocks_read_count: Figure,
    /// Data and undo blocks written.
    pub blocks_written_count: Figure,
    /// Transactions rolled back.
    pub rolled_back_count: Figure,
    /// Time of the recovery itself, s.
    pub recovery_s: Figure,
    /// From the open to an instance that takes sessions, recovery included, s.
    pub open_s: Figure,
    /// From the open to the first commit, s.
    pub first_commit_s: Figure,
    /// From the open to the end of the first second with 95 % of the old rate, s.
    pub rate_95_s: Figure,
    /// Commits acknowledged before the kill.
    pub acknowledged_count: u64,
    /// Acknowledged commits that are not there: 0, but for COMMIT_MODE none.
    pub lost_count: u64,
    /// Partly present operations: must be 0.
    pub half_there_count: u64,
    /// Unacknowledged operations that are completely present: this is allowed.
    pub unacknowledged_there_count: u64,
    /// Rows compared with the acknowledged updates.
    pub rows_compared_count: u64,
}

impl Part for RecoveryInfo {
    const NAME: &str = "recovery";
}
