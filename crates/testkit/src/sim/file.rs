//! An open file of a simulated disk.

use super::faults::How;
use super::ring::SimRing;
use super::{CHUNK_BYTES, SimDisk};
use assay_block::{BackendFile, BackendRing};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One open of one file.
#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    number: usize,
    /// This open holds the lock of the file.
    locks: AtomicBool,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, number: usize) -> Self {
        Self { disk, number, locks: AtomicBool::new(false) }
    }
}

impl BackendFile for SimFile {
    fn len(&self) -> u64 {
        (self.disk.state().files[self.number].current.len() * CHUNK_BYTES) as u64
    }

    /// The content of what is new is durable: no test is about growing files.
    fn allocate(&self, len: u64) {
        let chunks = (len as usize).div_ceil(CHUNK_BYTES);
        let mut state = self.disk.state();
        let file = &mut state.files[self.number];
        if file.current.len() < chunks {
            let zeroes = Arc::new([0; CHUNK_BYTES]);
            file.current.resize(chunks, Arc::clone(&zeroes));
            file.durable.resize(chunks, zeroes);
        }
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let from = offset + done as u64;
            let count = self.disk.state().asked_read(self.number, from, &mut out[done..])?;
            if count == 0 && from >= self.len() {
                break;
            }
            done += count;
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let how = How { whole: true, ..How::default() };
        let mut done = 0;
        while done < data.len() {
            let rest = (offset + done as u64, &data[done..]);
            let written = self.disk.state().asked_write(self.number, rest, how);
            done += written.inspect_err(|_| self.disk.tell_failure())?;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.disk.state().asked_sync(self.number, false);
        Ok(synced.inspect_err(|_| self.disk.tell_failure())?)
    }

    fn lock(&self) -> bool {
        let locked = &mut self.disk.state().files[self.number].locked;
        if *locked {
            return self.locks.load(Ordering::Relaxed);
        }
        *locked = true;
        self.locks.store(true, Ordering::Relaxed);
        true
    }

    fn ring(&self, paths: &[&Path]) -> Box<dyn BackendRing> {
        let number = |path: &&Path| self.disk.number(path).expect("the files of a ring are of one disk");
        let files = paths.iter().map(number).collect();
        Box::new(SimRing::new(self.disk.clone(), files))
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if self.locks.load(Ordering::Relaxed) {
            self.disk.state().files[self.number].locked = false;
        }
    }
}
