//! Options for opening a file exactly as a storage test needs it.

use super::{DirectFile, Handle, access_of, open_raw};
use crate::BlockError;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Whether a file bypasses the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DirectIo {
    /// Goes through the page cache.
    #[default]
    No,
    /// Bypasses it if the file system allows that; see [`DirectFile::is_direct`].
    IfPossible,
    /// Bypasses it, or opening fails.
    Required,
}

/// What a completed write means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WriteThrough {
    /// The data may still be in a cache.
    #[default]
    No,
    /// The data, and what is needed to read it back, is on stable storage (`O_DSYNC`).
    Data,
    /// The data and all metadata are on stable storage (`O_SYNC`).
    Whole,
}

/// How to open an existing file or device; [`OpenMode`](crate::OpenMode) covers the usual cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Allow reading.
    pub read: bool,
    /// Allow writing. At least one of the two must be set.
    pub write: bool,
    /// Whether to bypass the page cache.
    pub direct: DirectIo,
    /// What a completed write means.
    pub write_through: WriteThrough,
    /// Claim a block device exclusively (`O_EXCL`). While it is open nobody can mount it or claim it again, not even
    /// this process, so share the opened file. Has no effect on a regular file.
    pub exclusive: bool,
    /// Do not update the access time where that is permitted (`O_NOATIME`, owner and root only).
    pub no_atime: bool,
}

impl DirectFile {
    /// Opens an existing file or device with these options. It creates nothing and truncates nothing.
    ///
    /// # Errors
    /// [`BlockError::Invalid`] where neither reading nor writing is requested, or direct I/O is required and refused;
    /// [`BlockError::InUse`] where a device cannot be claimed; otherwise [`BlockError::Io`].
    pub fn open_with(path: &Path, options: FileOptions) -> Result<Self, BlockError> {
        let mut flags = access_of(path, options.read, options.write)?;
        flags |= match options.write_through {
            WriteThrough::No => OFlags::empty(),
            // `OFlags::DSYNC` is `O_SYNC` in rustix, which guarantees more and costs more.
            WriteThrough::Data => OFlags::from_bits_retain(libc::O_DSYNC as u32),
            WriteThrough::Whole => OFlags::SYNC,
        };
        // On a regular file the flag without `O_CREAT` is undefined (open(2)).
        let exclusive = options.exclusive && crate::facts::block_device_at(path).is_some();
        if exclusive {
            flags |= OFlags::EXCL;
        }
        if options.direct != DirectIo::No {
            match open_gently(path, flags | OFlags::DIRECT, options.no_atime) {
                Err(Errno::INVAL) if options.direct == DirectIo::Required => {
                    return Err(BlockError::Invalid {
                        what: format!(
                            "{} cannot be opened for direct I/O (O_DIRECT): its file system does not support it; use \
                             another place, or buffered I/O (direct=0)",
                            path.display()
                        ),
                    });
                }
                Err(Errno::INVAL) => {}
                outcome => return opened(path, outcome, exclusive, true),
            }
        }
        opened(path, open_gently(path, flags, options.no_atime), exclusive, false)
    }
}

/// Opens with `O_NOATIME` if requested, and without it if the kernel refuses it.
fn open_gently(path: &Path, flags: OFlags, no_atime: bool) -> Result<std::os::fd::OwnedFd, Errno> {
    if no_atime {
        match open_raw(path, flags | OFlags::NOATIME) {
            Err(Errno::PERM) => {}
            outcome => return outcome,
        }
    }
    open_raw(path, flags)
}

fn opened(
    path: &Path,
    outcome: Result<std::os::fd::OwnedFd, Errno>,
    exclusive: bool,
    direct: bool,
) -> Result<DirectFile, BlockError> {
    match outcome {
        Ok(descriptor) => Ok(DirectFile {
            handle: Handle::Os(descriptor),
            path: path.to_path_buf(),
            direct,
            base: 0,
            room: None,
            locked: AtomicBool::new(false),
        }),
        Err(Errno::BUSY) if exclusive => Err(BlockError::InUse { path: path.to_path_buf() }),
        Err(error) => Err(BlockError::io(path, "open", error)),
    }
}
