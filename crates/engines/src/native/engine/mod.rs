//! Runs sessions on a native data set.

use assay_measure::config::Settings;
use assay_run::engine::{Engine, EngineError};
use assay_run::plan::Plan;
use std::path::Path;

/// Opens the data set in `dir` for a run of `plan`.
///
/// # Errors
/// `Unusable`: this build has the data set's life cycle only.
pub fn open(
    dir: &Path,
    _plan: &Plan,
    _settings: &Settings,
) -> Result<Box<dyn Engine>, EngineError> {
    Err(EngineError::Unusable(format!(
        "this build cannot run sessions on {}",
        dir.display()
    )))
}
