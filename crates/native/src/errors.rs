//! What the block layer and the operating system report, in the engine's words.

use assay_block::BlockError;
use assay_run::engine::EngineError;
use std::io;
use std::path::Path;

/// The engine's word for what the block layer reports: no space, in use and refusals are
/// the host's to mend, the rest is the operating system's answer.
pub(super) fn engine_error(error: BlockError) -> EngineError {
    match error {
        BlockError::Io { path, what, source } if is_full(&source) => {
            EngineError::Unusable(format!("no space left to {what} {}: {source}", path.display()))
        }
        BlockError::Io { path, what, source } => {
            EngineError::Io { what: format!("cannot {what} {}", path.display()), source }
        }
        other => EngineError::Unusable(other.to_string()),
    }
}

/// Whether the file system or the quota is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// Whether the path, or a directory on the way to it, is not there.
pub(super) fn absent(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(super) fn io_error(doing: &str, path: &Path, source: io::Error) -> EngineError {
    EngineError::Io { what: format!("{doing} {}", path.display()), source }
}
