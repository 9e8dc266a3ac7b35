//! The result of the probe, for its caller.

use crate::readings::StorageReadings;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::probe::Measured;

/// The readings of storage jobs. The command prints fio's formats from them before there is a record.
#[derive(Debug)]
pub struct StorageMeasured(pub StorageReadings);

impl Measured for StorageMeasured {
    fn was_stopped(&self) -> bool {
        self.0.stopped
    }

    fn data(&self, labels: &RunData) -> Option<RunData> {
        Some(crate::hosts::data(labels, &self.0))
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(crate::record::build(labels, &self.0))
    }
}
