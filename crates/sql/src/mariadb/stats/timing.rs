//! Times of file I/O from `performance_schema`.

use super::super::conn::{Connection, MyError};
use std::collections::BTreeMap;

/// The instrument: reads, writes and syncs of table files.
pub(in crate::mariadb) const INSTRUMENT: &str = "wait/io/file/innodb/innodb_data_file";
const PS_PER_NS: u64 = 1000;
/// Counts and times of reads, writes, and everything else (mostly syncs).
const COLUMNS: [&str; 6] =
    ["count_read", "sum_timer_read", "count_write", "sum_timer_write", "count_misc", "sum_timer_misc"];

/// Whether the server times its file I/O, or why not.
pub(super) struct Timing(Result<(), String>);

impl Timing {
    pub(super) fn of(connection: &mut Connection) -> Result<Self, MyError> {
        if connection.number("select @@performance_schema")? == 0 {
            return Ok(Self(Err("disabled: performance_schema is off".to_owned())));
        }
        let asked = connection.value(&format!(
            "select concat(enabled, timed) from performance_schema.setup_instruments where name = '{INSTRUMENT}'"
        ));
        Ok(Self(match asked {
            Ok(on) if on == "YESYES" => Ok(()),
            Ok(_) => Err(format!("disabled: {INSTRUMENT} is not instrumented")),
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => Err("denied: SELECT on performance_schema".to_owned()),
        }))
    }

    pub(super) fn told(&self) -> String {
        match &self.0 {
            Ok(()) => format!("on (performance_schema, {INSTRUMENT})"),
            Err(why) => format!("n/a ({why})"),
        }
    }

    /// Why a column has no value.
    pub(super) fn silent(&self) -> &str {
        self.0.as_ref().err().map_or("unknowable", String::as_str)
    }

    /// Adds the columns to what the server counts, as `file.COLUMN`, times in ns.
    pub(super) fn read(&self, connection: &mut Connection, into: &mut BTreeMap<String, u64>) -> Result<(), MyError> {
        if self.0.is_err() {
            return Ok(());
        }
        let rows = connection.rows(&format!(
            "select {} from performance_schema.file_summary_by_event_name where event_name = '{INSTRUMENT}'",
            COLUMNS.join(", ")
        ))?;
        for (column, value) in COLUMNS.iter().zip(rows.into_iter().next().unwrap_or_default()) {
            let number: u64 = value.and_then(|text| text.parse().ok()).unwrap_or(0);
            let unit = if column.starts_with("sum") { PS_PER_NS } else { 1 };
            into.insert(format!("file.{column}"), number / unit);
        }
        Ok(())
    }
}
