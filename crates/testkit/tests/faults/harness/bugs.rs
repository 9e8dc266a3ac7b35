//! Bugs planted on purpose, to see that the harness finds them: what an engine with the bug does is done on the way to the disk, or
//! the engine drops the rule that forbids it.

use super::base::{BLOCK_BYTES, Base};
use assay_native::block_format;
use assay_native::control::SLOT_BYTES;
use assay_native::crash_rules::{CrashRule, CrashRules};
use assay_testkit::sim::{Mistake, SimDisk, SimImage, Synced};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A mistake a storage engine could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
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
    /// Recovery leaves out the last block of the log.
    RecoveryStopsEarly,
}

/// All of them.
pub(crate) const BUGS: [Bug; 14] = [
    Bug::LogWriteNotDurable,
    Bug::CommitBeforeWrite,
    Bug::DataBeforeRedo,
    Bug::PendingFrameWritten,
    Bug::CheckpointBeforeSync,
    Bug::DataSyncSkipped,
    Bug::CheckpointTooFar,
    Bug::LogHeaderNotWritten,
    Bug::ControlSlotInPlace,
    Bug::SyncErrorIgnored,
    Bug::BlockChecksumUnchecked,
    Bug::LogChecksumUnchecked,
    Bug::LoserNotRolledBack,
    Bug::RecoveryStopsEarly,
];

impl Bug {
    /// The rules that an engine with this bug keeps.
    pub(super) fn rules(bug: Option<Self>) -> CrashRules {
        match bug {
            Some(Self::DataBeforeRedo) => CrashRules::without(CrashRule::RedoFirst),
            Some(Self::PendingFrameWritten) => CrashRules::without(CrashRule::PrivateRedoStays),
            Some(Self::CheckpointTooFar) => CrashRules::without(CrashRule::CheckpointBehindDirty),
            Some(Self::LoserNotRolledBack) => CrashRules::without(CrashRule::LosersTakenBack),
            _ => CrashRules::default(),
        }
    }

    /// Before the engine runs on the disk.
    pub(super) fn running(bug: Option<Self>, disk: &SimDisk) {
        disk.mistake(bug.map(|bug| OnTheWay::mistake(bug, Log::default())));
    }

    /// Before it is recovered. How it is synchronised is right then: those bugs are the writer's.
    pub(super) fn recovering(bug: Option<Self>, disk: &SimDisk, base: &Base) {
        disk.mistake(bug.and_then(|bug| match bug {
            Self::CheckpointBeforeSync | Self::DataSyncSkipped | Self::SyncErrorIgnored => None,
            bug @ (Self::LogChecksumUnchecked | Self::RecoveryStopsEarly) => {
                Some(OnTheWay::mistake(bug, Log::of(base, &disk.image())))
            }
            bug => Some(OnTheWay::mistake(bug, Log::default())),
        }));
    }
}

/// The log as it lies on a disk at rest.
#[derive(Debug, Default)]
struct Log {
    block_bytes: usize,
    /// The files, each with what the checksums of its blocks begin with.
    files: Vec<(PathBuf, u32)>,
    /// The last block: its file and place.
    last: Option<(PathBuf, u64)>,
}

impl Log {
    fn of(base: &Base, image: &SimImage) -> Self {
        let mut log = Self { block_bytes: base.control.log_block_bytes as usize, ..Self::default() };
        let mut last_lsn = 0;
        for (path, _) in image.files().filter(|(path, _)| is(path, "redo")) {
            let bytes = image.content(path).unwrap_or_default();
            let data_set = base.control.data_set.to_le_bytes();
            let seed = crc32c::crc32c(&[&data_set, &bytes[16..24]].concat());
            for (number, block) in bytes.chunks_exact(log.block_bytes).enumerate().skip(1) {
                let lsn = u64::from_le_bytes(block[8..16].try_into().expect("eight bytes"));
                if lsn > last_lsn && block[..4] == crc_of(seed, block) {
                    last_lsn = lsn;
                    log.last = Some((path.to_path_buf(), (number * log.block_bytes) as u64));
                }
            }
            log.files.push((path.to_path_buf(), seed));
        }
        log
    }

    /// Gives each block that was read the checksum that is looked for.
    fn put_right(&self, path: &Path, offset: u64, bytes: &mut [u8]) {
        let Some((_, seed)) = self.files.iter().find(|(file, _)| file == path) else { return };
        for block in bytes.chunks_exact_mut(self.block_bytes).skip(usize::from(offset == 0)) {
            let crc = crc_of(*seed, block);
            block[..4].copy_from_slice(&crc);
        }
    }

    /// Leaves the last block out of what was read.
    fn cut_short(&self, path: &Path, offset: u64, bytes: &mut [u8]) {
        let last = self.last.as_ref().filter(|(file, _)| file == path);
        let at = last.and_then(|(_, at)| at.checked_sub(offset));
        if let Some(block) = at.and_then(|at| bytes.get_mut(at as usize..)?.get_mut(..self.block_bytes)) {
            block.fill(0);
        }
    }
}

/// The checksum of a log block, as `docs/design/native-engine.md` has it.
fn crc_of(seed: u32, block: &[u8]) -> [u8; 4] {
    crc32c::crc32c_append(seed, &block[4..]).to_le_bytes()
}

/// A bug that is seen on the way to the disk.
#[derive(Debug)]
struct OnTheWay {
    bug: Bug,
    log: Log,
}

fn is(path: &Path, prefix: &str) -> bool {
    path.file_name().unwrap_or_default().to_string_lossy().starts_with(prefix)
}

fn has_blocks(path: &Path) -> bool {
    is(path, "data") || is(path, "undo")
}

impl OnTheWay {
    fn mistake(bug: Bug, log: Log) -> Arc<dyn Mistake> {
        Arc::new(Self { bug, log })
    }
}

impl Mistake for OnTheWay {
    fn write(&self, path: &Path, offset: u64, durable: bool) -> Option<(u64, bool)> {
        match self.bug {
            Bug::LogWriteNotDurable if is(path, "redo") => Some((offset, false)),
            Bug::LogHeaderNotWritten if is(path, "redo") && offset == 0 => None,
            Bug::ControlSlotInPlace if is(path, "control") => Some((SLOT_BYTES as u64, durable)),
            _ => Some((offset, durable)),
        }
    }

    fn sync(&self, path: &Path) -> Synced {
        match self.bug {
            Bug::CheckpointBeforeSync if has_blocks(path) => Synced::Late,
            Bug::DataSyncSkipped if has_blocks(path) => Synced::LeftOut,
            Bug::SyncErrorIgnored if has_blocks(path) => Synced::Unheard,
            _ => Synced::AsAsked,
        }
    }

    fn read(&self, path: &Path, offset: u64, bytes: &mut [u8]) {
        match self.bug {
            Bug::BlockChecksumUnchecked if has_blocks(path) => {
                let blocks = bytes.chunks_exact_mut(BLOCK_BYTES as usize);
                blocks.filter(|block| !block_format::verify_crc(block)).for_each(block_format::seal);
            }
            Bug::LogChecksumUnchecked => self.log.put_right(path, offset, bytes),
            Bug::RecoveryStopsEarly => self.log.cut_short(path, offset, bytes),
            _ => {}
        }
    }
}
