//! Undo space: which session owns which extent of the undo file.
//!
//! The first blocks are the sessions' transaction headers, the rest is cut into extents that sessions take in turn and
//! release at commit. The queue makes sessions overwrite the file round-robin, as in a real undo tablespace.

use crate::layout::{Geometry, Page};
use assay_measure::locked::locked;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Blocks of one extent.
pub(crate) const EXTENT_BLOCKS: u64 = 8;

/// The undo file's extents.
pub(crate) struct UndoSpace {
    headers: u64,
    /// All there are.
    extents: usize,
    free: Mutex<VecDeque<u32>>,
}

impl UndoSpace {
    /// Space for `sessions` headers and all extents that fit behind them.
    pub(crate) fn new(geometry: &Geometry, sessions: usize) -> Self {
        let headers = sessions as u64;
        let extents = geometry.undo_blocks.saturating_sub(headers) / EXTENT_BLOCKS;
        Self { headers, extents: extents as usize, free: Mutex::new((0..extents as u32).collect()) }
    }

    /// Extents not in use.
    pub(crate) fn free_extents(&self) -> usize {
        locked(&self.free).len()
    }

    /// The transaction header of a session (numbered from 1).
    pub(crate) fn header_page(&self, geometry: &Geometry, session: u32) -> Page {
        geometry.undo_page(u64::from(session - 1))
    }

    /// Block `block` of an extent.
    pub(crate) fn page(&self, geometry: &Geometry, extent: u32, block: u64) -> Page {
        geometry.undo_page(self.headers + u64::from(extent) * EXTENT_BLOCKS + block)
    }

    /// Takes the extent that was free longest.
    pub(crate) fn take(&self) -> Option<u32> {
        locked(&self.free).pop_front()
    }

    /// Gives extents back.
    pub(crate) fn give_back(&self, extents: impl IntoIterator<Item = u32>) {
        let mut free = locked(&self.free);
        for extent in extents {
            debug_assert!(!free.contains(&extent), "U2: an extent has one owner; extent {extent} is given back twice");
            free.push_back(extent);
        }
        assert!(free.len() <= self.extents, "U2: an extent has one owner; {} of {} are free", free.len(), self.extents);
    }
}
