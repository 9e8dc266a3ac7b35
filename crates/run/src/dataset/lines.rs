//! Lines of plans and summaries, said the same way by every target and every probe.

use crate::engine::{EngineError, Line, LineValue};
use std::time::Duration;

/// A text as it is.
pub fn text(key: &'static str, label: &str, value: impl Into<String>) -> Line {
    Line { key, label: label.to_owned(), value: LineValue::Text(value.into()) }
}

/// A number as it is.
pub fn count(key: &'static str, label: &str, value: u64) -> Line {
    Line { key, label: label.to_owned(), value: LineValue::Count(value) }
}

/// A byte count; the label says it for people too.
pub fn bytes(key: &'static str, label: &str, value: u64) -> Line {
    Line { key, label: format!("{label}, bytes ({})", mebibytes(value)), value: LineValue::Count(value) }
}

/// Rounded to three digits after the point.
pub fn decimal(key: &'static str, label: &str, value: f64) -> Line {
    Line { key, label: label.to_owned(), value: LineValue::Decimal((value * 1000.0).round() / 1000.0) }
}

/// How long a probe is about to measure.
pub fn measuring(time: Duration) -> Line {
    decimal("estimated_s", "measuring", time.as_secs_f64())
}

/// A byte count for people.
pub fn mebibytes(bytes: u64) -> String {
    let mib = bytes as f64 / 1_048_576.0;
    if mib < 100.0 {
        format!("{mib:.1} MiB")
    } else if mib < 10_240.0 {
        format!("{mib:.0} MiB")
    } else {
        format!("{:.1} GiB", mib / 1024.0)
    }
}

/// Refuses settings that contradict those the data set was made with; each is a fragment that names both.
///
/// # Errors
/// `Usage`, with all of them and the remedy.
pub fn made_otherwise(contradictions: &[String]) -> Result<(), EngineError> {
    if contradictions.is_empty() {
        return Ok(());
    }
    Err(EngineError::Usage(format!(
        "the existing data set was made with other settings ({}); leave these settings out, or run `assay destroy` \
         first",
        contradictions.join(", ")
    )))
}
