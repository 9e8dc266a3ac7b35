//! The clones that run at the same time.

use super::board::Board;
use super::worker::CloneTask;
use crate::spec::JobOptions;

/// A wave and its board.
pub(super) struct Wave<'a> {
    pub(super) board: &'a Board,
    pub(super) tasks: &'a [CloneTask<'a>],
    /// Numbers of the report groups, in the order of the board.
    pub(super) groups: &'a [u32],
    /// Index of the wave's first clone among all clones.
    pub(super) first_clone: usize,
}

impl Wave<'_> {
    pub(super) fn options(&self, clone: usize) -> &JobOptions {
        self.tasks[clone].options
    }
}
