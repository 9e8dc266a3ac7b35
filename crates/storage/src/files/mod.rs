//! The files of storage jobs: which ones, who owns them, what may be done to them.
//!
//! [`plan()`] looks without touching: it names every file of every clone, finds the part each clone
//! works on, refuses what must not be written, and says what has to be created. [`open`] then lays
//! out what is missing and opens the rest; [`Opened`] gives each clone its files and puts things
//! in order at the end. The rules stand in `docs/design/io-safety.md`. Called by the work loop;
//! knows nothing of I/O patterns and reports.

mod content;
mod layout;
mod look;
mod marker;
mod names;
mod opened;
mod plan;
mod precondition;
mod proof;
mod refusals;
mod regions;
mod space;

pub use marker::Whose;
pub use opened::{Opened, open};
pub use plan::{ClonePlan, FilePlan, Fill, PathState, PlannedFile, plan};
pub use precondition::note as precondition_note;

use assay_block::BlockError;
use assay_run::engine::EngineError;
use std::io;
use std::path::Path;

/// One error of several: each on its own line; the host's refusals decide the exit code before
/// errors of the command line do.
#[must_use]
pub fn join_errors(mut errors: Vec<EngineError>) -> EngineError {
    if errors.len() == 1
        && let Some(only) = errors.pop()
    {
        return only;
    }
    let all = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    if errors.iter().all(|error| matches!(error, EngineError::Usage(_))) {
        EngineError::Usage(all)
    } else {
        EngineError::Unusable(all)
    }
}

/// The engine's word for what the block layer reports.
fn failed(error: BlockError) -> EngineError {
    match error {
        BlockError::Io { path, what, source } => cannot(what, &path, source),
        other => EngineError::Unusable(other.to_string()),
    }
}

/// An operating system's answer; a full disk is the host's to mend.
pub(crate) fn cannot(what: &str, path: &Path, source: impl Into<io::Error>) -> EngineError {
    let source = source.into();
    let full = matches!(
        source.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    );
    if full {
        return EngineError::Unusable(format!(
            "no space left to {what} {}: {source}; make room or choose a smaller size=",
            path.display()
        ));
    }
    EngineError::Io { what: format!("cannot {what} {}", path.display()), source }
}

/// Bytes for people: the largest binary unit that divides them, or two decimals of the largest
/// that is not above them.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (bytes.max(1).ilog2() / 10).min(4) as usize;
    let unit = 1_u64 << (10 * power);
    if bytes.is_multiple_of(unit) {
        return format!("{} {}", bytes / unit, UNITS[power]);
    }
    format!("{:.2} {}", bytes as f64 / unit as f64, UNITS[power])
}

#[cfg(test)]
mod tests;
