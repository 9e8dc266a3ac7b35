//! A cluster's report: what each instance did, as the report prints it.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Record};
use std::collections::BTreeSet;

/// One instance of a cluster.
#[figures]
pub(crate) struct InstanceRow {
    #[column("Instance")]
    pub instance: String,
    #[column("Blocks read/s", 1)]
    pub blocks_read_per_s: Figure,
    #[column("Blocks written/s", 1)]
    pub blocks_written_per_s: Figure,
    #[column("Redo, bytes/s", 0)]
    pub redo_bytes_per_s: Figure,
    #[column("Transactions/s", 1)]
    pub transactions_per_s: Figure,
    #[column("Read, us", 0)]
    pub read_us: Figure,
    #[column("Active sessions", 1)]
    pub active_sessions_count: Figure,
}

/// The instances of a report on a cluster; none of another report.
pub(super) fn rows(record: &Record) -> Vec<InstanceRow> {
    let values = record.import.as_ref().map_or(&[][..], |import| &import.values);
    let number = |scope: &str| scope.strip_prefix("instance ")?.parse::<u64>().ok();
    let instances: BTreeSet<u64> = values.iter().filter_map(|value| number(&value.scope)).collect();
    let row = |instance: u64| {
        let of = |suffix: &str, key: &str| {
            let scope = format!("instance {instance}{suffix}");
            let found = values.iter().find(|value| value.scope == scope && value.key == key);
            found.map_or_else(|| Figure::na("the report does not have it"), |value| value.value.clone())
        };
        InstanceRow {
            instance: instance.to_string(),
            blocks_read_per_s: of("", "physical_read_blocks_per_s"),
            blocks_written_per_s: of("", "physical_write_blocks_per_s"),
            redo_bytes_per_s: of("", "redo_size_bytes_per_s"),
            transactions_per_s: of("", "transactions_per_s"),
            read_us: of(", foreground", "db_file_sequential_read_us_avg"),
            active_sessions_count: of("", "active_sessions_count"),
        }
    };
    instances.into_iter().map(row).collect()
}
