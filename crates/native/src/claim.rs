//! The claim on a data set: one command at a time, by the lock of its control file.

use super::control::CONTROL_NAME;
use super::control_file::ControlFile;
use assay_run::engine::EngineError;
use assay_run::lock::holder;
use std::path::Path;

/// Claims the data set in `dir` for as long as the control file is held.
///
/// # Errors
/// `Unusable`: another command has it, which is named where the kernel tells; I/O errors.
pub(super) fn take(dir: &Path) -> Result<ControlFile, EngineError> {
    match ControlFile::open_locked(dir) {
        Err(_) if ControlFile::in_use(dir)? => Err(in_use_error(dir)),
        opened => opened,
    }
}

/// The refusal of a data set that somebody uses.
pub(super) fn in_use_error(dir: &Path) -> EngineError {
    let who = holder(&dir.join(CONTROL_NAME)).map_or_else(String::new, |who| format!(" ({who})"));
    EngineError::Unusable(format!(
        "the data set in {} is in use by another assay process{who}; wait until it ends",
        dir.display()
    ))
}
