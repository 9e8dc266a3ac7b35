//! Checks that keep a run from writing over what is not its own.
//!
//! They look at the thing itself, by device number, not at how it is spelled: a symbolic link or a whole disk
//! with a mounted partition is found out. Errors say what was found and the way out. What is a data set of
//! one's own (markers, control files) is decided elsewhere.

use crate::BlockError;
use std::path::Path;

/// Bytes that an unprivileged user may still allocate in the file system holding `path` (`statvfs`:
/// available blocks times fragment size). `path` need not exist: its nearest existing ancestor counts.
///
/// # Errors
/// [`BlockError::Io`].
pub fn free_bytes(path: &Path) -> Result<u64, BlockError> {
    let existing = nearest_existing(path);
    let stat = rustix::fs::statvfs(existing)
        .map_err(|error| BlockError::io(existing, "find the free space of", error))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Whether a directory holds no entry at all. A missing one is an error ("No such file or directory").
///
/// # Errors
/// [`BlockError::Io`].
pub fn is_dir_empty(path: &Path) -> Result<bool, BlockError> {
    let mut entries =
        std::fs::read_dir(path).map_err(|error| BlockError::io(path, "list", error))?;
    match entries.next() {
        None => Ok(true),
        Some(Ok(_)) => Ok(false),
        Some(Err(error)) => Err(BlockError::io(path, "list", error)),
    }
}

/// The path itself or its nearest ancestor that exists; the current directory where none of them does.
pub(crate) fn nearest_existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|candidate| !candidate.as_os_str().is_empty() && candidate.exists())
        .unwrap_or_else(|| Path::new(if path.is_absolute() { "/" } else { "." }))
}
