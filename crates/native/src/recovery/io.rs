//! Many reads or writes at once through a ring of recovery's own.

use crate::bulk::{Piece, Pump};
use crate::errors::engine_error;
use crate::files::Files;
use assay_block::Backend;
use assay_run::engine::EngineError;

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

impl Span {
    fn piece(self) -> Piece {
        Piece { file: self.file, offset: self.offset, bytes: self.bytes, first: None }
    }
}

/// The ring, and whose files it serves.
pub(super) struct Io<'a> {
    pump: Pump<'a>,
    files: &'a Files,
}

impl<'a> Io<'a> {
    /// A ring over the data set's files.
    ///
    /// # Errors
    /// `Unusable` when none can be set up.
    pub(super) fn open(files: &'a Files, backend: Backend) -> Result<Self, EngineError> {
        let pump = Pump::open(files, backend, DEPTH, REQUEST_BYTES)?;
        Ok(Self { pump, files })
    }

    /// Reads all spans, as many at a time as fit, and hands each to `done` in the order of completion.
    ///
    /// # Errors
    /// The first that fails or ends early, named; `done`'s own.
    pub(super) fn read(
        &mut self,
        spans: &[Span],
        mut done: impl FnMut(usize, &[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut pieces = spans.iter().map(|span| span.piece());
        let done = |number, _: &Piece, bytes: &[u8]| done(number, bytes);
        self.pump.run(|| pieces.next(), None, done)
    }

    /// Writes all spans, each filled by `fill`. Durable only after [`Io::sync`].
    ///
    /// # Errors
    /// The first that fails or is cut short, named.
    pub(super) fn write(&mut self, spans: &[Span], mut fill: impl FnMut(usize, &mut [u8])) -> Result<(), EngineError> {
        let mut pieces = spans.iter().map(|span| span.piece());
        let mut fill = |number, _: &Piece, buffer: &mut [u8]| fill(number, buffer);
        self.pump.run(|| pieces.next(), Some(&mut fill), |_, _, _| Ok(()))
    }

    /// Makes everything written to the data files and the undo file durable. Never tried twice: after an
    /// error the kernel may have dropped what it could not write.
    ///
    /// # Errors
    /// The file that could not be synchronised.
    pub(super) fn sync(&self) -> Result<(), EngineError> {
        for file in &self.files.list[..=usize::from(self.files.undo)] {
            file.sync_data().map_err(engine_error)?;
        }
        Ok(())
    }
}
