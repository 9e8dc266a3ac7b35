//! Bulk I/O over a data set: a few threads with a ring each, in pieces of at most 1 MiB.
//!
//! Used by the load (direct path writes), the check (sequential reads) and, with a ring of its own, by recovery. It
//! knows pages, files and pieces; their content is up to its callers.

use super::errors::{engine_error, is_full};
use super::files::Files;
use super::layout::{Page, PageMap};
use assay_block::{Backend, Buffer, CompletionLease, Ring, RingOptions};
use assay_measure::locked::locked;
use assay_run::engine::{EngineError, Progress};
use assay_run::stop::Stop;
use assay_run::threads::spawn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Largest request, and the file alignment pieces are cut at.
pub(super) const PIECE_BYTES: u64 = 1 << 20;

/// Requests each thread keeps in flight.
const DEPTH: usize = 8;

/// Buffers of all threads together, so that 256 loaders do not take 2 GiB.
const MOST_BUFFERS: usize = 256;

/// How often progress is shown and a stop request is looked for.
const TICK: Duration = Duration::from_millis(200);

/// A run of blocks or bytes to be cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// Consecutive pages of the data files or of the undo file.
    Pages { first: Page, count: u64 },
    /// Part of a file that has no pages (redo).
    Bytes { file: u16, offset: u64, bytes: u64 },
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// File index.
    pub(super) file: u16,
    /// Byte offset in it.
    pub(super) offset: u64,
    /// Bytes, at most [`PIECE_BYTES`].
    pub(super) bytes: usize,
    /// First page, unless it is a part of a file without pages.
    pub(super) first: Option<Page>,
}

/// Cuts spans into pieces at file borders and at multiples of 1 MiB in the file.
pub(super) struct Pieces<I> {
    map: PageMap,
    spans: I,
    current: Option<Span>,
}

impl<I: Iterator<Item = Span>> Pieces<I> {
    pub(super) fn new(map: PageMap, spans: I) -> Self {
        Self { map, spans, current: None }
    }
}

impl<I: Iterator<Item = Span>> Iterator for Pieces<I> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            let span = match self.current.take() {
                Some(span) => span,
                None => self.spans.next()?,
            };
            match span {
                Span::Pages { count: 0, .. } | Span::Bytes { bytes: 0, .. } => {}
                Span::Pages { first, count } => {
                    let (file, offset) = self.map.locate(first);
                    let block_bytes = u64::from(self.map.geometry.block_bytes);
                    let aligned = (PIECE_BYTES - offset % PIECE_BYTES) / block_bytes;
                    let in_file = self.map.pages_in_run(first);
                    let blocks = count.min(aligned).min(in_file);
                    self.current = Some(Span::Pages { first: Page(first.0 + blocks), count: count - blocks });
                    return Some(Piece { file, offset, bytes: (blocks * block_bytes) as usize, first: Some(first) });
                }
                Span::Bytes { file, offset, bytes } => {
                    let step = bytes.min(PIECE_BYTES - offset % PIECE_BYTES);
                    self.current = Some(Span::Bytes { file, offset: offset + step, bytes: bytes - step });
                    return Some(Piece { file, offset, bytes: step as usize, first: None });
                }
            }
        }
    }
}

/// Judges the content of a piece.
pub(super) type Visit<'a> = &'a (dyn Fn(&Piece, &[u8]) -> Result<(), EngineError> + Sync);

/// What is done with each piece.
#[derive(Clone, Copy)]
pub(super) enum Job<'a> {
    /// Written.
    Write {
        /// Called once for each buffer, before its first use: what `fill` then need not repeat.
        dress: &'a (dyn Fn(&mut [u8]) + Sync),
        /// Makes the content of a piece.
        fill: &'a (dyn Fn(&Piece, &mut [u8]) + Sync),
    },
    /// Read.
    Read {
        /// Judges the content of a piece.
        visit: Visit<'a>,
    },
}

/// Receives the progress of long work.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Ends it early.
    pub stop: &'a Stop,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

/// What all threads of one phase share.
struct Shared<'a, I> {
    files: &'a Files,
    pieces: Mutex<I>,
    job: Job<'a>,
    done_bytes: AtomicU64,
    halt: AtomicBool,
}

/// Does `job` on all pieces with `threads` threads; `total_bytes` is for the progress line only.
///
/// # Errors
/// The first error of any thread, or `Interrupted`; nothing is in flight on return.
pub(super) fn transfer(
    files: &Files,
    threads: usize,
    pieces: impl Iterator<Item = Piece> + Send,
    job: Job<'_>,
    (phase, total_bytes): (&str, u64),
    watch: Watch<'_>,
) -> Result<(), EngineError> {
    let shared =
        Shared { files, pieces: Mutex::new(pieces), job, done_bytes: AtomicU64::new(0), halt: AtomicBool::new(false) };
    // A phase of a few pieces needs no more threads than pieces.
    let threads = threads.clamp(1, (total_bytes / PIECE_BYTES + 1).min(256) as usize);
    let depth = (MOST_BUFFERS / threads).clamp(2, DEPTH);
    let mut failure = None;
    std::thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for number in 0..threads {
            let (sender, shared) = (sender.clone(), &shared);
            let started = spawn(scope, format!("assay-load{number}"), move || {
                // The receiver outlives every sender: it waits for them to go.
                let _ = sender.send(pump(shared, depth));
            });
            if let Err(error) = started {
                shared.halt.store(true, Ordering::Release);
                failure = Some(error);
                break;
            }
        }
        drop(sender);
        loop {
            match results.recv_timeout(TICK) {
                Ok(Ok(())) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Err(error)) => {
                    shared.halt.store(true, Ordering::Release);
                    failure.get_or_insert(error);
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if watch.stop.requested() {
                shared.halt.store(true, Ordering::Release);
            }
            let done = shared.done_bytes.load(Ordering::Relaxed);
            watch.progress.update(phase, done, total_bytes);
        }
    });
    let done = shared.done_bytes.load(Ordering::Relaxed);
    watch.progress.update(phase, done, total_bytes);
    match failure {
        Some(error) => Err(error),
        None if shared.halt.load(Ordering::Acquire) => Err(EngineError::Interrupted),
        None => Ok(()),
    }
}

/// One thread: moves pieces until they run out or somebody says halt.
fn pump<I: Iterator<Item = Piece>>(shared: &Shared<'_, I>, depth: usize) -> Result<(), EngineError> {
    let mut pump = Pump::open(shared.files, Backend::Auto, depth, PIECE_BYTES as usize)?;
    let next = || {
        if shared.halt.load(Ordering::Acquire) {
            None
        } else {
            let mut pieces = locked(&shared.pieces);
            pieces.next()
        }
    };
    let count = |piece: &Piece| {
        let bytes = piece.bytes as u64;
        shared.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    };
    match shared.job {
        Job::Write { dress, fill } => {
            pump.dress(dress);
            pump.run(next, Some(&mut |_, piece, buffer| fill(piece, buffer)), |_, piece, _| {
                count(piece);
                Ok(())
            })
        }
        Job::Read { visit } => pump.run(next, None, |_, piece, bytes| {
            visit(piece, bytes)?;
            count(piece);
            Ok(())
        }),
    }
}

/// Makes the content of a piece, given with its number.
pub(super) type Fill<'a> = &'a mut dyn FnMut(usize, &Piece, &mut [u8]);

/// A ring over a data set's files that is kept full.
pub(super) struct Pump<'a> {
    ring: Ring,
    files: &'a Files,
    /// By tag, with the number of each.
    under_way: Vec<Option<(usize, Piece)>>,
}

impl<'a> Pump<'a> {
    /// Room for `depth` pieces of at most `bytes` each.
    ///
    /// # Errors
    /// `Unusable` when no ring can be set up.
    pub(super) fn open(files: &'a Files, backend: Backend, depth: usize, bytes: usize) -> Result<Self, EngineError> {
        let ring = Ring::open(RingOptions {
            entries: depth as u32,
            buffers: depth,
            buffer_bytes: bytes,
            pool: None,
            files: files.list.clone(),
            backend,
            helpers: depth.min(DEPTH),
        })
        .map_err(engine_error)?;
        Ok(Self { ring, files, under_way: vec![None; depth] })
    }

    /// Shows every buffer before its first use.
    fn dress(&mut self, dress: &dyn Fn(&mut [u8])) {
        let ring = &mut self.ring;
        let mut buffers: Vec<Buffer> = std::iter::from_fn(|| ring.take_buffer()).collect();
        buffers.iter_mut().for_each(|buffer| dress(buffer));
    }

    /// Writes the pieces that `next` gives, or reads them where there is no `fill`, as many at a time as there is room
    /// for; `done` has each when it has ended, with its number from 0, in whichever order.
    ///
    /// # Errors
    /// The first piece that fails or ends early, named; `done`'s own. Nothing more is begun then, and nothing is under
    /// way on return.
    pub(super) fn run(
        &mut self,
        mut next: impl FnMut() -> Option<Piece>,
        mut fill: Option<Fill<'_>>,
        mut done: impl FnMut(usize, &Piece, &[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let writes = fill.is_some();
        let mut outcome = Ok(());
        let mut number = 0;
        loop {
            while outcome.is_ok()
                && let Some(slot) = self.under_way.iter().position(Option::is_none)
                && let Some(piece) = next()
            {
                self.start(slot, (number, piece), &mut fill);
                number += 1;
            }
            if self.ring.in_flight() == 0 {
                return outcome;
            }
            self.ring.submit(1, TICK).map_err(engine_error)?;
            while let Some(completion) = self.ring.pop() {
                let (number, piece) =
                    self.under_way[completion.tag as usize].take().expect("a tag names the slot of its piece");
                let CompletionLease::Buffer(buffer) = completion.lease else {
                    unreachable!("only buffers are read and written here");
                };
                let judged = judge(self.files, &piece, writes, completion.result)
                    .and_then(|()| done(number, &piece, &buffer[..piece.bytes]));
                outcome = outcome.and(judged);
            }
        }
    }

    fn start(&mut self, slot: usize, (number, piece): (usize, Piece), fill: &mut Option<Fill<'_>>) {
        let (file, offset, bytes) = (piece.file, piece.offset, piece.bytes);
        let buffer = self.ring.take_buffer();
        let mut buffer = buffer.expect("there are as many buffers as slots");
        let queued = match fill {
            Some(fill) => {
                fill(number, &piece, &mut buffer[..bytes]);
                self.ring.write_buffer(file, offset, buffer, bytes, false, slot as u64)
            }
            None => self.ring.read_buffer(file, offset, buffer, bytes, slot as u64),
        };
        assert!(queued.is_ok(), "the ring has room for all buffers");
        self.under_way[slot] = Some((number, piece));
    }
}

fn judge(files: &Files, piece: &Piece, writes: bool, result: std::io::Result<u32>) -> Result<(), EngineError> {
    let path = files.path(piece.file).display();
    match result {
        Ok(moved) if moved as usize == piece.bytes => Ok(()),
        // A write that stops short of its end has met the end of the space.
        Ok(moved) if writes => Err(EngineError::Unusable(format!(
            "only {moved} of {} bytes could be written at byte {} of {path}: the file system may be full",
            piece.bytes, piece.offset
        ))),
        Ok(moved) => Err(EngineError::Damaged(format!(
            "{path} ends at byte {}, inside its data",
            piece.offset + u64::from(moved)
        ))),
        Err(e) if is_full(&e) => Err(EngineError::Unusable(format!("no space left while writing {path}: {e}"))),
        Err(source) => {
            let doing = if writes { "writing" } else { "reading" };
            Err(EngineError::Io { what: format!("{doing} {path} at byte {}", piece.offset), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Geometry, UNDO_BASE};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_cover_their_spans_once_and_in_order(
            first in 0u64..900, count in 0u64..900, per_file in 2u64..600, shift in 12u32..17,
            stripes in 1u16..5,
        ) {
            let map = Geometry {
                block_bytes: 1 << shift,
                schemas: 2,
                scale: 1000,
                scan_blocks: 8,
                seed: 0,
                undo_blocks: 2000,
                blocks_per_file: per_file,
                stripes,
            }
            .map();
            for base in [0, UNDO_BASE] {
                let span = Span::Pages { first: Page(base + first), count };
                let mut next = base + first;
                for piece in Pieces::new(map, std::iter::once(span)) {
                    prop_assert_eq!(piece.first, Some(Page(next)));
                    prop_assert_eq!((piece.file, piece.offset), map.locate(Page(next)));
                    let blocks = piece.bytes as u64 >> shift;
                    prop_assert!(blocks > 0);
                    let last = Page(next + blocks - 1);
                    let end = (piece.file, piece.offset + piece.bytes as u64 - (1 << shift));
                    prop_assert_eq!(end, map.locate(last));
                    prop_assert_eq!(piece.offset / PIECE_BYTES, end.1 / PIECE_BYTES);
                    next += blocks;
                }
                prop_assert_eq!(next, base + first + count);
            }
        }

        #[test]
        fn byte_spans_are_cut_at_every_mebibyte(offset in 0u64..3 << 20, bytes in 0u64..5 << 20) {
            let map = Geometry {
                block_bytes: 8192, schemas: 1, scale: 1, scan_blocks: 0, seed: 0,
                undo_blocks: 0, blocks_per_file: 2, stripes: 1,
            }
            .map();
            let mut next = offset;
            for piece in Pieces::new(map, std::iter::once(Span::Bytes { file: 3, offset, bytes })) {
                prop_assert_eq!(piece.offset, next);
                prop_assert!(piece.bytes as u64 <= PIECE_BYTES);
                next += piece.bytes as u64;
                prop_assert!(next == offset + bytes || next.is_multiple_of(PIECE_BYTES));
            }
            prop_assert_eq!(next, offset + bytes);
        }
    }
}
