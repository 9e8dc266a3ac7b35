//! `pg_stat_io` (16 and later): sums over its rows.

use super::raw::Raw;
use assay_measure::snapshot::Reading;
use serde_json::Value;

/// Why 17 cannot report the number of requests.
pub(super) const COMBINED: &str =
    "unknowable: PostgreSQL 17 combines neighbouring reads and counts blocks, not requests";

/// Key of a row in the view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub backend_type: &'a str,
    pub object: &'a str,
    pub context: &'a str,
}

impl Row<'_> {
    /// A client session.
    pub(super) fn is_session(self) -> bool {
        self.backend_type == "client backend"
    }

    /// A background process that writes for others.
    pub(super) fn is_writer(self) -> bool {
        matches!(self.backend_type, "checkpointer" | "background writer")
    }

    /// Tables and indexes, except temporary ones.
    pub(super) fn is_relation(self) -> bool {
        self.object == "relation"
    }

    /// The log.
    pub(super) fn is_wal(self) -> bool {
        self.object == "wal"
    }

    /// Autovacuum, or VACUUM's ring of buffers.
    pub(super) fn is_vacuum(self) -> bool {
        self.context == "vacuum" || self.backend_type.starts_with("autovacuum")
    }
}

/// Sums over rows. Requests are calls; if [`Sums::calls`] is false, they are blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Reads, writes and extends are counted in calls (18), not blocks (16, where a read is one block; 17, where it may be several).
    pub calls: bool,
    pub reads: u64,
    pub read_bytes: u64,
    pub read_ns: u64,
    pub writes: u64,
    pub write_bytes: u64,
    pub write_ns: u64,
    pub extends: u64,
    pub extend_bytes: u64,
    pub extend_ns: u64,
    pub evictions: u64,
    pub fsyncs: u64,
    pub fsync_ns: u64,
}

impl Sums {
    /// Sums the rows that `pick` accepts.
    pub(super) fn of(raw: &Raw, pick: impl Fn(Row<'_>) -> bool) -> Result<Self, String> {
        let mut sums = Self::default();
        for row in raw.io_rows()? {
            let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
            let named = Row { backend_type: text("backend_type"), object: text("object"), context: text("context") };
            if pick(named) {
                sums.add(row);
            }
        }
        Ok(sums)
    }

    /// A NULL column does not apply to its row and adds nothing.
    fn add(&mut self, row: &Value) {
        let count = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or(0);
        let ns = |name: &str| {
            let ms = row.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            (ms.max(0.0) * 1e6).round() as u64
        };
        let block_bytes = row.get("op_bytes").and_then(Value::as_u64);
        self.calls = block_bytes.is_none();
        let bytes = |ops: &str, bytes: &str| match block_bytes {
            Some(block_bytes) => count(ops) * block_bytes,
            None => count(bytes),
        };
        self.reads += count("reads");
        self.read_bytes += bytes("reads", "read_bytes");
        self.read_ns += ns("read_time");
        self.writes += count("writes");
        self.write_bytes += bytes("writes", "write_bytes");
        self.write_ns += ns("write_time");
        self.extends += count("extends");
        self.extend_bytes += bytes("extends", "extend_bytes");
        self.extend_ns += ns("extend_time");
        self.evictions += count("evictions");
        self.fsyncs += count("fsyncs");
        self.fsync_ns += ns("fsync_time");
    }
}

/// One number of a sum, or why it is missing.
pub(super) fn part(sums: &Result<Sums, String>, pick: impl Fn(&Sums) -> u64) -> Reading {
    match sums {
        Ok(sums) => Reading::Count(pick(sums)),
        Err(reason) => Reading::Na(reason.clone()),
    }
}

/// Source of values that only 18 counts in `pg_stat_io`.
pub(super) fn source(version: u32) -> &'static str {
    if version >= 18 { "pg_stat_io" } else { "postgres" }
}
