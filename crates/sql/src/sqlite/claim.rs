//! Decides which commands may work on a data set at the same time: a lock on a file beside it. The database itself
//! cannot be locked this way, since opening and closing it would release the locks that SQLite holds on it.

use super::file::{File, io};
use crate::claim::Purpose;
use assay_run::engine::EngineError;
use assay_run::lock::{Locked, holder, is_held};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
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
        if let Ok(_last) = Locked::exclusive(&*self.lock) {
            // An empty file that stays does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Claims the data set; `None` if there is no database.
///
/// # Errors
/// `Unusable`: another assay has claimed it.
pub(super) fn take(at: &File, purpose: Purpose) -> Result<Option<Claim>, EngineError> {
    let path = at.beside("-assay");
    let begun = Instant::now();
    loop {
        if purpose != Purpose::Prepare && !at.exists() {
            return Ok(None);
        }
        let file =
            OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(io("claiming", &path))?;
        let inode = inode_of(file.metadata());
        match if purpose.shares() { Locked::shared(file) } else { Locked::exclusive(file) } {
            // A removal may have ended between the two calls.
            Ok(lock) if inode == inode_of(fs::metadata(&path)) => {
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

fn inode_of(found: std::io::Result<fs::Metadata>) -> u64 {
    found.map_or(0, |of| of.ino())
}

/// The error for a data set that is in use.
fn in_use(at: &File, path: &Path) -> EngineError {
    let who = holder(path).map_or_else(String::new, |who| format!(" ({who})"));
    EngineError::Unusable(format!(
        "the data set in {} is in use by another assay process{who}; wait until it ends",
        at.shown()
    ))
}
