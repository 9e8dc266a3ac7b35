//! Writes the content of our own files.
//!
//! Jobs must later read real data. A hole, or space that was only allocated, reads as zeroes without any device being
//! asked, and the layers below may compress or deduplicate zeroes or repeated blocks. So this module writes random
//! data, with several large direct requests at once, and then syncs it.

use super::super::payload::{Payload, proof};
use super::super::spec::{Fallocate, JobOptions};
use super::{cannot, failed};
use crate::readings::Way;
use assay_block::{Backend, DirectFile, OpenMode, Preallocate, Ring, RingOptions};
use assay_measure::prng::{Purpose, Stream};
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use rustix::fs::Advice;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes per request.
const PIECE_BYTES: u64 = 1 << 20;
/// Requests in flight.
const DEPTH: u32 = 8;
/// Alignment of the offsets and lengths of direct requests.
const ALIGNMENT: u64 = 4096;
/// Seed of the content, the same in every run.
const CONTENT_SEED: u64 = 0x6173_7361_7920_696f;
/// How often to check for a stop request while waiting.
const TICK: Duration = Duration::from_millis(200);

/// A file of ours to write in whole or from some byte to its end.
pub(super) struct Task<'a> {
    pub(super) path: &'a Path,
    /// Open for writing.
    pub(super) file: &'a File,
    /// First byte to write.
    pub(super) from: u64,
    /// Final length of the file.
    pub(super) to: u64,
    pub(super) fallocate: Fallocate,
    /// `create_fsync`
    pub(super) sync: bool,
    /// Content requested by the job, and its block size; `None` for random data.
    pub(super) content: Option<(Payload, usize)>,
    /// Number of the file, which its content must prove.
    pub(super) number: u64,
}

/// The content requested by a job's buffer options; `None` if random data will do.
pub(super) fn content_of(options: &JobOptions) -> Option<(Payload, usize)> {
    let payload = &options.payload;
    let asked = payload.zero || payload.pattern.is_some() || payload.compress_percent > 0 || payload.dedupe_percent > 0;
    let block = options.pattern.blocks[Way::Write.index()].min.max(512) as usize;
    asked.then(|| (Payload::new(payload, 0, CONTENT_SEED), block))
}

/// Writes the first block of a new file, so that the file proves from the start that it is ours.
///
/// # Errors
/// Too little space, I/O errors.
pub(super) fn anchor(task: &Task<'_>) -> Result<(), EngineError> {
    let mut block = vec![0; task.to.min(ALIGNMENT) as usize];
    if task.content.is_some() {
        return Ok(());
    }
    fill(&mut None, &mut block, task.number, 0);
    task.file.write_all_at(&block, 0).map_err(|error| cannot("write to", task.path, error))
}

/// Sets the length of a file and allocates its space according to `fallocate`, without writing data.
///
/// # Errors
/// Too little space, I/O errors.
pub(super) fn allocate(task: &Task<'_>) -> Result<(), EngineError> {
    let how = match task.fallocate {
        Fallocate::None => Preallocate::None,
        Fallocate::Native => Preallocate::Native,
        Fallocate::Posix => Preallocate::Posix,
        Fallocate::Keep => Preallocate::Keep,
        Fallocate::Truncate => Preallocate::Truncate,
    };
    let done = open(task, false)?.preallocate(how, task.to).map_err(failed)?;
    if !done && matches!(how, Preallocate::Native | Preallocate::Posix) {
        // The file system cannot allocate; jobs still expect the length.
        set_len(task)?;
    }
    Ok(())
}

/// Writes random data from `from` to `to`, syncs it and drops it from the page cache. Calls `wrote` with the bytes of
/// each piece. `Interrupted` leaves the file partly written.
///
/// # Errors
/// Too little space, I/O errors, a stop request.
pub(super) fn write(task: &Task<'_>, stop: &Stop, wrote: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
    allocate(task)?;
    let len = task.file.metadata().map_err(|error| cannot("examine", task.path, error))?.len();
    if len < task.to {
        // Writes that do not extend the file can run concurrently.
        set_len(task)?;
    }
    pump(task, stop, wrote)?;
    let found = task.file.metadata().map_err(|error| cannot("examine", task.path, error))?;
    let end = task.to.max(len);
    if found.len() > end {
        // The last piece was rounded up to the alignment of direct requests.
        task.file.set_len(end).map_err(|error| cannot("set the length of", task.path, error))?;
    }
    if task.sync {
        task.file.sync_all().map_err(|error| cannot("synchronise", task.path, error))?;
    }
    // Only advice: a job that opens the file drops a warm cache again.
    let _ = rustix::fs::fadvise(task.file, 0, None, Advice::DontNeed);
    Ok(())
}

fn set_len(task: &Task<'_>) -> Result<(), EngineError> {
    let found = task.file.metadata().map_err(|error| cannot("examine", task.path, error))?;
    if found.len() >= task.to {
        return Ok(());
    }
    task.file.set_len(task.to).map_err(|error| cannot("set the length of", task.path, error))
}

fn open(task: &Task<'_>, direct: bool) -> Result<DirectFile, EngineError> {
    let mode = OpenMode { read: true, write: true, direct };
    DirectFile::open(task.path, mode).map_err(failed)
}

fn pump(task: &Task<'_>, stop: &Stop, wrote: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
    let mut ring = Ring::open(RingOptions {
        entries: DEPTH,
        buffers: DEPTH as usize,
        buffer_bytes: PIECE_BYTES as usize,
        pool: None,
        files: vec![Arc::new(open(task, true)?)],
        backend: Backend::Auto,
        helpers: DEPTH as usize,
    })
    .map_err(failed)?;
    let end = task.to.next_multiple_of(ALIGNMENT);
    let mut at = task.from - task.from % ALIGNMENT;
    let mut content = task.content.clone();
    let mut outcome = Ok(());
    loop {
        while outcome.is_ok() && at < end {
            if stop.requested() {
                outcome = Err(EngineError::Interrupted);
                break;
            }
            let Some(mut buffer) = ring.take_buffer() else {
                break;
            };
            // Pieces end at multiples of their size, so that none crosses a stripe unnecessarily.
            let bytes = (PIECE_BYTES - at % PIECE_BYTES).min(end - at);
            let piece = &mut buffer[..bytes as usize];
            fill(&mut content, piece, task.number, at);
            let queued = ring.write_buffer(0, at, buffer, bytes as usize, false, bytes);
            assert!(queued.is_ok(), "there are as many entries as buffers");
            at += bytes;
        }
        if ring.in_flight() == 0 {
            return outcome;
        }
        ring.submit(1, TICK).map_err(failed)?;
        while let Some(completion) = ring.pop() {
            let judged = match completion.result {
                Ok(bytes) if u64::from(bytes) == completion.tag => {
                    wrote(completion.tag);
                    Ok(())
                }
                // A short write means that the space is exhausted.
                Ok(_) => Err(cannot("write to", task.path, Errno::NOSPC)),
                Err(error) => Err(cannot("write to", task.path, error)),
            };
            outcome = outcome.and(judged);
        }
    }
}

/// Fills a piece that starts at `at`.
fn fill(content: &mut Option<(Payload, usize)>, piece: &mut [u8], number: u64, at: u64) {
    let Some((payload, block)) = content else {
        Stream::new(CONTENT_SEED, at, Purpose::Load).fill(piece);
        // Treats each sector as a separate write, so that no sector repeats another.
        for (sector, place) in piece.chunks_mut(proof::SECTOR_BYTES).zip(0_u64..) {
            let offset = at + place * proof::SECTOR_BYTES as u64;
            proof::stamp(number, sector, offset, offset / proof::SECTOR_BYTES as u64 + 1);
        }
        return;
    };
    let mut offset = at;
    for part in piece.chunks_mut(*block) {
        payload.prepare(part, number, offset, true);
        offset += part.len() as u64;
    }
}
