//! Resolves a path: which part of it exists, and how much space there is.

use crate::BlockError;
use std::path::Path;

/// Bytes that an unprivileged user may still allocate in the file system holding `path` (`statvfs`:
/// available blocks times fragment size). `path` need not exist: its nearest existing ancestor counts.
///
/// # Errors
/// [`BlockError::Io`].
pub fn free_bytes(path: &Path) -> Result<u64, BlockError> {
    let existing = nearest_existing(path);
    let stat =
        rustix::fs::statvfs(existing).map_err(|error| BlockError::io(existing, "find the free space of", error))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Whether a directory is empty. A missing one is an error ("No such file or directory").
///
/// # Errors
/// [`BlockError::Io`].
pub fn is_dir_empty(path: &Path) -> Result<bool, BlockError> {
    let mut entries = std::fs::read_dir(path).map_err(|error| BlockError::io(path, "list", error))?;
    match entries.next() {
        None => Ok(true),
        Some(Ok(_)) => Ok(false),
        Some(Err(error)) => Err(BlockError::io(path, "list", error)),
    }
}

/// The path itself or its nearest existing ancestor; the current directory if there is none.
pub(crate) fn nearest_existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|candidate| !candidate.as_os_str().is_empty() && candidate.exists())
        .unwrap_or_else(|| Path::new(if path.is_absolute() { "/" } else { "." }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::directory;

    #[test]
    fn free_space_is_that_of_the_nearest_existing_ancestor() {
        let place = directory();
        let space = rustix::fs::statvfs(place.path()).unwrap();
        let free = free_bytes(&place.path().join("a/b/c")).unwrap();
        let expected = space.f_bavail * space.f_frsize;
        // Other processes write meanwhile, so check only that the values are close.
        assert!(free.abs_diff(expected) < expected / 2 + (1 << 30), "{free} against {expected}");
        assert_eq!(nearest_existing(Path::new("/not/there")), Path::new("/"));
        assert_eq!(nearest_existing(Path::new("not/there")), Path::new("."));
    }

    #[test]
    fn a_directory_is_empty_or_not() {
        let place = directory();
        assert!(is_dir_empty(place.path()).unwrap());
        std::fs::write(place.path().join(".hidden"), "").unwrap();
        assert!(!is_dir_empty(place.path()).unwrap());
        assert!(is_dir_empty(&place.path().join("missing")).is_err());
    }
}
