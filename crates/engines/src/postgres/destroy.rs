//! Removing a data set.

use super::place::Place;
use assay_measure::config::Settings;
use assay_run::engine::{EngineError, Line};

/// What would be removed.
pub(super) fn plan(_place: &Place, _settings: &Settings) -> Result<Vec<Line>, EngineError> {
    Err(EngineError::Unusable("not there yet".to_owned()))
}

/// Removes what the marker table names.
pub(super) fn destroy(_place: &Place, _settings: &Settings) -> Result<Vec<Line>, EngineError> {
    Err(EngineError::Unusable("not there yet".to_owned()))
}
