//! What a session owns of its open transaction.

use super::redo::RedoClaim;
use crate::layout::Page;

/// What a session's open transaction owns.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(super) open: bool,
    pub(super) id: u64,
    pub(super) redo: Vec<u8>,
    pub(super) records: u64,
    pub(super) frames: Vec<u32>,
    pub(super) locks: Vec<Page>,
    pub(super) extents: Vec<u32>,
    pub(super) undo_block: u64,
    pub(super) undo_offset: usize,
    pub(super) undo_page: Option<Page>,
    pub(super) undo_frame: u32,
    /// Rows changed.
    pub(super) rows: u64,
    pub(super) header_known: bool,
    /// This transaction has gotten its current undo block, and keeps it at hand until it ends.
    pub(super) undo_known: bool,
    pub(super) end_lsn: u64,
    pub(super) image: Vec<u8>,
    pub(super) column: Vec<u8>,
    /// The right to publish what is private now; held from before the first change on.
    pub(super) claim: Option<RedoClaim>,
}
