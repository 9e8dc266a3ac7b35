//! A writer that makes plain blocking system calls.
//!
//! Engines write through a [`Ring`](crate::Ring). Most databases write like this instead: one thread calls `pwrite` and
//! then waits for `fdatasync`. The writer has its own descriptor and its own aligned buffer, allocates nothing per
//! call, and is meant for measuring those calls. It knows nothing about the content.

use crate::BlockError;
use crate::mapping::{ALIGNMENT, Mapping};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// One existing file open for writing from one thread at a time.
pub struct BlockingWriter {
    descriptor: OwnedFd,
    path: PathBuf,
    memory: Mapping,
    direct: bool,
}

impl std::fmt::Debug for BlockingWriter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BlockingWriter")
            .field("path", &self.path)
            .field("direct", &self.direct)
            .finish_non_exhaustive()
    }
}

impl BlockingWriter {
    /// Opens an existing file for writing with a buffer of `buffer_bytes` zeroes. Where direct I/O is refused
    /// (`EINVAL`), the file is opened without it and [`BlockingWriter::is_direct`] says so.
    ///
    /// # Errors
    /// [`BlockError::Io`], [`BlockError::Memory`].
    pub fn open(path: &Path, buffer_bytes: usize, direct: bool) -> Result<Self, BlockError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let memory = Mapping::new(buffer_bytes, false, "a write buffer")?;
        let open = |flags| rustix::fs::open(path, flags, Mode::empty());
        let (descriptor, direct) = match direct.then(|| open(flags | OFlags::DIRECT)) {
            Some(Ok(descriptor)) => (Ok(descriptor), true),
            Some(Err(Errno::INVAL)) | None => (open(flags), false),
            Some(Err(error)) => (Err(error), true),
        };
        Ok(Self {
            descriptor: descriptor.map_err(|error| BlockError::io(path, "open", error))?,
            path: path.to_path_buf(),
            memory,
            direct,
        })
    }

    /// Whether `O_DIRECT` was requested and accepted.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// What [`BlockingWriter::write`] writes, aligned for direct I/O.
    pub fn buffer(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is owned by this value, borrowed exclusively here, and initialised to zeroes.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base(), self.memory.len()) }
    }

    /// Writes the first `len` bytes of the buffer at `offset`, all of them. With `durable` the call returns when the
    /// data, and what is needed to read it back, is on stable storage (`RWF_DSYNC`).
    ///
    /// # Errors
    /// [`BlockError::NoSpace`], [`BlockError::Io`]. After an error of a durable write the data may be lost: do not
    /// retry, report it.
    ///
    /// # Panics
    /// Where `len` is more than the buffer holds.
    pub fn write(&mut self, offset: u64, len: usize, durable: bool) -> Result<(), BlockError> {
        self.write_from(0, offset, len, durable)
    }

    /// As [`BlockingWriter::write`], but from byte `start` of the buffer; direct I/O needs it aligned.
    ///
    /// # Errors
    /// As [`BlockingWriter::write`].
    ///
    /// # Panics
    /// If the range goes beyond the end of the buffer.
    pub fn write_from(&mut self, start: usize, offset: u64, len: usize, durable: bool) -> Result<(), BlockError> {
        let flags = if durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
        // SAFETY: as in `buffer`, and the slice ends before this call does.
        let bytes = unsafe { std::slice::from_raw_parts(self.memory.base(), self.memory.len()) };
        let bytes = &bytes[start..][..len];
        let mut done = 0;
        while done < len {
            let rest = [IoSlice::new(&bytes[done..])];
            match rustix::io::pwritev2(&self.descriptor, &rest, offset + done as u64, flags) {
                Ok(0) => return Err(BlockError::io(&self.path, "write", Errno::IO)),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(Errno::NOSPC | Errno::DQUOT) => {
                    return Err(BlockError::NoSpace {
                        path: self.path.clone(),
                        needed: (len - done) as u64,
                        free: crate::place::free_bytes(&self.path)?,
                    });
                }
                Err(error) => return Err(BlockError::io(&self.path, "write", error)),
            }
        }
        Ok(())
    }

    /// Makes the written data, and the metadata needed to read it back, durable (`fdatasync`).
    ///
    /// # Errors
    /// [`BlockError::Io`]. After an error the data may be lost: do not try again, report it.
    pub fn sync_data(&self) -> Result<(), BlockError> {
        rustix::fs::fdatasync(&self.descriptor).map_err(|error| BlockError::io(&self.path, "synchronise", error))
    }

    /// Makes the written data and all metadata durable (`fsync`).
    ///
    /// # Errors
    /// As [`BlockingWriter::sync_data`].
    pub fn sync_all(&self) -> Result<(), BlockError> {
        rustix::fs::fsync(&self.descriptor).map_err(|error| BlockError::io(&self.path, "synchronise", error))
    }
}

/// Repeats a call that returns a count or -1 while signals interrupt it. Returns the result as a ring would: a count or
/// the negated error number.
#[inline]
pub(crate) fn retried(mut call: impl FnMut() -> isize) -> i32 {
    loop {
        let moved = call();
        if moved >= 0 {
            return i32::try_from(moved).unwrap_or(i32::MAX);
        }
        match Errno::from_io_error(&std::io::Error::last_os_error()) {
            Some(Errno::INTR) => {}
            Some(error) => return -error.raw_os_error(),
            None => return -Errno::IO.raw_os_error(),
        }
    }
}

// A buffer starts at a page, which is the alignment direct I/O needs.
const _: () = assert!(ALIGNMENT == 4096);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_the_buffer_is_in_the_file_however_it_is_made_durable() {
        let dir = crate::testing::directory();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![0; 16384]).unwrap();
        let mut writer = BlockingWriter::open(&path, 8192, true).unwrap();
        assert_eq!(writer.buffer().len(), 8192);
        for (block, durable) in [(0_u64, false), (1, true)] {
            writer.buffer()[..4096].fill(block as u8 + 1);
            writer.write(block * 4096, 4096, durable).unwrap();
        }
        writer.sync_data().unwrap();
        writer.sync_all().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[..4096].iter().all(|byte| *byte == 1));
        assert!(bytes[4096..8192].iter().all(|byte| *byte == 2));
        assert!(bytes[8192..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_missing_file_is_an_error_and_is_not_created() {
        let dir = crate::testing::directory();
        let path = dir.path().join("absent");
        let error = BlockingWriter::open(&path, 4096, true).unwrap_err();
        assert!(error.to_string().contains("cannot open"), "{error}");
        assert!(!path.exists());
    }
}
