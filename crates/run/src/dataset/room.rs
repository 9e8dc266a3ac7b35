//! Free space: how much there is, how much must stay free.

use crate::dataset::lines::mebibytes;
use crate::engine::EngineError;
use std::io::ErrorKind;
use std::path::Path;

/// Bytes that stay free at most; on small file systems a twentieth of them.
const KEEP_BYTES: u64 = 1 << 30;

/// Room in the file system that holds a path, which need not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes an ordinary user may still allocate.
    pub free_bytes: u64,
    /// Bytes that must stay free.
    pub keep_bytes: u64,
}

impl Room {
    /// Asks the file system.
    ///
    /// # Errors
    /// I/O errors.
    pub fn of(path: &Path) -> Result<Self, EngineError> {
        let mut at = if path.is_absolute() { path.to_path_buf() } else { Path::new(".").join(path) };
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
                    if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) || !at.pop() {
                        return Err(EngineError::Io {
                            what: format!("reading the free space of {}", path.display()),
                            source: e,
                        });
                    }
                }
            }
        }
    }

    /// Whether `needed_bytes` more fit; `paths` are those in this file system and `ways_out` the remedies, for the
    /// message.
    ///
    /// # Errors
    /// `Unusable` naming needed, free and reserved bytes and the remedy.
    pub fn fits(&self, paths: &str, needed_bytes: u64, ways_out: &str) -> Result<(), EngineError> {
        if needed_bytes.saturating_add(self.keep_bytes) <= self.free_bytes {
            return Ok(());
        }
        Err(EngineError::Unusable(format!(
            "{paths} needs {} and {} must stay free for other uses, but only {} are free: {ways_out}",
            mebibytes(needed_bytes),
            mebibytes(self.keep_bytes),
            mebibytes(self.free_bytes)
        )))
    }
}
