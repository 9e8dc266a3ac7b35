//! Whether an imported record has its values where it says.

use assay_measure::record::Record;

/// Values of a record whose place differs from the list of values; there must be none, whatever was read.
#[must_use]
pub fn misplaced(record: &Record) -> Vec<String> {
    let Some(info) = &record.import else {
        return Vec::new();
    };
    let Ok(whole) = serde_json::to_value(record) else {
        return vec!["the record cannot be written".to_owned()];
    };
    let values = info.values.iter().filter(|value| !value.at.is_empty());
    let wrong = values.filter(|value| {
        let held = whole.pointer(&value.at);
        let said = serde_json::to_value(&value.value).ok();
        let same = match (held.and_then(serde_json::Value::as_f64), value.value.value()) {
            (Some(held), Some(said)) => held == said || held == said.round(),
            _ => held == said.as_ref(),
        };
        !same
    });
    wrong.map(|value| format!("{} {} at {}", value.scope, value.key, value.at)).collect()
}
