//! The directory of a throw-away server, held by descriptors for as long as its keeper lives.
//!
//! ```text
//! assay-NAME-1a2b3c4d.mark     ours: what is left without its keeper is known by it (assay_run::left)
//! assay-NAME-1a2b3c4d/         ours: the server's user may pass through and change nothing
//!   server.log                 ours: the server's programs get it as a descriptor
//!   data/                      the server's user's: its data and the socket
//! ```
//!
//! As root we follow no name below `data`, since its owner may change any at any time: what is to be written there is
//! written by a process of his, what is read there goes through [`assay_run::owned`].

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

/// The server's own, within the directory.
pub(crate) const DATA: &str = "data";
/// What the server says, within the directory.
const LOG: &str = "server.log";
/// Of the log's end that is looked at for why the server gave up.
const LOG_BYTES: u64 = 64 << 10;
/// Of a file of the server's that is read.
const READ_BYTES: u64 = 4096;
/// Longest for processes of the server's user to stop making files while they are removed.
const REMOVAL: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(10);

/// How a server shows that it takes connections.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ready {
    /// A file in its data has this word on a line.
    Line {
        /// In `data`.
        file: String,
        /// From 1.
        line: usize,
        word: String,
    },
    /// What it says has this word.
    Log { word: String },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Den {
    path: PathBuf,
    base: OwnedFd,
    mark: Mark,
    directory: OwnedFd,
    log: File,
    /// Of the user whose files are in `data`.
    uid: u32,
}

impl Den {
    /// Makes it all; what a failure leaves is removed again.
    pub(super) fn make(path: &Path, owner: Option<&Owner>) -> io::Result<Self> {
        let base = owned::hold_directory(path.parent().unwrap_or(Path::new("/")))?;
        let mark = Mark::put_in(base.try_clone()?, path, Kind::Directory)?;
        let made = directory(&base, path);
        let (directory, log) = match made {
            Ok(made) => made,
            Err(error) => {
                // The error that led here is the one to tell.
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

    /// `data` to the server's user, and his group the way to it.
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

    /// Where its data is, for the server's own processes.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// The log, for a process that writes to it.
    pub(super) fn log(&self) -> io::Result<File> {
        self.log.try_clone()
    }

    /// What the log says of why the server gave up, on lines with one of these words.
    pub(super) fn complaint(&self, words: &[String]) -> String {
        match self.said() {
            Ok(bytes) => complaint(&String::from_utf8_lossy(&bytes), words),
            Err(error) => format!("{}: {error}", self.path.join(LOG).display()),
        }
    }

    /// The end of what its programs have said.
    fn said(&self) -> io::Result<Vec<u8>> {
        let length = self.log.metadata()?.len();
        let from = length.saturating_sub(LOG_BYTES);
        let mut bytes = vec![0; (length - from) as usize];
        let read = self.log.read_at(&mut bytes, from)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Whether the server says itself that it takes connections.
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

    /// Removes it all, the mark last.
    pub(super) fn remove(self) -> io::Result<()> {
        let inside = owned::through(&self.directory);
        let begun = Instant::now();
        // The library's removal follows no link, and works relative to what it holds.
        while let Err(error) = std::fs::remove_dir_all(inside.join(DATA)) {
            match error.kind() {
                ErrorKind::NotFound => break,
                // A process that ends may make a last file.
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

/// The directory itself, with an empty log; gone again after an error.
fn directory(base: &OwnedFd, path: &Path) -> io::Result<(OwnedFd, File)> {
    let name = name(path)?;
    mkdirat(base, name, Mode::RWXU)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(base, name, OFlags::RDONLY | flags, Mode::empty()).and_then(|held| {
        // Whoever owns the base can put another in its place.
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
