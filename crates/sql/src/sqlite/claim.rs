//! Decides which commands may work on a data set at the same time: a lock on a file beside it. The database itself
//! cannot be locked this way, since opening and closing it would release the locks that SQLite holds on it.

use super::file::{File, io};
use crate::claim::Purpose;
use assay_run::engine::EngineError;
use assay_run::lock::{Locked, holder, is_held};
use rustix::fs::OFlags;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for another holder: an assay started right after another must not be refused.
const WAIT: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(20);

/// Ends when dropped; the last holder removes the file of the lock.
#[derive(Debug)]
pub(crate) struct Claim {
    lock: Locked,
    path: PathBuf,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Ok(_last) = Locked::exclusive(&*self.lock)
            && inode_at(&self.path).is_ok_and(|there| there == inode_of(&self.lock))
        {
            // An empty file that stays does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Claims the data set; `None` if there is no database.
///
/// # Errors
/// `Unusable`: another assay has claimed it, or the file of the lock is somebody else's.
pub(super) fn take(at: &File, purpose: Purpose) -> Result<Option<Claim>, EngineError> {
    let path = at.beside("-assay");
    let begun = Instant::now();
    loop {
        if purpose != Purpose::Prepare && !at.exists() {
            return Ok(None);
        }
        inode_at(&path)?;
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let file = OpenOptions::new().read(true).append(true).create(true).custom_flags(flags).open(&path);
        let file = file.map_err(io("claiming", &path))?;
        match if purpose.shares() { Locked::shared(file) } else { Locked::exclusive(file) } {
            // A removal may have ended between the two calls.
            Ok(lock) if inode_of(&lock) == inode_at(&path)? => {
                let claim = Claim { lock, path };
                return Ok((purpose == Purpose::Prepare || at.exists()).then_some(claim));
            }
            Ok(_) => {}
            Err(error) if !is_held(&error) => return Err(io("claiming", &path)(error)),
            Err(_) if begun.elapsed() >= WAIT => return Err(in_use(at, &path)),
            Err(_) => std::thread::sleep(TICK),
        }
    }
}

fn inode_of(file: &fs::File) -> u64 {
    file.metadata().map_or(0, |of| of.ino())
}

/// The file of a lock; 0 if there is none. One that is not an empty regular file is not assay's.
fn inode_at(path: &Path) -> Result<u64, EngineError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.len() == 0 => Ok(found.ino()),
        Ok(_) => Err(EngineError::Unusable(format!(
            "assay locks an empty file {} while it works, but what is there is not assay's: it is no empty regular file; \
             nothing was touched. Move it, or name another database file",
            path.display()
        ))),
        Err(_) => Ok(0),
    }
}

/// The error for a data set that is in use.
fn in_use(at: &File, path: &Path) -> EngineError {
    let who = holder(path).map_or_else(String::new, |who| format!(" ({who})"));
    EngineError::Unusable(format!(
        "the data set in {} is in use by another assay process{who}; wait until it ends",
        at.shown()
    ))
}
