//! One reading as the server returned it, with the reasons that make parts of it unusable.

use super::about::About;
use super::sql::FLUSH;
use super::tables::{self, GROUPS, Group, Needs};
use crate::postgres::claim::holders_json;
use assay_measure::snapshot::Reading;
use serde_json::Value;
use std::collections::BTreeMap;

/// The statement of a reading: one row with one JSON document of groups (`db`, `wal`, `io_data`, ...), keyed by the columns' names.
/// It is one transaction and, from 15 on with `stats_fetch_consistency=snapshot`, one instant for all values.
pub(super) fn statement(about: &About) -> String {
    let version = about.version;
    let oids = |oids: &[u32]| oids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let relations = &about.relations;
    let places = [
        ("{database}", about.database.to_string()),
        ("{tables}", oids(&relations.tables)),
        ("{indexes}", oids(&relations.indexes)),
        ("{scan_tables}", oids(&relations.scan_tables)),
        ("{statements}", about.statements.clone().unwrap_or_default()),
    ];
    let mut groups = vec!["'started', pg_postmaster_start_time()".to_owned()];
    for group in GROUPS {
        let mut columns: Vec<String> = tables::columns(group, version)
            .into_iter()
            .map(|name| format!("{} as {name}", group.column.replace("{}", name)))
            .collect();
        if columns.is_empty() || (group.needs == Needs::Statements && about.statements.is_err()) {
            continue;
        }
        if !group.reset_at.is_empty() {
            columns.push(format!("{} as stats_reset", group.reset_at));
        }
        let columns = columns.join(", ");
        let from = places.iter().fold(group.from.to_owned(), |from, (place, value)| from.replace(place, value));
        groups.push(format!("'{}', (select row_to_json(v) from (select {columns} from {from}) v)", group.name));
    }
    groups.push(format!("'claims', {}", holders_json(&about.pg_schema, about.database)));
    if version >= 15 {
        // Publishes this session's own work before the next reading, so that it can be subtracted.
        groups.push(format!("'flush', {FLUSH}"));
    }
    format!("{}select json_build_object({})::text", tables::io_rows(version), groups.join(", "))
}

/// One reading.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    /// The document, or the reason why there is none.
    document: Result<Value, String>,
    /// Why groups must not be used, by the group they are reset with.
    void: BTreeMap<&'static str, String>,
}

/// When the server and its statistics started to count, by group; a change invalidates earlier values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch {
    started: Option<String>,
    resets: BTreeMap<&'static str, String>,
}

impl Epoch {
    /// Adds start times that were unknown before.
    pub(super) fn complete(&mut self, now: &Self) {
        for (group, at) in &now.resets {
            self.resets.entry(group).or_insert_with(|| at.clone());
        }
    }

    /// Text for the report.
    pub(super) fn describe(&self) -> String {
        let mut parts: Vec<String> = self.resets.iter().map(|(group, at)| format!("{group} {at}")).collect();
        if let Some(started) = &self.started {
            parts.push(format!("server started {started}"));
        }
        parts.join(", ")
    }
}

impl Raw {
    /// Parses what the statement returned.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let document =
            serde_json::from_str(text).map_err(|error| format!("the server's statistics cannot be read: {error}"))?;
        Ok(Self { document: Ok(document), void: BTreeMap::new() })
    }

    /// A reading without a document, for this reason.
    pub(super) fn missing(reason: &str) -> Self {
        Self { document: Err(reason.to_owned()), void: BTreeMap::new() }
    }

    /// Whether there is a document.
    pub(super) fn is_there(&self) -> bool {
        self.document.is_ok()
    }

    /// When its counters started.
    pub(super) fn epoch(&self) -> Epoch {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut epoch = Epoch { started: self.get("started").and_then(text), resets: BTreeMap::new() };
        for group in GROUPS.iter().filter(|group| !group.reset_at.is_empty()) {
            if let Some(reset) = self.get(group.name).and_then(|row| row.get("stats_reset")).and_then(text) {
                epoch.resets.insert(group.reset, reset);
            }
        }
        epoch
    }

    /// Marks the groups as n/a whose counters restarted after `first`.
    pub(super) fn void_since(&mut self, first: &Epoch) {
        let now = self.epoch();
        if self.document.is_err() {
            return;
        }
        let restarted = now.started != first.started;
        for group in GROUPS.iter().map(|group| group.reset).filter(|group| !group.is_empty()) {
            if restarted {
                let reason = "reset: the server was restarted".to_owned();
                self.void.insert(group, reason);
            } else if now.resets.get(group) != first.resets.get(group) {
                let reason = format!("reset: the server's {group} statistics were reset in the meantime");
                self.void.insert(group, reason);
            }
        }
    }

    /// A part that is not a counter; `None` without a document.
    pub(super) fn part(&self, group: &str) -> Option<&Value> {
        self.get(group)
    }

    fn get(&self, group: &str) -> Option<&Value> {
        self.document.as_ref().ok()?.get(group)
    }

    /// A figure of a group times a factor, or why there is none.
    pub(super) fn figure(&self, group: &Group, column: &str, factor: u64) -> Reading {
        let why = match &self.document {
            Err(reason) => Some(format!("unknowable: {reason}")),
            Ok(_) => self.void.get(group.reset).cloned(),
        };
        let value = self.get(group.name).and_then(|row| row.get(column));
        why.map_or_else(|| reading(value, factor, group.silent), Reading::Na)
    }
}

fn reading(value: Option<&Value>, factor: u64, absent: &str) -> Reading {
    let number = value.and_then(|value| match value.as_u64() {
        Some(whole) => Some(whole.saturating_mul(factor)),
        // A server clock that was set back can cause a small negative time.
        None => Some((value.as_f64()? * factor as f64).max(0.0).round() as u64),
    });
    number.map_or_else(|| Reading::Na(absent.to_owned()), Reading::Count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(raw: &Raw, group: &str, column: &str, factor: u64) -> Reading {
        raw.figure(GROUPS.iter().find(|known| known.name == group).unwrap(), column, factor)
    }

    fn raw(started: &str, db: &str, wal: &str) -> Raw {
        Raw::parse(&format!(
            r#"{{"started":"{started}","lsn":{{"position":18446744073709551615}},
                "db":{{"xact_commit":7,"active_time":1.2345678,"stats_reset":{db}}},
                "wal":{{"wal_bytes":9007199254740993,"stats_reset":"{wal}"}},
                "table":{{"blocks_hit":null}}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn numbers_keep_every_digit_and_times_become_ns() {
        let raw = raw("a", "null", "b");
        assert_eq!(figure(&raw, "lsn", "position", 1), Reading::Count(u64::MAX));
        assert_eq!(figure(&raw, "wal", "wal_bytes", 1), Reading::Count(9_007_199_254_740_993));
        assert_eq!(figure(&raw, "db", "active_time", 1_000_000), Reading::Count(1_234_568));
    }

    #[test]
    fn what_is_not_there_has_its_reason_and_is_never_0() {
        let raw = raw("a", "null", "b");
        let na = |why: &str| Reading::Na(format!("unknowable: {why}"));
        assert_eq!(figure(&raw, "db", "sessions", 1), na("the server gives no value"));
        assert_eq!(figure(&raw, "table", "blocks_hit", 1), na("the data set has no such table yet"));
        assert_eq!(figure(&raw, "io", "x", 1), na("the server gives no value"));
        assert_eq!(figure(&Raw::missing("connection lost"), "db", "xact_commit", 1), na("connection lost"));
    }

    #[test]
    fn a_reset_voids_its_group_alone_and_a_restart_all_of_them() {
        let first = raw("a", "null", "b").epoch();
        let mut reset = raw("a", "\"later\"", "b");
        reset.void_since(&first);
        assert!(matches!(figure(&reset, "db", "xact_commit", 1), Reading::Na(reason) if reason.starts_with("reset")));
        assert!(matches!(figure(&reset, "wal", "wal_bytes", 1), Reading::Count(_)));
        let mut restarted = raw("z", "null", "b");
        restarted.void_since(&first);
        for group in ["db", "wal"] {
            assert!(matches!(figure(&restarted, group, "xact_commit", 1), Reading::Na(_)));
        }
        let mut same = raw("a", "null", "b");
        same.void_since(&first);
        assert_eq!(figure(&same, "db", "xact_commit", 1), Reading::Count(7));
    }
}
