//! Reading of files that a user names or that are where assay looks for its own: only regular files, each kind with a
//! limit.
//!
//! A name may lead to anything: to a pipe without a writer, to an endless device, to a file of terabytes. So this
//! module checks a file before it opens it, never blocks in the opening, and never reads beyond the limit of its kind.

use assay_measure::units::size;
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, fstat, fstatfs, openat, stat, statfs};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// In words, with its article.
    what: &'static str,
    /// A larger one is none of this kind.
    pub most_bytes: u64,
    /// The user names it on the command line, where it may also be the pipe of a shell's `<(command)`.
    is_given: bool,
}

const fn found(what: &'static str, most_bytes: u64) -> Kind {
    Kind { what, most_bytes, is_given: false }
}

const fn given(what: &'static str, most_bytes: u64) -> Kind {
    Kind { what, most_bytes, is_given: true }
}

/// `record.json` and its earlier forms.
pub const RECORD: Kind = found("a record", 512 << 20);
/// What is known of the runs of a directory.
pub const CATALOGUE: Kind = found("a catalogue of runs", 1 << 30);
/// Words by which a run is found again.
pub const TAGS: Kind = found("a list of tags", 1 << 20);
/// The seconds of a run; read line by line.
pub const SERIES: Kind = found("a series", 64 << 30);
/// What a kill test keeps during its run.
pub const JOURNAL: Kind = found("a journal", 4 << 30);
/// The plotting script beside pages, and the pages.
pub const PAGE: Kind = found("a page or its script", 64 << 20);
/// Options, services or passwords of a server's clients.
pub const OPTIONS: Kind = found("a file of options, services or passwords", 1 << 20);
/// Certificates or a key.
pub const CERTIFICATES: Kind = found("a file of certificates or of a key", 16 << 20);
/// A file of which only the beginning is read.
pub const CONTENT: Kind = found("a file whose content is taken", u64::MAX);
/// Settings of a run.
pub const CONFIGURATION: Kind = given("a configuration file", 1 << 20);
/// Prices of platforms.
pub const PRICES: Kind = given("a price file", 1 << 20);
/// Jobs of a storage test.
pub const JOBS: Kind = given("a job file", 1 << 20);
/// What both ends of a test know.
pub const SECRET: Kind = given("a secret", 4096);
/// Another tool's output.
pub const OUTPUT: Kind = given("the output of a tool", 1 << 30);

/// Opens a file of this kind for reading.
///
/// # Errors
/// It does not exist, is something else, or is larger than its kind allows: the sentence contains the remedy, but not
/// the name.
pub fn open(path: &Path, kind: Kind) -> io::Result<File> {
    // Opening may be answered by somebody, a look is not.
    let about = stat(path)?;
    let is_pipe = || statfs(path).is_ok_and(|about| is_of_pipes(about.f_type as u64));
    kind.admit(FileType::from_raw_mode(about.st_mode), is_pipe, about.st_size as u64)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    judged(openat(CWD, path, flags, Mode::empty())?.into(), kind)
}

/// The same of one that is open already.
///
/// # Errors
/// As [`open`].
pub fn judged(file: File, kind: Kind) -> io::Result<File> {
    let about = fstat(&file)?;
    let found = FileType::from_raw_mode(about.st_mode);
    let is_pipe = || fstatfs(&file).is_ok_and(|about| is_of_pipes(about.f_type as u64));
    kind.admit(found, is_pipe, about.st_size as u64)?;
    if found == FileType::Fifo {
        // Its writer is there and is waited for.
        fcntl_setfl(&file, OFlags::empty())?;
    }
    Ok(file)
}

/// All of a file.
///
/// # Errors
/// As [`open`]; it cannot be read, or grows beyond its limit.
pub fn read(path: &Path, kind: Kind) -> io::Result<Vec<u8>> {
    whole(open(path, kind)?, kind)
}

/// Its text.
///
/// # Errors
/// As [`read`]; it is no UTF-8 (`InvalidData`).
pub fn text(path: &Path, kind: Kind) -> io::Result<String> {
    utf_8(read(path, kind)?)
}

/// All of an open file of this kind.
///
/// # Errors
/// It cannot be read, or has more than its limit.
pub fn whole(file: File, kind: Kind) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more than it has, so that its end is seen without room for twice as much.
    let room = file.metadata()?.len().saturating_add(1).min(kind.most_bytes);
    bytes.try_reserve_exact(room as usize)?;
    append(file, kind, &mut bytes)?;
    Ok(bytes)
}

/// The text of what comes in through a stream.
///
/// # Errors
/// As [`text`].
pub fn stream(from: impl Read, kind: Kind) -> io::Result<String> {
    let mut bytes = Vec::new();
    append(from, kind, &mut bytes)?;
    utf_8(bytes)
}

fn append(from: impl Read, kind: Kind, bytes: &mut Vec<u8>) -> io::Result<()> {
    from.take(kind.most_bytes.saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() as u64 > kind.most_bytes {
        Err(kind.too_large(&format!("more than {}", size(kind.most_bytes))))
    } else {
        Ok(())
    }
}

/// A text without a copy of it.
///
/// # Errors
/// It is none: `InvalidData`.
pub fn utf_8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

impl Kind {
    fn admit(self, found: FileType, is_pipe: impl FnOnce() -> bool, bytes: u64) -> io::Result<()> {
        let what = match found {
            FileType::RegularFile if bytes > self.most_bytes => return Err(self.too_large(&size(bytes))),
            FileType::RegularFile => return Ok(()),
            // A pipe without a name has its writer; a named one may wait for one for ever.
            FileType::Fifo if self.is_given && is_pipe() => return Ok(()),
            FileType::Fifo => "a named pipe",
            FileType::Directory => "a directory",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Socket => "a socket",
            _ => "no file",
        };
        let or = if self.is_given { ", or give <(COMMAND)" } else { "" };
        let why = format!("is {what}, not {}; name a regular file{or}", self.what);
        Err(io::Error::new(ErrorKind::InvalidInput, why))
    }

    /// One that has `bytes`, in words.
    fn too_large(self, bytes: &str) -> io::Error {
        let why =
            format!("has {bytes}, so it is not {} (at most {}); name the right file", self.what, size(self.most_bytes));
        io::Error::new(ErrorKind::FileTooLarge, why)
    }
}

/// Whether a file system is the kernel's own, of pipes without a name.
fn is_of_pipes(magic: u64) -> bool {
    magic == 0x5049_5045
}

#[cfg(test)]
mod tests;
