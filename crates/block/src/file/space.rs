//! Length, space and cached pages of a file.

use super::{ALIGNMENT, DirectFile, Handle};
use crate::BlockError;
use crate::cached::{is_told_residency, within};
use rustix::fs::{Advice, FallocateFlags, SeekFrom};
use rustix::io::Errno;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// How to allocate space for a file before it is written, named after fio's `fallocate`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preallocate {
    /// No allocation: the first write allocates space.
    None,
    /// `fallocate(2)`, which extends the file.
    #[default]
    Native,
    /// `posix_fallocate(3)`, which writes zeroes if the file system has no better way.
    Posix,
    /// `fallocate(2)` that keeps the file length.
    Keep,
    /// Only sets the length, which leaves a hole.
    Truncate,
}

/// Flushes and drops the cached pages of a block device (`_IO(0x12, 97)` of `linux/fs.h`).
const BLKFLSBUF: libc::Ioctl = 0x1261;

impl DirectFile {
    /// Allocates `len` bytes and extends the file to that length (`fallocate`). New space reads as zeroes, but the
    /// first write to each part still changes file system metadata. Where that matters (redo logs), write zeroes as
    /// well.
    ///
    /// # Errors
    /// [`BlockError::NoSpace`] if the file system is too full, otherwise [`BlockError::Io`].
    pub fn allocate(&self, len: u64) -> Result<(), BlockError> {
        if len == 0 {
            return Ok(());
        }
        if let Some(file) = self.backed() {
            file.allocate(len);
            return Ok(());
        }
        if self.room.is_some() {
            // A part of a device has a fixed size.
            let free = self.len()?;
            return if len <= free { Ok(()) } else { Err(self.no_space(len, free)) };
        }
        // A failing fallocate may first fill the file system (ext4 does), which would hurt every other user of it. So
        // compare with the free space first, and release what a failed call allocated.
        let before = self.len()?;
        let (needed, free) = self.needed_and_free(len)?;
        if needed > free {
            return Err(self.no_space(needed, free));
        }
        loop {
            match rustix::fs::fallocate(self.descriptor(), FallocateFlags::empty(), 0, len) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::NOSPC | Errno::DQUOT) => {
                    self.set_len(before)?;
                    let (needed, free) = self.needed_and_free(len)?;
                    return Err(self.no_space(needed, free));
                }
                // If the file system cannot preallocate, set the length anyway so that reads inside it work.
                Err(Errno::OPNOTSUPP) if before < len => return self.set_len(len),
                Err(Errno::OPNOTSUPP) => return Ok(()),
                Err(error) => return Err(BlockError::io(&self.path, "allocate", error)),
            }
        }
    }

    /// Bytes to allocate for a length of `len`, and bytes that are free.
    fn needed_and_free(&self, len: u64) -> Result<(u64, u64), BlockError> {
        let failed = |error| BlockError::io(&self.path, "find the free space for", error);
        let stat = rustix::fs::fstat(self.descriptor()).map_err(failed)?;
        let space = rustix::fs::fstatvfs(self.descriptor()).map_err(failed)?;
        let present = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        Ok((len.saturating_sub(present), space.f_bavail.saturating_mul(space.f_frsize)))
    }

    /// Allocates space for the first `len` bytes of the file in the requested way. Returns false, with nothing changed,
    /// if the file system cannot do that or nothing was requested. A block device already has its space.
    ///
    /// # Errors
    /// [`BlockError::NoSpace`] if the file system is too full, otherwise [`BlockError::Io`].
    pub fn preallocate(&self, how: Preallocate, len: u64) -> Result<bool, BlockError> {
        if how == Preallocate::None || len == 0 || self.is_device()? {
            return Ok(false);
        }
        let before = self.len()?;
        if how == Preallocate::Truncate {
            // Only ever allocate here, never shrink.
            return self.set_len(len.max(before)).map(|()| true);
        }
        let (needed, free) = self.needed_and_free(len)?;
        if needed > free {
            return Err(self.no_space(needed, free));
        }
        let flags = match how {
            Preallocate::Keep => FallocateFlags::KEEP_SIZE,
            _ => FallocateFlags::empty(),
        };
        loop {
            let outcome = match how {
                Preallocate::Posix => self.posix_fallocate(len),
                _ => rustix::fs::fallocate(self.descriptor(), flags, 0, len),
            };
            match outcome {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(Errno::NOSPC | Errno::DQUOT) => {
                    self.set_len(before)?;
                    let (needed, free) = self.needed_and_free(len)?;
                    return Err(self.no_space(needed, free));
                }
                Err(error) => return Err(BlockError::io(&self.path, "allocate", error)),
            }
        }
    }

    fn posix_fallocate(&self, len: u64) -> Result<(), Errno> {
        let len = libc::off_t::try_from(len).map_err(|_| Errno::FBIG)?;
        // SAFETY: takes no memory.
        match unsafe { libc::posix_fallocate(self.descriptor().as_raw_fd(), 0, len) } {
            0 => Ok(()),
            number => Err(Errno::from_raw_os_error(number)),
        }
    }

    /// The ranges that hold data, in order; what lies between them is holes, which are read as zeroes without a device. The whole
    /// of a device, and of a file whose file system cannot tell.
    ///
    /// # Errors
    /// [`BlockError::Io`].
    pub fn data_ranges(&self) -> Result<Vec<Range<u64>>, BlockError> {
        let len = self.len()?;
        let mut ranges = Vec::new();
        if self.backed().is_some() || self.is_device()? {
            ranges.push(0..len);
            return Ok(ranges);
        }
        let mut at = 0;
        while at < len {
            let begin = match rustix::fs::seek(self.descriptor(), SeekFrom::Data(at)) {
                Ok(begin) if begin < len => begin,
                // Only a hole is left.
                Ok(_) | Err(Errno::NXIO) => break,
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                Err(error) => return Err(BlockError::io(&self.path, "find the data of", error)),
            };
            let end = rustix::fs::seek(self.descriptor(), SeekFrom::Hole(begin)).unwrap_or(len).clamp(begin + 1, len);
            ranges.push(begin..end);
            at = end;
        }
        Ok(ranges)
    }

    /// Whether the page cache is known to hold any of these bytes, so that this host read or wrote them before.
    pub fn has_cached(&self, offset: u64, len: usize) -> bool {
        let Handle::Os(descriptor) = &self.handle else { return false };
        let whole = offset / ALIGNMENT as u64 * ALIGNMENT as u64;
        let owned = rustix::fs::fstat(descriptor).is_ok_and(|stat| is_told_residency(stat.st_uid));
        owned && within(descriptor, self.base + whole, len + (offset - whole) as usize).is_ok_and(|held| held > 0)
    }

    fn no_space(&self, needed: u64, free: u64) -> BlockError {
        BlockError::NoSpace { path: self.path.clone(), needed, free }
    }

    /// Sets the length in bytes, truncating the file or adding a hole.
    ///
    /// # Errors
    /// [`BlockError::Io`]; a block device's length cannot be set.
    pub fn set_len(&self, len: u64) -> Result<(), BlockError> {
        rustix::fs::ftruncate(self.descriptor(), len)
            .map_err(|error| BlockError::io(&self.path, "set the length of", error))
    }

    /// Whether it is a block device.
    ///
    /// # Errors
    /// [`BlockError::Io`].
    pub fn is_device(&self) -> Result<bool, BlockError> {
        if self.backed().is_some() {
            return Ok(false);
        }
        let stat =
            rustix::fs::fstat(self.descriptor()).map_err(|error| BlockError::io(&self.path, "examine", error))?;
        Ok(rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::BlockDevice)
    }

    /// Drops the cached pages of `len` bytes from `offset`, 0 meaning to the end, so that reads come from the device.
    /// Dirty pages stay, so synchronise first. For a block device it writes back and drops all pages if the process is
    /// privileged to; otherwise it does the same as for a file.
    ///
    /// # Errors
    /// [`BlockError::Io`].
    pub fn invalidate(&self, offset: u64, len: u64) -> Result<(), BlockError> {
        if self.backed().is_some() {
            return Ok(());
        }
        if self.is_device()? {
            // SAFETY: this request takes no argument.
            let outcome = unsafe { libc::ioctl(self.descriptor().as_raw_fd(), BLKFLSBUF, 0) };
            if outcome == 0 {
                return Ok(());
            }
        }
        let len = std::num::NonZeroU64::new(len);
        rustix::fs::fadvise(self.descriptor(), offset + self.base, len, Advice::DontNeed)
            .map_err(|error| BlockError::io(&self.path, "drop the cached pages of", error))
    }
}
