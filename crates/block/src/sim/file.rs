//! An open file of a simulated disk.

use super::faults::How;
use super::{CHUNK_BYTES, SimDisk};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One open of one file.
#[derive(Debug)]
pub(crate) struct SimFile {
    disk: SimDisk,
    number: usize,
    /// This open holds the lock of the file.
    locks: AtomicBool,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, number: usize) -> Self {
        Self { disk, number, locks: AtomicBool::new(false) }
    }

    pub(crate) fn disk(&self) -> &SimDisk {
        &self.disk
    }

    pub(crate) fn len(&self) -> u64 {
        (self.disk.state().files[self.number].current.len() * CHUNK_BYTES) as u64
    }

    /// The content of what is new reads as zeroes and is durable: no test is about growing files.
    pub(crate) fn allocate(&self, len: u64) {
        let chunks = (len as usize).div_ceil(CHUNK_BYTES);
        let mut state = self.disk.state();
        let file = &mut state.files[self.number];
        if file.current.len() < chunks {
            let zeroes = Arc::new([0; CHUNK_BYTES]);
            file.current.resize(chunks, Arc::clone(&zeroes));
            file.durable.resize(chunks, zeroes);
        }
    }

    /// One read request: may fail, may be short.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
        self.disk.state().asked_read(self.number, offset, out)
    }

    /// One write request: may fail, may be short.
    pub(crate) fn write(&self, offset: u64, data: &[u8], how: How) -> Result<usize, Errno> {
        let mut state = self.disk.state();
        state.asked_write(self.number, (offset, data), how)
    }

    /// Reads until the buffer is full or the file ends, as the callers of a kernel do.
    pub(crate) fn read_whole(&self, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < out.len() {
            let from = offset + done as u64;
            let count = self.read(from, &mut out[done..])?;
            if count == 0 && from >= self.len() {
                break;
            }
            done += count;
        }
        Ok(done)
    }

    /// Writes until all is written.
    pub(crate) fn write_whole(&self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let how = How { whole: true, ..How::default() };
        let mut done = 0;
        while done < data.len() {
            let written = self.write(offset + done as u64, &data[done..], how);
            done += written.inspect_err(|_| self.disk.tell_failure())?;
        }
        Ok(())
    }

    /// One request to synchronise; `early` as in [`How`].
    pub(crate) fn sync(&self, early: bool) -> Result<(), Errno> {
        self.disk.state().asked_sync(self.number, early)
    }

    /// Synchronises and tells at once.
    pub(crate) fn sync_whole(&self) -> Result<(), Errno> {
        self.sync(false).inspect_err(|_| self.disk.tell_failure())
    }

    pub(crate) fn lock(&self) -> bool {
        let locked = &mut self.disk.state().files[self.number].locked;
        if *locked {
            return self.locks.load(Ordering::Relaxed);
        }
        *locked = true;
        self.locks.store(true, Ordering::Relaxed);
        true
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if self.locks.load(Ordering::Relaxed) {
            self.disk.state().files[self.number].locked = false;
        }
    }
}
