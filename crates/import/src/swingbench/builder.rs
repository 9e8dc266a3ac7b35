//! The summary a data generation ends with.

use super::super::lines::{PLAIN, Table};

#[rustfmt::skip]
pub(super) const BUILDER: Table = Table {
    format: "Swingbench data generator summary",
    marks: &[(90, &["Datagenerator Run Stats", "Rows Inserted per sec"])],
    lines: &[
        ("", "Connection Time {load_connection_s:clock}"),
        ("", "Data Generation Time {load_data_generation_s:clock}"),
        ("", "DDL Creation Time {load_ddl_s:clock}"),
        ("", "Total Run Time {load_total_s:clock}"),
        ("", "Rows Inserted per sec {load_rows_per_s}"),
        ("", "Data Generated (MB) per sec {load_data_mb_per_s}"),
        ("", "Actual Rows Generated {load_rows_count}"),
        ("", "Commits Completed {load_commits_count}"),
        ("", "Batch Updates Completed {load_batches_count}"),
    ],
    ..PLAIN
};
