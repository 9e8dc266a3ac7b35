//! The files of storage jobs: their names, their owners, and what may be done to them.
//!
//! [`plan()`] only reads: it names every file of every clone, finds the part each clone works on, refuses what must not
//! be written, and lists what has to be created. [`open`] then lays out the missing files and opens the rest;
//! [`Opened`] gives each clone its files and cleans up at the end. `docs/design/io-safety.md` has the rules. The work
//! loop calls this module, which knows nothing of I/O patterns and reports.

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

/// Merges several errors into one, each on its own line. Refusals by the host take precedence over command-line errors
/// in the exit code.
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

/// Converts an error of the block layer.
fn failed(error: BlockError) -> EngineError {
    match error {
        BlockError::Io { path, what, source } => cannot(what, &path, source),
        other => EngineError::Unusable(other.to_string()),
    }
}

/// Converts an error of the operating system; a full disk counts as a problem of the host.
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

/// Bytes in readable form: in the largest binary unit that divides them, or else with two decimals in the largest unit
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
