//! Making a data set: plan, load, marker.

use super::place::Place;
use assay_measure::config::Settings;
use assay_run::engine::{DataSet, EngineError, Line, Progress};
use assay_run::stop::Stop;

/// The data set that is there, if any.
pub(super) fn find(_place: &Place, _settings: &Settings) -> Result<Option<DataSet>, EngineError> {
    Err(EngineError::Unusable("not there yet".to_owned()))
}

/// What [`prepare`] would do.
pub(super) fn plan(
    _place: &Place,
    _settings: &Settings,
    _schemas: u32,
) -> Result<Vec<Line>, EngineError> {
    Err(EngineError::Unusable("not there yet".to_owned()))
}

/// Loads and verifies.
pub(super) fn prepare(
    _place: &Place,
    _settings: &Settings,
    _schemas: u32,
    _stop: &Stop,
    _progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    Err(EngineError::Unusable("not there yet".to_owned()))
}
