//! Lines of plans and summaries of every target and probe: as text, as facts and as JSON.

use assay_measure::snapshot::Fact;
use assay_measure::units;
use assay_run::engine::{Line, LineValue};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Width of the labels of a plan.
const LABEL_WIDTH: usize = 26;

/// `label   value` lines, without a last line end.
pub(crate) fn lines(lines: &[Line]) -> String {
    let pairs = pairs(lines);
    let width = pairs.iter().map(|(label, _)| label.chars().count()).max();
    let width = width.unwrap_or(0).max(LABEL_WIDTH);
    let lines: Vec<String> = pairs.iter().map(|(label, value)| format!("  {label:<width$} {value}")).collect();
    lines.join("\n")
}

/// The label of each line, and its value with the unit.
pub(crate) fn pairs(lines: &[Line]) -> Vec<(String, String)> {
    lines.iter().map(|line| (without_unit(&line.label), value_of(line))).collect()
}

fn value_of(line: &Line) -> String {
    match &line.value {
        LineValue::Count(n) if line.key.ends_with("_bytes") => {
            format!("{} ({} bytes)", units::size(*n), units::thousands(*n))
        }
        // An identity, not an amount.
        LineValue::Count(n) if line.key.ends_with("seed") => n.to_string(),
        LineValue::Count(n) => units::thousands(*n) + unit_of(line.key),
        LineValue::Decimal(value) => units::fixed(*value, decimals_of(line.key)) + unit_of(line.key),
        LineValue::Text(text) => text.clone(),
    }
}

/// A label without the unit in it: here the value shows its unit.
fn without_unit(label: &str) -> String {
    let Some((head, tail)) = label.split_once(", ") else {
        return label.to_owned();
    };
    let (unit, more) = tail.split_once(", ").unwrap_or((tail, ""));
    let is_unit = ["bytes", "s", "ms", "MB/s", "MiB/s"]
        .iter()
        .any(|known| unit == *known || unit.starts_with(&format!("{known} (")));
    match (is_unit, more) {
        (false, _) => label.to_owned(),
        (true, "") => head.to_owned(),
        (true, more) => format!("{head}, {more}"),
    }
}

fn decimals_of(key: &str) -> usize {
    if unit_of(key).is_empty() { 3 } else { 1 }
}

/// One row of a plan, as wide as [`lines`].
pub(crate) fn row(label: &str, value: &str) -> String {
    format!("  {label:<LABEL_WIDTH$} {value}")
}

/// The unit at the end of a key, as it is printed.
fn unit_of(key: &str) -> &'static str {
    match key.rsplit('_').next() {
        _ if key.ends_with("_mb_per_s") => " MB/s",
        _ if key.ends_with("_mib_per_s") => " MiB/s",
        _ if key.ends_with("_per_s") => "/s",
        Some("s") => " s",
        Some("ms") => " ms",
        Some("pct") => " %",
        _ => "",
    }
}

/// Lines as facts of a record: by key, each as people read it.
pub(crate) fn facts(lines: &[Line]) -> Vec<Fact> {
    lines
        .iter()
        .map(|line| Fact {
            name: line.key.to_owned(),
            value: match &line.value {
                // The unit is in the key.
                LineValue::Count(n) => n.to_string(),
                LineValue::Decimal(value) => units::fixed(*value, 3),
                LineValue::Text(text) => text.clone(),
            },
        })
        .collect()
}

/// Lines as a JSON object by key.
pub(crate) fn lines_json(lines: &[Line]) -> Value {
    let map: Map<String, Value> = lines
        .iter()
        .map(|line| {
            let value = match &line.value {
                LineValue::Count(n) => json!(n),
                LineValue::Decimal(value) if value.is_finite() => json!(value),
                LineValue::Decimal(_) => json!({"na": "unknowable"}),
                LineValue::Text(text) => json!(text),
            };
            (line.key.to_owned(), value)
        })
        .collect();
    Value::Object(map)
}

/// Pretty JSON with a last line end.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    // What has no maps of other keys than strings always prints.
    let mut text = serde_json::to_string_pretty(value).expect("plain JSON prints");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &'static str, label: &str, value: LineValue) -> Line {
        Line { key, label: label.to_owned(), value }
    }

    #[test]
    fn a_unit_is_printed_once_and_an_identity_without_separators() {
        let text = lines(&[
            line("table_bytes", "Table data, bytes (31.2 MiB)", LineValue::Count(1 << 25)),
            line("time_s", "Estimated time, s, at an assumed 500 MB/s", LineValue::Decimal(1.25)),
            line("rate_mb_per_s", "Load rate, MB/s (10^6)", LineValue::Decimal(274.84)),
            line("seed", "Seed", LineValue::Count(694_948_439)),
            line("rows", "Rows per schema, all in the index", LineValue::Count(2000)),
        ]);
        let expected = "\
\x20 Table data                             32 MiB (33,554,432 bytes)
  Estimated time, at an assumed 500 MB/s 1.3 s
  Load rate                              274.8 MB/s
  Seed                                   694948439
  Rows per schema, all in the index      2,000";
        assert_eq!(text, expected);
    }
}
