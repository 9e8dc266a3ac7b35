//! Many reads or writes at once through a ring of recovery's own.

use crate::errors::is_full;
use crate::files::Files;
use assay_block::{Backend, Buffer, CompletionLease, Ring, RingOptions};
use assay_run::engine::EngineError;
use std::time::Duration;

/// Bytes of one request at most.
pub(super) const REQUEST_BYTES: usize = 128 * 1024;
/// Requests in flight at most.
const DEPTH: usize = 64;

/// A run of bytes in a file of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) file: u16,
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

/// The ring, and whose files it serves.
pub(super) struct Io<'a> {
    ring: Ring,
    files: &'a Files,
}

impl<'a> Io<'a> {
    /// A ring over the data set's files.
    ///
    /// # Errors
    /// `Unusable` when none can be set up.
    pub(super) fn open(files: &'a Files, backend: Backend) -> Result<Self, EngineError> {
        let ring = Ring::open(RingOptions {
            entries: DEPTH as u32,
            buffers: DEPTH,
            buffer_bytes: REQUEST_BYTES,
            pool: None,
            files: files.list.clone(),
            backend,
            helpers: 8,
        })
        .map_err(|e| EngineError::Unusable(format!("recovery's ring: {e}")))?;
        Ok(Self { ring, files })
    }

    /// Reads all spans, as many at a time as fit, and hands each to `done` in the order of completion.
    ///
    /// # Errors
    /// The first that fails or ends early, named; `done`'s own.
    pub(super) fn read(
        &mut self,
        spans: &[Span],
        done: impl FnMut(usize, &[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let start = |ring: &mut Ring, span: &Span, buffer: Buffer, at: usize| {
            ring.read_buffer(span.file, span.offset, buffer, span.bytes, at as u64)
                .is_ok()
        };
        self.transfer(spans, "read", start, done)
    }

    /// Writes all spans, each filled by `fill`. Durable only after [`Io::sync`].
    ///
    /// # Errors
    /// The first that fails or is cut short, named.
    pub(super) fn write(
        &mut self,
        spans: &[Span],
        mut fill: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), EngineError> {
        let start = |ring: &mut Ring, span: &Span, mut buffer: Buffer, at: usize| {
            fill(at, &mut buffer[..span.bytes]);
            ring.write_buffer(span.file, span.offset, buffer, span.bytes, false, at as u64)
                .is_ok()
        };
        self.transfer(spans, "write", start, |_, _| Ok(()))
    }

    /// Keeps the ring full of what `start` starts until all spans are done; `start` says whether there was room.
    fn transfer(
        &mut self,
        spans: &[Span],
        doing: &str,
        mut start: impl FnMut(&mut Ring, &Span, Buffer, usize) -> bool,
        mut done: impl FnMut(usize, &[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut next = 0;
        let mut left = spans.len();
        while left > 0 {
            while let Some(span) = spans.get(next) {
                let Some(buffer) = self.ring.take_buffer() else {
                    break;
                };
                if !start(&mut self.ring, span, buffer, next) {
                    break;
                }
                next += 1;
            }
            self.wait()?;
            while let Some(completion) = self.ring.pop() {
                left -= 1;
                let at = completion.tag as usize;
                self.expect(&spans[at], doing, &completion.result)?;
                if let CompletionLease::Buffer(buffer) = completion.lease {
                    done(at, &buffer[..spans[at].bytes])?;
                }
            }
        }
        Ok(())
    }

    /// Makes everything written to the data files and the undo file durable. Never tried twice: after an
    /// error the kernel may have dropped what it could not write.
    ///
    /// # Errors
    /// The file that could not be synchronised.
    pub(super) fn sync(&self) -> Result<(), EngineError> {
        for file in &self.files.list[..=usize::from(self.files.undo)] {
            file.sync_data().map_err(crate::errors::engine_error)?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), EngineError> {
        self.ring
            .submit(1, Duration::from_millis(100))
            .map_err(|e| EngineError::Unusable(format!("recovery's ring failed: {e}")))
    }

    fn expect(
        &self,
        span: &Span,
        doing: &str,
        result: &std::io::Result<u32>,
    ) -> Result<(), EngineError> {
        let path = self.files.path(span.file).display();
        let place = format!("{path} at byte {}", span.offset);
        match result {
            Ok(bytes) if *bytes as usize == span.bytes => Ok(()),
            Ok(bytes) => Err(EngineError::Unusable(format!(
                "recovery: a {doing} of {} bytes from {place} came to {bytes}",
                span.bytes
            ))),
            Err(error) if is_full(error) => Err(EngineError::Unusable(format!(
                "no space left to {doing} {place}: {error}"
            ))),
            Err(error) => Err(EngineError::Io {
                what: format!("recovery cannot {doing} {place}"),
                source: std::io::Error::new(error.kind(), error.to_string()),
            }),
        }
    }
}
