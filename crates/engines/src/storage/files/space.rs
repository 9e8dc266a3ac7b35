//! Free space: what is needed, what must stay for others.

use super::{bytes_text, cannot};
use assay_run::engine::EngineError;
use std::path::{Path, PathBuf};

/// Most that has to stay free, bytes.
const MOST_RESERVE: u64 = 1 << 30;

/// One file system that files are made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Space {
    /// A directory in it.
    pub(super) directory: PathBuf,
    /// Bytes to be allocated there.
    pub(super) needed: u64,
    /// Bytes that may still be allocated.
    pub(super) free: u64,
    /// Bytes that must stay free: 5 % of the file system or 1 GiB, whichever is less.
    pub(super) reserve: u64,
    /// The file system's identity.
    device: u64,
}

/// Adds `needed` bytes below an existing directory.
///
/// # Errors
/// The file system cannot be asked.
pub(super) fn add(
    spaces: &mut Vec<Space>,
    directory: &Path,
    needed: u64,
) -> Result<(), EngineError> {
    let failed = |error| cannot("find the free space of", directory, error);
    let device = rustix::fs::stat(directory).map_err(failed)?.st_dev;
    if let Some(space) = spaces.iter_mut().find(|space| space.device == device) {
        space.needed = space.needed.saturating_add(needed);
        return Ok(());
    }
    let found = rustix::fs::statvfs(directory).map_err(failed)?;
    let total = found.f_blocks.saturating_mul(found.f_frsize);
    spaces.push(Space {
        directory: directory.to_path_buf(),
        needed,
        free: found.f_bavail.saturating_mul(found.f_frsize),
        reserve: (total / 20).min(MOST_RESERVE),
        device,
    });
    Ok(())
}

impl Space {
    /// Why it does not fit.
    pub(super) fn refusal(&self) -> Option<EngineError> {
        if self.free >= self.needed.saturating_add(self.reserve) {
            return None;
        }
        Some(EngineError::Unusable(format!(
            "{}: {} are needed for the files of the jobs and {} must stay free for others, {} are free; make room or choose a smaller size=",
            self.directory.display(),
            bytes_text(self.needed),
            bytes_text(self.reserve),
            bytes_text(self.free),
        )))
    }
}
