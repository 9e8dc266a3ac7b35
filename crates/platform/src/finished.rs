//! A test that was measured, as the figures of a platform are taken from it.

use assay_measure::record::{Figure, Record};

/// A test that was measured.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The name of the test.
    pub test: &'static str,
    /// Its directory, relative to that of the platform.
    pub directory: String,
    /// Its record; or why there is none.
    pub record: Result<Record, String>,
}

impl Finished {
    pub(crate) fn of<'a>(finished: &'a [Self], test: &str) -> Option<&'a Self> {
        finished.iter().find(|one| one.test == test && one.record.is_ok())
    }

    /// A figure of its record by key and scope.
    pub(crate) fn value(&self, key: &str, scope: &str) -> Figure {
        let record = match &self.record {
            Ok(record) => record,
            Err(why) => return Figure::na(why),
        };
        let metric = record.metrics.iter().find(|metric| metric.key == key && metric.scope == scope);
        metric.map_or_else(|| Figure::na("its test does not have it"), |metric| metric.value.clone())
    }
}
