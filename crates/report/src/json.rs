//! The record as JSON: what `record.json` holds and `--format json` prints.

use assay_measure::record::{Record, SCHEMA};
use thiserror::Error;

/// Why a text is no record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Not JSON, or not of this shape.
    #[error("not a record: {0}")]
    Shape(#[from] serde_json::Error),
    /// A record of another schema.
    #[error("schema \"{found}\" where \"{SCHEMA}\" is needed; was it written by a later version?")]
    Schema {
        /// What its `schema` key says.
        found: String,
    },
}

/// Writes a record, indented, with a final newline.
///
/// # Errors
/// None that a record can cause; the signature is serde's.
pub fn write(record: &Record) -> Result<String, RecordError> {
    let mut text = serde_json::to_string_pretty(record)?;
    text.push('\n');
    Ok(text)
}

/// Reads a record; unknown keys are ignored, missing ones are n/a (absent).
///
/// # Errors
/// When the text is not JSON of this shape, or of another schema.
pub fn read(text: &str) -> Result<Record, RecordError> {
    let record: Record = serde_json::from_str(text)?;
    if record.schema != SCHEMA {
        return Err(RecordError::Schema {
            found: record.schema,
        });
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_run_survives_the_round_trip() {
        let record = crate::record::build(&crate::fixture::run());
        let text = write(&record).unwrap();
        assert_eq!(read(&text).unwrap(), record);
    }

    #[test]
    fn unknown_keys_are_ignored_and_missing_ones_are_absent() {
        let record =
            read(r#"{"schema":"assay/1","later":{"x":[1]},"interval":{"new_s":1}}"#).unwrap();
        assert_eq!(record.interval.elapsed_s.reason(), Some("absent"));
    }

    #[test]
    fn another_schema_is_refused_by_name() {
        let error = read(r#"{"schema":"assay/2"}"#).unwrap_err();
        assert!(error.to_string().contains("assay/2"), "{error}");
    }
}
