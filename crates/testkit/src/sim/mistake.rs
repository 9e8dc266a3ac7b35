//! Mistakes of a disk's user, injected between it and the disk: a correct engine then looks like a faulty one.

use super::{SimDisk, State};
use std::path::Path;
use std::sync::Arc;

/// A mistake. What a method does not change happens as requested.
pub trait Mistake: std::fmt::Debug + Send + Sync {
    /// Where a write to this file goes and whether its completion means that it is durable; `None` where it is left out.
    fn write(&self, path: &Path, offset: u64, durable: bool) -> Option<(u64, bool)> {
        let _ = path;
        Some((offset, durable))
    }

    /// What becomes of a synchronisation of this file.
    fn sync(&self, path: &Path) -> Synced {
        let _ = path;
        Synced::AsAsked
    }

    /// Changes what was read from this file at `offset`.
    fn read(&self, path: &Path, offset: u64, bytes: &mut [u8]) {
        let _ = (path, offset, bytes);
    }
}

/// What becomes of a synchronisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synced {
    /// What was asked for.
    AsAsked,
    /// Nothing.
    LeftOut,
    /// It happens after the next one that happens.
    Late,
    /// Its failure is ignored.
    Unheard,
}

impl SimDisk {
    /// From now on the disk is used with this mistake, or with none.
    pub fn mistake(&self, mistake: Option<Arc<dyn Mistake>>) {
        let mut state = self.state();
        state.mistake = mistake;
        state.late.clear();
    }
}

impl State {
    /// Does the synchronisations that are late and due, as the next step begins.
    pub(super) fn catch_up(&mut self) {
        if std::mem::take(&mut self.late_is_due) {
            for file in std::mem::take(&mut self.late) {
                self.settle(file);
            }
        }
    }
}
