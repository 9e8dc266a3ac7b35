//! A throw-away server from installed binaries.

use assay_measure::config::Settings;
use assay_run::engine::{EngineError, Progress, Started};
use assay_run::stop::Stop;

/// Starts it.
pub(super) fn start(
    _version: Option<&str>,
    _settings: &Settings,
    _stop: &Stop,
    _progress: &dyn Progress,
) -> Result<Started, EngineError> {
    Err(EngineError::Unusable("not there yet".to_owned()))
}
