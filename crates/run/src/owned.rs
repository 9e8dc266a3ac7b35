//! How a privileged process opens files where another user may change the names.
//!
//! In a directory that another user may write to, that user can turn a name into a link, a pipe or a device, even
//! between a check and the opening. So this module first opens the file with `O_PATH`, which has no effect on it, then
//! checks it, and then opens it through that descriptor.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The path to the file of a descriptor of this process, whatever its name is by now.
#[must_use]
pub fn through(held: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_fd().as_raw_fd()))
}

/// Opens a regular file of user `uid` for reading, whatever names lead to it.
///
/// # Errors
/// It does not exist, is not a regular file, or belongs to another user: then it is not opened.
pub fn open_file(path: &Path, uid: u32) -> io::Result<File> {
    let held = File::from(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
    let about = held.metadata()?;
    if !about.is_file() || about.uid() != uid {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it is not a regular file of user {uid}")));
    }
    File::open(through(&held))
}

/// The first `bytes` at most of a regular file of user `uid`.
///
/// # Errors
/// As [`open_file`]; it cannot be read, or is no UTF-8.
pub fn read_file(path: &Path, uid: u32, bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    open_file(path, uid)?.take(bytes).read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a directory by its path without following links.
///
/// # Errors
/// A part of the path does not exist or is a link.
pub fn hold_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held = openat(CWD, "/", flags, Mode::empty())?;
    for part in path.canonicalize()?.components() {
        if let Component::Normal(name) = part {
            held = openat(&held, name, flags, Mode::empty())?;
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_regular_file_of_the_user_is_opened_and_a_pipe_does_not_hang() {
        let dir = tempfile::tempdir().expect("a directory");
        let own = rustix::process::geteuid().as_raw();
        let file = dir.path().join("file");
        std::fs::write(&file, "words").expect("written");
        assert_eq!(read_file(&file, own, 3).expect("ours"), "wor");
        let refused = open_file(&file, own + 1).expect_err("another's");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        for bad in [&pipe, dir.path(), Path::new("/dev/null")] {
            open_file(bad, own).expect_err("no regular file");
        }
        let link = dir.path().join("link");
        symlink(&file, &link).expect("a link");
        assert!(open_file(&link, own).is_ok(), "what it leads to is ours");
    }

    #[test]
    fn what_is_held_is_found_again_under_any_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let inner = dir.path().join("inner");
        std::fs::create_dir(&inner).expect("made");
        let held = hold_directory(&inner).expect("it is there");
        std::fs::rename(&inner, dir.path().join("moved")).expect("moved");
        symlink("/", &inner).expect("a link");
        std::fs::write(through(&held).join("file"), "x").expect("written");
        assert!(dir.path().join("moved/file").exists());
    }
}
