//! Free space: what the files of the jobs need on each file system.

use super::cannot;
use assay_run::dataset::room::Room;
use assay_run::engine::EngineError;
use std::path::{Path, PathBuf};

/// One file system that will hold new files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Space {
    /// A directory in it.
    pub(super) directory: PathBuf,
    /// Bytes to allocate there.
    pub(super) needed: u64,
    /// Free space, and the amount that must stay free.
    pub(super) room: Room,
    /// The file system's identity.
    device: u64,
}

/// Adds `needed` bytes below an existing directory.
///
/// # Errors
/// If the file system does not answer.
pub(super) fn add(spaces: &mut Vec<Space>, directory: &Path, needed: u64) -> Result<(), EngineError> {
    let failed = |error| cannot("find the free space of", directory, error);
    let device = rustix::fs::stat(directory).map_err(failed)?.st_dev;
    if let Some(space) = spaces.iter_mut().find(|space| space.device == device) {
        space.needed = space.needed.saturating_add(needed);
        return Ok(());
    }
    spaces.push(Space { directory: directory.to_path_buf(), needed, room: Room::of(directory)?, device });
    Ok(())
}

impl Space {
    /// Why it does not fit.
    pub(super) fn refusal(&self) -> Option<EngineError> {
        let directory = self.directory.display().to_string();
        let ways_out = "make room or choose a smaller size=";
        self.room.fits(&directory, self.needed, ways_out).err()
    }
}
