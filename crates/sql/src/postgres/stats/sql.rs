//! The tables that readings are about, and statements beside the readings.

use crate::postgres::layout::literal;

/// The tables of the data set to sum over, by OID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Relations {
    /// `cf1_<n>`, the tables of the workload.
    pub tables: Vec<u32>,
    /// Their indexes.
    pub indexes: Vec<u32>,
    /// `cf2_<n>`, the scan tables.
    pub scan_tables: Vec<u32>,
}

impl Relations {
    /// Query for the tables of the data set in a schema; its rows are (oid, relkind, relname).
    pub(super) fn query(pg_schema: &str) -> String {
        format!(
            "select c.oid, c.relkind, c.relname from pg_catalog.pg_class c \
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
             where n.nspname = {} and c.relkind in ('r', 'i') order by c.oid",
            literal(pg_schema)
        )
    }

    /// Parses the rows of [`Relations::query`]; other tables of the schema are left out.
    pub(super) fn from_rows(rows: &[Vec<Option<String>>]) -> Self {
        let mut relations = Self::default();
        for row in rows {
            let [Some(oid), Some(kind), Some(name)] = row.as_slice() else {
                continue;
            };
            let Ok(oid) = oid.parse() else { continue };
            match (kind.as_str(), name) {
                ("r", name) if name.starts_with("cf1_") => relations.tables.push(oid),
                ("r", name) if name.starts_with("cf2_") => relations.scan_tables.push(oid),
                ("i", name) if name.starts_with("i_cf1_") => relations.indexes.push(oid),
                _ => {}
            }
        }
        relations
    }
}

/// Has the session publish its counters when the statement ends (15 and later).
///
/// A session that has counted only transactions does not publish even when forced; one table scan makes it publish.
/// This catalog table has no pages unless foreign tables exist, so scanning it reads no block.
pub(super) const FLUSH: &str = "pg_stat_force_next_flush()::text || (select count(*) from pg_catalog.pg_foreign_table)";

/// Prepares [`FLUSH`] separately in a session of the run: planning reads the table's empty index, which counts as a
/// block get that must not be among the run's.
pub(super) fn prepare_flush() -> String {
    format!("prepare assay_flush as select {FLUSH}")
}

/// Executes what [`prepare_flush`] prepared.
pub(super) const EXECUTE_FLUSH: &str = "execute assay_flush";

/// What every session is doing, for the activity history; reads no table either.
pub(super) fn activity(version: u32) -> String {
    let flush = if version >= 15 { format!(", (select {FLUSH})") } else { String::new() };
    format!(
        "select pid, coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''){flush} \
         from pg_catalog.pg_stat_get_activity(null) where backend_type = 'client backend'"
    )
}
