//! Decides whether the content of a file proves that it is ours.
//!
//! Each sector that we lay out or that jobs write carries sixteen bytes that nobody else could have put there
//! (`payload::proof`). Zeroes are no evidence: they may be a hole or space that was only allocated, and losing them
//! loses nothing. Any other content belongs to someone else, and a single such sector makes the whole file foreign.

use super::super::payload::proof::{SECTOR_BYTES, proves};
use assay_measure::prng::{Purpose, Stream};
use assay_run::lock::{Locked, is_held};
use rustix::fs::{Advice, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Files with more data than this are sampled.
const WHOLE_BYTES: u64 = 1 << 30;
/// Number of pieces to examine in a larger file, one at a random place in each equal part.
const SAMPLES: u64 = 4096;
/// Bytes of such a piece.
const SAMPLE_BYTES: u64 = 64 << 10;
/// Bytes per read.
const READ_BYTES: u64 = 1 << 20;

/// Opens the file for reading if it is the one that was `found` at `path`.
pub(super) fn open(path: &Path, found: &Metadata) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // Leaves no trace in the access time if the kernel allows that.
    let opened = rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty());
    let opened = opened.or_else(|_| rustix::fs::open(path, flags, Mode::empty()));
    let file = File::from(opened.ok()?);
    let same = |now: Metadata| (now.dev(), now.ino()) == (found.dev(), found.ino());
    file.metadata().is_ok_and(same).then_some(file)
}

/// Whether another run has locked the file for writing: its content would then change during the check.
pub(super) fn is_locked(file: &File) -> bool {
    Locked::shared(file).is_err_and(|error| is_held(&error))
}

/// Whether the content proves that the file is the one numbered `number`, with a current or intended length of `bytes`.
/// Unreadable content proves nothing.
pub(super) fn holds(file: &File, number: u64, bytes: u64) -> bool {
    // Readahead around a piece would be useless.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
    let holds = examine(file, number, bytes).unwrap_or(false);
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Normal);
    // Leaves the cache as a starting job expects it.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    holds
}

fn examine(file: &File, number: u64, bytes: u64) -> io::Result<bool> {
    let found = file.metadata()?;
    let sector = SECTOR_BYTES as u64;
    // A partial sector proves nothing; it counts as ours if the length is as expected.
    let has_our_length = found.len() == bytes || found.len().is_multiple_of(sector);
    // Direct requests end at a block boundary; the rest is then truncated.
    if found.len() > bytes.next_multiple_of(4096) || !has_our_length {
        return Ok(false);
    }
    let end = found.len() - found.len() % sector;
    let mut look = Look { file, number, buffer: vec![0; READ_BYTES.min(end) as usize], proven: false };
    if found.blocks().saturating_mul(512) <= WHOLE_BYTES || end <= SAMPLES * SAMPLE_BYTES {
        return Ok(look.is_ours(0, end)? && look.proven);
    }
    // Appended data would be at the end.
    if !look.is_ours(end - SAMPLE_BYTES, end)? {
        return Ok(false);
    }
    let mut chance = Stream::new(number, 0, Purpose::Sample);
    let part = end / SAMPLES;
    for sample in 0..SAMPLES {
        let inside = chance.below(part.saturating_sub(SAMPLE_BYTES) / sector + 1) * sector;
        let from = (sample * part + inside) / sector * sector;
        if !look.is_ours(from, (from + SAMPLE_BYTES).min(end))? {
            return Ok(false);
        }
    }
    Ok(look.proven)
}

struct Look<'a> {
    file: &'a File,
    number: u64,
    buffer: Vec<u8>,
    /// Whether a sector of ours was found.
    proven: bool,
}

impl Look<'_> {
    /// Whether there is no foreign data from `from` to `to`, both at sector boundaries.
    fn is_ours(&mut self, from: u64, to: u64) -> io::Result<bool> {
        let mut at = from;
        while at < to {
            at = match rustix::fs::seek(self.file, SeekFrom::Data(at)) {
                Ok(data) => data - data % SECTOR_BYTES as u64,
                // Only a hole up to the end.
                Err(Errno::NXIO) => return Ok(true),
                // The file system cannot tell.
                Err(_) => at,
            };
            if at >= to {
                break;
            }
            let len = (to - at).min(self.buffer.len() as u64) as usize;
            self.file.read_exact_at(&mut self.buffer[..len], at)?;
            for sector in self.buffer[..len].chunks_exact(SECTOR_BYTES) {
                if proves(self.number, sector, at) {
                    self.proven = true;
                } else if sector.iter().any(|byte| *byte != 0) {
                    return Ok(false);
                }
                at += SECTOR_BYTES as u64;
            }
        }
        Ok(true)
    }
}
