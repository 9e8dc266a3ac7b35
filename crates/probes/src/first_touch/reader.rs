//! Reads of files and devices past the page cache, one at a time or many in flight; each wait has a deadline.

use super::READERS;
use super::layout::{PIECE_BYTES, Spot};
use super::sample::Reads;
use crate::scratch::failed;
use assay_block::{Backend, BlockError, Buffer, Completion, CompletionLease, DirectFile, Ring, RingOptions};
use assay_measure::clock::{Clock, Ns};
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::sync::Arc;
use std::time::Duration;

/// One wait in the kernel.
const WAIT: Duration = Duration::from_millis(50);
/// A read that takes longer ends the test; after a stop request, one that takes this long.
const DEADLINE: Duration = Duration::from_secs(60);
const DEADLINE_STOPPED: Duration = Duration::from_secs(5);

/// What was read in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Streamed {
    pub(super) bytes: u64,
    pub(super) elapsed_s: f64,
}

/// The files, open for reading.
pub(super) struct RingReader<'a> {
    /// `None` once a read did not come back: its drop would wait for it.
    ring: Option<Ring>,
    files: &'a [Arc<DirectFile>],
    clock: &'a Clock,
    stop: &'a Stop,
}

impl<'a> RingReader<'a> {
    pub(super) fn open(files: &'a [Arc<DirectFile>], clock: &'a Clock, stop: &'a Stop) -> Result<Self, EngineError> {
        let ring = Ring::open(RingOptions {
            entries: READERS as u32,
            buffers: READERS,
            buffer_bytes: PIECE_BYTES as usize,
            pool: None,
            files: files.to_vec(),
            backend: Backend::Auto,
            helpers: READERS,
        });
        Ok(Self { ring: Some(ring.map_err(failed)?), files, clock, stop })
    }

    /// Reads pieces, so many at a time and so many bytes a second at most, until there are no more or `goes_on`, which is told the bytes
    /// read so far, says no. Those in flight are waited for.
    pub(super) fn stream(
        &mut self,
        pieces: &mut dyn Iterator<Item = Spot>,
        readers: usize,
        bytes_per_s: Option<u64>,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Streamed, EngineError> {
        let begun = self.clock.now_ns();
        let (mut bytes, mut asked, mut moved_at) = (0, 0_u64, begun);
        let mut next = pieces.next();
        loop {
            let now = self.clock.now_ns();
            let is_over = !goes_on(bytes);
            let allowed = bytes_per_s.map_or(u64::MAX, |rate| ((now - begun) as f64 / 1e9 * rate as f64) as u64);
            while let Some(piece) = next.filter(|_| !is_over && asked <= allowed && self.in_flight() < readers) {
                asked += u64::from(piece.bytes);
                self.start(piece)?;
                next = pieces.next();
            }
            if self.in_flight() == 0 {
                if is_over || next.is_none() {
                    return Ok(Streamed { bytes, elapsed_s: (self.clock.now_ns() - begun) as f64 / 1e9 });
                }
                let due_ns = (asked - allowed) as f64 / bytes_per_s.unwrap_or(1) as f64 * 1e9;
                std::thread::sleep(Duration::from_nanos(due_ns as u64 + 1).min(WAIT));
                moved_at = self.clock.now_ns();
                continue;
            }
            while let Some(done) = self.reap()? {
                bytes += u64::from(done);
                moved_at = self.clock.now_ns();
            }
            self.check_deadline(moved_at)?;
        }
    }

    fn ring(&mut self) -> Result<&mut Ring, EngineError> {
        self.ring.as_mut().ok_or_else(late)
    }

    fn in_flight(&self) -> usize {
        self.ring.as_ref().map_or(0, Ring::in_flight)
    }

    fn start(&mut self, spot: Spot) -> Result<(), EngineError> {
        let ring = self.ring()?;
        let buffer: Buffer = ring.take_buffer().expect("there are as many buffers as reads in flight");
        let taken = ring.read_buffer(spot.file, spot.at, buffer, spot.bytes as usize, u64::from(spot.file));
        taken.map_err(|_| EngineError::Unusable("the ring takes no more reads".to_owned()))
    }

    /// Bytes of a read that ended; `None` where none has within a short wait.
    fn reap(&mut self) -> Result<Option<u32>, EngineError> {
        let ring = self.ring()?;
        let ended = match ring.pop() {
            Some(ended) => Some(ended),
            None if ring.in_flight() > 0 => {
                ring.submit(1, WAIT).map_err(failed)?;
                ring.pop()
            }
            None => None,
        };
        let Some(Completion { tag, result, lease, .. }) = ended else { return Ok(None) };
        if let CompletionLease::Buffer(buffer) = lease {
            ring.give_back(buffer);
        }
        let path = self.files[tag as usize].path();
        let told = |source| failed(BlockError::Io { path: path.to_path_buf(), what: "read", source });
        result.map(Some).map_err(told)
    }

    fn check_deadline(&mut self, since: Ns) -> Result<(), EngineError> {
        let is_stopped = self.stop.requested();
        let deadline = if is_stopped { DEADLINE_STOPPED } else { DEADLINE };
        if self.clock.now_ns() - since < deadline.as_nanos() as u64 {
            return Ok(());
        }
        // Dropped, it would wait for the read that does not come back.
        std::mem::forget(self.ring.take());
        Err(if is_stopped { EngineError::Interrupted } else { late() })
    }
}

fn late() -> EngineError {
    EngineError::Unusable(format!("a read has not come back for {} s: the device does not answer", DEADLINE.as_secs()))
}

impl Reads for RingReader<'_> {
    fn read(&mut self, spot: Spot) -> Result<Option<Ns>, EngineError> {
        let begun = self.clock.now_ns();
        self.start(spot)?;
        loop {
            let done = self.reap()?;
            let now = self.clock.now_ns();
            if let Some(bytes) = done {
                return Ok((bytes == spot.bytes).then_some(now - begun));
            }
            self.check_deadline(begun)?;
        }
    }

    fn is_cached(&self, spot: Spot) -> bool {
        self.files[usize::from(spot.file)].has_cached(spot.at, spot.bytes as usize)
    }
}
