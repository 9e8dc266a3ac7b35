//! The load: one kind of operation at a depth, counted by slices of time.

use crate::scratch::MARKER_BYTES;
use crate::sync::stamp;
use assay_block::{Backend, BlockError, Buffer, CompletionLease, DirectFile, OpenMode, Ring, RingOptions};
use assay_measure::clock::Clock;
use assay_measure::prng::SplitMix64;
use assay_run::stop::Stop;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a slice is.
pub(super) const SLICE: Duration = Duration::from_millis(100);

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) name: &'static str,
    /// One of its operations, in words.
    pub(super) operation: &'static str,
    pub(super) bytes: u64,
    /// A write that is followed by `fdatasync`, instead of a read.
    pub(super) is_write: bool,
    /// Operations in flight before the pause and after it.
    pub(super) depths: [u32; 2],
}

/// All of them. Reads first: making the file took from the buckets of writes.
pub(super) const RESOURCES: [Resource; 3] = [
    Resource { name: "reads", operation: "8 KiB read", bytes: 8192, is_write: false, depths: [32, 128] },
    Resource { name: "bytes", operation: "1 MiB read", bytes: 1 << 20, is_write: false, depths: [4, 16] },
    Resource { name: "sync", operation: "4 KiB write + fdatasync", bytes: 4096, is_write: true, depths: [8, 32] },
];

/// One resource about to be loaded in the scratch file.
pub(super) struct Loader<'a> {
    pub(super) path: &'a Path,
    pub(super) file_bytes: u64,
    pub(super) resource: Resource,
    pub(super) clock: &'a Clock,
    pub(super) stop: &'a Stop,
}

impl Loader<'_> {
    /// Keeps so many operations in flight for so long. Operations that ended in each whole slice; the last ones in flight are waited for and
    /// count in none.
    pub(super) fn saturate(&self, depth: u32, time: Duration) -> Result<Vec<f64>, BlockError> {
        let Resource { bytes, is_write, .. } = self.resource;
        let file = DirectFile::open(self.path, OpenMode { read: !is_write, write: is_write, direct: true })?;
        let mut ring = Ring::open(RingOptions {
            entries: depth,
            buffers: depth as usize,
            buffer_bytes: (bytes as usize).next_multiple_of(4096),
            pool: None,
            files: vec![Arc::new(file)],
            backend: Backend::Auto,
            helpers: depth as usize,
        })?;
        let mut places = SplitMix64(self.clock.now_ns());
        let mut buffers: Vec<Buffer> = std::iter::from_fn(|| ring.take_buffer()).collect();
        buffers.iter_mut().for_each(|buffer| places.fill(buffer));
        let (begun, slice) = (self.clock.now_ns(), SLICE.as_nanos() as u64);
        let deadline = begun + time.as_nanos() as u64;
        let mut done = Vec::new();
        for buffer in buffers.drain(..) {
            self.start(&mut ring, buffer, &mut places);
        }
        loop {
            ring.submit(1, SLICE)?;
            let now = self.clock.now_ns();
            let over = now >= deadline || self.stop.requested();
            let at = ((now - begun) / slice) as usize;
            if !over && done.len() <= at {
                done.resize(at + 1, 0.0);
            }
            while let Some(completion) = ring.pop() {
                let moved = completion.result.map_err(|source| self.failed(source))?;
                let CompletionLease::Buffer(buffer) = completion.lease else {
                    // Only the second step of a write has no buffer: its own waits for it in the slab.
                    self.count(&mut done, over);
                    if let Some(buffer) = ring.take_buffer().filter(|_| !over) {
                        self.start(&mut ring, buffer, &mut places);
                    }
                    continue;
                };
                if u64::from(moved) != bytes {
                    return Err(self.failed(ErrorKind::UnexpectedEof.into()));
                }
                if is_write {
                    ring.give_back(buffer);
                    ring.sync_file(0, 0).map_err(|()| self.failed(ErrorKind::WouldBlock.into()))?;
                } else {
                    self.count(&mut done, over);
                    if !over {
                        self.start(&mut ring, buffer, &mut places);
                    }
                }
            }
            if ring.in_flight() == 0 {
                // The last slice is rarely a whole one.
                done.truncate((time.as_nanos() / SLICE.as_nanos()) as usize);
                if self.stop.requested() {
                    done.pop();
                }
                return Ok(done);
            }
        }
    }

    fn count(&self, done: &mut [f64], over: bool) {
        if let Some(last) = done.last_mut().filter(|_| !over) {
            *last += 1.0;
        }
    }

    /// An operation at a place by chance.
    fn start(&self, ring: &mut Ring, mut buffer: Buffer, places: &mut SplitMix64) {
        let bytes = self.resource.bytes;
        let first = MARKER_BYTES.next_multiple_of(bytes);
        let at = first + places.below((self.file_bytes - first) / bytes) * bytes;
        let taken = if self.resource.is_write {
            stamp(&mut buffer, 0, places.next_u64());
            ring.write_buffer(0, at, buffer, bytes as usize, false, 0)
        } else {
            ring.read_buffer(0, at, buffer, bytes as usize, 0)
        };
        taken.expect("there are as many entries as buffers");
    }

    fn failed(&self, source: std::io::Error) -> BlockError {
        let what = if self.resource.is_write { "write" } else { "read" };
        BlockError::Io { path: self.path.to_path_buf(), what, source }
    }
}
