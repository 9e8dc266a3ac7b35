//! What a database needs of a box: where a figure becomes a warning and where a failure, each with its source.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Two limits of a need.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// From where on it is a warning.
    pub warn: f64,
    /// From where on it is a failure.
    pub fail: f64,
}

/// Limits by need, instead of those that a need brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goals(BTreeMap<String, Limits>);

impl Goals {
    pub(crate) fn given(given: BTreeMap<String, Limits>) -> Self {
        Self(given)
    }

    /// The limits that the file gives for a need.
    pub(crate) fn of(&self, need: &str) -> Option<Limits> {
        self.0.get(need).copied()
    }
}
