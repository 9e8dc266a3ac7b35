//! Whether the content of a file proves that it is ours.
//!
//! Each sector that we lay or that jobs write carries sixteen bytes that nobody else could have put there
//! (`payload::proof`). Zeroes are no evidence: a hole, or space that was only allocated; nothing is lost with them. Whatever
//! else is found is somebody's, and one such sector makes the file somebody's.

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
/// Pieces that are looked at of a larger file, one in each as large part of it, at random.
const SAMPLES: u64 = 4096;
/// Bytes of such a piece.
const SAMPLE_BYTES: u64 = 64 << 10;
/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// Opens the file for reading if it is the one that was `found` at `path`.
pub(super) fn open(path: &Path, found: &Metadata) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // Looking leaves no trace where that is allowed.
    let opened = rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty());
    let opened = opened.or_else(|_| rustix::fs::open(path, flags, Mode::empty()));
    let file = File::from(opened.ok()?);
    let same = |now: Metadata| (now.dev(), now.ino()) == (found.dev(), found.ino());
    file.metadata().is_ok_and(same).then_some(file)
}

/// Whether another run has the file locked for writing: then its content changes while one looks.
pub(super) fn is_locked(file: &File) -> bool {
    Locked::shared(file).is_err_and(|error| is_held(&error))
}

/// Whether the content proves that the file is the one numbered `number`, which is or shall be `bytes` long. What cannot be
/// read proves nothing.
pub(super) fn holds(file: &File, number: u64, bytes: u64) -> bool {
    // What lies around a piece is of no use.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
    let holds = examine(file, number, bytes).unwrap_or(false);
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Normal);
    // The cache is left as a job that begins expects it.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    holds
}

fn examine(file: &File, number: u64, bytes: u64) -> io::Result<bool> {
    let found = file.metadata()?;
    let sector = SECTOR_BYTES as u64;
    // The end of a sector proves nothing; it is ours where the length is as it should be.
    let has_our_length = found.len() == bytes || found.len().is_multiple_of(sector);
    // Direct requests end at a block of theirs; then the rest is cut off.
    if found.len() > bytes.next_multiple_of(4096) || !has_our_length {
        return Ok(false);
    }
    let end = found.len() - found.len() % sector;
    let mut look = Look { file, number, buffer: vec![0; READ_BYTES.min(end) as usize], proven: false };
    if found.blocks().saturating_mul(512) <= WHOLE_BYTES || end <= SAMPLES * SAMPLE_BYTES {
        return Ok(look.is_ours(0, end)? && look.proven);
    }
    // What is appended is at the end.
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
    /// A sector of ours was met.
    proven: bool,
}

impl Look<'_> {
    /// Whether nothing of anybody else's lies from `from` to `to`, both at sectors.
    fn is_ours(&mut self, from: u64, to: u64) -> io::Result<bool> {
        let mut at = from;
        while at < to {
            at = match rustix::fs::seek(self.file, SeekFrom::Data(at)) {
                Ok(data) => data - data % SECTOR_BYTES as u64,
                // Nothing but a hole up to the end.
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
