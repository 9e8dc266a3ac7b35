//! The one key of our JSON that fio's does not have: figures that fio leaves out.

use crate::record::info::StorageInfo;
use assay_measure::record::Record;
use serde_json::{Value, json};

/// The value of the `native` key in the JSON output: the storage section of the record with its notes. It contains
/// everything that `record.json` has on the probe, except for run labels and settings.
#[must_use]
pub fn native(record: &Record) -> Value {
    let part = |value: Result<Value, serde_json::Error>| {
        // A record has only string keys and finite numbers, so conversion cannot fail.
        value.expect("a record is always a JSON value")
    };
    json!({
        "schema": record.schema,
        "verdict": record.run.verdict,
        "verdict_reasons": record.run.verdict_reasons,
        "seed": record.run.seed,
        "storage": part(serde_json::to_value(record.parts.get::<StorageInfo>())),
        "series": part(serde_json::to_value(&record.series)),
        "integrity": part(serde_json::to_value(&record.integrity)),
        "warnings": record.doubts().map(|(_, text)| text).collect::<Vec<_>>(),
        "advice": part(serde_json::to_value(record.hints().collect::<Vec<_>>())),
        "os": part(serde_json::to_value(&record.os)),
        "environment": part(serde_json::to_value(&record.plan.engine_facts)),
        "host": part(serde_json::to_value(&record.host.facts)),
    })
}
