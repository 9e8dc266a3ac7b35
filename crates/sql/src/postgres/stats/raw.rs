//! One reading as the server returned it, with the reasons that make parts of it unusable.

use assay_measure::snapshot::Reading;
use serde_json::Value;
use std::collections::BTreeMap;

/// Groups of the document that are counted and reset separately.
const RESETTABLE: [&str; 5] = ["db", "bgwriter", "checkpointer", "wal", "io"];

/// One reading.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    /// The document, or the reason why there is none.
    document: Result<Value, String>,
    /// Why a group must not be used, by group.
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
        for group in RESETTABLE {
            let row = match self.get(group) {
                Some(Value::Array(rows)) => rows.first(),
                other => other,
            };
            if let Some(reset) = row.and_then(|row| row.get("stats_reset")).and_then(text) {
                epoch.resets.insert(group, reset);
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
        for group in RESETTABLE {
            if restarted {
                let reason = "reset: the server was restarted".to_owned();
                self.void.insert(group, reason);
            } else if now.resets.get(group) != first.resets.get(group) {
                let reason = format!("reset: the server's {group} statistics were reset in the meantime");
                self.void.insert(group, reason);
            }
        }
        // Tables are reset with their database.
        if let Some(reason) = self.void.get("db").cloned() {
            for group in ["table", "index", "scan", "statements"] {
                self.void.insert(group, reason.clone());
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

    /// Why a whole group has no value.
    fn void(&self, group: &str) -> Option<String> {
        match &self.document {
            Err(reason) => Some(format!("unknowable: {reason}")),
            Ok(_) => self.void.get(group).cloned(),
        }
    }

    /// A whole number beside the groups, e.g. `lsn`.
    pub(super) fn plain(&self, name: &str, absent: &str) -> Reading {
        self.void(name).map_or_else(|| reading(self.get(name), 1.0, absent), Reading::Na)
    }

    /// A counter of a group; `absent` is the reason if the server does not have it.
    pub(super) fn count(&self, group: &str, column: &str, absent: &str) -> Reading {
        self.scaled(group, column, 1.0, absent)
    }

    /// A time of a group, converted from ms to ns.
    pub(super) fn ms(&self, group: &str, column: &str, absent: &str) -> Reading {
        self.scaled(group, column, 1e6, absent)
    }

    fn scaled(&self, group: &str, column: &str, scale: f64, absent: &str) -> Reading {
        self.void(group).map_or_else(
            || {
                let value = self.get(group).and_then(|row| row.get(column));
                reading(value, scale, absent)
            },
            Reading::Na,
        )
    }

    /// Rows of `pg_stat_io`, or why there are none.
    pub(super) fn io_rows(&self) -> Result<&[Value], String> {
        if let Some(reason) = self.void("io") {
            return Err(reason);
        }
        match self.get("io") {
            Some(Value::Array(rows)) => Ok(rows),
            _ => Err("absent: pg_stat_io came with PostgreSQL 16".to_owned()),
        }
    }
}

fn reading(value: Option<&Value>, scale: f64, absent: &str) -> Reading {
    let number = value.and_then(|value| {
        if scale == 1.0 && value.is_u64() {
            return value.as_u64();
        }
        let scaled = value.as_f64()? * scale;
        // A server clock that was set back can cause a small negative time.
        Some(scaled.max(0.0).round() as u64)
    });
    number.map_or_else(|| Reading::Na(absent.to_owned()), Reading::Count)
}

/// The sum of readings; n/a, with the first reason, if one of them is.
pub(super) fn sum<const N: usize>(parts: [Reading; N]) -> Reading {
    let mut total = Reading::Count(0);
    for part in &parts {
        total.merge(part);
    }
    total
}

/// A reading minus `n`, at least 0.
pub(super) fn less(reading: Reading, n: u64) -> Reading {
    match reading {
        Reading::Count(count) => Reading::Count(count.saturating_sub(n)),
        na @ Reading::Na(_) => na,
    }
}

/// One reading minus another.
pub(super) fn minus(from: Reading, part: Reading) -> Reading {
    match (from, part) {
        (Reading::Count(from), Reading::Count(part)) => Reading::Count(from.saturating_sub(part)),
        (na @ Reading::Na(_), _) | (_, na @ Reading::Na(_)) => na,
    }
}

/// A reading times a whole number.
pub(super) fn times(reading: Reading, factor: u64) -> Reading {
    match reading {
        Reading::Count(count) => Reading::Count(count.saturating_mul(factor)),
        na @ Reading::Na(_) => na,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(started: &str, db: &str, wal: &str) -> Raw {
        Raw::parse(&format!(
            r#"{{"started":"{started}","lsn":18446744073709551615,
                "db":{{"xact_commit":7,"active_time":1.2345678,"stats_reset":{db}}},
                "wal":{{"wal_bytes":9007199254740993,"stats_reset":"{wal}"}},
                "table":{{"blks_hit":null}}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn numbers_keep_every_digit_and_times_become_ns() {
        let raw = raw("a", "null", "b");
        assert_eq!(raw.plain("lsn", ""), Reading::Count(u64::MAX));
        assert_eq!(raw.count("wal", "wal_bytes", ""), Reading::Count(9_007_199_254_740_993));
        assert_eq!(raw.ms("db", "active_time", ""), Reading::Count(1_234_568));
    }

    #[test]
    fn what_is_not_there_has_its_reason_and_is_never_0() {
        let raw = raw("a", "null", "b");
        let na = Reading::Na("absent (14)".to_owned());
        assert_eq!(raw.count("db", "sessions", "absent (14)"), na);
        assert_eq!(raw.count("table", "blks_hit", "absent (14)"), na);
        assert_eq!(raw.count("nowhere", "x", "absent (14)"), na);
        let lost = Raw::missing("connection lost");
        let lost = lost.count("db", "xact_commit", "absent (14)");
        assert_eq!(lost, Reading::Na("unknowable: connection lost".to_owned()));
    }

    #[test]
    fn a_reset_voids_its_group_alone_and_a_restart_all_of_them() {
        let first = raw("a", "null", "b").epoch();
        let mut reset = raw("a", "\"later\"", "b");
        reset.void_since(&first);
        assert!(matches!(reset.count("db", "xact_commit", ""), Reading::Na(reason) if reason.starts_with("reset")));
        assert!(matches!(reset.count("wal", "wal_bytes", ""), Reading::Count(_)));
        let mut restarted = raw("z", "null", "b");
        restarted.void_since(&first);
        for group in ["db", "wal"] {
            assert!(matches!(restarted.count(group, "xact_commit", ""), Reading::Na(_)));
        }
        let mut same = raw("a", "null", "b");
        same.void_since(&first);
        assert_eq!(same.count("db", "xact_commit", ""), Reading::Count(7));
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let na = Reading::Na("absent".to_owned());
        assert_eq!(sum([Reading::Count(1), na.clone(), Reading::Count(2)]), na);
        assert_eq!(sum([Reading::Count(1), Reading::Count(2)]), Reading::Count(3));
        assert_eq!(minus(Reading::Count(1), na.clone()), na);
    }
}
