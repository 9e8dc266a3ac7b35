//! Checking a data set: the SLOB schemas that are loaded, one after the other.

use super::job::{Job, Jobs};
use crate::checked::Level;
use crate::marked::{Marked, Marker, Own};
use assay_measure::config::Settings;
use std::sync::Arc;

/// What a check reads and expects.
pub(crate) struct Checked<X = ()> {
    pub(crate) marker: Marker<X>,
    pub(crate) level: Level,
}

impl<X: Own> Checked<X> {
    /// Plans the check of a data set by the settings.
    pub(crate) fn of(found: &Marked<X>, settings: &Settings) -> Self {
        Self { marker: found.marker.clone(), level: Level::asked(settings) }
    }

    /// Size of the tables of a SLOB schema.
    pub(crate) fn bytes(&self) -> u64 {
        (self.marker.scale + self.marker.scan_blocks) * self.marker.block_bytes
    }
}

impl<D: Jobs, X: Own + Send + Sync + 'static> Job<D, Checked<X>> {
    /// Checks all loaded schemas, as the settings request.
    pub(crate) fn check(at: &D::At, found: &Marked<X>, settings: &Settings) -> Arc<Self> {
        let what = Checked::of(found, settings);
        let bytes = what.bytes() * found.loaded.len() as u64;
        Self::new(at, what, ("check", bytes), found.loaded.iter().copied().collect())
    }

    /// Counts another checked schema.
    pub(crate) fn checked(&self) {
        self.done(self.what.bytes());
    }
}
