//! The state of a clone's read-back, and which jobs verify.

use crate::readings::Way;
use crate::spec::{JobOptions, Verify};
use crate::verify::ExpectedWrite;
use assay_measure::clock::Ns;

/// The read-back of one clone.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    /// The write that each lane's read is expected to return.
    pub(super) expected: Vec<ExpectedWrite>,
    /// Whether it is in progress.
    pub(super) under_way: bool,
    /// Time spent on it, ns.
    pub(super) spent_ns: Ns,
}

impl ReadBack {
    pub(super) fn new(lanes: u32) -> Self {
        Self { expected: vec![ExpectedWrite::default(); lanes as usize], ..Self::default() }
    }
}

/// Whether the job checks what it wrote, or what it reads.
pub(super) fn verifies(options: &JobOptions) -> bool {
    options.payload.verify != Verify::None
}

/// Whether the job reads back what it wrote.
pub(super) fn reads_back(options: &JobOptions) -> bool {
    verifies(options) && options.pattern.mode.goes(Way::Write)
}
