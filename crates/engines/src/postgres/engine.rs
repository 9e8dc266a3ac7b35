//! Sessions of a run.

use super::place::Place;
use assay_measure::config::Settings;
use assay_run::engine::{Engine, EngineError, Progress};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// Opens the data set for a run.
pub(super) fn open(
    _place: &Place,
    _plan: &Plan,
    _settings: &Settings,
    _stop: &Stop,
    _progress: &dyn Progress,
) -> Result<Box<dyn Engine>, EngineError> {
    Err(EngineError::Unusable("not there yet".to_owned()))
}
