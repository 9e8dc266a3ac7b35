//! A disk in memory that loses power: the same files and the same rings, with faults that a seed decides.
//!
//! A [`SimDisk`] holds the files of a directory as chunks that copies share until one is written, so that a prepared
//! disk is copied in microseconds. The disk remembers unsynchronised writes sector by sector; a power cut keeps any
//! part of it. Faults are armed one by one and hit at a counted request, so that a seed determines everything.
//!
//! While a disk is mounted ([`SimDisk::mount`]), [`DirectFile::open`](assay_block::DirectFile::open) on this thread
//! opens its files instead of the real ones of the same name, and a [`Ring`](assay_block::Ring) over such files
//! performs its requests here, in an order that the seed decides. It does not know the content of a file.

mod cut;
mod faults;
mod file;
mod mistake;
mod ring;

pub use cut::{Cut, CutReport};
pub use faults::{FAULT_KINDS, Fault, FaultKind, Incident};
pub use mistake::{Mistake, Synced};

use assay_block::{BackendFile, BlockError, Installed, StorageBackend, install};
use faults::{Armed, How};
use file::SimFile;
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that copies of a disk share as one piece; also the larger of the two sector sizes.
const CHUNK_BYTES: usize = 4096;
/// The smaller sector size, the unit in which un-synced bytes are remembered.
const SECTOR_BYTES: usize = 512;
/// All sectors of a chunk.
const WHOLE: u8 = 0xff;

type Chunk = Arc<[u8; CHUNK_BYTES]>;

/// The content of a disk at rest: nothing un-synced, nothing open. Cloning copies no data.
#[derive(Debug, Clone, Default)]
pub struct SimImage {
    files: Vec<(PathBuf, Vec<Chunk>)>,
}

/// A disk in memory; clones are the same disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Clone)]
struct State {
    files: Vec<FileState>,
    random: Random,
    /// Without power nothing is read, written or kept.
    power: bool,
    /// Writes and synchronisations so far.
    steps: u64,
    /// The step at which the power goes.
    fuse: Option<u64>,
    armed: Vec<Armed>,
    incidents: Vec<Incident>,
    hits: [u64; FAULT_KINDS.len()],
    /// A failed write was reported; later write requests are counted.
    failure_told: bool,
    steps_after_failure: u64,
    writes: u32,
    mistake: Option<Arc<dyn Mistake>>,
    /// Files with a delayed synchronisation.
    late: Vec<usize>,
    /// It happens with the next step.
    late_is_due: bool,
}

#[derive(Debug, Clone)]
struct FileState {
    path: PathBuf,
    /// What a read gives.
    current: Vec<Chunk>,
    /// What remains when everything unsynced is lost.
    durable: Vec<Chunk>,
    pending: Vec<Pending>,
    locked: bool,
}

/// Sectors of one chunk that one write changed and nothing has made durable.
#[derive(Debug, Clone)]
struct Pending {
    chunk: u32,
    /// Bit i is sector i.
    sectors: u8,
    data: Chunk,
    /// Number of the write, over all files.
    write: u32,
}

/// How a write or a synchronisation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Goes,
    /// The power goes with it.
    GoesOff,
    /// There was no power.
    Off,
}

/// SplitMix64: small, seedable, good enough to decide faults with.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 where `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        if n == 0 {
            return 0;
        }
        (self.next() % n as u64) as usize
    }
}

impl SimImage {
    /// Takes a copy of every regular file directly in `directory`.
    ///
    /// # Errors
    /// [`BlockError::Io`]; [`BlockError::Invalid`] where a file's length is not a multiple of 4096.
    pub fn import(directory: &Path) -> Result<Self, BlockError> {
        let mut image = Self::default();
        let failed = |source| BlockError::Io { path: directory.to_path_buf(), what: "list", source };
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if !path.is_file() {
                continue;
            }
            let read = std::fs::read(&path);
            let bytes = read.map_err(|source| BlockError::Io { path: path.clone(), what: "read", source })?;
            image.add(&path, &bytes)?;
        }
        image.files.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(image)
    }

    /// Adds a file.
    ///
    /// # Errors
    /// [`BlockError::Invalid`] where its length is not a multiple of 4096.
    pub fn add(&mut self, path: &Path, bytes: &[u8]) -> Result<(), BlockError> {
        let (chunks, rest) = bytes.as_chunks::<CHUNK_BYTES>();
        if !rest.is_empty() {
            return Err(BlockError::Invalid {
                what: format!(
                    "{} has {} bytes; a simulated file has a multiple of {CHUNK_BYTES}",
                    path.display(),
                    bytes.len()
                ),
            });
        }
        let chunks = chunks.iter().map(|chunk| Arc::new(*chunk)).collect();
        self.files.push((path.to_path_buf(), chunks));
        Ok(())
    }

    /// Block `index` (of 4096 bytes) of a file, or `None` outside of it.
    #[must_use]
    pub fn block(&self, path: &Path, index: usize) -> Option<&[u8]> {
        Some(&self.chunk(path, index)?[..])
    }

    /// Whether both images hold the very same block, known without comparing bytes: `false` says nothing.
    #[must_use]
    pub fn shares_block(&self, other: &Self, path: &Path, index: usize) -> bool {
        match (self.chunk(path, index), other.chunk(path, index)) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            _ => false,
        }
    }

    fn chunk(&self, path: &Path, index: usize) -> Option<&Chunk> {
        let (_, chunks) = self.files.iter().find(|(name, _)| name == path)?;
        chunks.get(index)
    }

    /// The files and their lengths in bytes.
    pub fn files(&self) -> impl Iterator<Item = (&Path, u64)> {
        let files = self.files.iter();
        files.map(|(path, chunks)| (path.as_path(), (chunks.len() * CHUNK_BYTES) as u64))
    }

    /// The file's whole content, or `None` where there is no such file.
    #[must_use]
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let (_, chunks) = self.files.iter().find(|(name, _)| name == path)?;
        Some(chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect())
    }
}

impl SimDisk {
    /// A disk with this content; `seed` decides the order of completions and every fault.
    #[must_use]
    pub fn new(image: &SimImage, seed: u64) -> Self {
        let files = image.files.iter().map(|(path, chunks)| FileState {
            path: path.clone(),
            current: chunks.clone(),
            durable: chunks.clone(),
            pending: Vec::new(),
            locked: false,
        });
        Self {
            state: Arc::new(Mutex::new(State {
                files: files.collect(),
                random: Random(seed),
                power: true,
                steps: 0,
                fuse: None,
                armed: Vec::new(),
                incidents: Vec::new(),
                hits: [0; FAULT_KINDS.len()],
                failure_told: false,
                steps_after_failure: 0,
                writes: 0,
                mistake: None,
                late: Vec::new(),
                late_is_due: false,
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each section is one step; a thread that panicked in one has ended its test already.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A separate disk in the same state, including unsynced sectors.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.state().clone())) }
    }

    /// What a reader would find now, as an idle disk.
    #[must_use]
    pub fn image(&self) -> SimImage {
        let state = self.state();
        let files = state.files.iter();
        SimImage { files: files.map(|file| (file.path.clone(), file.current.clone())).collect() }
    }

    /// From now on, opening one of its files by path on this thread opens the simulated file.
    pub fn mount(&self) -> Installed {
        install(Arc::new(self.clone()))
    }

    /// The number of its file of this path.
    fn number(&self, path: &Path) -> Option<usize> {
        self.state().files.iter().position(|file| file.path == path)
    }

    /// Writes and synchronisations so far: the instants at which the power can go.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// Cuts the power at the step of this number (from 0): the step does not happen, although a write may leave any
    /// part of itself.
    pub fn cut_at_step(&self, step: u64) {
        self.state().fuse = Some(step);
    }

    /// Takes the power away now.
    pub fn cut_now(&self) {
        self.state().power = false;
    }

    /// Whether there is power.
    #[must_use]
    pub fn has_power(&self) -> bool {
        self.state().power
    }

    /// A number below `n` of the disk's own stream.
    fn random_below(&self, n: usize) -> usize {
        self.state().random.below(n)
    }
}

impl StorageBackend for SimDisk {
    fn open(&self, path: &Path) -> Option<Box<dyn BackendFile>> {
        Some(Box::new(SimFile::new(self.clone(), self.number(path)?)))
    }
}

impl State {
    /// Begins a write or a synchronisation; `early` is one that was handed over before any failure was told.
    fn step(&mut self, early: bool) -> Step {
        if !self.power {
            return Step::Off;
        }
        if self.failure_told && !early {
            self.steps_after_failure += 1;
        }
        if self.fuse == Some(self.steps) {
            self.power = false;
            return Step::GoesOff;
        }
        self.catch_up();
        self.steps += 1;
        Step::Goes
    }

    fn read(&mut self, file: usize, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
        if !self.power {
            return Err(Errno::IO);
        }
        let chunks = &self.files[file].current;
        let end = (chunks.len() * CHUNK_BYTES) as u64;
        let count = out.len().min(end.saturating_sub(offset) as usize);
        let mut done = 0;
        while done < count {
            let at = offset as usize + done;
            let (chunk, within) = (at / CHUNK_BYTES, at % CHUNK_BYTES);
            let n = (CHUNK_BYTES - within).min(count - done);
            out[done..done + n].copy_from_slice(&chunks[chunk][within..within + n]);
            done += n;
        }
        Ok(count)
    }

    /// Puts the bytes where reads find them; with `durable` also where a power cut leaves them.
    fn put(&mut self, file: usize, offset: u64, data: &[u8], durable: bool) {
        let file = &mut self.files[file];
        self.writes += 1;
        let mut done = 0;
        while done < data.len() {
            let at = offset as usize + done;
            let (index, within) = (at / CHUNK_BYTES, at % CHUNK_BYTES);
            let n = (CHUNK_BYTES - within).min(data.len() - done);
            let mut bytes = *file.current[index];
            bytes[within..within + n].copy_from_slice(&data[done..done + n]);
            let chunk = Arc::new(bytes);
            let sectors = sector_mask(within, n);
            if durable {
                file.forget(index as u32, sectors);
                merge(&mut file.durable[index], &chunk, sectors);
            } else {
                file.pending.push(Pending {
                    chunk: index as u32,
                    sectors,
                    data: Arc::clone(&chunk),
                    write: self.writes,
                });
            }
            file.current[index] = chunk;
            done += n;
        }
    }

    /// What a write leaves that was under way when the power went: any part of it, as the cut decides.
    fn leave(&mut self, file: usize, offset: u64, data: &[u8]) {
        let end = (self.files[file].current.len() * CHUNK_BYTES) as u64;
        if !self.power && offset + data.len() as u64 <= end {
            self.put(file, offset, data, false);
        }
    }

    /// Makes everything un-synced of the file durable.
    fn settle(&mut self, file: usize) {
        let file = &mut self.files[file];
        for pending in std::mem::take(&mut file.pending) {
            merge(&mut file.durable[pending.chunk as usize], &pending.data, pending.sectors);
        }
    }
}

impl FileState {
    /// Newer bytes have become durable: older un-synced ones of the same sectors cannot come after them.
    fn forget(&mut self, chunk: u32, sectors: u8) {
        self.pending.retain_mut(|pending| {
            if pending.chunk == chunk {
                pending.sectors &= !sectors;
            }
            pending.sectors != 0
        });
    }
}

/// Sectors that `len` bytes from `within` on touch in a chunk.
fn sector_mask(within: usize, len: usize) -> u8 {
    let first = within / SECTOR_BYTES;
    let last = (within + len - 1) / SECTOR_BYTES;
    (first..=last).fold(0, |mask, sector| mask | 1 << sector)
}

/// Copies the named sectors of `from` over `to`.
fn merge(to: &mut Chunk, from: &Chunk, sectors: u8) {
    if sectors == WHOLE {
        *to = Arc::clone(from);
        return;
    }
    let bytes = Arc::make_mut(to);
    for sector in (0..8).filter(|sector| sectors & 1 << sector != 0) {
        let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
        bytes[range.clone()].copy_from_slice(&from[range]);
    }
}

#[cfg(test)]
mod tests;
