//! Identifies what a path is, before anything is done to it.

use super::cannot;
use super::marker::{self, Whose};
use assay_run::engine::EngineError;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// File systems that expose kernel state, not files (`linux/magic.h`): proc, sysfs, cgroup, cgroup2, debugfs, tracefs,
/// securityfs, devpts, bpf, efivarfs, configfs, pstore.
const NO_FILES: [u64; 12] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x1cd1,
    0xcafe_4a11,
    0xde5e_81e4,
    0x6265_6570,
    0x6165_676c,
];

/// In-memory file systems: tmpfs, ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// A path and what was found there.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The path without symbolic links; the last component need not exist.
    pub(super) resolved: PathBuf,
    pub(super) what: What,
}

/// What a path is.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Nothing yet, and how many parent directories are missing too.
    Absent { missing_directories: usize },
    /// A regular file.
    File { metadata: Metadata, whose: Whose },
    /// A block device, its number and its size in bytes.
    Device { number: u64, bytes: u64 },
}

impl Found {
    /// Current size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match &self.what {
            What::Absent { .. } => 0,
            What::File { metadata, .. } => metadata.len(),
            What::Device { bytes, .. } => *bytes,
        }
    }

    /// Device and inode, or the number of a block device: the identity of the object under all its names.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        match &self.what {
            What::Absent { .. } => None,
            What::File { metadata, .. } => Some((metadata.dev(), metadata.ino())),
            What::Device { number, .. } => Some((u64::MAX, *number)),
        }
    }
}

/// Examines a path.
///
/// # Errors
/// If the path is neither a regular file, a block device nor a place for a new file.
pub(super) fn at(path: &Path) -> Result<Found, EngineError> {
    match fs::metadata(path) {
        Ok(metadata) => existing(path, metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => absent(path),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(unusable(path, "a component of the path is a file, not a directory"))
        }
        Err(error) => Err(cannot("examine", path, error)),
    }
}

fn existing(path: &Path, metadata: Metadata) -> Result<Found, EngineError> {
    let resolved = fs::canonicalize(path).map_err(|error| cannot("find the real path of", path, error))?;
    let kind = metadata.file_type();
    let refused = if kind.is_dir() {
        "it is a directory; name a file in it, or use directory= so that assay makes files there"
    } else if kind.is_fifo() || kind.is_socket() {
        "it is a pipe or a socket; name a regular file or a block device"
    } else if kind.is_char_device() {
        "it is a character device; name a regular file or a block device (ioengine=null needs no file)"
    } else if shows_the_kernel(&resolved) {
        "it is not a regular file: it exposes kernel state; name a regular file or a block device"
    } else {
        ""
    };
    if !refused.is_empty() {
        return Err(unusable(path, refused));
    }
    let what = if kind.is_block_device() {
        What::Device { number: metadata.rdev(), bytes: device_bytes(&resolved, metadata.rdev())? }
    } else {
        let whose = marker::whose(&resolved, &metadata, None);
        What::File { metadata, whose }
    };
    Ok(Found { resolved, what })
}

fn absent(path: &Path) -> Result<Found, EngineError> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(unusable(path, "it is a symbolic link to nothing; name the file itself"));
    }
    let name = match path.components().next_back() {
        Some(Component::Normal(name)) => name,
        _ => OsStr::new(""),
    };
    if name.is_empty() {
        return Err(unusable(path, "it has no file name"));
    }
    let mut missing = Vec::new();
    let mut parent = directory_of(path);
    while !parent.exists() {
        if fs::symlink_metadata(parent).is_ok() {
            return Err(unusable(path, "a directory of it is a symbolic link to nothing; make the directory first"));
        }
        let Some(Component::Normal(directory)) = parent.components().next_back() else {
            return Err(unusable(path, "its directory does not exist; make it first"));
        };
        missing.push(directory.to_owned());
        parent = directory_of(parent);
    }
    if !parent.is_dir() {
        return Err(unusable(path, "a component of it is not a directory"));
    }
    let mut resolved = fs::canonicalize(parent).map_err(|error| cannot("find the real path of", parent, error))?;
    if shows_the_kernel(&resolved) || among_device_nodes(&resolved) {
        return Err(unusable(
            path,
            "the device does not exist, and assay makes no file among device nodes; check the name",
        ));
    }
    resolved.extend(missing.iter().rev());
    resolved.push(name);
    Ok(Found { resolved, what: What::Absent { missing_directories: missing.len() } })
}

/// The directory that contains a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ if path.is_absolute() => Path::new("/"),
        _ => Path::new("."),
    }
}

fn shows_the_kernel(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| NO_FILES.contains(&(found.f_type as u64)))
}

/// Whether the path is on tmpfs or ramfs. Neither the file nor its directory need exist yet.
pub(super) fn is_in_memory(path: &Path) -> bool {
    let there = path.ancestors().find(|ancestor| ancestor.exists());
    let found = there.and_then(|there| rustix::fs::statfs(there).ok());
    found.is_some_and(|found| IN_MEMORY.contains(&(found.f_type as u64)))
}

/// Whether the directory is `/dev` or on the same file system: a mistyped device name would create a file in memory
/// there.
fn among_device_nodes(directory: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    directory.starts_with("/dev") && device(directory) == device(Path::new("/dev"))
}

/// The size according to the kernel, which needs no permission to open the device.
fn device_bytes(path: &Path, number: u64) -> Result<u64, EngineError> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let sectors = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/size"));
    // sysfs counts in sectors of 512 bytes, whatever the device.
    let bytes = sectors.ok().and_then(|sectors| sectors.trim().parse::<u64>().ok()?.checked_mul(512));
    if let Some(bytes) = bytes {
        return Ok(bytes);
    }
    File::open(path)
        .and_then(|mut device| device.seek(SeekFrom::End(0)))
        .map_err(|error| cannot("find the size of", path, error))
}

fn unusable(path: &Path, why: &str) -> EngineError {
    EngineError::Unusable(format!("{}: {why}", path.display()))
}
