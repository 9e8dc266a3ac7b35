//! What is checked of what a clone reads, and what its reading back knows.

use crate::readings::Way;
use crate::spec::{JobOptions, Verify};
use crate::verify::ExpectedWrite;
use assay_measure::clock::Ns;

/// Reading back, of one clone.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    /// What each lane's read must bring.
    pub(super) expected: Vec<ExpectedWrite>,
    /// It is going on.
    pub(super) under_way: bool,
    /// Time spent in it, ns.
    pub(super) spent_ns: Ns,
}

impl ReadBack {
    pub(super) fn new(lanes: u32) -> Self {
        Self { expected: vec![ExpectedWrite::default(); lanes as usize], ..Self::default() }
    }
}

/// The job checks what it wrote, or what it reads.
pub(super) fn verifies(options: &JobOptions) -> bool {
    options.payload.verify != Verify::None
}

/// The job reads back what it wrote.
pub(super) fn reads_back(options: &JobOptions) -> bool {
    verifies(options) && options.pattern.mode.goes(Way::Write)
}
