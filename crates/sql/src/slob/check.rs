//! Checking a data set: the SLOB schemas that are loaded, one after the other.

use super::job::{Job, Jobs};
use crate::checked::Level;
use crate::marked::{Marked, Marker, Own};
use assay_measure::config::Settings;
use std::sync::Arc;

/// What a check reads and expects.
pub(crate) struct Checked<X = (), E = ()> {
    pub(crate) marker: Marker<X>,
    pub(crate) level: Level,
    /// What only this database's check needs.
    pub(crate) own: E,
}

impl<D, X, E> Job<D, Checked<X, E>>
where
    D: Jobs,
    X: Own + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Checks all loaded schemas, as the settings request.
    pub(crate) fn check(at: &D::At, found: &Marked<X>, settings: &Settings, own: E) -> Arc<Self> {
        let what = Checked { marker: found.marker.clone(), level: Level::asked(settings), own };
        let bytes = what.marker.schema_bytes() * found.loaded.len() as u64;
        Self::new(at, what, ("check", bytes), found.loaded.iter().copied().collect())
    }

    /// Counts another checked schema.
    pub(crate) fn checked(&self) {
        self.done(self.what.marker.schema_bytes());
    }
}
