//! What is in a directory before anything is done, and how much room there is.

use super::control::{
    CONTROL_NAME, CONTROL_TEMPORARY_NAME, Control, ControlFile, absent, io_error,
};
use assay_run::engine::EngineError;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes that stay free at most; on small file systems a twentieth of them.
const KEEP_BYTES: u64 = 1 << 30;

/// What a location holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No such directory.
    Absent,
    /// A directory with nothing in it.
    Empty,
    /// A data set of ours, whatever its state.
    Ours(Box<Control>),
    /// Something else: the first few names.
    Foreign(Vec<String>),
}

/// The directory a location names.
///
/// # Errors
/// `Usage` when it names none or several.
pub(super) fn directory(location: &str) -> Result<PathBuf, EngineError> {
    let path = location.strip_prefix("native:").unwrap_or(location);
    if path.is_empty() {
        return Err(EngineError::Usage(
            "the native target needs a directory: native:DIR".into(),
        ));
    }
    if path.contains(',') {
        return Err(EngineError::Usage(format!(
            "`{path}` names several directories; a data set lives in one directory for now: name one"
        )));
    }
    Ok(PathBuf::from(path))
}

/// Looks at a directory without touching it.
///
/// # Errors
/// `Unusable` when it is no directory, `Damaged` when its control file cannot be read; I/O errors.
pub(super) fn survey(dir: &Path) -> Result<Found, EngineError> {
    match fs::metadata(dir) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => {
            return Err(EngineError::Unusable(format!(
                "{} is not a directory; the native target needs one of its own",
                dir.display()
            )));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Absent),
        Err(e) => return Err(io_error("examining", dir, e)),
    }
    if let Some(control) = ControlFile::read(dir)? {
        return Ok(Found::Ours(Box::new(control)));
    }
    let mut foreign = names(dir)?;
    foreign.retain(|name| !is_harmless(dir, name));
    if foreign.is_empty() {
        return Ok(Found::Empty);
    }
    foreign.truncate(5);
    Ok(Found::Foreign(foreign))
}

/// All names in a directory, sorted.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, EngineError> {
    let failed = |e| io_error("listing", dir, e);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// A fresh file system's own directory, or the first step of a `prepare` that was killed.
fn is_harmless(dir: &Path, name: &str) -> bool {
    name == "lost+found" || (name == CONTROL_TEMPORARY_NAME && is_unborn_control(dir))
}

/// Whether the temporary control file is one of ours: it begins with a slot of zeroes or is shorter.
pub(super) fn is_unborn_control(dir: &Path) -> bool {
    let mut start = Vec::new();
    fs::File::open(dir.join(CONTROL_TEMPORARY_NAME))
        .and_then(|file| file.take(4096).read_to_end(&mut start))
        .is_ok()
        && start.iter().all(|byte| *byte == 0)
}

/// The refusal of a directory that holds something else.
pub(super) fn foreign_error(dir: &Path, names: &[String]) -> EngineError {
    EngineError::Unusable(format!(
        "{} is not empty and holds no data set of assay ({} and perhaps more, no {CONTROL_NAME}); name an empty or new directory",
        dir.display(),
        names.join(", ")
    ))
}

/// Room in the file system that holds a path, which need not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Bytes an ordinary user may still allocate.
    pub(super) free_bytes: u64,
    /// Bytes that must stay free.
    pub(super) keep_bytes: u64,
}

impl Room {
    /// Asks the file system.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn of(path: &Path) -> Result<Self, EngineError> {
        let mut at = if path.is_absolute() {
            path.to_path_buf()
        } else {
            Path::new(".").join(path)
        };
        loop {
            match rustix::fs::statvfs(&at) {
                Ok(stat) => {
                    let all = stat.f_blocks.saturating_mul(stat.f_frsize);
                    return Ok(Self {
                        free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
                        keep_bytes: (all / 20).min(KEEP_BYTES),
                    });
                }
                Err(e) => {
                    let e = std::io::Error::from(e);
                    if !absent(&e) || !at.pop() {
                        return Err(io_error("asking for the free space of", path, e));
                    }
                }
            }
        }
    }

    /// Whether `needed_bytes` more fit.
    ///
    /// # Errors
    /// `Unusable` naming needed, free and kept bytes and the way out.
    pub(super) fn fits(&self, path: &Path, needed_bytes: u64) -> Result<(), EngineError> {
        if needed_bytes.saturating_add(self.keep_bytes) <= self.free_bytes {
            return Ok(());
        }
        Err(EngineError::Unusable(format!(
            "{} needs {} and {} must stay free, but only {} are free: use fewer schemas, a smaller SCALE, smaller REDO_LOG_MB or UNDO_MB, or another file system",
            path.display(),
            mebibytes(needed_bytes),
            mebibytes(self.keep_bytes),
            mebibytes(self.free_bytes)
        )))
    }
}

/// A byte count for people.
pub(super) fn mebibytes(bytes: u64) -> String {
    let mib = bytes as f64 / 1_048_576.0;
    if mib < 100.0 {
        format!("{mib:.1} MiB")
    } else if mib < 10_240.0 {
        format!("{mib:.0} MiB")
    } else {
        format!("{:.1} GiB", mib / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    #[test]
    fn locations_name_one_directory() {
        assert_eq!(directory("native:/a/b").unwrap(), Path::new("/a/b"));
        assert_eq!(directory("./x").unwrap(), Path::new("./x"));
        assert!(matches!(directory("native:"), Err(EngineError::Usage(_))));
        assert!(matches!(directory("a,b"), Err(EngineError::Usage(_))));
    }

    #[test]
    fn what_is_there_is_told_apart() {
        let dir = tempdir().unwrap();
        let path = dir.path();
        assert_eq!(survey(&path.join("none")).unwrap(), Found::Absent);
        assert_eq!(survey(path).unwrap(), Found::Empty);
        fs::create_dir(path.join("lost+found")).unwrap();
        fs::write(path.join(CONTROL_TEMPORARY_NAME), [0; 100]).unwrap();
        assert_eq!(survey(path).unwrap(), Found::Empty);
        fs::write(path.join(CONTROL_TEMPORARY_NAME), "my notes").unwrap();
        assert!(matches!(survey(path).unwrap(), Found::Foreign(_)));
        fs::remove_file(path.join(CONTROL_TEMPORARY_NAME)).unwrap();
        fs::write(path.join("a.txt"), "x").unwrap();
        assert_eq!(survey(path).unwrap(), Found::Foreign(vec!["a.txt".into()]));
        let error = survey(&path.join("a.txt")).unwrap_err();
        assert!(error.to_string().contains("not a directory"));
        fs::write(path.join(CONTROL_NAME), "nonsense").unwrap();
        assert!(matches!(survey(path), Err(EngineError::Damaged(_))));
    }

    #[test]
    fn room_is_that_of_the_nearest_directory_there_is() {
        let dir = tempdir().unwrap();
        let here = Room::of(dir.path()).unwrap();
        let there = Room::of(&dir.path().join("a/b/c")).unwrap();
        assert_eq!(here.keep_bytes, there.keep_bytes);
        assert!(here.fits(dir.path(), 0).is_ok());
        let error = here.fits(dir.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("must stay free"), "{error}");
        assert!(Room::of(Path::new("relative/none")).is_ok());
    }
}
