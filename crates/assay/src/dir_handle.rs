//! A directory held open: operations on a name happen in this directory, wherever its path leads by then.
//!
//! They never follow links below it. Names are looked at, written and removed relative to the descriptor.

use assay_run::bounded::{self, Kind};
use assay_run::lock::{Locked, is_held};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, fsync, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Ends the name of a file that is being written.
pub(crate) const PARTIAL: &str = ".partial";
/// How often a claim that somebody holds is tried again.
const TRY: Duration = Duration::from_millis(20);

/// An open directory.
#[derive(Debug)]
pub(crate) struct DirHandle {
    fd: OwnedFd,
    path: PathBuf,
}

impl DirHandle {
    /// The directory a path leads to.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, DIRECTORY, Mode::empty())?;
        let path = path.to_path_buf();
        Ok(Self { fd, path })
    }

    /// The same, unless the path is itself a link: `NotADirectory`.
    pub(crate) fn open_itself(path: &Path) -> io::Result<Self> {
        // A slash at its end would follow a link.
        let plain: PathBuf = path.components().collect();
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        let fd = openat(CWD, &plain, flags, Mode::empty())?;
        Ok(Self { fd, path: plain })
    }

    /// A directory in it; a link is `NotADirectory`.
    pub(crate) fn sub(&self, name: &str) -> io::Result<Self> {
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        let fd = openat(&self.fd, name, flags, Mode::empty())?;
        let path = self.path.join(name);
        Ok(Self { fd, path })
    }

    /// Makes a directory in it, which must not be there.
    pub(crate) fn make_sub(&self, name: &str) -> io::Result<Self> {
        mkdirat(&self.fd, name, Mode::from_raw_mode(0o777))?;
        self.sub(name)
    }

    /// Where it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path that leads into this directory for as long as it is held.
    pub(crate) fn lasting_path(&self) -> PathBuf {
        let lasting = PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()));
        if lasting.exists() { lasting } else { std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()) }
    }

    /// A plain file in it, open for reading; a link, a pipe and the like are `InvalidInput`.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match openat(&self.fd, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => return Err(not_plain()),
            opened => opened?,
        };
        if is_plain(&fstat(&fd)?) { Ok(File::from(fd)) } else { Err(not_plain()) }
    }

    /// Its text, if it is no larger than its kind.
    pub(crate) fn read(&self, name: &str, kind: Kind) -> io::Result<String> {
        bounded::utf_8(bounded::whole(bounded::judged(self.file(name)?, kind)?, kind)?)
    }

    /// Whether a plain file of this name is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|about| is_plain(&about))
    }

    /// Writes a file whole: beside it, synced, renamed into place; then the directory is synced.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_through(&format!("{name}{PARTIAL}"), name, bytes)
    }

    /// The same by way of a file of this name.
    pub(crate) fn write_through(&self, partial: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let written = self.write_new(partial, bytes);
        let renamed = written.and_then(|()| Ok(renameat(&self.fd, partial, &self.fd, name)?));
        if let Err(error) = renamed {
            let _ = self.remove_file(partial);
            return Err(error);
        }
        // The rename lasts once its directory is synced.
        Ok(fsync(&self.fd)?)
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.create(name) {
            // What a killed writer left.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove_file(name)?;
                self.create(name)?
            }
            created => created?,
        };
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// A file that is not there yet, open for appending.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::from_raw_mode(0o666))?;
        Ok(File::from(fd))
    }

    /// Every name in it and what it is, sorted; names that are no text are shown as well as they can be.
    pub(crate) fn names(&self) -> io::Result<Vec<(String, FileType)>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |about| FileType::from_raw_mode(about.st_mode)),
                kind => kind,
            };
            found.push((name.to_string_lossy().into_owned(), kind));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Removes a plain file; nothing there is good too, anything else stays.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
            Ok(about) if !is_plain(&about) => return Err(not_plain()),
            Ok(_) => {}
        }
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Removes `sub`, empty, from this directory if it is still what was opened.
    pub(crate) fn remove_sub(&self, sub: &Self) -> io::Result<()> {
        let name = sub.path.file_name().ok_or_else(not_plain)?;
        let (there, held) = (statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?, fstat(&sub.fd)?);
        if (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino) {
            return Err(not_plain());
        }
        Ok(unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Takes the directory for this process until it is dropped or [`DirHandle::release`]d; false if another
    /// process keeps it for longer than `patience`. A file system without locks has no claims.
    pub(crate) fn claim(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        while flock(&self.fd, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            if begun.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(TRY);
        }
        true
    }

    /// Lets others have it.
    pub(crate) fn release(&self) {
        let _ = flock(&self.fd, FlockOperation::Unlock);
    }

    /// Whether a process writes there now.
    pub(crate) fn is_claimed(&self) -> bool {
        Locked::shared(&self.fd).is_err_and(|error| is_held(&error))
    }
}

/// See [`assay_run::lock`] why it is not left to the closing.
impl Drop for DirHandle {
    fn drop(&mut self) {
        self.release();
    }
}

fn is_plain(about: &Stat) -> bool {
    FileType::from_raw_mode(about.st_mode) == FileType::RegularFile
}

fn not_plain() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is a link or not a regular file, so assay did not write it")
}
