//! The steps of the probe, and how its time is shared out.

use super::reading::{SyncMethod, SyncPart};

/// Parallel streams of the curve.
const STREAMS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Bytes of one write unless the step is about sizes.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Streams of the safety table's right half.
const MANY: u32 = 32;

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) part: SyncPart,
    pub(super) method: SyncMethod,
    /// The file grows with each write.
    pub(super) growing: bool,
    pub(super) streams: u32,
    pub(super) bytes: u64,
    /// Its part of the time, relative to the others.
    pub(super) weight: f64,
    /// Why it cannot be made here.
    pub(super) refused: Option<String>,
}

impl Step {
    fn new(part: SyncPart, method: SyncMethod, streams: u32) -> Self {
        Self { part, method, growing: false, streams, bytes: BLOCK_BYTES, weight: 1.0, refused: None }
    }

    /// For the progress line.
    pub(super) fn describe(&self) -> String {
        format!(
            "{}, {} x {} bytes, {} file",
            self.method.name(),
            self.streams,
            self.bytes,
            if self.growing { "new" } else { "preallocated" }
        )
    }
}

/// All steps. F0 gets the most time, since it is the figure whose tail is wanted.
pub(super) fn steps(logical_block_bytes: Option<u64>) -> Vec<Step> {
    use SyncMethod::{Dsync, Fdatasync, Fsync, Group, OneByOne, Ring, WriteOnly};
    let mut steps = vec![
        Step { weight: 8.0, ..Step::new(SyncPart::Flush, Fdatasync, 1) },
        Step { weight: 2.5, ..Step::new(SyncPart::Unsynced, WriteOnly, 1) },
    ];
    for method in [Fdatasync, Dsync, Fsync, Ring] {
        let curve = |streams| Step::new(SyncPart::Curve, method, streams);
        steps.extend(STREAMS.map(curve));
    }
    for method in [Fdatasync, Dsync, Fsync] {
        let growing = |streams| Step { growing: true, weight: 0.7, ..Step::new(SyncPart::Curve, method, streams) };
        steps.extend(STREAMS.map(growing));
    }
    for bytes in [512, BLOCK_BYTES, 16 << 10, 64 << 10] {
        let refused = logical_block_bytes.filter(|least| *least > bytes);
        steps.push(Step {
            bytes,
            refused: refused.map(|least| format!("direct writes of this device have at least {least} bytes")),
            ..Step::new(SyncPart::Sizes, Fdatasync, 1)
        });
    }
    for method in [WriteOnly, Group, OneByOne, Fdatasync] {
        let safety = |streams| Step::new(SyncPart::Safety, method, streams);
        steps.extend([1, MANY].map(safety));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_and_file_has_its_whole_curve_and_f0_the_longest_step() {
        let steps = steps(Some(512));
        let longest = steps.iter().map(|step| step.weight).fold(0.0, f64::max);
        assert_eq!(steps[0].weight, longest);
        let curve: Vec<&Step> = steps.iter().filter(|step| step.part == SyncPart::Curve).collect();
        assert_eq!(curve.len(), 7 * STREAMS.len());
        assert!(steps.iter().all(|step| step.refused.is_none()));
    }

    #[test]
    fn a_size_below_the_device_s_sector_is_refused_with_its_reason() {
        let steps = steps(Some(4096));
        let refused: Vec<&Step> = steps.iter().filter(|s| s.refused.is_some()).collect();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].bytes, 512);
    }
}
