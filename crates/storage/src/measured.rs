//! What the probe hands to its caller.

use crate::readings::StorageReadings;
use assay_run::probe::Measured;

/// The readings of storage jobs. The command makes fio's faces of them before there is a record.
#[derive(Debug)]
pub struct StorageMeasured(pub StorageReadings);

impl Measured for StorageMeasured {
    fn was_stopped(&self) -> bool {
        self.0.stopped
    }
}
