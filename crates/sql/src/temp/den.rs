//! The directory of a throw-away server, held open by descriptors as long as its keeper lives.
//!
//! ```text
//! assay-NAME-1a2b3c4d.mark     ours: identifies what a lost keeper left behind (assay_run::left)
//! assay-NAME-1a2b3c4d/         ours: the server's user may traverse it but change nothing
//!   server.log                 ours: the server's programs get it as a descriptor
//!   data/                      owned by the server's user: its data and the socket
//! ```
//!
//! As root, assay follows no path below `data`, since its owner may replace any entry at any time. A process of that
//! user writes what is needed there; [`assay_run::owned`] reads.

use super::owner::Owner;
use super::settings::complaint;
use assay_run::left::{Kind, Mark};
use assay_run::owned;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, fchmod, fchown, mkdirat, openat};
use rustix::fs::{fstat, unlinkat};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The server's own subdirectory.
pub(crate) const DATA: &str = "data";
/// Log file of the server's programs.
const LOG: &str = "server.log";
/// Bytes at the end of the log that are searched for why the server gave up.
const LOG_BYTES: u64 = 64 << 10;
/// Most bytes read from one of the server's files.
const READ_BYTES: u64 = 4096;
/// How long to retry a removal while processes of the server's user still create files.
const REMOVAL: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(10);

/// How a server shows that it accepts connections.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ready {
    /// A line of a file contains this word.
    Line {
        /// Path within `data`.
        file: String,
        /// Counted from 1.
        line: usize,
        word: String,
    },
    /// The log contains this word.
    Log { word: String },
}

#[derive(Debug)]
pub(super) struct Den {
    path: PathBuf,
    base: OwnedFd,
    mark: Mark,
    directory: OwnedFd,
    log: File,
    /// User who owns the files in `data`.
    uid: u32,
}

impl Den {
    /// Creates everything; after a failure, removes what was created.
    pub(super) fn make(path: &Path, owner: Option<&Owner>) -> io::Result<Self> {
        let base = owned::hold_directory(path.parent().unwrap_or(Path::new("/")))?;
        let mark = Mark::put_in(base.try_clone()?, path, Kind::Directory)?;
        let made = directory(&base, path);
        let (directory, log) = match made {
            Ok(made) => made,
            Err(error) => {
                // Report the error that led here, not this one.
                let _ = mark.take_away();
                return Err(error);
            }
        };
        let den = Self {
            path: path.to_path_buf(),
            base,
            mark,
            directory,
            log,
            uid: owner.map_or(rustix::process::geteuid().as_raw(), |owner| owner.uid),
        };
        match den.give_away(owner) {
            Ok(()) => Ok(den),
            Err(error) => {
                let _ = den.remove();
                Err(error)
            }
        }
    }

    /// Gives `data` to the server's user, and lets that user's group traverse the directory.
    fn give_away(&self, owner: Option<&Owner>) -> io::Result<()> {
        mkdirat(&self.directory, DATA, Mode::RWXU)?;
        let Some(owner) = owner else {
            return Ok(());
        };
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        chownat(&self.directory, DATA, Some(uid), Some(gid), flags)?;
        fchown(&self.directory, None, Some(gid))?;
        Ok(fchmod(&self.directory, Mode::RWXU | Mode::XGRP)?)
    }

    /// Path of the data, for the server's own processes.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// The log, for a process that writes to it.
    pub(super) fn log(&self) -> io::Result<File> {
        self.log.try_clone()
    }

    /// The log lines that say why the server gave up: those with one of these words.
    pub(super) fn complaint(&self, words: &[String]) -> String {
        match self.said() {
            Ok(bytes) => complaint(&String::from_utf8_lossy(&bytes), words),
            Err(error) => format!("{}: {error}", self.path.join(LOG).display()),
        }
    }

    /// The end of the log.
    fn said(&self) -> io::Result<Vec<u8>> {
        let length = self.log.metadata()?.len();
        let from = length.saturating_sub(LOG_BYTES);
        let mut bytes = vec![0; (length - from) as usize];
        let read = self.log.read_at(&mut bytes, from)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Whether the server reports that it accepts connections.
    pub(super) fn is_ready(&self, ready: &Ready) -> bool {
        match ready {
            Ready::Line { file, line, word } => {
                let path = owned::through(&self.directory).join(DATA).join(file);
                let told = owned::read_file(&path, self.uid, READ_BYTES).unwrap_or_default();
                told.lines().nth(line - 1).is_some_and(|found| found.trim() == word)
            }
            Ready::Log { word } => {
                self.said().is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(word.as_str()))
            }
        }
    }

    /// Removes everything, the mark last.
    pub(super) fn remove(self) -> io::Result<()> {
        let inside = owned::through(&self.directory);
        let begun = Instant::now();
        // `remove_dir_all` follows no link and works relative to open descriptors.
        while let Err(error) = std::fs::remove_dir_all(inside.join(DATA)) {
            match error.kind() {
                ErrorKind::NotFound => break,
                // A process that is ending may still create a file.
                _ if begun.elapsed() < REMOVAL => std::thread::sleep(TICK),
                _ => return Err(error),
            }
        }
        for (held, name, flags) in
            [(&self.directory, Path::new(LOG), AtFlags::empty()), (&self.base, name(&self.path)?, AtFlags::REMOVEDIR)]
        {
            match unlinkat(held, name, flags) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.mark.take_away()
    }
}

fn name(path: &Path) -> io::Result<&Path> {
    let name = path.file_name().map(Path::new);
    name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it has no name"))
}

/// Creates the directory with an empty log; removes it again after an error.
fn directory(base: &OwnedFd, path: &Path) -> io::Result<(OwnedFd, File)> {
    let name = name(path)?;
    mkdirat(base, name, Mode::RWXU)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(base, name, OFlags::RDONLY | flags, Mode::empty()).and_then(|held| {
        // The owner of the base directory could have replaced it.
        if fstat(&held)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(rustix::io::Errno::PERM);
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let log = openat(&held, LOG, OFlags::RDWR | OFlags::APPEND | flags, mode)?;
        Ok((held, File::from(log)))
    });
    made.map_err(|error| {
        let _ = unlinkat(base, name, AtFlags::REMOVEDIR);
        error.into()
    })
}
