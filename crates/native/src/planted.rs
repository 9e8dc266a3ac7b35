//! Bugs planted on purpose, to see that the fault harness finds them.
//!
//! Each is one place in the engine or in recovery that asks `planted`. Without the feature `faults` the answer is a constant
//! `false`, and nothing of it is left in the program.

/// A mistake a storage engine could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A log write does not wait for stable storage.
    LogWriteNotDurable,
    /// A commit is acknowledged before its redo is written.
    CommitBeforeWrite,
    /// A block is written before the redo that describes it.
    DataBeforeRedo,
    /// A frame is written whose redo is still private to its transaction.
    PendingFrameWritten,
    /// The checkpoint is recorded before the data files are synchronised.
    CheckpointBeforeSync,
    /// The data files are not synchronised at all.
    DataSyncSkipped,
    /// The checkpoint position ignores blocks that are still dirty.
    CheckpointTooFar,
    /// A log file is opened without its header.
    LogHeaderNotWritten,
    /// A control record overwrites the one in force.
    ControlSlotInPlace,
    /// A failed synchronisation is taken for a good one.
    SyncErrorIgnored,
    /// The checksum of blocks is not looked at when they are read.
    BlockChecksumUnchecked,
    /// The checksum of log blocks is not looked at.
    LogChecksumUnchecked,
    /// Recovery does not take back what had not committed.
    LoserNotRolledBack,
    /// Recovery leaves out the last record of the log.
    RecoveryStopsEarly,
}

/// All of them.
#[cfg(feature = "faults")]
pub const PLANTED: [Planted; 14] = [
    Planted::LogWriteNotDurable,
    Planted::CommitBeforeWrite,
    Planted::DataBeforeRedo,
    Planted::PendingFrameWritten,
    Planted::CheckpointBeforeSync,
    Planted::DataSyncSkipped,
    Planted::CheckpointTooFar,
    Planted::LogHeaderNotWritten,
    Planted::ControlSlotInPlace,
    Planted::SyncErrorIgnored,
    Planted::BlockChecksumUnchecked,
    Planted::LogChecksumUnchecked,
    Planted::LoserNotRolledBack,
    Planted::RecoveryStopsEarly,
];

#[cfg(feature = "faults")]
thread_local! {
    static NOW: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug on this thread, or none.
#[cfg(feature = "faults")]
pub fn plant(bug: Option<Planted>) {
    NOW.with(|now| now.set(bug));
}

/// Whether this bug is planted.
#[cfg(feature = "faults")]
pub(super) fn planted(bug: Planted) -> bool {
    NOW.with(std::cell::Cell::get) == Some(bug)
}

/// Whether no bug is planted. An invariant that a planted bug breaks is asserted only then: the harness is to find the bug
/// by what it does to the data set.
#[cfg(feature = "faults")]
pub(super) fn flawless() -> bool {
    NOW.with(std::cell::Cell::get).is_none()
}

/// Whether no bug is planted: always so.
#[cfg(not(feature = "faults"))]
pub(super) const fn flawless() -> bool {
    true
}

/// Whether this bug is planted: never.
#[cfg(not(feature = "faults"))]
pub(super) const fn planted(_: Planted) -> bool {
    false
}
