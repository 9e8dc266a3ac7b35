//! Files opened for direct I/O.
//!
//! Open a [`DirectFile`] here and read and write it through a [`Ring`](crate::Ring). Its own `read_at` and `write_at`
//! are for small data such as control files. It knows nothing about the content of a file.

mod options;
mod space;

pub use options::{DirectIo, FileOptions, WriteThrough};
pub use space::Preallocate;

use crate::BlockError;
use crate::backend::{self, BackendFile};
use crate::mapping::{ALIGNMENT, Mapping};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum size of the internal bounce buffer in bytes.
const BOUNCE_BYTES: usize = 1 << 20;

/// How to open an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenMode {
    /// Allow reading.
    pub read: bool,
    /// Allow writing. At least one of the two must be set.
    pub write: bool,
    /// Ask for direct I/O (`O_DIRECT`); whether it was granted is [`DirectFile::is_direct`].
    pub direct: bool,
}

/// A regular file or block device, open, usable from any thread.
#[derive(Debug)]
pub struct DirectFile {
    handle: Handle,
    path: PathBuf,
    direct: bool,
    /// Offset on the file or device that is byte 0 of this value.
    base: u64,
    /// Bytes available from there; `None` for no limit.
    room: Option<u64>,
    /// Whether this value holds the file's lock.
    locked: AtomicBool,
}

/// Unlocks explicitly. A child process that is being forked shares the open file until it executes another program;
/// closing only our descriptor would leave the file locked until then.
impl Drop for DirectFile {
    fn drop(&mut self) {
        if *self.locked.get_mut() {
            // If this fails, the close that follows releases the lock a little later.
            let _ = rustix::fs::flock(self.descriptor(), FlockOperation::Unlock);
        }
    }
}

#[derive(Debug)]
enum Handle {
    Os(OwnedFd),
    Backed(Box<dyn BackendFile>),
}

impl DirectFile {
    /// Creates a file that must not exist yet, open for reading and writing.
    ///
    /// # Errors
    /// [`BlockError::Io`]; an existing file is one ("File exists").
    pub fn create_new(path: &Path, direct: bool) -> Result<Self, BlockError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        if direct {
            // On some file systems an open that is refused for O_DIRECT has already created the file. So create it
            // without O_DIRECT first and open it again.
            let made = open_raw(path, flags).map_err(|error| BlockError::io(path, "create", error))?;
            drop(made);
            return Self::open(path, OpenMode { read: true, write: true, direct });
        }
        let descriptor = open_raw(path, flags).map_err(|error| BlockError::io(path, "create", error))?;
        Ok(Self::whole(Handle::Os(descriptor), path, false))
    }

    /// The whole file or device.
    fn whole(handle: Handle, path: &Path, direct: bool) -> Self {
        Self { handle, path: path.to_path_buf(), direct, base: 0, room: None, locked: AtomicBool::new(false) }
    }

    /// Opens a part of a block device as a separate file: `room` bytes from `base` on. Offsets count from there, in the
    /// [`Ring`](crate::Ring) as well, and nothing outside is written.
    ///
    /// # Errors
    /// [`BlockError::Io`], or [`BlockError::Invalid`] where `base` is not a multiple of 4096.
    pub fn open_part(path: &Path, mode: OpenMode, base: u64, room: u64) -> Result<Self, BlockError> {
        if !base.is_multiple_of(ALIGNMENT as u64) || base.checked_add(room).is_none() {
            return Err(BlockError::Invalid {
                what: format!("a part of {} begins at byte {base}, not at a multiple of {ALIGNMENT}", path.display()),
            });
        }
        let mut file = Self::open(path, mode)?;
        file.base = base;
        file.room = Some(room);
        Ok(file)
    }

    /// Opens an existing file or device. Where direct I/O is refused (`EINVAL`), the file is opened without it and
    /// [`DirectFile::is_direct`] says so. Some file systems (tmpfs) accept the flag and still use memory.
    ///
    /// # Errors
    /// [`BlockError::Io`], or [`BlockError::Invalid`] where neither reading nor writing is requested.
    pub fn open(path: &Path, mode: OpenMode) -> Result<Self, BlockError> {
        if let Some(file) = backend::open(path) {
            return Ok(Self::whole(Handle::Backed(file), path, mode.direct));
        }
        let access = access_of(path, mode.read, mode.write)?;
        if mode.direct {
            match open_raw(path, access | OFlags::DIRECT) {
                Ok(descriptor) => {
                    return Ok(Self::whole(Handle::Os(descriptor), path, true));
                }
                Err(Errno::INVAL) => {}
                Err(error) => return Err(BlockError::io(path, "open", error)),
            }
        }
        let descriptor = open_raw(path, access).map_err(|error| BlockError::io(path, "open", error))?;
        Ok(Self::whole(Handle::Os(descriptor), path, false))
    }

    /// The operating system's handle.
    ///
    /// # Panics
    /// If the file belongs to a backend; callers check this first.
    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.handle {
            Handle::Os(descriptor) => descriptor.as_fd(),
            Handle::Backed(_) => unreachable!("a file of a backend has no descriptor"),
        }
    }

    /// The backend's file, if a backend opened it.
    pub(crate) fn backed(&self) -> Option<&dyn BackendFile> {
        match &self.handle {
            Handle::Os(_) => None,
            Handle::Backed(file) => Some(&**file),
        }
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `O_DIRECT` was requested and accepted.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Offset on the file or device that is byte 0 of this value.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Whether it is a part of a device: see [`DirectFile::open_part`].
    pub fn is_part(&self) -> bool {
        self.room.is_some()
    }

    /// First byte that must not be touched, counted from [`DirectFile::base`].
    pub(crate) fn limit(&self) -> u64 {
        self.room.unwrap_or(u64::MAX)
    }

    /// Current length in bytes. For a block device, its capacity; for a part of one, the size of the part, or less if
    /// the device ends before it.
    ///
    /// # Errors
    /// [`BlockError::Io`].
    #[expect(clippy::len_without_is_empty, reason = "an empty file is no special case for any caller")]
    pub fn len(&self) -> Result<u64, BlockError> {
        let whole = self.whole_len()?;
        Ok(whole.saturating_sub(self.base).min(self.limit()))
    }

    fn whole_len(&self) -> Result<u64, BlockError> {
        if let Some(file) = self.backed() {
            return Ok(file.len());
        }
        let stat =
            rustix::fs::fstat(self.descriptor()).map_err(|error| BlockError::io(&self.path, "examine", error))?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::BlockDevice {
            return rustix::fs::seek(self.descriptor(), rustix::fs::SeekFrom::End(0))
                .map_err(|error| BlockError::io(&self.path, "find the size of", error));
        }
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Makes all written data, and the metadata needed to read it back, durable (`fdatasync`).
    ///
    /// # Errors
    /// [`BlockError::Io`]. After an error the data may be lost: do not try again, report it.
    pub fn sync_data(&self) -> Result<(), BlockError> {
        let synced = match &self.handle {
            Handle::Os(descriptor) => rustix::fs::fdatasync(descriptor).map_err(io::Error::from),
            Handle::Backed(file) => file.sync_data(),
        };
        synced.map_err(|error| BlockError::io(&self.path, "synchronise", error))
    }

    /// Reads up to `data.len()` bytes at `offset` and returns how many there were before the end of the file. Any
    /// offset and length work, with direct I/O too, through an aligned bounce buffer. For small data.
    /// # Errors
    /// [`BlockError::Io`].
    pub fn read_at(&self, offset: u64, data: &mut [u8]) -> Result<usize, BlockError> {
        let failed = |error: Errno| BlockError::io(&self.path, "read", error);
        let room = self.limit().saturating_sub(offset);
        let wanted = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let (offset, data) = (offset + self.base, &mut data[..wanted]);
        if let Some(file) = self.backed() {
            return file.read_at(offset, data).map_err(|error| BlockError::io(&self.path, "read", error));
        }
        let mut done = 0;
        if !self.direct {
            while done < data.len() {
                match rustix::io::pread(self.descriptor(), &mut data[done..], offset + done as u64) {
                    Ok(0) => break,
                    Ok(count) => done += count,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            return Ok(done);
        }
        let mut bounce = Bounce::new(data.len())?;
        while done < data.len() {
            let at = offset + done as u64;
            let skew = (at % ALIGNMENT as u64) as usize;
            let wanted = data.len() - done;
            let span = (skew + wanted).next_multiple_of(ALIGNMENT).min(bounce.len());
            let got = self.read_aligned(at - skew as u64, &mut bounce.bytes_mut()[..span]).map_err(failed)?;
            let usable = got.saturating_sub(skew).min(wanted);
            if usable == 0 {
                break;
            }
            data[done..done + usable].copy_from_slice(&bounce.bytes_mut()[skew..skew + usable]);
            done += usable;
        }
        Ok(done)
    }

    /// Writes all of `data` at `offset`. Any offset and length work, with direct I/O too: the blocks at the edges are
    /// read, changed and written back, and a file that grows ends where the data ends. For small data and one writer at
    /// a time.
    ///
    /// # Errors
    /// [`BlockError::NoSpace`], [`BlockError::Io`].
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        if offset.saturating_add(data.len() as u64) > self.limit() {
            return Err(BlockError::NoSpace {
                path: self.path.clone(),
                needed: offset.saturating_add(data.len() as u64),
                free: self.limit(),
            });
        }
        let offset = offset + self.base;
        let outcome = match &self.handle {
            Handle::Backed(file) => file.write_at(offset, data),
            Handle::Os(_) if self.direct => self.write_bounced(offset, data)?.map_err(io::Error::from),
            Handle::Os(_) => self.write_all(offset, data).map_err(io::Error::from),
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                let free = if self.backed().is_some() { 0 } else { crate::place::free_bytes(&self.path)? };
                Err(BlockError::NoSpace { path: self.path.clone(), needed: data.len() as u64, free })
            }
            Err(error) => Err(BlockError::io(&self.path, "write", error)),
        }
    }

    /// Takes the exclusive lock of the file (`flock`) without waiting. Dropping the value releases it, as does any end
    /// of the process.
    ///
    /// # Errors
    /// [`BlockError::InUse`] where another open of the file holds it, otherwise [`BlockError::Io`].
    pub fn lock_exclusive(&self) -> Result<(), BlockError> {
        if let Some(file) = self.backed() {
            let refused = || BlockError::InUse { path: self.path.clone() };
            return file.lock().then_some(()).ok_or_else(refused);
        }
        match rustix::fs::flock(self.descriptor(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.locked.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(Errno::WOULDBLOCK) => Err(BlockError::InUse { path: self.path.clone() }),
            Err(error) => Err(BlockError::io(&self.path, "lock", error)),
        }
    }

    fn write_all(&self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < data.len() {
            match rustix::io::pwrite(self.descriptor(), &data[done..], offset + done as u64) {
                Ok(0) => return Err(Errno::IO),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_bounced(&self, offset: u64, data: &[u8]) -> Result<Result<(), Errno>, BlockError> {
        let length_before = self.whole_len()?;
        let mut bounce = Bounce::new(data.len())?;
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let skew = (at % ALIGNMENT as u64) as usize;
            let start = at - skew as u64;
            let count = (data.len() - done).min(bounce.len() - skew);
            let span = (skew + count).next_multiple_of(ALIGNMENT);
            let block = &mut bounce.bytes_mut()[..span];
            if skew != 0 || !count.is_multiple_of(ALIGNMENT) {
                block.fill(0);
                if let Err(error) = self.read_aligned(start, block) {
                    return Ok(Err(error));
                }
            }
            block[skew..skew + count].copy_from_slice(&data[done..done + count]);
            if let Err(error) = self.write_all(start, block) {
                return Ok(Err(error));
            }
            done += count;
        }
        let end = length_before.max(offset + data.len() as u64);
        if !data.is_empty() && self.whole_len()? > end {
            return Ok(rustix::fs::ftruncate(self.descriptor(), end));
        }
        Ok(Ok(()))
    }

    /// Reads into an aligned buffer until it is full or the file ends.
    fn read_aligned(&self, offset: u64, block: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < block.len() {
            match rustix::io::pread(self.descriptor(), &mut block[done..], offset + done as u64) {
                Ok(count) => {
                    done += count;
                    // A count that is not a multiple of the alignment marks the end of the file.
                    if count == 0 || !count.is_multiple_of(ALIGNMENT) {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl AsFd for DirectFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor()
    }
}

/// The access mode of an open.
fn access_of(path: &Path, read: bool, write: bool) -> Result<OFlags, BlockError> {
    match (read, write) {
        (true, true) => Ok(OFlags::RDWR),
        (true, false) => Ok(OFlags::RDONLY),
        (false, true) => Ok(OFlags::WRONLY),
        (false, false) => Err(BlockError::Invalid {
            what: format!("{} must be opened for reading, for writing, or for both", path.display()),
        }),
    }
}

fn open_raw(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o640))
}

/// An aligned buffer for one call.
struct Bounce {
    memory: Mapping,
}

impl Bounce {
    /// Room for `wanted` bytes plus the skew of both edges, or for the largest step.
    fn new(wanted: usize) -> Result<Self, BlockError> {
        let len = (wanted + 2 * ALIGNMENT).next_multiple_of(ALIGNMENT).min(BOUNCE_BYTES);
        Ok(Self { memory: Mapping::new(len, false, "a bounce buffer")? })
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is owned by this value, borrowed exclusively here, and zeroed at first.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base(), self.memory.len()) }
    }
}

#[cfg(test)]
mod tests;
